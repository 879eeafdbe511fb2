//! Changes of files, found by looking at them again and again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::stats::Stats;
use crate::abort::AbortController;
use crate::callback_futures::{call_user, in_callbacks_as};
use crate::context::Node;
use crate::delay::Delay;
use crate::events::{Emitter, Event, EventEmitter};
use crate::reason::throw;
use phaseloop::Handle as _;
use phaseloop::fs::{self, PollWatcher};

/// A watched file has changed: the stats now, and those before. JavaScript: `'change'` of
/// `fs.StatWatcher`.
pub const STAT_CHANGE: Event<(Stats, Stats)> = Event::new("change");

/// The time between two looks, if none is given. Node's default.
const INTERVAL: u32 = 5007;

/// Options of [`watch_file_with`]. JavaScript: `{ persistent: true, interval: 5007 }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fs::WatchFileOptions;
///
/// fn main() {
///     let often = WatchFileOptions { interval: 100.into(), ..WatchFileOptions::default() };
///     assert!(often.persistent);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WatchFileOptions {
    /// Whether the watcher keeps the loop alive.
    pub persistent: bool,
    /// The time between two looks.
    pub interval: Delay,
}

impl Default for WatchFileOptions {
    fn default() -> Self {
        Self {
            persistent: true,
            interval: Delay::from(INTERVAL),
        }
    }
}

/// Looks at a file every five seconds, and calls `listener` with its stats and those before if they
/// differ. JavaScript: `fs.watchFile(filename, listener)`.
///
/// [`watch`](super::watch()) is quicker and costs less, where it works: not on network file
/// systems. The listener is called in the poll phase. A file that does not exist is reported once,
/// with stats that are all zero. All listeners of a path share one watcher, with the options of
/// the first, until [`unwatch_file`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         fs::watch_file("settings.toml", |now, before| {
///             println!("{} bytes, before {}", now.size(), before.size());
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn watch_file(
    path: impl AsRef<Path>,
    listener: impl Fn(&Stats, &Stats) + 'static,
) -> StatWatcher {
    watch_file_with(path, WatchFileOptions::default(), listener)
}

/// Looks at a file with options; see [`watch_file`]. JavaScript: `fs.watchFile(filename, options,
/// listener)`.
///
/// # Panics
///
/// See [`watch_file`].
#[track_caller]
pub fn watch_file_with(
    path: impl AsRef<Path>,
    options: WatchFileOptions,
    listener: impl Fn(&Stats, &Stats) + 'static,
) -> StatWatcher {
    let path = absolute(path.as_ref());
    let node = Node::current();
    let known = node.stat_watchers.0.borrow().get(&path).cloned();
    let watcher = known.unwrap_or_else(|| StatWatcher::start(&path, options));
    watcher.on(STAT_CHANGE, move |(now, before)| listener(now, before));
    watcher
}

/// Stops looking at a file for all its listeners. A file that is not watched is left unchanged.
/// JavaScript: `fs.unwatchFile(filename)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         fs::watch_file("Cargo.toml", |_, _| ());
///         fs::unwatch_file("Cargo.toml");
///     })
/// }
/// ```
pub fn unwatch_file(path: impl AsRef<Path>) {
    let path = absolute(path.as_ref());
    let watcher = Node::current().stat_watchers.0.borrow_mut().remove(&path);
    if let Some(watcher) = watcher {
        watcher.inner.stop();
    }
}

fn absolute(path: &Path) -> PathBuf {
    // Without a current directory, the path as it is names the watcher.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The watchers of one loop, by their paths.
#[derive(Default)]
pub(crate) struct StatWatchers(RefCell<HashMap<PathBuf, StatWatcher>>);

impl StatWatchers {
    pub(crate) fn shut_down(&self) {
        let watchers = self.0.take();
        for watcher in watchers.into_values() {
            watcher.inner.stop();
        }
    }
}

/// Looks at one file; returned by [`watch_file`]. A clone is a handle to the same watcher.
/// JavaScript: `fs.StatWatcher`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let watcher = fs::watch_file("Cargo.toml", |_, _| ());
///         watcher.unref(); // the loop may end
///     })
/// }
/// ```
#[derive(Clone)]
pub struct StatWatcher {
    inner: Rc<Inner>,
}

struct Inner {
    emitter: EventEmitter,
    path: PathBuf,
    watcher: Rc<RefCell<Option<PollWatcher>>>,
    closing: AbortController,
}

impl StatWatcher {
    #[track_caller]
    fn start(path: &Path, options: WatchFileOptions) -> Self {
        let interval = Duration::from_millis(options.interval.as_millis().into());
        let watcher = match fs::watch_poll(path, interval) {
            Ok(watcher) => watcher,
            Err(error) => throw(error),
        };
        if !options.persistent {
            watcher.unref();
        }
        let this = Self {
            inner: Rc::new(Inner {
                emitter: EventEmitter::of_class("StatWatcher"),
                path: path.to_owned(),
                watcher: Rc::new(RefCell::new(Some(watcher))),
                closing: AbortController::new(),
            }),
        };
        let node = Node::current();
        node.emitters.insert(&this.inner.emitter);
        node.stat_watchers
            .0
            .borrow_mut()
            .insert(path.to_owned(), this.clone());
        this.run();
        this
    }

    fn run(&self) {
        let (inner, watcher) = (self.inner.clone(), self.inner.watcher.clone());
        let signal = inner.closing.signal();
        in_callbacks_as("STATWATCHER", async move {
            let receiving = signal.clone().guard(async {
                let next = async || {
                    poll_fn(|cx| match &mut *watcher.borrow_mut() {
                        Some(watcher) => watcher.poll_recv(cx),
                        None => std::task::Poll::Ready(None),
                    })
                    .await
                };
                while let Some(event) = next().await {
                    if signal.aborted() {
                        return;
                    }
                    let before = event.previous.map_or(Stats::ZERO, Stats::from);
                    let now = event.current.map_or(Stats::ZERO, Stats::from);
                    call_user(|| inner.emitter.emit(STAT_CHANGE, (now, before)));
                }
            });
            // An abort says that the watcher was stopped.
            drop(receiving.await);
        });
    }

    /// Lets the loop end while the file is watched. JavaScript: `watcher.unref()`.
    pub fn unref(&self) {
        if let Some(watcher) = &*self.inner.watcher.borrow() {
            watcher.unref();
        }
    }

    /// Makes the watcher keep the loop alive, which is the default. JavaScript: `watcher.ref()`.
    pub fn ref_(&self) {
        if let Some(watcher) = &*self.inner.watcher.borrow() {
            watcher.ref_();
        }
    }
}

impl Inner {
    fn stop(&self) {
        self.closing.abort();
        let watcher = self.watcher.take();
        drop(watcher);
        self.emitter.clear();
    }
}

impl Emitter for StatWatcher {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

crate::weak_this!(StatWatcher { inner });

impl fmt::Debug for StatWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StatWatcher")
            .field(&self.inner.path)
            .finish()
    }
}
