//! Everything that depends on the operating system, and every line of `unsafe`.
//!
//! The contract, item by item; the rest of the crate knows nothing else of the platform:
//!
//! | module | offers |
//! |---|---|
//! | [`clock`] | the monotonic clock |
//! | [`current`] | a thread-local reference to what runs further up the stack |
//! | [`poller`] | `Poller` (wait for events), `Registration` (a source that leaves the poller before it closes), `Notifier` (wake the wait from any thread) |
//! | [`scoped`] | a slot through which a borrowed closure can be called from deeper in the stack |
//! | [`sync`] | the atomics and the lock of the cross-thread inbox, replaced by model-checked ones under `cfg(phaseloop_loom)` |
//! | [`task`] | tasks that may be woken anywhere but run and drop on their own thread only |
//! | [`thread`] | a number for each thread that is never used twice |

pub(crate) mod clock;
pub(crate) mod current;
pub(crate) mod poller;
pub(crate) mod scoped;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod thread;
