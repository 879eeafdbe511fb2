//! Polls that find out where a future waits.
//!
//! What waits keeps a clone of the waker that it is polled with. Here a future is polled with a
//! waker that notes the stack of each clone. The clone is a *tag*: a waker of its own, which wakes
//! the task, and by which the place is found again in a report.
//!
//! ```text
//! poll(noting waker) ─> async functions ─> sleep: clone ─> stack and tag are noted
//! ```
#![allow(unsafe_code, reason = "a waker whose clones are noted")]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};

use super::stack;

/// A place that waits.
pub(crate) struct WaitPoint {
    /// The data pointer of its tag.
    pub(crate) tag: *const (),
    /// The addresses between the poll of the task and the place, innermost first.
    pub(crate) stack: Vec<usize>,
}

/// What the polls on this thread do.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Usual,
    /// The next future is polled with a noting waker.
    Noting,
    /// Futures are polled as usual, but operations of sources are not attempted.
    Unattempted,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Usual) };
    static PLACES: RefCell<Vec<WaitPoint>> = const { RefCell::new(Vec::new()) };
    /// Whether an operation of a ready source was not attempted.
    static IS_HELD_BACK: Cell<bool> = const { Cell::new(false) };
}

/// What a poll without attempts has found.
pub(crate) struct Found {
    pub(crate) places: Vec<WaitPoint>,
    /// The future must be polled again: an operation of a ready source was not attempted.
    pub(crate) is_held_back: bool,
}

/// Calls `poll`, which polls one future by [`poll_with`], and returns where it waits.
pub(crate) fn places(poll: impl FnOnce()) -> Found {
    in_mode(Mode::Noting, poll)
}

/// Calls `poll`, which polls one future. What waits has the waker of the task again.
pub(crate) fn without_attempts(poll: impl FnOnce()) -> Found {
    in_mode(Mode::Unattempted, poll)
}

fn in_mode(mode: Mode, poll: impl FnOnce()) -> Found {
    struct Usual;
    impl Drop for Usual {
        fn drop(&mut self) {
            MODE.set(Mode::Usual);
        }
    }

    MODE.set(mode);
    IS_HELD_BACK.set(false);
    let usual = Usual;
    poll();
    drop(usual);
    Found {
        places: PLACES.take(),
        is_held_back: IS_HELD_BACK.get(),
    }
}

/// Returns whether the poll that begins was asked for by a report.
#[inline]
fn is_asked() -> bool {
    MODE.get() != Mode::Usual
}

/// Returns whether an operation of a source must not be attempted now. The poll is to change
/// nothing, and the data that arrive meanwhile wait for the next one.
#[inline]
pub(crate) fn holds_back(is_ready: bool) -> bool {
    if !is_asked() {
        return false;
    }
    IS_HELD_BACK.set(IS_HELD_BACK.get() || is_ready);
    true
}

/// Calls `poll`, with a noting waker if the caller of [`places`] waits for it.
#[inline]
pub(crate) fn poll_with<R>(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
    if MODE.get() != Mode::Noting {
        return poll(cx);
    }
    // Tasks that this one polls inside are not asked.
    MODE.set(Mode::Unattempted);
    let noting = Noting {
        inner: cx.waker().clone(),
        outer: stack::addresses(),
    };
    let raw = RawWaker::new(ptr::from_ref(&noting).cast(), &VTABLE);
    // SAFETY: the functions of the table take a pointer to a `Noting`, which lives until the poll
    // has returned. No waker with this table lives longer: its clones have another one. They may
    // be called on any thread, since they read only, and a `Waker` is shared between threads.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw) });
    poll(&mut Context::from_waker(&waker))
}

struct Noting {
    inner: Waker,
    /// The stack outside of the poll.
    outer: Vec<usize>,
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the pointer is that of `poll_with`, whose poll has not returned.
    let noting = unsafe { &*data.cast::<Noting>() };
    let tag = ManuallyDrop::new(Waker::from(Arc::new(Tag(noting.inner.clone()))));
    PLACES.with_borrow_mut(|places| {
        places.push(WaitPoint {
            tag: tag.data(),
            stack: stack::inside(&noting.outer),
        });
    });
    RawWaker::new(tag.data(), tag.vtable())
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the pointer is that of `poll_with`, whose poll has not returned.
    let noting = unsafe { &*data.cast::<Noting>() };
    noting.inner.wake_by_ref();
}

/// A clone of a noting waker.
struct Tag(Waker);

impl Wake for Tag {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use waker_fn::waker_fn;

    use super::{holds_back, places, poll_with, without_attempts};

    #[test]
    fn each_clone_is_a_place_and_wakes_the_task() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let waker = waker_fn(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let kept = RefCell::new(Vec::new());
        let poll = || {
            poll_with(&mut Context::from_waker(&waker), |cx| {
                assert!(!cx.waker().will_wake(&waker));
                cx.waker().wake_by_ref();
                kept.borrow_mut().push(cx.waker().clone());
                kept.borrow_mut().push(cx.waker().clone());
                assert!(holds_back(false));
            });
        };
        let found = places(poll);
        let tags: Vec<_> = found.places.iter().map(|place| place.tag).collect();
        let kept = kept.take();
        assert_eq!(tags, [kept[0].data(), kept[1].data()]);
        assert!(!found.is_held_back);
        for waker in kept {
            waker.wake_by_ref();
            drop(waker.clone());
            waker.wake();
        }
        assert_eq!(count.load(Ordering::Relaxed), 5);
        assert!(!holds_back(true), "only inside of such a poll");
    }

    #[test]
    fn a_poll_that_is_not_asked_has_the_waker_of_the_task() {
        let waker = Waker::noop();
        let inner = |cx: &mut Context<'_>| assert!(cx.waker().will_wake(waker));
        poll_with(&mut Context::from_waker(waker), inner);
        let found = without_attempts(|| {
            poll_with(&mut Context::from_waker(waker), inner);
            assert!(holds_back(true));
        });
        assert!(found.places.is_empty() && found.is_held_back);
    }
}
