//! `AbortController` and `AbortSignal`: one says stop, any number of operations hear it.
//!
//! ```text
//!   AbortController::abort ──> signal aborted, reason set ──> its listeners, in order, inside the call
//!                                                        └──> the signals that `any` has made of it
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use super::delay::Delay;
use super::error::Error;
use super::promise;
use super::timers::{Timeout, set_timeout};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::raw::nesting::drop_flat;

/// Says stop to everything that was given its [`signal`](Self::signal). A clone is the same controller.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{node::AbortController, time::sleep};
///
/// phaseloop::block_on(async {
///     let controller = AbortController::new();
///     let signal = controller.signal();
///     phaseloop::set_immediate(move || controller.abort());
///     let error = signal.guard(sleep(Duration::from_secs(60))).await.unwrap_err();
///     assert_eq!(error.name(), "AbortError");
/// });
/// ```
#[derive(Clone, Debug, Default)]
pub struct AbortController {
    signal: AbortSignal,
}

impl AbortController {
    /// A controller whose signal is not aborted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The signal.
    #[must_use]
    pub fn signal(&self) -> AbortSignal {
        self.signal.clone()
    }

    /// Aborts the signal, with an `AbortError` as the reason; see [`abort_with`](Self::abort_with).
    pub fn abort(&self) {
        self.abort_with(Error::aborted());
    }

    /// Aborts the signal: its listeners are called before this returns, in the order in which they were added (N119).
    /// A second abort does nothing.
    ///
    /// A listener that panics does not keep the others from being called: its panic goes on in a tick, as an uncaught one.
    pub fn abort_with(&self, reason: Error) {
        self.signal.set_aborted(reason);
    }
}

/// Tells whether, and why, what it was given to should stop. A clone is the same signal.
///
/// Given to an operation by [`guard`](Self::guard), or by the operation's own means.
#[derive(Clone, Default)]
pub struct AbortSignal {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    reason: OnceCell<Error>,
    /// By number, which is the order in which they were added.
    listeners: RefCell<BTreeMap<u64, Call>>,
    /// Signals that [`AbortSignal::any`] has made of this one, by number. They are kept by whoever
    /// waits for them.
    dependents: RefCell<BTreeMap<u64, Weak<Self>>>,
    /// The number of the next listener or dependent.
    next_id: Cell<u64>,
    /// For a signal made by `any`: those that it hears, none of which is made by `any`, and its
    /// number there. They need not be kept; a signal without controller says nothing.
    sources: RefCell<Vec<(AbortSignal, u64)>>,
    /// For a signal made by `timeout`.
    timer: RefCell<Option<Timeout>>,
    /// Where such a signal keeps itself while it has listeners: they need not hold it.
    kept: OnceCell<Weak<Keeper>>,
}

/// Belongs to the callback of a timer: what is kept here goes with the loop at the latest.
type Keeper = RefCell<Option<AbortSignal>>;

/// A signal, for those that it may outlive.
pub(super) struct WeakSignal(Weak<Inner>);

impl WeakSignal {
    pub(super) fn upgrade(&self) -> Option<AbortSignal> {
        let inner = self.0.upgrade()?;
        Some(AbortSignal { inner })
    }
}

enum Call {
    Closure(Box<dyn FnOnce()>),
    Wake(Waker),
}

/// Names a listener, for [`AbortSignal::off`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortListener(u64);

impl AbortSignal {
    /// A signal that is aborted already.
    #[must_use]
    pub fn abort(reason: Error) -> Self {
        let signal = Self::default();
        signal.set_aborted(reason);
        signal
    }

