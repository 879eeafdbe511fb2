//! Terminals: raw mode, restored on drop, panic and exit; window size and resize events. Unix only.
//!
//! A [`Tty`] reads and writes a terminal and changes its [`Mode`]. The original settings are
//! restored when the `Tty` is dropped, also during a panic, and when the process exits. A process
//! that is terminated by a signal restores them only if a signal handler calls [`reset_mode`].
//!
//! # Examples
//!
//! ```no_run
//! use phaseloop::io::AsyncReadExt;
//! use phaseloop::tty::{Mode, Tty};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let mut tty = Tty::open()?;
//!     tty.set_mode(Mode::Raw)?;
//!     let mut key = [0; 16];
//!     let length = tty.read(&mut key).await?;
//!     println!("{:?} in {:?}", &key[..length], tty.size()?);
//!     Ok(())
//! }
//! ```

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;

use crate::io::StdioKind;
use crate::io::bytes::{impl_async_read, impl_async_write};
use crate::io::shared_fd::SharedFd;
use crate::label::Role;
use crate::runtime::handle::{Close, impl_handle};
use crate::signal::{SignalKind, Signals};
use crate::sys::terminal::{self, Change};

pub use crate::kinds::Mode;

/// A terminal on the loop.
///
/// `Tty` and `&Tty` implement [`AsyncRead`](crate::io::AsyncRead) and
/// [`AsyncWrite`](crate::io::AsyncWrite), and never block the loop. In [`Mode::Normal`] a read
/// returns a line, in the other modes the bytes of the keys pressed. The terminal is opened a
/// second time, so that other processes do not see it in non-blocking mode. Where that is not
/// possible, as with another user's terminal, a pool thread reads once the terminal is readable.
///
/// One task at a time may wait to read, and one to write. Several `Tty`s may refer to one terminal.
/// Its settings are those of the last [`set_mode`](Self::set_mode), and the original settings
/// return when all of them are back in [`Mode::Normal`].
///
/// # Cancel safety
///
/// The rules of [`Stdin`](crate::io::Stdin) and [`Stdout`](crate::io::Stdout) apply.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::io::AsyncReadExt;
/// use phaseloop::tty::{Mode, Tty};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut tty = Tty::open()?;
///     tty.set_mode(Mode::Raw)?;
///     let mut key = [0; 8];
///     let length = tty.read(&mut key).await?;
///     println!("{:?}", &key[..length]);
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_tty_t")]
pub struct Tty {
    source: SharedFd,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    mode: Mode,
    /// `Some` unless the mode is [`Mode::Normal`].
    change: Option<Change>,
}

impl Tty {
    /// Opens the controlling terminal of the process, whatever its standard streams are.
    ///
    /// # Errors
    ///
    /// Any OS error of opening `/dev/tty`, such as `ENXIO` for a process without a terminal.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     println!("{:?}, {:?}", tty.size()?, tty.mode());
    ///     tty.close_now().await; // the mode is as before
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn open() -> io::Result<Self> {
        Self::from_fd(terminal::open_own()?)
    }

    /// Opens the terminal behind a descriptor, for example [`std::io::stdin`].
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the descriptor is not a terminal; otherwise
    /// any OS error of registering it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::tty::{Mode, Tty};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut tty = Tty::from_fd(std::io::stdin())?;
    ///     tty.set_mode(Mode::Raw)?; // each key at once, without an echo
    ///     let mut key = [0; 8];
    ///     let length = tty.read(&mut key).await?;
    ///     println!("{:?}", &key[..length]);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn from_fd(descriptor: impl AsFd) -> io::Result<Self> {
        let descriptor = descriptor.as_fd();
        let kind = StdioKind::of(descriptor);
        if kind != StdioKind::Terminal {
            let text = "not a terminal";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            source: SharedFd::unshared(descriptor, kind, Role::Unknown)?,
            state: RefCell::default(),
        })
    }

    /// Changes the mode at once. Output that was written and not yet printed may see the new mode.
    ///
    /// [`Mode::Normal`] restores the settings that the first change in this process found. Setting
    /// the current mode again does nothing.
    ///
    /// # Errors
    ///
    /// Any OS error of `tcgetattr` and `tcsetattr`; [`OutOfMemory`](io::ErrorKind::OutOfMemory) if
    /// 16 other terminals are in a changed mode.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::tty::{Mode, Tty};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut tty = Tty::from_fd(std::io::stdin())?;
    ///     tty.set_mode(Mode::Raw)?; // each key at once, without an echo
    ///     let mut key = [0; 8];
    ///     let length = tty.read(&mut key).await?;
    ///     println!("{:?}", &key[..length]);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_mode(&self, mode: Mode) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if mode == state.mode {
            return Ok(());
        }
        if mode == Mode::Normal {
            state.mode = mode;
            return state.change.take().map_or(Ok(()), Change::undo);
        }
        // The change is kept only if it could be applied; dropping it restores the settings.
        let change = match state.change.take() {
            Some(change) => change,
            None => Change::begin(self.source.borrow())?,
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     println!("{:?}, {:?}", tty.size()?, tty.mode());
    ///     tty.close_now().await; // the mode is as before
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state.borrow().mode
    }

    /// Returns the size of the window.
    ///
    /// # Errors
    ///
    /// Any OS error of `ioctl(TIOCGWINSZ)`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     println!("{:?}, {:?}", tty.size()?, tty.mode());
    ///     tty.close_now().await; // the mode is as before
    ///     Ok(())
    /// }
    /// ```
    pub fn size(&self) -> io::Result<Size> {
        Size::of(self)
    }

    /// Returns a stream of the sizes that the window takes from now on.
    ///
    /// # Errors
    ///
    /// Any OS error of starting a SIGWINCH listener, duplicating the descriptor or reading the
    /// size.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     let mut resizes = tty.resizes()?;
    ///     while let Some(size) = resizes.recv().await {
    ///         println!("{:?}", size?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn resizes(&self) -> io::Result<Resizes> {
        // The listener starts before the size is read, so that a change in between is not missed.
        let signals = Signals::new([SignalKind::WINCH])?;
        let terminal = self.as_fd().try_clone_to_owned()?;
        let last = Size::of(&terminal)?;
        Ok(Resizes {
            signals,
            terminal,
            last,
        })
    }

    /// Restores the mode and closes the terminal. The close completes in the closing phase; see
    /// [`Close`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     println!("{:?}, {:?}", tty.size()?, tty.mode());
    ///     tty.close_now().await; // the mode is as before
    ///     Ok(())
    /// }
    /// ```
    pub fn close_now(self) -> Close {
        drop(self.state);
        self.source.close()
    }
}

