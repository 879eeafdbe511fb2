//! Hooks: what is emitted of the life of asynchronous work, and the ids of what runs.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use crate::context::Node;
use phaseloop::Handle as _;
use phaseloop::LoopHandle;
use phaseloop::extension::Loop;
use phaseloop::extension::frame::use_contexts;
use phaseloop::extension::frame::{self, without_context};
use phaseloop::phase::Check;

use super::work::{Work, set_hooks};

/// The id of the main program, as in Node.
const MAIN: u64 = 1;

/// Returns the id of what runs now. The id of the main program is 1, and 0 stands for what runs
/// outside of all callbacks, such as the listeners of `beforeExit`. JavaScript:
/// `executionAsyncId()`.
///
/// Ids are given to what is started after the first use of this module.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::{execution_async_id, trigger_async_id};
/// use phaseloop_node::{Exit, next_tick, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let main = execution_async_id();
///         next_tick(move || {
///             assert_ne!(execution_async_id(), main);
///             assert_eq!(trigger_async_id(), main);
///         });
///     })
/// }
/// ```
#[must_use]
pub fn execution_async_id() -> u64 {
    Hooks::current().running().0
}

/// Returns the id of what caused what runs now. JavaScript: `triggerAsyncId()`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn trigger_async_id() -> u64 {
    Hooks::current().running().1
}

/// Creates a hook. It is notified of nothing before it is [enabled](AsyncHook::enable). JavaScript:
/// `createHook(callbacks)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::{Callbacks, create_hook};
/// use phaseloop_node::{run, set_immediate};
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     let (init, before, destroy) = (log.clone(), log.clone(), log.clone());
///     run(async move {
///         let callbacks = Callbacks::new()
///             .init(move |_id, kind, _trigger| init.borrow_mut().push(kind))
///             .before(move |_id| before.borrow_mut().push("before"))
///             .destroy(move |_id| destroy.borrow_mut().push("destroy"));
///         create_hook(callbacks).enable();
///         set_immediate(|| ());
///     });
///     assert_eq!(*log.borrow(), ["Immediate", "before", "destroy"]);
/// }
/// ```
#[must_use]
pub fn create_hook(callbacks: Callbacks) -> AsyncHook {
    AsyncHook {
        hooks: Hooks::current(),
        callbacks: Rc::new(callbacks),
    }
}

type OnInit = Box<dyn Fn(u64, &'static str, u64)>;
type OnId = Box<dyn Fn(u64)>;

/// What a hook receives. Each part is optional.
#[derive(Default)]
pub struct Callbacks {
    init: Option<OnInit>,
    before: Option<OnId>,
    after: Option<OnId>,
    destroy: Option<OnId>,
    promise_resolve: Option<OnId>,
}

impl Callbacks {
    /// Creates callbacks without any part.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what is called in the making of work, with its id, its type and the id of its cause.
    #[must_use]
    pub fn init(mut self, f: impl Fn(u64, &'static str, u64) + 'static) -> Self {
        self.init = Some(Box::new(f));
        self
    }

    /// Sets what is called right before the callback of the work, with its id.
    #[must_use]
    pub fn before(mut self, f: impl Fn(u64) + 'static) -> Self {
        self.before = Some(Box::new(f));
        self
    }

    /// Sets what is called right after the callback of the work, with its id. After an uncaught
    /// error, it is called after the listeners for it.
    #[must_use]
    pub fn after(mut self, f: impl Fn(u64) + 'static) -> Self {
        self.after = Some(Box::new(f));
        self
    }

    /// Sets what is called in the check phase after the end of the work, with its id. The end of a
    /// promise is not emitted: in Node it depends on the garbage collector.
    #[must_use]
    pub fn destroy(mut self, f: impl Fn(u64) + 'static) -> Self {
        self.destroy = Some(Box::new(f));
        self
    }

    /// Sets what is called when a promise is settled, with its id.
    #[must_use]
    pub fn promise_resolve(mut self, f: impl Fn(u64) + 'static) -> Self {
        self.promise_resolve = Some(Box::new(f));
        self
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").finish_non_exhaustive()
    }
}

/// A hook of [`create_hook`]. A clone is a handle to the same hook. Dropping it leaves it enabled.
#[derive(Clone)]
pub struct AsyncHook {
    hooks: Rc<Hooks>,
    callbacks: Rc<Callbacks>,
}

impl AsyncHook {
    /// Begins to notify the hook. JavaScript: `hook.enable()`.
    pub fn enable(&self) -> &Self {
        let mut enabled = self.hooks.enabled.borrow_mut();
        if !enabled
            .iter()
            .any(|other| Rc::ptr_eq(other, &self.callbacks))
        {
            enabled.push(self.callbacks.clone());
        }
        self
    }

    /// Ends notifying the hook. JavaScript: `hook.disable()`.
    pub fn disable(&self) -> &Self {
        let mut enabled = self.hooks.enabled.borrow_mut();
        enabled.retain(|other| !Rc::ptr_eq(other, &self.callbacks));
        self
    }
}

impl fmt::Debug for AsyncHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncHook").finish_non_exhaustive()
    }
}

