//! Timers and immediates as promises: Node's `timers/promises`.
//!
//! ```
//! use phaseloop_node::{Exit, run, timers::promises::{set_immediate, sleep}};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         sleep(2).await.unwrap();
//!         set_immediate("later").await.unwrap();
//!         println!("two milliseconds and a check phase later");
//!     })
//! }
//! ```
//!
//! They start with the call, not with the first poll, and continue even if their promise is not
//! awaited or is dropped. An [`AbortSignal`] cancels them. In plain Rust:
//! [`sleep`](phaseloop::time::sleep), [`interval`](phaseloop::time::interval) and
//! [`yield_now_immediate`](phaseloop::task::yield_now_immediate), which are cancelled when they are
//! dropped.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::timeout::{Callback, Kind, Timeout};
use crate::abort::{AbortListener, AbortSignal};
use crate::delay::Delay;
use crate::error::Error;
use crate::promise::{Deferred, Promise};
use crate::site::Site;
use phaseloop::extension::Call;
use phaseloop::extension::{WaitNote, note_wait};
use phaseloop::task;

/// Options of the functions of this module.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortController, run, timers::promises::{Options, set_timeout_with}};
///
/// fn main() {
///     run(async {
///         let controller = AbortController::new();
///         let options = Options::new().signal(&controller.signal());
///         let sleep = set_timeout_with(60_000, (), &options);
///         controller.abort();
///         assert_eq!(sleep.await.unwrap_err().to_string(), "The operation was aborted");
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    signal: Option<AbortSignal>,
    unref: bool,
}

impl Options {
    /// Creates the default options: no signal, and the timer keeps the loop alive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the wait when `signal` is aborted.
    pub fn signal(mut self, signal: &AbortSignal) -> Self {
        self.signal = Some(signal.clone());
        self
    }

    /// Stops the wait from keeping the loop alive.
    pub fn unref(mut self) -> Self {
        self.unref = true;
        self
    }
}

/// Returns a promise that is fulfilled with `value` after `delay`.
///
/// The timer is an ordinary one in the timers phase. A task that awaits the promise resumes in the
/// drain after it, before the next timer of the same duration.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn set_timeout<T: Clone + 'static>(delay: impl Into<Delay>, value: T) -> Promise<T> {
    set_timeout_with(delay, value, &Options::default())
}

/// Returns a promise that is fulfilled after `delay`: [`set_timeout`] without a value.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, sleep};
///
/// fn main() -> Exit<()> {
///     run(async {
///         sleep(10).await.unwrap();
///         println!("ten milliseconds later");
///     })
/// }
/// ```
#[track_caller]
pub fn sleep(delay: impl Into<Delay>) -> Promise<()> {
    set_timeout(delay, ())
}

/// Returns a promise that is fulfilled with `value` after `delay`, with options. With a signal, a
/// task that awaits it resumes five microtasks later than without, as in Node.
///
/// An abort clears the timer and rejects the promise with an `AbortError`, before the call that
/// aborts returns.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn set_timeout_with<T: Clone + 'static>(
    delay: impl Into<Delay>,
    value: T,
    options: &Options,
) -> Promise<T> {
    let (delay, site) = (delay.into(), Location::caller());
    promise(options, |deferred| {
        let fire = Callback::once(Call::new(move || deferred.resolve(value)));
        let timer = Timeout::start(fire, Kind::Once, delay, site);
        if options.unref {
            timer.unref();
        }
        move || {
            timer.close();
        }
    })
}

/// Returns a promise that is fulfilled with `value` in the next check phase.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{run, timers::promises::set_immediate};
///
/// fn main() {
///     run(async { assert_eq!(set_immediate(7).await.unwrap(), 7) });
/// }
/// ```
pub fn set_immediate<T: Clone + 'static>(value: T) -> Promise<T> {
    set_immediate_with(value, &Options::default())
}

/// Returns a promise that is fulfilled with `value` in the next check phase, with options; see
/// [`set_timeout_with`].
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn set_immediate_with<T: Clone + 'static>(value: T, options: &Options) -> Promise<T> {
    promise(options, |deferred| {
        let immediate = task::set_immediate(move || deferred.resolve(value));
        if options.unref {
            immediate.unref();
        }
        move || {
            immediate.clear();
        }
    })
}

