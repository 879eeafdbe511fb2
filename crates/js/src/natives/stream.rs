//! Streams: an object of JavaScript has a function that calls its stream of Rust.
//!
//! The state and the events are Rust's: a listener for an event of the list is one of the emitter
//! of Rust. The stream holds its object until it is closed.

mod chunk;
mod events;
mod make;
mod pipes;

use std::rc::{Rc, Weak};

use phaseloop_node::events::{Emitter as _, EventEmitter};
use phaseloop_node::net::Socket;
use phaseloop_node::stream::{self, LastChunk, NoChunk, Readable, StreamId, Writable};
use phaseloop_node::string_decoder::StringDecoder;
use phaseloop_node::{Error, host};

use self::chunk::JsChunk;
pub(crate) use self::chunk::{Chunk, bytes_of};
pub(super) use self::make::failure;
use super::emitter::{Listen, Numbered, note, remove};
use super::{arg, http, net, number, operations, text};
use crate::engine::{Held, Inner, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("stream", new),
    ("finished", pipes::finished),
    ("pipeline", pipes::pipeline),
    ("streamCompose", pipes::compose),
    ("streamHalves", pipes::halves),
    ("streamPair", pipes::pair),
];

/// The readable side of a stream.
#[derive(Clone)]
pub(crate) enum Reading {
    Js(Readable<Chunk>),
    Bytes(Readable<Vec<u8>>),
}

/// The writable side of a stream.
#[derive(Clone)]
pub(crate) enum Writing {
    Js(Writable<Chunk>),
    Bytes(Writable<Vec<u8>>),
}

/// Calls an expression for whichever chunks a side has.
macro_rules! side {
    ($Side:ident, $it:expr, $name:ident => $value:expr) => {
        match $it {
            $Side::Js($name) => $value,
            $Side::Bytes($name) => $value,
        }
    };
}
use side;

/// A stream that has an object of JavaScript.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) read: Option<Reading>,
    pub(crate) write: Option<Writing>,
    pub(crate) reads_objects: bool,
    pub(crate) writes_objects: bool,
    /// The socket that the stream is.
    pub(crate) socket: Option<Socket>,
    /// The message of HTTP that the stream is.
    pub(crate) message: Option<http::Message>,
}

/// Removes the stream from the list when its object is freed.
struct Owner {
    handle: Handle,
    /// The listeners of JavaScript, by number.
    listeners: Numbered,
    engine: Weak<Inner>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(inner) = self.engine.upgrade() {
            let known = inner.data.streams.borrow_mut().remove(&self.handle.id());
            drop(known);
        }
    }
}

fn chunk_of<'js>(scope: &Scope<'js>, value: &Val<'js>, is_object: bool) -> Res<'js, Chunk> {
    Chunk::from_js(scope, value, is_object)
}

impl Handle {
    /// The handle of a stream of bytes.
    pub(crate) fn of_bytes(
        read: Option<&Readable<Vec<u8>>>,
        write: Option<&Writable<Vec<u8>>>,
    ) -> Self {
        Self {
            read: read.cloned().map(Reading::Bytes),
            write: write.cloned().map(Writing::Bytes),
            reads_objects: false,
            writes_objects: false,
            socket: None,
            message: None,
        }
    }

    fn emitter(&self) -> &EventEmitter {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.emitter()),
            (None, Some(write)) => side!(Writing, write, it => it.emitter()),
            (None, None) => unreachable!("a stream has a side"),
        }
    }

    fn id(&self) -> StreamId {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.id()),
            (None, Some(write)) => side!(Writing, write, it => it.id()),
            (None, None) => unreachable!("a stream has a side"),
        }
    }

    pub(crate) fn destroy(&self, error: Option<Error>) {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.destroy(error)),
            (None, Some(write)) => side!(Writing, write, it => it.destroy(error)),
            (None, None) => {}
        }
    }

    fn destroyed(&self) -> bool {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.destroyed()),
            (None, Some(write)) => side!(Writing, write, it => it.destroyed()),
            (None, None) => true,
        }
    }

    fn closed(&self) -> bool {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.closed()),
            (None, Some(write)) => side!(Writing, write, it => it.closed()),
            (None, None) => true,
        }
    }

    fn errored(&self) -> Option<Error> {
        match (&self.read, &self.write) {
            (Some(read), _) => side!(Reading, read, it => it.errored()),
            (None, Some(write)) => side!(Writing, write, it => it.errored()),
            (None, None) => None,
        }
    }
}

/// Creates the stream of an object, and returns the function that calls it.
fn new<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (object, kind) = (arg(scope, args, 0), text(scope, args, 1)?);
    let handle = make::make(scope, &object, &kind, arg(scope, args, 2));
    bind(scope, &object, handle)
}

