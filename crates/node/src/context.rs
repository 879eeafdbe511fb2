//! The state that this module keeps for each loop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::async_hooks::Hooks;
use super::callback_futures::CallbackFutures;
use super::diagnostics_channel::Channels;
use super::events::OpenEmitters;
use super::fs::StatWatchers;
use super::http::HttpState;
use super::net::ReadBuffer;
use super::perf_hooks::{Observers, Timeline};
use super::process::ProcessState;
use super::rejections::Rejections;
use super::report_lines::ReportLines;
use super::stream::Links;
use super::timers::TimerLists;
use super::worker_threads::Environment;
use phaseloop::LoopHandle;
use phaseloop::extension::Loop;
use phaseloop::extension::{Extension, NamedWaits, Waiting, WeakLoop};

/// The Node state of one loop.
pub(super) struct Node {
    core: WeakLoop,
    pub(super) timers: TimerLists,
    pub(super) process: ProcessState,
    pub(super) callbacks: CallbackFutures,
    pub(super) rejections: Rejections,
    pub(super) links: Links,
    pub(super) emitters: OpenEmitters,
    pub(super) read_buffer: ReadBuffer,
    pub(super) http: HttpState,
    pub(super) stat_watchers: StatWatchers,
    pub(super) environment: Environment,
    pub(super) hooks: RefCell<Option<Rc<Hooks>>>,
    /// The id of the promise of the async function that runs, if hooks are in use.
    pub(super) function: Cell<Option<u64>>,
    pub(super) timeline: Timeline,
    pub(super) observers: Observers,
    pub(super) channels: Channels,
    /// What programs in another language wait for.
    pub(super) report_lines: Rc<ReportLines>,
    /// What tasks wait for.
    pub(super) waits: Rc<NamedWaits>,
}

/// The reference that the loop holds; see [`Extension`].
struct Shared(Rc<Node>);

impl Node {
    /// Returns the state of the loop that runs on this thread.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    #[inline(always)]
    pub(super) fn current() -> Rc<Self> {
        match Self::known() {
            Some(node) => node,
            None => Self::made(),
        }
    }

    /// Creates the state of the loop that runs on this thread.
    #[track_caller]
    #[cold]
    #[inline(never)]
    fn made() -> Rc<Self> {
        Self::of(&Loop::of(&LoopHandle::current()))
    }

    /// Returns the state of a loop; the first call creates it.
    pub(super) fn of(core: &Loop) -> Rc<Self> {
        let make = || {
            Shared(Rc::new(Self {
                core: core.downgrade(),
                timers: TimerLists::new(),
                process: ProcessState::default(),
                callbacks: CallbackFutures::default(),
                rejections: Rejections::default(),
                links: Links::default(),
                emitters: OpenEmitters::default(),
                read_buffer: ReadBuffer::default(),
                http: HttpState::default(),
                stat_watchers: StatWatchers::default(),
                environment: Environment::default(),
                hooks: RefCell::default(),
                function: Cell::new(None),
                timeline: Timeline::default(),
                observers: Observers::default(),
                channels: Channels::default(),
                report_lines: Rc::default(),
                waits: core.named_waits().clone(),
            }))
        };
        core.with_state(make, |shared: &Shared| shared.0.clone())
    }

    /// Returns the state of the loop that runs on this thread, if it was created.
    #[inline]
    pub(super) fn known() -> Option<Rc<Self>> {
        Loop::with_current_state(|shared: &Shared| shared.0.clone())
    }

    /// Writes a line of the debug log.
    pub(super) fn log(&self, text: impl Fn() -> String) {
        if let Some(core) = self.core() {
            core.log(text);
        }
    }

    /// The loop; `None` if it was dropped.
    #[inline]
    pub(super) fn core(&self) -> Option<Loop> {
        self.core.upgrade()
    }
}

impl Extension for Shared {
    fn report(&self, found: &mut Vec<Waiting>) {
        if let Some(core) = self.0.core() {
            self.0.timers.report(&core, found);
            self.0.report_lines.report(found);
            let own = self.own_wakers();
            for waiting in found {
                let wakers = &mut waiting.wakers;
                wakers.retain(|waker| own.binary_search(waker).is_err());
            }
        }
    }

    fn own_wakers(&self) -> Vec<*const ()> {
        self.0.callbacks.wakers()
    }

    fn shut_down(&self) {
        self.0.timers.shut_down();
        self.0.process.shut_down();
        self.0.stat_watchers.shut_down();
        self.0.callbacks.shut_down();
        self.0.rejections.shut_down();
        self.0.links.shut_down();
        self.0.emitters.shut_down();
        self.0.http.shut_down();
        self.0.observers.shut_down();
        let channels = self.0.channels.take();
        drop(channels);
        let hooks = self.0.hooks.take();
        if let Some(hooks) = hooks {
            hooks.shut_down();
        }
    }
}
