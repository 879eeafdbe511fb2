//! Watching files and directories through kernel notifications.
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

use futures::Stream;

use super::watches::Watch;
use crate::error::{Error as Refusal, OsError};
use crate::keeper::Keeper;
pub use crate::kinds::WatchKind;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::sys::watch::Notice;

/// Watches a file, or a directory and its direct entries, on the running loop; see [`Watcher`].
///
/// The path is resolved in the call itself: no change after its return is missed.
///
/// # Errors
///
/// Any OS error of `inotify_add_watch`, such as [`NotFound`](io::ErrorKind::NotFound) and
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied);
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a path that contains a zero byte;
/// [`StorageFull`](io::ErrorKind::StorageFull) or "too many open files" when one of the user's
/// limits in `/proc/sys/fs/inotify` is reached. On macOS and the BSDs, any OS error of `open` and
/// `kevent`; on Windows, of `CreateFile` and `ReadDirectoryChangesW`.
/// [`Unsupported`](io::ErrorKind::Unsupported) on platforms without notifications: use
/// [`watch_poll`](super::watch_poll) there.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```ignore-windows,ignore-apple,ignore-bsd
/// use phaseloop::fs::{self, WatchKind};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let directory = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let mut watcher = fs::watch(&directory)?;
///     std::fs::write(directory.join("new"), "text")?;
///     let event = watcher.recv().await.unwrap();
///     assert_eq!(event.kind, WatchKind::Created);
///     assert_eq!(event.path, directory.join("new"));
///     std::fs::remove_dir_all(&directory)?;
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "uv_fs_event_t")]
#[doc(alias = "inotify")]
#[doc(alias = "notify")]
pub fn watch(path: impl AsRef<Path>) -> io::Result<Watcher> {
    Watcher::new_on(&LoopHandle::current(), path)
}

/// A stream of changes to a file, or to a directory and its entries.
///
/// Events arrive in the poll phase, after the I/O of its batch, in the order in which they
/// happened. Several watchers may watch one file: each event goes to all of them, in the order of
/// their creation, each as a callback of its own. A watcher that is created while another one
/// watches the same file may also receive events from shortly before.
///
/// A watcher keeps the loop alive, unless unref'd, until it is closed or dropped, or until the
/// watched file is gone, which ends the stream. Events are buffered while no task receives them, up
/// to some thousand. Beyond that, and when the kernel's queue overflows, [`WatchKind::Overflow`]
/// takes the place of the lost events.
///
/// # Scope
///
/// A watcher follows a file, not a name. A renamed file is still watched, and [`WatchEvent::path`]
/// keeps the old name. A file that is replaced, as many editors do when they save, is gone: the new
/// file is a different one. To follow a name, watch its directory and compare names in the events.
/// That works until the directory itself is removed.
///
/// Subdirectories are not watched. Symbolic links are followed when the watch begins.
///
/// # macOS and the BSDs
///
/// Each watched file or directory takes an open descriptor. The kernel (`EVFILT_VNODE`) reports
/// that the entries of a directory have changed, not which: they are read again and compared. So
/// changes that undo each other quickly are not reported, and a change of the content or the
/// attributes of an entry is not reported either: watch the file itself.
///
/// # Windows
///
/// The OS does not distinguish a change of attributes from one of the content: both are
/// [`Modified`](WatchKind::Modified). Nor does it report whether an entry that is gone was a
/// directory, and that a watched directory was renamed. A file is watched by its name in its
/// directory: it is followed to another name there, and one that is moved to another directory
/// counts as removed.
///
/// # Cancel safety
///
/// Dropping the future of [`recv`](Self::recv) loses no event.
///
/// # Examples
///
/// ```ignore-windows,ignore-apple,ignore-bsd
/// use phaseloop::fs::{self, WatchKind};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let mut watcher = fs::watch(&folder)?;
///     fs::create_dir(folder.join("new")).await?;
///     let event = watcher.recv().await.unwrap();
///     assert_eq!(event.kind, WatchKind::Created);
///     assert_eq!(event.path, folder.join("new"));
///     fs::remove_dir_all(folder).await
/// }
/// ```
pub struct Watcher {
    core: HandleCore,
    watch: Bound<Rc<Watch>>,
    path: PathBuf,
}