/// Returns the function by which an object of JavaScript calls its stream.
pub(crate) fn bind<'js>(scope: &Scope<'js>, object: &Val<'js>, handle: Handle) -> Res<'js> {
    let weak = scope.internal("weak", std::slice::from_ref(object))?;
    let weak = scope.hold(&weak);
    let streams = &scope.inner.data.streams;
    let before = streams.borrow_mut().insert(handle.id(), weak);
    drop(before);
    let owner = Owner {
        handle,
        listeners: Numbered::default(),
        engine: Rc::downgrade(&scope.inner),
    };
    operations(scope, "stream", move |scope, operation, args| {
        operate(scope, &owner, operation, args)
    })
}

/// Returns the stream of an object.
pub(crate) fn handle_of<'js>(scope: &Scope<'js>, object: &Val<'js>) -> Res<'js, Option<Handle>> {
    let native = scope.internal("nativeOf", std::slice::from_ref(object))?;
    if !native.is_function() {
        return Ok(None);
    }
    native.call(&scope.undefined(), &[scope.string("lend")?])?;
    Ok(scope.inner.data.lent.take())
}

/// Returns the object of a stream; `undefined`, if it is gone.
pub(crate) fn object_of<'js>(scope: &Scope<'js>, id: StreamId) -> Res<'js> {
    let weak = scope.inner.data.streams.borrow().get(&id).cloned();
    match weak {
        Some(weak) => scope.internal("unweak", &[weak.get(scope)?]),
        None => Ok(scope.undefined()),
    }
}

/// Keeps the object of a stream that Rust has made until the stream is closed.
pub(crate) fn keep<'js>(
    scope: &Scope<'js>,
    object: &Val<'js>,
    emitter: &EventEmitter,
    id: StreamId,
) {
    let kept = &scope.inner.data.kept;
    if object.is_undefined() || kept.borrow().contains_key(&id) {
        return;
    }
    let held = scope.hold(object);
    kept.borrow_mut().insert(id, held);
    let weak = Rc::downgrade(&scope.inner);
    emitter.once(stream::CLOSE, move |()| {
        if let Some(inner) = weak.upgrade() {
            let held = inner.data.kept.borrow_mut().remove(&id);
            // The listeners that follow need the object.
            phaseloop_node::next_tick(move || drop(held));
        }
    });
}

fn operate<'js>(scope: &Scope<'js>, owner: &Owner, operation: &str, args: &[Val<'js>]) -> Res<'js> {
    let handle = &owner.handle;
    // A socket is kept from the first call that has events as its consequence.
    let begins = ["write", "end", "endWith", "destroy", "setTimeout"].contains(&operation);
    if begins && handle.socket.is_some() && !handle.closed() {
        let object = object_of(scope, handle.id())?;
        keep(scope, &object, handle.emitter(), handle.id());
    }
    match operation {
        "lend" => {
            let before = scope.inner.data.lent.replace(Some(handle.clone()));
            drop(before);
        }
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            note(&owner.listeners, key, events::listen(handle, listen));
        }
        "off" => remove(scope, &owner.listeners, handle.emitter(), args),
        "emit" => return events::emit(scope, handle, args),
        "count" => {
            let name = text(scope, args, 0)?;
            return Ok(scope.number(events::count(handle, &name) as f64));
        }
        "destroy" => handle.destroy(failure(scope, &arg(scope, args, 0))),
        "leave" => {
            let error = failure(scope, &arg(scope, args, 0));
            if let Some(read) = &handle.read {
                side!(Reading, read, it => host::leave(it, error));
            }
        }
        "closed" => return Ok(scope.boolean(handle.closed())),
        "destroyed" => return Ok(scope.boolean(handle.destroyed())),
        "errored" => {
            return match handle.errored() {
                Some(error) => error::of_node(scope, &error),
                None => Ok(scope.null()),
            };
        }
        "pipe" | "unpipe" => return pipes::pipe(scope, handle, operation, args),
        _ => {
            if let Some(socket) = &handle.socket {
                let known = net::socket_operation(scope, socket, operation, args)?;
                if let Some(value) = known {
                    return Ok(value);
                }
            }
            if let Some(message) = &handle.message {
                let known = http::operation(scope, message, operation, args)?;
                if let Some(value) = known {
                    return Ok(value);
                }
            }
            if let Some(read) = &handle.read {
                let known = side!(Reading, read, it => {
                    reading(scope, it, handle.reads_objects, operation, args)
                })?;
                if let Some(value) = known {
                    return Ok(value);
                }
            }
            if let Some(write) = &handle.write {
                return side!(Writing, write, it => {
                    writing(scope, it, handle.writes_objects, operation, args)
                });
            }
        }
    }
    Ok(scope.undefined())
}

