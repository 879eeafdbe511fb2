//! Closures that are called once. A [`Call`] is called on the thread that created it, and is stored
//! inline if it is small.
//!
//! It takes two words, as a `Box<dyn FnOnce()>` does. Many queued closures capture one pointer;
//! they need no allocation.
// Marks: a closure is written to its place in the lane (row `next_tick`).
#![allow(
    unsafe_code,
    reason = "the type of the closure is erased, and it is kept where its size allows"
)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;
use std::rc::Rc;

/// Room for a closure of one word, or for a pointer to a larger one. The word has pointer type, so
/// that a captured pointer keeps its provenance.
type Room = MaybeUninit<*mut ()>;

/// A queued closure.
pub struct Call {
    /// The functions for the type of the closure in the room.
    actions: &'static Actions,
    room: Room,
    /// Makes the type neither `Send` nor `Sync`: the closure need not be.
    _local: PhantomData<Rc<()>>,
}

struct Actions {
    /// Moves the closure out of the room and calls it.
    call: unsafe fn(*mut Room),
    /// Drops the closure in the room.
    drop: unsafe fn(*mut Room),
}

/// The actions for closures that fit into the room.
struct InPlace<F>(PhantomData<F>);

impl<F: FnOnce()> InPlace<F> {
    const FITS: bool = size_of::<F>() <= size_of::<Room>() && align_of::<F>() <= align_of::<Room>();

    const ACTIONS: Actions = Actions {
        call: Self::call,
        drop: Self::drop,
    };

    /// # Safety
    ///
    /// The room holds an `F`, which is moved out: the room must not be used again.
    unsafe fn call(room: *mut Room) {
        // SAFETY: by contract; the room is not used again.
        let closure = unsafe { room.cast::<F>().read() };
        closure();
    }

    /// # Safety
    ///
    /// The contract of [`call`](Self::call).
    unsafe fn drop(room: *mut Room) {
        // SAFETY: by contract; the room is not used again.
        unsafe { ptr::drop_in_place(room.cast::<F>()) };
    }
}

impl Call {
    #[inline]
    /// Boxes a closure.
    pub fn new<F: FnOnce() + 'static>(closure: F) -> Self {
        if InPlace::<F>::FITS {
            Self::in_place(closure)
        } else {
            Self::in_place(Box::new(closure))
        }
    }

    #[inline(always)]
    fn in_place<F: FnOnce() + 'static>(closure: F) -> Self {
        assert!(
            InPlace::<F>::FITS,
            "a box fits, and so does what is not boxed"
        );
        let mut room = Room::uninit();
        // SAFETY: the room is large enough and aligned for an `F`, and it is ours.
        unsafe { room.as_mut_ptr().cast::<F>().write(closure) };
        Self {
            actions: &InPlace::<F>::ACTIONS,
            room,
            _local: PhantomData,
        }
    }

    #[inline]
    /// Calls the closure.
    pub fn call(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the actions match the type that was written to the room. The room is used for the
        // last time here: `self` is not dropped.
        unsafe { (this.actions.call)(&raw mut this.room) };
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: the actions match the type that was written to the room. `call` has not run: it
        // prevents this drop.
        unsafe { (self.actions.drop)(&raw mut self.room) };
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// Turns a closure into one that can be called by reference, as `&mut dyn FnMut()`: a function that
/// takes it so exists once in the program. A second call does nothing.
pub(crate) fn once(call: impl FnOnce()) -> impl FnMut() {
    let mut call = Some(call);
    move || {
        if let Some(call) = call.take() {
            call();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Call;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[repr(align(64))]
    struct Aligned(u8);

    /// Closures of no size, one word, two, many, and a large alignment are called once and dropped
    /// once.
    #[test]
    fn closures_of_all_sizes_are_called_and_dropped_once() {
        let count = Rc::new(Cell::new(0));
        let add = |count: &Rc<Cell<u32>>, n| count.set(count.get() + n);
        for is_called in [true, false] {
            count.set(0);
            let calls = [
                Call::new(|| ()),
                Call::new({
                    let count = count.clone();
                    move || add(&count, 1)
                }),
                Call::new({
                    let (count, n) = (count.clone(), 10_u64);
                    move || add(&count, n as u32)
                }),
                Call::new({
                    let (count, many) = (count.clone(), [25_u32; 4]);
                    move || add(&count, many.iter().sum())
                }),
                Call::new({
                    let (count, aligned) = (count.clone(), Aligned(200));
                    move || {
                        assert_eq!((&raw const aligned).addr() % 64, 0);
                        add(&count, u32::from(aligned.0));
                    }
                }),
            ];
            assert_eq!(Rc::strong_count(&count), 5);
            if is_called {
                calls.into_iter().for_each(Call::call);
                assert_eq!(count.get(), 311);
            } else {
                drop(calls);
                assert_eq!(count.get(), 0);
            }
            assert_eq!(Rc::strong_count(&count), 1);
        }
    }

    #[test]
    fn a_panic_drops_what_the_closure_holds() {
        let held = Rc::new(());
        for size in [0, 1] {
            let (small, large) = (held.clone(), [held.clone(), held.clone(), held.clone()]);
            let call = if size == 0 {
                Call::new(move || {
                    let _small = small;
                    panic!("small")
                })
            } else {
                Call::new(move || {
                    let _large = large;
                    panic!("large")
                })
            };
            assert!(catch_unwind(AssertUnwindSafe(|| call.call())).is_err());
        }
        assert_eq!(Rc::strong_count(&held), 1);
    }
}
