//! What the ports share, as the programs share `_lib.js`. Nothing here queues ticks, microtasks or
//! loop work, but [`fs_op`], which queues exactly one job of the pool.
#![allow(dead_code, reason = "the tests and the example use a part each")]

use std::cell::{Cell, RefCell};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use futures::FutureExt;
use phaseloop::pool::PoolBuilder;
use phaseloop::shuffle::Question;
use phaseloop::{Builder, LoopHandle, time};
use phaseloop_node as node;

/// Which clock a program runs by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Moves when the loop would wait, or when the program [`block`]s.
    Virtual,
    /// As [`Virtual`](Self::Virtual), on a shuffled loop whose questions all get the usual answer:
    /// jobs run on the thread of the loop, and sockets are in memory.
    Usual,
    Real,
}

/// The main program of a port.
pub(crate) type Main = Pin<Box<dyn Future<Output = ()>>>;

type Callback = Box<dyn FnOnce()>;

thread_local! {
    static TRACE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static PRINTS: Cell<bool> = const { Cell::new(false) };
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

/// One token: kept for [`run`], or printed as a line.
pub(crate) fn log(token: impl Into<String>) {
    let token = token.into();
    if PRINTS.get() {
        println!("{token}");
    }
    TRACE.with_borrow_mut(|trace| trace.push(token));
}

/// Returns what logs a token, to be passed around.
pub(crate) fn say(token: &'static str) -> impl Fn() + Clone + 'static {
    move || log(token)
}

/// Returns a listener that logs a token.
pub(crate) fn says<A: ?Sized>(token: &'static str) -> impl Fn(&A) + Clone + 'static {
    move |_| log(token)
}

/// Returns a callback that logs a token, whatever the result.
pub(crate) fn done<R>(token: &'static str) -> impl FnOnce(R) + 'static {
    move |_| log(token)
}

/// `String(bytes).trim()`.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// Prints tokens as they come, on this thread.
pub(crate) fn print_tokens() {
    PRINTS.set(true);
}

/// Stops the loop's thread for at least this many milliseconds; on the virtual clock, for exactly
/// as many.
pub(crate) fn block(milliseconds: u64) {
    let duration = Duration::from_millis(milliseconds);
    if time::is_paused() {
        // The first poll moves the clock. The rest of the future is not needed.
        let _ = time::advance(duration).now_or_never();
    } else {
        thread::sleep(duration);
    }
}

/// Runs a program on a loop of its own and returns the tokens. Not to be called twice on a thread.
pub(crate) fn run(main: Main, clock: Clock) -> (Vec<String>, i32) {
    // With one pool thread, an operation ends, and reports its end, before the next one starts.
    // With more, a thread that is preempted between the two would report after the thread of the
    // next.
    let pool = PoolBuilder::new().threads(1).build();
    let builder = Builder::new().pool(pool);
    let builder = match clock {
        Clock::Virtual => builder.start_paused(true),
        Clock::Usual => builder.shuffle(|_: &Question<'_>| 0),
        Clock::Real => builder,
    };
    let mut event_loop = builder.build().expect("there is a descriptor left");
    let exit = node::run_on(&mut event_loop, main);
    drop(event_loop);
    SCRATCH.take();
    (TRACE.take(), exit.code())
}

/// A path in a directory that disappears with the program.
pub(crate) fn scratch(name: &str) -> PathBuf {
    SCRATCH.with_borrow_mut(|scratch| scratch.get_or_insert_with(Scratch::new).path.join(name))
}

/// Returns whether this is Wine, which has the files of its host.
pub(crate) fn is_wine() -> bool {
    Path::new(r"Z:\proc\version").exists()
}

/// The path of a socket of this program: a name of a pipe on Windows.
pub(crate) fn socket_path(name: &str) -> PathBuf {
    let path = scratch(name);
    if cfg!(unix) {
        return path;
    }
    let directory = path.parent().and_then(|directory| directory.file_name());
    let directory = directory.expect("it is named").to_string_lossy();
    PathBuf::from(format!(r"\\.\pipe\{directory}-{name}"))
}

struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let unique = format!("{}-{:?}", std::process::id(), thread::current().id());
        let unique: String = unique.chars().filter(|c| !"()".contains(*c)).collect();
        let path = std::env::temp_dir().join(format!("phaseloop-{unique}"));
        fs::create_dir_all(&path).expect("the directory for temporary files can be written");
        Self { path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Starts one operation of the file system and returns when it has certainly ended: `callback` is
/// due in the next poll phase, in the order of these calls.
pub(crate) fn fs_op(callback: impl FnOnce() + 'static) {
    if time::is_paused() {
        end_elsewhere(Box::new(callback));
        return block(25);
    }
    let path = scratch(&format!("op{}", SERIAL.replace(SERIAL.get() + 1)));
    let made = path.clone();
    let start = Instant::now();
    node::in_callbacks(async move {
        let made = phaseloop::fs::create_dir(made).await;
        made.expect("the directory is new");
        callback();
    });
    while !path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
    let settled = Duration::from_millis(30).saturating_sub(start.elapsed());
    thread::sleep(settled.max(Duration::from_millis(10)));
}

/// Completes `callback` from another thread, for the virtual clock, which cannot wait for the pool:
/// the thread sends the message that the pool would send, and is joined.
pub(crate) fn end_elsewhere(callback: Callback) {
    let remote = LoopHandle::current().remote();
    let number = WAITING.with_borrow_mut(|waiting| {
        waiting.push(Some(callback));
        waiting.len() - 1
    });
    let end = move || {
        let callback = WAITING.with_borrow_mut(|waiting| waiting[number].take());
        callback.expect("an operation ends once")();
    };
    let sent = thread::spawn(move || remote.call(end)).join();
    sent.expect("it does not panic").expect("the loop is there");
}

/// Reads a whole file as Node does: several operations, one after the other.
pub(crate) fn read_file(path: PathBuf, callback: impl FnOnce(Vec<u8>) + 'static) {
    node::in_callbacks(async move {
        for _step in ["open", "fstat"] {
            phaseloop::fs::metadata(&path)
                .await
                .expect("the file is there");
        }
        let bytes = phaseloop::fs::read(&path)
            .await
            .expect("the file can be read");
        callback(bytes);
    });
}

thread_local! {
    /// How many operations were started.
    static SERIAL: Cell<u32> = const { Cell::new(0) };
    /// The callbacks of operations that end elsewhere, by their number.
    static WAITING: RefCell<Vec<Option<Callback>>> = const { RefCell::new(Vec::new()) };
}