    /// A signal that is aborted after `delay`, with a `TimeoutError`.
    ///
    /// The abort happens in the timers phase, in a [`set_timeout`](super::set_timeout) like any other, but one that does
    /// not keep the loop alive (N124). It is cleared when nobody holds the signal any more and nobody listens to it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn timeout(delay: impl Into<Delay>) -> Self {
        let signal = Self::default();
        let weak = signal.downgrade();
        let keeper = Rc::new(Keeper::default());
        let kept = Rc::downgrade(&keeper);
        let timer = set_timeout(delay, move || {
            if let Some(signal) = weak.upgrade() {
                signal.set_aborted(Error::timed_out());
            }
            let signal = keeper.take();
            drop(signal);
        });
        timer.unref();
        signal.inner.kept.get_or_init(|| kept);
        signal.inner.timer.replace(Some(timer));
        signal
    }

    /// A signal that is aborted as soon as one of `signals` is, with its reason; after that one's own listeners.
    ///
    /// Hold it as long as somebody listens to it: the others know it only while it is there.
    #[must_use]
    pub fn any<'a>(signals: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sources = Vec::new();
        for signal in signals {
            if let Some(reason) = signal.reason() {
                return Self::abort(reason);
            }
            signal.add_sources_to(&mut sources);
        }
        let mut known = HashSet::new();
        sources.retain(|source| known.insert(Rc::as_ptr(&source.inner)));
        let either = Self::default();
        let heard = sources.into_iter().map(|source| {
            let id = source.inner.next_id();
            let mut dependents = source.inner.dependents.borrow_mut();
            dependents.insert(id, Rc::downgrade(&either.inner));
            drop(dependents);
            (source, id)
        });
        let heard = heard.collect();
        either.inner.sources.replace(heard);
        either
    }

    /// The signal itself, or the signals that it was made of by `any`. These are made of no others,
    /// so that neither an abort nor a drop goes through a chain of signals.
    fn add_sources_to(&self, found: &mut Vec<Self>) {
        let sources = self.inner.sources.borrow();
        if sources.is_empty() {
            found.push(self.clone());
        } else {
            found.extend(sources.iter().map(|(source, _)| source.clone()));
        }
    }

    /// Whether it was aborted.
    #[must_use]
    pub fn aborted(&self) -> bool {
        self.inner.reason.get().is_some()
    }

    /// Why it was aborted.
    #[must_use]
    pub fn reason(&self) -> Option<Error> {
        self.inner.reason.get().cloned()
    }

    /// For the start of an operation that takes a signal.
    ///
    /// # Errors
    ///
    /// The reason, when the signal was aborted.
    pub fn throw_if_aborted(&self) -> Result<(), Error> {
        self.reason().map_or(Ok(()), Err)
    }

    /// Calls `listener` inside the abort, after those that were added before. Never called, and dropped at once, if the
    /// signal was aborted already.
    pub fn on_abort(&self, listener: impl FnOnce() + 'static) -> AbortListener {
        self.listen(Call::Closure(Box::new(listener)))
    }

    /// Takes a listener off. `false`: it was called, or was taken off before.
    pub fn off(&self, listener: AbortListener) -> bool {
        let removed = {
            let mut listeners = self.inner.listeners.borrow_mut();
            let removed = listeners.remove(&listener.0);
            removed.map(|call| (call, listeners.is_empty()))
        };
        if matches!(removed, Some((_, true))) {
            self.inner.keep(None);
        }
        // The drop of a closure may be anybody's code; nothing is borrowed here.
        removed.is_some()
    }

    /// Waits for the abort, and returns its reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes it off the signal.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            signal: self.clone(),
            listener: None,
        }
    }

    /// Ends `future` when the signal is aborted: any future, such as a sleep, a read from a socket, a job of the pool.
    ///
    /// The abort wakes the task that awaits the guard; the future is dropped when that task is polled, in the drain of the
    /// abort. What was aborted before the first poll is never polled. A future that is ready when the abort is seen has
    /// lost: the abort comes first.
    ///
    /// # Errors
    ///
    /// An `AbortError` whose [source](std::error::Error::source) is the signal's reason.
    ///
    /// # Cancel safety
    ///
    /// That of `future`.
    pub fn guard<F: Future>(&self, future: F) -> Guard<F> {
        Guard {
            future: Some(future),
            cancelled: self.cancelled(),
        }
    }

    fn listen(&self, call: Call) -> AbortListener {
        let id = self.inner.next_id();
        if !self.aborted() {
            self.inner.listeners.borrow_mut().insert(id, call);
            self.inner.keep(Some(self));
        }
        AbortListener(id)
    }

    pub(super) fn downgrade(&self) -> WeakSignal {
        WeakSignal(Rc::downgrade(&self.inner))
    }

    fn set_aborted(&self, reason: Error) {
        if self.inner.reason.set(reason.clone()).is_err() {
            return;
        }
        // One by one: a listener may take off those after it.
        loop {
            let next = self.inner.listeners.borrow_mut().pop_first();
            match next {
                Some((_, Call::Closure(call))) => call_contained(call),
                Some((_, Call::Wake(waker))) => waker.wake(),
                None => break,
            }
        }
        self.inner.timer.take();
        self.inner.leave_sources();
        self.inner.keep(None);
        for dependent in self.inner.dependents.take().into_values() {
            if let Some(inner) = dependent.upgrade() {
                Self { inner }.set_aborted(reason.clone());
            }
        }
    }
}

