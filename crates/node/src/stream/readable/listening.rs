//! How listeners start and stop the flow of a readable stream.

use super::flow::Amount;
use super::{Readable, State};
use crate::events::Watch;
use crate::stream::READABLE;

/// A listener for chunks starts the flow; a listener for 'readable' stops it.
impl<T: 'static> Watch for State<T> {
    fn added(&self, name: &str) {
        let emitter = &self.base.emitter;
        if name == Readable::<T>::DATA.name() {
            self.data_listening.set(true);
            if emitter.listener_count(READABLE) > 0 {
                self.readable_listening.set(true);
            }
            if self.flowing.get() != Some(false) {
                self.resume();
            }
        } else if name == READABLE.name() && !self.end_emitted.get() {
            if self.readable_listening.replace(true) {
                return;
            }
            self.need_readable.set(true);
            self.flowing.set(Some(false));
            self.emitted_readable.set(false);
            if self.length.get() > 0 {
                return self.emit_readable_later();
            }
            if self.unannounced_end.take() {
                self.emit_readable_later();
            }
            if !self.reading.get() {
                self.tick(|state| drop(state.read(Amount::Exactly(0))));
            }
        }
    }

    fn removed(&self, name: &str) {
        let emitter = &self.base.emitter;
        if name == READABLE.name() {
            self.tick(Self::listen_anew);
        } else if name == Readable::<T>::DATA.name()
            && emitter.listener_count(Readable::<T>::DATA) == 0
        {
            self.data_listening.set(false);
        }
    }
}

impl<T: 'static> State<T> {
    /// Recomputes the flow one tick after a listener for 'readable' was removed: it may have been
    /// the last one.
    fn listen_anew(&self) {
        let listening = self.base.emitter.listener_count(READABLE) > 0;
        self.readable_listening.set(listening);
        if self.resume_scheduled.get() && self.paused.get() == Some(false) {
            // Set before the queued resume runs, which otherwise would not flow.
            self.flowing.set(Some(true));
        } else if self.data_listening.get() {
            self.resume();
        } else if !listening {
            self.flowing.set(None);
        }
    }
}
