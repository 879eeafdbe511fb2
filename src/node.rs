//! Node's names, with Node's order.
//!
//! For those who port a Node program and need everything to happen in the order it had: timers in lists by duration,
//! immediates, ticks, promises with the tick counts of JavaScript's, and the events at the end of a program. It works
//! on any loop of this crate; [`run`] gives a program its beginning and its end as well.
//!
//! Who starts afresh in Rust needs none of it: tasks, [`sleep`](crate::time::sleep) and the rest of the crate do the
//! same with less.

#[cfg(unix)]
pub mod child_process;
pub mod dgram;
pub mod dns;
pub mod events;
pub mod fs;
pub mod net;
pub mod stream;
pub mod timers;
pub mod worker_threads;

mod abort;
mod callbacks;
mod combinators;
mod delay;
mod error;
mod lists;
pub mod process;
mod promise;
mod reason;
mod rejections;
mod run;
mod state;

pub use self::abort::{AbortController, AbortListener, AbortSignal, Cancelled, Guard};
pub use self::callbacks::in_callbacks;
pub use self::combinators::{AggregateError, all, all_settled, any, race};
pub use self::delay::Delay;
pub use self::error::Error;
pub use self::events::{Emitter, EventEmitter};
pub use self::promise::{Awaited, Deferred, Promise, call, call_returning, thenable, try_call};
pub use self::reason::{Reason, throw};
pub use self::run::{Exit, run, run_on};
pub use self::timers::{
    Timeout, TimeoutId, clear_interval, clear_timeout, clear_timeout_by_id, set_interval,
    set_timeout,
};
pub use crate::event_loop::handle::Immediate;
pub use crate::task::{next_tick, queue_microtask, set_immediate};

/// Takes an immediate back, also out of the running check phase (N62). Without effect on one that has run.
pub fn clear_immediate(immediate: &Immediate) {
    immediate.clear();
}
