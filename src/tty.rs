//! Terminals: keys one by one, the size of the window, and everything as it was in the end. On Unix only.
//!
//! A [`Tty`] reads and writes a terminal and changes its [`Mode`]. What was changed is brought back when the `Tty` is
//! dropped, also by a panic, and when the process exits by itself. A process that a signal ends has no time for that,
//! unless the handler calls [`reset_mode`].
//!
//! # Examples
//!
//! ```no_run
//! use futures::AsyncReadExt;
//! use phaseloop::tty::{Mode, Tty};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let mut tty = Tty::open()?;
//!     tty.set_mode(Mode::Raw)?;
//!     let mut key = [0; 16];
//!     let length = tty.read(&mut key).await?;
//!     println!("{:?} in {:?}", &key[..length], tty.size()?);
//!     Ok(())
//! })
//! # }
//! ```

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::io::StdioKind;
use crate::io::bytes::{impl_async_read, impl_async_write};
use crate::io::channel::Channel;
use crate::signal::{SignalKind, Signals};
use crate::sys::terminal::{self, Change};

pub use crate::sys::terminal::Mode;

/// A terminal on the loop.
///
/// Reads and writes go through [`AsyncRead`](futures_io::AsyncRead) and [`AsyncWrite`](futures_io::AsyncWrite), also of
/// `&Tty`, and never block the loop. In [`Mode::Normal`] a read returns a line, in the others what keys have sent.
/// The terminal is opened a second time, so that nobody else sees it in a mode that does not block; where that is not
/// possible, as with another user's terminal, a thread of the pool reads when there is something to read.
///
/// One task at a time may wait to read through it, and one to write. Several of them may be of the same terminal: its
/// settings are those of the last [`set_mode`](Self::set_mode), and come back when none of them is away from
/// [`Mode::Normal`] any more.
///
/// # Cancel safety
///
/// As of [`Stdin`](crate::io::Stdin) and [`Stdout`](crate::io::Stdout).
pub struct Tty {
    source: Channel,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// There is one unless the mode is the normal one.
    change: Option<Change>,
}

impl Tty {
    /// The terminal of the process, whatever its standard streams are.
    ///
    /// # Errors
    ///
    /// The system's, when the process has no terminal.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn open() -> io::Result<Self> {
        Self::from_fd(terminal::open_own()?)
    }

    /// The terminal that a descriptor refers to, for example [`std::io::stdin`].
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when it is none, else the system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_fd(descriptor: impl AsFd) -> io::Result<Self> {
        let descriptor = descriptor.as_fd();
        let kind = StdioKind::of(descriptor);
        if kind != StdioKind::Terminal {
            let text = "the descriptor is not that of a terminal";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            source: Channel::unshared(descriptor, kind)?,
            state: RefCell::default(),
        })
    }

    /// Changes the mode, at once: what was written before and is not yet printed may see the new one.
    ///
    /// The settings that the first change in the process finds are what [`Mode::Normal`] brings back. A mode that is set
    /// already is not set again.
    ///
    /// # Errors
    ///
    /// The system's; [`OutOfMemory`](io::ErrorKind::OutOfMemory) when 16 terminals are away from their settings.
    pub fn set_mode(&self, mode: Mode) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if mode == state.mode {
            return Ok(());
        }
        if mode == Mode::Normal {
            state.mode = mode;
            return state.change.take().map_or(Ok(()), Change::undo);
        }
        // Kept only if it could be applied; its drop brings back what was.
        let change = match state.change.take() {
            Some(change) => change,
            None => Change::begin(self.source.as_fd())?,
        };
        let applied = change.apply(mode);
        if applied.is_ok() || state.mode != Mode::Normal {
            state.change = Some(change);
        }
        applied?;
        state.mode = mode;
        Ok(())
    }

    /// The mode that was set last.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.borrow().mode
    }

    /// The size of the window.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn size(&self) -> io::Result<Size> {
        size_of(self.as_fd())
    }

    /// The sizes that the window takes from now on.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn resizes(&self) -> io::Result<Resizes> {
        // In this order: a change in between is seen.
        let signals = Signals::new([SignalKind::WINCH])?;
        let terminal = self.as_fd().try_clone_to_owned()?;
        let last = size_of(terminal.as_fd())?;
        Ok(Resizes {
            signals,
            terminal,
            last,
        })
    }

    /// Brings the mode back, closes the terminal, and has that reported in the closing phase; see [`Close`].
    pub fn close_now(self) -> Close {
        drop(self.state);
        self.source.close()
    }
}

impl_async_read!(Tty);
impl_async_write!(Tty, |_tty| Ok(()), |_tty| Ok(()));

impl Handle for Tty {}

impl sealed::Sealed for Tty {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl fmt::Debug for Tty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tty")
            .field("descriptor", &self.as_fd())
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}

/// Brings all terminals of the process back to the settings that were found, whatever their [`Tty`]s believe.
///
/// For handlers of signals and of panics that end the process: it is async-signal-safe. When the process exits by itself
/// it is called anyway.
///
/// # Errors
///
/// [`ResourceBusy`](io::ErrorKind::ResourceBusy) when the call has interrupted a change of mode, else the first of the
/// system's.
pub fn reset_mode() -> io::Result<()> {
    terminal::restore_all()
}

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Size {
    /// How many fit beside each other.
    pub columns: u16,
    /// How many lines there are.
    pub rows: u16,
}

fn size_of(terminal: BorrowedFd<'_>) -> io::Result<Size> {
    let (columns, rows) = terminal::size(terminal)?;
    Ok(Size { columns, rows })
}

/// The sizes that the window of a terminal takes, made by [`Tty::resizes`].
///
/// The system tells of them by SIGWINCH, which only the processes in the foreground of the terminal get. So the loop is
/// kept alive as [`Signals`] keep it. Changes that come faster than they are looked at are one.
pub struct Resizes {
    signals: Signals,
    terminal: OwnedFd,
    last: Size,
}

impl Resizes {
    /// The next size that is another than the last; `None` when the loop is gone. Woken in the poll phase.
    ///
    /// # Errors
    ///
    /// The system's, when the terminal is gone.
    ///
    /// # Cancel safety
    ///
    /// Given up, it has missed nothing.
    pub async fn recv(&mut self) -> Option<io::Result<Size>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The poll function of [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Size>>> {
        loop {
            if ready!(self.signals.poll_recv(cx)).is_none() {
                return Poll::Ready(None);
            }
            match size_of(self.terminal.as_fd()) {
                Ok(size) if size == self.last => {}
                Ok(size) => {
                    self.last = size;
                    return Poll::Ready(Some(Ok(size)));
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl Stream for Resizes {
    type Item = io::Result<Size>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_recv(cx)
    }
}

impl Handle for Resizes {}

impl sealed::Sealed for Resizes {
    fn handle_core(&self) -> &HandleCore {
        self.signals.handle_core()
    }
}

impl fmt::Debug for Resizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resizes")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
