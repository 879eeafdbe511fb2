//! Waiting for the end of a stream.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use super::base::{Base, Callback, Held, ReadableSide, WritableSide, premature_close};
use super::duplex::Duplex;
use super::readable::Readable;
use super::transform::Transform;
use super::writable::Writable;
use super::{CLOSE, END, FINISH};
use crate::abort::{AbortListener, AbortSignal, WeakSignal};
use crate::async_hooks::Capture;
use crate::error::Error;
use crate::events::{ERROR, Emitter, ListenerId};
use phaseloop::extension::{WaitNote, note_wait};
use phaseloop::task::next_tick;

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

/// Every kind of stream of this module.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{AnyStream, Readable, finished}};
///
/// async fn ends_well(stream: &impl AnyStream) -> bool {
///     finished(stream).await.is_ok()
/// }
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = Readable::from_iter([1, 2]);
///         source.resume();
///         assert!(ends_well(&source).await);
///     })
/// }
/// ```
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

/// Waits until a stream has ended and closed, has failed, or was closed before its end. JavaScript:
/// `stream.finished(stream, callback)`.
///
/// The listeners are added by this call. Await the returned value, or pass a
/// [callback](Finished::then), which is called inside the event.
///
/// # Errors
///
/// The error of the stream, or `ERR_STREAM_PREMATURE_CLOSE` if it was closed before its end.
///
/// # Cancel safety
///
/// Dropping the returned value removes the listeners. The stream is not affected.
#[track_caller]
pub fn finished(stream: &impl AnyStream) -> Finished {
    finished_with(stream, FinishedOptions::default())
}

/// Options of [`finished_with`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::stream::FinishedOptions;
///
/// fn main() {
///     let written = FinishedOptions { readable: false, ..FinishedOptions::default() };
///     assert!(written.writable && written.error);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedOptions {
    /// Whether to wait until a readable stream is read to EOF.
    pub readable: bool,
    /// Whether to wait until a writable stream has finished.
    pub writable: bool,
    /// Whether the `error` event ends the wait. If `false`, the error is reported with the close,
    /// and the event needs another listener.
    pub error: bool,
}

impl Default for FinishedOptions {
    /// Waits for both sides and for errors.
    fn default() -> Self {
        Self {
            readable: true,
            writable: true,
            error: true,
        }
    }
}

/// Waits until the sides of a stream that the options name have ended; see [`finished`].
/// JavaScript: `stream.finished(stream, options, callback)`.
///
/// # Errors
///
/// The errors of [`finished`].
///
/// # Cancel safety
///
/// Dropping the returned value removes the listeners. The stream is not affected.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run};
/// use phaseloop_node::stream::{Duplex, FinishedOptions, Readable, Writable, finished_with};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = Writable::objects(|_: u32, done| done.ok());
///         let duplex = Duplex::new(Readable::<u32>::objects(), sink);
///         let options = FinishedOptions { readable: false, ..FinishedOptions::default() };
///         let written = finished_with(&duplex, options);
///         duplex.writable().end(());
///         written.await.unwrap();
///     })
/// }
/// ```
#[track_caller]
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
    Finished {
        watch,
        outcome,
        note: WaitNote::new("end of a stream", "", Some(Location::caller())),
    }
}

/// The result of an operation, for a callback or for a waiting task.
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

/// Waits for the end of a stream; returned by [`finished`].
///
/// # Cancel safety
///
/// Dropping the future removes the listeners. The stream is not affected.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, finished}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = Readable::from_iter([1, 2]);
///         finished(&source).then(|result| assert!(result.is_ok()));
///         source.resume();
///     })
/// }
/// ```
#[must_use = "await it or pass a callback"]
pub struct Finished {
    watch: EndOfStream,
    outcome: Rc<Outcome>,
    note: WaitNote,
}

