//! Every line of `unsafe` that knows no operating system; what needs one is in [`sys`](crate::sys).
//!
//! | module | offers |
//! |---|---|
//! | [`call`] | a closure that is called once, without an allocation if it is small |
//! | [`current`] | a thread-local reference to what runs further up the stack |
//! | [`nesting`] | long chains of values and of calls that take a bounded part of the stack |
//! | [`ring`] | a queue of one thread with a power-of-two buffer, pushed to and popped from through shared references |
//! | [`scoped`] | a slot through which a borrowed closure can be called from deeper in the stack |
//! | [`slots`] | a table that is used through shared references, without the price of a `RefCell` |
//! | [`sync`] | the atomics, locks and threads of the inbox and of the pool, replaced by model-checked ones under `cfg(phaseloop_loom)` |
//! | [`task`] | tasks on top of `async_task`: woken anywhere, polled and dropped on the owner thread only |
//! | [`thread_bound`] | a value that may travel, but is used and dropped on its own thread only |
//! | [`thread`] | a number for each thread that is never used twice |
//! | [`unwind`] | panics that end where they are |

pub(crate) mod call;
pub(crate) mod current;
pub(crate) mod nesting;
pub(crate) mod ring;
pub(crate) mod scoped;
pub(crate) mod slots;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod thread;
pub(crate) mod thread_bound;
pub(crate) mod unwind;
