//! Phases: hooks that run in every turn, futures that wait for a phase, and closures that run in
//! one ([`call_in`]).
//!
//! ```
//! use phaseloop::{LoopHandle, phase::{self, Prepare}};
//!
//! #[phaseloop::main]
//! async fn main() -> Result<(), phaseloop::Error> {
//!     let hook = Prepare::new(&LoopHandle::current());
//!     hook.start(|_| println!("the loop is about to wait"))?; // in each turn
//!     phase::check().await; // once, in the check phase of this turn
//!     hook.stop();
//!     Ok(())
//! }
//! ```
//!
//! | in this phase | each turn | once |
//! |---|---|---|
//! | pending | – | [`pending()`] |
//! | idle | [`Idle`] | [`idle()`] |
//! | prepare | [`Prepare`] | [`prepare()`] |
//! | poll | I/O, other threads | [`poll()`] |
//! | check | [`Check`] | [`check()`], [`yield_now_immediate()`], [`set_immediate`] |
//! | closing | – | [`closing()`], [`Close`](crate::Close) |
//! | timers | [`Timer`](crate::time::Timer) | [`timers()`], [`sleep`](crate::time::sleep) |
//!
//! [`set_immediate`]: crate::set_immediate

mod awaited;
mod hook;

pub use awaited::{
    PhaseFuture, check, closing, idle, pending, poll, prepare, timers, yield_now_immediate,
};
pub use hook::{Check, Hook, HookPhase, Idle, Prepare};

use crate::runtime::loop_handle::LoopHandle;

pub use crate::phase_order::Phase;
pub use crate::runtime::phase_call::PhaseCall;

/// Calls `callback` once, in the next pass of a phase of the running loop; see
/// [`LoopHandle::call_in`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase::{Phase, call_in};
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     phaseloop::run(async {
///         for phase in [Phase::Check, Phase::Poll] {
///             let log = log.clone();
///             call_in(phase, move || log.borrow_mut().push(phase));
///         }
///     })?;
///     assert_eq!(*log.borrow(), [Phase::Poll, Phase::Check]);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn call_in(phase: Phase, callback: impl FnOnce() + 'static) -> PhaseCall {
    LoopHandle::call_in_current(phase, callback)
}
