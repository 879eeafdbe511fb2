//! What is recorded while a recorder is all that watches a loop.

use super::on::Probe;
use super::recorder::{Begun, Recorder};
use super::switch::{Activity, Origin};
use crate::clock::Clock;
use crate::site::Site;

/// An activity that runs while a recorder is all that watches. The drop ends it after a panic.
pub(crate) struct Recording<'a> {
    probe: &'a Probe,
    clock: &'a Clock,
    begun: Begun,
}

/// What the cold twins call while a recorder is all that watches. These are short: a recorder is
/// made to be left on.
impl Probe {
    /// Begins a poll of the task with this number, and returns its start. Returns `None` if the
    /// poll has to [begin](Self::begin) by the longer way.
    #[inline(always)]
    pub(crate) fn begin_poll(&self, id: u64) -> Option<u64> {
        self.with_recorder(|recorder| recorder.try_begin_poll(id))?
    }

    /// Ends a poll that [`begin_poll`](Self::begin_poll) has begun.
    #[inline(always)]
    pub(crate) fn end_poll(&self, id: u64, site: Site, start: u64, clock: &Clock) {
        let (begun, now) = (begun_poll(id, site, start), clock.read());
        if self.with_recorder(|recorder| recorder.try_end(begun, now)) != Some(true) {
            self.end_poll_rarely(id, site, start, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_poll_rarely(&self, id: u64, site: Site, start: u64, now: u64) {
        self.with_recorder(|recorder| recorder.end(begun_poll(id, site, start), now));
    }

    /// Begins an activity that is no poll of a task. Returns `None` if it has to
    /// [begin](Self::begin) by the longer way: it is inside of another one, or it is the callback
    /// of a timer, which may be late.
    #[inline(always)]
    pub(crate) fn recording<'a>(
        &'a self,
        clock: &'a Clock,
        activity: Activity,
        origin: Origin,
    ) -> Option<Recording<'a>> {
        if origin.due.is_some() {
            return None;
        }
        let start = self.with_recorder(Recorder::try_begin)??;
        Some(Recording {
            probe: self,
            clock,
            begun: Begun::new(activity, origin, start),
        })
    }

    /// Notes that the task with this number was woken on the owner thread.
    #[inline(always)]
    pub(crate) fn record_wake(&self, id: u64) {
        if self.with_recorder(|recorder| recorder.try_wake(id)) != Some(true) {
            self.record_wake_cold(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_wake_cold(&self, id: u64) {
        self.with_recorder(|recorder| recorder.wake(id));
    }

    #[inline(always)]
    pub(super) fn end(&self, begun: Begun, clock: &Clock) {
        let now = clock.read();
        if self.with_recorder(|recorder| recorder.try_end(begun, now)) != Some(true) {
            self.end_cold(&begun, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_cold(&self, begun: &Begun, now: u64) {
        self.with_recorder(|recorder| recorder.end(*begun, now));
    }
}

#[inline(always)]
fn begun_poll(id: u64, site: Site, start: u64) -> Begun {
    Begun::new(Activity::Poll(id), Origin::at(Some(site)), start)
}

impl Recording<'_> {
    /// Ends the activity, which has returned.
    #[inline(always)]
    pub(crate) fn finish(self) {
        self.probe.end(self.begun, self.clock);
        std::mem::forget(self);
    }
}

impl Drop for Recording<'_> {
    // Inlined, and with a copy of the record, so that the fields need no place in memory.
    #[inline(always)]
    fn drop(&mut self) {
        let begun = self.begun;
        self.probe.end_cold(&begun, self.clock.read());
    }
}
