//! Signals: a record that the signal handler writes and the loop reads, and the dispositions of the process.
//!
//! The handler is `signal-hook-registry`'s. It runs our action, which is a few atomic operations and at most one
//! write, and whatever handler was there before. The registry never takes its handler out again; a process would go
//! on ignoring a signal that nobody listens to any more. So the first listener of a signal keeps what was there, and
//! the last one puts it back.
#![allow(unsafe_code, reason = "asks for and sets the dispositions of signals")]

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook_registry::{FORBIDDEN, SigId};

use super::poller::Notifier;

pub(crate) use libc::{
    SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL,
    SIGPIPE, SIGPROF, SIGQUIT, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

/// The largest number a signal has anywhere.
const LARGEST: usize = 128;

/// What was caught for one loop and not looked at yet: for each signal, when it was first caught.
///
/// The handler notes, on whatever thread; the loop takes. A signal that is caught again before the loop has looked is
/// caught once. Nothing is lost: the loop clears the mark first and looks then, the handler notes first and marks then.
pub(crate) struct Caught {
    /// Whether something was noted since the last look.
    marked: AtomicBool,
    /// Odd numbers, so that none is 0.
    next_ticket: AtomicUsize,
    /// By signal: the ticket of the first catch, or 0.
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

    /// Notes a signal and wakes the loop if this is the first since it looked. For signal handlers: atomic operations and
    /// at most one write, no lock, no allocation, no panic.
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

    /// Whether there is something to take.
    pub(crate) fn any(&self) -> bool {
        self.marked.load(Ordering::Acquire)
    }

    /// Takes the signals that were caught, in the order of their first catch (R244).
    pub(crate) fn take(&self) -> Vec<i32> {
        self.marked.swap(false, Ordering::AcqRel);
        let mut caught: Vec<(usize, i32)> = (0..)
            .zip(&self.tickets)
            .map(|(number, slot)| (slot.swap(0, Ordering::AcqRel), number))
            .filter(|&(ticket, _)| ticket != 0)
            .collect();
        // By distance: the counter may have wrapped meanwhile.
        let now = self.next_ticket.load(Ordering::Relaxed);
        caught.sort_unstable_by_key(|&(ticket, _)| std::cmp::Reverse(now.wrapping_sub(ticket)));
        caught.into_iter().map(|(_, number)| number).collect()
    }
}

/// Has a signal noted for a loop, from [`watch`] until the drop.
pub(crate) struct Watch {
    number: i32,
    id: SigId,
}

/// Has every `number` that the process catches from now on noted in `caught`.
///
/// # Errors
///
/// `InvalidInput` for what is no signal, for those nobody can catch, and for those that stand for a fault of the
/// program itself, after which no handler may return.
pub(crate) fn watch(number: i32, caught: &Arc<Caught>) -> io::Result<Watch> {
    let in_range = usize::try_from(number).is_ok_and(|number| (1..=LARGEST).contains(&number));
    if !in_range || FORBIDDEN.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = disposition(number)?;
    let caught = caught.clone();
    // SAFETY: the action runs in the signal handler. `Caught::note` does nothing that is not allowed there; the `Arc` is
    // dropped by `unregister`, outside of the handler.
    let id = unsafe { signal_hook_registry::register(number, move || caught.note(number))? };
    let entry = taken.entry(number).or_default();
    if entry.watches == 0 {
        // The registry installs its handler once for all time; ours was taken out again meanwhile.
        if let Some(handler) = &entry.handler {
            set_disposition(number, handler)?;
        }
        let now = disposition(number)?;
        // The same as before: somebody else in the process listens through the registry, and still will after us.
        entry.before = (now.sa_sigaction != before.sa_sigaction).then_some(before);
        entry.handler = Some(now);
    }
    entry.watches += 1;
    Ok(Watch { number, id })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = taken.get_mut(&self.number) {
            entry.watches -= 1;
            if entry.watches == 0 {
                if let Some(before) = entry.before.take() {
                    // Fails for numbers that are no signals only.
                    let _ = set_disposition(self.number, &before);
                }
            }
        }
        signal_hook_registry::unregister(self.id);
    }
}

/// A signal that was listened to at some time.
#[derive(Default)]
struct Taken {
    /// How many loops of the process listen now.
    watches: usize,
    /// What to put back after the last of them.
    before: Option<libc::sigaction>,
    /// The registry's handler.
    handler: Option<libc::sigaction>,
}

static TAKEN: Mutex<BTreeMap<i32, Taken>> = Mutex::new(BTreeMap::new());

/// Whether the system has a signal of this number for programs.
pub(crate) fn exists(number: i32) -> bool {
    disposition(number).is_ok()
}

fn disposition(number: i32) -> io::Result<libc::sigaction> {
    let mut current = MaybeUninit::uninit();
    // SAFETY: a null pointer changes nothing; `current` has room for the answer.
    let result = unsafe { libc::sigaction(number, std::ptr::null(), current.as_mut_ptr()) };
    if result == 0 {
        // SAFETY: filled by the call, which has succeeded.
        Ok(unsafe { current.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}

fn set_disposition(number: i32, new: &libc::sigaction) -> io::Result<()> {
    // SAFETY: `new` came from the system as the disposition of this very signal: a handler in it is one that was installed,
    // and the registry's stays valid for the life of the process.
    let result = unsafe { libc::sigaction(number, new, std::ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::{Caught, LARGEST};
    use crate::sys::poller::{Events, Poller};

    #[test]
    fn signals_are_taken_once_in_the_order_of_their_first_catch() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        assert!(!caught.any() && caught.take().is_empty());
        for number in [12, 3, 12, 7, 3, LARGEST as i32] {
            caught.note(number);
        }
        assert!(caught.any());
        assert_eq!(caught.take(), [12, 3, 7, LARGEST as i32]);
        assert!(!caught.any() && caught.take().is_empty());
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
            // Would hang if the wake were lost.
            poller.wait(&mut Events::new(), None).unwrap();
            assert_eq!(caught.take(), [1, 2]);
        }
    }

    #[test]
    fn what_is_no_signal_is_not_noted() {
        let poller = Poller::new().unwrap();
        let caught = Caught::new(poller.notifier());
        caught.note(-1);
        caught.note(LARGEST as i32 + 1);
        assert!(!caught.any());
    }
}
