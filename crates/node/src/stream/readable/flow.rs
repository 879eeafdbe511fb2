//! How a readable stream reads, flows and ends.

use std::rc::Rc;

use super::{ReadHook, Readable, Source, State};
use crate::error::Error;
use crate::promise;
use crate::stream::base::{Done, ReadableSide, error_of};
use crate::stream::{END, PAUSE, READABLE, RESUME};
use phaseloop::extension::call_nested;
use phaseloop::task::next_tick;

/// The size of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// What is there: a chunk of bytes, or all buffered text.
    Any,
    Exactly(usize),
}

impl<T: 'static> State<T> {
    pub(in crate::stream) fn handle(&self) -> Readable<T> {
        let state = self.me.upgrade();
        Readable::of(state.expect("the caller holds the state"))
    }

    /// Runs `f` on the next tick, and keeps the stream alive until then.
    pub(super) fn tick(&self, f: impl FnOnce(&Self) + 'static) {
        if self.base.has_two_sides() {
            let me = self.handle();
            return next_tick(move || {
                f(&me.state);
                drop(me);
            });
        }
        // One word, which needs no allocation.
        let me = self.me.upgrade().expect("the caller holds the state");
        next_tick(move || f(&me));
    }

    pub(super) fn is_over(&self) -> bool {
        self.base.destroyed.get() || self.base.is_errored()
    }

    fn is_flowing(&self) -> bool {
        self.flowing.get() == Some(true)
    }

    // The source's side.

    pub(super) fn push(&self, chunk: T) -> bool {
        if self.mode.get().is_empty(&chunk) {
            // An empty chunk is dropped. The source may be called again.
            self.reading.set(false);
            self.read_more();
            return self.can_push_more();
        }
        if self.ended.get() {
            let text = "stream.push() after EOF";
            let error = Error::with_code("ERR_STREAM_PUSH_AFTER_EOF", text);
            self.base.error_or_destroy(error, false);
            return false;
        }
        if self.is_over() {
            return false;
        }
        self.reading.set(false);
        let size = self.mode.get().byte_size(&chunk) as u64;
        self.total.set(self.total.get() + size);
        let chunk = self.decoded(Some(chunk));
        match chunk {
            Some(chunk) => self.add(chunk, false),
            None => self.read_more(),
        }
        self.can_push_more()
    }

    /// Returns the chunk, or after `set_encoding` the text that it completes. `None` if it
    /// completes no character.
    fn decoded(&self, chunk: Option<T>) -> Option<T> {
        let mut decode = self.decode.borrow_mut();
        let Some(decode) = &mut *decode else {
            return chunk;
        };
        let text = decode(chunk);
        Some(text).filter(|text| !self.mode.get().is_empty(text))
    }

    pub(super) fn push_end(&self) {
        self.reading.set(false);
        if self.ended.replace(true) {
            return;
        }
        if let Some(rest) = self.decoded(None) {
            self.length
                .set(self.length.get() + self.mode.get().size(&rest));
            self.buffer.borrow_mut().push_back(rest);
        }
        if self.sync.get() {
            let is_observed = self.is_flowing()
                || self.need_readable.get()
                || self.base.emitter.listener_count(READABLE) > 0;
            if is_observed {
                self.emit_readable_later();
            } else {
                // A listener that is added later gets it. `read` and `resume` need it not.
                self.unannounced_end.set(true);
            }
        } else {
            self.need_readable.set(false);
            self.emitted_readable.set(true);
            self.emit_readable();
        }
    }

    pub(super) fn can_push_more(&self) -> bool {
        let length = self.length.get();
        !self.ended.get() && (length < self.high_water_mark.get() || length == 0)
    }

    pub(super) fn add(&self, chunk: T, first: bool) {
        let at_once = self.is_flowing()
            && !self.sync.get()
            && self.data_listening.get()
            && self.length.get() == 0;
        let emitted = at_once && self.emit_nested(&chunk);
        if !emitted {
            self.length
                .set(self.length.get() + self.mode.get().size(&chunk));
            let mut buffer = self.buffer.borrow_mut();
            if first {
                buffer.push_front(chunk);
            } else {
                buffer.push_back(chunk);
            }
            drop(buffer);
            if self.need_readable.get() || at_once {
                self.emit_readable_later();
            }
        }
        self.read_more();
    }

    /// Emits a chunk inside this call. Returns `false` if the call is nested too deeply, in a long
    /// chain of pipes.
    fn emit_nested(&self, chunk: &T) -> bool {
        call_nested(|| {
            self.forget_full_sinks();
            self.base.emitter.emit(Readable::<T>::DATA, chunk);
        })
        .is_some()
    }

    // Reading.

    fn how_much(&self, amount: Amount) -> usize {
        let length = self.length.get();
        if amount == Amount::Exactly(0) || (length == 0 && self.ended.get()) {
            return 0;
        }
        if self.mode.get().is_objects() {
            return 1;
        }
        match amount {
            Amount::Any => match self.buffer.borrow().front() {
                // Chunks of bytes are not joined, nor is the text of a flowing stream.
                Some(first) if self.is_flowing() || self.encoding.get().is_none() => {
                    self.mode.get().size(first)
                }
                _ => length,
            },
            Amount::Exactly(size) if size <= length => size,
            Amount::Exactly(_) if self.ended.get() => length,
            Amount::Exactly(_) => 0,
        }
    }

    pub(super) fn read(&self, amount: Amount) -> Option<T> {
        if let Amount::Exactly(size) = amount {
            // The mark grows to the size of the read. The source would not be called for so many
            // bytes otherwise, and the read would never succeed.
            if size > self.high_water_mark.get() {
                self.high_water_mark.set(size.next_power_of_two());
            }
        }
        if amount == Amount::Exactly(0) {
            // A read of nothing calls the source. If the buffer is full, it only announces the
            // data.
            let mark = self.high_water_mark.get().max(1);
            if self.need_readable.get() && (self.length.get() >= mark || self.ended.get()) {
                if self.length.get() == 0 && self.ended.get() {
                    self.end_later();
                } else {
                    self.emit_readable_later();
                }
                return None;
            }
        } else {
            self.emitted_readable.set(false);
            self.unannounced_end.set(false);
        }
        let mut size = self.how_much(amount);
        if size == 0 && self.ended.get() {
            if self.length.get() == 0 {
                self.end_later();
            }
            return None;
        }
        let length = self.length.get();
        let wants_more = self.need_readable.get()
            || length == 0
            || length.saturating_sub(size) < self.high_water_mark.get();
        let may_read = !self.reading.get()
            && !self.ended.get()
            && !self.is_over()
            && self.base.constructed.get();
        if wants_more && may_read {
            self.call_read();
            // The source has pushed inside the call, so there may be more to return.
            if !self.reading.get() {
                size = self.how_much(amount);
            }
        }
        self.take(size, amount)
    }

    fn call_read(&self) {
        self.reading.set(true);
        // A push inside the call is buffered: emitting it there could recurse without bound.
        self.sync.set(true);
        if self.length.get() == 0 {
            self.need_readable.set(true);
        }
        if let Some(source) = self.source() {
            source.read(&self.handle());
        } else {
            self.call_hook();
        }
        self.sync.set(false);
    }

    fn call_hook(&self) {
        // `None` if the `read` function is already running further down the stack.
        let hook = self.read_hook.take();
        let Some(ReadHook::Call(mut hook)) = hook else {
            return;
        };
        let (handle, mark) = (self.handle(), self.high_water_mark.get());
        let called = promise::catch(|| hook(&handle, mark));
        // A closed stream has released its functions, which may hold the stream.
        if !self.base.close_emitted.get() {
            self.read_hook.replace(Some(ReadHook::Call(hook)));
        }
        if let Err(reason) = called {
            self.base.error_or_destroy(error_of(&reason), false);
        }
    }

    fn forget_full_sinks(&self) {
        if let Some(pipes) = self.pipes.get() {
            pipes.full.borrow_mut().clear();
        }
    }

    fn source(&self) -> Option<Rc<dyn Source<T>>> {
        match &*self.read_hook.borrow() {
            Some(ReadHook::Source(source)) => Some(source.clone()),
            _ => None,
        }
    }

    /// Finishes a read: removes `size` units from the buffer.
    fn take(&self, size: usize, amount: Amount) -> Option<T> {
        let chunk = if size > 0 {
            let mut buffer = self.buffer.borrow_mut();
            self.mode.get().take(&mut buffer, size)
        } else {
            None
        };
        match &chunk {
            None => {
                if self.length.get() <= self.high_water_mark.get() {
                    self.need_readable.set(true);
                }
            }
            Some(chunk) => {
                let taken = self.mode.get().size(chunk);
                self.length.set(self.length.get().saturating_sub(taken));
                self.forget_full_sinks();
            }
        }
        if self.length.get() == 0 {
            if !self.ended.get() {
                self.need_readable.set(true);
            } else {
                let taken = if chunk.is_some() { size } else { 0 };
                // A read past EOF ends the stream. A read of exactly the rest does not.
                if amount != Amount::Exactly(taken) {
                    self.end_later();
                }
            }
        }
        if let Some(chunk) = &chunk {
            if !self.base.error_emitted.get() && !self.base.close_emitted.get() {
                self.base.emitter.emit(Readable::<T>::DATA, chunk);
            }
        }
        chunk
    }

    // Events.

    pub(super) fn emit_readable_later(&self) {
        self.need_readable.set(false);
        if !self.emitted_readable.replace(true) {
            self.tick(Self::emit_readable);
        }
    }

    fn emit_readable(&self) {
        if !self.is_over() && (self.length.get() > 0 || self.ended.get()) {
            self.base.emitter.emit(READABLE, ());
            self.emitted_readable.set(false);
        }
        let keeps_little = self.length.get() <= self.high_water_mark.get();
        if !self.is_flowing() && !self.ended.get() && keeps_little {
            self.need_readable.set(true);
        }
        self.flow();
    }

    fn end_later(&self) {
        if !self.end_emitted.get() && !self.end_scheduled.replace(true) {
            self.ended.set(true);
            self.tick(Self::emit_end);
        }
    }

    fn emit_end(&self) {
        self.end_scheduled.set(false);
        let base = &self.base;
        let may_end = !base.is_errored() && !base.close_emitted.get() && !self.end_emitted.get();
        if !may_end || self.length.get() > 0 {
            return;
        }
        self.end_emitted.set(true);
        base.emitter.emit(END, ());
        let writable = base.writable();
        if let Some(writable) = writable.filter(|side| side.is_writable()) {
            if !base.allow_half_open.get() {
                // On a tick, so that ticks queued by listeners of 'end' can still write.
                return self.tick(move |state| {
                    if !writable.ending() && !state.base.destroyed.get() {
                        writable.end_now();
                    }
                });
            }
        }
        let written = base.writable().is_none_or(|side| side.finished());
        if base.auto_destroy.get() && written {
            base.destroy(None);
        }
    }

    // Calls of the source.

    /// Calls the source on the next tick if the buffer has room.
    fn read_more(&self) {
        let may_read = self.base.constructed.get() && !self.reading.get();
        if may_read && !self.reading_more.replace(true) {
            self.tick(|state| {
                while !state.reading.get()
                    && !state.ended.get()
                    && (state.length.get() < state.high_water_mark.get()
                        || (state.is_flowing() && state.length.get() == 0))
                {
                    let before = state.length.get();
                    state.read(Amount::Exactly(0));
                    // The source has pushed no data; it will push later.
                    if before == state.length.get() {
                        break;
                    }
                }
                state.reading_more.set(false);
            });
        }
    }

    // Flow.

    pub(super) fn resume(&self) {
        if self.base.destroyed.get() {
            return;
        }
        if !self.is_flowing() {
            self.flowing.set(Some(!self.readable_listening.get()));
            self.schedule_resume();
        }
        self.paused.set(Some(false));
    }

    fn schedule_resume(&self) {
        if !self.resume_scheduled.replace(true) {
            self.tick(|state| {
                if !state.reading.get() {
                    state.read(Amount::Exactly(0));
                }
                state.resume_scheduled.set(false);
                state.base.emitter.emit(RESUME, ());
                state.flow();
                if state.is_flowing() && !state.reading.get() {
                    state.read(Amount::Exactly(0));
                }
            });
        }
    }

    pub(super) fn pause(&self) {
        if self.base.destroyed.get() {
            return;
        }
        if self.flowing.get() != Some(false) {
            self.flowing.set(Some(false));
            self.base.emitter.emit(PAUSE, ());
        }
        self.paused.set(Some(true));
    }

    fn flow(&self) {
        while self.is_flowing() && self.read(Amount::Any).is_some() {}
    }
}

