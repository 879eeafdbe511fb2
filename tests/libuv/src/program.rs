//! Programs for a loop: what the main function does, and what each callback does.

use std::collections::BTreeMap;
use std::fmt;

use crate::random::Random;

/// The numbers of handles of each kind. All are created before a program starts.
pub(crate) const TIMERS: u8 = 3;
pub(crate) const HOOKS: u8 = 2;
pub(crate) const ASYNCS: u8 = 2;
pub(crate) const POLLS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Timer,
    Idle,
    Prepare,
    Check,
    Async,
    Poll,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Timer,
        Self::Idle,
        Self::Prepare,
        Self::Check,
        Self::Async,
        Self::Poll,
    ];

    pub(crate) fn count(self) -> u8 {
        match self {
            Self::Timer => TIMERS,
            Self::Idle | Self::Prepare | Self::Check => HOOKS,
            Self::Async => ASYNCS,
            Self::Poll => POLLS,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Idle => "idle",
            Self::Prepare => "prepare",
            Self::Check => "check",
            Self::Async => "async",
            Self::Poll => "poll",
        }
    }
}

/// A handle, by its kind and its number within the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle {
    pub(crate) kind: Kind,
    pub(crate) number: u8,
}

impl Handle {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Kind::ALL
            .into_iter()
            .flat_map(|kind| (0..kind.count()).map(move |number| Self { kind, number }))
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.name(), self.number)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Default,
    Once,
    NoWait,
}

/// What a poll handle is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Events {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) disconnect: bool,
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.readable, "readable"),
            (self.writable, "writable"),
            (self.disconnect, "disconnect"),
        ];
        let names: Vec<_> = names
            .into_iter()
            .filter_map(|(is_set, name)| is_set.then_some(name))
            .collect();
        f.write_str(&names.join("+"))
    }
}

/// One call of the loop's interface. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Starts a handle of a kind that has no options.
    Start(Handle),
    StartTimer(Handle, u64, u64),
    StartPoll(Handle, Events),
    Again(Handle),
    SetRepeat(Handle, u64),
    Stop(Handle),
    Close(Handle),
    Ref(Handle),
    Unref(Handle),
    Send(Handle),
    /// The peer of a poll handle writes so many bytes.
    Write(Handle, u8),
    /// Reads at most two bytes from the descriptor of a poll handle.
    Read(Handle),
    /// The peer of a poll handle goes.
    ClosePeer(Handle),
    /// Queues work for the thread pool.
    Queue,
    /// Cancels the n-th work that was queued.
    Cancel(u8),
    StopLoop,
    /// Passes time without a look at the clock.
    Busy(u64),
    UpdateTime,
    /// Runs the loop; only in the main function.
    Run(Mode),
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(handle) => write!(f, "start {handle}"),
            Self::StartTimer(timer, timeout, 0) => write!(f, "start {timer} in {timeout} ms"),
            Self::StartTimer(timer, timeout, repeat) => {
                write!(f, "start {timer} in {timeout} ms, then every {repeat} ms")
            }
            Self::StartPoll(poll, events) => write!(f, "start {poll} for {events}"),
            Self::Again(timer) => write!(f, "{timer} again"),
            Self::SetRepeat(timer, repeat) => write!(f, "set the repeat of {timer} to {repeat} ms"),
            Self::Stop(handle) => write!(f, "stop {handle}"),
            Self::Close(handle) => write!(f, "close {handle}"),
            Self::Ref(handle) => write!(f, "ref {handle}"),
            Self::Unref(handle) => write!(f, "unref {handle}"),
            Self::Send(handle) => write!(f, "send to {handle}"),
            Self::Write(poll, bytes) => write!(f, "the peer of {poll} writes {bytes} bytes"),
            Self::Read(poll) => write!(f, "read from {poll}"),
            Self::ClosePeer(poll) => write!(f, "the peer of {poll} closes"),
            Self::Queue => write!(f, "queue work"),
            Self::Cancel(number) => write!(f, "cancel work {number}"),
            Self::StopLoop => write!(f, "stop the loop"),
            Self::Busy(time) => write!(f, "be busy for {time} ms"),
            Self::UpdateTime => write!(f, "update the time"),
            Self::Run(mode) => write!(f, "run {mode:?}"),
        }
    }
}

/// When a list of operations is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trigger {
    Main,
    /// The n-th call of a handle's callback, from 0.
    Called(Handle, u32),
    /// The callback of a close.
    Closed(Handle),
    /// The callback after the n-th work that was queued.
    Worked(u32),
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => write!(f, "main"),
            Self::Called(handle, nth) => write!(f, "call {nth} of {handle}"),
            Self::Closed(handle) => write!(f, "close of {handle}"),
            Self::Worked(nth) => write!(f, "end of work {nth}"),
        }
    }
}

