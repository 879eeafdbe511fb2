//! How a writable stream writes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Device, Output, State};
use crate::error::Error;
use crate::stream::DRAIN;
use crate::stream::base::{Callback, Done, WritableSide, destroyed};
use crate::stream::foreign::Sink;
use phaseloop::task::next_tick;

/// Sets a flag until it is dropped, also after a panic.
struct Flag<'a>(&'a Cell<bool>);

impl<'a> Flag<'a> {
    fn set(flag: &'a Cell<bool>) -> Self {
        flag.set(true);
        Self(flag)
    }
}

impl Drop for Flag<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// A function of the user while it is called.
struct Lent<'a, H> {
    hook: Option<H>,
    place: &'a RefCell<Option<H>>,
    is_closed: &'a Cell<bool>,
}

impl<H> Drop for Lent<'_, H> {
    fn drop(&mut self) {
        if !self.is_closed.get() {
            self.place.replace(self.hook.take());
        }
    }
}

impl<T: 'static> State<T> {
    pub(super) fn me(&self) -> Rc<Self> {
        self.me.upgrade().expect("the caller holds the state")
    }

    /// Runs `f` on the next tick, and keeps the stream alive until then.
    pub(super) fn tick(&self, f: impl FnOnce(&Self) + 'static) {
        let me = self.me();
        if self.base.has_two_sides() {
            let held = self.base.hold();
            return next_tick(move || {
                f(&me);
                drop(held);
            });
        }
        // One word if `f` captures nothing, which needs no allocation.
        next_tick(move || f(&me));
    }

    // Writing.

    /// Writes or buffers a chunk. Returns whether there is room for more.
    pub(super) fn write(&self, chunk: T, callback: Option<Callback>) -> Result<bool, Error> {
        if let Some(sink) = self.sink() {
            return Ok(sink.write(chunk, callback));
        }
        if self.ending.get() {
            let refusal = self.device().and_then(|device| device.refusal_after_end());
            return Err(self.refuse(refusal.unwrap_or_else(write_after_end), callback));
        }
        if self.base.destroyed.get() {
            return Err(self.refuse(destroyed("write"), callback));
        }
        self.pending_callbacks.set(self.pending_callbacks.get() + 1);
        let size = self.mode.size(&chunk);
        self.length.set(self.length.get() + size);
        let must_wait = self.writing.get()
            || self.in_write.get()
            || self.base.is_errored()
            || self.corked.get() > 0
            || !self.base.constructed.get();
        if must_wait {
            self.buffer.borrow_mut().push_back((chunk, callback));
        } else {
            self.call_write(chunk, size, callback);
        }
        let room = self.length.get() < self.high_water_mark || self.length.get() == 0;
        if !room {
            self.need_drain.set(true);
        }
        Ok(room && !self.base.destroyed.get() && !self.base.is_errored())
    }

    /// Refuses a write.
    fn refuse(&self, error: Error, callback: Option<Callback>) -> Error {
        if let Some(callback) = callback {
            let error = error.clone();
            next_tick(move || callback(Err(error)));
        }
        self.base.error_or_destroy(error.clone(), true);
        error
    }

    /// Writes the last chunk.
    pub(super) fn write_last(&self, chunk: T) -> Result<bool, Error> {
        match self.ending.get() {
            true => Err(self.refuse(write_after_end(), None)),
            false => self.write(chunk, None),
        }
    }

    /// Passes one chunk to the `write` function.
    fn call_write(&self, chunk: T, size: usize, callback: Option<Callback>) {
        let done = self.begin_write(size, callback);
        if self.base.destroyed.get() {
            done.fail(destroyed("write"));
        } else {
            let _in_write = Flag::set(&self.in_write);
            match &self.output {
                Output::Functions(functions) => {
                    self.with_hook(&functions.write, |hook| hook(chunk, done));
                }
                Output::Device(device) => device.clone().write(chunk, done),
                Output::Sink(_) => unreachable!("a sink handles its writes"),
            }
        }
        self.sync.set(false);
        self.go_on();
    }

    /// Passes all waiting chunks to the `write_all` function.
    fn call_write_all(&self, chunks: Vec<T>, size: usize, callbacks: Vec<Callback>) {
        let callback: Option<Callback> = (!callbacks.is_empty()).then(|| {
            let each: Callback = Box::new(move |result: Result<(), Error>| {
                for callback in callbacks {
                    callback(result.clone());
                }
            });
            each
        });
        let done = self.begin_write(size, callback);
        {
            let _in_write = Flag::set(&self.in_write);
            match &self.output {
                Output::Functions(functions) => {
                    self.with_hook(&functions.write_all, |hook| hook(chunks, done));
                }
                Output::Device(device) => device.clone().write_all(chunks, done),
                Output::Sink(_) => unreachable!("a sink handles its writes"),
            }
        }
        self.sync.set(false);
        self.go_on();
    }

    /// Calls a function of the user, taken out of its cell because it may call back into the
    /// stream. It is put back, also after a panic, unless the stream has closed.
    fn with_hook<H>(&self, place: &RefCell<Option<H>>, call: impl FnOnce(&mut H)) {
        let Some(hook) = place.take() else { return };
        let mut lent = Lent {
            hook: Some(hook),
            place,
            is_closed: &self.base.close_emitted,
        };
        if let Some(hook) = &mut lent.hook {
            call(hook);
        }
    }

    /// Continues after a call of a write function: first the chunks that it has written itself,
    /// then the completion that it reported.
    fn go_on(&self) {
        let done_inside = self.done_inside.take();
        let has_more = !self.writing.get() && !self.buffer.borrow().is_empty();
        if has_more && !self.base.is_errored() {
            self.work_off();
        }
        if let Some(callback) = done_inside {
            self.after_sync_write(callback);
        }
    }

    fn begin_write(&self, size: usize, callback: Option<Callback>) -> Done {
        self.writing_length.set(size);
        self.writing_callback.replace(callback);
        self.writing.set(true);
        self.sync.set(true);
        Done::of_write(self.me(), self.base.readable())
    }

    /// Handles the completion of a write, perhaps inside the write function.
    fn end_write(&self, result: Result<(), Error>) {
        let (sync, callback) = (self.sync.get(), self.writing_callback.take());
        self.writing.set(false);
        let size = self.writing_length.take();
        self.length.set(self.length.get() - size);
        if result.is_ok() {
            self.total.set(self.total.get() + size as u64);
        }
        if let Err(error) = result {
            self.base.set_errored(&error);
            // On a tick, so that no callback runs before `write` has returned.
            if sync {
                return self.tick(move |state| state.write_failed(error, callback));
            }
            return self.write_failed(error, callback);
        }
        if !self.buffer.borrow().is_empty() {
            if self.in_write.get() {
                self.done_inside.replace(Some(callback));
                return;
            }
            self.work_off();
        }
        if sync {
            self.after_sync_write(callback);
        } else {
            self.after_write(callback);
        }
    }

    fn after_sync_write(&self, callback: Option<Callback>) {
        let drains = self.need_drain.get() && self.length.get() == 0;
        // In object mode Node takes a tick for each write, also for a write without a callback.
        let by_tick = callback.is_some()
            || (!self.after_write_pending.get() && (drains || self.mode.is_objects()));
        if by_tick {
            self.after_write_pending.set(true);
            self.tick(move |state| state.after_write(callback));
        } else {
            self.callback_is_over();
            if self.ending.get() {
                self.finish_maybe();
            }
        }
    }

    pub(super) fn callback_is_over(&self) {
        self.pending_callbacks.set(self.pending_callbacks.get() - 1);
    }

    fn after_write(&self, callback: Option<Callback>) {
        self.after_write_pending.set(false);
        let drains = self.need_drain.get()
            && !self.ending.get()
            && !self.base.destroyed.get()
            && self.length.get() == 0;
        if drains {
            self.need_drain.set(false);
            self.base.emitter.emit(DRAIN, ());
        }
        self.callback_is_over();
        if let Some(callback) = callback {
            callback(Ok(()));
        }
        if self.base.destroyed.get() {
            self.fail_buffer();
        }
        if self.ending.get() {
            self.finish_maybe();
        }
    }

    fn write_failed(&self, error: Error, callback: Option<Callback>) {
        self.callback_is_over();
        if let Some(callback) = callback {
            callback(Err(error.clone()));
        }
        self.fail_buffer();
        self.base.error_or_destroy(error, false);
    }

    /// Fails the callbacks of all waiting writes.
    fn fail_buffer(&self) {
        if self.writing.get() {
            return;
        }
        let buffer = self.buffer.take();
        for (chunk, callback) in buffer {
            self.length.set(self.length.get() - self.mode.size(&chunk));
            drop(chunk);
            if let Some(callback) = callback {
                let error = self.base.error().unwrap_or_else(|| destroyed("write"));
                callback(Err(error));
            }
        }
        let error = self.base.error().unwrap_or_else(|| destroyed("end"));
        self.call_finished(&Err(error));
    }

    /// Passes waiting chunks to the sink, one after the other, while the writes complete at once.
    fn work_off(&self) {
        let may = !self.base.destroyed.get()
            && !self.working_off.get()
            && self.corked.get() == 0
            && self.base.constructed.get()
            && !self.in_write.get();
        let waiting = self.buffer.borrow().len();
        if !may || waiting == 0 {
            return;
        }
        let _working_off = Flag::set(&self.working_off);
        if waiting > 1 && self.writes_all() {
            let buffer = self.buffer.take();
            // One call of `write_all` completes all waiting writes with one completion.
            let pending = self.pending_callbacks.get() - (waiting - 1);
            self.pending_callbacks.set(pending);
            let (chunks, callbacks): (Vec<_>, Vec<_>) = buffer.into_iter().unzip();
            let callbacks = callbacks.into_iter().flatten().collect();
            self.call_write_all(chunks, self.length.get(), callbacks);
        } else {
            loop {
                let next = self.buffer.borrow_mut().pop_front();
                let Some((chunk, callback)) = next else { break };
                let size = self.mode.size(&chunk);
                self.call_write(chunk, size, callback);
                // The write is still running. Its completion calls `work_off` again.
                if self.writing.get() {
                    break;
                }
            }
        }
    }

    /// Returns whether several chunks can be written at once.
    fn writes_all(&self) -> bool {
        match &self.output {
            Output::Functions(functions) => functions.write_all.borrow().is_some(),
            Output::Device(_) => true,
            Output::Sink(_) => false,
        }
    }

    fn device(&self) -> Option<&dyn Device<T>> {
        match &self.output {
            Output::Device(device) => Some(&**device),
            _ => None,
        }
    }

    pub(super) fn sink(&self) -> Option<&dyn Sink<T>> {
        match &self.output {
            Output::Sink(sink) => Some(&**sink),
            _ => None,
        }
    }

    pub(super) fn uncork(&self) {
        if let Some(sink) = self.sink() {
            return sink.uncork();
        }
        let corked = self.corked.get();
        if corked > 0 {
            self.corked.set(corked - 1);
            if !self.writing.get() {
                self.work_off();
            }
        }
    }
}