/// A change that a [`Watcher`] reports.
///
/// # Examples
///
/// ```ignore-windows,ignore-apple,ignore-bsd
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let directory = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let mut changes = fs::watch(&directory)?;
///     fs::write(directory.join("new"), "text").await?;
///     let change = changes.recv().await.expect("the watcher is open");
///     assert_eq!(change.name(), Some("new".as_ref()));
///     assert!(!change.is_directory);
///     fs::remove_dir_all(&directory).await
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchEvent {
    /// The kind of change.
    pub kind: WatchKind,
    /// The watched path, joined with the name of the entry if the change concerns one.
    pub path: PathBuf,
    /// Whether the changed entry is a directory. The kernel reports it for entries of a watched
    /// directory only.
    pub is_directory: bool,
}

impl WatchEvent {
    /// The file name of the changed entry, or of the watched path.
    ///
    /// # Examples
    ///
    /// ```ignore-windows,ignore-apple,ignore-bsd
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut watcher = fs::watch(&folder)?;
    ///     assert_eq!(watcher.path(), folder);
    ///     fs::write(folder.join("new"), "text").await?;
    ///     let event = watcher.recv().await.unwrap();
    ///     assert_eq!(event.name(), Some("new".as_ref()));
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&OsStr> {
        self.path.file_name()
    }
}

impl Watcher {
    /// Watches a path on the given loop, as [`watch`] does on the running one.
    ///
    /// # Errors
    ///
    /// The errors of [`watch`]; an error with [`Error`](crate::Error) as its source if the loop was
    /// dropped.
    #[track_caller]
    pub fn new_on(handle: &LoopHandle, path: impl AsRef<Path>) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Refusal::LOOP_CLOSED));
        }
        let path = path.as_ref().to_owned();
        let core = handle.open(Keeper::Watch, Location::caller());
        // If starting fails, dropping the watcher removes its handle again.
        let watcher = Self {
            watch: Bound::new(Watch::new(core.header.clone())),
            core,
            path,
        };
        let loop_core = handle.core();
        loop_core
            .start_watch(&watcher.watch, &watcher.path)
            .map_err(|error| OsError::wrap(error, "watch", watcher.path.clone()))?;
        loop_core.set_active(&watcher.core.header, true);
        Ok(watcher)
    }

    /// The watched path, as it was given.
    ///
    /// # Examples
    ///
    /// ```ignore-windows,ignore-apple,ignore-bsd
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut watcher = fs::watch(&folder)?;
    ///     assert_eq!(watcher.path(), folder);
    ///     fs::write(folder.join("new"), "text").await?;
    ///     let event = watcher.recv().await.unwrap();
    ///     assert_eq!(event.name(), Some("new".as_ref()));
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next event. `None`: the watched file is gone, or the watcher was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    ///
    /// # Examples
    ///
    /// ```ignore-windows,ignore-apple,ignore-bsd
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut watcher = fs::watch(&folder)?;
    ///     assert_eq!(watcher.path(), folder);
    ///     fs::write(folder.join("new"), "text").await?;
    ///     let event = watcher.recv().await.unwrap();
    ///     assert_eq!(event.name(), Some("new".as_ref()));
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn recv(&mut self) -> Option<WatchEvent> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next event; the function behind [`recv`](Self::recv).
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

    /// Stops watching at once and discards unreceived events. The close completes in the closing
    /// phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut watcher = fs::watch("src")?;
    ///     watcher.close().await;
    ///     assert_eq!(watcher.recv().await, None);
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }
}

impl Stream for Watcher {
    type Item = WatchEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        self.poll_recv(cx)
    }
}

impl_handle!(Watcher, |this| &this.core);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("path", &self.path)
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
