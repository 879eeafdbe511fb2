//! `AbortController` and `AbortSignal`: a controller cancels any number of operations through its
//! signal.
//!
//! ```text
//!   AbortController::abort ──> signal aborted ──> its listeners, in order, inside the call
//!                                            └──> the signals that `any` has derived from it
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use super::delay::Delay;
use super::error::Error;
use super::promise;
use super::timers::{Timeout, set_timeout};
use phaseloop::LoopHandle;
use phaseloop::extension::drop_flat;
use phaseloop::extension::{WaitNote, note_wait};

/// Cancels all operations that received its [`signal`](Self::signal). Clones refer to the same
/// controller.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::sleep;
/// use phaseloop_node::AbortController;
///
/// #[phaseloop::main]
/// async fn main() {
///     let controller = AbortController::new();
///     let signal = controller.signal();
///     phaseloop::set_immediate(move || controller.abort());
///     let error = signal.guard(sleep(Duration::from_secs(60))).await.unwrap_err();
///     assert_eq!(error.name(), "AbortError");
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct AbortController {
    signal: AbortSignal,
}

impl AbortController {
    /// Creates a controller whose signal is not aborted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the signal.
    #[must_use]
    pub fn signal(&self) -> AbortSignal {
        self.signal.clone()
    }

    /// Aborts the signal, with an `AbortError` as the reason; see [`abort_with`](Self::abort_with).
    pub fn abort(&self) {
        self.abort_with(Error::aborted());
    }

    /// Aborts the signal: its listeners are called before this returns, in the order in which they
    /// were added. A second abort does nothing.
    ///
    /// If a listener panics, the others are still called. Its panic resumes in a tick, as an
    /// uncaught exception.
    pub fn abort_with(&self, reason: Error) {
        self.signal.set_aborted(reason);
    }
}

/// Notifies an operation that it should stop, and for which reason. Clones refer to the same
/// signal.
///
/// [`guard`](Self::guard) applies it to any future. Operations with a signal among their options
/// take it directly.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortSignal, Error, run, set_timeout};
///
/// fn main() {
///     run(async {
///         let signal = AbortSignal::timeout(1);
///         assert!(signal.throw_if_aborted().is_ok());
///         signal.on_abort(|| println!("too late"));
///         set_timeout(20, || ()); // a signal does not keep the loop alive
///         assert_eq!(signal.cancelled().await.name(), "TimeoutError");
///         assert!(AbortSignal::abort(Error::new("stop")).aborted());
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[derive(Clone, Default)]
pub struct AbortSignal {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    reason: OnceCell<Error>,
    /// The listeners by id. Ids are in the order in which the listeners were added.
    listeners: RefCell<BTreeMap<u64, Call>>,
    /// The signals that [`AbortSignal::any`] has derived from this one, by id. The references are
    /// weak: only user code keeps a derived signal alive.
    dependents: RefCell<BTreeMap<u64, Weak<Self>>>,
    /// The id of the next listener or dependent.
    next_id: Cell<u64>,
    /// For a signal of `any`: its sources, none of which is itself a signal of `any`, and its id in
    /// each.
    sources: RefCell<Vec<(AbortSignal, u64)>>,
    /// The timer of a signal of `timeout`.
    timer: RefCell<Option<Timeout>>,
    /// Keeps a signal of `timeout` alive while it has listeners, so that they need not hold it.
    kept: OnceCell<Weak<Keeper>>,
}

/// A cell owned by the callback of a timer, so that its content is dropped with the loop at the
/// latest.
type Keeper = RefCell<Option<AbortSignal>>;

/// A weak reference to a signal.
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

/// Identifies a listener, for [`AbortSignal::off`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::AbortController;
///
/// fn main() {
///     let controller = AbortController::new();
///     let listener = controller.signal().on_abort(|| unreachable!());
///     assert!(controller.signal().off(listener));
///     controller.abort();
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortListener(u64);

impl AbortSignal {
    /// Creates a signal that is already aborted.
    #[must_use]
    pub fn abort(reason: Error) -> Self {
        let signal = Self::default();
        signal.set_aborted(reason);
        signal
    }

    /// Creates a signal that is aborted after `delay`, with a `TimeoutError`.
    ///
    /// A [`set_timeout`](super::set_timeout) that does not keep the loop alive aborts it, in the
    /// timers phase. The timer is cleared when the signal has no handle and no listener any more.
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