fn write_after_end() -> Error {
    Error::with_code("ERR_STREAM_WRITE_AFTER_END", "write after end")
}

impl<T: 'static> WritableSide for State<T> {
    fn end_is_done(&self, result: Result<(), Error>) {
        self.end_final(result);
    }

    fn is_writable(&self) -> bool {
        let base = &self.base;
        !base.destroyed.get() && !base.is_errored() && !self.ending() && !self.ended()
    }

    fn ending(&self) -> bool {
        match self.sink() {
            Some(sink) => sink.ended(),
            None => self.ending.get(),
        }
    }

    fn ended(&self) -> bool {
        match self.sink() {
            Some(sink) => sink.ended(),
            None => self.ended.get(),
        }
    }

    fn finished(&self) -> bool {
        match self.sink() {
            Some(sink) => sink.finished(),
            None => self.finished.get(),
        }
    }

    fn ended_and_empty(&self) -> bool {
        match self.sink() {
            Some(sink) => sink.finished(),
            None => self.ended.get() && self.length.get() == 0,
        }
    }

    fn pending_callbacks(&self) -> usize {
        self.pending_callbacks.get()
    }

    fn need_drain(&self) -> bool {
        let is_full = match self.sink() {
            Some(sink) => sink.need_drain(),
            None => self.need_drain.get(),
        };
        is_full && !self.base.destroyed.get() && !self.ending()
    }

    fn end_now(&self) {
        self.end(None, None);
    }

    fn write_is_done(&self, result: Result<(), Error>) {
        self.end_write(result);
    }

    fn constructed(&self) {
        if !self.writing.get() {
            self.work_off();
        }
        if self.ending.get() {
            self.finish_maybe();
        }
    }

    fn before_destroy(&self) {
        if !self.buffer.borrow().is_empty() || !self.on_finished.borrow().is_empty() {
            self.tick(Self::fail_buffer);
        }
    }

    fn release(&self) {
        if let Output::Functions(functions) = &self.output {
            let write = (functions.write.take(), functions.write_all.take());
            let end = functions.end.take();
            drop((write, end));
        }
    }

    fn undestroy(&self) {
        let ends = [
            &self.final_called,
            &self.prefinished,
            &self.ended,
            &self.ending,
            &self.finished,
        ];
        for flag in ends {
            flag.set(false);
        }
        self.total.set(0);
    }
}
