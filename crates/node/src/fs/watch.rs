//! Changes of files, as the system reports them.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::abort::{AbortController, AbortListener, AbortSignal};
use crate::callback_futures::{call_user, in_callbacks_as};
use crate::context::Node;
use crate::error::Error;
use crate::events::{ERROR, Emitter, Event, EventEmitter};
use crate::reason::throw;
use crate::stream::CLOSE;
use phaseloop::Handle as _;
use phaseloop::fs;
use phaseloop::task::next_tick;

/// A watched file, or an entry of a watched directory, has changed. JavaScript: `'change'` of
/// `fs.FSWatcher`.
pub const CHANGE: Event<WatchChange> = Event::new("change");

/// What has changed.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         fs::watch("src", |change| println!("{} {:?}", change.event_type, change.filename));
///     })
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchChange {
    /// `"rename"` if a name has appeared or disappeared, otherwise `"change"`.
    pub event_type: &'static str,
    /// The name of the entry, relative to the watched directory; of a watched file its own name.
    pub filename: OsString,
}

/// Options of [`watch_with`]. JavaScript: `{ persistent: true, recursive: false, signal }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::WatchOptions;
///
/// fn main() {
///     let all = WatchOptions { recursive: true, ..WatchOptions::default() };
///     assert!(all.persistent);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Whether the watcher keeps the loop alive.
    pub persistent: bool,
    /// Whether the directories below are watched too, also those that appear later. Each takes a
    /// watch of the system: on Linux `/proc/sys/fs/inotify/max_user_watches` is the limit, on macOS
    /// and the BSDs that of descriptors.
    pub recursive: bool,
    /// Closes the watcher when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            persistent: true,
            recursive: false,
            signal: None,
        }
    }
}

/// Watches a file, or a directory and its entries, and calls `listener` for each change.
/// JavaScript: `fs.watch(filename, listener)`.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](crate::throw) any OS error of the start, such as
/// `ENOENT`.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         fs::watch("settings.toml", |change| println!("{}", change.event_type));
///     })
/// }
/// ```
#[track_caller]
pub fn watch(path: impl AsRef<Path>, listener: impl Fn(&WatchChange) + 'static) -> FsWatcher {
    watch_with(path, WatchOptions::default(), listener)
}

/// Watches a file or a directory with options; see [`watch`]. JavaScript: `fs.watch(filename,
/// options, listener)`.
///
/// # Panics
///
/// See [`watch`].
#[track_caller]
pub fn watch_with(
    path: impl AsRef<Path>,
    options: WatchOptions,
    listener: impl Fn(&WatchChange) + 'static,
) -> FsWatcher {
    let inner = Rc::new(Inner {
        emitter: EventEmitter::of_class("FSWatcher"),
        root: path.as_ref().to_owned(),
        is_recursive: options.recursive,
        is_unreferenced: Cell::new(!options.persistent),
        closing: AbortController::new(),
        watchers: RefCell::default(),
        abort: RefCell::default(),
    });
    let this = FsWatcher { inner };
    Node::current().emitters.insert(&this.inner.emitter);
    this.on(CHANGE, listener);
    if let Err(error) = this.inner.clone().start(&this.inner.root) {
        throw(error);
    }
    if options.recursive {
        this.inner.add_below(&this.inner.root, false);
    }
    if let Some(signal) = options.signal {
        this.close_with(&signal);
    }
    this
}

/// Reports the changes of files; returned by [`watch`]. A clone is a handle to the same watcher.
/// JavaScript: `fs.FSWatcher`.
///
/// [`CHANGE`] is emitted in the poll phase, in a callback of its own for each change. The watcher
/// is held by its loop and keeps it alive until [`close`](Self::close), which emits [`CLOSE`] on
/// the next tick. If the system drops changes because its queue is full, the change
/// `"rename"` of the watched path itself stands for all of them.
///
/// # Examples
///
/// ```ignore-windows,ignore-apple,ignore-bsd
/// use phaseloop_node::{Emitter, Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let path = std::env::temp_dir().join(format!("phaseloop-watch-{}", std::process::id()));
///         fs::promises::mkdir(&path).await.unwrap();
///         let watcher = fs::watch(&path, |_| ());
///         watcher.on_this(fs::CHANGE, |watcher, change| {
///             assert_eq!(change.filename, "new");
///             watcher.close();
///         });
///         fs::promises::write_file(path.join("new"), "text").await.unwrap();
///         let options = fs::RmOptions { recursive: true, ..Default::default() };
///         fs::promises::rm(&path, options).await.unwrap();
///     })
/// }
/// ```
#[derive(Clone)]
pub struct FsWatcher {
    inner: Rc<Inner>,
}

struct Inner {
    emitter: EventEmitter,
    root: PathBuf,
    is_recursive: bool,
    is_unreferenced: Cell<bool>,
    /// Ends the futures that receive the changes.
    closing: AbortController,
    /// What the system watches: the path, and with `recursive` all directories below.
    watchers: RefCell<Vec<Rc<RefCell<fs::Watcher>>>>,
    /// The signal that closes the watcher, and its listener.
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
}

