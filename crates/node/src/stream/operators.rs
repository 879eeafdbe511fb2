//! Operators on readable streams: derived streams, and promises of a result over all chunks.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::base::error_of;
use super::iterate::Chunks;
use super::readable::Readable;
use crate::error::Error;
use crate::promise::{self, Promise, try_call};
use crate::reason::Reason;

/// Operators. An operator takes the stream over with the first read of its result, as
/// [`chunks`](Readable::chunks) does; the stream does not flow from then on. One chunk is processed
/// at a time. An error of the stream, or a panic of the function, is the error of the result.
/// Destroying the result before its end destroys the stream. Dropping a returned promise discards
/// the result; the stream is still read to its end.
impl<T: 'static> Readable<T> {
    /// Returns a stream of the results of `f` for each chunk, in object mode. JavaScript:
    /// `readable.map(f)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::Readable};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let numbers = Readable::from_iter(1..=6);
    ///         let even = numbers.filter(|n| n % 2 == 0).map(|n| n * 10);
    ///         assert_eq!(even.to_array().await.unwrap(), [20, 40, 60]);
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn map<U: 'static>(&self, mut f: impl FnMut(T) -> U + 'static) -> Readable<U> {
        self.operate(move |chunk, out| {
            out.push_back(f(chunk));
            true
        })
    }

    /// Returns a stream of the outputs of the futures that `f` returns, in object mode and in the
    /// order of the chunks. JavaScript: `readable.map(async (chunk) => ..)`.
    #[track_caller]
    pub fn map_async<U, F>(&self, f: impl FnMut(T) -> F + 'static) -> Readable<U>
    where
        U: 'static,
        F: Future<Output = Result<U, Error>> + 'static,
    {
        Readable::from_stream(MapAsync {
            chunks: self.chunks(),
            f,
            current: None,
        })
    }

    /// Returns a stream of the chunks for which `f` returns `true`. JavaScript:
    /// `readable.filter(f)`.
    #[track_caller]
    pub fn filter(&self, mut f: impl FnMut(&T) -> bool + 'static) -> Self {
        self.operate(move |chunk, out| {
            if f(&chunk) {
                out.push_back(chunk);
            }
            true
        })
    }

    /// Returns a stream of all items of the iterators that `f` returns. JavaScript:
    /// `readable.flatMap(f)`.
    #[track_caller]
    pub fn flat_map<U, I>(&self, mut f: impl FnMut(T) -> I + 'static) -> Readable<U>
    where
        U: 'static,
        I: IntoIterator<Item = U>,
    {
        self.operate(move |chunk, out| {
            out.extend(f(chunk));
            true
        })
    }

    /// Returns a stream of the first `count` chunks. JavaScript: `readable.take(count)`.
    #[track_caller]
    pub fn take(&self, count: usize) -> Self {
        let mut left = count;
        self.operate(move |chunk, out| {
            if left > 0 {
                out.push_back(chunk);
                left -= 1;
            }
            left > 0
        })
    }

    /// Returns a stream of the chunks after the first `count`. JavaScript: `readable.drop(count)`.
    #[track_caller]
    pub fn drop(&self, count: usize) -> Self {
        let mut left = count;
        self.operate(move |chunk, out| {
            if left > 0 {
                left -= 1;
            } else {
                out.push_back(chunk);
            }
            true
        })
    }

    #[track_caller]
    fn operate<U, F>(&self, step: F) -> Readable<U>
    where
        U: 'static,
        F: FnMut(T, &mut VecDeque<U>) -> bool + 'static,
    {
        Readable::from_stream(Operated {
            chunks: Some(self.chunks()),
            step,
            ready: VecDeque::new(),
        })
    }

    /// Collects all chunks. JavaScript: `await readable.toArray()`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with the error of the stream.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn to_array(&self) -> Promise<Vec<T>>
    where
        T: Clone,
    {
        self.reduce(Vec::new(), |mut all, chunk| {
            all.push(chunk);
            all
        })
    }

    /// Calls `f` with each chunk. JavaScript: `await readable.forEach(f)`.
    ///
    /// # Errors
    ///
    /// The promise is rejected with the error of the stream, or with the value that `f`
    /// [throws](crate::throw).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn for_each(&self, mut f: impl FnMut(T) + 'static) -> Promise<()> {
        self.reduce((), move |(), chunk| f(chunk))
    }

    /// Folds all chunks into one value, starting with `initial`. JavaScript: `await
    /// readable.reduce(f, initial)`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn reduce<U: Clone + 'static>(
        &self,
        initial: U,
        mut f: impl FnMut(U, T) -> U + 'static,
    ) -> Promise<U> {
        let mut chunks = self.chunks();
        try_call(async move {
            let mut value = initial;
            while let Some(chunk) = next(&mut chunks).await {
                value = f(value, chunk?);
            }
            Ok::<_, Reason>(value)
        })
    }

    /// Returns the first chunk for which `f` returns `true`; later chunks are not read. JavaScript:
    /// `await readable.find(f)`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn find(&self, mut f: impl FnMut(&T) -> bool + 'static) -> Promise<Option<T>>
    where
        T: Clone,
    {
        let mut chunks = self.chunks();
        try_call(async move {
            while let Some(chunk) = next(&mut chunks).await {
                let chunk = chunk?;
                if f(&chunk) {
                    return Ok::<_, Reason>(Some(chunk));
                }
            }
            Ok(None)
        })
    }

    /// Returns whether `f` returns `true` for any chunk. JavaScript: `await readable.some(f)`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn some(&self, mut f: impl FnMut(&T) -> bool + 'static) -> Promise<bool> {
        let mut chunks = self.chunks();
        try_call(async move {
            while let Some(chunk) = next(&mut chunks).await {
                if f(&chunk?) {
                    return Ok::<_, Reason>(true);
                }
            }
            Ok(false)
        })
    }

    /// Returns whether `f` returns `true` for every chunk. JavaScript: `await readable.every(f)`.
    ///
    /// # Errors
    ///
    /// The errors of [`for_each`](Self::for_each).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn every(&self, mut f: impl FnMut(&T) -> bool + 'static) -> Promise<bool> {
        self.some(move |chunk| !f(chunk)).then(|some| !some)
    }
}

