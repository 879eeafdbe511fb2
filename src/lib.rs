//! A single-threaded async executor whose reactor **is** a libuv-style phase loop.
//!
//! A future does not wake "somewhere": it wakes in a phase, in an order that can be written down,
//! tested, and compared with Node.js line by line.
//!
//! ```text
//!    ┌─> pending ─> idle ─> prepare ─> poll ─> check ─> closing ─> timers ─┐
//!    └─────────────────────────────────────────────────────────────────────┘
//!        after every callback, in every phase:  all ticks ─> all microtasks, until both are empty
//! ```
//!
//! [`#[phaseloop::main]`](main) and [`block_on`] run one future on a loop of its own. Tasks started
//! with [`spawn`] run beside it on the same thread. They share data with [`Rc`](std::rc::Rc) and
//! [`Cell`](std::cell::Cell), and need not be `Send`:
//!
//! ```
//! use std::cell::Cell;
//! use std::rc::Rc;
//! use std::time::Duration;
//! use phaseloop::{spawn, time::sleep};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let total = Rc::new(Cell::new(0));
//!     let task = spawn({
//!         let total = total.clone();
//!         async move {
//!             sleep(Duration::from_millis(1)).await; // wakes in the timers phase
//!             total.set(total.get() + 1);
//!         }
//!     });
//!     task.await.expect("the task does not panic");
//!     assert_eq!(total.get(), 1);
//! }
//! ```
//!
//! | entry point | ends |
//! |---|---|
//! | [`block_on`] | when its future returns; it waits even if only another thread can wake it |
//! | [`run`] | when its future returns and nothing keeps the loop alive, as a Node program does |
//! | [`EventLoop::run`] | by [`RunMode`]; for programs that own the loop, and for embedding |
//!
//! # Where futures meet phases
//!
//! | future or call | its task wakes in |
//! |---|---|
//! | [`spawn`], a wake on the owner thread, [`task::yield_microtask`] | the microtask lane |
//! | the locks and channels of [`sync`] | the microtask lane |
//! | [`task::yield_now`] | poll, after its I/O |
//! | a wake from another thread, [`Remote`], [`AsyncHandle`] | poll |
//! | [`time::sleep`], [`time::timeout`], [`time::interval`], [`time::Timer`] | timers |
//! | [`task::yield_now_immediate`], [`phase::check`], [`set_immediate`] | check |
//! | [`phase::pending`], [`idle`](phase::idle), [`prepare`](phase::prepare) … | that phase |
//! | reading, writing, accepting and connecting in [`net`] and [`io`] | poll |
//! | [`spawn_blocking`], [`fs`], [`net::lookup_host`] | poll |
//! | [`fs::watch`], then [`signal`], then [`process::Child::wait`] | poll, after the batch of I/O |
//! | the `close` method of a handle ([`Close`]) | closing |
//!
//! # Modules
//!
//! - [`task`]: join handles, [`JoinSet`](task::JoinSet), yielding, names.
//! - [`time`]: sleeps, time-outs, intervals, libuv's timers, and a clock that tests pause and
//!   advance.
//! - [`sync`]: locks and channels, in order, whose waits are in the report of the loop;
//!   [`select!`], [`join!`] and [`try_join!`].
//! - [`context`]: values that follow a request through the tasks and callbacks it starts.
//! - [`phase`]: hooks that run in every turn, futures that wait for a phase.
//! - [`net`], [`fs`], [`process`], [`signal`], [`io`]: the operating system on the loop. [`io`] and
//!   [`stream`] also hold the traits of the `futures` crate that read, write and iterate.
//! - [`pool`]: the thread pool behind [`spawn_blocking`].
//! - [`hyper`]: HTTP servers and clients by hyper, tower and axum, which need not be `Send`.
//! - [`tokio`](mod@tokio): tokio's crates, such as reqwest, sqlx and `axum::serve`, on the loop's
//!   thread.
//! - [`os`], [`tty`]: the machine and its terminals.
//! - [`observe`]: how busy a loop is, how late its timers are, and who made them late; observers of
//!   phases, callbacks and task polls.
//! - [`shuffle`], [`sim`]: for tests, the orders that a loop may meet, by seed, and a network in
//!   memory.
//! - [`guide`]: [a cookbook](guide::cookbook), [from tokio](guide::from_tokio),
//!   [from libuv](guide::from_libuv), [which crates work how](guide::crates),
//!   [a loop below your library](guide::libraries), [testing orders](guide::orders),
//!   [why it hangs, why it is slow](guide::diagnosing), [platforms](guide::platforms), and
//!   [what is stable](guide::stability).
//!
//! # Guarantees
//!
//! - **Order.** Phases run in libuv's order. After each callback all ticks run, then all
//!   microtasks, again while either grows. A phase works on a snapshot: what is added to it while
//!   it runs waits for the next turn.
//! - **Two clocks.** [`time::sleep`] and its family read the real clock and never end early.
//!   [`time::Timer`] counts from the loop's cached time, as libuv's timers do.
//! - **Dropping cancels.** Dropping a future or a handle deregisters it at once. A [`JoinHandle`]
//!   detaches instead; [`JoinHandle::abort`] cancels the task.
//! - **A loop is alive while something referenced can still happen**: an armed timer, a started
//!   hook, I/O with a waiter, a job in the pool, a queued callback, a closing handle.
//!   [`LoopHandle::report`] lists it, with the source lines that created it.
//! - **Panics are contained.** A [`JoinHandle`] returns the panic of its task. A panic of a
//!   callback leaves [`EventLoop::run`]; the loop stays usable.
//! - **Threads.** Wakers, [`Remote`] and [`AsyncSender`] work from any thread and may outlive the
//!   loop. Everything else belongs to the owner thread, and the compiler checks it.
//!
//! The README compares the cost with tokio, smol, monoio and libuv.
//! [From libuv](guide::from_libuv) lists where the loop differs from libuv on purpose.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `fs`, `net`, `process`, `signal` (default) | the modules of these names |
//! | `macros` (default) | [`#[phaseloop::main]`](main) and [`#[phaseloop::test]`](test) |
//! | `cluster` | [`cluster`]: several loops as one program, channels between them |
//! | `hyper` | [`hyper`]: HTTP/1 and HTTP/2 by hyper, axum or tower |
//! | `hyper-client` | [`hyper::Connector`] for hyper-util's client and tonic |
//! | `tls` | [`hyper::TlsStream`], and `https` for the connector, by rustls |
//! | `tokio-io` | tokio's I/O traits for sockets, pipes, files and terminals |
//! | `tokio-rt` | [`tokio`](mod@tokio): a tokio runtime inside the loop's wait; Unix |
//! | `os`, `tty` | the modules of these names; Unix |
//! | `test-util` | [`shuffle`], [`sim`], and the paused clock of [`time`] |
//! | `probe` | the observers of [`observe`], and the variables `PHASELOOP_*` |
//! | `stacks` | the stack of a stuck loop, on Linux with glibc; [`TaskTree::with_stacks`] |
//! | `tracing` | `Builder::tracing`: tasks and wakes for the crate `tracing` and tokio-console |
//!
//! # Examples
//!
//! Each is one file in the folder `examples` of the repository, and ends by itself.
//!
//! | topic | examples |
//! |---|---|
//! | start | `tour`, `phases`, `timers` |
//! | servers | `tcp_echo`, `udp_echo`, `chat`, `http`, `static_files`, `ctrl_c`, `unix_pair` |
//! | several cores | `all_cores`, `cluster`, `hot_restart`, `worker_pool` |
//! | files, processes, terminals | `fs_copy`, `tail`, `run_child`, `keys` |
//! | diagnosis | `why_hang`, `blame`, `top`, `context` |
//! | tests | `orders`, `replicas` |
//! | with other loops and crates | `embed`, and the packages `embedding`, `island`, `quinn` |
//!
//! The crate `phaseloop-node` has Node's modules in Node's order, on this loop.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        unix,
        feature = "cluster",
        feature = "fs",
        feature = "hyper",
        feature = "hyper-client",
        feature = "os",
        feature = "probe",
        feature = "test-util",
        feature = "tls",
        feature = "tokio-rt",
        feature = "tty",
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        rustdoc::private_intra_doc_links,
        reason = "the front page links to the modules of all features"
    )
)]

