//! Async generators: functions that yield values one by one, with the microtasks of JavaScript.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::error::Error;
use super::promise::catch;
use phaseloop::extension::hop;
use phaseloop::task::queue_microtask;

/// Creates an async generator: a stream of the values that `body` yields. JavaScript: `async
/// function* ()`.
///
/// The body does not run before the first value is requested. A request runs it at once, inside the
/// call, up to its next `yield`; so it is never more than one value ahead. A value arrives two
/// microtasks after its `yield`, the end and an error one microtask after the body has returned, as
/// in JavaScript. A plain stream of the crate `futures` takes none.
///
/// Dropping the generator drops the body where it stands: destructors are its `finally`. A panic of
/// the body, and [`throw`](super::throw), is the last item, as an error.
///
/// # Cancel safety
///
/// Dropping a pending wait for the next value loses no value.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, async_generator, run, timers::promises::sleep};
/// use phaseloop::stream::StreamExt;
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut countdown = async_generator(|out| async move {
///             for n in (1..=3).rev() {
///                 sleep(1).await?;
///                 out.yield_value(n).await;
///             }
///             Ok(())
///         });
///         let mut seen = Vec::new();
///         while let Some(n) = countdown.next().await {
///             seen.push(n.unwrap());
///         }
///         assert_eq!(seen, [3, 2, 1]);
///     })
/// }
/// ```
// N20.
pub fn async_generator<T, F>(body: impl FnOnce(Yielder<T>) -> F) -> AsyncGenerator<T>
where
    T: 'static,
    F: Future<Output = Result<(), Error>> + 'static,
{
    let shared = Rc::new(Shared {
        value: RefCell::new(None),
        is_resumed: Cell::new(false),
        arrived: RefCell::new(None),
        waker: RefCell::new(None),
    });
    let body = body(Yielder {
        shared: shared.clone(),
    });
    AsyncGenerator {
        body: Some(Box::pin(body)),
        step: Step::Idle,
        shared,
    }
}

/// Passes values from the body of an [`async_generator`] to its reader.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, Exit, Yielder, async_generator, run};
/// use phaseloop::stream::StreamExt;
///
/// async fn letters(out: Yielder<char>) -> Result<(), Error> {
///     for letter in 'a'..='c' {
///         out.yield_value(letter).await;
///     }
///     Ok(())
/// }
///
/// fn main() -> Exit<()> {
///     run(async {
///         let all: Vec<_> = async_generator(letters).map(Result::unwrap).collect().await;
///         assert_eq!(all, ['a', 'b', 'c']);
///     })
/// }
/// ```
pub struct Yielder<T: 'static> {
    shared: Rc<Shared<T>>,
}

impl<T: 'static> Yielder<T> {
    /// Yields a value, and waits until the next one is requested. JavaScript: `yield value`.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a value whose future was polled is delivered, also if the future is
    /// dropped.
    pub async fn yield_value(&self, value: T) {
        let mut value = Some(value);
        std::future::poll_fn(|_| {
            if let Some(value) = value.take() {
                self.shared.is_resumed.set(false);
                self.shared.value.replace(Some(value));
                return Poll::Pending;
            }
            match self.shared.is_resumed.replace(false) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

impl<T: 'static> fmt::Debug for Yielder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yielder")
    }
}

/// The values of an async generator; returned by [`async_generator`].
///
/// # Cancel safety
///
/// Dropping a pending wait for the next value loses no value. Dropping the generator drops its
/// body.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AsyncGenerator, Exit, async_generator, run, stream::Readable};
///
/// fn two() -> AsyncGenerator<u32> {
///     async_generator(|out| async move {
///         out.yield_value(1).await;
///         out.yield_value(2).await;
///         Ok(())
///     })
/// }
///
/// fn main() -> Exit<()> {
///     run(async {
///         let readable = Readable::from_stream(two());
///         assert_eq!(readable.to_array().await.unwrap(), [1, 2]);
///     })
/// }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct AsyncGenerator<T: 'static> {
    /// `None` once the body has returned.
    body: Option<Body>,
    step: Step,
    shared: Rc<Shared<T>>,
}

type Body = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// No value is requested.
    Idle,
    /// A value is requested and the body runs or waits.
    Running,
    /// The body has yielded or returned; microtasks are queued.
    Moving,
    /// The end or an error was delivered.
    Over,
}

struct Shared<T> {
    /// The value that the body has just yielded.
    value: RefCell<Option<T>>,
    /// Whether the next value was requested after the last yield.
    is_resumed: Cell<bool>,
    /// The item for the next poll.
    arrived: RefCell<Option<Option<Result<T, Error>>>>,
    waker: RefCell<Option<Waker>>,
}

impl<T: 'static> AsyncGenerator<T> {
    /// Runs the body until it yields, returns or waits.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let Some(body) = &mut self.body else { return };
        let polled = match catch(|| body.as_mut().poll(cx)) {
            Ok(polled) => polled,
            Err(reason) => Poll::Ready(Err(reason.into())),
        };
        let value = self.shared.value.take();
        match (polled, value) {
            (Poll::Ready(result), _) => {
                self.body = None;
                let item = result.err().map(Err);
                self.shared.arrived.replace(Some(item));
                self.step = Step::Moving;
                hop(cx.waker());
            }
            (Poll::Pending, Some(value)) => {
                self.step = Step::Moving;
                let shared = self.shared.clone();
                queue_microtask(move || shared.arrive(value));
                self.set_waker(cx);
            }
            (Poll::Pending, None) => {}
        }
    }

    fn set_waker(&self, cx: &Context<'_>) {
        let before = self.shared.waker.replace(Some(cx.waker().clone()));
        drop(before);
    }
}

impl<T: 'static> Shared<T> {
    /// Lets the reader's request end: a `yield` has awaited its value.
    fn arrive(&self, value: T) {
        self.arrived.replace(Some(Some(Ok(value))));
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T: 'static> Stream for AsyncGenerator<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.step {
            Step::Over => return Poll::Ready(None),
            Step::Moving => match this.shared.arrived.take() {
                Some(item) => {
                    let is_value = matches!(item, Some(Ok(_)));
                    this.step = if is_value { Step::Idle } else { Step::Over };
                    return Poll::Ready(item);
                }
                None => this.set_waker(cx),
            },
            Step::Idle | Step::Running => {
                if this.step == Step::Idle {
                    this.step = Step::Running;
                    this.shared.is_resumed.set(true);
                }
                this.advance(cx);
            }
        }
        Poll::Pending
    }
}

impl<T: 'static> fmt::Debug for AsyncGenerator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncGenerator")
            .field("over", &(self.step == Step::Over))
            .finish_non_exhaustive()
    }
}
