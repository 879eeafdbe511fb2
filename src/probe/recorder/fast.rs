//! The recorder of a loop, and the short way of activities and wakes while a recorder is all that
//! wants them. A recorder is made to be left on; `Probe::observe` has the number.
// Marks: the short way of a recorder is inlined, the rest is `cold` (row `self_wake/recorded`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::events::record_of;
use super::{NAMED, Recorder, number_of};
use crate::clock::Clock;
use crate::probe::observer::{Body, Observer, Wants};
use crate::probe::origin::Origin;
use crate::probe::record::Record;
#[cfg(feature = "cluster")]
use crate::probe::record::What;
use crate::probe::switch::Probe;
use crate::task_info::Id;

/// The recorder of a loop.
#[derive(Default)]
pub(crate) struct Recorders {
    attached: RefCell<Option<(Recorder, Rc<dyn Observer>)>>,
    /// The recorder, if it is the only one that wants activities and wakes.
    alone: Cell<Option<Recorder>>,
}

impl Probe {
    /// Replaces the recorder, at the time `now`.
    pub(crate) fn record(&self, recorder: Option<Recorder>, now: u64) {
        let before = self.recorders.attached.take();
        if let Some((recorder, observer)) = &before {
            drop(self.recorders.alone.take());
            self.detach(observer);
            recorder.detached();
        }
        if let Some(recorder) = recorder {
            let observer: Rc<dyn Observer> = Rc::new(recorder.clone());
            let is_alone = !self.wants(Wants::ACTIVITIES | Wants::WAKES);
            let attached = (recorder.clone(), observer.clone());
            self.recorders.attached.replace(Some(attached));
            self.attach(observer, now);
            self.recorders.alone.set(is_alone.then_some(recorder));
        }
        drop(before);
    }

    /// Records that a message between loops was sent or received.
    #[cfg(feature = "cluster")]
    pub(crate) fn message(&self, is_sent: bool, number: u32, now: u64) {
        if let Some(recorder) = self.recorder() {
            let what = if is_sent { What::Sent } else { What::Received };
            recorder.push(Record {
                id: number,
                ..Record::new(what, now, now)
            });
        }
    }

    /// Returns the recorder, if there is one.
    pub(crate) fn recorder(&self) -> Option<Recorder> {
        let attached = self.recorders.attached.borrow();
        attached.as_ref().map(|(recorder, _)| recorder.clone())
    }

    /// Calls `f`, which runs no user code, with the recorder that is alone.
    // In place of a `RefCell`, whose flag would be a third of the cost of a record.
    #[inline]
    fn with_alone<R>(&self, f: impl FnOnce(&Recorder) -> R) -> Option<R> {
        let recorder = self.recorders.alone.take()?;
        let value = f(&recorder);
        // There is nothing to drop: no other code has set it meanwhile.
        std::mem::forget(self.recorders.alone.replace(Some(recorder)));
        Some(value)
    }

    /// Begins an activity by the short way. Returns `None` if it has to begin as for any observer:
    /// others want activities, it is inside of another activity, it is the callback of a timer,
    /// which may be late, or the name of its task may have to be stored.
    #[inline(always)]
    pub(in crate::probe) fn recording<'a>(
        &'a self,
        body: Body,
        origin: Origin,
        clock: &'a Clock,
    ) -> Option<Recording<'a>> {
        let start = self.with_alone(|recorder| recorder.try_begin(body, origin))??;
        Some(Recording {
            probe: self,
            clock,
            record: record_of(body, origin, start, 0),
        })
    }

    /// Records a wake by the short way. Returns `false` if others want wakes, or if the round of
    /// the ring is over.
    #[inline]
    pub(in crate::probe) fn has_recorded_wake(&self, id: Id) -> bool {
        self.with_alone(|recorder| recorder.try_wake(id)) == Some(true)
    }

    #[cold]
    fn finish_cold(&self, record: Record) {
        self.with_alone(|recorder| recorder.finish(record));
    }
}

/// An activity that is recorded by the short way. The drop ends it after a panic.
pub(in crate::probe) struct Recording<'a> {
    probe: &'a Probe,
    clock: &'a Clock,
    record: Record,
}

impl Recording<'_> {
    /// Ends the activity, which has returned.
    #[inline(always)]
    pub(in crate::probe) fn finish(self) {
        let record = Record {
            end: self.clock.read(),
            ..self.record
        };
        let probe = self.probe;
        std::mem::forget(self);
        if probe.with_alone(|recorder| recorder.try_finish(record)) != Some(true) {
            probe.finish_cold(record);
        }
    }
}

impl Drop for Recording<'_> {
    // Inlined, so that the fields need no place in memory.
    #[inline(always)]
    fn drop(&mut self) {
        let end = self.clock.read();
        self.probe.finish_cold(Record { end, ..self.record });
    }
}

impl Recorder {
    #[inline(always)]
    fn try_begin(&self, body: Body, origin: Origin) -> Option<u64> {
        let state = &*self.state;
        if let Body::Poll(id) = body {
            let id = number_of(id);
            if state.named[id as usize % NAMED].get() != id {
                return None;
            }
        }
        if origin.due.is_some() || state.depth.get() != 0 {
            return None;
        }
        state.depth.set(1);
        Some(state.last_end.get())
    }

    /// Writes the record of an activity that is inside no other. Returns `false` if it may have
    /// begun before the recorder was attached or in the last round of the ring, or if the round is
    /// over.
    #[inline(always)]
    fn try_finish(&self, record: Record) -> bool {
        let state = &*self.state;
        let ring = state.ring.get();
        let is_written =
            record.start >= state.rare_before.get() && ring.is_some_and(|ring| ring.push(record));
        if is_written {
            state.depth.set(0);
            state.last_end.set(record.end);
        }
        is_written
    }

    #[inline]
    fn try_wake(&self, id: Id) -> bool {
        let ring = self.state.ring.get();
        ring.is_some_and(|ring| ring.push(self.wake_of(id)))
    }
}
