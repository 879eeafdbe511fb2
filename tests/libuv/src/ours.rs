//! The programs on phaseloop, with a paused clock and a pool that runs work in the poll phase.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use phaseloop::io::{PollEvents, PollHandle};
use phaseloop::phase::{Check, Hook, HookPhase, Idle, Prepare};
use phaseloop::shuffle::{self, Question, Who};
use phaseloop::time::{Timer, advance};
use phaseloop::{AsyncHandle, Builder, EventLoop, Handle as _, LoopHandle, QueuedWork, RunMode};

use crate::interpreter::{RESCUE, Run, Side, note};
use crate::program::{ASYNCS, Events, HOOKS, Handle, Kind, Mode, TIMERS};

type Poll = PollHandle<Rc<File>>;

pub(crate) struct Ours {
    run: Weak<Run>,
    event_loop: RefCell<EventLoop>,
    handle: LoopHandle,
    start: Instant,
    timers: Vec<Timer>,
    idles: Vec<Idle>,
    prepares: Vec<Prepare>,
    checks: Vec<Check>,
    asyncs: Vec<AsyncHandle>,
    polls: Vec<Poll>,
    rescue: Timer,
    works: RefCell<Vec<QueuedWork>>,
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Makes a loop on the paused clock whose events come by the numbers of their handles.
pub(crate) fn make(run: &Rc<Run>) -> Box<dyn Side> {
    make_on(run, Builder::new().shuffle(by_number()))
}

/// Makes a loop on the paused clock that no test shuffles. Its work would run on threads.
pub(crate) fn make_plain(run: &Rc<Run>) -> Box<dyn Side> {
    make_on(run, Builder::new().start_paused(true))
}

fn make_on(run: &Rc<Run>, builder: Builder) -> Box<dyn Side> {
    // The peers of the poll handles write only when the program says so.
    let builder = builder.outside_timeout(Duration::ZERO);
    let event_loop = builder.build().expect("a loop");
    let handle = event_loop.handle();
    let rescue = Timer::new(&handle);
    let rescued = run.weak();
    rescue
        .start(ms(RESCUE), ms(RESCUE), move |_| {
            with(&rescued, Run::rescued)
        })
        .expect("the timer is open");
    rescue.unref();
    let asyncs = (0..ASYNCS).map(|number| {
        let run = run.weak();
        let this = Handle {
            kind: Kind::Async,
            number,
        };
        let handle = AsyncHandle::new(&handle, move |_| with(&run, |run| run.called(this, "")));
        let handle = handle.expect("the loop is open");
        handle.unref();
        handle
    });
    Box::new(Ours {
        run: run.weak(),
        start: handle.now(),
        timers: (0..TIMERS).map(|_| Timer::new(&handle)).collect(),
        idles: (0..HOOKS).map(|_| Idle::new(&handle)).collect(),
        prepares: (0..HOOKS).map(|_| Prepare::new(&handle)).collect(),
        checks: (0..HOOKS).map(|_| Check::new(&handle)).collect(),
        asyncs: asyncs.collect(),
        polls: polls(&handle, &run.ends),
        rescue,
        works: RefCell::default(),
        handle,
        event_loop: RefCell::new(event_loop),
    })
}

/// Makes the poll handles, each in a line of its own: the lines distinguish their events.
fn polls(handle: &LoopHandle, ends: &[Rc<File>]) -> Vec<Poll> {
    let polls = [
        PollHandle::new(handle, ends[0].clone()),
        PollHandle::new(handle, ends[1].clone()),
        PollHandle::new(handle, ends[2].clone()),
    ];
    polls.map(|poll| poll.expect("a poll handle")).into()
}

/// Gives the usual answers, but delivers the events of a batch by the lines of their handles.
fn by_number() -> impl FnMut(&Question<'_>) -> usize {
    let mut lines: BTreeMap<Who, String> = BTreeMap::new();
    move |question| match question.kind {
        shuffle::Kind::Delay => {
            let line = question.about.to_string();
            assert!(
                !line.is_empty(),
                "the event of a poll handle names its line"
            );
            lines.extend(question.who.map(|who| (who, line)));
            0
        }
        shuffle::Kind::Event => {
            let candidates = question.among.iter().enumerate();
            let first = candidates.min_by_key(|(_, who)| &lines[*who]);
            first.map_or(0, |(place, _)| place)
        }
        _ => 0,
    }
}

fn with(run: &Weak<Run>, call: impl FnOnce(&Run)) {
    if let Some(run) = run.upgrade() {
        call(&run);
    }
}

fn mode_of(mode: Mode) -> RunMode {
    match mode {
        Mode::Default => RunMode::Default,
        Mode::Once => RunMode::Once,
        Mode::NoWait => RunMode::NoWait,
    }
}

impl Ours {
    /// Calls `act` with the handle, whatever its kind.
    fn on<R>(&self, handle: Handle, act: impl Act<R>) -> R {
        let number = usize::from(handle.number);
        match handle.kind {
            Kind::Timer => act.on(&self.timers[number]),
            Kind::Idle => act.on(&self.idles[number]),
            Kind::Prepare => act.on(&self.prepares[number]),
            Kind::Check => act.on(&self.checks[number]),
            Kind::Async => act.on(&self.asyncs[number]),
            Kind::Poll => act.on(&self.polls[number]),
        }
    }

