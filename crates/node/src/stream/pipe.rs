//! Pipes from a readable stream into a writable stream.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use super::base::{StreamId, error_of};
use super::links::{Link, References};
use super::readable::{Pipes, Readable};
use super::writable::Writable;
use super::{CLOSE, DRAIN, END, FINISH, PIPE, UNPIPE};
use crate::context::Node;
use crate::error::Error;
use crate::events::{ERROR, Emitter as _, ListenerId};
use crate::promise;
use phaseloop::task::next_tick;

impl<T: Clone + 'static> Readable<T> {
    /// Writes all chunks into `sink`, pauses while `sink` is full, and ends `sink` when this stream
    /// ends. JavaScript: `readable.pipe(sink)`.
    ///
    /// Errors are not forwarded. A sink that fails or closes is unpiped. Use
    /// [`pipeline`](super::pipeline()) for streams that fail together. Chunks are cloned, because
    /// other listeners and pipes may use them.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn pipe(&self, sink: &Writable<T>) {
        self.pipe_with(sink, true);
    }

    /// Pipes into `sink` and leaves it open when this stream ends. JavaScript: `readable.pipe(sink,
    /// { end: false })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn pipe_without_end(&self, sink: &Writable<T>) {
        self.pipe_with(sink, false);
    }

    /// Pipes into a sink of other chunks. A conversion that panics destroys the sink.
    pub(crate) fn pipe_with<S: 'static>(&self, sink: &Writable<S>, end: bool) -> Rc<Pipe<T, S>>
    where
        T: Into<S>,
    {
        let node = Node::current();
        let pipe = Rc::new_cyclic(|me: &Weak<Pipe<T, S>>| Pipe {
            place: node.links.add(me.clone()),
            node,
            source: self.clone(),
            sink: sink.clone(),
            ends: end,
            cleaned_up: Cell::new(false),
            on_source: RefCell::default(),
            on_sink: RefCell::default(),
            on_drain: Cell::new(None),
            on_finish: Cell::new(None),
            on_close: Cell::new(None),
            on_error: Cell::new(None),
        });
        let pipes = self.state().pipes.get_or_init(Box::default);
        pipes.sinks.borrow_mut().push(sink.id());
        pipe.start();
        pipe
    }

    /// Stops writing into `sink`. JavaScript: `readable.unpipe(sink)`.
    pub fn unpipe(&self, sink: &Writable<T>) {
        self.unpipe_from(sink);
    }

    pub(crate) fn unpipe_from<S: 'static>(&self, sink: &Writable<S>) {
        let is_last = {
            let Some(pipes) = self.state().pipes.get() else {
                return;
            };
            let mut sinks = pipes.sinks.borrow_mut();
            let Some(place) = sinks.iter().position(|id| *id == sink.id()) else {
                return;
            };
            sinks.remove(place);
            sinks.is_empty()
        };
        // Without a sink the flow would discard the chunks.
        if is_last {
            self.pause();
        }
        sink.emitter().emit(UNPIPE, self.id());
        self.state().base.release();
    }
}

/// A pipe and its streams hold each other until the pipe is cleaned up.
pub(crate) struct Pipe<T: 'static, S: 'static> {
    node: Rc<Node>,
    place: usize,
    source: Readable<T>,
    pub(super) sink: Writable<S>,
    ends: bool,
    cleaned_up: Cell<bool>,
    on_source: RefCell<Vec<ListenerId>>,
    on_sink: RefCell<Vec<ListenerId>>,
    on_drain: Cell<Option<ListenerId>>,
    on_finish: Cell<Option<ListenerId>>,
    on_close: Cell<Option<ListenerId>>,
    on_error: Cell<Option<ListenerId>>,
}

impl<T: 'static, S: 'static> Link for Pipe<T, S> {
    fn references(&self, found: &mut References) {
        found.readable(&self.source);
        found.writable(&self.sink);
    }

    fn abandon(&self) {
        self.source.emitter().clear();
        self.sink.emitter().clear();
    }
}

impl<T: 'static, S: 'static> Drop for Pipe<T, S> {
    fn drop(&mut self) {
        self.node.links.remove(self.place);
    }
}

