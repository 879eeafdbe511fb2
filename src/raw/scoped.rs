//! A slot for a closure that lives on the stack of an outer caller.
//!
//! `block_on` keeps the main future, which may borrow, on its own stack. The microtask lane polls
//! it from a deeper frame, through a [`ScopedCall`].
#![allow(
    unsafe_code,
    reason = "erases the lifetime of a closure for the time of one scope"
)]

use std::cell::Cell;
use std::ptr::NonNull;

/// A slot for a borrowed closure, filled for the duration of [`ScopedCall::with`].
pub(crate) struct ScopedCall {
    /// `Some` only while a `with` is on the stack and no `call` is inside the closure.
    slot: Cell<Option<NonNull<dyn FnMut()>>>,
}

impl ScopedCall {
    pub(crate) fn new() -> Self {
        Self {
            slot: Cell::new(None),
        }
    }

    /// Makes `closure` callable through [`call`](Self::call) while `body` runs.
    pub(crate) fn with<R>(&self, closure: &mut dyn FnMut(), body: impl FnOnce() -> R) -> R {
        struct Restore<'a> {
            slot: &'a Cell<Option<NonNull<dyn FnMut()>>>,
            before: Option<NonNull<dyn FnMut()>>,
        }
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.slot.set(self.before);
            }
        }

        let pointer: NonNull<dyn FnMut() + '_> = NonNull::from(closure);
        // SAFETY: only the lifetime changes. The pointer is dereferenced in `call` alone. `Restore`
        // takes it out of the slot at the end of this function, also if `body` unwinds, and
        // `closure` is borrowed for at least that long.
        let pointer = unsafe {
            std::mem::transmute::<NonNull<dyn FnMut() + '_>, NonNull<dyn FnMut() + 'static>>(
                pointer,
            )
        };
        let _restore = Restore {
            slot: &self.slot,
            before: self.slot.replace(Some(pointer)),
        };
        body()
    }

    /// Calls the closure, if the slot holds one. A call from inside the closure itself does
    /// nothing.
    pub(crate) fn call(&self) {
        struct PutBack<'a> {
            slot: &'a Cell<Option<NonNull<dyn FnMut()>>>,
            pointer: NonNull<dyn FnMut()>,
        }
        impl Drop for PutBack<'_> {
            fn drop(&mut self) {
                self.slot.set(Some(self.pointer));
            }
        }

        let Some(pointer) = self.slot.take() else {
            return;
        };
        let mut put_back = PutBack {
            slot: &self.slot,
            pointer,
        };
        // SAFETY: the pointer comes from `with`, which is still on this thread's stack (the slot is
        // not `Sync`) and borrows the closure mutably without using it. The pointer is out of the
        // slot during the call, so there is no second reference.
        unsafe { put_back.pointer.as_mut()() }
    }
}

#[cfg(test)]
mod tests {
    use super::ScopedCall;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn calls_reach_the_closure_only_inside_the_scope() {
        let slot = ScopedCall::new();
        let mut calls = 0;
        slot.call();
        slot.with(&mut || calls += 1, || {
            slot.call();
            slot.call();
        });
        slot.call();
        assert_eq!(calls, 2);
    }

    #[test]
    fn a_call_from_inside_the_closure_is_ignored() {
        let slot = ScopedCall::new();
        let calls = Cell::new(0);
        slot.with(
            &mut || {
                calls.set(calls.get() + 1);
                slot.call();
            },
            || slot.call(),
        );
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn a_panic_leaves_the_slot_as_it_was() {
        let slot = ScopedCall::new();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            slot.with(&mut || panic!("inside"), || slot.call());
        }));
        assert!(unwound.is_err());
        slot.call();
    }
}