/// Calls a listener; its panic goes on in a tick of its own, if there is a loop, so that the others are called.
fn call_contained(call: Box<dyn FnOnce()>) {
    let Some(handle) = LoopHandle::try_current() else {
        return call();
    };
    if let Err(reason) = promise::catch(call) {
        handle.next_tick(move || reason.raise());
    }
}

impl Inner {
    /// Keeps the signal, if it is made by `timeout` and its timer is there, or no longer.
    fn keep(&self, signal: Option<&AbortSignal>) {
        if let Some(keeper) = self.kept.get().and_then(Weak::upgrade) {
            let before = keeper.replace(signal.cloned());
            drop(before);
        }
    }

    /// Takes a signal made by `any` off those that it hears.
    fn leave_sources(&self) {
        for (source, id) in self.sources.take() {
            source.inner.dependents.borrow_mut().remove(&id);
        }
    }

    fn next_id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.leave_sources();
        // A listener may hold another signal, and so on.
        let listeners = self.listeners.take();
        if !listeners.is_empty() {
            drop_flat(listeners);
        }
        if let Some(timer) = self.timer.get_mut().take() {
            timer.close();
        }
    }
}

impl fmt::Debug for AbortSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortSignal")
            .field("reason", &self.inner.reason.get())
            .finish_non_exhaustive()
    }
}

/// Waits for an abort. Made by [`AbortSignal::cancelled`].
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    signal: AbortSignal,
    listener: Option<(AbortListener, Waker)>,
}

impl Cancelled {
    fn stop_listening(&mut self) {
        if let Some((listener, _)) = self.listener.take() {
            self.signal.off(listener);
        }
    }
}

impl Future for Cancelled {
    type Output = Error;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        if let Some(reason) = self.signal.reason() {
            return Poll::Ready(reason);
        }
        if !matches!(&self.listener, Some((_, waker)) if waker.will_wake(cx.waker())) {
            self.stop_listening();
            let waker = cx.waker().clone();
            let listener = self.signal.listen(Call::Wake(waker.clone()));
            self.listener = Some((listener, waker));
        }
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

impl fmt::Debug for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancelled").field(&self.signal).finish()
    }
}

pin_project! {
    /// A future that a signal ends. Made by [`AbortSignal::guard`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<F> {
        // `None` once it is over.
        #[pin]
        future: Option<F>,
        cancelled: Cancelled,
    }
}

impl<F: Future> Future for Guard<F> {
    type Output = Result<F::Output, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(reason) = Pin::new(&mut *this.cancelled).poll(cx) {
            this.future.set(None);
            return Poll::Ready(Err(Error::aborted_by(reason)));
        }
        let future = this.future.as_mut().as_pin_mut();
        let output = std::task::ready!(future.expect("not polled after its end").poll(cx));
        this.future.set(None);
        this.cancelled.stop_listening();
        Poll::Ready(Ok(output))
    }
}

#[cfg(test)]
mod tests {
    use super::{AbortController, AbortSignal};

    #[test]
    fn a_signal_made_of_others_leaves_them_when_it_is_dropped_or_aborted() {
        let (long, short) = (AbortController::new(), AbortController::new());
        let dependents = || long.signal().inner.dependents.borrow().len();
        let dropped = AbortSignal::any([&long.signal(), &short.signal()]);
        let aborted = AbortSignal::any([&long.signal(), &short.signal()]);
        assert_eq!(dependents(), 2);
        drop(dropped);
        assert_eq!(dependents(), 1);
        short.abort();
        assert!(aborted.aborted());
        assert_eq!(dependents(), 0);
    }
}