// The modules are listed in layer order: each may use those before it.
// `tests/house/layers.rs` checks this.
mod stderr;

#[cfg(feature = "test-util")]
mod choices;
mod error;
mod frame;
mod histogram;
mod keeper;
mod kinds;
mod label;
#[doc(hidden)]
pub mod macros;
mod noted;
mod numbered;
mod phase_order;
mod raw;
mod site;
mod sorted;
mod task_info;
mod wait_list;

mod metrics;
mod sys;

mod clock;
mod probe;
#[cfg(feature = "test-util")]
mod wire;

mod executor;
pub mod pool;

mod event_loop;

mod report;
mod ways_to_wait;

mod runtime;

mod async_handle;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod attributes;
mod blocking;
pub mod context;
pub mod io;
mod local;
pub mod phase;
pub mod stream;
pub mod sync;
pub mod task;
pub mod time;

/// Observation: the figures of a loop, the trait [`Observer`](observe::Observer) for what it does,
/// and the observers of the feature `probe`: recorder and watchdog.
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{LoopHandle, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     sleep(Duration::from_millis(5)).await;
///     let metrics = LoopHandle::current().metrics();
///     println!("busy for {:.1} % of the time", metrics.utilization() * 100.0);
///     println!("event delay p99 {:?}", metrics.delay().quantile(0.99));
/// }
/// ```
pub mod observe {
    pub use crate::histogram::Histogram;
    pub use crate::metrics::{Delay, Metrics, Utilization};
    pub use crate::probe::{
        Activity, Area, Body, BusyPeriod, Flush, Observer, Waited, Wake, Wants,
    };
    #[cfg(feature = "probe")]
    pub use crate::probe::{
        Blame, Culprit, Record, Recorder, SlowPeriod, Stall, Subject, Suspect, Watchdog, What,
    };
}

#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "net")]
pub mod net;
#[cfg(all(unix, feature = "os"))]
pub mod os;
#[cfg(feature = "signal")]
pub mod signal;
#[cfg(all(unix, feature = "tty"))]
pub mod tty;

#[cfg(feature = "process")]
pub mod process;

#[cfg(feature = "test-util")]
pub mod shuffle;
#[cfg(feature = "test-util")]
pub mod sim;

#[doc(hidden)]
pub mod extension;
pub mod guide;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(all(unix, feature = "tokio-rt"))]
pub mod tokio;
#[cfg(feature = "tokio-io")]
mod tokio_io;
mod unwind_safe;

