//! Watching a path by comparing its metadata at an interval.
//!
//! ```text
//!   watch_poll ──> looking ──> compared ── no change ──> resting ── next grid point ──> looking
//!                                 └── change ──> event ──────^
//! ```

use std::cell::RefCell;
use std::fmt;
use std::fs::Metadata;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures::Stream;

use crate::blocking::Work;
use crate::clock::nanoseconds;
use crate::error::OsError;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::Owner;
use crate::event_loop::ledger::jobs::Purpose;
use crate::keeper::Keeper;
use crate::label::Label;
use crate::pool::Class;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::sys::errno::Meaning;
use crate::time::Sleep;

/// The interval used in place of zero.
const SHORTEST: u64 = 1_000_000;

/// Watches a path on the running loop by reading its metadata every `interval`; see
/// [`PollWatcher`].
///
/// An interval of zero counts as a millisecond.
///
/// # Errors
///
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if the pool has no thread and cannot start one. An
/// error of the path itself is an event.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("settings.toml");
///     let mut watcher = fs::watch_poll(&path, Duration::from_millis(5))?;
///     let event = watcher.recv().await.unwrap();
///     assert_eq!(event.current.unwrap_err().kind(), std::io::ErrorKind::NotFound);
///     fs::write(&path, "hello").await?;
///     let event = watcher.recv().await.unwrap();
///     assert!(event.previous.is_none());
///     assert!(event.current.is_ok());
///     fs::remove_dir_all(folder).await
/// }
/// ```
#[track_caller]
#[doc(alias = "uv_fs_poll_t")]
#[doc(alias = "watchFile")]
pub fn watch_poll(path: impl AsRef<Path>, interval: Duration) -> io::Result<PollWatcher> {
    PollWatcher::new_on(&LoopHandle::current(), path, interval)
}

/// A stream of changes at a path, found by reading its metadata at an interval.
///
/// Use it for file systems without change notifications, such as network file systems, and for
/// names whose file comes and goes. Where [`watch`](super::watch) works, it is cheaper and sees
/// more.
///
/// The first check is made at once. Further checks follow on a fixed grid of the interval, however
/// long a check takes; a check that takes longer skips points of the grid, so that checks never
/// overlap. Each check is a job of the pool (class [`Fs`](Class::Fs)) and follows symbolic links.
/// From the second check on, checks are made only while a task waits for events: a late receiver
/// gets all changes since the last check as one.
///
/// There is an event when
/// - a check fails with another error than the previous one, or the first check fails;
/// - a check succeeds after a failed one;
/// - size, times, owner, permissions or identity of the file have changed since the previous check.
///
/// A watcher keeps the loop alive, unless unref'd, until it is closed or dropped. A check in flight
/// keeps the loop alive in any case.
///
/// # Cancel safety
///
/// Dropping the future of [`recv`](Self::recv) loses no event.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let missing = std::env::temp_dir().join("doc-missing");
///     let mut watcher = fs::watch_poll(&missing, Duration::from_millis(100))?;
///     assert!(watcher.recv().await.unwrap().current.is_err());
///     Ok(())
/// }
/// ```
pub struct PollWatcher {
    core: HandleCore,
    receiver: Rc<Receiver>,
    path: PathBuf,
    /// In nanoseconds; never zero.
    interval: u64,
    state: State,
    seen: Seen,
    /// The metadata of the last successful check.
    previous: Option<Metadata>,
}

/// The waker of the waiting task: a close ends the wait.
#[derive(Default)]
struct Receiver {
    /// What reports name the watcher by.
    path: PathBuf,
    waker: RefCell<Option<Waker>>,
}

impl Owner for Receiver {
    #[inline]
    fn label(&self, _: &Core) -> Option<Label> {
        let path = self.path.to_string_lossy();
        Some(Label::new(Keeper::Watch.text(), path))
    }

    #[inline]
    fn stop_for_good(&self, _: &Core) {}

    #[inline]
    fn take_waiters(&self) -> Vec<Waker> {
        Vec::from_iter(self.waker.take())
    }
}

enum State {
    /// With the time at which the check began.
    Looking(u64, Work<io::Result<Metadata>>),
    Resting(Sleep),
    Closed,
}

/// The outcome of the last check.
#[derive(PartialEq, Eq)]
enum Seen {
    Nothing,
    File,
    Failure(Meaning),
}

/// A change that a [`PollWatcher`] reports.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut changes = fs::watch_poll("settings.toml", Duration::from_secs(5))?;
///     while let Some(change) = changes.recv().await {
///         match change.current {
///             Ok(metadata) => println!("{} bytes", metadata.len()),
///             Err(error) => println!("not readable: {error}"),
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct PollEvent {
    /// The metadata of the last successful check before this one.
    pub previous: Option<Metadata>,
    /// The current metadata, or the error of reading it.
    pub current: io::Result<Metadata>,
}

