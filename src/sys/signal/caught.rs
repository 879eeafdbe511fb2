//! The caught signals of a loop: written by the signal handler, read by the loop.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::LARGEST;
use crate::sorted::sorted_by_number;
use crate::sys::poller::{Notifier, Notify as _};

/// The signals that were caught for one loop and not delivered yet, each with the order of its
/// first catch.
///
/// The handler records, on any thread; the loop takes. A signal that is caught again before it is
/// taken is delivered once. No signal is lost: the handler records first and then sets the mark;
/// before it sleeps, the loop clears the mark first and then checks.
pub(crate) struct Caught {
    /// Whether a signal was recorded since the last check.
    marked: AtomicBool,
    /// The next ticket. Tickets are odd, so that none is 0.
    next_ticket: AtomicUsize,
    /// By signal number: the ticket of the first catch, or 0.
    tickets: [AtomicUsize; LARGEST + 1],
    notifier: Notifier,
}

impl Caught {
    pub(crate) fn new(notifier: Notifier) -> Self {
        Self {
            marked: AtomicBool::new(false),
            next_ticket: AtomicUsize::new(1),
            tickets: [const { AtomicUsize::new(0) }; LARGEST + 1],
            notifier,
        }
    }

    /// Records a signal, and wakes the loop if this is the first since its last check. It is
    /// async-signal-safe: atomic operations and at most one `write`, no lock, no allocation, no
    /// panic.
    pub(crate) fn note(&self, number: i32) {
        let slot = usize::try_from(number)
            .ok()
            .and_then(|number| self.tickets.get(number));
        if let Some(slot) = slot {
            let ticket = self.next_ticket.fetch_add(2, Ordering::Relaxed);
            let _ = slot.compare_exchange(0, ticket, Ordering::AcqRel, Ordering::Relaxed);
            if !self.marked.swap(true, Ordering::AcqRel) {
                self.notifier.notify();
            }
        }
    }

    /// Returns whether a signal is recorded.
    pub(crate) fn has_pending(&self) -> bool {
        self.marked.load(Ordering::Acquire)
    }

    /// Clears the mark, so that the next catch wakes the loop. It must come before
    /// [`take`](Self::take), unless the loop checks again before it sleeps.
    pub(crate) fn unmark(&self) {
        self.marked.swap(false, Ordering::AcqRel);
    }

    /// Takes the recorded signals, in the order of their first catch.
    pub(crate) fn take(&self) -> Vec<i32> {
        let caught: Vec<(usize, i32)> = (0..)
            .zip(&self.tickets)
            .map(|(number, slot)| (slot.swap(0, Ordering::AcqRel), number))
            .filter(|&(ticket, _)| ticket != 0)
            .collect();
        // Sorted by age, oldest first, which is right even if the counter has wrapped.
        let now = self.next_ticket.load(Ordering::Relaxed);
        let by_age = |(ticket, number)| (!(now.wrapping_sub(ticket) as u64), number);
        sorted_by_number(caught.into_iter().map(by_age))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LARGEST;
    use super::Caught;
    use crate::sys::poller::{Events, Poller};

    #[test]
    fn signals_are_taken_once_in_the_order_of_their_first_catch() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        assert!(!caught.has_pending() && caught.take().is_empty());
        for number in [12, 3, 12, 7, 3, LARGEST as i32] {
            caught.note(number);
        }
        assert!(caught.has_pending());
        assert_eq!(caught.take(), [12, 3, 7, LARGEST as i32]);
        caught.unmark();
        assert!(!caught.has_pending() && caught.take().is_empty());
        caught.note(3);
        assert_eq!(caught.take(), [3]);
    }

    #[test]
    fn the_order_outlives_the_end_of_the_counter() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        caught
            .next_ticket
            .store(usize::MAX - 2, std::sync::atomic::Ordering::Relaxed);
        for number in [9, 5, 2] {
            caught.note(number);
        }
        assert_eq!(caught.take(), [9, 5, 2]);
    }

    #[test]
    fn the_first_one_wakes_the_loop() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        for _ in 0..3 {
            caught.note(1);
            caught.note(2);
            // This would wait for ever if the wake were lost.
            poller.wait(&mut Events::new(), None).unwrap();
            caught.unmark();
            assert_eq!(caught.take(), [1, 2]);
        }
    }

    #[test]
    fn what_is_no_signal_is_not_noted() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        caught.note(-1);
        caught.note(LARGEST as i32 + 1);
        assert!(!caught.has_pending());
    }
}