    /// Creates a signal that is aborted as soon as one of `signals` is, with its reason. The
    /// listeners of that one are called first.
    ///
    /// Keep the returned signal alive as long as its listeners are needed: `signals` hold weak
    /// references to it.
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
        let listened = sources.into_iter().map(|source| {
            let id = source.inner.next_id();
            let mut dependents = source.inner.dependents.borrow_mut();
            dependents.insert(id, Rc::downgrade(&either.inner));
            drop(dependents);
            (source, id)
        });
        let listened = listened.collect();
        either.inner.sources.replace(listened);
        either
    }

    /// Adds the signal itself, or the sources of a signal of `any`. Sources have no sources of
    /// their own, so that neither an abort nor a drop recurses through a chain of signals.
    fn add_sources_to(&self, found: &mut Vec<Self>) {
        let sources = self.inner.sources.borrow();
        if sources.is_empty() {
            found.push(self.clone());
        } else {
            found.extend(sources.iter().map(|(source, _)| source.clone()));
        }
    }

    /// Returns whether the signal was aborted.
    #[must_use]
    pub fn aborted(&self) -> bool {
        self.inner.reason.get().is_some()
    }

    /// The reason of the abort, if the signal was aborted.
    #[must_use]
    pub fn reason(&self) -> Option<Error> {
        self.inner.reason.get().cloned()
    }

    /// Returns the reason as an error if the signal was aborted, for the start of an operation that
    /// takes a signal.
    ///
    /// # Errors
    ///
    /// The reason, if the signal was aborted.
    pub fn throw_if_aborted(&self) -> Result<(), Error> {
        self.reason().map_or(Ok(()), Err)
    }

    /// Calls `listener` inside the abort, after the listeners that were added before. If the signal
    /// was already aborted, `listener` is dropped at once and never called.
    pub fn on_abort(&self, listener: impl FnOnce() + 'static) -> AbortListener {
        self.listen(Call::Closure(Box::new(listener)))
    }

    /// Removes a listener. `false`: it was called, or was removed before.
    pub fn off(&self, listener: AbortListener) -> bool {
        let removed = {
            let mut listeners = self.inner.listeners.borrow_mut();
            let removed = listeners.remove(&listener.0);
            removed.map(|call| (call, listeners.is_empty()))
        };
        if matches!(removed, Some((_, true))) {
            self.inner.keep(None);
        }
        // Dropping the closure may run user code. Nothing is borrowed here.
        removed.is_some()
    }

    /// Waits for the abort and returns its reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future removes it from the signal. Nothing is lost.
    #[track_caller]
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            signal: self.clone(),
            listener: None,
            note: WaitNote::new("abort signal", "", Some(Location::caller())),
        }
    }

    /// Cancels `future` when the signal is aborted. It may be any future, such as a sleep, a read
    /// from a socket or a pool job.
    ///
    /// The abort wakes the task that awaits the guard. The future is dropped when that task is
    /// polled, in the drain after the abort. If the signal is aborted before the first poll, the
    /// future is never polled. The abort wins against a future that has become ready meanwhile.
    ///
    /// # Errors
    ///
    /// An `AbortError` whose [source](std::error::Error::source) is the signal's reason.
    ///
    /// # Cancel safety
    ///
    /// The cancel safety of `future` applies.
    #[track_caller]
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
        // The listeners are removed one by one, since a listener may remove those after it.
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

/// Calls a listener. If a loop runs, a panic of the listener resumes in a tick, so that the other
/// listeners are called.
fn call_contained(call: Box<dyn FnOnce()>) {
    let Some(handle) = LoopHandle::try_current() else {
        return call();
    };
    if let Err(reason) = promise::catch(call) {
        handle.next_tick(move || reason.raise());
    }
}

impl Inner {
    /// Keeps a signal of `timeout` alive while its timer is armed; `None` releases it.
    fn keep(&self, signal: Option<&AbortSignal>) {
        if let Some(keeper) = self.kept.get().and_then(Weak::upgrade) {
            let before = keeper.replace(signal.cloned());
            drop(before);
        }
    }

    /// Removes a signal of `any` from its sources.
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
        // A listener may hold another signal, and so on: a long chain must not overflow the stack.
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

/// The future of an abort, returned by [`AbortSignal::cancelled`].
///
/// # Cancel safety
///
/// Dropping the future removes it from the signal. Nothing is lost.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortController, run, set_timeout};
///
/// fn main() {
///     run(async {
///         let controller = AbortController::new();
///         let signal = controller.signal();
///         set_timeout(1, move || controller.abort());
///         assert_eq!(signal.cancelled().await.name(), "AbortError");
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    signal: AbortSignal,
    listener: Option<(AbortListener, Waker)>,
    note: WaitNote,
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
            return note_wait(&mut self.note, cx, Poll::Ready(reason));
        }
        if !matches!(&self.listener, Some((_, waker)) if waker.will_wake(cx.waker())) {
            self.stop_listening();
            let waker = cx.waker().clone();
            let listener = self.signal.listen(Call::Wake(waker.clone()));
            self.listener = Some((listener, waker));
        }
        note_wait(&mut self.note, cx, Poll::Pending)
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
    /// A future that a signal cancels, returned by [`AbortSignal::guard`].
    ///
    /// # Cancel safety
    ///
    /// The cancel safety of the inner future applies: dropping the guard drops it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::{pending, ready};
    /// use phaseloop_node::{AbortController, run};
    ///
    /// fn main() {
    ///     run(async {
    ///         let controller = AbortController::new();
    ///         let signal = controller.signal();
    ///         assert_eq!(signal.guard(ready(1)).await.unwrap(), 1);
    ///         let never = signal.guard(pending::<()>());
    ///         controller.abort();
    ///         assert_eq!(never.await.unwrap_err().code(), Some("ABORT_ERR"));
    ///     })
    ///     .into_output()
    ///     .unwrap();
    /// }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<F> {
        // `None` once the guard has completed.
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
        let output = std::task::ready!(
            future
                .expect("a completed guard is not polled again")
                .poll(cx)
        );
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
