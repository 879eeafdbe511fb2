//! Writable streams whose writes another object handles. An HTTP message has rules of its own for
//! writing and ending, and still is the sink of a pipe.

use std::rc::Rc;

use super::base::{Base, Callback, Done};
use super::chunk::{ByteChunk, Mode};
use super::writable::{Output, Writable, WritableBuilder};
use super::{CLOSE, FINISH, PREFINISH};
use crate::error::Error;
use crate::events::Mark;

/// The object behind a writable stream. It emits the events of the stream itself.
pub(crate) trait Sink<T> {
    fn write(&self, chunk: T, callback: Option<Callback>) -> bool;
    fn end(&self, chunk: Option<T>, callback: Option<Callback>);
    fn cork(&self);
    fn uncork(&self);
    fn corked(&self) -> usize;
    fn ended(&self) -> bool;
    fn finished(&self) -> bool;
    fn need_drain(&self) -> bool;
    fn length(&self) -> usize;
    fn high_water_mark(&self) -> usize;
    /// Destroys the object. Called once, when the stream is marked as destroyed.
    fn destroy(&self, error: Option<Error>);
}

impl<T: ByteChunk> Writable<T> {
    /// Creates a stream whose sink knows it as `base`. The base holds the events, the error, and
    /// whether the stream was destroyed.
    pub(crate) fn foreign<S: Sink<T> + 'static>(
        class: &'static str,
        make: impl FnOnce(Rc<Base>) -> Rc<S>,
    ) -> (Self, Rc<S>) {
        let base = Base::new(None, true);
        base.emitter.set_class(class);
        let sink = make(base.clone());
        // Weak, because the sink holds the base. The function never reports that it is done: the
        // sink emits 'error' and 'close'.
        let weak = Rc::downgrade(&sink);
        base.set_destroy_hook(Box::new(move |error, done: Done| {
            drop(done);
            if let Some(sink) = weak.upgrade() {
                sink.destroy(error);
            }
        }));
        let builder = WritableBuilder::of(Mode::bytes(), Output::Sink(sink.clone()));
        let state = builder.build_side(&base);
        let other_side = None;
        (Self { state, other_side }, sink)
    }

    /// Returns whether a stream of a sink is as it was built, and is known to its sink and to
    /// `handles` only: what becomes of it cannot be seen.
    pub(crate) fn is_untouched(&self, handles: usize) -> bool {
        let base = &self.state.base;
        // The weak references are the state's own and its base's; the sink holds the base.
        Rc::strong_count(&self.state) == handles
            && Rc::weak_count(&self.state) == 2
            && Rc::strong_count(base) == 2
            && base.is_untouched()
    }

    /// Lets a pipeline into the stream end with 'finish'. A request is closed when its response was
    /// read, so that a program that waited for the close before it reads would wait forever.
    pub(crate) fn ends_with_finish(&self) {
        self.state.base.emits_close.set(false);
    }

    /// Emits 'close' and releases the listeners. The sink of a foreign stream calls it.
    pub(crate) fn close_foreign(base: &Base) {
        mark_closed(base);
        base.emit_close();
    }

    /// Emits 'close' of a stream that may still finish, and releases its other listeners.
    /// [`release_foreign`](Self::release_foreign) follows.
    pub(crate) fn close_foreign_early(base: &Base) {
        mark_closed(base);
        let mark = Mark::now();
        base.emitter.emit(CLOSE, ());
        // A response may still get its socket.
        let kept = [PREFINISH.name(), FINISH.name(), "socket"];
        base.emitter.drop_before(mark, &kept);
    }

    /// Releases the listeners of a stream that was closed early.
    pub(crate) fn release_foreign(base: &Base) {
        base.let_go();
    }
}

fn mark_closed(base: &Base) {
    base.destroyed.set(true);
    base.closed.set(true);
    base.close_emitted.set(true);
}