/// Decodes the chunks of a stream from now on.
fn set_encoding(read: &Reading, encoding: phaseloop_node::string_decoder::Encoding) {
    match read {
        Reading::Bytes(it) => drop(it.set_encoding(encoding).id()),
        Reading::Js(it) => {
            let mut decoder = StringDecoder::new(encoding);
            host::decode_with(it, encoding, move |chunk| {
                Chunk::Text(match chunk {
                    Some(chunk) => decoder.write(&Vec::from(chunk)),
                    None => decoder.end(),
                })
            });
        }
    }
}

trait Decoded {
    fn as_reading(&self) -> Reading;
    fn is_text(&self) -> bool;
}

impl Decoded for Readable<Chunk> {
    fn as_reading(&self) -> Reading {
        Reading::Js(self.clone())
    }

    fn is_text(&self) -> bool {
        false
    }
}

impl Decoded for Readable<Vec<u8>> {
    fn as_reading(&self) -> Reading {
        Reading::Bytes(self.clone())
    }

    fn is_text(&self) -> bool {
        self.encoding().is_some()
    }
}

/// What concerns the readable side; `None` for another operation.
fn reading<'js, T: JsChunk>(
    scope: &Scope<'js>,
    it: &Readable<T>,
    is_object: bool,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>>
where
    Readable<T>: Decoded,
{
    let first = || arg(scope, args, 0);
    let flag = |value: bool| scope.boolean(value);
    Ok(Some(match operation {
        "push" => flag(it.push(T::from_js(scope, &first(), is_object)?)),
        "pushEnd" => {
            it.push_end();
            flag(false)
        }
        "unshift" => flag(it.unshift(T::from_js(scope, &first(), is_object)?)),
        "read" => {
            let size = number(scope, args, 0);
            let chunk = match size.is_nan() {
                true => it.read(),
                false => it.read_size(size as usize),
            };
            match chunk {
                Some(chunk) => chunk.to_js(scope, it.is_text())?,
                None => scope.null(),
            }
        }
        "pause" => {
            it.pause();
            scope.undefined()
        }
        "resume" => {
            it.resume();
            scope.undefined()
        }
        "isPaused" => flag(it.is_paused()),
        "flowing" => match it.flowing() {
            Some(flowing) => flag(flowing),
            None => scope.null(),
        },
        "isReadable" => flag(it.is_readable()),
        "readableEnded" => flag(it.ended()),
        "readableLength" => scope.number(it.length() as f64),
        "readableMark" => scope.number(it.high_water_mark() as f64),
        "setEncoding" => {
            let encoding = super::buffer::encoding(scope, args, 0)?;
            set_encoding(&it.as_reading(), encoding);
            scope.undefined()
        }
        _ => return Ok(None),
    }))
}

/// Returns the callback of a write.
pub(super) fn written(callback: &Held) -> impl FnOnce(Result<(), Error>) + 'static {
    let callback = callback.clone();
    move |result| {
        callback.call(|scope| match result {
            Ok(()) => Ok(vec![scope.null()]),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    }
}

/// What concerns the writable side.
fn writing<'js, T: JsChunk>(
    scope: &Scope<'js>,
    it: &Writable<T>,
    is_object: bool,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let callback = || {
        let callback = args.last().filter(|it| it.is_function());
        callback.map(|it| scope.hold(it))
    };
    Ok(match operation {
        "write" => {
            let chunk = T::from_js(scope, &arg(scope, args, 0), is_object)?;
            scope.boolean(match callback() {
                Some(callback) => it.write_with(chunk, written(&callback)),
                None => it.write(chunk),
            })
        }
        "endWith" => {
            let chunk = T::from_js(scope, &arg(scope, args, 0), is_object)?;
            match callback() {
                Some(callback) => it.end_with::<LastChunk>(chunk, written(&callback)),
                None => it.end::<LastChunk>(chunk),
            }
            scope.undefined()
        }
        "end" => {
            match callback() {
                Some(callback) => it.end_with::<NoChunk>(NoChunk, written(&callback)),
                None => it.end::<NoChunk>(NoChunk),
            }
            scope.undefined()
        }
        "cork" => {
            it.cork();
            scope.undefined()
        }
        "uncork" => {
            it.uncork();
            scope.undefined()
        }
        "corked" => scope.number(it.corked() as f64),
        "isWritable" => scope.boolean(it.is_writable()),
        "needDrain" => scope.boolean(it.need_drain()),
        "writableEnded" => scope.boolean(it.ended()),
        "writableFinished" => scope.boolean(it.finished()),
        "writableLength" => scope.number(it.length() as f64),
        "writableMark" => scope.number(it.high_water_mark() as f64),
        _ => scope.undefined(),
    })
}