/// Returns the promise of the operation that `start` begins. `start` returns the function that
/// cancels the operation.
fn promise<T, C>(options: &Options, start: impl FnOnce(Deferred<T>) -> C) -> Promise<T>
where
    T: Clone + 'static,
    C: FnOnce() + 'static,
{
    let Some(signal) = &options.signal else {
        let deferred = Deferred::new();
        start(deferred.clone());
        return deferred.promise();
    };
    if let Some(reason) = signal.reason() {
        return Promise::rejected(Error::aborted_by(reason));
    }
    let deferred = Deferred::new();
    let clear = start(deferred.clone());
    let (rejected, aborted) = (deferred.clone(), signal.clone());
    let listener = signal.on_abort(move || {
        clear();
        if let Some(reason) = aborted.reason() {
            rejected.reject(Error::aborted_by(reason));
        }
    });
    let signal = signal.clone();
    // Node's own code has these links of `then` and `finally`. Each link costs microtasks, so their
    // number must match.
    deferred
        .promise()
        .then(|value| value)
        .finally(move || {
            signal.off(listener);
        })
        .then(|value| value)
}

/// Returns a stream that yields `value` every `delay`.
///
/// The first poll starts the timer. Firings before the stream is polled are counted, and the next
/// polls yield them without a wait. The stream never ends, unless its signal is aborted.
///
/// # Cancel safety
///
/// Dropping the stream stops the timer.
///
/// # Examples
///
/// ```
/// use phaseloop::stream::StreamExt;
/// use phaseloop_node::{run, timers::promises::set_interval};
///
/// fn main() {
///     run(async {
///         let mut ticks = set_interval(1, "tick").take(3);
///         while let Some(tick) = ticks.next().await {
///             println!("{}", tick.unwrap());
///         }
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[track_caller]
pub fn set_interval<T: Clone>(delay: impl Into<Delay>, value: T) -> Interval<T> {
    set_interval_with(delay, value, &Options::default())
}

/// Returns a stream that yields `value` every `delay`, with options; see [`set_interval`].
///
/// After an abort, the stream yields the counted firings, then an `AbortError` as its last item.
///
/// # Cancel safety
///
/// Dropping the stream stops the timer.
#[track_caller]
pub fn set_interval_with<T: Clone>(
    delay: impl Into<Delay>,
    value: T,
    options: &Options,
) -> Interval<T> {
    Interval {
        delay: delay.into(),
        value,
        options: options.clone(),
        site: Location::caller(),
        started: None,
        state: Rc::default(),
        over: false,
        note: WaitNote::new("interval", "", Some(Location::caller())),
    }
}

/// A stream that yields a value at regular intervals, returned by [`set_interval`].
///
/// # Cancel safety
///
/// Dropping the stream stops the timer. A dropped `next` loses no firing: the next poll yields it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortSignal, run};
/// use phaseloop_node::timers::promises::{Interval, Options, set_interval_with};
/// use phaseloop::stream::StreamExt as _;
///
/// fn main() {
///     run(async {
///         let options = Options::new().signal(&AbortSignal::timeout(10));
///         let mut beats: Interval<&str> = set_interval_with(2, "beat", &options);
///         while let Some(Ok(beat)) = beats.next().await {
///             println!("{beat}");
///         }
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Interval<T> {
    delay: Delay,
    value: T,
    options: Options,
    /// The caller that created the stream.
    site: Site,
    started: Option<(Timeout, Option<AbortListener>)>,
    state: Rc<State>,
    /// Whether the last item was yielded.
    over: bool,
    note: WaitNote,
}

#[derive(Default)]
struct State {
    /// The number of firings that were not yielded yet.
    not_yielded: Cell<u32>,
    /// The waker of the task that waits for the next item.
    waiting: RefCell<Option<Waker>>,
    /// How far the requested item has come through the microtask lane.
    passage: Cell<Passage>,
}

/// The way of an item to the consumer. As with an async generator of JavaScript, it takes two
/// microtasks.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Passage {
    #[default]
    Idle,
    Under,
    Arrived,
}

