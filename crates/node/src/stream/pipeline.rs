//! Chains of streams.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use super::base::{Base, destroyed, premature_close};
use super::duplex::Duplex;
use super::finished::sealed::Sealed as _;
use super::finished::{EndOfStream, Outcome, Sides};
use super::readable::Readable;
use super::transform::Transform;
use super::writable::Writable;
use super::{CLOSE, END};
use crate::abort::{AbortListener, AbortSignal, WeakSignal};
use crate::error::Error;
use crate::events::{ERROR, Emitter as _};
use phaseloop::extension::{WaitNote, note_wait};
use phaseloop::task::next_tick;

/// Starts a chain of streams that are piped into each other, fail together and end together.
/// JavaScript: `stream.pipeline(..)`.
///
/// If one stream fails or is closed before its end, all others are destroyed. The result is
/// reported on a tick after the last stream has closed.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop_node::{run, stream::{Readable, Transform, Writable, pipeline}};
///
/// fn main() {
///     let seen = Rc::new(RefCell::new(Vec::new()));
///     let log = seen.clone();
///     run(async move {
///         let source = Readable::from_iter(["a", "b"]);
///         let upper = Transform::objects(|text: &str, out| {
///             out.ok_with(text.to_uppercase());
///         })
///         .build();
///         let sink = Writable::objects(move |text: String, done| {
///             log.borrow_mut().push(text);
///             done.ok();
///         })
///         .build();
///         pipeline(&source).through(&upper).into(&sink).await.unwrap();
///     });
///     assert_eq!(*seen.borrow(), ["A", "B"]);
/// }
/// ```
pub fn pipeline<T: 'static>(source: &Readable<T>) -> Pipeline<T> {
    let row = Rc::new(Row::default());
    let sides = Sides {
        readable: true,
        writable: false,
    };
    row.add(source.base(), sides);
    Pipeline {
        last: source.clone(),
        row,
    }
}

/// A chain of streams without a sink; returned by [`pipeline()`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, Transform, Writable, pipeline}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = Readable::from_iter(["a", "b"]);
///         let same = Transform::pass_through();
///         let sink = Writable::objects(|_: &str, done| done.ok()).build();
///         let without_sink = pipeline(&source).through(&same);
///         without_sink.into(&sink).await.unwrap();
///     })
/// }
/// ```
#[must_use = "a chain without a sink moves no data"]
pub struct Pipeline<T: 'static> {
    pub(super) last: Readable<T>,
    pub(super) row: Rc<Row>,
}

impl<T: Clone + 'static> Pipeline<T> {
    /// Appends a transform or another duplex stream.
    pub fn through<R: 'static>(self, next: &impl AsDuplex<T, R>) -> Pipeline<R> {
        self.through_other(next)
    }

    /// Appends a stream of other chunks.
    pub(crate) fn through_other<W: 'static, R: 'static>(
        self,
        next: &impl AsDuplex<W, R>,
    ) -> Pipeline<R>
    where
        T: Into<W>,
    {
        let last = self.last;
        let feed = |row: &Rc<Row>, sink: &Writable<W>| row.pipe(&last, sink, true);
        self.row.through(next.as_duplex(), feed)
    }

    /// Appends the sink and starts the chain.
    ///
    /// # Errors
    ///
    /// Awaiting the end returns the error of the stream of the chain that has failed first.
    #[track_caller]
    pub fn into(self, sink: &Writable<T>) -> PipelineEnd {
        self.into_other(sink, true)
    }

    /// Appends a sink of other chunks, which is ended or stays open, and starts the chain.
    #[track_caller]
    pub(crate) fn into_other<S: 'static>(self, sink: &Writable<S>, ends: bool) -> PipelineEnd
    where
        T: Into<S>,
    {
        if !ends {
            self.row.watch_errors(sink.base());
            self.row.pipe(&self.last, sink, false);
            return PipelineEnd::new(self.row);
        }
        let last = self.last;
        self.row.into(sink, |row| row.pipe(&last, sink, true))
    }

    /// Appends a sink that stays open, and starts the chain: it ends when the last stream before
    /// the sink has ended. JavaScript: `pipeline(.., sink, { end: false })`.
    ///
    /// # Errors
    ///
    /// Awaiting the end returns the error of the stream of the chain that has failed first.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::{Readable, Writable, pipeline}};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let sink = Writable::objects(|_: u32, done| done.ok()).build();
    ///         pipeline(&Readable::from_iter([1, 2])).into_open(&sink).await.unwrap();
    ///         assert!(sink.is_writable());
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn into_open(self, sink: &Writable<T>) -> PipelineEnd {
        self.into_other(sink, false)
    }
}