impl<T: Clone + Into<S> + 'static, S: 'static> Pipe<T, S> {
    fn start(self: &Rc<Self>) {
        let (source, sink) = (self.source.emitter(), self.sink.emitter());
        let state = self.source.state();
        let pipe = self.clone();
        // A source that has already ended emits no 'end' again.
        if state.end_emitted.get() {
            let kept = self.source.clone();
            next_tick(move || {
                pipe.source_ended();
                drop(kept);
            });
        } else {
            let listener = source.once(END, move |()| pipe.source_ended());
            self.on_source.borrow_mut().push(listener);
        }
        let pipe = self.clone();
        let listener = sink.on(UNPIPE, move |id: &StreamId| {
            if *id == pipe.source.id() {
                pipe.clean_up();
            }
        });
        self.on_sink.borrow_mut().push(listener);
        let pipe = self.clone();
        let listener = self.source.on_data(move |chunk| {
            match promise::catch(|| pipe.sink.write(chunk.clone().into())) {
                Ok(true) => {}
                Ok(false) => pipe.pause(),
                Err(reason) => pipe.sink.destroy(Some(error_of(&reason))),
            }
        });
        self.on_source.borrow_mut().push(listener);
        let pipe = self.clone();
        let listener = sink.prepend(ERROR, move |error| pipe.sink_failed(error));
        self.on_error.set(Some(listener));
        let pipe = self.clone();
        let listener = sink.once(CLOSE, move |()| {
            pipe.off_sink(&pipe.on_finish);
            pipe.unpipe();
        });
        self.on_close.set(Some(listener));
        let pipe = self.clone();
        let listener = sink.once(FINISH, move |()| {
            pipe.off_sink(&pipe.on_close);
            pipe.unpipe();
        });
        self.on_finish.set(Some(listener));
        sink.emit(PIPE, self.source.id());
        if self.sink.need_drain() {
            self.pause();
        } else if self.source.flowing() != Some(true) {
            self.source.resume();
        }
    }

    fn source_ended(&self) {
        if self.ends {
            self.sink.end(());
        } else {
            self.unpipe();
        }
    }

    fn unpipe(&self) {
        self.source.unpipe_from(&self.sink);
    }

    /// Pauses the source while the sink is full.
    fn pause(self: &Rc<Self>) {
        if !self.cleaned_up.get() {
            let pipes = self.pipes();
            let (sinks, id) = (pipes.sinks.borrow(), self.sink.id());
            let mut full = pipes.full.borrow_mut();
            if *sinks == [id] {
                *full = vec![id];
            } else if sinks.contains(&id) && !full.contains(&id) {
                full.push(id);
            }
            drop((sinks, full));
            self.source.pause();
        }
        if self.on_drain.get().is_none() {
            let pipe = self.clone();
            let listener = self.sink.on(DRAIN, move |()| pipe.drained());
            self.on_drain.set(Some(listener));
        }
    }

    /// Returns the pipes of the source.
    fn pipes(&self) -> &Pipes {
        self.source.state().pipes.get_or_init(Box::default)
    }

    fn drained(&self) {
        let all_drained = {
            let mut full = self.pipes().full.borrow_mut();
            full.retain(|id| *id != self.sink.id());
            full.is_empty()
        };
        if all_drained && self.source.state().data_listening.get() {
            self.source.resume();
        }
    }

    /// Unpipes a failed sink. The error is emitted again if no other listener exists, so that it is
    /// reported as unhandled.
    fn sink_failed(&self, error: &Error) {
        self.unpipe();
        self.off_sink(&self.on_error);
        if self.sink.emitter().listener_count(ERROR) == 0 {
            self.sink.emitter().emit(ERROR, error);
        }
    }

    fn off_sink(&self, listener: &Cell<Option<ListenerId>>) {
        if let Some(id) = listener.take() {
            self.sink.emitter().off(id);
        }
    }

    fn clean_up(&self) {
        if self.cleaned_up.get() {
            return;
        }
        let awaits_drain = self.on_drain.get().is_some();
        for listener in [
            &self.on_close,
            &self.on_finish,
            &self.on_drain,
            &self.on_error,
        ] {
            self.off_sink(listener);
        }
        for id in self.on_sink.take() {
            self.sink.emitter().off(id);
        }
        for id in self.on_source.take() {
            self.source.emitter().off(id);
        }
        self.cleaned_up.set(true);
        // The source waits for the drain of a sink that is unpiped now, so it is resumed here.
        let waits = !self.pipes().full.borrow().is_empty();
        if awaits_drain && waits {
            self.drained();
        }
    }
}
