//! Awaited events: all emissions, one after the other.
//!
//! ```text
//!   emission ──┬── the reader waits ──> it resumes in a microtask
//!              └── queued ──> the next request ──> a microtask ──> the reader
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::{ERROR, Emitter, Event, EventEmitter, ListenerId, WeakEmitter};
use crate::abort::{AbortListener, AbortSignal};
use crate::error::Error;
use phaseloop::extension::{WaitNote, note_wait};

/// Returns all emissions of `event` from now on as a stream. Emissions between two polls are
/// queued. As with [`once()`](super::once()), any type with an emitter will do. JavaScript:
/// `events.on(emitter, name)`.
///
/// The stream ends by itself only with [`until`](Events::until). An emitted [`ERROR`] (unless that
/// is `event`) is the last item, after the earlier values, and removes the listeners at once. An
/// item is delivered one microtask after the emission, or one microtask after it was requested if
/// it was queued.
///
/// # Cancel safety
///
/// Dropping the stream removes its listeners and drops the queued emissions.
///
/// # Examples
///
/// ```
/// use phaseloop::stream::StreamExt;
/// use phaseloop_node::events::{Event, EventEmitter, on};
///
/// const DATA: Event<u32> = Event::new("data");
///
/// #[phaseloop::main]
/// async fn main() {
///     let emitter = EventEmitter::new();
///     let events = on(&emitter, DATA);
///     (1..=3).for_each(|n| assert!(emitter.emit(DATA, &n)));
///     let seen: Vec<u32> = events.take(3).map(Result::unwrap).collect().await;
///     assert_eq!(seen, [1, 2, 3]);
/// }
/// ```
// H120.
#[track_caller]
pub fn on<A>(emitter: &(impl Emitter + ?Sized), event: Event<A>) -> Events<A>
where
    A: ToOwned + ?Sized + 'static,
    A::Owned: 'static,
{
    let emitter = emitter.emitter();
    let queue = EventQueue::new(emitter, event);
    Events {
        emitter: emitter.clone(),
        queue,
        note: WaitNote::new("event", event.name(), Some(Location::caller())),
    }
}

/// Returns all emissions of `event` as [`on()`] does, until `signal` is aborted. The queued
/// emissions are then returned, and an `AbortError` as the last item. The abort removes the
/// listeners at once. If the signal was aborted before, no listener is added, and the error is the
/// only item and is ready at once. JavaScript: `events.on(emitter, name, { signal })`.
///
/// # Cancel safety
///
/// Dropping the stream removes its listeners and drops the queued emissions.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortController, events::{Event, EventEmitter, on_with_signal}};
/// use phaseloop::stream::StreamExt;
///
/// const DATA: Event<u32> = Event::new("data");
///
/// #[phaseloop::main]
/// async fn main() {
///     let (emitter, controller) = (EventEmitter::new(), AbortController::new());
///     let mut events = on_with_signal(&emitter, DATA, &controller.signal());
///     controller.abort();
///     assert_eq!(emitter.listener_count(DATA), 0);
///     assert_eq!(events.next().await.unwrap().unwrap_err().name(), "AbortError");
///     assert!(events.next().await.is_none());
/// }
/// ```
#[track_caller]
pub fn on_with_signal<A>(
    emitter: &(impl Emitter + ?Sized),
    event: Event<A>,
    signal: &AbortSignal,
) -> Events<A>
where
    A: ToOwned + ?Sized + 'static,
    A::Owned: 'static,
{
    let emitter = emitter.emitter();
    let queue = match signal.reason() {
        Some(reason) => EventQueue::failed(Error::aborted_by(reason)),
        None => {
            let queue = EventQueue::new(emitter, event);
            queue.abort_with(signal);
            queue
        }
    };
    Events {
        emitter: emitter.clone(),
        queue,
        note: WaitNote::new("event", event.name(), Some(Location::caller())),
    }
}

