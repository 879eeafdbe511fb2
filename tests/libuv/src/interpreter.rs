//! Makes the operations of a program on a loop, and writes down what happens.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};

use crate::program::{Events, Handle, Kind, Mode, Op, Program, Trigger};

/// The callbacks that a program may have before everything is closed: some programs never end.
const FUEL: u32 = 60;

/// After this time, a timer stops a loop that waits for something that never comes.
pub(crate) const RESCUE: u64 = 1_000;

/// What happened, in order. Work is noted by the thread that does it.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn note(log: &Log, text: impl Into<String>) {
    log.lock()
        .expect("no thread panics with it")
        .push(text.into());
}

/// A loop with its handles. Every method is one call of the loop's interface.
pub(crate) trait Side {
    /// The loop's cached time, in milliseconds since its creation.
    fn now(&self) -> u64;
    fn update_time(&self);
    /// Moves the clock without a look at it.
    fn busy(&self, time: u64);
    fn run(&self, mode: Mode);
    fn stop_loop(&self);
    fn is_alive(&self) -> bool;

    fn start_timer(&self, number: usize, timeout: u64, repeat: u64);
    fn again(&self, number: usize) -> bool;
    fn set_repeat(&self, number: usize, repeat: u64);
    /// The time until the deadline, and the repeat time.
    fn times(&self, number: usize) -> (u64, u64);
    fn start_hook(&self, hook: Handle);
    fn send(&self, number: usize);
    fn start_poll(&self, number: usize, events: Events);

    fn stop(&self, handle: Handle);
    fn close(&self, handle: Handle);
    fn close_rescue(&self);
    fn set_ref(&self, handle: Handle, is_referenced: bool);
    fn has_ref(&self, handle: Handle) -> bool;
    fn is_active(&self, handle: Handle) -> bool;
    fn is_closing(&self, handle: Handle) -> bool;

    /// Queues work that notes its number on its thread.
    fn queue(&self, number: u32);
    fn cancel(&self, number: u32) -> bool;
}

/// Creates a loop with all handles for a run.
pub(crate) type MakeSide = fn(&Rc<Run>) -> Box<dyn Side>;

/// One run of a program.
pub(crate) struct Run {
    this: Weak<Self>,
    program: Program,
    side: OnceCell<Box<dyn Side>>,
    pub(crate) log: Log,
    fuel: Cell<u32>,
    calls: RefCell<BTreeMap<Handle, u32>>,
    queued: Cell<u32>,
    /// The works that were cancelled, or whose callback has run. A cancel of these is an error.
    ended: RefCell<BTreeSet<u32>>,
    /// The descriptors of the poll handles.
    pub(crate) ends: Vec<Rc<File>>,
    peers: RefCell<Vec<Option<File>>>,
}

/// Runs a program and returns what happened.
pub(crate) fn trace(program: &Program, make: MakeSide) -> Vec<String> {
    let pairs = (0..Kind::Poll.count()).map(|number| {
        // The last one is a pipe: it reports other events than a socket when its peer is gone.
        let (ours, theirs) = if number + 1 < Kind::Poll.count() {
            sockets()
        } else {
            pipe()
        };
        (Rc::new(File::from(ours)), Some(File::from(theirs)))
    });
    let (ends, peers): (Vec<_>, Vec<_>) = pairs.unzip();
    let run = Rc::new_cyclic(|this| Run {
        this: this.clone(),
        program: program.clone(),
        side: OnceCell::new(),
        log: Log::default(),
        fuel: Cell::new(FUEL),
        calls: RefCell::default(),
        queued: Cell::new(0),
        ended: RefCell::default(),
        ends,
        peers: RefCell::new(peers),
    });
    let side = make(&run);
    assert!(run.side.set(side).is_ok(), "a run has one side");
    run.make(Trigger::Main);
    run.finish();
    std::mem::take(&mut *run.log.lock().expect("no thread panics with it"))
}

fn sockets() -> (OwnedFd, OwnedFd) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    for end in [&ours, &theirs] {
        end.set_nonblocking(true).expect("a non-blocking socket");
    }
    (ours.into(), theirs.into())
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK | libc::O_CLOEXEC) };
    assert_eq!(made, 0, "a pipe");
    // SAFETY: the kernel has just opened them, and nothing else owns them.
    let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    (reader, writer)
}