/// A stream that can be in the middle of a chain: [`Duplex`] and [`Transform`](super::Transform).
///
/// # Examples
///
/// ```
/// use phaseloop_node::stream::{AsDuplex, Transform, Writable};
///
/// fn input(of: &impl AsDuplex<u8, u8>) -> &Writable<u8> {
///     of.as_duplex().writable()
/// }
///
/// fn main() -> phaseloop_node::Exit<()> {
///     phaseloop_node::run(async {
///         let same = Transform::pass_through();
///         input(&same).write(1);
///     })
/// }
/// ```
pub trait AsDuplex<W: 'static, R: 'static> {
    /// Returns the duplex stream.
    fn as_duplex(&self) -> &Duplex<W, R>;
}

impl<W: 'static, R: 'static> AsDuplex<W, R> for Duplex<W, R> {
    fn as_duplex(&self) -> &Self {
        self
    }
}

impl<W: 'static, R: 'static> AsDuplex<W, R> for Transform<W, R> {
    fn as_duplex(&self) -> &Duplex<W, R> {
        self.duplex()
    }
}

/// A complete chain of streams. Await it, or pass a callback.
///
/// # Cancel safety
///
/// Dropping the future discards the result. The streams go on.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, Writable, pipeline}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = Readable::from_iter([1, 2]);
///         let sink = Writable::objects(|_: i32, done| done.ok()).build();
///         pipeline(&source).into(&sink).then(|result| assert!(result.is_ok()));
///     })
/// }
/// ```
#[must_use = "await it or pass a callback to get its errors"]
pub struct PipelineEnd<V = ()> {
    pub(super) row: Rc<Row>,
    /// The value of the chain, once its last function has returned it.
    pub(super) value: Rc<RefCell<Option<V>>>,
    note: WaitNote,
}

impl PipelineEnd {
    #[track_caller]
    pub(super) fn new(row: Rc<Row>) -> Self {
        Self::with_value(row, Rc::new(RefCell::new(Some(()))))
    }
}

impl<V> PipelineEnd<V> {
    #[track_caller]
    pub(super) fn with_value(row: Rc<Row>, value: Rc<RefCell<Option<V>>>) -> Self {
        Self {
            row,
            value,
            note: WaitNote::new("pipeline", "", Some(Location::caller())),
        }
    }
}

impl<V: 'static> PipelineEnd<V> {
    /// Destroys the chain with an abort error when `signal` is aborted. JavaScript: `{ signal }`.
    pub fn signal(self, signal: &AbortSignal) -> Self {
        let (row, by) = (Rc::downgrade(&self.row), signal.downgrade());
        // The signal holds what it may abort, as in JavaScript; the end takes the listener off.
        let members = self.row.members.borrow();
        let bases = members.iter().filter_map(|member| member.base.upgrade());
        let held: Vec<_> = bases.map(|base| base.hold()).collect();
        drop(members);
        let abort = move || {
            let _held = &held;
            let reason = by.upgrade().and_then(|signal| signal.reason());
            if let (Some(row), Some(reason)) = (row.upgrade(), reason) {
                row.finish_all(Err(Error::aborted_by(reason)), false);
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
            let mut signals = self.row.signals.borrow_mut();
            signals.push((signal.downgrade(), listener));
        }
        self
    }

    /// Calls `callback` when the chain has ended.
    pub fn then(self, callback: impl FnOnce(Result<V, Error>) + 'static) {
        let value = self.value;
        let with_value = move |result: Result<(), Error>| callback(result.map(|()| taken(&value)));
        self.row.outcome.then(Box::new(with_value));
    }
}

/// Returns the value of a chain that has ended well.
fn taken<V>(value: &RefCell<Option<V>>) -> V {
    value
        .take()
        .expect("a chain ends once, after its value is there")
}

impl<V> Future for PipelineEnd<V> {
    type Output = Result<V, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.row.outcome.poll(cx);
        let result = ready!(note_wait(&mut self.note, cx, polled));
        Poll::Ready(result.map(|()| taken(&self.value)))
    }
}

#[derive(Default)]
pub(super) struct Row {
    error: RefCell<Option<Error>>,
    /// The number of ends to wait for: two for each pipe, one for each function.
    pub(super) waiting: Cell<isize>,
    members: RefCell<Vec<Rc<Member>>>,
    /// The signals that may abort the chain, until it has ended.
    signals: RefCell<Vec<(WeakSignal, AbortListener)>>,
    pub(super) outcome: Outcome,
}

/// One stream of a chain.
struct Member {
    base: Weak<Base>,
    over: Cell<bool>,
}

impl Row {
    /// Adds a stream to the chain, to be destroyed with the others.
    pub(super) fn add(self: &Rc<Self>, base: &Rc<Base>, sides: Sides) {
        let member = Rc::new(Member {
            base: Rc::downgrade(base),
            over: Cell::new(false),
        });
        let (closed, ended) = (member.clone(), member.clone());
        base.emitter.on(CLOSE, move |()| closed.over.set(true));
        let end = move |result: Result<(), Error>| ended.over.set(result.is_ok());
        EndOfStream::new(base, sides, true, Box::new(end)).keep();
        self.members.borrow_mut().push(member);
        self.watch_errors(base);
    }