impl FsWatcher {
    /// Stops watching. [`CLOSE`] is emitted on the next tick. A second call has no effect.
    /// JavaScript: `watcher.close()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn close(&self) {
        if self.inner.closing.signal().aborted() {
            return;
        }
        let abort = self.inner.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
        let watchers = self.inner.watchers.take();
        drop(watchers);
        self.inner.closing.abort();
        let this = self.clone();
        next_tick(move || this.inner.emitter.emit_last(CLOSE));
    }

    /// Lets the loop end while the watcher is open. JavaScript: `watcher.unref()`.
    pub fn unref(&self) {
        self.inner.set_referenced(false);
    }

    /// Makes the watcher keep the loop alive, which is the default. JavaScript: `watcher.ref()`.
    pub fn ref_(&self) {
        self.inner.set_referenced(true);
    }

    fn close_with(&self, signal: &AbortSignal) {
        if signal.aborted() {
            let this = self.clone();
            return next_tick(move || this.close());
        }
        // Weak, because the signal may outlive many watchers.
        let inner = Rc::downgrade(&self.inner);
        let listener = signal.on_abort(move || {
            if let Some(inner) = inner.upgrade() {
                Self { inner }.close();
            }
        });
        self.inner.abort.replace(Some((signal.clone(), listener)));
    }
}

impl Inner {
    fn set_referenced(&self, is_referenced: bool) {
        self.is_unreferenced.set(!is_referenced);
        for watcher in &*self.watchers.borrow() {
            match is_referenced {
                true => watcher.borrow().ref_(),
                false => watcher.borrow().unref(),
            }
        }
    }

    /// Watches one path, until it is gone or the watcher is closed.
    #[track_caller]
    fn start(self: Rc<Self>, path: &Path) -> Result<(), Error> {
        let watcher = fs::watch(path)?;
        if self.is_unreferenced.get() {
            watcher.unref();
        }
        let watcher = Rc::new(RefCell::new(watcher));
        self.watchers.borrow_mut().push(watcher.clone());
        let (signal, path) = (self.closing.signal(), path.to_owned());
        in_callbacks_as("FSEVENTWRAP", async move {
            let receiving = signal.clone().guard(async {
                let next = async || poll_fn(|cx| watcher.borrow_mut().poll_recv(cx)).await;
                while let Some(event) = next().await {
                    if signal.aborted() {
                        return;
                    }
                    self.report(&path, &event);
                }
                self.watchers
                    .borrow_mut()
                    .retain(|known| !Rc::ptr_eq(known, &watcher));
            });
            // An abort says that the watcher was closed.
            drop(receiving.await);
        });
        Ok(())
    }

    fn report(self: &Rc<Self>, watched: &Path, event: &fs::WatchEvent) {
        if watched != self.root && event.path == watched {
            // The directory above reports it as an entry.
            return;
        }
        let event_type = if event.kind.is_change() {
            "change"
        } else {
            "rename"
        };
        self.emit(event_type, &event.path);
        let has_appeared = matches!(
            event.kind,
            fs::WatchKind::Created | fs::WatchKind::MovedTo(_)
        );
        if self.is_recursive && event.is_directory && has_appeared {
            let is_watched = self.clone().start(&event.path);
            match is_watched {
                Ok(()) => self.add_below(&event.path, true),
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Watches the directories below one. What is in a new directory has appeared before its watch.
    #[track_caller]
    fn add_below(self: &Rc<Self>, directory: &Path, is_new: bool) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            // It is no directory, or gone already.
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if is_new {
                self.emit("rename", &path);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                match self.clone().start(&path) {
                    Ok(()) => self.add_below(&path, is_new),
                    Err(error) => self.fail(&error),
                }
            }
        }
    }

    fn emit(&self, event_type: &'static str, path: &Path) {
        if self.closing.signal().aborted() {
            return;
        }
        let relative = path.strip_prefix(&self.root).ok();
        let relative = relative.filter(|relative| !relative.as_os_str().is_empty());
        let name = relative
            .map(Path::as_os_str)
            .or_else(|| self.root.file_name());
        let change = WatchChange {
            event_type,
            filename: name.unwrap_or_default().to_owned(),
        };
        call_user(|| self.emitter.emit(CHANGE, &change));
    }

    /// Reports a directory that cannot be watched. One that is gone again needs no watch.
    fn fail(&self, error: &Error) {
        let is_gone = error.as_io().map(io::Error::kind) == Some(io::ErrorKind::NotFound);
        if !is_gone && !self.closing.signal().aborted() {
            call_user(|| self.emitter.emit(ERROR, error));
        }
    }
}

impl Emitter for FsWatcher {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

crate::weak_this!(FsWatcher { inner });

impl fmt::Debug for FsWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsWatcher")
            .field("path", &self.inner.root)
            .field("is_recursive", &self.inner.is_recursive)
            .finish_non_exhaustive()
    }
}
