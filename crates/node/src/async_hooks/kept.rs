//! Frames that stay with a resource of Node.
//!
//! In Node 20 the stores are fields of a resource: a timer, a socket, a parser, an `AsyncResource`.
//! What a callback enters is therefore there in the next callback of the same resource.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop::extension::frame::{Frame, is_used};

use super::work::{Capture, Work};

thread_local! {
    /// The resource in whose scope the program runs.
    static SCOPE: RefCell<Option<Rc<Kept>>> = const { RefCell::new(None) };
}

/// What the callbacks of one resource run in. What a callback enters stays for the next one.
#[derive(Default)]
pub(crate) struct Kept {
    frame: RefCell<Frame>,
    /// Boxed, since it is rare, and every socket has one of these.
    work: Option<Box<Work>>,
}

impl Kept {
    /// Keeps the current frame.
    pub(crate) fn captured() -> Self {
        Self {
            frame: RefCell::new(Frame::captured()),
            work: None,
        }
    }

    /// Keeps what a callback without a frame has entered, if it has entered something.
    pub(crate) fn entered() -> Option<Self> {
        let frame = RefCell::new(Some(Frame::current()).filter(|frame| !frame.is_empty())?);
        Some(Self { frame, work: None })
    }

    /// Returns the frame that the next callback finds.
    pub(crate) fn frame(&self) -> Frame {
        self.frame.borrow().clone()
    }

    /// Sets the frame that the next callback finds.
    pub(crate) fn set_frame(&self, frame: Frame) {
        let before = self.frame.replace(frame);
        drop(before);
    }

    pub(crate) fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }

    /// Calls `f`, a callback of the resource, and keeps what it enters. After a panic, the current
    /// frame stays as it is: the handler of the panic runs in it.
    #[inline]
    pub(crate) fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        let entered = self.frame();
        let before = entered.clone().enter();
        let kept = KeepEntered {
            kept: self,
            found: entered,
        };
        let value = match &self.work {
            Some(work) => work.run(f),
            None => f(),
        };
        drop(kept);
        drop(before.enter());
        value
    }

    /// Calls `f` in the scope of the resource, inside a callback of another one, and keeps what it
    /// enters. What was before is back afterwards, also after a panic.
    ///
    /// A scope inside of a scope of the same resource changes nothing: both are one resource.
    pub(crate) fn run<R>(self: &Rc<Self>, f: impl FnOnce() -> R) -> R {
        let scope = self.enter_scope();
        let value = match &self.work {
            Some(work) => work.run_inside(f),
            None => f(),
        };
        drop(scope);
        value
    }

    fn enter_scope(self: &Rc<Self>) -> Option<InScope> {
        let outer = SCOPE.with_borrow(Clone::clone);
        if let Some(outer) = &outer {
            if Rc::ptr_eq(outer, self) {
                return None;
            }
            outer.set_frame(Frame::current());
        }
        SCOPE.set(Some(self.clone()));
        Some(InScope {
            outer,
            before: self.frame().enter(),
        })
    }
}

impl From<Capture> for Kept {
    fn from(capture: Capture) -> Self {
        Self {
            frame: RefCell::new(capture.frame),
            work: capture.work.map(Box::new),
        }
    }
}

/// Keeps what a callback has entered, when it has returned or panicked.
struct KeepEntered<'a> {
    kept: &'a Kept,
    /// The frame in which the callback has begun.
    found: Frame,
}

impl Drop for KeepEntered<'_> {
    #[inline]
    fn drop(&mut self) {
        if !is_used() {
            return;
        }
        let now = Frame::current();
        // Meanwhile the resource may have got another frame: a kept-alive socket that of the next
        // request.
        let is_own = self.kept.frame.borrow().is(&self.found);
        if is_own && !now.is(&self.found) {
            self.kept.set_frame(now);
        }
    }
}

/// Ends the scope of a resource when it is dropped.
struct InScope {
    /// The resource around, if there is one.
    outer: Option<Rc<Kept>>,
    before: Frame,
}

impl Drop for InScope {
    fn drop(&mut self) {
        let frame = match &self.outer {
            // A scope inside may have changed it.
            Some(outer) => outer.frame(),
            None => std::mem::take(&mut self.before),
        };
        let inside = SCOPE.replace(self.outer.take());
        if let Some(inside) = inside {
            inside.set_frame(Frame::current());
        }
        drop(frame.enter());
    }
}
