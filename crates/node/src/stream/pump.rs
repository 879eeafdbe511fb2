//! Functions in a chain of streams: async generators, and an async function at the end.
//!
//! ```text
//!   source ──> generator ──> pump ── write ──> sink
//!                              └── full: wait for 'drain'
//! ```

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use futures::{Stream, StreamExt as _};

use super::DRAIN;
use super::finished::sealed::Sealed as _;
use super::finished::{EndOfStream, Sides};
use super::iterate::Chunks;
use super::pipeline::{AsDuplex, Pipeline, PipelineEnd, Row};
use super::writable::Writable;
use crate::error::Error;
use crate::events::{Emitter as _, ListenerId};
use crate::promise::{Deferred, Promise, call, try_call};
use phaseloop::task::next_tick;

/// Starts a chain with the items of a `futures` stream, such as an [async
/// generator](crate::async_generator); see [`pipeline`](super::pipeline()). JavaScript:
/// `pipeline(async function* () { .. }, ..)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, async_generator, run, stream::{Writable, pipeline_from}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let numbers = async_generator(|out| async move {
///             out.yield_value(1).await;
///             out.yield_value(2).await;
///             Ok(())
///         });
///         let sink = Writable::objects(|_: i32, done| done.ok()).build();
///         pipeline_from(numbers).into(&sink).await.unwrap();
///     })
/// }
/// ```
pub fn pipeline_from<T, E, S>(items: S) -> GeneratorPipeline<S>
where
    S: Stream<Item = Result<T, E>> + 'static,
    E: Into<Error>,
{
    GeneratorPipeline {
        items,
        row: Rc::default(),
    }
}

impl<T: 'static> Pipeline<T> {
    /// Appends a function that gets the chunks so far and returns a stream of other chunks, such as
    /// an [async generator](crate::async_generator). JavaScript: `pipeline(source, async
    /// function* (source) { .. }, ..)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, async_generator, run, stream::{Readable, Writable, pipeline}};
    /// use phaseloop::stream::StreamExt;
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let sink = Writable::objects(|n: i32, done| {
    ///             assert!(n % 10 == 0);
    ///             done.ok();
    ///         })
    ///         .build();
    ///         pipeline(&Readable::from_iter([1, 2]))
    ///             .generator(|mut source| {
    ///                 async_generator(|out| async move {
    ///                     while let Some(n) = source.next().await {
    ///                         out.yield_value(n? * 10).await;
    ///                     }
    ///                     Ok(())
    ///                 })
    ///             })
    ///             .into(&sink)
    ///             .await
    ///             .unwrap();
    ///     })
    /// }
    /// ```
    pub fn generator<U, E, S>(self, function: impl FnOnce(Chunks<T>) -> S) -> GeneratorPipeline<S>
    where
        S: Stream<Item = Result<U, E>> + 'static,
        E: Into<Error>,
    {
        GeneratorPipeline {
            items: function(self.last.chunks()),
            row: self.row,
        }
    }

    /// Ends the chain with an async function that gets the chunks; its value is the value of the
    /// chain. JavaScript: `await pipeline(source, async (source) => { .. })`.
    ///
    /// # Errors
    ///
    /// The error of a stream of the chain, or of the function.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::{Readable, pipeline}};
    /// use phaseloop::stream::StreamExt;
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let sum = pipeline(&Readable::from_iter([1, 2, 3])).run(|mut source| async move {
    ///             let mut sum = 0;
    ///             while let Some(n) = source.next().await {
    ///                 sum += n?;
    ///             }
    ///             Ok(sum)
    ///         });
    ///         assert_eq!(sum.await.unwrap(), 6);
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn run<V, F>(self, function: impl FnOnce(Chunks<T>) -> F) -> PipelineEnd<V>
    where
        V: Clone + 'static,
        F: Future<Output = Result<V, Error>> + 'static,
    {
        self.row.run(function(self.last.chunks()))
    }
}

/// A chain of streams whose last part is a function; returned by [`Pipeline::generator`].
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use phaseloop_node::{Error, Exit, run, stream::pipeline_from};
/// use futures::stream::{StreamExt, iter};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let chain = pipeline_from(iter(["a", "b"].map(Ok::<_, Error>)));
///         let count = chain.run(|items| async move { Ok(items.count().await) });
///         assert_eq!(count.await.unwrap(), 2);
///     })
/// }
/// ```
#[must_use = "a chain without a sink moves no data"]
pub struct GeneratorPipeline<S> {
    items: S,
    row: Rc<Row>,
}

impl<T, E, S> GeneratorPipeline<S>
where
    T: Clone + 'static,
    E: Into<Error> + 'static,
    S: Stream<Item = Result<T, E>> + 'static,
{
    /// Appends another function; see [`Pipeline::generator`].
    pub fn generator<U, F, G>(self, function: impl FnOnce(S) -> G) -> GeneratorPipeline<G>
    where
        G: Stream<Item = Result<U, F>> + 'static,
        F: Into<Error>,
    {
        GeneratorPipeline {
            items: function(self.items),
            row: self.row,
        }
    }

    /// Appends a transform or another duplex stream.
    pub fn through<R: 'static>(self, next: &impl AsDuplex<T, R>) -> Pipeline<R> {
        let items = self.items;
        let feed = |row: &Rc<Row>, sink: &Writable<T>| row.pump(items, sink);
        self.row.through(next.as_duplex(), feed)
    }

    /// Appends the sink and starts the chain.
    ///
    /// # Errors
    ///
    /// Awaiting the end returns the error of the stream of the chain that has failed first.
    #[track_caller]
    pub fn into(self, sink: &Writable<T>) -> PipelineEnd {
        let items = self.items;
        self.row.into(sink, |row| row.pump(items, sink))
    }

    /// Ends the chain with an async function; see [`Pipeline::run`].
    ///
    /// # Errors
    ///
    /// The error of a stream of the chain, or of the function.
    #[track_caller]
    pub fn run<V, F>(self, function: impl FnOnce(S) -> F) -> PipelineEnd<V>
    where
        V: Clone + 'static,
        F: Future<Output = Result<V, Error>> + 'static,
    {
        self.row.run(function(self.items))
    }
}

impl<S> fmt::Debug for GeneratorPipeline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratorPipeline").finish_non_exhaustive()
    }
}

