//! The wakers of tasks, as far as the type of the future decides about them.
// Marks: a task that is spawned looks here, and seldom asks (row `spawn_join`).

use std::any::TypeId;
use std::cell::Cell;
use std::ptr;
use std::task::RawWakerVTable;

use super::{Local, Meta};

/// The number of types that are known at a time.
const TYPES: usize = 16;

/// What the wakers of all tasks have in common whose futures have one type.
///
/// `async_task` shows it only in a waker, which is counted up and down: two locked instructions,
/// and a tenth of what a task costs from its spawn to its end. So it is asked once for each type.
pub(crate) struct WakerKinds<L: Local> {
    known: [Cell<Option<(TypeId, WakerKind)>>; TYPES],
    _local: std::marker::PhantomData<L>,
}

#[derive(Clone, Copy)]
pub(super) struct WakerKind {
    pub(super) vtable: &'static RawWakerVTable,
    /// The distance from the data pointer of a waker to the metadata of its task.
    pub(super) bytes_before: u8,
}

impl WakerKind {
    /// Asks a task.
    #[inline(never)]
    pub(super) fn of<L: Local>(runnable: &async_task::Runnable<Meta<L>>) -> Self {
        let waker = runnable.waker();
        let before = ptr::from_ref(runnable.metadata()).addr() - waker.data().addr();
        Self {
            vtable: waker.vtable(),
            bytes_before: u8::try_from(before).expect("the metadata is in the task's header"),
        }
    }
}

impl<L: Local> WakerKinds<L> {
    pub(crate) fn new() -> Self {
        Self {
            known: std::array::from_fn(|_| Cell::new(None)),
            _local: std::marker::PhantomData,
        }
    }

    /// Returns the kind of the wakers of a task whose future is an `F`.
    #[inline(always)]
    pub(super) fn get<F: 'static>(&self, runnable: &async_task::Runnable<Meta<L>>) -> WakerKind {
        let wanted = TypeId::of::<F>();
        // The compiler knows the place. Two types that share one are asked in turn.
        let place = &self.known[size_of::<F>().div_ceil(8) % TYPES];
        match place.get() {
            Some((of, kind)) if of == wanted => kind,
            _ => {
                let kind = WakerKind::of(runnable);
                place.set(Some((wanted, kind)));
                kind
            }
        }
    }
}
