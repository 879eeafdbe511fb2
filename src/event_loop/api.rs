//! The public interface of a loop: its options, its handle, handles on it, and the calls that
//! run it.

pub(crate) mod any_handle;
pub(crate) mod block_on;
pub(crate) mod builder;
pub(crate) mod embed;
mod futures_spawn;
pub(crate) mod handle;
pub(crate) mod loop_handle;
pub(crate) mod metrics;
pub(crate) mod phase_call;
pub(crate) mod remote;
