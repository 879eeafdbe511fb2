//! Watching files and directories by the kernel's notices.
//!
//! ```text
//!   watch ──> watching ── notice, in the poll phase ──> kept ── recv ──> yours
//!                └── close, or the watched thing is gone ──> the end
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::error::{Error as Refusal, OsError};
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::event_loop::watches::Watch;
use crate::kinds::Kind;
use crate::sys::watch::Notice;
pub use crate::sys::watch::WatchKind;

/// Watches a file, or a directory and what is directly in it, on the running loop; see [`Watcher`].
///
/// The path is looked up in the call itself: what happens after it has returned is not missed.
///
/// # Errors
///
/// Those of the system: [`NotFound`](io::ErrorKind::NotFound), [`PermissionDenied`](io::ErrorKind::PermissionDenied);
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a path with a zero byte;
/// [`StorageFull`](io::ErrorKind::StorageFull) or "too many open files" when one of the user's limits in
/// `/proc/sys/fs/inotify` is reached. [`Unsupported`](io::ErrorKind::Unsupported) on other systems than Linux, where
/// [`watch_poll`](super::watch_poll) can be used.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// # #[cfg(target_os = "linux")]
/// # fn main() -> std::io::Result<()> {
/// use phaseloop::fs::{self, WatchKind};
///
/// # let directory = std::env::temp_dir().join(format!("phaseloop-watch-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// phaseloop::block_on(async {
///     let mut watcher = fs::watch(&directory)?;
///     std::fs::write(directory.join("new"), "text")?;
///     let event = watcher.recv().await.unwrap();
///     assert_eq!(event.kind, WatchKind::Created);
///     assert_eq!(event.path, directory.join("new"));
/// #   std::fs::remove_dir_all(&directory)?;
///     Ok(())
/// })
/// # }
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// ```
#[track_caller]
pub fn watch(path: impl AsRef<Path>) -> io::Result<Watcher> {
    Watcher::new_on(&LoopHandle::current(), path)
}

/// A stream of what happens to a file, or to a directory and its entries.
///
/// Events arrive in the poll phase, behind the I/O of its batch, in the order in which they happened. Several watchers may
/// watch the same thing: each event goes to all of them, in the order in which they were made, as callbacks of their own.
/// A watcher that is made while another one watches the same thing may also get what had happened just before.
///
/// It keeps the loop alive, unless unref'd, until it is closed or dropped, or what it watches is gone: then the stream
/// ends. What happens while nobody receives is kept, up to some thousand events; beyond that, and when the kernel's own
/// queue overflows, [`WatchKind::Overflow`] takes the place of what is lost.
///
/// # What is watched
///
/// A file, not a name. A file that is renamed is still watched; [`WatchEvent::path`] goes on with the old name. One that is
/// replaced, as many editors do when they save, is gone: the new file is another one. To follow a name, watch the directory
/// it is in and look for the name in the events: it survives everything but the removal of the directory.
///
/// Directories are watched without those inside of them. Symbolic links are followed when the watch begins.
///
/// # Cancel safety
///
/// Giving up a [`recv`](Self::recv) loses no event.
pub struct Watcher {
    core: HandleCore,
    watch: Rc<Watch>,
    path: PathBuf,
}

/// What has happened to what a [`Watcher`] watches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchEvent {
    /// What it was.
    pub kind: WatchKind,
    /// To what: the path that is watched, with the name of the entry if it is about one.
    pub path: PathBuf,
    /// Whether that is a directory, where the kernel says so: of entries of a watched directory.
    pub is_directory: bool,
}

impl WatchEvent {
    /// The name of the entry, or of the watched thing itself.
    #[must_use]
    pub fn name(&self) -> Option<&OsStr> {
        self.path.file_name()
    }
}

impl Watcher {
    /// As [`watch`], on a loop.
    ///
    /// # Errors
    ///
    /// As [`watch`]; the loop's refusal, when it is gone.
    #[track_caller]
    pub fn new_on(handle: &LoopHandle, path: impl AsRef<Path>) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Refusal::LOOP_CLOSED));
        }
        let path = path.as_ref().to_owned();
        let core = handle.open(Kind::Watch, Location::caller());
        // Dropped with an error, it leaves the loop as it was.
        let watcher = Self {
            watch: Watch::new(core.header.clone()),
            core,
            path,
        };
        let loop_core = handle.core();
        let watches = &loop_core.late.parts().watches;
        watches
            .start(&loop_core.poller, &watcher.watch, &watcher.path)
            .map_err(|error| OsError::wrap(error, "watch", watcher.path.clone()))?;
        loop_core.set_active(&watcher.core.header, true);
        Ok(watcher)
    }

    /// The path that is watched, as it was given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next event. `None`: what was watched is gone, or the watcher was closed.
    pub async fn recv(&mut self) -> Option<WatchEvent> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The poll function of [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        let received = self.watch.poll_next(cx);
        received.map(|notice| notice.and_then(|notice| self.event(notice)))
    }

    fn event(&self, notice: Notice) -> Option<WatchEvent> {
        Some(WatchEvent {
            kind: notice.kind?,
            path: match notice.name {
                Some(name) => self.path.join(name),
                None => self.path.clone(),
            },
            is_directory: notice.is_directory,
        })
    }

    /// Stops watching at once, drops what was not received, and has it reported in the closing phase; see [`Close`].
    pub fn close(&self) -> Close {
        self.core.close(|| self.shut())
    }

    fn shut(&self) {
        let core = self.core.handle.core();
        core.late.parts().watches.stop(&self.watch);
        core.set_active(&self.core.header, false);
    }
}

impl Stream for Watcher {
    type Item = WatchEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        self.poll_recv(cx)
    }
}

impl Handle for Watcher {}

impl sealed::Sealed for Watcher {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.core.release(|| self.shut());
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("path", &self.path)
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