impl Row {
    /// Writes the items into the sink, one after the other, and ends it.
    fn pump<T, E, S>(self: &Rc<Self>, items: S, sink: &Writable<T>)
    where
        T: 'static,
        E: Into<Error> + 'static,
        S: Stream<Item = Result<T, E>> + 'static,
    {
        self.waiting.set(self.waiting.get() + 1);
        let (row, sink) = (self.clone(), sink.clone());
        drop(call(async move {
            let room = Room::new(&sink);
            let result = write_items(items, &sink, &room.state).await;
            row.finish(result);
            drop(room);
        }));
    }

    /// Runs the last function of a chain.
    #[track_caller]
    fn run<V: Clone + 'static>(
        self: Rc<Self>,
        function: impl Future<Output = Result<V, Error>> + 'static,
    ) -> PipelineEnd<V> {
        self.waiting.set(self.waiting.get() + 1);
        let value = Rc::new(RefCell::new(None));
        let (row, result) = (self.clone(), value.clone());
        let promise: Promise<V> = try_call(function);
        drop(promise.then_result(move |returned| {
            let returned = returned.map(|value| drop(result.replace(Some(value))));
            next_tick(move || row.finish(returned.map_err(Error::from)));
        }));
        PipelineEnd::with_value(self, value)
    }
}

async fn write_items<T, E, S>(items: S, sink: &Writable<T>, room: &RoomState) -> Result<(), Error>
where
    T: 'static,
    E: Into<Error>,
    S: Stream<Item = Result<T, E>>,
{
    if sink.need_drain() {
        room.wait().await?;
    }
    let mut items = pin!(items);
    while let Some(item) = items.next().await {
        if !sink.write(item.map_err(Into::into)?) {
            room.wait().await?;
        }
    }
    sink.end(());
    room.wait().await?;
    Ok(())
}

/// Listens for room in a sink, and for its end.
struct Room<T: 'static> {
    sink: Writable<T>,
    state: Rc<RoomState>,
    on_drain: ListenerId,
    _end: EndOfStream,
}

#[derive(Default)]
struct RoomState {
    /// The error with which the sink has ended.
    error: RefCell<Option<Error>>,
    waiting: RefCell<Option<Deferred<()>>>,
}

impl<T: 'static> Room<T> {
    fn new(sink: &Writable<T>) -> Self {
        let state = Rc::new(RoomState::default());
        let (drained, ended) = (state.clone(), state.clone());
        let on_drain = sink.on(DRAIN, move |()| drained.resume(None));
        let sides = Sides {
            readable: false,
            writable: true,
        };
        let end = move |result: Result<(), Error>| ended.resume(result.err());
        let end = EndOfStream::new(sink.base(), sides, true, Box::new(end));
        Self {
            sink: sink.clone(),
            state,
            on_drain,
            _end: end,
        }
    }
}

impl<T: 'static> Drop for Room<T> {
    fn drop(&mut self) {
        self.sink.off(self.on_drain);
    }
}

impl RoomState {
    fn resume(&self, error: Option<Error>) {
        if let Some(error) = error {
            self.error.replace(Some(error));
        }
        let waiting = self.waiting.take();
        if let Some(waiting) = waiting {
            self.settle(&waiting);
        }
    }

    fn wait(&self) -> Promise<()> {
        let waiting = Deferred::new();
        if self.error.borrow().is_some() {
            self.settle(&waiting);
        } else {
            self.waiting.replace(Some(waiting.clone()));
        }
        waiting.promise()
    }

    fn settle(&self, waiting: &Deferred<()>) {
        let error = self.error.borrow().clone();
        match error {
            Some(error) => waiting.reject(error),
            None => waiting.resolve(()),
        }
    }
}
