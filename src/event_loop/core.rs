//! The state of one loop, one cell for each concern.
//!
//! Invariant: no `RefCell` is borrowed while user code runs, except `events`, which only
//! `ask_kernel` mutates. No method returns a borrow.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use super::api::block_on::MainInfo;
use super::api::builder::Options;
use super::api::handle::{Handles, Header, Stage};
use super::budget::DeferredSources;
use super::clock::Clock;
use super::extension::ExtensionSlot;
use super::liveness::Liveness;
use super::phases::after_io::AfterIo;
use super::phases::asyncs::Asyncs;
use super::phases::closing::Closing;
use super::phases::hooks::Hooks;
use super::phases::jobs::Jobs;
use super::phases::polls::Polls;
use super::phases::queue::{Entry, PhaseQueue, QueueKey};
use super::phases::sources::Sources;
use super::phases::timers::Timers;
use super::uncaught::PanicPolicy;
use crate::executor::join::JoinHandle;
use crate::executor::lane::Lane;
use crate::executor::message::Message;
use crate::executor::registry::{Info, Registry};
use crate::executor::shared::{Local, Output, Runnable, Shared};
use crate::keeper::Keeper;
use crate::pool::Pool;
use crate::probe::Probe;
use crate::raw::scoped::ScopedCall;
use crate::raw::task;
use crate::sys::poller::{Events, Poller};
use crate::turn::Phase;

/// Not a slot of the registry: there are never so many tasks.
pub(super) const NO_TASK: u32 = u32::MAX;

/// The value of [`Core::polled`] while the main future is polled.
pub(super) const MAIN_FUTURE: u32 = u32::MAX - 1;

pub(crate) struct Core {
    // What other threads share, and the messages taken from their inbox.
    pub(super) shared: Arc<Shared>,
    pub(super) messages: RefCell<Vec<Message>>,

    // Tasks.
    pub(super) lane: Lane<Runnable>,
    pub(super) tasks: Rc<Registry>,
    pub(super) main_future: ScopedCall,
    /// The site and the waker of the main future, while there is one.
    pub(super) main_info: Cell<Option<MainInfo>>,
    /// The slot of the task that is being polled, or [`NO_TASK`] or [`MAIN_FUTURE`].
    pub(super) polled: Cell<u32>,
    /// The values of [`polled`](Self::polled) further up the stack, while tasks are polled inside
    /// their spawner.
    pub(super) spawners: RefCell<Vec<u32>>,

    // Phases.
    pub(super) clock: Clock,
    pub(super) timers: Timers,
    pub(super) timers_queue: PhaseQueue,
    pub(super) pending: PhaseQueue,
    pub(super) idle: HookedPhase,
    pub(super) prepare: HookedPhase,
    pub(super) check: HookedPhase,
    pub(super) closing: Closing,
    pub(super) closing_queue: PhaseQueue,
    pub(super) poller: Rc<Poller>,
    pub(super) events: RefCell<Events>,
    /// Entries that run in the poll phase without an event of the kernel.
    pub(super) poll_queue: PhaseQueue,
    pub(super) sources: Sources,
    pub(super) polls: Polls,
    pub(super) deferred: DeferredSources,
    pub(super) asyncs: Asyncs,
    /// Signals, exits of children and file changes, which come last in the poll phase.
    pub(super) after_io: AfterIo,

    // The loop itself.
    pub(super) handles: Handles,
    pub(super) liveness: Liveness,
    pub(super) jobs: Jobs,
    pub(super) probe: Probe,
    pub(super) options: Options,
    pub(super) panic_policy: PanicPolicy,
    /// The state that the layer above keeps for this loop.
    pub(super) extension: ExtensionSlot,
    pub(super) stop: Cell<bool>,
    /// Whether the last run was stopped.
    pub(super) was_stopped: Cell<bool>,
    /// Whether a panic interrupted a phase. Cleared when the next run begins.
    pub(super) was_interrupted: Cell<bool>,
    pub(super) closed: Cell<bool>,
    pub(super) turns: Cell<u64>,
    pub(super) budget_hits: Cell<u64>,
}

