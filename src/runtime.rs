//! What users hold of a loop: its options, its handle, handles on it, and the calls that run it.
//!
//! The engine below (`event_loop.rs`) names nothing of it.

pub(crate) mod any_handle;
pub(crate) mod block_on;
pub(crate) mod builder;
pub(crate) mod embed;
pub(crate) mod event_loop;
mod fork;
mod futures_spawn;
pub(crate) mod handle;
pub(crate) mod loop_handle;
pub(crate) mod phase_call;
pub(crate) mod remote;
