//! A readable stream as a `futures` stream.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::READABLE;
use super::finished::sealed::Sealed as _;
use super::finished::{EndOfStream, Sides};
use super::readable::Readable;
use crate::error::Error;
use crate::events::{Emitter as _, ListenerId};
use phaseloop::extension::{WaitNote, note_wait};
use phaseloop::task;

impl<T: 'static> Readable<T> {
    /// Returns the chunks as a `futures` stream. JavaScript: `for await (const chunk of readable)`.
    ///
    /// The first poll takes the stream over, and the stream does not flow from then on. A buffered
    /// chunk is delivered one microtask after it was requested. The
    /// last item is the error of the stream if it fails. The end is delivered after
    /// [`END`](super::END) and [`CLOSE`](super::CLOSE).
    ///
    /// # Cancel safety
    ///
    /// Dropping a pending wait for the next chunk loses no chunk. Dropping [`Chunks`] before the
    /// end destroys the stream, unless [`destroy_on_return`](Chunks::destroy_on_return) says no.
    // N145.
    #[track_caller]
    pub fn chunks(&self) -> Chunks<T> {
        let state = State {
            readable: self.clone(),
            end: RefCell::default(),
            waker: RefCell::default(),
            step: RefCell::new(Step::Idle),
            is_left: Cell::new(false),
        };
        Chunks {
            state: Rc::new(state),
            started: None,
            over: false,
            destroys: true,
            note: WaitNote::new("chunk of a stream", "", Some(Location::caller())),
        }
    }
}

/// The chunks of a readable stream; returned by [`Readable::chunks`].
///
/// # Cancel safety
///
/// Dropping a pending wait for the next chunk loses no chunk. Dropping `Chunks` before the end
/// destroys the stream.
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use futures::StreamExt as _;
/// use phaseloop_node::{Exit, run, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut chunks = Readable::from_iter([1, 2]).chunks();
///         let mut sum = 0;
///         while let Some(chunk) = chunks.next().await {
///             sum += chunk.unwrap();
///         }
///         assert_eq!(sum, 3);
///     })
/// }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Chunks<T: 'static> {
    state: Rc<State<T>>,
    started: Option<(ListenerId, EndOfStream)>,
    over: bool,
    /// Whether the stream is destroyed if this is dropped before the end.
    destroys: bool,
    note: WaitNote,
}

struct State<T: 'static> {
    readable: Readable<T>,
    /// The result with which the stream ended.
    end: RefCell<Option<Result<(), Error>>>,
    waker: RefCell<Option<Waker>>,
    step: RefCell<Step<T>>,
    /// Whether the reader has gone and the stream lives on: chunks on their way go back.
    is_left: Cell<bool>,
}

/// The state of the async iterator that Node uses here. Its microtasks are part of the order of
/// events.
enum Step<T> {
    /// No chunk is requested.
    Idle,
    /// A chunk is requested and none is buffered; an event of the stream resumes the wait.
    Waiting,
    /// Microtasks are queued.
    Moving,
    /// The item is ready for the next poll.
    Arrived(Option<Result<T, Error>>),
}

impl<T: 'static> State<T> {
    /// Reads a chunk, or reports the end.
    fn advance(self: &Rc<Self>) {
        let chunk = if self.readable.destroyed() {
            None
        } else {
            self.readable.read()
        };
        if let Some(chunk) = chunk {
            return self.arrive(Some(Ok(chunk)));
        }
        let end = self.end.borrow().clone();
        match end {
            Some(Ok(())) => self.arrive(None),
            Some(Err(error)) => self.arrive(Some(Err(error))),
            None => {
                self.step.replace(Step::Waiting);
            }
        }
    }

    fn arrive(&self, item: Option<Result<T, Error>>) {
        match item {
            Some(Ok(chunk)) if self.is_left.get() => _ = self.readable.unshift(chunk),
            item => _ = self.step.replace(Step::Arrived(item)),
        }
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The reader has gone, and the stream lives on.
    fn leave(&self) {
        self.is_left.set(true);
        let step = self.step.replace(Step::Idle);
        if let Step::Arrived(Some(Ok(chunk))) = step {
            self.readable.unshift(chunk);
        }
    }

    /// Resumes a waiting request in a microtask, after an event of the stream.
    fn news(self: &Rc<Self>) {
        if matches!(*self.step.borrow(), Step::Waiting) {
            self.step.replace(Step::Moving);
            let state = self.clone();
            task::queue_microtask(move || state.advance());
        }
    }
}

