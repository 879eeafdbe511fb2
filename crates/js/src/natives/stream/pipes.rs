//! Pipes, chains and the ends of streams.

use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::Stream;
use phaseloop_node::events::Emitter as _;
use phaseloop_node::stream::{
    Composition, Duplex, FinishedOptions, GeneratorPipeline, Pipeline, PipelineEnd, Readable,
    Writable, finished_with, pipeline as chain, pipeline_from,
};
use phaseloop_node::{AbortController, Error, host};

use super::{Chunk, Handle, Reading, Writing, handle_of, side};
use crate::Promise;
use crate::engine::{Closure, Fault, Held, Res, Scope, Val};
use crate::error;
use crate::natives::arg;

/// Pipes into the stream of an object, or stops it.
pub(super) fn pipe<'js>(
    scope: &Scope<'js>,
    handle: &Handle,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let sink = handle_of(scope, &arg(scope, args, 0))?;
    let ends = arg(scope, args, 1).is_truthy();
    if let (Some(read), Some(write)) = (&handle.read, sink.and_then(|sink| sink.write)) {
        side!(Reading, read, source => side!(Writing, &write, sink => match operation {
            "unpipe" => host::unpipe(source, sink),
            _ => host::pipe(source, sink, ends),
        }));
    }
    Ok(scope.undefined())
}

/// Calls the last argument when a stream has ended. Returns a function that stops to wait.
pub(super) fn finished<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let Some(handle) = handle_of(scope, &arg(scope, args, 0))? else {
        return Ok(scope.undefined());
    };
    let flag = |name: &str| -> Res<'js, bool> {
        let value = arg(scope, args, 1).get(scope, name)?;
        Ok(value.is_undefined() || value.is_truthy())
    };
    let options = FinishedOptions {
        readable: flag("readable")?,
        writable: flag("writable")?,
        error: flag("error")?,
    };
    let finished = match (&handle.read, &handle.write) {
        (Some(read), _) => side!(Reading, read, it => finished_with(it, options)),
        (None, Some(write)) => side!(Writing, write, it => finished_with(it, options)),
        (None, None) => return Ok(scope.undefined()),
    };
    let controller = AbortController::new();
    let finished = finished.signal(&controller.signal());
    finished.then(done(scope, &arg(scope, args, 2)));
    // The callback of a stopped wait ignores the call.
    let stop: Closure = Rc::new(move |scope, _| {
        controller.abort();
        Ok(scope.undefined())
    });
    scope.closure("stop", stop)
}