/// The hooks of one loop, and the ids of its work.
pub(crate) struct Hooks {
    this: Weak<Self>,
    next_id: Cell<u64>,
    /// The ids of what runs and of its cause, innermost last. The main program is not in it.
    stack: RefCell<Vec<(u64, u64)>>,
    enabled: RefCell<Vec<Rc<Callbacks>>>,
    /// The work that has ended, until the check phase.
    destroyed: RefCell<Vec<u64>>,
    /// Emits the end of the ended work; it has no part in keeping the loop alive.
    check: RefCell<Option<Check>>,
}

impl Hooks {
    /// Returns the hooks of the current loop. The first call begins to give ids.
    #[track_caller]
    pub(crate) fn current() -> Rc<Self> {
        let node = Node::current();
        if let Some(hooks) = node.hooks.borrow().as_ref() {
            return hooks.clone();
        }
        use_contexts();
        let hooks = Rc::new_cyclic(|this| Self {
            this: this.clone(),
            next_id: Cell::new(MAIN),
            stack: RefCell::default(),
            enabled: RefCell::default(),
            destroyed: RefCell::default(),
            check: RefCell::default(),
        });
        let check = Check::new(&LoopHandle::current());
        let weak = Rc::downgrade(&hooks);
        let started = without_context(|| {
            check.start(move |_| {
                if let Some(hooks) = weak.upgrade() {
                    hooks.report_destroyed();
                }
            })
        });
        if started.is_ok() {
            check.unref();
            hooks.check.replace(Some(check));
        }
        set_hooks(Some(hooks.clone()));
        node.hooks.replace(Some(hooks.clone()));
        hooks
    }

    fn this(&self) -> Rc<Self> {
        self.this.upgrade().expect("a method of it runs")
    }

    /// Returns the ids of what runs and of its cause.
    fn running(&self) -> (u64, u64) {
        let last = self.stack.borrow().last().copied();
        last.unwrap_or_else(|| {
            let is_main = Loop::current().is_some_and(|core| core.is_in_main_future());
            (if is_main { MAIN } else { 0 }, 0)
        })
    }

    /// Begins work that the hooks do not receive: the report of a rejection, as in Node.
    pub(crate) fn begin_silently(&self, ids: (u64, u64)) {
        self.stack.borrow_mut().push(ids);
    }

    /// Ends what [`begin_silently`](Self::begin_silently) began.
    pub(crate) fn end_silently(&self, ids: (u64, u64)) {
        let mut stack = self.stack.borrow_mut();
        if stack.last() == Some(&ids) {
            stack.pop();
        }
    }

    fn each(&self, notify: impl Fn(&Callbacks)) {
        let enabled = self.enabled.borrow().clone();
        for callbacks in enabled {
            notify(&callbacks);
        }
    }

    /// Emits the end of the work that has ended.
    pub(crate) fn report_destroyed(&self) {
        loop {
            let destroyed = self.destroyed.take();
            if destroyed.is_empty() {
                return;
            }
            for id in destroyed {
                self.each(|callbacks| call(callbacks.destroy.as_ref(), id));
            }
        }
    }

    /// Ends all that runs, after an uncaught error and its listeners.
    pub(crate) fn unwind(&self) {
        loop {
            let (id, _) = match self.stack.borrow().last() {
                Some(last) => *last,
                None => return,
            };
            self.after(id);
        }
    }

    pub(crate) fn shut_down(&self) {
        set_hooks(None);
        let check = self.check.take();
        drop(check);
        let enabled = self.enabled.take();
        drop(enabled);
    }
}

fn call(callback: Option<&OnId>, id: u64) {
    if let Some(callback) = callback {
        callback(id);
    }
}

/// The life of work.
impl Hooks {
    /// Returns the numbers of new work and of what caused it. `cause` is `None` for the work that
    /// is running.
    pub(super) fn init(&self, kind: &'static str, cause: Option<u64>) -> (u64, u64) {
        let id = self.next_id.get() + 1;
        self.next_id.set(id);
        let cause = cause.unwrap_or_else(|| self.running().0);
        self.each(|callbacks| {
            if let Some(init) = &callbacks.init {
                init(id, kind, cause);
            }
        });
        (id, cause)
    }

    /// The work is about to be called.
    pub(super) fn before(&self, id: u64, cause: u64) {
        self.stack.borrow_mut().push((id, cause));
        self.each(|callbacks| call(callbacks.before.as_ref(), id));
    }

    /// The call of the work has returned.
    pub(super) fn after(&self, id: u64) {
        // An uncaught error has ended it, if it does not run.
        let runs = self.stack.borrow().last().is_some_and(|last| last.0 == id);
        if runs {
            self.each(|callbacks| call(callbacks.after.as_ref(), id));
            self.stack.borrow_mut().pop();
        }
    }

    /// The promise that the work settles is settled.
    pub(super) fn resolve(&self, id: u64) {
        self.each(|callbacks| call(callbacks.promise_resolve.as_ref(), id));
    }

    /// The work will not be called any more.
    pub(super) fn destroy(&self, id: u64) {
        self.destroyed.borrow_mut().push(id);
    }
}

impl frame::Tracker for Hooks {
    fn begin(&self, kind: &'static str) -> Box<dyn frame::Work> {
        Box::new(Work::of(self.this(), kind, None))
    }

    fn reset(&self) {
        self.stack.borrow_mut().clear();
    }
}
