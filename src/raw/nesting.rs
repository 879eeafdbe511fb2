//! Bounds on the stack use of long chains: of values of which each owns the next, and of calls of
//! which each makes the next.

use std::any::Any;
use std::cell::{Cell, RefCell};

use super::unwind::Steps;

/// The number of nested drops after which the next one is deferred.
const DEEPEST_DROP: u32 = 32;

/// The number of nested calls after which the next one is refused. A call takes about 3 KiB of
/// stack in a debug build, and a thread has 2 MiB.
const DEEPEST_CALL: u32 = 256;

thread_local! {
    /// The number of nested calls of `drop_flat` on this thread.
    static DROPS: Cell<u32> = const { Cell::new(0) };
    /// The values that the outermost call drops at its end.
    static DEFERRED: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
    /// The number of nested calls of `call_nested` on this thread.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Drops a value at once, or, inside many nested calls of this function, before the outermost call
/// returns.
///
/// A chain of values that each drop the next one with this function uses a bounded amount of stack.
pub fn drop_flat<T: 'static>(value: T) {
    let depth = DROPS.get();
    if depth < DEEPEST_DROP {
        DROPS.set(depth + 1);
        let _end = EndOfDrop { depth };
        drop(value);
        return;
    }
    let value = Box::new(value);
    // A thread that ends has no list any more; then the value is dropped in place.
    let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().push(value));
}

/// A value that is dropped with [`drop_flat`].
pub(crate) struct Flat<T: 'static>(Option<T>);

impl<T> Flat<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn into_inner(mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Flat<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            drop_flat(value);
        }
    }
}

/// Ends a drop, also after its panic: deferred values are dropped nevertheless, as a `Vec` drops
/// its other elements.
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
        // This also runs if the drop of a deferred value panics.
        let _leave = Leave(self.depth);
        if self.depth == 0 {
            drop_deferred();
        }
    }
}

fn drop_deferred() {
    let next = || DEFERRED.try_with(|deferred| deferred.borrow_mut().pop());
    let mut steps = Steps::default();
    steps.drop_each(std::iter::from_fn(|| next().ok().flatten()));
    steps.end();
}

/// Calls `f`, unless too many calls of this function are nested already; then it returns `None`.
pub fn call_nested<R>(f: impl FnOnce() -> R) -> Option<R> {
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
            assert!(!self.panics, "as it was asked to");
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
