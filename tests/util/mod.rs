//! What the tests share: a loop on the paused clock, a trace to compare with a literal line, and a
//! way to be busy.
#![allow(dead_code, reason = "each test file uses its own part of it")]

pub(crate) mod files;
pub(crate) mod wakers;

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use phaseloop::{Builder, EventLoop, LoopHandle, RunMode, time};

pub(crate) const ZERO: Duration = Duration::ZERO;

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A loop whose clock moves only when it would wait, or when a test is [`busy`]; its handle; a
/// trace.
pub(crate) fn paused() -> (EventLoop, LoopHandle, Trace) {
    let event_loop = Builder::new().start_paused(true).build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace)
}

/// Lets `duration` pass on the paused clock of the current loop, as a callback does that takes that
/// long.
pub(crate) fn busy(duration: Duration) {
    // The first poll of `advance` moves the clock. The rest of the future is not needed.
    assert!(time::advance(duration).now_or_never().is_none());
}

/// Runs one turn that does not wait.
pub(crate) fn turn(event_loop: &mut EventLoop) -> bool {
    event_loop.run(RunMode::NoWait).unwrap()
}

/// Runs the loop to its end.
pub(crate) fn finish(event_loop: &mut EventLoop) {
    let alive = event_loop.run(RunMode::Default).unwrap();
    assert!(!alive, "nothing stopped the loop");
}

/// Two sockets that are connected to each other and do not block.
pub(crate) fn udp_pair() -> (UdpSocket, UdpSocket) {
    let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

/// Calls `f`, which has to panic, and returns the text of the panic.
#[track_caller]
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it did not panic"),
        Err(payload) => text_of(&*payload),
    }
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn Any + Send)) -> String {
    match payload.downcast_ref::<&str>() {
        Some(text) => (*text).to_owned(),
        None => payload.downcast_ref::<String>().unwrap().clone(),
    }
}

/// The name by which a test binary knows `test`, which is in the file of the caller: `tcp::name` in
/// `tests/net/tcp.rs`.
#[track_caller]
pub(crate) fn path_of(test: &str) -> String {
    let file = Path::new(Location::caller().file());
    let module = file.file_stem().unwrap().to_str().unwrap();
    let path = format!("{module}::{test}");
    // A child that finds no test of that name would succeed.
    let list = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &path, "--list"])
        .output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    assert!(list.contains(&format!("{path}: test\n")), "no test {path}");
    path
}

/// Starts the test named `test`, which is in the file of the caller, once more in a process of its
/// own. There, it runs `body`, and this function returns `None`.
///
/// `wrapper` is a command that gets the command line of that process as its last arguments; empty
/// for none.
#[track_caller]
pub(crate) fn in_child(wrapper: &[&str], test: &str, body: impl FnOnce()) -> Option<Child> {
    const MARK: &str = "PHASELOOP_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        body();
        return None;
    }
    let this_test = std::env::current_exe().unwrap();
    let mut command = match wrapper {
        [] => Command::new(this_test),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(this_test);
            command
        }
    };
    let child = command
        .args(["--exact", &path_of(test), "--nocapture"])
        .env(MARK, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    Some(child.unwrap())
}

/// Labels in the order in which they were logged.
#[derive(Clone)]
pub(crate) struct Trace {
    labels: Rc<RefCell<Vec<String>>>,
    handle: LoopHandle,
    start: Instant,
}

impl Trace {
    pub(crate) fn new(handle: &LoopHandle) -> Self {
        Self {
            labels: Rc::default(),
            handle: handle.clone(),
            start: handle.now(),
        }
    }

    pub(crate) fn log(&self, label: impl Display) {
        self.labels.borrow_mut().push(label.to_string());
    }

    /// Logs the label with the loop's time in milliseconds since the trace was made: `tick@20`.
    pub(crate) fn stamp(&self, label: impl Display) {
        let time = self.handle.now() - self.start;
        self.log(format_args!("{label}@{}", time.as_millis()));
    }

    /// A closure that logs the label.
    pub(crate) fn call(&self, label: &'static str) -> impl FnOnce() + 'static {
        let trace = self.clone();
        move || trace.log(label)
    }

    /// A callback of a handle that logs the label.
    pub(crate) fn on<T>(&self, label: &'static str) -> impl FnMut(&T) + 'static {
        let trace = self.clone();
        move |_| trace.log(label)
    }

    /// A callback of a handle that logs the label with the loop's time.
    pub(crate) fn on_stamped<T>(&self, label: &'static str) -> impl FnMut(&T) + 'static {
        let trace = self.clone();
        move |_| trace.stamp(label)
    }

    /// Whether a label was logged since the last time.
    pub(crate) fn contains(&self, label: &str) -> bool {
        self.labels.borrow().iter().any(|logged| logged == label)
    }

    /// All labels since the last time, in one line.
    pub(crate) fn take(&self) -> String {
        self.labels.take().join(" ")
    }
}