/// Returns a callback that calls a function of JavaScript.
fn done<'js>(
    scope: &Scope<'js>,
    function: &Val<'js>,
) -> impl FnOnce(Result<(), Error>) + use<'js> + 'static {
    let function = scope.hold(function);
    move |result| {
        function.call(|scope| match result {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    }
}

/// A chain that is not complete.
enum Chain {
    Js(Pipeline<Chunk>),
    Bytes(Pipeline<Vec<u8>>),
    Items(GeneratorPipeline<Items>),
}

impl Chain {
    fn new(source: &Reading) -> Self {
        match source {
            Reading::Js(it) => Self::Js(chain(it)),
            Reading::Bytes(it) => Self::Bytes(chain(it)),
        }
    }

    /// Appends a duplex stream.
    fn through<W, R>(self, read: &Readable<R>, write: &Writable<W>) -> Option<Pipeline<R>>
    where
        W: From<Chunk> + From<Vec<u8>> + FromItems + Clone + 'static,
        R: 'static,
    {
        let next = host::duplex_of(read, write)?;
        Some(match self {
            Self::Js(it) => host::through(it, &next),
            Self::Bytes(it) => host::through(it, &next),
            Self::Items(it) => it.generator(W::items).through(&next),
        })
    }

    /// Appends an iterable of JavaScript, which reads what is before it by itself.
    fn items(chain: Option<Self>, items: Items) -> Self {
        Self::Items(match chain {
            None => pipeline_from(items),
            Some(Self::Js(it)) => it.generator(|_| items),
            Some(Self::Bytes(it)) => it.generator(|_| items),
            Some(Self::Items(it)) => it.generator(|mut before| {
                before.leave = None;
                items
            }),
        })
    }

    fn end<W>(self, sink: &Writable<W>, ends: bool) -> PipelineEnd
    where
        W: From<Chunk> + From<Vec<u8>> + FromItems + Clone + 'static,
    {
        match self {
            Self::Js(it) => host::into_sink(it, sink, ends),
            Self::Bytes(it) => host::into_sink(it, sink, ends),
            Self::Items(it) => it.generator(W::items).into(sink),
        }
    }

    /// Ends the chain with a promise of JavaScript.
    fn run(self, promise: Promise) -> PipelineEnd<crate::Value> {
        let value = async move { promise.await.map_err(|error| error::of_js(&error)) };
        match self {
            Self::Js(it) => it.run(|_| value),
            Self::Bytes(it) => it.run(|_| value),
            Self::Items(it) => it.run(|mut before| {
                before.leave = None;
                value
            }),
        }
    }
}

/// The chunks of an iterable of JavaScript.
struct Items {
    next: Held,
    leave: Option<Held>,
    waits: Option<Promise>,
}

impl Items {
    fn new<'js>(scope: &Scope<'js>, iterable: &Val<'js>) -> Res<'js, Self> {
        let functions = scope.internal("iterate", std::slice::from_ref(iterable))?;
        let functions = functions.elements()?;
        Ok(Self {
            next: scope.hold(&functions[0]),
            leave: Some(scope.hold(&functions[1])),
            waits: None,
        })
    }

    /// Calls `next` of the iterator.
    fn ask(&self) -> Result<Promise, Error> {
        let called = crate::Value::new(self.next.clone()).call(());
        let called = called.map_err(|error| error::of_js(&error))?;
        Ok(called.into_promise())
    }
}

impl Stream for Items {
    type Item = Result<Chunk, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut promise = match self.waits.take() {
            Some(promise) => promise,
            None => match self.ask() {
                Ok(promise) => promise,
                Err(error) => return Poll::Ready(Some(Err(error))),
            },
        };
        let Poll::Ready(result) = Pin::new(&mut promise).poll(cx) else {
            self.waits = Some(promise);
            return Poll::Pending;
        };
        let item = result.and_then(|result| {
            let is_done = result.get("done")?.with(|_, done| Ok(done.is_truthy()))?;
            match is_done {
                true => Ok(None),
                false => result.get("value").map(Some),
            }
        });
        let item = match item {
            Ok(Some(value)) => Some(Ok(Chunk::item(&value))),
            Ok(None) => None,
            Err(error) => Some(Err(error::of_js(&error))),
        };
        if !matches!(item, Some(Ok(_))) {
            self.leave = None;
        }
        Poll::Ready(item)
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            let _ = crate::Value::new(leave).call(());
        }
    }
}

/// Chunks that an iterable of JavaScript may have.
trait FromItems: Sized {
    type Of: Stream<Item = Result<Self, Error>> + 'static;
    fn items(items: Items) -> Self::Of;
}

impl FromItems for Chunk {
    type Of = Items;

    fn items(items: Items) -> Items {
        items
    }
}

impl FromItems for Vec<u8> {
    type Of = BytesOf;

    fn items(items: Items) -> BytesOf {
        BytesOf(items)
    }
}

/// The chunks of an iterable as bytes.
struct BytesOf(Items);

impl Stream for BytesOf {
    type Item = Result<Vec<u8>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = Pin::new(&mut self.0).poll_next(cx);
        item.map(|item| item.map(|chunk| chunk.map(Vec::from)))
    }
}

