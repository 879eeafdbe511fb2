//! Tracked work: what hooks follow from its registration to its end, and what its calls run in.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop::extension::frame::{self, Frame};

use super::hooks::Hooks;

thread_local! {
    /// The hooks of this thread, if they are in use.
    static HOOKS: RefCell<Option<Rc<Hooks>>> = const { RefCell::new(None) };
}

/// Sets the hooks of this thread, on which contexts are in use. `None` removes them.
pub(super) fn set_hooks(hooks: Option<Rc<Hooks>>) {
    frame::set_tracker(hooks.clone().map(|hooks| hooks as Rc<dyn frame::Tracker>));
    let before = HOOKS.try_with(|slot| slot.replace(hooks));
    drop(before);
}

/// Returns the hooks of this thread.
fn hooks() -> Option<Rc<Hooks>> {
    if !frame::is_tracked() {
        return None;
    }
    HOOKS.try_with(|hooks| hooks.borrow().clone()).ok()?
}

/// Tracked work. Its drop ends it.
pub(crate) struct Work {
    id: u64,
    cause: u64,
    hooks: Rc<Hooks>,
    /// Whether the end of the work was not reported and is reported by the drop.
    is_destroyed_by_drop: Cell<bool>,
    /// The end of its call settles a promise that only the hooks see.
    is_promise: bool,
}

impl Work {
    /// Begins work of a kind, if hooks are in use. `cause` is `None` for the work that is running.
    pub(crate) fn begin(kind: &'static str, cause: Option<u64>) -> Option<Self> {
        Some(Self::of(hooks()?, kind, cause))
    }

    pub(super) fn of(hooks: Rc<Hooks>, kind: &'static str, cause: Option<u64>) -> Self {
        let (id, cause) = hooks.init(kind, cause);
        Self {
            id,
            cause,
            hooks,
            is_destroyed_by_drop: Cell::new(true),
            is_promise: false,
        }
    }

    /// Returns work that has begun elsewhere, and that ends there.
    pub(crate) fn known(id: u64, cause: u64) -> Option<Self> {
        Some(Self {
            id,
            cause,
            hooks: hooks()?,
            is_destroyed_by_drop: Cell::new(false),
            is_promise: false,
        })
    }

    /// Sets that the drop of this value is not reported: the work has no end that can be seen.
    pub(crate) fn without_end(self) -> Self {
        self.is_destroyed_by_drop.set(false);
        self
    }

    /// Sets that the work is a reaction with a promise that the program does not see. Its end is
    /// not reported, as that of no promise is.
    pub(crate) fn of_hidden_promise(mut self) -> Self {
        self.is_promise = true;
        self.without_end()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn cause(&self) -> u64 {
        self.cause
    }

    /// Calls `f` as this work. A panic leaves it the running work, as it leaves the frame.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        self.hooks.before(self.id, self.cause);
        let value = f();
        if self.is_promise {
            self.resolve();
        }
        self.hooks.after(self.id);
        value
    }

    /// Calls `f` as this work. What ran before runs again afterwards, also after a panic.
    pub(crate) fn run_inside<R>(&self, f: impl FnOnce() -> R) -> R {
        struct After<'a>(&'a Work);
        impl Drop for After<'_> {
            fn drop(&mut self) {
                self.0.hooks.after(self.0.id);
            }
        }

        self.hooks.before(self.id, self.cause);
        let _after = After(self);
        f()
    }

    /// Reports that the promise of this work is settled.
    pub(crate) fn resolve(&self) {
        self.hooks.resolve(self.id);
    }

    /// Reports the end of the work, once. The drop does not report it again.
    pub(crate) fn destroy(&self) {
        if self.is_destroyed_by_drop.replace(false) {
            self.hooks.destroy(self.id);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.destroy();
    }
}

impl frame::Work for Work {
    fn call(&self, f: &mut dyn FnMut()) {
        self.run(f);
    }

    fn call_inside(&self, f: &mut dyn FnMut()) {
        self.run_inside(f);
    }
}

/// The context of a registration, for the calls that follow from it.
#[derive(Default)]
pub(crate) struct Capture {
    pub(crate) frame: Frame,
    pub(crate) work: Option<Work>,
}

impl Capture {
    /// Captures the current frame and begins work of a kind. Returns `None` if neither is needed.
    #[inline]
    pub(crate) fn new(kind: &'static str) -> Option<Self> {
        if frame::is_plain() {
            return None;
        }
        Some(Self::of(kind, None))
    }

    /// Captures the current frame and begins work that `cause` has caused.
    #[cold]
    #[inline(never)]
    pub(crate) fn of(kind: &'static str, cause: Option<u64>) -> Self {
        Self {
            frame: Frame::captured_as(kind),
            work: Work::begin(kind, cause),
        }
    }

    /// Calls `f` in this context, and restores the one before. A panic does not restore it: its
    /// handler runs in this context, and the loop sets the frame of the next call.
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let before = self.frame.clone().enter();
        let value = match &self.work {
            Some(work) => work.run(f),
            None => f(),
        };
        drop(before.enter());
        value
    }

    /// Calls `f` in this context, inside a callback with another one, which is back afterwards,
    /// also after a panic.
    pub(crate) fn run_inside<R>(&self, f: impl FnOnce() -> R) -> R {
        self.frame.clone().run(|| match &self.work {
            Some(work) => work.run_inside(f),
            None => f(),
        })
    }
}