impl<T: 'static> ReadableSide for State<T> {
    fn is_readable(&self) -> bool {
        let base = &self.base;
        !base.destroyed.get() && !base.error_emitted.get() && !self.end_emitted.get()
    }

    fn ended(&self) -> bool {
        self.ended.get()
    }

    fn end_emitted(&self) -> bool {
        self.end_emitted.get()
    }

    fn is_empty(&self) -> bool {
        self.length.get() == 0
    }

    fn has_pipes(&self) -> bool {
        let pipes = self.pipes.get();
        pipes.is_some_and(|pipes| !pipes.sinks.borrow().is_empty())
    }

    fn constructed(&self) {
        if self.need_readable.get() {
            self.read_more();
        }
    }

    fn has_source(&self) -> bool {
        matches!(&*self.read_hook.borrow(), Some(ReadHook::Source(_)))
    }

    fn destroy_source(&self, error: Option<Error>, done: Done) {
        match self.source() {
            Some(source) => source.destroy(&self.handle(), error, done),
            None => done.pass(error),
        }
    }

    fn leave_source(&self) -> bool {
        self.source().is_none_or(|source| source.leave())
    }

    fn release(&self) {
        let goes = |hook: &mut ReadHook<T>| match hook {
            ReadHook::Call(_) => true,
            ReadHook::Source(source) => !source.stays(),
        };
        let hook = self.read_hook.borrow_mut().take_if(goes);
        let left = (hook, self.buffer.take());
        self.length.set(0);
        drop(left);
    }

    fn undestroy(&self) {
        for flag in [&self.reading, &self.ended, &self.end_emitted] {
            flag.set(false);
        }
        self.total.set(0);
    }
}