impl Run {
    fn side(&self) -> &dyn Side {
        &**self
            .side
            .get()
            .expect("it is set before the program starts")
    }

    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.clone()
    }

    fn note(&self, text: impl Into<String>) {
        note(&self.log, text);
    }

    /// The callback of a handle. `detail` is what it was called with.
    pub(crate) fn called(&self, handle: Handle, detail: &str) {
        let mut calls = self.calls.borrow_mut();
        let next = calls.entry(handle).or_default();
        let nth = *next;
        *next += 1;
        drop(calls);
        let now = self.side().now();
        self.note(format!("{handle} called at {now} ms{detail}"));
        self.burn();
        self.make(Trigger::Called(handle, nth));
    }

    pub(crate) fn closed(&self, handle: Handle) {
        self.note(format!("{handle} closed"));
        self.make(Trigger::Closed(handle));
    }

    pub(crate) fn worked(&self, number: u32, is_cancelled: bool) {
        self.ended.borrow_mut().insert(number);
        let end = if is_cancelled { "cancelled" } else { "done" };
        self.note(format!("work {number} {end} at {} ms", self.side().now()));
        self.burn();
        self.make(Trigger::Worked(number));
    }

    /// The callback of the timer that ends a wait for nothing.
    pub(crate) fn rescued(&self) {
        self.note(format!("rescued at {} ms", self.side().now()));
        self.burn();
        self.side().stop_loop();
    }

    fn burn(&self) {
        let fuel = self.fuel.get();
        self.fuel.set(fuel.saturating_sub(1));
        if fuel == 1 {
            self.note("out of fuel");
            self.close_all();
        }
    }

    fn close_all(&self) {
        for handle in Handle::all() {
            if !self.side().is_closing(handle) {
                self.side().close(handle);
            }
        }
        self.side().close_rescue();
        self.side().stop_loop();
    }

    /// Notes the state of all handles, then closes everything and runs the loop to its end.
    fn finish(&self) {
        for handle in Handle::all() {
            self.note_state(handle);
        }
        if self.fuel.get() > 0 {
            self.fuel.set(0);
            self.close_all();
        }
        for _ in 0..100 {
            if !self.side().is_alive() {
                return;
            }
            self.side().run(Mode::Default);
        }
        self.note("alive although everything is closed");
    }

    fn note_state(&self, handle: Handle) {
        let side = self.side();
        if side.is_closing(handle) {
            return self.note(format!("{handle}: closed"));
        }
        let flag = |is_set, name| if is_set { name } else { "" };
        let active = flag(side.is_active(handle), " active");
        let unreferenced = flag(!side.has_ref(handle), " unref'd");
        let times = if handle.kind == Kind::Timer {
            let (due_in, repeat) = side.times(handle.number.into());
            format!(" due in {due_in} ms, repeat {repeat} ms")
        } else {
            String::new()
        };
        self.note(format!("{handle}:{active}{unreferenced}{times}"));
    }

    fn make(&self, trigger: Trigger) {
        for op in self.program.of(trigger) {
            // What is closed for want of fuel stays as it is.
            let goes_on = self.fuel.get() > 0;
            if goes_on && !(trigger != Trigger::Main && matches!(op, Op::Run(_))) {
                self.make_one(*op);
            }
        }
    }

    fn make_one(&self, op: Op) {
        let side = self.side();
        // What libuv does with a closed handle is undefined, or an assertion.
        if subject(op).is_some_and(|handle| side.is_closing(handle)) {
            return;
        }
        match op {
            Op::Start(hook) => side.start_hook(hook),
            Op::StartTimer(timer, timeout, repeat) => {
                side.start_timer(timer.number.into(), timeout, repeat);
            }
            Op::StartPoll(poll, events) => side.start_poll(poll.number.into(), events),
            Op::Again(timer) => {
                let is_done = side.again(timer.number.into());
                self.note(format!("{timer} again: {is_done}"));
            }
            Op::SetRepeat(timer, repeat) => side.set_repeat(timer.number.into(), repeat),
            // Async handles are active until they are closed.
            Op::Stop(handle) if handle.kind == Kind::Async => {}
            Op::Stop(handle) => side.stop(handle),
            Op::Close(handle) => side.close(handle),
            Op::Ref(handle) => side.set_ref(handle, true),
            Op::Unref(handle) => side.set_ref(handle, false),
            Op::Send(handle) => side.send(handle.number.into()),
            Op::Write(poll, bytes) => self.write(poll, bytes),
            Op::Read(poll) => self.read(poll),
            Op::ClosePeer(poll) => {
                drop(self.peers.borrow_mut()[usize::from(poll.number)].take());
            }
            Op::Queue => {
                let number = self.queued.get();
                self.queued.set(number + 1);
                side.queue(number);
            }
            Op::Cancel(number) => {
                let number = u32::from(number);
                let is_open = !self.ended.borrow().contains(&number);
                if number < self.queued.get() && is_open {
                    let is_cancelled = side.cancel(number);
                    if is_cancelled {
                        self.ended.borrow_mut().insert(number);
                    }
                    self.note(format!("cancel work {number}: {is_cancelled}"));
                }
            }
            Op::StopLoop => side.stop_loop(),
            Op::Busy(time) => side.busy(time),
            Op::UpdateTime => side.update_time(),
            Op::Run(mode) => {
                side.run(mode);
                let (alive, now) = (side.is_alive(), side.now());
                self.note(format!("run {mode:?} returned at {now} ms, alive: {alive}"));
            }
        }
    }

    fn write(&self, poll: Handle, bytes: u8) {
        if let Some(peer) = &self.peers.borrow()[usize::from(poll.number)] {
            let mut peer = peer;
            peer.write_all(&[0; 4][..bytes.into()])
                .expect("there is room for some bytes");
        }
    }

    fn read(&self, poll: Handle) {
        let mut end = &*self.ends[usize::from(poll.number)];
        let read = match end.read(&mut [0; 2]) {
            Ok(count) => format!("{count} bytes"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => "nothing".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        self.note(format!("{poll} read {read}"));
    }
}

/// The handle that an operation calls a method of.
fn subject(op: Op) -> Option<Handle> {
    match op {
        Op::Start(handle)
        | Op::StartTimer(handle, ..)
        | Op::StartPoll(handle, _)
        | Op::Again(handle)
        | Op::SetRepeat(handle, _)
        | Op::Stop(handle)
        | Op::Close(handle)
        | Op::Ref(handle)
        | Op::Unref(handle)
        | Op::Send(handle) => Some(handle),
        _ => None,
    }
}
