//! Node's names, with Node's order.
//!
//! For those who port a Node program and need everything to happen in the order it had: timers in lists by duration,
//! immediates, ticks, promises with the tick counts of JavaScript's, and the events at the end of a program. It works
//! on any loop of this crate; [`run`] gives a program its beginning and its end as well.
//!
//! Who starts afresh in Rust needs none of it: tasks, [`sleep`](crate::time::sleep) and the rest of the crate do the
//! same with less.

pub mod events;

mod abort;
mod error;
mod run;

pub use self::abort::{AbortController, AbortListener, AbortSignal, Cancelled, Guard};
pub use self::error::Error;
pub use self::events::{Emitter, EventEmitter};
pub use self::run::{Exit, run, run_on};
pub use crate::task::{next_tick, queue_microtask};
