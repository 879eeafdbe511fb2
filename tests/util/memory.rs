//! An allocator that counts: the bytes that are allocated, and the allocations of each thread.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are allocated.
static LIVE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread has allocated.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: does what `System` does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns how often this thread has allocated.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}