/// Idle, prepare or check: the hooks, which run in every turn, and the queue of entries that run
/// once (for check, the immediates).
pub(super) struct HookedPhase {
    pub(super) hooks: Hooks,
    pub(super) queue: PhaseQueue,
}

impl HookedPhase {
    fn new() -> Self {
        Self {
            hooks: Hooks::new(),
            queue: PhaseQueue::new(),
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.queue.is_empty()
    }
}

impl Core {
    pub(crate) fn new(options: Options, probe: Probe, paused: bool) -> std::io::Result<Rc<Self>> {
        let poller = Poller::new()?;
        let tasks = Rc::new(Registry::new());
        let shared = Shared::new(poller.notifier(), options.unhandled_panic, tasks.clone());
        Ok(Rc::new(Self {
            shared: Arc::new(shared),
            messages: RefCell::default(),
            lane: Lane::new(),
            tasks,
            main_future: ScopedCall::new(),
            main_info: Cell::new(None),
            polled: Cell::new(NO_TASK),
            spawners: RefCell::default(),
            clock: Clock::new(paused),
            timers: Timers::new(),
            timers_queue: PhaseQueue::new(),
            pending: PhaseQueue::new(),
            idle: HookedPhase::new(),
            prepare: HookedPhase::new(),
            check: HookedPhase::new(),
            closing: Closing::default(),
            closing_queue: PhaseQueue::new(),
            poller: Rc::new(poller),
            events: RefCell::new(Events::new()),
            poll_queue: PhaseQueue::new(),
            sources: Sources::new(),
            polls: Polls::default(),
            deferred: DeferredSources::default(),
            asyncs: Asyncs::new(),
            after_io: AfterIo::default(),
            handles: Handles::new(),
            liveness: Liveness::default(),
            jobs: Jobs::default(),
            probe,
            options,
            panic_policy: PanicPolicy::default(),
            extension: ExtensionSlot::default(),
            stop: Cell::new(false),
            was_stopped: Cell::new(false),
            was_interrupted: Cell::new(false),
            closed: Cell::new(false),
            turns: Cell::new(0),
            budget_hits: Cell::new(0),
        }))
    }

    /// Returns the thread pool for blocking work: the loop's own or the global one.
    pub(crate) fn pool(&self) -> Pool {
        self.options.pool.clone().unwrap_or_else(Pool::global)
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    pub(crate) fn poller(&self) -> &Rc<Poller> {
        &self.poller
    }

    /// Returns the part of the loop that other threads reach.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Returns whether the loop is alive: something referenced is active or queued, a lane is not
    /// empty, another thread has sent a message, or a panic has interrupted a phase. A send to
    /// an async handle is not a message: the handle itself counts while it is open and referenced.
    // Rule R1.
    pub(crate) fn is_alive(&self) -> bool {
        self.liveness.has_keepers() || self.has_unlisted()
    }

    /// Returns whether the loop is alive for a reason that no [`Keeper`] counts.
    pub(super) fn has_unlisted(&self) -> bool {
        !self.lane.is_empty() || self.has_messages() || self.was_interrupted.get()
    }

    fn has_messages(&self) -> bool {
        let inbox = &self.shared.inbox;
        inbox.is_pending() && (inbox.has_items() || !self.messages.borrow().is_empty())
    }

    // Tasks.

    pub(crate) fn spawn<F>(
        &self,
        future: F,
        site: &'static Location<'static>,
        name: Option<Rc<str>>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        if self.is_closed() {
            return JoinHandle::never_started();
        }
        let (runnable, output) = self.new_task(future, site, name);
        self.lane.push_task(runnable);
        JoinHandle::new(output)
    }

    pub(super) fn new_task<F>(
        &self,
        future: F,
        site: &'static Location<'static>,
        name: Option<Rc<str>>,
    ) -> (Runnable, Output<F::Output>)
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.tasks.insert(name, |id, slot| {
            let local = Local {
                shared: self.shared.clone(),
                id,
                site,
            };
            let (runnable, entry, output) = task::spawn_local(local, slot, future);
            (entry, (runnable, output))
        })
    }

