//! Signals on the loop; on Unix only.
//!
//! | | for |
//! |---|---|
//! | [`Signal`] | a callback, again and again or once: libuv's handle |
//! | [`Signals`] | a stream of one or more signals |
//! | [`ctrl_c`] | waiting for the next SIGINT |
//!
//! Any number of them may listen to a signal, on any number of loops in the process; each gets it. They are called in
//! the poll phase, last in its batch: signals in the order in which they were caught, those who listen to one in the
//! order in which they started, with a drain of the lanes after each. A signal is for those who listen when it is caught.
//! One that is caught while the poll phase runs callbacks comes with the next poll phase. A signal that is caught again
//! before its delivery is delivered once, as the OS itself does it; none is lost. A stop between the catch and the delivery
//! holds.
//!
//! # What a listener does to the process
//!
//! While a listener is started, the default action of its signal does not happen: a program that
//! listens to SIGINT is not ended by ctrl-c. The first listener in the process installs a handler,
//! which calls the handler that was there before. When the last one stops, what was there before is
//! put back, usually the default action. System calls that a signal interrupts are restarted.
//!
//! Other code in the process may listen to the same signal, through `signal-hook` (tokio does) or
//! by `sigaction`:
//!
//! | the other handler was installed | while a listener is started here | after the last one has stopped |
//! |---|---|---|
//! | before the first listener | both are called | the other one is put back |
//! | later, and calls the handler it has replaced, as `signal-hook` does | both are called | the other one stays |
//! | later, and does not | the other one is called, and listeners that start after it | the other one stays |
//!
//! A handler that was installed later is never taken out. If its owner puts ours back when no
//! listener is left, the next signal has the action of before. `signal-hook` keeps its handler when
//! its own last action is removed; the signal is ignored then, as it is without this crate.
//!
//! # Liveness
//!
//! A listener keeps the loop alive until it is stopped or dropped, as in libuv. A program that is to end when nothing but
//! its signals is left calls [`unref`](crate::Handle::unref), as Node does.
//!
//! # Examples
//!
//! ```
//! use phaseloop::signal::{SignalKind, Signals};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let mut signals = Signals::new([SignalKind::TERM, SignalKind::USR1])?;
//! #   signal_hook::low_level::raise(SignalKind::USR1.as_raw())?;
//!     while let Some(kind) = signals.recv().await {
//!         println!("{kind}");
//! #       assert_eq!(kind, SignalKind::USR1);
//! #       break;
//!     }
//!     Ok(())
//! })
//! # }
//! ```

mod kind;
mod listener;
mod stream;

pub use kind::SignalKind;
pub use listener::Signal;
pub use stream::Signals;

use std::future::Future;
use std::io;
use std::panic::Location;

use crate::event_loop::handle::LoopHandle;

/// Waits for the next SIGINT, which a terminal sends for ctrl-c.
///
/// Listens from the first poll until the future is done or dropped. From then on ctrl-c ends the program again, so that
/// impatient users have their way; a program that wants to see every one keeps a [`Signals`].
///
/// # Errors
///
/// The system's.
///
/// # Cancel safety
///
/// Given up, it has caught nothing that others would miss.
///
/// # Panics
///
/// When it is awaited where no loop runs.
#[track_caller]
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> {
    let site = Location::caller();
    async move {
        let mut signals = Signals::new_at(&LoopHandle::current_for(site), [SignalKind::INT], site)?;
        signals.recv().await;
        Ok(())
    }
}
