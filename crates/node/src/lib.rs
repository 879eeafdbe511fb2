//! Node's names, with Node's order, on the loop of [`phaseloop`].
//!
//! This crate is for ports of Node programs that depend on Node's order of callbacks. It has timers
//! in lists by duration, immediates, ticks, promises with the tick counts of JavaScript, and the
//! events at the end of a program. It works on any loop of `phaseloop`; [`run`] adds the start and
//! the end of a Node program.
//!
//! ```
//! use phaseloop_node::{next_tick, run, set_immediate, set_timeout};
//!
//! fn main() {
//!     let exit = run(async {
//!         set_timeout(1, || println!("third"));
//!         set_immediate(|| println!("second"));
//!         next_tick(|| println!("first"));
//!     });
//!     assert_eq!(exit.code(), 0);
//! }
//! ```
//!
//! The guide has three pages: [how a program is ported](guide::porting), with the order of all
//! callbacks, [what is here and what is elsewhere](guide::elsewhere), and [what older versions of
//! Node do](guide::versions).
//!
//! A new Rust program does not need this crate: tasks, [`time::sleep`] and the rest of `phaseloop`
//! take less code.
//!
//! # The cost of waiting
//!
//! The main difference between the two languages: in Rust, `await` on a ready future continues at
//! once; in JavaScript it never does. A port that depends on the order of two functions therefore
//! awaits [`Promise`]s, which take as many ticks as in JavaScript. A *tick* in this table is one
//! round through the microtask lane.
//!
//! | JavaScript | ticks | here | ticks | plain Rust | ticks |
//! |---|---|---|---|---|---|
//! | `f()`, up to the first `await` | 0 | [`call`]`(f())` | 0 | [`spawn`]`(f())` | 1 |
//! | `await value` | 1 | [`Promise::resolved`]`(value).await` | 1 | `ready(value).await` | 0 |
//! | `await promise`, settled | 1 | `promise.await` | 1 | `handle.await`, finished | 0 |
//! | `await promise`, after it is settled | 1 | `promise.await` | 1 | `handle.await` | 1 |
//! | `await f()`, after its last statement | 1 | `call(f()).await` | 1 | `f().await` | 0 |
//! | `await f()`, ends in `return p` | 3 | [`call_returning`]`(f())` | 3 | `f().await.await` | 0 |
//! | `await f()`, ends in `return await p` | 2 | `call(async { p.await })` | 2 | `f().await` | 0 |
//! | `await thenable` | 2 | [`thenable`]`(..).await` | 2 | – | |
//! | one `then` | 1 | [`Promise::then`] | 1 | – | |
//! | a `then` that returns a promise | 3 | [`Promise::and_then`] | 3 | – | |
//! | `resolve(promise)` | 3 | [`Deferred::adopt`] | 3 | – | |
//! | past a `finally` | 4 | [`Promise::finally`] | 4 | – | |
//! | `Promise.all`, `race`, `any` | 2 | [`all`], [`race()`], [`any`] | 2 | join the handles | 1 |
//! | `Promise.allSettled` | 2 | [`all_settled`] | 2 | join the handles | 1 |
//! | `await Promise.all([])` | 1 | `all([]).await` | 1 | – | 0 |
//! | `for await`, each element and the end | 2 | `Promise::resolved(x).then(f)` | 2 | `for` | 0 |
//! | a `setTimeout` promise, after the timer | 1 | [`timers::promises`] | 1 | [`time::sleep`] | 1 |
//!
//! `crates/node/tests/NODE.md` in the repository lists all rules of the order, each with the test
//! that proves it.
//!
//! [`spawn`]: phaseloop::spawn
//! [`time::sleep`]: phaseloop::time::sleep

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

pub mod async_hooks;
pub mod child_process;
pub mod dgram;
pub mod diagnostics_channel;
pub mod dns;
pub mod events;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod fs;
pub mod guide;
#[doc(hidden)]
pub mod host;
pub mod http;
#[cfg(feature = "tls")]
pub mod https;
pub mod net;
pub mod perf_hooks;
pub mod readline;
pub mod stream;
pub mod string_decoder;
pub mod timers;
#[cfg(feature = "tls")]
pub mod tls;
pub mod util;
pub mod worker_threads;
#[cfg(feature = "zlib")]
pub mod zlib;

mod abort;
mod callback_futures;
mod combinators;
mod context;
mod delay;
mod error;
mod generator;
#[cfg(unix)]
mod ipc;
pub mod process;
mod promise;
mod reason;
mod rejections;
mod report;
mod report_lines;
mod run;
mod site;
mod thenable;

pub use self::abort::{AbortController, AbortListener, AbortSignal, Cancelled, Guard};
pub use self::callback_futures::in_callbacks;
pub use self::combinators::{AggregateError, Promises, all, all_settled, any, race};
pub use self::delay::Delay;
pub use self::error::Error;
pub use self::events::{Emitter, EventEmitter};
#[cfg(feature = "fetch")]
pub use self::fetch::fetch;
pub use self::generator::{AsyncGenerator, Yielder, async_generator};
pub use self::promise::{
    Awaited, Deferred, Handled, Promise, call, call_returning, catch, try_call,
};
pub use self::reason::{Reason, throw};
pub use self::run::{Exit, run, run_on};
pub use self::thenable::{PromiseLike, Thenable, thenable};
pub use self::timers::{
    Timeout, TimeoutId, clear_interval, clear_timeout, clear_timeout_by_id, promises::sleep,
    set_interval, set_timeout, set_timeout_mut,
};
pub use phaseloop;
pub use phaseloop::Immediate;
pub use phaseloop::task::{next_tick, queue_microtask, set_immediate};

/// Cancels an immediate, even one that is due in the running check phase. An immediate that has run
/// is left unchanged.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, clear_immediate, run, set_immediate};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let immediate = set_immediate(|| unreachable!("it was cleared"));
///         clear_immediate(&immediate);
///     })
/// }
/// ```
pub fn clear_immediate(immediate: &Immediate) {
    immediate.clear();
}

/// Compiles and runs the recipe of `phaseloop::guide::cookbook`.
#[cfg(doctest)]
#[doc = include_str!("../../../src/guide/cookbook_node.md")]
struct Cookbook;