/// The emissions of an event; returned by [`on()`].
///
/// # Cancel safety
///
/// Dropping a pending wait for the next item loses no emission. Dropping the stream removes its
/// listeners and drops the queued emissions.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter, on};
/// use phaseloop::stream::StreamExt;
///
/// const DATA: Event<u32> = Event::new("data");
///
/// #[phaseloop::main]
/// async fn main() {
///     let emitter = EventEmitter::new();
///     let mut events = on(&emitter, DATA);
///     emitter.emit(DATA, 7);
///     assert_eq!(events.next().await.unwrap().unwrap(), 7);
/// }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Events<A>
where
    A: ToOwned + ?Sized,
    A::Owned: 'static,
{
    /// Keeps the emitter alive.
    emitter: EventEmitter,
    queue: Rc<EventQueue<A::Owned>>,
    note: WaitNote,
}

impl<A> Events<A>
where
    A: ToOwned + ?Sized,
    A::Owned: 'static,
{
    /// Ends the stream when `event` is emitted, after the queued emissions. JavaScript:
    /// `events.on(emitter, name, { close: ['end'] })`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::events::{Event, EventEmitter, on};
    /// use phaseloop::stream::StreamExt;
    ///
    /// const DATA: Event<u32> = Event::new("data");
    /// const END: Event<()> = Event::new("end");
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let emitter = EventEmitter::new();
    ///     let events = on(&emitter, DATA).until(END);
    ///     emitter.emit(DATA, 7);
    ///     emitter.emit(END, ());
    ///     assert_eq!(events.map(Result::unwrap).collect::<Vec<_>>().await, [7]);
    /// }
    /// ```
    pub fn until<B: ?Sized + 'static>(self, event: Event<B>) -> Self {
        if !self.queue.closed.get() {
            self.queue.close_on(&self.emitter, event);
        }
        self
    }
}

impl<A> Stream for Events<A>
where
    A: ToOwned + ?Sized,
    A::Owned: 'static,
{
    type Item = Result<A::Owned, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let polled = this.queue.poll_next(cx);
        note_wait(&mut this.note, cx, polled)
    }
}

impl<A> Drop for Events<A>
where
    A: ToOwned + ?Sized,
    A::Owned: 'static,
{
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl<A> fmt::Debug for Events<A>
where
    A: ToOwned + ?Sized,
    A::Owned: 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("kept", &self.queue.items.borrow().len())
            .finish_non_exhaustive()
    }
}

/// The emissions between an emitter and one reader: the iterator of Node's `events.on`.
pub(crate) struct EventQueue<T: 'static> {
    emitter: WeakEmitter,
    items: RefCell<VecDeque<T>>,
    /// The error that ends the iteration, after all items.
    error: RefCell<Option<Error>>,
    /// Whether the listeners are removed and nothing more is queued.
    closed: Cell<bool>,
    request: RefCell<Request<T>>,
    listeners: RefCell<Vec<ListenerId>>,
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
    flow: RefCell<Option<Flow>>,
}

/// The state of the reader's request for an item. Node answers a request with a promise, whose
/// microtask is part of the order of events.
enum Request<T> {
    /// No item is requested.
    None,
    /// An item is requested and none is queued.
    Waiting(Waker),
    /// The item is ready for the next poll.
    Answered(Option<Result<T, Error>>),
    /// The end was delivered.
    Over,
}

/// Pauses the source of a queue that has grown too long.
struct Flow {
    high: usize,
    is_paused: Cell<bool>,
    set_paused: Rc<dyn Fn(bool)>,
}

