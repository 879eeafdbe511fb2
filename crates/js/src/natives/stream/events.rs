//! The events of streams.

use phaseloop_node::Error;
use phaseloop_node::events::{ERROR, Event, ListenerId};
use phaseloop_node::stream::{self, Readable, StreamId};

use super::chunk::JsChunk as _;
use super::{Chunk, Handle, Reading, bytes_of, handle_of, object_of};
use crate::engine::{Res, Scope, Val};
use crate::error;
use crate::natives::emitter::{Listen, count_end};
use crate::natives::{arg, http, net, text};

/// The events without an argument.
const PLAIN: [(&str, Event<()>); 10] = [
    ("open", phaseloop_node::fs::OPEN),
    ("ready", phaseloop_node::fs::READY),
    ("end", stream::END),
    ("readable", stream::READABLE),
    ("resume", stream::RESUME),
    ("pause", stream::PAUSE),
    ("finish", stream::FINISH),
    ("drain", stream::DRAIN),
    ("close", stream::CLOSE),
    ("prefinish", stream::PREFINISH),
];

fn plain(name: &str) -> Option<Event<()>> {
    PLAIN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|it| it.1)
}

/// Adds a listener.
pub(super) fn listen(handle: &Handle, listen: Listen) -> ListenerId {
    let listen = match &handle.socket {
        Some(socket) => match net::listen_socket(socket, listen) {
            Ok(id) => return id,
            Err(listen) => listen,
        },
        None => listen,
    };
    let listen = match &handle.message {
        Some(message) => match http::listen(message, listen) {
            Ok(id) => return id,
            Err(listen) => listen,
        },
        None => listen,
    };
    let emitter = handle.emitter();
    if let Some(event) = plain(&listen.name) {
        return listen.plain(emitter, event);
    }
    match (listen.name.as_str(), &handle.read) {
        ("data", Some(Reading::Js(_))) => {
            listen.add(emitter, Readable::<Chunk>::DATA, |scope, chunk: &Chunk| {
                Ok(vec![chunk.to_js(scope, false)?])
            })
        }
        ("data", Some(Reading::Bytes(read))) => {
            let weak = phaseloop_node::events::WeakThis::weak_this(read);
            listen.add(emitter, Readable::<Vec<u8>>::DATA, move |scope, chunk| {
                let is_text = weak().is_some_and(|read| read.encoding().is_some());
                Ok(vec![chunk.to_js(scope, is_text)?])
            })
        }
        ("pipe", _) => listen.add(emitter, stream::PIPE, |scope, id: &StreamId| {
            Ok(vec![object_of(scope, *id)?])
        }),
        ("unpipe", _) => listen.add(emitter, stream::UNPIPE, |scope, id: &StreamId| {
            Ok(vec![object_of(scope, *id)?])
        }),
        ("errorMonitor", _) => listen.add(emitter, ERROR.monitor(), |scope, error: &Error| {
            Ok(vec![error::of_node(scope, error)?])
        }),
        _ => listen.end(emitter),
    }
}

pub(super) fn count(handle: &Handle, name: &str) -> usize {
    let emitter = handle.emitter();
    if let Some(count) = handle
        .socket
        .as_ref()
        .and_then(|it| net::count_socket(it, name))
    {
        return count;
    }
    if let Some(count) = handle.message.as_ref().and_then(|it| http::count(it, name)) {
        return count;
    }
    if let Some(event) = plain(name) {
        return emitter.listener_count(event);
    }
    match (name, &handle.read) {
        ("data", Some(Reading::Js(_))) => emitter.listener_count(Readable::<Chunk>::DATA),
        ("data", Some(Reading::Bytes(_))) => emitter.listener_count(Readable::<Vec<u8>>::DATA),
        ("pipe", _) => emitter.listener_count(stream::PIPE),
        ("unpipe", _) => emitter.listener_count(stream::UNPIPE),
        _ => count_end(emitter, name),
    }
}

/// Emits an event: the name, and the argument.
pub(super) fn emit<'js>(scope: &Scope<'js>, handle: &Handle, args: &[Val<'js>]) -> Res<'js> {
    let (name, value) = (text(scope, args, 0)?, arg(scope, args, 1));
    let emitter = handle.emitter();
    let had = if let Some(event) = plain(&name) {
        emitter.emit(event, ())
    } else {
        match (name.as_str(), &handle.read) {
            ("data", Some(Reading::Js(_))) => {
                let chunk = Chunk::Value(scope.hold(&value), 1);
                emitter.emit(Readable::<Chunk>::DATA, chunk)
            }
            ("data", Some(Reading::Bytes(_))) => {
                emitter.emit(Readable::<Vec<u8>>::DATA, bytes_of(scope, &value)?)
            }
            ("pipe" | "unpipe", _) => {
                let Some(other) = handle_of(scope, &value)? else {
                    return Ok(scope.boolean(false));
                };
                match name.as_str() {
                    "pipe" => emitter.emit(stream::PIPE, other.id()),
                    _ => emitter.emit(stream::UNPIPE, other.id()),
                }
            }
            _ => emitter.emit(ERROR, error::to_node(scope, &value)),
        }
    };
    Ok(scope.boolean(had))
}