/// The operations of a program, by what triggers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program(pub(crate) BTreeMap<Trigger, Vec<Op>>);

impl Program {
    pub(crate) fn of(&self, trigger: Trigger) -> &[Op] {
        self.0.get(&trigger).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Makes a random program.
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut scripts = BTreeMap::new();
        scripts.insert(Trigger::Main, main_of(&mut random));
        for _ in 0..random.between(2, 10) {
            let trigger = match random.below(8) {
                0 => Trigger::Closed(any_handle(&mut random)),
                1 => Trigger::Worked(random.below(3) as u32),
                _ => Trigger::Called(any_handle(&mut random), random.below(3) as u32),
            };
            let ops = (0..random.between(1, 3)).map(|_| match trigger {
                Trigger::Called(handle, _) if random.below(3) == 0 => own_op(&mut random, handle),
                _ => any_op(&mut random),
            });
            scripts.insert(trigger, ops.collect());
        }
        Self(scripts)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (trigger, ops) in self.0.iter().filter(|(_, ops)| !ops.is_empty()) {
            writeln!(f, "{trigger}:")?;
            for op in ops {
                writeln!(f, "    {op}")?;
            }
        }
        Ok(())
    }
}

fn main_of(random: &mut Random) -> Vec<Op> {
    let mut ops: Vec<_> = (0..random.between(2, 7))
        .map(|_| first_op(random))
        .collect();
    for _ in 0..random.below(4) {
        ops.push(Op::Run(any_mode(random)));
        ops.extend((0..random.below(3)).map(|_| any_op(random)));
    }
    ops.push(Op::Run(Mode::Default));
    ops
}

fn any_mode(random: &mut Random) -> Mode {
    [Mode::Default, Mode::Once, Mode::Once, Mode::NoWait][random.below(4) as usize]
}

fn any_handle(random: &mut Random) -> Handle {
    let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
    any_of(random, kind)
}

fn any_of(random: &mut Random, kind: Kind) -> Handle {
    Handle {
        kind,
        number: random.below(u64::from(kind.count())) as u8,
    }
}

/// An operation that lets something happen.
fn first_op(random: &mut Random) -> Op {
    match random.below(8) {
        0..=4 => start(random),
        5 => Op::Send(any_of(random, Kind::Async)),
        6 => Op::Write(any_of(random, Kind::Poll), random.between(1, 3) as u8),
        _ => Op::Queue,
    }
}

fn start(random: &mut Random) -> Op {
    let handle = any_handle(random);
    match handle.kind {
        Kind::Timer => {
            let repeat = [0, 0, 1, 3][random.below(4) as usize];
            Op::StartTimer(handle, random.below(6), repeat)
        }
        Kind::Idle | Kind::Prepare | Kind::Check => Op::Start(handle),
        Kind::Async => Op::Ref(handle),
        Kind::Poll => {
            let bits = random.between(1, 7);
            let events = Events {
                readable: bits & 1 != 0,
                writable: bits & 2 != 0,
                disconnect: bits & 4 != 0,
            };
            Op::StartPoll(handle, events)
        }
    }
}

/// An operation on the handle whose callback runs.
fn own_op(random: &mut Random, handle: Handle) -> Op {
    match random.below(6) {
        0 => Op::Close(handle),
        1 => Op::Unref(handle),
        2 if handle.kind == Kind::Timer => Op::Again(handle),
        2 if handle.kind == Kind::Poll => Op::Read(handle),
        2 if handle.kind == Kind::Async => Op::Send(handle),
        _ => Op::Stop(handle),
    }
}

fn any_op(random: &mut Random) -> Op {
    match random.below(24) {
        0..=3 => start(random),
        4 => Op::Again(any_of(random, Kind::Timer)),
        5 => Op::SetRepeat(any_of(random, Kind::Timer), random.below(4)),
        6..=8 => Op::Stop(any_handle(random)),
        9..=10 => Op::Close(any_handle(random)),
        11 => Op::Ref(any_handle(random)),
        12 => Op::Unref(any_handle(random)),
        13..=14 => Op::Send(any_of(random, Kind::Async)),
        15 => Op::Write(any_of(random, Kind::Poll), random.between(1, 3) as u8),
        16 => Op::Read(any_of(random, Kind::Poll)),
        17 => Op::ClosePeer(any_of(random, Kind::Poll)),
        18 => Op::Queue,
        19 => Op::Cancel(random.below(4) as u8),
        20 => Op::StopLoop,
        21..=22 => Op::Busy(random.between(1, 5)),
        _ => Op::UpdateTime,
    }
}
