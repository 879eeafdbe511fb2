//! The timer heap, ordered by deadline, then by insertion. An entry is removed without a search.
//!
//! ```text
//!              insert              collect_due            pop_ready          remove
//!   free slot ────────> in the heap ─────────> ready list ────────> fired ────────> free slot
//!                            └───────── remove ───┴───────────────────────────────────^
//! ```
//!
//! It is a four-ary heap of small entries and a table of slots with the position of each entry.
//! Four children share a cache line, and the tree is half as deep as a binary one. A pass first
//! moves the due entries to a *ready* list and then takes them from there, so an entry that is
//! added during the pass waits for the next one.
// Rules of tests/LIBUV.md: R53.
// Marks: most entries stay where they are put, which takes no call (rows `timer_drop/1000`,
// `set_timeout`). The walks through the heap are not inlined.

use std::mem;
use std::num::NonZeroU32;

const ARITY: usize = 4;

/// Up to this number, due entries are taken from the top of the heap one by one. More of them are
/// taken out together, which costs less than a walk through the levels of the heap for each.
const FEW: usize = 8;

/// The position of an entry that is in the ready list.
const READY: u32 = u32::MAX;

/// The position of an entry that has fired and was not removed yet.
const FIRED: u32 = u32::MAX - 1;

/// A ready list with room for more entries than this releases its memory after its pass.
const LARGE: usize = 1 << 16;

/// `P` is what an entry carries. Its default value, which must own nothing, stands in the slots
/// that carry nothing.
#[derive(Default)]
pub(crate) struct TimerHeap<P> {
    pub(in crate::event_loop::phases) heap: Vec<Entry>,
    /// The entries of the current pass, in order. One that was removed from its slot stays here.
    pub(in crate::event_loop::phases) ready: Vec<Entry>,
    /// The number of ready entries that the pass has taken.
    taken: usize,
    /// The first slot is never used, so that no key is zero.
    slots: Vec<Slot<P>>,
    /// The first free slot, or zero.
    free: u32,
    next_sequence: u32,
}

/// Deadline, number of the insertion and slot, from the upper bits to the lower: one comparison of
/// integers compares all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::event_loop::phases) struct Entry(u128);

struct Slot<P> {
    /// The position in the heap, [`READY`] or [`FIRED`]; the next free slot or zero if this one is
    /// free.
    position: u32,
    /// A flag of the owner of the heap. It shares a word with the position, so it takes no space.
    mark: bool,
    payload: P,
}

/// The key of an entry, from its insertion until its removal. Whoever inserts an entry removes it,
/// also after it has fired: the slot is not used for another one until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey(NonZeroU32);

/// An entry that [`TimerHeap::remove`] has removed.
pub(crate) struct Removed<P> {
    pub(crate) payload: P,
    /// Whether it was in the heap; otherwise in the ready list.
    pub(crate) was_in_heap: bool,
}

impl Entry {
    fn new(deadline: u64, sequence: u32, slot: u32) -> Self {
        Self(u128::from(deadline) << 64 | u128::from(sequence) << 32 | u128::from(slot))
    }

    fn deadline(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    /// Returns the entry with another number.
    fn renumbered(self, sequence: u32) -> Self {
        Self::new(self.deadline(), sequence, self.0 as u32)
    }
}

impl<P: Default> TimerHeap<P> {
    /// Adds an entry with a mark, behind the entries of equal deadline.
    #[inline(always)]
    pub(crate) fn insert(&mut self, deadline: u64, payload: P, mark: bool) -> TimerKey {
        let free = NonZeroU32::new(self.free).unwrap_or_else(|| self.add());
        let slot = &mut self.slots[free.get() as usize];
        // The position is set when the entry is pushed.
        self.free = slot.position;
        slot.mark = mark;
        // The default value that stood here owns nothing.
        mem::forget(mem::replace(&mut slot.payload, payload));
        if self.next_sequence == u32::MAX {
            self.renumber();
        }
        let entry = Entry::new(deadline, self.next_sequence, free.get());
        self.next_sequence += 1;
        self.push(entry);
        TimerKey(free)
    }

    /// Removes an entry and frees its slot. Returns `None` if it has fired.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Removed<P>> {
        let slot = &mut self.slots[key.0.get() as usize];
        let position = mem::replace(&mut slot.position, self.free);
        self.free = key.0.get();
        if position == FIRED {
            return None;
        }
        let payload = mem::take(&mut slot.payload);
        if position == READY {
            // The ready list keeps its item. `pop_ready` skips it, since its slot is not ready.
            return Some(Removed {
                payload,
                was_in_heap: false,
            });
        }
        self.remove_at(position as usize);
        Some(Removed {
            payload,
            was_in_heap: true,
        })
    }

