//! `unsafe` code that needs no OS; code that needs one is in [`sys`](crate::sys).
//!
//! | module | offers |
//! |---|---|
//! | [`bound`] | values that stay on the thread of their loop, for one reason that errors name |
//! | [`call`] | a closure that is called once, without an allocation if it is small |
//! | [`current`] | a thread-local reference to a value on the stack of an outer caller |
//! | [`exclusive`] | a value that one guard at a time reaches, for a lock |
//! | [`handover`] | work on its way to another thread, and its output on the way back |
//! | [`nesting`] | long chains of values and of calls that take a bounded part of the stack |
//! | [`ring`] | a queue for one thread, used through shared references |
//! | [`scope`] | futures that borrow from the scope that polls and drops them |
//! | [`slots`] | a table that is used through shared references, without a `RefCell` |
//! | `stack` | the stack of the calling thread, and the names of functions |
//! | `stack_poll` | polls that find out where a future waits |
//! | [`sync`] | atomics, locks and threads; model-checked ones under `cfg(phaseloop_loom)` |
//! | [`task`] | tasks on `async_task`: woken anywhere, run on the owner thread only |
//! | [`thread_bound`] | a value that is used and dropped on its owner thread only |
//! | [`thread`] | a token for each thread, never reused |
//! | [`unwind`] | panics that are caught, and steps of which each is made although one panics |

pub(crate) mod bound;
pub(crate) mod call;
pub(crate) mod current;
pub(crate) mod exclusive;
pub(crate) mod handover;
pub(crate) mod nesting;
pub(crate) mod ring;
pub(crate) mod scope;
pub(crate) mod slots;
#[cfg(feature = "stacks")]
pub(crate) mod stack;
#[cfg_attr(not(feature = "stacks"), path = "raw/stack_poll_off.rs")]
pub(crate) mod stack_poll;
pub(crate) mod stock;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod thread_bound;
pub(crate) mod unwind;
