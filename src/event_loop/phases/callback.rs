//! A slot for a callback that may be replaced, dropped or called while it runs.

use std::cell::{Cell, RefCell};

use crate::frame::carry_all;
use crate::raw::nesting::drop_flat;
use crate::raw::unwind::ignore_panic;

/// The kind of a callback, for a tracker.
const CALLBACK: &str = "CALLBACK";

/// Holds a callback that is called many times, each time in the context in which it was set.
///
/// The callback is taken out during the call, so that it may set or clear its own slot. After the
/// call, or its panic, the callback is put back, unless the slot was set or cleared meanwhile.
pub(crate) struct CallbackSlot {
    callback: RefCell<Option<Box<dyn FnMut()>>>,
    /// Changes with each `set` and `clear`.
    version: Cell<u64>,
    is_set: Cell<bool>,
}

impl CallbackSlot {
    pub(crate) fn new(callback: Option<Box<dyn FnMut()>>) -> Self {
        let callback = callback.map(|callback| carry_all(CALLBACK, callback));
        Self {
            is_set: Cell::new(callback.is_some()),
            callback: RefCell::new(callback),
            version: Cell::new(0),
        }
    }

    /// Sets the callback and returns the previous one. Its drop may run user code, so the caller
    /// drops it when its own state is consistent.
    #[must_use = "drop it when everything else is done"]
    pub(crate) fn set(&self, callback: Box<dyn FnMut()>) -> Option<Box<dyn FnMut()>> {
        self.replace(Some(carry_all(CALLBACK, callback)))
    }

    /// Returns whether there is a callback, also while it is called.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.get()
    }

    pub(crate) fn clear(&self) {
        drop_callback(self.replace(None));
    }

    fn replace(&self, callback: Option<Box<dyn FnMut()>>) -> Option<Box<dyn FnMut()>> {
        self.version.set(self.version.get() + 1);
        self.is_set.set(callback.is_some());
        std::mem::replace(&mut *self.callback.borrow_mut(), callback)
    }

    pub(crate) fn call(&self) {
        struct PutBack<'a> {
            slot: &'a CallbackSlot,
            version: u64,
            callback: Option<Box<dyn FnMut()>>,
        }
        impl Drop for PutBack<'_> {
            fn drop(&mut self) {
                let callback = self.callback.take();
                if self.slot.version.get() == self.version {
                    *self.slot.callback.borrow_mut() = callback;
                } else if std::thread::panicking() {
                    // A second panic would end the process.
                    ignore_panic(|| drop_callback(callback));
                } else {
                    drop_callback(callback);
                }
            }
        }

        let callback = self.callback.borrow_mut().take();
        let mut put_back = PutBack {
            slot: self,
            version: self.version.get(),
            callback,
        };
        if let Some(callback) = &mut put_back.callback {
            callback();
        }
    }
}

impl Drop for CallbackSlot {
    fn drop(&mut self) {
        drop_callback(self.callback.get_mut().take());
    }
}

/// Drops a callback without deep recursion: it may own the handle of another callback, which owns
/// another, and so on.
fn drop_callback(callback: Option<Box<dyn FnMut()>>) {
    if callback.is_some() {
        drop_flat(callback);
    }
}

#[cfg(test)]
mod tests {
    use super::CallbackSlot;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn a_callback_stays_after_a_call_and_after_a_panic() {
        let calls = Rc::new(Cell::new(0));
        let counter = calls.clone();
        let slot = CallbackSlot::new(Some(Box::new(move || {
            counter.set(counter.get() + 1);
            assert_ne!(counter.get(), 2, "the second call panics");
        })));
        slot.call();
        assert!(catch_unwind(AssertUnwindSafe(|| slot.call())).is_err());
        slot.call();
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn a_callback_that_is_replaced_or_cleared_while_it_runs_does_not_come_back() {
        let slot = Rc::new(CallbackSlot::new(None));
        let calls = Rc::new(Cell::new(0));
        let (inner, counter) = (slot.clone(), calls.clone());
        let empty = slot.set(Box::new(move || {
            let counter = counter.clone();
            drop(inner.set(Box::new(move || counter.set(counter.get() + 10))));
        }));
        assert!(empty.is_none());
        slot.call();
        slot.call();
        assert_eq!(calls.get(), 10);
        let inner = slot.clone();
        drop(slot.set(Box::new(move || inner.clear())));
        slot.call();
        slot.call();
        assert_eq!(
            Rc::strong_count(&slot),
            1,
            "the cleared callback was dropped"
        );
    }
}
