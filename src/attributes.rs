//! The functions that `#[phaseloop::main]` and `#[phaseloop::test]` call. They are public for the
//! expanded code only.
//!
//! What the attributes refuse, with a text that says what to write:
//!
//! ```compile_fail
//! #[phaseloop::main]
//! fn main() {} // not an `async fn`
//! ```
//!
//! ```compile_fail
//! #[phaseloop::main]
//! async fn main(arguments: Vec<String>) {}
//! ```
//!
//! ```compile_fail
//! #[phaseloop::main(no_such_option = 1)]
//! async fn main() {}
//! ```

use std::future::Future;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::event_loop::EventLoop;
use crate::runtime::builder::Builder;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::remote::Remote;
use crate::stderr;

/// The time that a loop has to begin its report after its test has timed out. It is long, since the
/// end of the process ends all tests of the binary: a machine under load must not cause it.
const ANSWER: Duration = Duration::from_secs(30);

/// Runs `future` until it completes.
///
/// # Panics
///
/// If the loop cannot be created.
#[track_caller]
pub fn main<F: Future>(builder: Builder, future: F) -> F::Output {
    build(builder).block_on(future)
}

/// Runs `future` on loop 0 of a cluster until it completes. `None` is as many loops as the process
/// may use processors.
///
/// # Panics
///
/// If a loop cannot be created.
#[cfg(feature = "cluster")]
#[track_caller]
pub fn cluster<F: Future>(
    loops: Option<usize>,
    pin: bool,
    builder: impl Fn() -> Builder + Send + Sync + 'static,
    future: F,
) -> F::Output {
    let mut cluster = crate::cluster::Builder::new().pin(pin);
    if let Some(loops) = loops {
        cluster = cluster.loops(loops);
    }
    match cluster.each_loop(move |_, _| builder()).block_on(future) {
        Ok(output) => output,
        Err(error) => panic!("the loops cannot be created: {error}"),
    }
}

/// Runs `future` until it completes and nothing keeps the loop alive.
///
/// # Panics
///
/// If the loop cannot be created, or ends before the future completes.
#[track_caller]
pub fn run<F: Future>(builder: Builder, future: F) -> F::Output {
    match build(builder).run_until_done(future) {
        Ok(output) => output,
        Err(error) => panic!("{error}"),
    }
}

/// Runs `future` as a test.
///
/// # Panics
///
/// If the loop cannot be created, or `future` has not completed within `timeout`; then the text is
/// the report of the loop.
#[track_caller]
pub fn test<F: Future>(builder: Builder, timeout: Option<Duration>, future: F) -> F::Output {
    let event_loop = build(builder);
    let _watch = timeout.map(|timeout| Watch::start(timeout, event_loop.remote()));
    event_loop.block_on(future)
}

/// What a test under seeds may return.
#[cfg(feature = "test-util")]
pub trait Outcome {
    /// Returns the outcome of a test that has passed.
    fn passed() -> Self;

    /// # Panics
    ///
    /// If the outcome is an error.
    fn check(self);
}

#[cfg(feature = "test-util")]
impl Outcome for () {
    fn passed() {}

    fn check(self) {}
}

#[cfg(feature = "test-util")]
impl<E: std::fmt::Debug> Outcome for Result<(), E> {
    fn passed() -> Self {
        Ok(())
    }

    fn check(self) {
        if let Err(error) = self {
            panic!("the test returned an error: {error:?}");
        }
    }
}

/// Runs `program` as a test under `seeds` seeds.
///
/// # Panics
///
/// If a run fails; see [`shuffle::explore`](crate::shuffle::explore).
#[cfg(feature = "test-util")]
#[track_caller]
pub fn explore<F, T: Outcome>(seeds: u64, program: impl Fn() -> F) -> T
where
    F: Future<Output = T>,
{
    crate::shuffle::explore(seeds, || async { program().await.check() });
    T::passed()
}

/// Runs `program` as a test of several loops under `seeds` seeds.
///
/// # Panics
///
/// If a run fails; see [`shuffle::explore`](crate::shuffle::explore).
#[cfg(all(feature = "cluster", feature = "test-util"))]
#[track_caller]
pub fn explore_loops<F, T: Outcome>(loops: usize, seeds: u64, program: impl Fn() -> F) -> T
where
    F: Future<Output = T>,
{
    let explore = crate::shuffle::Explore::new().seeds(seeds).loops(loops);
    explore.run(|| async { program().await.check() });
    T::passed()
}

#[track_caller]
fn build(builder: Builder) -> EventLoop {
    match builder.build() {
        Ok(event_loop) => event_loop,
        Err(error) => panic!("the event loop cannot be created: {error}"),
    }
}

/// Defines a macro for the options that need a feature: it is its argument, or an error that names
/// the feature.
macro_rules! gates {
    ($($name:ident, $with:meta, $feature:literal;)*) => {
        $(
            #[cfg($with)]
            #[doc(hidden)]
            #[macro_export]
            macro_rules! $name {
                ($call:expr) => { $call };
            }

            #[cfg(not($with))]
            #[doc(hidden)]
            #[macro_export]
            macro_rules! $name {
                ($call:expr) => {
                    ::core::compile_error!(
                        concat!("this option needs a feature of phaseloop: ", $feature)
                    )
                };
            }
        )*
    };
}

gates! {
    __with_test_util, feature = "test-util", "`test-util`";
    __with_cluster, feature = "cluster", "`cluster`";
    __with_probe, feature = "probe", "`probe`";
    __with_tracing, feature = "tracing", "`tracing`";
    __with_signal, feature = "signal", "`signal`";
    __with_tokio_rt, all(unix, feature = "tokio-rt"), "`tokio-rt`, which is for Unix";
}

/// A thread that ends a test after its time; the drop ends the thread.
struct Watch {
    /// Ends the thread, whether the test has ended or the loop has begun its report.
    done: mpsc::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watch {
    // The limit is in real time: on a paused clock a test that hangs waits for real.
    #[inline]
    fn start(timeout: Duration, remote: Remote) -> Self {
        let (done, ended) = mpsc::channel();
        let answer = done.clone();
        let watch = move || {
            if ended.recv_timeout(timeout).is_ok() {
                return;
            }
            let asked = remote.call(move || {
                // The loop is not blocked. What follows may take long: the hook of the panic may
                // resolve a backtrace.
                let _ = answer.send(());
                let report = LoopHandle::current().report();
                panic!("the test has not completed within {timeout:?}\n\n{report}");
            });
            if asked.is_ok() && ended.recv_timeout(ANSWER) == Err(RecvTimeoutError::Timeout) {
                stderr::print(format_args!(
                    "the test has not completed within {timeout:?}, and its loop does not answer: a callback or a \
                     poll blocks the thread"
                ));
                std::process::abort();
            }
        };
        let thread = thread::Builder::new()
            .name("phaseloop-test-timeout".to_owned())
            .spawn(watch);
        Self {
            done,
            thread: thread.ok(),
        }
    }
}

impl Drop for Watch {
    #[inline]
    fn drop(&mut self) {
        // The thread may have ended already.
        let _ = self.done.send(());
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to return.
            let _ = thread.join();
        }
    }
}