async fn next<T: 'static>(chunks: &mut Chunks<T>) -> Option<Result<T, Error>> {
    poll_fn(|cx| Pin::new(&mut *chunks).poll_next(cx)).await
}

/// The stream behind an operator. Its function is called with a chunk and adds any number of items
/// to a queue; it returns `false` to end the stream.
struct Operated<T: 'static, U, F> {
    /// `None` once the function has ended the stream.
    chunks: Option<Chunks<T>>,
    step: F,
    ready: VecDeque<U>,
}

// No field is structurally pinned.
impl<T, U, F> Unpin for Operated<T, U, F> {}

impl<T, U, F: FnMut(T, &mut VecDeque<U>) -> bool> Stream for Operated<T, U, F> {
    type Item = Result<U, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            let Some(chunks) = &mut this.chunks else {
                return Poll::Ready(None);
            };
            let Some(chunk) = ready!(Pin::new(chunks).poll_next(cx)) else {
                return Poll::Ready(None);
            };
            let (step, out) = (&mut this.step, &mut this.ready);
            match promise::catch(|| Ok::<_, Error>(step(chunk?, out))) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => drop(this.chunks.take()),
                Ok(Err(error)) => return Poll::Ready(Some(Err(error))),
                Err(reason) => return Poll::Ready(Some(Err(error_of(&reason)))),
            }
        }
    }
}

/// The stream behind `map_async`: one future at a time.
struct MapAsync<T: 'static, F, M> {
    chunks: Chunks<T>,
    f: M,
    current: Option<Pin<Box<F>>>,
}

impl<T, F, M> Unpin for MapAsync<T, F, M> {}

impl<T, U, F, M> Stream for MapAsync<T, F, M>
where
    F: Future<Output = Result<U, Error>>,
    M: FnMut(T) -> F,
{
    type Item = Result<U, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(future) = &mut this.current {
                let item = ready!(future.as_mut().poll(cx));
                this.current = None;
                return Poll::Ready(Some(item));
            }
            match ready!(Pin::new(&mut this.chunks).poll_next(cx)) {
                Some(Ok(chunk)) => this.current = Some(Box::pin((this.f)(chunk))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}
