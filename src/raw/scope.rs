//! The core of a scope: futures that may borrow from the scope, polled and dropped by it.
//!
//! [`run`] owns the scope and drops its futures before the scope ends, on every way out. A leaked
//! `run` polls them no more: then what they borrow may end, and is not used.
#![allow(
    unsafe_code,
    reason = "the futures of a scope refer to the scope that holds them, which no lifetime can say"
)]

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures::stream::{FuturesUnordered, StreamExt as _};
use pin_project_lite::pin_project;

use super::unwind::Steps;

/// A future of a scope, without its lifetime.
type Child = Pin<Box<dyn Future<Output = ()>>>;

/// Spawns tasks that end before the scope does; see [`scope`](crate::task::scope), which has an
/// example.
pub struct Scope<'scope, 'env: 'scope, E = Infallible> {
    /// `None` before the first future, and while the futures are polled.
    children: RefCell<Option<Children>>,
    /// The futures that were added since.
    added: RefCell<Vec<Child>>,
    /// The futures were dropped, and no other is accepted.
    is_closed: Cell<bool>,
    /// The first error of a future.
    error: Cell<Option<E>>,
    /// The waker of the task that awaits the scope.
    waker: RefCell<Option<Waker>>,
    // Invariant, as in `std::thread::Scope`: if a lifetime could be shortened, a future could
    // borrow what ends before the scope does.
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

/// Runs `body` and the futures of its scope until all are done, or one of them fails.
pub(crate) async fn run<'env, B, T, E>(body: B) -> Result<T, E>
where
    B: for<'scope> AsyncFnOnce(&'scope Scope<'scope, 'env, E>) -> Result<T, E>,
{
    let scope = Scope {
        children: RefCell::default(),
        added: RefCell::default(),
        is_closed: Cell::new(false),
        error: Cell::new(None),
        waker: RefCell::new(None),
        scope: PhantomData,
        env: PhantomData,
    };
    // Declared after `scope`, and so dropped before it: the futures may refer to `scope`.
    let clear = ClearOnDrop(&scope);
    let mut body = pin!(body(clear.0));
    let mut output = None;
    let polled = poll_fn(|cx| {
        scope.set_waker(cx.waker());
        if output.is_none() {
            match body.as_mut().poll(cx) {
                Poll::Ready(Ok(value)) => output = Some(value),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        let are_done = scope.poll_children(cx);
        if let Some(error) = scope.error.take() {
            return Poll::Ready(Err(error));
        }
        match output.take() {
            Some(value) if are_done => Poll::Ready(Ok(value)),
            value => {
                output = value;
                Poll::Pending
            }
        }
    });
    polled.await
}

pin_project! {
    /// A future that is not polled after its scope was closed: one poll of the scope polls several.
    struct Guarded<'a, F> {
        #[pin]
        future: F,
        is_closed: &'a Cell<bool>,
    }
}

impl<F: Future<Output = ()>> Future for Guarded<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.is_closed.get() {
            return Poll::Ready(());
        }
        this.future.poll(cx)
    }
}

/// The futures of a scope, which are dropped in the order in which they were added.
#[derive(Default)]
struct Children(FuturesUnordered<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        // The set itself would drop the newest first, and after a panic of a drop none of the rest.
        let newest_first: Vec<_> = std::mem::take(&mut self.0).into_iter().collect();
        let mut steps = Steps::default();
        steps.drop_each(newest_first.into_iter().rev());
        steps.end();
    }
}

/// Drops the futures of a scope.
struct ClearOnDrop<'a, 'scope, 'env, E>(&'a Scope<'scope, 'env, E>);

impl<E> Drop for ClearOnDrop<'_, '_, '_, E> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl<'scope, E> Scope<'scope, '_, E> {
    /// Adds a future, or drops it if the scope accepts none any more.
    pub(crate) fn push(&'scope self, future: impl Future<Output = ()> + 'scope) {
        let is_closed = &self.is_closed;
        let future: Pin<Box<dyn Future<Output = ()> + 'scope>> =
            Box::pin(Guarded { future, is_closed });
        if self.is_closed.get() {
            return;
        }
        // SAFETY: only the lifetime changes. `run` is the only place that creates a scope, and its
        // guard drops the future before the scope, and with it `'scope`, ends. If `run` is leaked,
        // the future is neither polled nor dropped any more.
        let future = unsafe {
            std::mem::transmute::<Pin<Box<dyn Future<Output = ()> + 'scope>>, Child>(future)
        };
        self.added.borrow_mut().push(future);
        self.wake();
    }
}

impl<E> Scope<'_, '_, E> {
    /// Drops all futures and refuses further ones. Called by one of the futures, it drops them when
    /// that future has returned.
    pub(crate) fn clear(&self) {
        self.is_closed.set(true);
        // Taken out first: the drop of a future may use the scope.
        let (children, added) = (self.children.take(), self.added.take());
        let mut steps = Steps::default();
        steps.run(|| drop(children));
        steps.drop_each(added);
        steps.run(|| self.wake());
        steps.end();
    }

    /// Ends the scope with an error, unless it has one.
    pub(crate) fn fail(&self, error: E) {
        let first = self.error.take().unwrap_or(error);
        self.error.set(Some(first));
        self.clear();
    }

    /// Polls the futures that were woken or added, until all wait. Returns whether none is left.
    // A panic drops `children`, and so all futures.
    fn poll_children(&self, cx: &mut Context<'_>) -> bool {
        loop {
            let mut children = self.children.take().unwrap_or_default();
            children.0.extend(self.added.take());
            let are_done = loop {
                match children.0.poll_next_unpin(cx) {
                    // `clear` was called by a future: it found no children, and left a mark.
                    _ if self.is_closed.get() => return true,
                    Poll::Ready(Some(())) => {}
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                }
            };
            *self.children.borrow_mut() = Some(children);
            if self.added.borrow().is_empty() {
                return are_done;
            }
        }
    }

    fn set_waker(&self, waker: &Waker) {
        let is_known = matches!(&*self.waker.borrow(), Some(known) if known.will_wake(waker));
        if !is_known {
            // The clone and the drop of a waker may be user code: neither runs under the borrow.
            let waker = Some(waker.clone());
            let before = self.waker.replace(waker);
            drop(before);
        }
    }

    /// Makes the scope poll a new future, or notice its end.
    fn wake(&self) {
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