    /// Takes the payload of an entry in the heap. The entry has fired then; its key stays valid.
    pub(crate) fn end(&mut self, key: TimerKey) -> P {
        let slot = &mut self.slots[key.0.get() as usize];
        let position = mem::replace(&mut slot.position, FIRED);
        let payload = mem::take(&mut slot.payload);
        self.remove_at(position as usize);
        payload
    }

    /// Returns the payload of an entry that has not fired.
    pub(crate) fn get_mut(&mut self, key: TimerKey) -> Option<&mut P> {
        let slot = &mut self.slots[key.0.get() as usize];
        (slot.position != FIRED).then_some(&mut slot.payload)
    }

    /// Sets the mark of an entry. Returns `true` if that was a change and the entry is in the heap,
    /// neither ready nor fired.
    pub(crate) fn set_mark(&mut self, key: TimerKey, mark: bool) -> bool {
        let slot = &mut self.slots[key.0.get() as usize];
        mem::replace(&mut slot.mark, mark) != mark && slot.position < FIRED
    }

    /// Returns the earliest deadline in the heap.
    pub(crate) fn first(&self) -> Option<(u64, &P)> {
        let first = self.heap.first()?;
        Some((first.deadline(), &self.slots[first.slot()].payload))
    }

    /// Returns the deadline, payload and mark of every entry that has not fired, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &P, bool)> {
        self.waiting().map(|entry| {
            let slot = &self.slots[entry.slot()];
            (entry.deadline(), &slot.payload, slot.mark)
        })
    }

    /// Returns the entries of the heap, and those of the ready list that were not removed.
    fn waiting(&self) -> impl Iterator<Item = Entry> {
        let is_ready = |entry: &&Entry| self.slots[entry.slot()].position == READY;
        let ready = self.ready[self.taken..].iter().filter(is_ready);
        self.heap.iter().chain(ready).copied()
    }

    /// Begins a pass: moves the entries with a deadline up to `now` to the ready list, in order.
    /// The pass before has ended.
    pub(crate) fn collect_due(&mut self, now: u64, mut collected: impl FnMut(u64, &P, bool)) {
        debug_assert!(self.ready.is_empty(), "the pass before has ended");
        let is_due = |entry: &Entry| entry.deadline() <= now;
        if !self.heap.first().is_some_and(is_due) {
            return;
        }
        // The walk ends at the first entry that is not due, so it is no longer than what is due.
        if self.heap.iter().rev().all(is_due) {
            mem::swap(&mut self.heap, &mut self.ready);
            self.ready.sort_unstable();
        } else {
            self.collect_top(now);
        }
        for entry in &self.ready {
            let slot = &mut self.slots[entry.slot()];
            slot.position = READY;
            collected(entry.deadline(), &slot.payload, slot.mark);
        }
    }

    /// Moves the due entries, which are not all, to the ready list, in order.
    fn collect_top(&mut self, now: u64) {
        while let Some(&first) = self.heap.first().filter(|first| first.deadline() <= now) {
            if self.ready.len() == FEW {
                return self.collect_subtree(now);
            }
            self.remove_at(0);
            self.ready.push(first);
        }
    }

    /// Moves the due entries together, as the top of the tree that they are: above a due entry all
    /// are due.
    #[inline(never)]
    fn collect_subtree(&mut self, now: u64) {
        let sorted = self.ready.len();
        let mut due = vec![0];
        let mut next = 0;
        while let Some(&position) = due.get(next) {
            self.ready.push(self.heap[position]);
            let first = position * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            due.extend(children.filter(|&child| self.heap[child].deadline() <= now));
            next += 1;
        }
        self.ready[sorted..].sort_unstable();
        // From the last to the first: what is below a position is a heap then, and what is above it
        // is due, so that no other entry rises above the position.
        for &position in due.iter().rev() {
            self.remove_at(position);
        }
    }

    /// Returns the deadline and the payload of the next entry of the ready list that was not
    /// removed. It has fired now; its key stays valid. `None` ends the pass.
    pub(crate) fn pop_ready(&mut self) -> Option<(u64, P)> {
        while let Some(entry) = self.ready.get(self.taken) {
            self.taken += 1;
            let slot = &mut self.slots[entry.slot()];
            if slot.position == READY {
                slot.position = FIRED;
                return Some((entry.deadline(), mem::take(&mut slot.payload)));
            }
        }
        self.end_pass();
        None
    }

    /// Ends an interrupted pass: moves the rest of the ready list back to the heap. Each entry
    /// keeps its deadline and its number.
    pub(crate) fn put_back_ready(&mut self, mut put_back: impl FnMut(&P, bool)) {
        while let Some(&entry) = self.ready.get(self.taken) {
            self.taken += 1;
            let slot = &self.slots[entry.slot()];
            if slot.position == READY {
                put_back(&slot.payload, slot.mark);
                self.push(entry);
            }
        }
        self.end_pass();
    }

    fn end_pass(&mut self) {
        self.taken = 0;
        self.ready.clear();
        if self.ready.capacity() > LARGE {
            self.ready = Vec::new();
        }
    }

    /// Takes all payloads out. The entries have fired then; their keys stay valid.
    pub(crate) fn drain(&mut self) -> Vec<P> {
        // The heap becomes the end of the ready list, and a pass takes everything.
        for position in 0..self.heap.len() {
            let entry = self.heap[position];
            self.slots[entry.slot()].position = READY;
            self.ready.push(entry);
        }
        self.heap.clear();
        let mut payloads = Vec::new();
        while let Some((_, payload)) = self.pop_ready() {
            payloads.push(payload);
        }
        payloads
    }

    /// Adds a slot, which is the only free one, and returns its number.
    #[inline(never)]
    fn add(&mut self) -> NonZeroU32 {
        let free = || Slot {
            position: 0,
            mark: false,
            payload: P::default(),
        };
        if self.slots.is_empty() {
            self.slots.push(free());
        }
        let number = u32::try_from(self.slots.len()).ok();
        let number = number.filter(|&number| number < FIRED);
        let number = number.and_then(NonZeroU32::new);
        self.slots.push(free());
        number.expect("fewer than 2^32 timers are armed at once")
    }

    /// Numbers all entries anew, in their order, when the numbers are used up.
    #[cold]
    fn renumber(&mut self) {
        let ready = &mut self.ready[self.taken..];
        let in_heap = self.heap.len();
        // Each with its position in the lower bits. It sorts what `collect_due` sorts, so the
        // program has one sort.
        let mut order: Vec<_> = self
            .heap
            .iter()
            .chain(&*ready)
            .zip(0_u128..)
            .map(|(entry, position)| Entry(entry.0 << 64 | position))
            .collect();
        order.sort_unstable();
        self.next_sequence = 0;
        for Entry(place) in order {
            let position = place as u64 as usize;
            let entry = match self.heap.get_mut(position) {
                Some(entry) => entry,
                None => &mut ready[position - in_heap],
            };
            *entry = entry.renumbered(self.next_sequence);
            self.next_sequence += 1;
        }
    }

    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        let position = self.heap.len();
        self.heap.push(entry);
        if position > 0 && entry < self.heap[(position - 1) / ARITY] {
            self.rise(position, entry);
        } else {
            self.slots[entry.slot()].position = position as u32;
        }
    }

    #[inline(always)]
    fn remove_at(&mut self, position: usize) {
        let last = self.heap.pop().expect("the position is in the heap");
        if position == self.heap.len() {
            return;
        }
        // The last entry fills the gap if it belongs there or above: the usual case when a timer is
        // cancelled, since most entries are near the leaves.
        let is_leaf = position * ARITY + 1 >= self.heap.len();
        if is_leaf {
            self.sift_up(position, last);
        } else {
            self.fill_inner(position, last);
        }
    }

    /// Fills the gap at a position above the leaves. The gap sinks to a leaf first: `last` usually
    /// belongs near the bottom, so a comparison with it on every level would be wasted.
    #[inline(never)]
    fn fill_inner(&mut self, position: usize, last: Entry) {
        let leaf = self.sink(position);
        self.sift_up(leaf, last);
    }

    /// Puts `entry` into the gap at `position`, or above it. Most entries stay where they are,
    /// which takes no call.
    #[inline(always)]
    fn sift_up(&mut self, position: usize, entry: Entry) {
        if position > 0 && entry < self.heap[(position - 1) / ARITY] {
            self.rise(position, entry);
        } else {
            self.place(position, entry);
        }
    }

    /// Moves `entry` from the gap at `position` towards the root.
    #[inline(never)]
    fn rise(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            let above = self.heap[parent];
            if entry > above {
                break;
            }
            self.place(position, above);
            position = parent;
        }
        self.place(position, entry);
    }

    /// Fills the gap at `position` with the least child, repeats that for the child's place, and
    /// returns the leaf where the gap ends.
    fn sink(&mut self, mut position: usize) -> usize {
        loop {
            let first = position * ARITY + 1;
            let child = if let Some(children) = self.heap.get(first..first + ARITY) {
                // Two pairs are compared, then the winners: this halves the dependency chain of a
                // scan.
                let left = usize::from(children[1] < children[0]);
                let right = 2 + usize::from(children[3] < children[2]);
                first
                    + if children[right] < children[left] {
                        right
                    } else {
                        left
                    }
            } else {
                let rest = first..self.heap.len();
                match rest.min_by_key(|&child| self.heap[child]) {
                    Some(child) => child,
                    None => return position,
                }
            };
            let least = self.heap[child];
            self.place(position, least);
            position = child;
        }
    }

    #[inline]
    fn place(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.slots[entry.slot()].position = position as u32;
    }
}

#[cfg(test)]
mod tests;