impl_async_read!(Tty);
impl_async_write!(Tty, |_tty| Ok(()), |_tty| Ok(()));

impl_handle!(Tty, |this| this.source.handle_core());

impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.borrow()
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

/// Restores the original settings of all terminals of the process, whatever the state of their
/// [`Tty`]s.
///
/// It is async-signal-safe, for signal handlers and panic hooks that end the process. A normal exit
/// calls it anyway.
///
/// # Errors
///
/// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if the call interrupts a change of mode; otherwise
/// the first OS error of `tcsetattr`.
///
/// # Examples
///
/// ```
/// use phaseloop::tty;
///
/// fn main() {
///     // In a panic hook: the terminal is usable again.
///     let _ = tty::reset_mode();
/// }
/// ```
pub fn reset_mode() -> io::Result<()> {
    terminal::restore_all()
}

/// The size of a terminal window, in characters.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::tty::{Size, Tty};
///
/// fn fits(size: Size, text: &str) -> bool {
///     text.lines().count() <= size.rows.into()
///         && text.lines().all(|line| line.len() <= size.columns.into())
/// }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let size = Tty::open()?.size()?;
///     println!("{size:?}: {}", fits(size, "one\ntwo"));
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Size {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

impl Size {
    /// Returns the size of the window of a terminal, without opening it as a [`Tty`].
    ///
    /// # Errors
    ///
    /// Any OS error of `ioctl(TIOCGWINSZ)`, such as `ENOTTY`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::tty::Size;
    ///
    /// fn main() {
    ///     let columns = Size::of(std::io::stdout()).map_or(80, |size| size.columns);
    ///     println!("{columns} columns");
    /// }
    /// ```
    pub fn of(terminal: impl AsFd) -> io::Result<Self> {
        let (columns, rows) = terminal::size(terminal.as_fd())?;
        Ok(Self { columns, rows })
    }
}

/// A stream of window sizes, returned by [`Tty::resizes`].
///
/// The kernel announces a resize by SIGWINCH to the foreground processes of the terminal. The
/// stream keeps the loop alive as [`Signals`] does. Several changes before a poll are reported as
/// one.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::tty::Tty;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let tty = Tty::open()?;
///     let mut resizes = tty.resizes()?;
///     while let Some(size) = resizes.recv().await {
///         let size = size?;
///         println!("{} x {}", size.columns, size.rows);
///     }
///     Ok(())
/// }
/// ```
pub struct Resizes {
    signals: Signals,
    terminal: OwnedFd,
    last: Size,
}

impl Resizes {
    /// Waits for a size that differs from the last one; `None` once the loop is dropped. It wakes
    /// in the poll phase.
    ///
    /// # Errors
    ///
    /// Any OS error of reading the size, such as `EIO` after a hang-up.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no resize.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     let mut resizes = tty.resizes()?;
    ///     while let Some(size) = resizes.recv().await {
    ///         println!("{:?}", size?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn recv(&mut self) -> Option<io::Result<Size>> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next size; the function behind [`recv`](Self::recv).
    ///
    /// # Errors
    ///
    /// The errors of [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use phaseloop::tty::Tty;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let tty = Tty::open()?;
    ///     let mut resizes = tty.resizes()?;
    ///     while let Some(size) = resizes.recv().await {
    ///         println!("{:?}", size?);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Size>>> {
        loop {
            if ready!(self.signals.poll_recv(cx)).is_none() {
                return Poll::Ready(None);
            }
            match Size::of(&self.terminal) {
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

impl_handle!(Resizes, |this| this.signals.handle_core());

impl fmt::Debug for Resizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resizes")
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}