    /// Adds a stream that `feed` passes the chunks so far to. Returns the chain behind it.
    pub(super) fn through<W: 'static, R: 'static>(
        self: Rc<Self>,
        next: &Duplex<W, R>,
        feed: impl FnOnce(&Rc<Self>, &Writable<W>),
    ) -> Pipeline<R> {
        let sides = Sides {
            readable: true,
            writable: true,
        };
        self.add(next.base(), sides);
        feed(&self, next.writable());
        Pipeline {
            last: next.readable().clone(),
            row: self,
        }
    }

    /// Adds the sink and starts the chain; `feed` passes the chunks so far to the sink.
    #[track_caller]
    pub(super) fn into<T: 'static>(
        self: Rc<Self>,
        sink: &Writable<T>,
        feed: impl FnOnce(&Rc<Self>),
    ) -> PipelineEnd {
        let sides = Sides {
            readable: false,
            writable: true,
        };
        self.add(sink.base(), sides);
        feed(&self);
        PipelineEnd::new(self)
    }

    /// Ends the chain with an error of the stream, also after its pipe has ended.
    fn watch_errors(self: &Rc<Self>, base: &Rc<Base>) {
        let row = self.clone();
        base.emitter.on(ERROR, move |error| {
            if !is_consequence(error) {
                row.finish_all(Err(error.clone()), false);
            }
        });
    }

    pub(super) fn pipe<T: Clone + Into<S> + 'static, S: 'static>(
        self: &Rc<Self>,
        source: &Readable<T>,
        sink: &Writable<S>,
        ends: bool,
    ) {
        self.waiting.set(self.waiting.get() + 2);
        let ended = Rc::new(Cell::new(false));
        let (row, was_ended) = (self.clone(), ended.clone());
        sink.on(CLOSE, move |()| {
            if !was_ended.get() {
                row.finish_all(Err(premature_close()), false);
            }
        });
        let pipe = source.pipe_with(sink, false);
        let end = move || {
            ended.set(true);
            pipe.sink.end(());
        };
        if !ends {
            self.finish(Ok(()));
        } else if source.ended() {
            let kept = sink.clone();
            next_tick(move || {
                end();
                drop(kept);
            });
        } else {
            source.once(END, move |()| end());
        }
        let row = self.clone();
        let reads = Sides {
            readable: true,
            writable: false,
        };
        let source_over = move |result: Result<(), Error>| row.finish(result);
        EndOfStream::new(source.base(), reads, true, Box::new(source_over)).keep();
        let row = self.clone();
        let writes = Sides {
            readable: false,
            writable: true,
        };
        let sink_over = move |result: Result<(), Error>| row.finish(result);
        EndOfStream::new(sink.base(), writes, true, Box::new(sink_over)).keep();
    }

    pub(super) fn finish(self: &Rc<Self>, result: Result<(), Error>) {
        self.waiting.set(self.waiting.get() - 1);
        let is_last = self.waiting.get() == 0;
        self.finish_all(result, is_last);
    }

    fn finish_all(self: &Rc<Self>, result: Result<(), Error>, is_last: bool) {
        if let Err(error) = result {
            let mut first = self.error.borrow_mut();
            // A premature close or an abort may be reported before the error that caused it.
            if first.as_ref().is_none_or(is_consequence) {
                *first = Some(error);
            }
        }
        let error = self.error.borrow().clone();
        if error.is_none() && !is_last {
            return;
        }
        let members = self.members.take();
        for member in members {
            member.destroy(error.clone());
        }
        for (signal, listener) in self.signals.take() {
            if let Some(signal) = signal.upgrade() {
                signal.off(listener);
            }
        }
        if is_last {
            let row = self.clone();
            next_tick(move || row.outcome.settle(error.map_or(Ok(()), Err)));
        }
    }
}

/// Returns whether an error follows from the destruction of another stream, which reports the
/// cause.
fn is_consequence(error: &Error) -> bool {
    error.name() == "AbortError" || error.code() == Some("ERR_STREAM_PREMATURE_CLOSE")
}

impl Member {
    fn destroy(&self, error: Option<Error>) {
        if self.over.replace(true) {
            return;
        }
        if let Some(base) = self.base.upgrade() {
            base.leave(Some(error.unwrap_or_else(|| destroyed("pipe"))));
        }
    }
}

impl<T: 'static> fmt::Debug for Pipeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pipeline").field(&self.last).finish()
    }
}

impl<V> fmt::Debug for PipelineEnd<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipelineEnd")
    }
}
