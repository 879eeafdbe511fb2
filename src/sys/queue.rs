//! A queue of one thread that is pushed to and popped from through shared references.
#![allow(
    unsafe_code,
    reason = "the queues of the loop are touched several times for every task: the flag of a `RefCell` is a third of that"
)]

use std::cell::UnsafeCell;
use std::collections::VecDeque;

/// First in, first out. It hands out values, never references, so no two uses of it overlap.
pub(crate) struct Queue<T> {
    items: UnsafeCell<VecDeque<T>>,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            items: UnsafeCell::new(VecDeque::new()),
        }
    }

    /// Calls `f` with the items.
    ///
    /// # Safety
    ///
    /// `f` runs no code of `T` or anybody else's, which might come back to this queue.
    #[inline(always)]
    unsafe fn with<R>(&self, f: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        // SAFETY: the type is not `Sync`, and no other reference is in use: those of other calls have ended with them, and
        // none is made inside this one.
        f(unsafe { &mut *self.items.get() })
    }

    #[inline(always)]
    pub(crate) fn push(&self, item: T) {
        // SAFETY: moves the item, and the others if memory is needed; runs no code of theirs.
        unsafe { self.with(|items| items.push_back(item)) }
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<T> {
        // SAFETY: moves the item.
        unsafe { self.with(VecDeque::pop_front) }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: looks at the length.
        unsafe { self.with(|items| items.len()) }
    }

    /// Gives the memory back, if it is for more than `kept` items; the queue is empty.
    #[inline(always)]
    pub(crate) fn shrink(&self, kept: usize) {
        // SAFETY: moves what there is.
        unsafe {
            self.with(|items| {
                if items.capacity() > kept {
                    items.shrink_to(0);
                }
            });
        }
    }

    /// Takes everything out.
    pub(crate) fn take(&self) -> VecDeque<T> {
        // SAFETY: moves the items.
        unsafe { self.with(std::mem::take) }
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use std::rc::Rc;

    #[test]
    fn what_is_pushed_comes_out_in_order() {
        let queue = Queue::new();
        assert_eq!(queue.len(), 0);
        for item in 0..100 {
            queue.push(item);
        }
        let half: Vec<_> = std::iter::from_fn(|| queue.pop()).take(50).collect();
        assert_eq!(half, (0..50).collect::<Vec<_>>());
        assert_eq!(queue.take(), (50..100).collect::<Vec<_>>());
        assert!(queue.pop().is_none());
    }

    /// An item that comes back to its queue while it is dropped finds it in order.
    #[test]
    fn an_item_may_use_the_queue_when_it_is_dropped() {
        struct Item(Rc<Queue<Self>>, u32);
        impl Drop for Item {
            fn drop(&mut self) {
                if self.1 > 0 {
                    self.0.push(Self(self.0.clone(), self.1 - 1));
                }
            }
        }
        let queue = Rc::new(Queue::new());
        queue.push(Item(queue.clone(), 3));
        let mut popped = 0;
        while let Some(item) = queue.pop() {
            drop(item);
            popped += 1;
        }
        assert_eq!(popped, 4);
        queue.push(Item(queue.clone(), 1));
        drop(queue.take());
        assert_eq!(queue.len(), 1);
        drop(queue.take());
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_burst_is_not_paid_for_for_ever() {
        let queue = Queue::new();
        for item in 0..1000 {
            queue.push(item);
        }
        while queue.pop().is_some() {}
        queue.shrink(2000);
        // SAFETY: nobody else uses the queue.
        let capacity = || unsafe { queue.with(|items| items.capacity()) };
        assert!(capacity() >= 1000);
        queue.shrink(100);
        assert_eq!(capacity(), 0);
    }
}
