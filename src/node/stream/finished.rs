//! When a stream is over.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use super::super::error::Error;
use super::super::events::{ERROR, Emitter, ListenerId};
use super::base::{Base, Callback, Held, ReadableSide, WritableSide, premature_close};
use super::duplex::{Duplex, Transform};
use super::readable::Readable;
use super::writable::Writable;
use super::{CLOSE, END, FINISH};
use crate::task::next_tick;

pub(super) mod sealed {
    use std::rc::Rc;

    #[expect(
        unnameable_types,
        reason = "keeps the trait `AnyStream` from being implemented elsewhere"
    )]
    pub trait Sealed {
        fn base(&self) -> &Rc<super::Base>;
    }
}

/// All kinds of streams.
pub trait AnyStream: Emitter + sealed::Sealed {}

impl<T: 'static> AnyStream for Readable<T> {}
impl<T: 'static> AnyStream for Writable<T> {}
impl<W: 'static, R: 'static> AnyStream for Duplex<W, R> {}
impl<W: 'static, R: 'static> AnyStream for Transform<W, R> {}

impl<T: 'static> sealed::Sealed for Readable<T> {
    fn base(&self) -> &Rc<Base> {
        &self.state().base
    }
}

impl<T: 'static> sealed::Sealed for Writable<T> {
    fn base(&self) -> &Rc<Base> {
        &self.state().base
    }
}

impl<W: 'static, R: 'static> sealed::Sealed for Duplex<W, R> {
    fn base(&self) -> &Rc<Base> {
        self.readable().base()
    }
}

impl<W: 'static, R: 'static> sealed::Sealed for Transform<W, R> {
    fn base(&self) -> &Rc<Base> {
        self.duplex().base()
    }
}

/// Waits until a stream is over: read and written to its end and closed, failed, or closed too early (N143).
///
/// It listens from this call on. Await the result, or give it a [callback](Finished::then), which is called inside the event.
///
/// # Errors
///
/// That of the stream; `ERR_STREAM_PREMATURE_CLOSE` if it was closed before its end.
///
/// # Cancel safety
///
/// Dropping what it returns takes the listeners off.
pub fn finished(stream: &impl AnyStream) -> Finished {
    finished_with(stream, FinishedOptions::default())
}

/// What [`finished_with`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedOptions {
    /// Whether the stream has to be read to its end, if it can be read.
    pub readable: bool,
    /// Whether the stream has to be written to its end, if it can be written.
    pub writable: bool,
    /// Whether the stream's event `error` ends the wait. Without it the error comes with the close, and the event needs
    /// another listener.
    pub error: bool,
}

impl Default for FinishedOptions {
    /// Everything.
    fn default() -> Self {
        Self {
            readable: true,
            writable: true,
            error: true,
        }
    }
}

/// Waits until one side of a stream is over, or otherwise as the options say; see [`finished`].
///
/// # Errors
///
/// As [`finished`].
///
/// # Cancel safety
///
/// Dropping what it returns takes the listeners off.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, stream::{Duplex, FinishedOptions, Readable, Writable, finished_with}};
///
/// run(async {
///     let sink = Writable::objects(|_: u32, done| done.ok());
///     let duplex = Duplex::new(Readable::<u32>::objects(), sink);
///     let written = finished_with(&duplex, FinishedOptions { readable: false, ..Default::default() });
///     duplex.writable().end();
///     written.await.unwrap();
/// });
/// ```
pub fn finished_with(stream: &impl AnyStream, options: FinishedOptions) -> Finished {
    let base = stream.base();
    let outcome = Rc::new(Outcome::default());
    let settled = outcome.clone();
    let whole = Sides::of(base);
    let sides = Sides {
        readable: whole.readable && options.readable,
        writable: whole.writable && options.writable,
    };
    let settle = Box::new(move |result| settled.settle(result));
    let watch = EndOfStream::new(base, sides, options.error, settle);
    Finished { watch, outcome }
}

/// How something that callbacks report has ended, for a callback or for a task.
#[derive(Default)]
pub(super) struct Outcome {
    result: RefCell<Option<Result<(), Error>>>,
    callback: RefCell<Option<Callback>>,
    waker: RefCell<Option<Waker>>,
}

impl Outcome {
    pub(super) fn settle(&self, result: Result<(), Error>) {
        let callback = self.callback.take();
        if let Some(callback) = callback {
            return callback(result);
        }
        self.result.replace(Some(result));
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn then(&self, callback: Callback) {
        let result = self.result.take();
        match result {
            Some(result) => next_tick(move || callback(result)),
            None => drop(self.callback.replace(Some(callback))),
        }
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(result) = self.result.take() {
            return Poll::Ready(result);
        }
        let before = self.waker.replace(Some(cx.waker().clone()));
        drop(before);
        Poll::Pending
    }
}

/// Waits for the end of a stream. Made by [`finished`].
#[must_use = "await it, or give it a callback"]
pub struct Finished {
    watch: EndOfStream,
    outcome: Rc<Outcome>,
}

impl Finished {
    /// Calls `callback` when the stream is over.
    pub fn then(self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        self.outcome.then(Box::new(callback));
        self.watch.keep();
    }
}

impl Future for Finished {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.outcome.poll(cx)
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finished")
    }
}

/// Which sides of a stream count.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    pub(super) readable: bool,
    pub(super) writable: bool,
}

impl Sides {
    fn of(base: &Base) -> Self {
        Self {
            readable: base.readable().is_some(),
            writable: base.writable().is_some(),
        }
    }
}