impl PollWatcher {
    /// Watches a path on the given loop, as [`watch_poll`] does on the running one.
    ///
    /// # Errors
    ///
    /// The errors of [`watch_poll`]; an error with [`Error`](crate::Error) as its source if the
    /// loop was dropped.
    #[track_caller]
    pub fn new_on(
        handle: &LoopHandle,
        path: impl AsRef<Path>,
        interval: Duration,
    ) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let now = handle.core().executor.clock.read();
        let site = Location::caller();
        let state = State::Looking(now, look(handle, &path, site)?);
        let core = handle.open(Keeper::Watch, site);
        handle.core().set_active(&core.header, true);
        let receiver = Rc::new(Receiver {
            path: path.clone(),
            ..Receiver::default()
        });
        core.header.belongs_to(&receiver);
        Ok(Self {
            core,
            receiver,
            path,
            interval: match nanoseconds(interval) {
                0 => SHORTEST,
                interval => interval,
            },
            state,
            seen: Seen::Nothing,
            previous: None,
        })
    }

    /// The watched path, as it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut watcher = fs::watch_poll("Cargo.toml", Duration::from_secs(5))?;
    ///     assert_eq!(watcher.path(), std::path::Path::new("Cargo.toml"));
    ///     watcher.close().await;
    ///     assert!(watcher.recv().await.is_none());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next event. `None`: the watcher was closed, or the loop was dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut watcher = fs::watch_poll(folder.join("file"), Duration::from_millis(5))?;
    ///     assert!(watcher.recv().await.unwrap().current.is_err(), "it does not exist");
    ///     fs::write(folder.join("file"), "text").await?;
    ///     assert!(watcher.recv().await.unwrap().current.is_ok());
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn recv(&mut self) -> Option<PollEvent> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next event; the function behind [`recv`](Self::recv).
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<PollEvent>> {
        let handle = self.core.handle.clone();
        let before = self.receiver.waker.replace(Some(cx.waker().clone()));
        drop(before);
        while !handle.is_closed() && !self.is_closing() {
            let (since, found) = match &mut self.state {
                State::Closed => break,
                State::Looking(since, work) => (*since, ready!(Pin::new(work).poll(cx))),
                State::Resting(sleep) => {
                    ready!(Pin::new(sleep).poll(cx));
                    let now = handle.core().executor.clock.now();
                    match look(&handle, &self.path, self.created_at()) {
                        Ok(work) => {
                            self.state = State::Looking(now, work);
                            continue;
                        }
                        Err(error) => (now, Err(error)),
                    }
                }
            };
            let next = next_point(since, self.interval, handle.core().executor.clock.now());
            self.state =
                State::Resting(Sleep::new(handle.clone(), next, self.created_at()).unref());
            if let Some(event) = self.compare(found) {
                return Poll::Ready(Some(event));
            }
        }
        Poll::Ready(None)
    }

    /// Compares a check with the previous one, and returns an event if they differ.
    #[inline]
    fn compare(&mut self, found: io::Result<Metadata>) -> Option<PollEvent> {
        let seen = match &found {
            Ok(_) => Seen::File,
            Err(error) => Seen::Failure(Meaning::of(error)),
        };
        let before = std::mem::replace(&mut self.seen, seen);
        let previous = self.previous.clone();
        let is_new = match (&found, &previous) {
            (Ok(current), Some(previous)) if before == Seen::File => {
                !sys::fs::is_unchanged(previous, current)
            }
            (Ok(_), _) => before != Seen::Nothing,
            (Err(_), _) => before != self.seen,
        };
        if let Ok(current) = &found {
            self.previous = Some(current.clone());
        }
        is_new.then(|| PollEvent {
            previous,
            current: found.map_err(|error| OsError::wrap(error, "watch_poll", self.path.clone())),
        })
    }

    /// Stops watching at once, even with a check in flight. The close completes in the closing
    /// phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut watcher = fs::watch_poll("Cargo.toml", Duration::from_secs(5))?;
    ///     assert_eq!(watcher.path(), std::path::Path::new("Cargo.toml"));
    ///     watcher.close().await;
    ///     assert!(watcher.recv().await.is_none());
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn close(&mut self) -> Close {
        self.state = State::Closed;
        self.core.close()
    }
}

/// Starts a check of a path.
#[inline]
fn look(handle: &LoopHandle, path: &Path, site: Site) -> io::Result<Work<io::Result<Metadata>>> {
    let path = path.to_owned();
    let purpose = Purpose::new(Class::Fs, "watch_poll").at(site);
    Work::submit(handle, purpose, move || std::fs::metadata(path))
}

/// The first point after `now` on the grid that begins at `start`.
#[inline]
fn next_point(start: u64, interval: u64, now: u64) -> u64 {
    let over = now.saturating_sub(start) % interval;
    now.saturating_add(interval - over)
}

impl Stream for PollWatcher {
    type Item = PollEvent;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PollEvent>> {
        self.poll_recv(cx)
    }
}

impl_handle!(PollWatcher, |this| &this.core);

impl fmt::Debug for PollWatcher {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollWatcher")
            .field("path", &self.path)
            .field("interval", &Duration::from_nanos(self.interval))
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::next_point;

    #[test]
    fn r314_the_grid_is_kept_however_long_a_look_takes() {
        assert_eq!(next_point(100, 10, 100), 110);
        assert_eq!(next_point(100, 10, 103), 110);
        assert_eq!(next_point(100, 10, 110), 120, "a whole point is left out");
        assert_eq!(next_point(100, 10, 127), 130);
        assert_eq!(next_point(0, u64::MAX, 5), u64::MAX);
    }
}
