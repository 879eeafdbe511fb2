//! A thread-local reference to something that lives further up the stack.
// Marks: each wake compares the tag of its loop with one load (row `ping_pong`).
#![allow(
    unsafe_code,
    reason = "a thread-local that is read at every wake must cost one load: no counting, no lazy initialisation"
)]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::thread::LocalKey;

/// The value of a thread-local that [`enter`] sets for the duration of a call.
pub(crate) struct Current<T> {
    /// Null, or a pointer from `Rc::as_ptr` whose `Rc` is held by an `enter` on this thread's
    /// stack.
    pointer: Cell<*const T>,
    /// Null exactly if the pointer is null. It identifies the current value without a dereference.
    tag: Cell<*const ()>,
}

impl<T> Current<T> {
    pub(crate) const fn new() -> Self {
        Self {
            pointer: Cell::new(ptr::null()),
            tag: Cell::new(ptr::null()),
        }
    }

    fn replace(&self, pointer: *const T, tag: *const ()) -> (*const T, *const ()) {
        (self.pointer.replace(pointer), self.tag.replace(tag))
    }
}

/// Makes `value` the current one while `body` runs, under a tag that identifies it.
pub(crate) fn enter<T, R>(
    key: &'static LocalKey<Current<T>>,
    value: &Rc<T>,
    tag: NonNull<()>,
    body: impl FnOnce() -> R,
) -> R {
    struct Restore<T: 'static> {
        key: &'static LocalKey<Current<T>>,
        before: (*const T, *const ()),
        /// Keeps the pointee alive until the pointer is replaced.
        _value: Rc<T>,
    }
    impl<T> Drop for Restore<T> {
        fn drop(&mut self) {
            let (pointer, tag) = self.before;
            self.key.with(|current| current.replace(pointer, tag));
        }
    }

    let before = key.with(|current| current.replace(Rc::as_ptr(value), tag.as_ptr()));
    let _restore = Restore {
        key,
        before,
        _value: value.clone(),
    };
    body()
}

/// Calls `body` while no value is the current one.
#[cfg(feature = "test-util")]
pub(crate) fn leave<T, R>(key: &'static LocalKey<Current<T>>, body: impl FnOnce() -> R) -> R {
    struct Restore<T: 'static> {
        key: &'static LocalKey<Current<T>>,
        before: (*const T, *const ()),
    }
    impl<T> Drop for Restore<T> {
        fn drop(&mut self) {
            let (pointer, tag) = self.before;
            self.key.with(|current| current.replace(pointer, tag));
        }
    }

    let before = key.with(|current| current.replace(ptr::null(), ptr::null()));
    let _restore = Restore { key, before };
    body()
}

/// Calls `f` with the current value, if it was entered under this tag.
#[inline(always)]
pub(crate) fn with_tagged<T, R>(
    key: &'static LocalKey<Current<T>>,
    tag: NonNull<()>,
    f: impl FnOnce(Option<&T>) -> R,
) -> R {
    key.with(|current| {
        if current.tag.get() != tag.as_ptr().cast_const() {
            return f(None);
        }
        // SAFETY: a tag that is not null was set with the pointer, by an `enter` that is still on
        // this thread's stack: it restores the previous ones when it returns, and the calls nest.
        // That `enter` holds the `Rc`, so the value is alive, and only shared references exist.
        f(Some(unsafe { &*current.pointer.get() }))
    })
}

/// Calls `f` with the current value.
#[inline]
pub(crate) fn with<T, R>(key: &'static LocalKey<Current<T>>, f: impl FnOnce(Option<&T>) -> R) -> R {
    match NonNull::new(key.with(|current| current.tag.get().cast_mut())) {
        Some(tag) => with_tagged(key, tag, f),
        None => f(None),
    }
}

/// Returns the current value.
#[inline]
pub(crate) fn get<T>(key: &'static LocalKey<Current<T>>) -> Option<Rc<T>> {
    key.with(|current| {
        let pointer = current.pointer.get();
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the pointer comes from the `Rc` that the `enter` on the stack holds, as in
        // `with_tagged`. The increment pays for the new `Rc`.
        unsafe {
            Rc::increment_strong_count(pointer);
            Some(Rc::from_raw(pointer))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Current, get, with, with_tagged};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::ptr::{self, NonNull};
    use std::rc::Rc;
    use std::thread::LocalKey;

    thread_local! {
        static CURRENT: Current<u32> = const { Current::new() };
    }

    fn current() -> Option<u32> {
        let value = with(&CURRENT, |value| value.copied());
        let tagged = |tag| with_tagged(&CURRENT, tag, |value| value.copied());
        for other in 1..=9 {
            assert_eq!(tagged(tag(other)), value.filter(|value| *value == other));
        }
        value
    }

    fn tag(value: u32) -> NonNull<()> {
        NonNull::new(ptr::without_provenance_mut(value as usize)).unwrap()
    }

    fn enter<R>(
        key: &'static LocalKey<Current<u32>>,
        value: &Rc<u32>,
        body: impl FnOnce() -> R,
    ) -> R {
        super::enter(key, value, tag(**value), body)
    }

    #[test]
    fn the_innermost_value_is_current_and_the_former_one_comes_back() {
        let (one, two) = (Rc::new(1), Rc::new(2));
        assert_eq!(current(), None);
        enter(&CURRENT, &one, || {
            assert_eq!(current(), Some(1));
            enter(&CURRENT, &two, || assert_eq!(current(), Some(2)));
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                enter(&CURRENT, &two, || panic!("inside"));
            }));
            assert!(unwound.is_err());
            assert_eq!(current(), Some(1));
            let kept = get(&CURRENT).unwrap();
            assert_eq!(Rc::strong_count(&one), 3);
            drop(kept);
        });
        assert_eq!(current(), None);
        assert_eq!((Rc::strong_count(&one), Rc::strong_count(&two)), (1, 1));
    }

    #[test]
    fn the_value_outlives_its_last_outside_owner() {
        let mut owner = Some(Rc::new(7));
        let value = owner.clone().unwrap();
        enter(&CURRENT, &value, || {
            owner = None;
            assert_eq!(current(), Some(7));
        });
        assert_eq!(Rc::strong_count(&value), 1);
        assert!(owner.is_none());
    }
}
