//! The memory limit.
//!
//! QuickJS has a limit of its own. But where it refuses the last few bytes, none are left for the
//! error, and the engine throws `null` instead. Here, a refusal opens a reserve for the error.

use rquickjs::allocator::{Allocator, RustAllocator};

/// Bytes beyond the limit, from a refusal until the heap has shrunk by as much.
const RESERVE: usize = 64 * 1024;

/// Rust's allocator with a limit.
pub(super) struct Limited {
    limit: usize,
    used: usize,
    reserve: usize,
}

impl Limited {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: 0,
            reserve: 0,
        }
    }

    /// Returns whether `more` bytes may be added to `used`.
    fn allows(&mut self, used: usize, more: usize) -> bool {
        let most = self.limit.saturating_add(self.reserve);
        let is_allowed = used.saturating_add(more) <= most;
        if !is_allowed {
            self.reserve = RESERVE;
        }
        is_allowed
    }

    /// Counts what the allocator has returned.
    fn taken(&mut self, start: *mut u8) -> *mut u8 {
        if !start.is_null() {
            // SAFETY: the allocation is new, and of Rust's allocator.
            self.used += unsafe { RustAllocator::usable_size(start) };
        }
        start
    }

    fn released(&mut self, size: usize) {
        self.used -= size;
        if self.used.saturating_add(RESERVE) <= self.limit {
            self.reserve = 0;
        }
    }
}

// SAFETY: all memory is that of Rust's allocator, which keeps the contract; this one only counts,
// and refuses with a null pointer.
unsafe impl Allocator for Limited {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        match self.allows(self.used, size) {
            true => self.taken(RustAllocator.alloc(size)),
            false => std::ptr::null_mut(),
        }
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        match count.checked_mul(size) {
            Some(all) if self.allows(self.used, all) => {
                self.taken(RustAllocator.calloc(count, size))
            }
            _ => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&mut self, start: *mut u8) {
        // SAFETY: the caller passes an allocation of this allocator, which is one of Rust's.
        unsafe {
            self.released(RustAllocator::usable_size(start));
            RustAllocator.dealloc(start);
        }
    }

    unsafe fn realloc(&mut self, start: *mut u8, size: usize) -> *mut u8 {
        if start.is_null() {
            return self.alloc(size);
        }
        // SAFETY: the caller passes an allocation of this allocator, which is one of Rust's.
        unsafe {
            let before = RustAllocator::usable_size(start);
            if !self.allows(self.used - before, size) {
                return std::ptr::null_mut();
            }
            let moved = RustAllocator.realloc(start, size);
            if !moved.is_null() {
                self.used += RustAllocator::usable_size(moved);
                self.released(before);
            }
            moved
        }
    }

    unsafe fn usable_size(start: *mut u8) -> usize {
        // SAFETY: the caller passes an allocation of this allocator, which is one of Rust's.
        unsafe { RustAllocator::usable_size(start) }
    }
}