/// Joins a list of stages to a chain: the list, whether the last one is ended, and what is called
/// at the end. Returns an object whose `abort` ends the chain.
pub(super) fn pipeline<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let stages = arg(scope, args, 0).elements()?;
    let ends = arg(scope, args, 1).is_truthy();
    let controller = AbortController::new();
    let signal = controller.signal();
    let (mut chain, mut is_over) = (None, false);
    let count = stages.len();
    for (index, stage) in stages.iter().enumerate() {
        let [stream, items, promise] =
            ["stream", "items", "promise"].map(|it| stage.get(scope, it));
        let (stream, items, promise) = (stream?, items?, promise?);
        let handle = handle_of(scope, &stream)?;
        chain = match (chain.take(), handle) {
            (
                None,
                Some(Handle {
                    read: Some(read), ..
                }),
            ) => Some(Chain::new(&read)),
            (
                Some(chain),
                Some(Handle {
                    write: Some(write), ..
                }),
            ) if index + 1 == count => {
                is_over = true;
                let end = side!(Writing, &write, it => Chain::end(chain, it, ends)).signal(&signal);
                end.then(done(scope, &arg(scope, args, 2)));
                None
            }
            (
                Some(chain),
                Some(Handle {
                    read: Some(read),
                    write: Some(write),
                    ..
                }),
            ) => side!(Writing, &write, write => match &read {
                Reading::Js(read) => chain.through(read, write).map(Chain::Js),
                Reading::Bytes(read) => chain.through(read, write).map(Chain::Bytes),
            }),
            (Some(chain), None) if promise.is_object() => {
                is_over = true;
                let promise = crate::Value::new(scope.hold(&promise)).into_promise();
                let function = scope.hold(&arg(scope, args, 2));
                Chain::run(chain, promise)
                    .signal(&signal)
                    .then(move |result| {
                        function.call(|scope| match result {
                            Ok(value) => Ok(vec![scope.undefined(), value.held().get(scope)?]),
                            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
                        });
                    });
                None
            }
            (chain, None) if !items.is_nullish() => {
                Some(Chain::items(chain, Items::new(scope, &items)?))
            }
            _ => None,
        };
    }
    if !is_over {
        let error = scope.internal("invalidChunk", &[scope.undefined()])?;
        return Err(scope.throw(error));
    }
    let object = scope.object()?;
    let abort: Closure = Rc::new(move |scope, args| {
        controller.abort_with(error::to_node(scope, &arg(scope, args, 0)));
        Ok(scope.undefined())
    });
    object.set("abort", &scope.closure("abort", abort)?)?;
    Ok(object)
}

/// Binds a duplex stream of chunks to an object.
fn bound<'js>(
    scope: &Scope<'js>,
    object: &Val<'js>,
    duplex: &Duplex<Chunk, Chunk>,
    modes: (bool, bool),
) -> Res<'js> {
    let handle = Handle {
        read: Some(Reading::Js(duplex.readable().clone())),
        write: Some(Writing::Js(duplex.writable().clone())),
        reads_objects: modes.0,
        writes_objects: modes.1,
        socket: None,
        message: None,
    };
    let read = duplex.readable();
    super::keep(scope, object, read.emitter(), read.id());
    super::bind(scope, object, handle)
}

fn not_bound(scope: &Scope<'_>) -> Fault {
    let text = "A stream of this kind cannot be joined";
    scope.throw_reason(&Error::with_code("ERR_METHOD_NOT_IMPLEMENTED", text).into())
}

/// Composes a list of streams to one, for an object.
pub(super) fn compose<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let mut modes = (false, false);
    let mut made: Option<Composition<Chunk, Chunk>> = None;
    for stream in arg(scope, args, 1).elements()? {
        let Some(handle) = handle_of(scope, &stream)? else {
            return Err(not_bound(scope));
        };
        let (Some(Reading::Js(read)), Some(Writing::Js(write))) = (&handle.read, &handle.write)
        else {
            return Err(not_bound(scope));
        };
        let Some(duplex) = host::duplex_of(read, write) else {
            return Err(not_bound(scope));
        };
        modes.0 = handle.reads_objects;
        made = Some(match made {
            None => {
                modes.1 = handle.writes_objects;
                phaseloop_node::stream::compose(&duplex)
            }
            Some(made) => made.through(&duplex),
        });
    }
    match made {
        Some(made) => bound(scope, &arg(scope, args, 0), &made.build(), modes),
        None => Err(not_bound(scope)),
    }
}

/// Joins a readable and a writable stream to one, for an object.
pub(super) fn halves<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let read = handle_of(scope, &arg(scope, args, 1))?;
    let write = handle_of(scope, &arg(scope, args, 2))?;
    let modes = (
        read.as_ref().is_some_and(|it| it.reads_objects),
        write.as_ref().is_some_and(|it| it.writes_objects),
    );
    match (read.and_then(|it| it.read), write.and_then(|it| it.write)) {
        (Some(Reading::Js(read)), Some(Writing::Js(write))) => {
            let duplex = Duplex::from_halves(&read, &write);
            bound(scope, &arg(scope, args, 0), &duplex, modes)
        }
        _ => Err(not_bound(scope)),
    }
}

/// Returns two functions that bind the ends of a pair to objects.
pub(super) fn pair<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let (one, two) = phaseloop_node::stream::duplex_pair::<Chunk>();
    let ends = [one, two].map(|end| {
        let bind: Closure =
            Rc::new(move |scope, args| bound(scope, &arg(scope, args, 0), &end, (false, false)));
        scope.closure("", bind)
    });
    let [one, two] = ends;
    scope.array(&[one?, two?])
}
