//! Bounds for what would otherwise take a part of the stack for each link: chains of values of
//! which each owns the next, and chains of calls of which each makes the next.
#![allow(
    unsafe_code,
    reason = "the type of a join handle has a lifetime, but what it holds has none"
)]

use std::cell::{Cell, RefCell};

/// How many drops are nested before the next one is deferred.
const DEEPEST_DROP: u32 = 32;

/// How many calls are nested before the next one is refused. One takes about 3 KiB of the stack in
/// a debug build, and a thread has 2 MiB.
#[cfg(feature = "node")]
const DEEPEST_CALL: u32 = 256;

thread_local! {
    /// How many calls of `drop_flat` this thread is in.
    static DROPS: Cell<u32> = const { Cell::new(0) };
    /// What the outermost of them drops in the end.
    static DEFERRED: RefCell<Vec<Box<dyn Deferred>>> = const { RefCell::new(Vec::new()) };
    /// How many calls of `call_nested` this thread is in.
    #[cfg(feature = "node")]
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Drops a value at once; inside many other drops by this function, before the outermost of them
/// returns.
///
/// A chain of values of which each drops the next one by this function takes a bounded part of the
/// stack.
pub(crate) fn drop_flat<T: 'static>(value: T) {
    drop(Flat::new(value));
}

/// Anything that is dropped later.
pub(crate) trait Deferred {}

impl<T> Deferred for T {}

/// As [`drop_flat`], for a type that is not `'static`.
///
/// # Safety
///
/// As [`forget_lifetime`].
pub(crate) unsafe fn drop_flat_unbound<T>(value: T) {
    let depth = DROPS.get();
    if depth < DEEPEST_DROP {
        DROPS.set(depth + 1);
        let _end = EndOfDrop { depth };
        drop(value);
        return;
    }
    // SAFETY: the caller's promise.
    let value = unsafe { forget_lifetime(value) };
    // Refused by a thread that ends; the value is dropped in place then.
    let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().push(value));
}

/// Boxes a value, to be dropped at any later time.
///
/// # Safety
///
/// The value was `'static` when it was made: its type has a lifetime only because it was coerced
/// since.
pub(crate) unsafe fn forget_lifetime<'a, T: 'a>(value: T) -> Box<dyn Deferred> {
    let value: Box<dyn Deferred + 'a> = Box::new(value);
    // SAFETY: only the lifetime changes, and nothing in the value ends with it, by the caller's
    // promise.
    unsafe { std::mem::transmute::<Box<dyn Deferred + 'a>, Box<dyn Deferred>>(value) }
}

/// A value that is dropped as by [`drop_flat`].
pub(crate) struct Flat<T>(Option<T>);

impl<T> Flat<T> {
    pub(crate) fn new(value: T) -> Self
    where
        T: 'static,
    {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Flat<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            // SAFETY: `new` asks for `'static`.
            unsafe { drop_flat_unbound(value) };
        }
    }
}

/// Also runs when the drop panics: what was deferred is dropped all the same, as a `Vec` drops its
/// other elements.
struct EndOfDrop {
    depth: u32,
}

impl Drop for EndOfDrop {
    fn drop(&mut self) {
        struct Leave(u32);
        impl Drop for Leave {
            fn drop(&mut self) {
                DROPS.set(self.0);
            }
        }
        // Also when something deferred panics.
        let _leave = Leave(self.depth);
        if self.depth == 0 {
            drop_deferred();
        }
    }
}

fn drop_deferred() {
    struct GoOn;
    impl Drop for GoOn {
        fn drop(&mut self) {
            drop_deferred();
        }
    }
    let next = || DEFERRED.try_with(|deferred| deferred.borrow_mut().pop());
    while let Ok(Some(value)) = next() {
        let after_panic = GoOn;
        drop(value);
        std::mem::forget(after_panic);
    }
}

/// Calls `f`, unless many calls by this function are nested already. `None`: it was not called.
#[cfg(feature = "node")]
pub(crate) fn call_nested<R>(f: impl FnOnce() -> R) -> Option<R> {
    struct EndOfCall(u32);
    impl Drop for EndOfCall {
        fn drop(&mut self) {
            CALLS.set(self.0);
        }
    }
    let depth = CALLS.get();
    if depth >= DEEPEST_CALL {
        return None;
    }
    CALLS.set(depth + 1);
    let _end = EndOfCall(depth);
    Some(f())
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST_CALL, call_nested, drop_flat};
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    struct Link {
        next: Option<Box<Self>>,
        dropped: Rc<Cell<usize>>,
        panics: bool,
    }

    impl Drop for Link {
        fn drop(&mut self) {
            self.dropped.set(self.dropped.get() + 1);
            let next = self.next.take();
            if next.is_some() {
                drop_flat(next);
            }
            assert!(!self.panics, "as it was told");
        }
    }

    fn chain(links: usize, panics_at: usize) -> (Option<Box<Link>>, Rc<Cell<usize>>) {
        let dropped = Rc::new(Cell::new(0));
        let mut first = None;
        for link in 0..links {
            first = Some(Box::new(Link {
                next: first,
                dropped: dropped.clone(),
                panics: link == panics_at,
            }));
        }
        (first, dropped)
    }

    #[test]
    fn a_long_chain_is_dropped_within_a_small_stack() {
        let (chain, dropped) = chain(200_000, usize::MAX);
        drop_flat(chain);
        assert_eq!(dropped.get(), 200_000);
    }

    #[test]
    fn a_panic_on_the_way_comes_out_and_the_rest_is_dropped() {
        for panics_at in [0, 10, 500, 990, 999] {
            let (chain, dropped) = chain(1_000, panics_at);
            let outcome = catch_unwind(AssertUnwindSafe(|| drop_flat(chain)));
            assert!(outcome.is_err(), "{panics_at}");
            assert_eq!(dropped.get(), 1_000, "{panics_at}");
        }
        let (chain, dropped) = chain(1_000, usize::MAX);
        drop_flat(chain);
        assert_eq!(dropped.get(), 1_000);
    }

    #[test]
    fn calls_are_refused_when_too_many_are_nested() {
        fn nest(depth: u32) -> u32 {
            call_nested(|| nest(depth + 1)).unwrap_or(depth)
        }
        assert_eq!(nest(0), DEEPEST_CALL);
        assert!(catch_unwind(|| call_nested(|| panic!("inside"))).is_err());
        assert_eq!(nest(0), DEEPEST_CALL, "the count is right after a panic");
    }
}