    /// Returns the task that is being polled.
    pub(crate) fn polled_task(&self) -> Option<Info> {
        self.tasks.info(self.polled.get())
    }

    /// Returns whether the task in `slot` is being polled, here or further up the stack.
    pub(super) fn is_polled(&self, slot: u32) -> bool {
        self.polled.get() == slot || self.spawners.borrow().contains(&slot)
    }

    // Handles.

    pub(crate) fn set_active(&self, header: &Header, active: bool) {
        if header.active.replace(active) != active && header.referenced.get() {
            self.count(header.kind, active);
        }
    }

    pub(crate) fn set_referenced(&self, header: &Header, referenced: bool) {
        if header.referenced.replace(referenced) != referenced && header.active.get() {
            self.count(header.kind, referenced);
        }
    }

    pub(crate) fn count(&self, kind: Keeper, up: bool) {
        if up {
            self.liveness.add(kind);
        } else {
            self.liveness.remove(kind);
        }
    }

    /// Queues a handle, which its owner has stopped, for the closing phase.
    pub(crate) fn begin_close(&self, header: &Rc<Header>) {
        if self.is_closed() {
            self.handles.remove(header);
            return;
        }
        header.stage.set(Stage::Closing);
        self.liveness.add(Keeper::Closing);
        self.closing.push(header.clone());
    }

    /// Releases a dropped handle. It leaves the registry at once, unless it waits for the closing
    /// phase.
    pub(crate) fn release(&self, header: &Header) {
        self.set_active(header, false);
        if header.stage.get() == Stage::Open {
            self.handles.remove(header);
        }
    }

    /// Returns the hooks of idle, prepare or check.
    pub(crate) fn hooks(&self, phase: Phase) -> &Hooks {
        match phase {
            Phase::Idle => &self.idle.hooks,
            Phase::Prepare => &self.prepare.hooks,
            _ => &self.check.hooks,
        }
    }

    // Entries that wait for a phase.

    /// Returns the queue of a phase.
    #[inline]
    pub(super) fn queue(&self, phase: Phase) -> &PhaseQueue {
        match phase {
            Phase::Pending => &self.pending,
            Phase::Idle => &self.idle.queue,
            Phase::Prepare => &self.prepare.queue,
            Phase::Closing => &self.closing_queue,
            Phase::Poll => &self.poll_queue,
            Phase::Check => &self.check.queue,
            Phase::Timers => &self.timers_queue,
        }
    }

    #[inline]
    pub(crate) fn enqueue(&self, phase: Phase, entry: Entry) -> QueueKey {
        self.liveness.add(Keeper::Queued);
        self.queue(phase).push(entry)
    }

    pub(crate) fn dequeue(&self, phase: Phase, key: QueueKey) -> bool {
        let entry = self.queue(phase).remove(key);
        if let Some(entry) = &entry {
            self.uncount_entry(entry);
        }
        // Dropping a waker or a closure may run user code; nothing is borrowed here.
        entry.is_some()
    }

    /// Updates liveness for an entry that has left its queue.
    #[inline]
    pub(super) fn uncount_entry(&self, entry: &Entry) {
        if entry.is_referenced() {
            self.liveness.remove(Keeper::Queued);
        }
    }

    /// Returns whether an entry keeps the loop alive, or `None` if it has run.
    pub(crate) fn is_entry_referenced(&self, phase: Phase, key: QueueKey) -> Option<bool> {
        self.queue(phase).is_referenced(key)
    }

    /// Sets whether an entry keeps the loop alive. It has no effect once the entry has run.
    pub(crate) fn set_entry_referenced(&self, phase: Phase, key: QueueKey, referenced: bool) {
        if self.queue(phase).set_referenced(key, referenced) {
            self.count(Keeper::Queued, referenced);
        }
    }

    pub(crate) fn set_entry_waker(&self, phase: Phase, key: QueueKey, waker: &Waker) -> bool {
        self.queue(phase).set_waker(key, waker)
    }
}
