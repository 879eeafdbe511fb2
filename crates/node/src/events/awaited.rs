//! Awaited events: one emission.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::{ERROR, Emitter, Event, ListenerId};
use crate::abort::{AbortListener, AbortSignal};
use crate::error::Error;
use crate::site::Site;
use phaseloop::LoopHandle;
use phaseloop::extension::{WaitNote, note_wait};

/// Waits for the next emission of `event` by an [`EventEmitter`](crate::EventEmitter), or by
/// a type that has one: a socket, a stream, a server, a child process. JavaScript: `await
/// events.once(emitter, name)`.
///
/// The listeners are added by this call, not by the first poll. The awaiting task continues two
/// microtasks after the emission, as with Node's `events.once`. For one microtask, use
/// [`EventEmitter::once`](crate::EventEmitter::once) with a `Deferred`.
///
/// # Errors
///
/// The [`ERROR`] that is emitted meanwhile, unless that is the awaited event.
///
/// # Cancel safety
///
/// Dropping the future removes its listeners.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter, once};
///
/// const READY: Event<u32> = Event::new("ready");
///
/// #[phaseloop::main]
/// async fn main() {
///     let emitter = EventEmitter::new();
///     let ready = once(&emitter, READY);
///     phaseloop::set_immediate(move || assert!(emitter.emit(READY, &7)));
///     assert_eq!(ready.await.unwrap(), 7);
/// }
/// ```
#[track_caller]
pub fn once<A>(emitter: &(impl Emitter + ?Sized), event: Event<A>) -> Once<A>
where
    A: ToOwned + ?Sized + 'static,
    A::Owned: 'static,
{
    let emitter = emitter.emitter();
    let state = Rc::new(State::default());
    let settled = state.clone();
    let listener = emitter.once(event, move |arguments| {
        settled.settle(Ok(arguments.to_owned()));
    });
    state.listeners.borrow_mut().push(listener);
    if event.key() != ERROR.key() {
        let failed = state.clone();
        let listener = emitter.once(ERROR, move |error| failed.settle(Err(error.clone())));
        state.listeners.borrow_mut().push(listener);
    }
    state.emitter.replace(Some(emitter.downgrade()));
    Once::new(state, event.name(), Location::caller())
}

/// Waits for the next emission of `event` as [`once()`] does, until `signal` is aborted.
/// JavaScript: `events.once(emitter, name, { signal })`.
///
///
/// # Errors
///
/// The errors of [`once()`]. An `AbortError`, whose source is the reason of the signal, if the
/// signal is aborted first or was aborted before.
///
/// # Cancel safety
///
/// Dropping the future removes its listeners.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter, once_with_signal};
/// use phaseloop_node::AbortController;
///
/// const READY: Event<u32> = Event::new("ready");
///
/// #[phaseloop::main]
/// async fn main() {
///     let (emitter, controller) = (EventEmitter::new(), AbortController::new());
///     let ready = once_with_signal(&emitter, READY, &controller.signal());
///     controller.abort();
///     assert_eq!(ready.await.unwrap_err().name(), "AbortError");
///     assert_eq!(emitter.listener_count(READY), 0);
/// }
/// ```
#[track_caller]
pub fn once_with_signal<A>(
    emitter: &(impl Emitter + ?Sized),
    event: Event<A>,
    signal: &AbortSignal,
) -> Once<A>
where
    A: ToOwned + ?Sized + 'static,
    A::Owned: 'static,
{
    if let Some(reason) = signal.reason() {
        let state = State::default();
        state
            .output
            .replace(Output::Soon(Err(Error::aborted_by(reason))));
        return Once::new(Rc::new(state), event.name(), Location::caller());
    }
    let once = once(emitter, event);
    let (aborted, known) = (Rc::downgrade(&once.state), signal.clone());
    let listener = signal.on_abort(move || {
        if let (Some(state), Some(reason)) = (aborted.upgrade(), known.reason()) {
            state.settle(Err(Error::aborted_by(reason)));
        }
    });
    once.state.abort.replace(Some((signal.clone(), listener)));
    once
}

struct State<T> {
    /// The signal that ends the wait, with its listener.
    abort: RefCell<Option<(AbortSignal, AbortListener)>>,
    emitter: RefCell<Option<super::WeakEmitter>>,
    listeners: RefCell<Vec<ListenerId>>,
    output: RefCell<Output<T>>,
}

