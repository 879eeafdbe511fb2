//! Every line of `unsafe` that knows no operating system; what needs one is in [`sys`](crate::sys).
//!
//! | module | offers |
//! |---|---|
//! | [`nesting`] | long chains of values and of calls that take a bounded part of the stack |
//! | [`ring`] | a queue of one thread with a power-of-two buffer, pushed to and popped from through shared references |
//! | [`task`] | tasks on top of `async_task`: woken anywhere, polled and dropped on the owner thread only |

pub(crate) mod nesting;
pub(crate) mod ring;
pub(crate) mod task;