/// Runs an `async fn main` on an event loop until it completes.
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::sleep;
///
/// #[phaseloop::main]
/// async fn main() {
///     sleep(Duration::from_millis(1)).await;
///     println!("a millisecond later");
/// }
/// ```
///
/// | option | effect |
/// |---|---|
/// | `run` | runs until nothing keeps the loop alive, as [`run()`](run()) does |
/// | `loops = 4`, `loops = "cores"` | runs on loop 0 of so many loops (feature `cluster`) |
/// | `pin` | with `loops`: keeps each loop on a processor |
/// | any method of [`Builder`], as `lane_budget = …` | sets the option of the loop |
/// | `crate = path` | names the crate, if it is not `::phaseloop` |
///
/// The function may return what any `main` may return. An unknown option is an error that lists the
/// known ones.
///
/// # Panics
///
/// If the loop cannot be created. With `run`, if the loop ends before the function does.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// #[phaseloop::main(lane_budget = 10_000.try_into().unwrap())]
/// async fn main() -> std::io::Result<()> {
///     phaseloop::time::sleep(Duration::from_millis(1)).await;
///     Ok(())
/// }
/// ```
#[cfg(feature = "macros")]
pub use phaseloop_macros::main;

/// Runs an `async fn` as a test on an event loop of its own.
///
/// | option | effect |
/// |---|---|
/// | `timeout = "5s"` | fails after this real time, with the loop's [report](LoopHandle::report) |
/// | `seeds = 200` | runs under so many seeds, with [`shuffle::explore`] |
/// | `loops = 3` | with `seeds`: runs on so many loops of one thread, as `Explore::loops` does |
/// | any method of [`Builder`], as `start_paused = true` | sets the option of the loop |
/// | `crate = path` | names the crate, if it is not `::phaseloop` |
///
/// `seeds` needs the feature `test-util`, and goes with no other option but `crate` and `loops`,
/// which needs the feature `cluster`. The units of a time limit are `ms`, `s` and `m`. Other
/// attributes, such as `#[should_panic]` and `#[ignore]`, work as on any test. The function may
/// return a `Result`. If a callback or a poll blocks the thread beyond the time limit, the process
/// is aborted.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::sleep;
///
/// #[phaseloop::test(start_paused = true, timeout = "5s")]
/// async fn an_hour_passes_at_once() {
///     sleep(Duration::from_secs(3600)).await;
/// }
/// ```
#[cfg(feature = "macros")]
pub use phaseloop_macros::test;

pub use async_handle::{AsyncHandle, AsyncSender};
pub use blocking::{QueuedWork, spawn_blocking, spawn_blocking_as};
pub use error::Error;
#[cfg(any(feature = "fs", feature = "net"))]
pub use error::{OsError, os_error};
pub use event_loop::{EventLoop, RunMode};
pub use executor::shared::UnhandledPanic;
pub use keeper::Keeper;
pub use local::Local;
pub use raw::bound::StaysOnLoopThread;
pub use report::Report;
pub use report::tree::TaskTree;
pub use runtime::any_handle::AnyHandle;
pub use runtime::block_on::{block_on, run};
pub use runtime::builder::Builder;
pub use runtime::embed::{Backend, BackendFd, NextWait};
pub use runtime::event_loop::Busy;
pub use runtime::handle::{Close, Handle, HandleInfo};
pub use runtime::loop_handle::LoopHandle;
pub use runtime::phase_call::Immediate;
pub use runtime::remote::{Remote, RemoteJoinHandle};
pub use task::{JoinHandle, next_tick, queue_microtask, set_immediate, spawn};

/// Compiles and runs the programs of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