impl State {
    /// Starts the way of an item if the consumer waits: the timer has fired, or the signal was
    /// aborted.
    fn fire(self: &Rc<Self>) {
        if self.waiting.borrow().is_some() && self.passage.get() == Passage::Idle {
            self.passage.set(Passage::Under);
            let state = self.clone();
            task::queue_microtask(move || state.pass());
        }
    }

    /// Queues the second microtask, which wakes the consumer.
    fn pass(self: &Rc<Self>) {
        self.passage.set(Passage::Under);
        let state = self.clone();
        task::queue_microtask(move || {
            state.passage.set(Passage::Arrived);
            let waiting = state.waiting.take();
            if let Some(waker) = waiting {
                waker.wake();
            }
        });
    }
}

impl<T> Interval<T> {
    fn start(&mut self) {
        let state = self.state.clone();
        let fire = move |_: &Timeout| {
            state.not_yielded.set(state.not_yielded.get() + 1);
            state.fire();
        };
        let fire = Callback::again(fire);
        let timer = Timeout::start(fire, Kind::Interval, self.delay, self.site);
        if self.options.unref {
            timer.unref();
        }
        let listener = self.options.signal.as_ref().map(|signal| {
            let (timer, state) = (timer.clone(), self.state.clone());
            signal.on_abort(move || {
                timer.close();
                state.fire();
            })
        });
        self.started = Some((timer, listener));
    }

    fn stop(&mut self) {
        if let Some((timer, listener)) = self.started.take() {
            timer.close();
            if let (Some(signal), Some(listener)) = (&self.options.signal, listener) {
                signal.off(listener);
            }
        }
    }

    fn aborted(&self) -> Option<Error> {
        let signal = self.options.signal.as_ref()?;
        signal.reason().map(Error::aborted_by)
    }
}

impl<T: Clone + Unpin> Stream for Interval<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.poll_firing(cx);
        note_wait(&mut self.note, cx, polled)
    }
}

impl<T: Clone> Interval<T> {
    fn poll_firing(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, Error>>> {
        let this = self;
        if this.over {
            return Poll::Ready(None);
        }
        if this.started.is_none() && this.aborted().is_none() {
            this.start();
        }
        let ready = this.state.not_yielded.get() > 0 || this.aborted().is_some();
        if this.state.passage.get() == Passage::Arrived {
            this.state.passage.set(Passage::Idle);
            if this.state.not_yielded.get() > 0 {
                this.state.not_yielded.set(this.state.not_yielded.get() - 1);
                return Poll::Ready(Some(Ok(this.value.clone())));
            }
            if let Some(error) = this.aborted() {
                this.over = true;
                this.stop();
                return Poll::Ready(Some(Err(error)));
            }
        }
        let before = this.state.waiting.replace(Some(cx.waker().clone()));
        drop(before);
        if ready && this.state.passage.get() == Passage::Idle {
            this.state.pass();
        }
        Poll::Pending
    }
}

impl<T> Drop for Interval<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T> fmt::Debug for Interval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("delay", &self.delay)
            .field("not_yielded", &self.state.not_yielded.get())
            .finish_non_exhaustive()
    }
}

/// Node's `scheduler`: `yield` and `wait`.
///
/// ```
/// use phaseloop_node::{Exit, run, timers::promises::scheduler};
///
/// fn main() -> Exit<()> {
///     run(async {
///         scheduler::wait(1).await.unwrap();
///         scheduler::yield_now().await.unwrap();
///     })
/// }
/// ```
pub mod scheduler {
    use super::{Delay, Options, Promise};

    /// Yields to the rest of the turn, until the next check phase; see
    /// [`set_immediate`](super::set_immediate).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn yield_now() -> Promise<()> {
        super::set_immediate(())
    }

    /// Waits for `delay`; see [`set_timeout`](super::set_timeout).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn wait(delay: impl Into<Delay>) -> Promise<()> {
        super::set_timeout(delay, ())
    }

    /// Waits for `delay`, with options; see [`set_timeout_with`](super::set_timeout_with).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn wait_with(delay: impl Into<Delay>, options: &Options) -> Promise<()> {
        super::set_timeout_with(delay, (), options)
    }
}
