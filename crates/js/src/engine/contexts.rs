//! The frames of the loop across the jobs of the engine.
//!
//! The engine does not report that an `await` goes on. So a job that enters the frame is put just
//! before it: by the read of `constructor` for an `await` of a promise, by the hook of resolved
//! promises for one of another value. A job that enters no frame runs in none.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use phaseloop_node::host::Frame;
use rquickjs::promise::PromiseHookType;
use rquickjs::qjs;

use super::hook::{self, Last};
use super::{Closure, Inner, Res, Scope, Val};

/// The frames of an engine, once it has a storage.
#[derive(Default)]
pub(super) struct Contexts {
    is_used: Cell<bool>,
    /// The job that ran last has entered a frame for the next.
    is_entered: Cell<bool>,
    /// The promise that is resolved next is that of a reaction of this module.
    is_own: Cell<bool>,
    /// The frames that jobs will enter, oldest first.
    queued: RefCell<VecDeque<Frame>>,
    /// The frame before that of a thenable.
    before: Cell<Option<Frame>>,
}

impl Inner {
    /// Begins to carry frames across jobs.
    pub(crate) fn use_contexts(self: &Rc<Self>) {
        if self.contexts.is_used.replace(true) {
            return;
        }
        phaseloop_node::host::use_contexts();
        let weak = Rc::downgrade(self);
        let hook: rquickjs::runtime::PromiseHook = Box::new(move |ctx, kind, promise, _| {
            let Some(inner) = weak.upgrade() else { return };
            let scope = Scope { ctx, inner };
            if scope.promise_hook(kind, &Val(promise)).is_err() {
                scope.take_exception();
            }
        });
        self.runtime.set_promise_hook(Some(hook));
    }

    /// Queues a job that enters `frame` for the job after it.
    fn queue_enter(&self, frame: Frame) {
        self.contexts.queued.borrow_mut().push_back(frame);
        // SAFETY: the context is alive, and the job takes no arguments.
        unsafe {
            qjs::JS_EnqueueJob(
                self.raw.as_ptr(),
                Some(hook::enter),
                0,
                std::ptr::null_mut(),
            );
        }
    }

    /// Ends a job: the next one runs in no frame, unless this one has entered one for it.
    pub(super) fn end_job(&self, last: Last) {
        let contexts = &self.contexts;
        if !contexts.is_used.get() {
            return;
        }
        if last == Last::Enter {
            let frame = contexts.queued.borrow_mut().pop_front();
            drop(frame.unwrap_or_default().enter());
        } else if !contexts.is_entered.replace(false) {
            drop(Frame::default().enter());
        }
    }
}

impl<'js> Scope<'js> {
    fn promise_hook(&self, kind: PromiseHookType, promise: &Val<'js>) -> Res<'js, ()> {
        let contexts = &self.inner.contexts;
        match kind {
            PromiseHookType::Init => {
                if !Frame::current().is_empty() {
                    self.internal("promiseMade", std::slice::from_ref(promise))?;
                }
            }
            // A thenable runs in the frame of the promise that it resolves.
            PromiseHookType::Before => {
                let before = Frame::current();
                self.enter_frame_of(promise, &[])?;
                contexts.before.set(Some(before));
            }
            PromiseHookType::After => {
                if let Some(before) = contexts.before.take() {
                    drop(before.enter());
                }
            }
            // What an `await` of another value than a promise goes on with is queued next.
            PromiseHookType::Resolve => {
                if !contexts.is_own.replace(false) {
                    self.enter_frame_of(promise, &[self.boolean(true)])?;
                }
            }
        }
        Ok(())
    }

    /// Calls the function of the frame in which a promise was made.
    fn enter_frame_of(&self, promise: &Val<'js>, args: &[Val<'js>]) -> Res<'js, ()> {
        let enter = self.internal("promiseFrame", std::slice::from_ref(promise))?;
        match enter.is_function() {
            true => enter.call(&self.undefined(), args).map(drop),
            false => Ok(()),
        }
    }

    /// Returns a function that enters `frame`; with an argument, a job that does.
    pub(crate) fn frame_function(&self, frame: Frame) -> Res<'js> {
        let enter: Closure = Rc::new(move |scope, args: &[Val<'_>]| {
            match args.is_empty() {
                true => drop(frame.clone().enter()),
                false => scope.inner.queue_enter(frame.clone()),
            }
            Ok(scope.undefined())
        });
        self.closure("", enter)
    }

    /// Returns a handler for a promise: it enters the frame of now for the job that follows.
    pub(crate) fn enter_for_next(&self) -> Res<'js> {
        let frame = Frame::current();
        let weak = Rc::downgrade(&self.inner);
        let closure: Closure = Rc::new(move |scope, _: &[Val<'_>]| {
            if let Some(inner) = weak.upgrade() {
                inner.contexts.is_entered.set(true);
                inner.contexts.is_own.set(true);
                drop(frame.clone().enter());
            }
            Ok(scope.undefined())
        });
        self.closure("", closure)
    }
}
