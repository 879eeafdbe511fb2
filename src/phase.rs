//! The phases as a program meets them: hooks that run in each turn, and futures that wait for one.
//!
//! | in this phase | each turn | once |
//! |---|---|---|
//! | pending | – | [`pending()`] |
//! | idle | [`Idle`] | [`idle()`] |
//! | prepare | [`Prepare`] | [`prepare()`] |
//! | poll | I/O, other threads | [`poll()`] |
//! | check | [`Check`] | [`check()`], [`yield_now_immediate()`], [`set_immediate`](crate::set_immediate) |
//! | closing | – | [`closing()`], [`Close`](crate::Close) |
//! | timers | [`Timer`](crate::time::Timer) | [`sleep`](crate::time::sleep) |

mod awaited;
mod hook;

pub use awaited::{PhaseFuture, check, closing, idle, pending, poll, prepare, yield_now_immediate};
pub use hook::{Check, Hook, HookPhase, Idle, Prepare};

pub use crate::kinds::Phase;