enum Output<T> {
    /// Known from the start: ready one microtask after the first poll.
    Soon(Result<T, Error>),
    Waiting(Option<Waker>),
    /// Settled; the first of the two microtasks has not run yet.
    Settled(Result<T, Error>, Option<Waker>),
    Ready(Result<T, Error>),
    Taken,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            abort: RefCell::default(),
            emitter: RefCell::default(),
            listeners: RefCell::default(),
            output: RefCell::new(Output::Waiting(None)),
        }
    }
}

impl<T: 'static> State<T> {
    fn settle(self: &Rc<Self>, result: Result<T, Error>) {
        {
            let mut output = self.output.borrow_mut();
            let Output::Waiting(waker) = &mut *output else {
                return;
            };
            let waker = waker.take();
            *output = Output::Settled(result, waker);
        }
        self.stop_listening();
        match LoopHandle::try_current() {
            Some(handle) => {
                let state = self.clone();
                handle.queue_microtask(move || state.release());
            }
            None => self.release(),
        }
    }
}

impl<T> State<T> {
    fn release(&self) {
        let mut output = self.output.borrow_mut();
        let waker = match std::mem::replace(&mut *output, Output::Taken) {
            Output::Settled(result, waker) => {
                *output = Output::Ready(result);
                waker
            }
            other => {
                *output = other;
                None
            }
        };
        drop(output);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn stop_listening(&self) {
        let abort = self.abort.take();
        if let Some((signal, listener)) = abort {
            signal.off(listener);
        }
        let listeners = self.listeners.take();
        let emitter = self.emitter.borrow().as_ref().and_then(|e| e.upgrade());
        if let Some(emitter) = emitter {
            for listener in listeners {
                emitter.off(listener);
            }
        }
    }
}

/// Waits for an emission of an event; returned by [`once()`].
///
/// # Cancel safety
///
/// Dropping the future removes its listeners.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter, once};
///
/// const READY: Event<u32> = Event::new("ready");
///
/// #[phaseloop::main]
/// async fn main() {
///     let emitter = EventEmitter::new();
///     let ready = once(&emitter, READY);
///     emitter.emit(READY, 7);
///     assert_eq!(ready.await.unwrap(), 7);
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Once<A>
where
    A: ToOwned + ?Sized,
{
    state: Rc<State<A::Owned>>,
    note: WaitNote,
}

impl<A: ToOwned + ?Sized> Once<A> {
    fn new(state: Rc<State<A::Owned>>, event: &'static str, site: Site) -> Self {
        Self {
            state,
            note: WaitNote::new("event", event, Some(site)),
        }
    }
}

impl<A: ToOwned + ?Sized> Future for Once<A> {
    type Output = Result<A::Owned, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // Cloned before the borrow: the clone of a waker may run user code.
        let waker = cx.waker().clone();
        let mut output = this.state.output.borrow_mut();
        let before = match &mut *output {
            Output::Waiting(before) | Output::Settled(_, before) => before.replace(waker),
            Output::Ready(_) => {
                let ready = std::mem::replace(&mut *output, Output::Taken);
                let Output::Ready(result) = ready else {
                    unreachable!("the outer match saw `Ready`")
                };
                drop(output);
                return note_wait(&mut this.note, cx, Poll::Ready(result));
            }
            Output::Soon(_) => {
                if let Output::Soon(result) = std::mem::replace(&mut *output, Output::Taken) {
                    *output = Output::Ready(result);
                }
                drop(output);
                waker.wake();
                return Poll::Pending;
            }
            Output::Taken => panic!("`Once` was polled after it completed"),
        };
        drop(output);
        drop(before);
        note_wait(&mut this.note, cx, Poll::Pending)
    }
}

impl<A: ToOwned + ?Sized> Drop for Once<A> {
    fn drop(&mut self) {
        self.state.stop_listening();
    }
}

impl<A: ToOwned + ?Sized> fmt::Debug for Once<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let output = self.state.output.borrow();
        f.debug_struct("Once")
            .field("waiting", &matches!(*output, Output::Waiting(_)))
            .finish()
    }
}
