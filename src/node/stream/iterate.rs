//! A readable stream as a stream of futures.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::super::error::Error;
use super::super::events::{Emitter as _, ListenerId};
use super::READABLE;
use super::finished::sealed::Sealed as _;
use super::finished::{EndOfStream, Sides};
use super::readable::Readable;
use crate::task;

impl<T: 'static> Readable<T> {
    /// The chunks, to be awaited one after the other. JavaScript's `for await (const chunk of readable)`.
    ///
    /// It takes over with its first poll: the stream does not flow then. A chunk that is there comes two microtasks after it
    /// is asked for, as out of an async generator. The last item is the stream's error, if it fails. The end comes after
    /// [`END`](super::END) and [`CLOSE`](super::CLOSE) (N145).
    ///
    /// # Cancel safety
    ///
    /// Giving up a wait for the next chunk loses nothing. Dropped before its end, it destroys the stream.
    pub fn chunks(&self) -> Chunks<T> {
        let state = State {
            readable: self.clone(),
            end: RefCell::default(),
            waker: RefCell::default(),
            step: RefCell::new(Step::Idle),
        };
        Chunks {
            state: Rc::new(state),
            started: None,
            over: false,
        }
    }
}

/// The chunks of a readable stream. Made by [`Readable::chunks`].
#[must_use = "streams do nothing unless polled"]
pub struct Chunks<T: 'static> {
    state: Rc<State<T>>,
    started: Option<(ListenerId, EndOfStream)>,
    over: bool,
}

struct State<T: 'static> {
    readable: Readable<T>,
    /// The stream is over.
    end: RefCell<Option<Result<(), Error>>>,
    waker: RefCell<Option<Waker>>,
    step: RefCell<Step<T>>,
}

/// Where the generator that Node uses here would stand.
enum Step<T> {
    /// Nobody asks.
    Idle,
    /// Somebody asks, and nothing is there: an event has to come.
    Waiting,
    /// Microtasks are under way.
    Moving,
    /// Here it is.
    Arrived(Option<Result<T, Error>>),
}

impl<T: 'static> State<T> {
    /// Looks for a chunk, or for the end.
    fn advance(self: &Rc<Self>) {
        let chunk = if self.readable.destroyed() {
            None
        } else {
            self.readable.read()
        };
        if let Some(chunk) = chunk {
            self.step.replace(Step::Moving);
            let state = self.clone();
            return task::queue_microtask(move || state.arrive(Some(Ok(chunk))));
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
        self.step.replace(Step::Arrived(item));
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Something has happened: whoever waits looks again, by a microtask.
    fn news(self: &Rc<Self>) {
        if matches!(*self.step.borrow(), Step::Waiting) {
            self.step.replace(Step::Moving);
            let state = self.clone();
            task::queue_microtask(move || state.advance());
        }
    }
}

impl<T: 'static> Chunks<T> {
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
}

impl<T: 'static> Chunks<T> {
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
        if !self.over && !readable.destroyed() {
            // Node's error of a loop that was left; the watch goes on, so that it counts as heard.
            end.keep();
            let error = (!readable.ended()).then(Error::left);
            readable.destroy(error);
        }
        readable.off(listener);
    }
}

impl<T: 'static> fmt::Debug for Chunks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chunks").field(&self.state.readable).finish()
    }
}