impl<T: 'static> EventQueue<T> {
    pub(crate) fn new<A>(emitter: &EventEmitter, event: Event<A>) -> Rc<Self>
    where
        A: ToOwned<Owned = T> + ?Sized + 'static,
    {
        let queue = Self::empty(emitter.downgrade(), Request::None);
        let values = queue.clone();
        let listener = emitter.on(event, move |value| values.push(value.to_owned()));
        queue.listeners.borrow_mut().push(listener);
        if event.key() != ERROR.key() {
            let errors = queue.clone();
            let listener = emitter.on(ERROR, move |error| errors.fail(error.clone()));
            queue.listeners.borrow_mut().push(listener);
        }
        queue
    }

    fn empty(emitter: WeakEmitter, request: Request<T>) -> Rc<Self> {
        Rc::new(Self {
            emitter,
            items: RefCell::default(),
            error: RefCell::default(),
            closed: Cell::new(false),
            request: RefCell::new(request),
            listeners: RefCell::default(),
            abort: RefCell::default(),
            flow: RefCell::default(),
        })
    }

    /// Creates a queue whose only item is an error. Node throws it in the call, so it takes no
    /// microtask.
    fn failed(error: Error) -> Rc<Self> {
        let request = Request::Answered(Some(Err(error)));
        let queue = Self::empty(EventEmitter::new().downgrade(), request);
        queue.closed.set(true);
        queue
    }

    pub(crate) fn close_on<B: ?Sized + 'static>(
        self: &Rc<Self>,
        emitter: &EventEmitter,
        event: Event<B>,
    ) {
        let closed = self.clone();
        let listener = emitter.on(event, move |_| closed.close());
        self.listeners.borrow_mut().push(listener);
    }

    fn abort_with(self: &Rc<Self>, signal: &AbortSignal) {
        let (aborted, known) = (Rc::downgrade(self), signal.downgrade());
        let listener = signal.on_abort(move || {
            let reason = known.upgrade().and_then(|signal| signal.reason());
            if let (Some(queue), Some(reason)) = (aborted.upgrade(), reason) {
                queue.fail(Error::aborted_by(reason));
            }
        });
        self.abort.replace(Some((signal.clone(), listener)));
    }

    /// Pauses the source when more than `high` items are queued, until none is left.
    pub(crate) fn pause_above(&self, high: usize, set_paused: impl Fn(bool) + 'static) {
        self.flow.replace(Some(Flow {
            high,
            is_paused: Cell::new(false),
            set_paused: Rc::new(set_paused),
        }));
    }

    fn push(&self, item: T) {
        match self.answer(Some(Ok(item))) {
            Some(Some(Ok(item))) if !self.closed.get() => {
                self.items.borrow_mut().push_back(item);
                self.check_flow();
            }
            unwanted => drop(unwanted),
        }
    }

    fn fail(&self, error: Error) {
        if let Some(Some(Err(error))) = self.answer(Some(Err(error))) {
            self.error.replace(Some(error));
        }
        self.close();
    }

    /// Removes the listeners. Queued items can still be read.
    pub(crate) fn close(&self) {
        let abort = self.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
        let listeners = self.listeners.take();
        if let Some(emitter) = self.emitter.upgrade() {
            for listener in listeners.into_iter().rev() {
                emitter.off(listener);
            }
        }
        self.closed.set(true);
        drop(self.answer(None));
    }

    /// Answers a waiting request; returns the answer if no request waits.
    fn answer(&self, answer: Option<Result<T, Error>>) -> Option<Option<Result<T, Error>>> {
        if !matches!(*self.request.borrow(), Request::Waiting(_)) {
            return Some(answer);
        }
        let request = self.request.replace(Request::Answered(answer));
        if let Request::Waiting(waker) = request {
            waker.wake();
        }
        None
    }

    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Error>>> {
        let request = self.request.replace(Request::None);
        match request {
            Request::Over => {
                self.request.replace(Request::Over);
                return Poll::Ready(None);
            }
            Request::Answered(answer) => {
                if answer.is_none() {
                    self.request.replace(Request::Over);
                }
                return Poll::Ready(answer);
            }
            Request::None | Request::Waiting(_) => {}
        }
        // Cloned before the queue is looked at: the clone of a waker may run user code, which
        // emits.
        let waker = cx.waker().clone();
        let queued = self.items.borrow_mut().pop_front();
        let answer = match queued {
            Some(item) => {
                self.check_flow();
                Some(Ok(item))
            }
            None => match self.error.take() {
                Some(error) => Some(Err(error)),
                None if self.closed.get() => None,
                None => {
                    self.request.replace(Request::Waiting(waker));
                    return Poll::Pending;
                }
            },
        };
        self.request.replace(Request::Answered(answer));
        waker.wake();
        Poll::Pending
    }

    fn check_flow(&self) {
        let count = self.items.borrow().len();
        let set_paused = {
            let flow = self.flow.borrow();
            let Some(flow) = &*flow else { return };
            let is_paused = flow.is_paused.get();
            if is_paused == (count > if is_paused { 0 } else { flow.high }) {
                return;
            }
            flow.is_paused.set(!is_paused);
            flow.set_paused.clone()
        };
        set_paused(count > 0);
    }
}
