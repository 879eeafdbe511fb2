//! The executor of the loop: tasks, the lanes that queue them, and the inbox for wakes from other
//! threads.
//!
//! ```text
//!            wake (owner thread)           ┌──────> returned / panicked ──> JoinHandle
//!  spawn ──> microtask lane ──> polled ────┤
//!              ^                           └──────> pending
//!              │  wake (other thread)                  │ wake
//!              ├── poll phase <── inbox <──────────────┤
//!              └────────────────────────────────────────┘
//! ```
//!
//! A woken task is in the microtask lane once, however often it is woken, and is polled once.

pub(crate) mod inbox;
pub(crate) mod join;
pub(crate) mod lane;
pub(crate) mod message;
pub(crate) mod registry;
pub(crate) mod shared;
pub(crate) mod yield_now;

pub(crate) use registry::Info;