impl<T: 'static> Readable<T> {
    /// Ends a loop over the chunks that is left before the end.
    pub(crate) fn leave(&self, error: Option<Error>) {
        self.state().base.leave(error);
    }
}

impl<T: 'static> Chunks<T> {
    /// Sets whether the stream is destroyed if this is dropped before the end. The default is
    /// `true`. JavaScript: `readable.iterator({ destroyOnReturn })`.
    ///
    /// A chunk that was requested and not yet delivered is put back when this is dropped.
    ///
    /// # Examples
    ///
    /// After `cargo add futures`:
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// use phaseloop_node::{Exit, run, stream::Readable};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let numbers = Readable::from_iter([1, 2, 3]);
    ///         let first = numbers.chunks().destroy_on_return(false).next().await;
    ///         assert_eq!(first.unwrap().unwrap(), 1);
    ///         assert!(!numbers.destroyed());
    ///         assert_eq!(numbers.to_array().await.unwrap(), [2, 3]);
    ///     })
    /// }
    /// ```
    pub fn destroy_on_return(mut self, destroys: bool) -> Self {
        self.destroys = destroys;
        self
    }

    fn start(&mut self) {
        let readable = &self.state.readable;
        let known = Rc::downgrade(&self.state);
        let listener = readable.on(READABLE, move |()| {
            if let Some(state) = known.upgrade() {
                state.news();
            }
        });
        let known = Rc::downgrade(&self.state);
        let sides = Sides {
            readable: true,
            writable: false,
        };
        let end = EndOfStream::new(
            readable.base(),
            sides,
            true,
            Box::new(move |result| {
                if let Some(state) = known.upgrade() {
                    state.end.replace(Some(result));
                    state.news();
                }
            }),
        );
        self.started = Some((listener, end));
    }
}

impl<T: 'static> Stream for Chunks<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_chunk(cx);
        note_wait(&mut self.note, cx, polled)
    }
}

impl<T: 'static> Chunks<T> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let step = self.state.step.replace(Step::Idle);
        match step {
            Step::Arrived(item) => {
                self.over = !matches!(item, Some(Ok(_)));
                return Poll::Ready(item);
            }
            Step::Idle => {
                self.set_waker(cx.waker());
                if self.started.is_none() {
                    self.start();
                }
                self.state.advance();
            }
            waiting => {
                self.state.step.replace(waiting);
                self.set_waker(cx.waker());
            }
        }
        Poll::Pending
    }

    fn set_waker(&self, waker: &Waker) {
        let before = self.state.waker.replace(Some(waker.clone()));
        drop(before);
    }
}

impl<T: 'static> Drop for Chunks<T> {
    fn drop(&mut self) {
        let Some((listener, end)) = self.started.take() else {
            return;
        };
        let readable = &self.state.readable;
        if self.over || readable.destroyed() {
            // Nothing is left to destroy.
        } else if !self.destroys {
            self.state.leave();
        } else {
            // Node destroys a stream with an abort error if its loop is left. The listener stays,
            // so that the error counts as handled.
            end.keep();
            let error = (!readable.ended()).then(Error::left);
            readable.state().base.leave(error);
        }
        readable.off(listener);
    }
}

impl<T: 'static> fmt::Debug for Chunks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chunks").field(&self.state.readable).finish()
    }
}
