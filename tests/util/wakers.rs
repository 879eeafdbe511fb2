//! Wakers that do what their maker wants, where others only count.
#![allow(
    unsafe_code,
    reason = "the safe way to a waker leaves no room for code in its clone"
)]

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{RawWaker, RawWakerVTable, Waker};

type Hook = RefCell<Option<Box<dyn FnOnce()>>>;

/// A waker that calls `hook` when it is cloned for the first time. It stays on this thread, and
/// wakes no task.
pub(crate) fn on_clone(hook: impl FnOnce() + 'static) -> Waker {
    let hook: Rc<Hook> = Rc::new(RefCell::new(Some(Box::new(hook))));
    // SAFETY: the functions of the table count the pointer as an `Rc` of its type; the callers keep
    // it on one thread.
    unsafe { Waker::from_raw(raw(hook)) }
}

fn raw(hook: Rc<Hook>) -> RawWaker {
    static TABLE: RawWakerVTable = RawWakerVTable::new(clone, drop_hook, |_| {}, drop_hook);
    RawWaker::new(Rc::into_raw(hook).cast(), &TABLE)
}

fn clone(pointer: *const ()) -> RawWaker {
    // SAFETY: it came from `Rc::into_raw`, and the waker that has it goes on having it.
    let hook = unsafe {
        Rc::increment_strong_count(pointer.cast::<Hook>());
        Rc::from_raw(pointer.cast::<Hook>())
    };
    let first = hook.take();
    if let Some(first) = first {
        first();
    }
    raw(hook)
}

fn drop_hook(pointer: *const ()) {
    // SAFETY: it came from `Rc::into_raw`, and is not used again.
    drop(unsafe { Rc::from_raw(pointer.cast::<Hook>()) });
}
