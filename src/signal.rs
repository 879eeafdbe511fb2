//! Signals on the loop.
//!
//! After `cargo add rustix --features process`:
//!
//! ```
//! use phaseloop::signal::{SignalKind, Signals};
//! use rustix::process::{Signal, getpid, kill_process};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let mut signals = Signals::new([SignalKind::TERM, SignalKind::USR1])?;
//!     kill_process(getpid(), Signal::USR1)?; // as `kill -USR1` does from a shell
//!     assert_eq!(signals.recv().await, Some(SignalKind::USR1));
//!     Ok(())
//! }
//! ```
//!
//! | item | use |
//! |---|---|
//! | [`Signal`] | a callback for each signal, or for one: libuv's handle |
//! | [`Signals`] | a stream of one or more signals |
//! | [`ctrl_c`] | a future of the next SIGINT |
//!
//! Any number of listeners may listen to a signal, on any number of loops in the process; each of
//! them gets it. They are called in the poll phase, after its I/O: signals in the order in which
//! they were caught, listeners of one signal in the order of their start. The lanes are drained
//! after each. A signal goes to the listeners that are started when it is caught. A signal that is
//! caught while the poll phase runs callbacks is delivered in the next poll phase. A signal that is
//! caught again before its delivery is delivered once, as by the OS. A listener that is stopped
//! between catch and delivery is not called.
//!
//! # Effect on the process
//!
//! While a listener is started, the default action of its signal does not happen: a program that
//! listens to SIGINT is not ended by ctrl-c. The first listener in the process installs a handler,
//! which calls the handler that it has replaced. When the last listener stops, the previous
//! disposition is restored, usually the default action. Interrupted system calls are restarted.
//!
//! Other code in the process may handle the same signal, through `signal-hook` (which calls the
//! handler that it has replaced; tokio uses it) or `sigaction`:
//!
//! | the other handler | while a listener is started here | after the last listener |
//! |---|---|---|
//! | was installed before the first listener | both are called | the other one is restored |
//! | was installed later, calls its predecessor | both are called | the other one stays |
//! | was installed later, does not | the other one is called, and later listeners | it stays |
//!
//! A handler that was installed later is never removed. If its owner restores ours when no listener
//! is left, the next signal has its previous action. `signal-hook` keeps its handler installed when
//! its own last action is removed; the signal is ignored then, as it is without this crate.
//!
//! # Windows
//!
//! Windows has events of the console, which arrive as signals: ctrl-c as SIGINT, ctrl-break as
//! SIGBREAK, and the end of the console window as SIGHUP. After the last one the OS ends the
//! process within some seconds. The handler passes on to the handlers that were installed before
//! what no listener of the process listens to. An event that a listener has received is not passed
//! on.
//!
//! # Liveness
//!
//! A listener keeps the loop alive until it is stopped or dropped, as in libuv.
//! [`unref`](crate::Handle::unref) lets the program end when only its listeners are left, as Node
//! does.

mod kind;
mod listener;
mod report_on;
mod stream;
#[cfg(not(unix))]
mod windows;

pub use kind::SignalKind;
pub use listener::Signal;
pub use stream::Signals;
#[cfg(not(unix))]
pub use windows::ctrl_break;

use std::future::Future;
use std::io;
use std::panic::Location;

use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// Waits for the next SIGINT, which a terminal sends for ctrl-c.
///
/// It listens from the first poll until the future completes or is dropped. From then on ctrl-c
/// ends the program again, so that a second ctrl-c forces the exit. To receive every ctrl-c, keep a
/// [`Signals`].
///
/// # Errors
///
/// Any OS error of `sigaction`, on Windows of `SetConsoleCtrlHandler`.
///
/// # Cancel safety
///
/// Dropping the future takes no signal from other listeners.
///
/// # Panics
///
/// When the future is awaited and no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     println!("ctrl-c shuts this program down, a second one ends it at once");
///     phaseloop::signal::ctrl_c().await?;
///     println!("closing");
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> {
    next("signal::ctrl_c", SignalKind::INT, Location::caller())
}

/// Waits for the next signal of a kind, on behalf of the function `what` that was called at `site`.
async fn next(what: &'static str, kind: SignalKind, site: Site) -> io::Result<()> {
    let handle = LoopHandle::current_for(what, Some(site));
    let mut signals = Signals::new_at(&handle, [kind], site)?;
    signals.recv().await;
    Ok(())
}
