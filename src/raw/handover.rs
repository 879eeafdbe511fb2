//! A piece of work on its way to another thread, and its output on the way back, in one place.
//!
//! ```text
//!   queued ── take ──> taken ── put ──> done ── take_output ──> over
//!      └────── end ──────┴────── end ─────┴─────── end ──────────^
//! ```
//!
//! Each step is one atomic operation, and no step waits for another thread.
#![allow(
    unsafe_code,
    reason = "a lock around each step of a job is a tenth of what the job costs"
)]

use std::cell::UnsafeCell;
use std::mem;

use super::sync::{AtomicU8, Ordering};

/// The work has not been taken.
const QUEUED: u8 = 0;
/// The work was taken, and the output is not here yet.
const TAKEN: u8 = 1;
/// The output is here.
const DONE: u8 = 2;
/// Nothing is here, and nothing will be.
const OVER: u8 = 3;

pub(crate) struct Handover<W, T> {
    stage: AtomicU8,
    /// It belongs to whoever has changed the stage from `QUEUED` or `DONE`. While the stage is
    /// `TAKEN`, and after an end meanwhile, it belongs to whoever has taken the work.
    content: UnsafeCell<Content<W, T>>,
}

/// What [`Handover::end`] has found. It is dropped by the caller, since that may run user code.
pub(crate) enum Content<W, T> {
    Work(W),
    Output(T),
    Nothing,
}

/// The right to put the output, for whoever has taken the work.
pub(crate) struct Taken<'a, W, T>(&'a Handover<W, T>);

// SAFETY: the content moves between threads, for which `Send` is enough. No two threads use it at
// the same time: see `content`. The stage that gives it away is written with `Release`, and read
// with `Acquire`.
unsafe impl<W: Send, T: Send> Sync for Handover<W, T> {}

impl<W, T> Handover<W, T> {
    pub(crate) fn new(work: W) -> Self {
        Self {
            stage: AtomicU8::new(QUEUED),
            content: UnsafeCell::new(Content::Work(work)),
        }
    }

    /// Takes the work, unless it was taken before or is over.
    #[inline]
    pub(crate) fn take(&self) -> Option<(W, Taken<'_, W, T>)> {
        if !self.step(QUEUED, TAKEN) {
            return None;
        }
        match self.replace(Content::Nothing) {
            Content::Work(work) => Some((work, Taken(self))),
            Content::Output(_) | Content::Nothing => unreachable!("queued work is here"),
        }
    }

    /// Returns whether the output is here.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.stage.load(Ordering::Acquire) == DONE
    }

    /// Takes the output, if it is here.
    #[inline]
    pub(crate) fn take_output(&self) -> Option<T> {
        if !self.step(DONE, OVER) {
            return None;
        }
        match self.replace(Content::Nothing) {
            Content::Output(output) => Some(output),
            Content::Work(_) | Content::Nothing => unreachable!("the output is here"),
        }
    }

    /// Ends the way of the work, wherever it is. If it was taken, [`Taken::put`] returns the
    /// output.
    pub(crate) fn end(&self) -> Content<W, T> {
        match self.stage.swap(OVER, Ordering::AcqRel) {
            QUEUED | DONE => self.replace(Content::Nothing),
            _ => Content::Nothing,
        }
    }

    #[inline]
    fn step(&self, from: u8, to: u8) -> bool {
        self.stage
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Replaces the content, which must belong to the caller.
    #[inline]
    fn replace(&self, content: Content<W, T>) -> Content<W, T> {
        // SAFETY: all callers are in this file. Each owns the content by the stage that it has just
        // left, or by having taken the work, so no other reference to it exists.
        mem::replace(unsafe { &mut *self.content.get() }, content)
    }
}

impl<W, T> Taken<'_, W, T> {
    /// Puts the output where the work was.
    ///
    /// # Errors
    ///
    /// Returns the output if the work was ended meanwhile.
    #[inline]
    pub(crate) fn put(self, output: T) -> Result<(), T> {
        let before = self.0.replace(Content::Output(output));
        debug_assert!(matches!(before, Content::Nothing), "the work was taken");
        if self.0.step(TAKEN, DONE) {
            return Ok(());
        }
        match self.0.replace(Content::Nothing) {
            Content::Output(output) => Err(output),
            Content::Work(_) | Content::Nothing => unreachable!("the output was put"),
        }
    }
}

#[cfg(all(test, not(phaseloop_loom)))]
mod tests {
    use super::{Content, Handover};

    #[test]
    fn work_is_taken_once_and_its_output_comes_back_once() {
        let handover = Handover::new("work");
        assert!(!handover.is_done() && handover.take_output().is_none());
        let (work, taken) = handover.take().unwrap();
        assert_eq!(work, "work");
        assert!(handover.take().is_none());
        assert!(!handover.is_done() && handover.take_output().is_none());
        assert_eq!(taken.put(7), Ok(()));
        assert!(handover.is_done());
        assert_eq!(handover.take_output(), Some(7));
        assert!(!handover.is_done() && handover.take_output().is_none());
    }

    #[test]
    fn an_end_finds_what_is_there() {
        let handover = Handover::<_, u32>::new("work");
        assert!(matches!(handover.end(), Content::Work("work")));
        assert!(handover.take().is_none(), "it is over");
        assert!(matches!(handover.end(), Content::Nothing));

        let handover = Handover::new("work");
        let (_, taken) = handover.take().unwrap();
        assert_eq!(taken.put(7), Ok(()));
        assert!(matches!(handover.end(), Content::Output(7)));
        assert!(handover.take_output().is_none());
    }

    #[test]
    fn an_end_meanwhile_gives_the_output_back_to_who_made_it() {
        let handover = Handover::new("work");
        let (_, taken) = handover.take().unwrap();
        assert!(matches!(handover.end(), Content::Nothing));
        assert_eq!(taken.put(7), Err(7));
        assert!(handover.take_output().is_none());
    }

    #[test]
    fn what_is_left_is_dropped() {
        let value = std::rc::Rc::new(());
        drop(Handover::<_, u32>::new(value.clone()));
        let handover = Handover::new(());
        let (_, taken) = handover.take().unwrap();
        assert!(taken.put(value.clone()).is_ok());
        drop(handover);
        assert_eq!(std::rc::Rc::strong_count(&value), 1);
    }
}