    fn hook<P: HookPhase>(&self, hook: &Hook<P>, handle: Handle) {
        let run = self.run.clone();
        hook.start(move |_| with(&run, |run| run.called(handle, "")))
            .expect("the hook is open");
    }
}

/// What is done with a handle of any kind.
trait Act<R> {
    fn on(self, handle: &impl phaseloop::Handle) -> R;
}

struct SetRef(bool);

impl Act<()> for SetRef {
    fn on(self, handle: &impl phaseloop::Handle) {
        if self.0 {
            handle.ref_();
        } else {
            handle.unref();
        }
    }
}

/// The answers to three questions.
struct Flags;

struct State {
    has_ref: bool,
    is_active: bool,
    is_closing: bool,
}

impl Act<State> for Flags {
    fn on(self, handle: &impl phaseloop::Handle) -> State {
        State {
            has_ref: handle.has_ref(),
            is_active: handle.is_active(),
            is_closing: handle.is_closing(),
        }
    }
}

impl Side for Ours {
    fn now(&self) -> u64 {
        let now = self.handle.now() - self.start;
        u64::try_from(now.as_millis()).expect("a short time")
    }

    fn update_time(&self) {
        self.handle.update_time();
    }

    fn busy(&self, time: u64) {
        // The first poll of `advance` moves the clock. The rest of the future is not needed.
        let busy = || {
            let future = pin!(advance(ms(time)));
            let _ = future.poll(&mut Context::from_waker(Waker::noop()));
        };
        if LoopHandle::try_current().is_some() {
            busy();
        } else {
            self.event_loop.borrow().enter(busy);
        }
    }

    fn run(&self, mode: Mode) {
        let mut event_loop = self.event_loop.borrow_mut();
        event_loop.run(mode_of(mode)).expect("a run of the loop");
    }

    fn stop_loop(&self) {
        self.handle.stop();
    }

    fn is_alive(&self) -> bool {
        self.handle.is_alive()
    }

    fn start_timer(&self, number: usize, timeout: u64, repeat: u64) {
        let run = self.run.clone();
        let this = Handle {
            kind: Kind::Timer,
            number: number as u8,
        };
        self.timers[number]
            .start(ms(timeout), ms(repeat), move |_| {
                with(&run, |run| run.called(this, ""));
            })
            .expect("the timer is open");
    }

    fn again(&self, number: usize) -> bool {
        self.timers[number].again().is_ok()
    }

