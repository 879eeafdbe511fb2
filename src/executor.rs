//! The executor below the loop: tasks, the lanes they wait in, the door for wakes from other threads.
//!
//! ```text
//!            wake (loop's thread)          ┌──────> returned / panicked ──> JoinHandle
//!  spawn ──> microtask lane ──> polled ────┤
//!              ^                           └──────> pending
//!              │  wake (other thread)                  │ wake
//!              ├── poll phase <── inbox <──────────────┤
//!              └────────────────────────────────────────┘
//! ```
//!
//! A woken task stands in the microtask lane once, however often it is woken, and is polled once for it.

pub(crate) mod inbox;
pub(crate) mod join;
pub(crate) mod lane;
pub(crate) mod message;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod yield_now;

pub(crate) use registry::Info;