/// Listens for the end of a stream. Dropped, it listens no more.
pub(super) struct EndOfStream {
    watch: Rc<Watch>,
    kept: Cell<bool>,
}

struct Watch {
    base: Weak<Base>,
    sides: Sides,
    will_emit_close: Cell<bool>,
    read: Cell<bool>,
    written: Cell<bool>,
    callback: RefCell<Option<Callback>>,
    listeners: RefCell<Vec<ListenerId>>,
}

impl EndOfStream {
    pub(super) fn new(
        base: &Rc<Base>,
        sides: Sides,
        hears_errors: bool,
        callback: Callback,
    ) -> Self {
        let whole = Sides::of(base);
        let will_emit_close = base.auto_destroy.get()
            && base.emits_close.get()
            && !base.closed.get()
            && whole.readable == sides.readable
            && whole.writable == sides.writable;
        let (readable, writable) = (base.readable(), base.writable());
        let read = readable.as_ref().is_some_and(|side| is_read(&**side));
        let written = writable.as_ref().is_some_and(|side| is_written(&**side));
        let watch = Rc::new(Watch {
            base: Rc::downgrade(base),
            sides,
            will_emit_close: Cell::new(will_emit_close),
            read: Cell::new(read),
            written: Cell::new(written),
            callback: RefCell::new(Some(callback)),
            listeners: RefCell::default(),
        });
        watch.listen(base, hears_errors);
        // For a stream that is over, or for a side of it that is.
        let is_readable = readable.as_ref().map(|side| side.is_readable());
        let is_writable = writable.as_ref().map(|side| side.is_writable());
        let pending = writable.map_or(0, |side| side.pending_callbacks());
        // The stream is kept until then.
        let (later, kept) = (watch.clone(), (base.clone(), base.hold()));
        if base.closed.get() {
            next_tick(move || {
                later.closed();
                drop(kept);
            });
        } else if base.error_emitted.get() {
            if !will_emit_close {
                next_tick(move || later.over(kept));
            }
        } else if !sides.readable
            && (!will_emit_close || is_readable == Some(true))
            && (written || is_writable == Some(false))
            && pending == 0
        {
            next_tick(move || later.over(kept));
        } else if !sides.writable
            && (!will_emit_close || is_writable == Some(true))
            && (read || is_readable == Some(false))
        {
            next_tick(move || later.over(kept));
        }
        Self {
            watch,
            kept: Cell::new(false),
        }
    }

    /// Listens on although this is dropped.
    pub(super) fn keep(self) {
        self.kept.set(true);
    }
}

impl Drop for EndOfStream {
    fn drop(&mut self) {
        if !self.kept.get() {
            self.watch.stop();
        }
    }
}

impl Watch {
    fn listen(self: &Rc<Self>, base: &Base, hears_errors: bool) {
        let emitter = &base.emitter;
        let [end, finish, error, close] = [(); 4].map(|()| self.clone());
        let mut listeners = vec![
            emitter.on(END, move |()| end.ended()),
            emitter.on(FINISH, move |()| finish.finished()),
        ];
        if hears_errors {
            listeners.push(emitter.on(ERROR, move |what| error.call(Err(what.clone()))));
        }
        listeners.push(emitter.on(CLOSE, move |()| close.closed()));
        self.listeners.replace(listeners);
    }

    fn stop(&self) {
        let callback = self.callback.take();
        let listeners = self.listeners.take();
        if let Some(base) = self.base.upgrade() {
            for listener in listeners {
                base.emitter.off(listener);
            }
        }
        drop(callback);
    }

    /// Calls back, once.
    fn call(&self, result: Result<(), Error>) {
        let callback = self.callback.take();
        if let Some(callback) = callback {
            callback(result);
        }
    }

    fn ended(&self) {
        self.read.set(true);
        let Some(base) = self.base.upgrade() else {
            return;
        };
        if base.destroyed.get() {
            self.will_emit_close.set(false);
        }
        let is_writable = base.writable().is_some_and(|side| side.is_writable());
        if self.will_emit_close.get() && (!is_writable || self.sides.writable) {
            return;
        }
        if !self.sides.writable || self.written.get() {
            self.call(Ok(()));
        }
    }

    fn finished(&self) {
        self.written.set(true);
        let Some(base) = self.base.upgrade() else {
            return;
        };
        if base.destroyed.get() {
            self.will_emit_close.set(false);
        }
        let is_readable = base.readable().is_some_and(|side| side.is_readable());
        if self.will_emit_close.get() && (!is_readable || self.sides.readable) {
            return;
        }
        if !self.sides.readable || self.read.get() {
            self.call(Ok(()));
        }
    }

    fn closed(&self) {
        let Some(base) = self.base.upgrade() else {
            return;
        };
        if let Some(error) = base.error() {
            return self.call(Err(error));
        }
        let unread = self.sides.readable
            && !self.read.get()
            && base.readable().is_some_and(|side| !is_read(&*side));
        let unwritten = self.sides.writable
            && !self.written.get()
            && base.writable().is_some_and(|side| !is_written(&*side));
        if unread || unwritten {
            return self.call(Err(premature_close()));
        }
        self.call(Ok(()));
    }

    fn over(&self, (base, _held): (Rc<Base>, Held)) {
        self.call(base.error().map_or(Ok(()), Err));
    }
}

fn is_read(side: &dyn ReadableSide) -> bool {
    side.end_emitted() || (side.ended() && side.is_empty())
}

fn is_written(side: &dyn WritableSide) -> bool {
    side.finished() || side.ended_and_empty()
}