    fn set_repeat(&self, number: usize, repeat: u64) {
        self.timers[number].set_repeat(ms(repeat));
    }

    fn times(&self, number: usize) -> (u64, u64) {
        let timer = &self.timers[number];
        let millis = |time: Duration| u64::try_from(time.as_millis()).expect("a short time");
        (millis(timer.due_in()), millis(timer.repeat()))
    }

    fn start_hook(&self, hook: Handle) {
        let number = usize::from(hook.number);
        match hook.kind {
            Kind::Idle => self.hook(&self.idles[number], hook),
            Kind::Prepare => self.hook(&self.prepares[number], hook),
            _ => self.hook(&self.checks[number], hook),
        }
    }

    fn send(&self, number: usize) {
        self.asyncs[number].send().expect("the handle is open");
    }

    fn start_poll(&self, number: usize, events: Events) {
        let run = self.run.clone();
        let this = Handle {
            kind: Kind::Poll,
            number: number as u8,
        };
        let bits = [
            (events.readable, PollEvents::READABLE),
            (events.writable, PollEvents::WRITABLE),
            (events.disconnect, PollEvents::DISCONNECT),
        ];
        let set = bits.into_iter().filter(|(is_set, _)| *is_set);
        let set = set.fold(PollEvents::NONE, |all, (_, event)| all | event);
        self.polls[number]
            .start(set, move |_, events| {
                let detail = match events {
                    Ok(events) => format!(
                        " for {}",
                        Events {
                            readable: events.contains(PollEvents::READABLE),
                            writable: events.contains(PollEvents::WRITABLE),
                            disconnect: events.contains(PollEvents::DISCONNECT),
                        }
                    ),
                    Err(_) => " with an error".to_owned(),
                };
                with(&run, |run| run.called(this, &detail));
            })
            .expect("the descriptor can be polled");
    }

    fn stop(&self, handle: Handle) {
        let number = usize::from(handle.number);
        match handle.kind {
            Kind::Timer => self.timers[number].stop(),
            Kind::Idle => self.idles[number].stop(),
            Kind::Prepare => self.prepares[number].stop(),
            Kind::Check => self.checks[number].stop(),
            Kind::Poll => self.polls[number].stop(),
            Kind::Async => {}
        }
    }

    fn close(&self, handle: Handle) {
        let number = usize::from(handle.number);
        let close = match handle.kind {
            Kind::Timer => self.timers[number].close(),
            Kind::Idle => self.idles[number].close(),
            Kind::Prepare => self.prepares[number].close(),
            Kind::Check => self.checks[number].close(),
            Kind::Poll => self.polls[number].close(),
            Kind::Async => self.asyncs[number].close(),
        };
        let run = self.run.clone();
        close.then(move || with(&run, |run| run.closed(handle)));
    }

    fn close_rescue(&self) {
        drop(self.rescue.close());
    }

    fn set_ref(&self, handle: Handle, is_referenced: bool) {
        self.on(handle, SetRef(is_referenced));
    }

    fn has_ref(&self, handle: Handle) -> bool {
        self.on(handle, Flags).has_ref
    }

    fn is_active(&self, handle: Handle) -> bool {
        self.on(handle, Flags).is_active
    }

    fn is_closing(&self, handle: Handle) -> bool {
        self.on(handle, Flags).is_closing
    }

    fn queue(&self, number: u32) {
        let Some(run) = self.run.upgrade() else {
            return;
        };
        let (log, run) = (run.log.clone(), self.run.clone());
        let work = self.handle.queue_work(
            move || note(&log, format!("work {number} runs")),
            move |result| with(&run, |run| run.worked(number, result.is_err())),
        );
        self.works
            .borrow_mut()
            .push(work.expect("the loop is open"));
    }

    fn cancel(&self, number: u32) -> bool {
        self.works.borrow()[number as usize].cancel()
    }
}