impl Finished {
    /// Ends the wait with an `AbortError` when `signal` is aborted. The stream is not affected.
    /// JavaScript: `finished(stream, { signal })`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{AbortController, Exit, run, stream::{Readable, finished}};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let (endless, controller) = (Readable::from_iter(0..), AbortController::new());
    ///         let end = finished(&endless).signal(&controller.signal());
    ///         controller.abort();
    ///         assert_eq!(end.await.unwrap_err().name(), "AbortError");
    ///         assert!(!endless.destroyed());
    ///     })
    /// }
    /// ```
    pub fn signal(self, signal: &AbortSignal) -> Self {
        let (watch, known) = (Rc::downgrade(&self.watch.watch), signal.downgrade());
        let abort = move || {
            let reason = known.upgrade().and_then(|signal| signal.reason());
            if let (Some(watch), Some(reason)) = (watch.upgrade(), reason) {
                watch.abort(reason);
            }
        };
        if signal.aborted() {
            // The closure keeps the signal, which holds the reason, until the tick runs.
            let kept = signal.clone();
            next_tick(move || {
                abort();
                drop(kept);
            });
        } else {
            let listener = signal.on_abort(abort);
            let abort = Some((signal.downgrade(), listener));
            self.watch.watch.abort.replace(abort);
        }
        self
    }

    /// Calls `callback` when the stream has ended.
    pub fn then(self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        self.outcome.then(Box::new(callback));
        self.watch.keep();
    }
}

impl Future for Finished {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.outcome.poll(cx);
        note_wait(&mut self.note, cx, polled)
    }
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finished")
    }
}

/// The sides of a stream to wait for.
#[derive(Clone, Copy)]
pub(super) struct Sides {
    pub(super) readable: bool,
    pub(super) writable: bool,
}

impl Sides {
    pub(super) fn of(base: &Base) -> Self {
        Self {
            readable: base.readable().is_some(),
            writable: base.writable().is_some(),
        }
    }
}

/// The listeners for the end of a stream. Dropping this value removes them.
pub(super) struct EndOfStream {
    watch: Rc<Watch>,
    kept: Cell<bool>,
}

struct Watch {
    base: Weak<Base>,
    sides: Sides,
    /// Whether the stream will emit 'close', for which the callback then waits.
    will_emit_close: Cell<bool>,
    read: Cell<bool>,
    written: Cell<bool>,
    callback: RefCell<Option<Callback>>,
    listeners: RefCell<Vec<ListenerId>>,
    /// The signal that ends the wait.
    abort: RefCell<Option<(WeakSignal, AbortListener)>>,
}

impl EndOfStream {
    pub(super) fn new(
        base: &Rc<Base>,
        sides: Sides,
        hears_errors: bool,
        callback: Callback,
    ) -> Self {
        let callback = bound(callback);
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
            abort: RefCell::default(),
        });
        watch.listen(base, hears_errors);
        // A stream or side that has already ended emits no further event, so its state is checked
        // here.
        let is_readable = readable.as_ref().map(|side| side.is_readable());
        let is_writable = writable.as_ref().map(|side| side.is_writable());
        let pending = writable.map_or(0, |side| side.pending_callbacks());
        // The closure keeps the stream alive until the tick runs.
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

    /// Keeps the listeners after this value is dropped.
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
        self.leave_signal();
        let callback = self.callback.take();
        let listeners = self.listeners.take();
        if let Some(base) = self.base.upgrade() {
            for listener in listeners {
                base.emitter.off(listener);
            }
        }
        drop(callback);
    }

    fn abort(&self, reason: Error) {
        let callback = self.callback.take();
        self.stop();
        if let Some(callback) = callback {
            callback(Err(Error::aborted_by(reason)));
        }
    }

    fn leave_signal(&self) {
        let abort = self.abort.take();
        if let Some((signal, listener)) = abort {
            if let Some(signal) = signal.upgrade() {
                signal.off(listener);
            }
        }
    }

    /// Calls the callback, at most once.
    fn call(&self, result: Result<(), Error>) {
        self.leave_signal();
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

/// Returns a callback that runs in the context of now, if there is one.
// Rule O8.
fn bound(callback: Callback) -> Callback {
    match Capture::new("STREAM_END_OF_STREAM") {
        Some(context) => Box::new(move |result| context.run_inside(|| callback(result))),
        None => callback,
    }
}

fn is_read(side: &dyn ReadableSide) -> bool {
    side.end_emitted() || (side.ended() && side.is_empty())
}

fn is_written(side: &dyn WritableSide) -> bool {
    side.finished() || side.ended_and_empty()
}
