//! How a writable stream ends.

use super::{FinalHook, Output, State};
use crate::error::Error;
use crate::promise;
use crate::stream::base::{Callback, Done, destroyed, error_of};
use crate::stream::{FINISH, PREFINISH};
use phaseloop::task::next_tick;

impl<T: 'static> State<T> {
    pub(super) fn end(&self, chunk: Option<T>, callback: Option<Callback>) {
        if let Some(sink) = self.sink() {
            return sink.end(chunk, callback);
        }
        let written = chunk.map_or(Ok(true), |chunk| self.write_last(chunk));
        // `end` undoes all corks.
        if self.corked.get() > 0 {
            self.corked.set(1);
            self.uncork();
        }
        let mut refused = written.err();
        if refused.is_none() {
            if !self.ending.get() && !self.base.is_errored() {
                self.ending.set(true);
                self.finish_maybe();
                self.ended.set(true);
            } else if self.finished.get() {
                let text = "Cannot call end after a stream was finished";
                refused = Some(Error::with_code("ERR_STREAM_ALREADY_FINISHED", text));
            } else if self.base.destroyed.get() {
                refused = Some(destroyed("end"));
            }
        }
        let Some(callback) = callback else { return };
        if let Some(error) = refused.or_else(|| self.base.error()) {
            next_tick(move || callback(Err(error)));
        } else if self.finished.get() {
            next_tick(move || callback(Ok(())));
        } else {
            self.on_finished.borrow_mut().push(callback);
        }
    }

    fn may_finish(&self) -> bool {
        let base = &self.base;
        self.ending.get()
            && !base.destroyed.get()
            && base.constructed.get()
            && !self.finished.get()
            && !self.writing.get()
            && !base.error_emitted.get()
            && !base.close_emitted.get()
            && !base.is_errored()
            && self.buffer.borrow().is_empty()
            && self.length.get() == 0
    }

    /// Ends the stream on a tick, if no write and no callback is outstanding.
    pub(super) fn finish_maybe(&self) {
        if !self.may_finish() {
            return;
        }
        self.call_final();
        if self.pending_callbacks.get() == 0 {
            // The tick counts as a callback, so that no second tick is queued.
            self.pending_callbacks.set(1);
            self.tick(|state| {
                if state.may_finish() {
                    state.finish();
                } else {
                    state.callback_is_over();
                }
            });
        }
    }

    fn call_final(&self) {
        if self.prefinished.get() || self.final_called.replace(true) {
            return;
        }
        let hook = self.end_hook();
        let Some(hook) = hook.filter(|_| !self.base.destroyed.get()) else {
            self.prefinished.set(true);
            self.base.emitter.emit(PREFINISH, ());
            return;
        };
        self.sync.set(true);
        self.pending_callbacks.set(self.pending_callbacks.get() + 1);
        let done = Done::of_end(self.me(), self.base.readable());
        if let Err(reason) = promise::catch(|| hook(done)) {
            self.end_final(Err(error_of(&reason)));
        }
        self.sync.set(false);
    }

    /// Takes the function that is called after the last write.
    fn end_hook(&self) -> Option<FinalHook> {
        match &self.output {
            Output::Functions(functions) => functions.end.take(),
            Output::Device(device) => {
                let device = device.clone();
                Some(Box::new(move |done| device.end(done)))
            }
            Output::Sink(_) => None,
        }
    }

    pub(super) fn end_final(&self, result: Result<(), Error>) {
        // The function has panicked after its report.
        if self.prefinished.get() {
            return;
        }
        self.callback_is_over();
        if let Err(error) = result {
            self.call_finished(&Err(error.clone()));
            self.base.error_or_destroy(error, self.sync.get());
        } else if self.may_finish() {
            self.prefinished.set(true);
            self.base.emitter.emit(PREFINISH, ());
            self.pending_callbacks.set(self.pending_callbacks.get() + 1);
            self.tick(Self::finish);
        }
    }

    fn finish(&self) {
        self.callback_is_over();
        self.finished.set(true);
        self.call_finished(&Ok(()));
        self.base.emitter.emit(FINISH, ());
        let read = self.base.readable().is_none_or(|side| side.end_emitted());
        if self.base.auto_destroy.get() && read {
            self.base.destroy(None);
        }
    }

    pub(super) fn call_finished(&self, result: &Result<(), Error>) {
        let callbacks = self.on_finished.take();
        for callback in callbacks {
            callback(result.clone());
        }
    }
}
