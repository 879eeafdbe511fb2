//! Messages, servers, requests and agents of HTTP.

mod messages;
mod request;

use std::rc::Rc;

use phaseloop_node::events::{Emitter as _, Event, ListenerId};
use phaseloop_node::http::{
    self, CHECK_CONTINUE, CHECK_EXPECTATION, CLIENT_ERROR, DROP_REQUEST, Exchange, Handover,
    Headers, IncomingMessage, REQUEST, Server, ServerResponse,
};
use phaseloop_node::net::{Address, CONNECTION, LISTENING, Socket};
use phaseloop_node::{Delay, Error, stream};

pub(super) use self::messages::{Message, count, listen, operation};
use super::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use super::net::{address, shown, socket_object};
use super::stream::{Handle, bind, keep, object_of};
use super::{arg, number, operations, text};
use crate::engine::{Closure, Native, Res, Scope, Val};
use crate::error;

/// A connection of a server was idle for too long.
pub(super) const SERVER_TIMEOUT: Event<Socket> = Event::new("timeout");

pub(super) const TABLE: &[(&str, Native)] = &[
    ("httpServer", new_server),
    ("httpRequest", request::request),
    ("httpAgent", request::agent),
    ("httpStatus", status),
    ("httpMethods", methods),
    ("httpCheckHeader", check_header),
];

/// Returns the object of a message that comes in; a new one, if it has none.
pub(super) fn incoming<'js>(scope: &Scope<'js>, message: &IncomingMessage) -> Res<'js> {
    let known = object_of(scope, message.readable().id())?;
    if !known.is_undefined() {
        return Ok(known);
    }
    let (message, kept) = (message.clone(), message.clone());
    let bind: Closure = Rc::new(move |scope, args| {
        let mut handle = Handle::of_bytes(Some(message.readable()), None);
        handle.message = Some(Message::Incoming(message.clone()));
        bind(scope, &arg(scope, args, 0), handle)
    });
    let object = scope.internal("wrapIncoming", &[scope.closure("", bind)?])?;
    keep(scope, &object, kept.emitter(), kept.readable().id());
    Ok(object)
}

/// Returns the object of a response; a new one, if it has none.
fn response<'js>(scope: &Scope<'js>, response: &ServerResponse, request: &Val<'js>) -> Res<'js> {
    let known = object_of(scope, response.writable().id())?;
    if !known.is_undefined() {
        return Ok(known);
    }
    let (response, kept) = (response.clone(), response.clone());
    let bind: Closure = Rc::new(move |scope, args| {
        let mut handle = Handle::of_bytes(None, Some(response.writable()));
        handle.message = Some(Message::Response(response.clone()));
        bind(scope, &arg(scope, args, 0), handle)
    });
    let args = [scope.closure("", bind)?, request.clone()];
    let object = scope.internal("wrapResponse", &args)?;
    keep(scope, &object, kept.emitter(), kept.writable().id());
    Ok(object)
}

/// Returns headers as an object, as Node's `message.headers`.
pub(super) fn headers<'js>(scope: &Scope<'js>, headers: &Headers) -> Res<'js> {
    let object = scope.internal("bare", &[])?;
    for name in headers.names() {
        let value = match name {
            "set-cookie" => texts(scope, headers.set_cookie())?,
            _ => scope.string(headers.get(name).unwrap_or_default())?,
        };
        object.set(name, &value)?;
    }
    Ok(object)
}

/// Returns a list of texts.
pub(super) fn texts<'js>(scope: &Scope<'js>, list: &[String]) -> Res<'js> {
    let list: Res<'js, Vec<_>> = list.iter().map(|it| scope.string(it)).collect();
    scope.array(&list?)
}

/// Returns names and values one after the other, as Node's `message.rawHeaders`.
pub(super) fn raw<'js>(scope: &Scope<'js>, list: &[(String, String)]) -> Res<'js> {
    let list = list.iter().flat_map(|(name, value)| [name, value]);
    let list: Res<'js, Vec<_>> = list.map(|it| scope.string(it)).collect();
    scope.array(&list?)
}

fn exchange_args<'js>(scope: &Scope<'js>, exchange: &Exchange) -> Res<'js, Vec<Val<'js>>> {
    let request = incoming(scope, &exchange.request)?;
    let answer = response(scope, &exchange.response, &request)?;
    Ok(vec![request, answer])
}

pub(super) fn handover_args<'js>(
    scope: &Scope<'js>,
    handover: &Handover,
) -> Res<'js, Vec<Val<'js>>> {
    let head = scope.internal("asBuffer", &[scope.bytes(&handover.head)?])?;
    Ok(vec![
        incoming(scope, &handover.message)?,
        socket_object(scope, &handover.socket)?,
        head,
    ])
}

/// Creates a server, and returns the function that calls it.
fn new_server<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = arg(scope, args, 0);
    let mut builder = Server::builder();
    let number =
        |name: &str| -> Res<'js, Option<f64>> { Ok(options.get(scope, name)?.as_number()) };
    if let Some(size) = number("maxHeaderSize")? {
        builder = builder.max_header_size(size as usize);
    }
    if let Some(delay) = number("headersTimeout")? {
        builder = builder.headers_timeout(delay);
    }
    if let Some(delay) = number("requestTimeout")? {
        builder = builder.request_timeout(delay);
    }
    if let Some(delay) = number("keepAliveTimeout")? {
        builder = builder.keep_alive_timeout(delay);
    }
    if let Some(delay) = number("connectionsCheckingInterval")? {
        builder = builder.connections_checking_interval(delay);
    }
    if let Some(mark) = number("highWaterMark")? {
        builder = builder.high_water_mark(mark as usize);
    }
    let requires = options.get(scope, "requireHostHeader")?.as_bool();
    builder = builder.require_host_header(requires.unwrap_or(true));
    let joins = options.get(scope, "joinDuplicateHeaders")?.is_truthy();
    let server = match builder.join_duplicate_headers(joins).build() {
        Ok(server) => server,
        Err(error) => return Err(scope.throw_reason(&error.into())),
    };
    let listeners = Numbered::default();
    operations(scope, "server", move |scope, operation, args| {
        server_operation(scope, &server, &listeners, operation, args)
    })
}

fn listen_server(server: &Server, listen: Listen) -> ListenerId {
    let emitter = server.emitter();
    match listen.name.as_str() {
        "request" => listen.add(emitter, REQUEST, exchange_args),
        "checkContinue" => listen.add(emitter, CHECK_CONTINUE, exchange_args),
        "checkExpectation" => listen.add(emitter, CHECK_EXPECTATION, exchange_args),
        "upgrade" => listen.add(emitter, http::UPGRADE, handover_args),
        "connect" => listen.add(emitter, http::CONNECT, handover_args),
        "clientError" => listen.add(emitter, CLIENT_ERROR, |scope, failed| {
            let error = error::of_node(scope, &failed.error)?;
            let packet = scope.internal("asBuffer", &[scope.bytes(&failed.raw_packet)?])?;
            error.set("bytesParsed", &scope.number(failed.bytes_parsed as f64))?;
            error.set("rawPacket", &packet)?;
            Ok(vec![error, socket_object(scope, &failed.socket)?])
        }),
        "dropRequest" => listen.add(emitter, DROP_REQUEST, |scope, dropped| {
            let request = incoming(scope, &dropped.request)?;
            Ok(vec![request, socket_object(scope, &dropped.socket)?])
        }),
        "timeout" => listen.add(emitter, SERVER_TIMEOUT, |scope, socket: &Socket| {
            Ok(vec![socket_object(scope, socket)?])
        }),
        "connection" => listen.add(emitter, CONNECTION, |scope, socket: &Socket| {
            Ok(vec![socket_object(scope, socket)?])
        }),
        "listening" => listen.plain(emitter, LISTENING),
        _ => listen.end(emitter),
    }
}

fn count_server(server: &Server, name: &str) -> usize {
    let emitter = server.emitter();
    match name {
        "request" => emitter.listener_count(REQUEST),
        "checkContinue" => emitter.listener_count(CHECK_CONTINUE),
        "checkExpectation" => emitter.listener_count(CHECK_EXPECTATION),
        "upgrade" => emitter.listener_count(http::UPGRADE),
        "connect" => emitter.listener_count(http::CONNECT),
        "clientError" => emitter.listener_count(CLIENT_ERROR),
        "dropRequest" => emitter.listener_count(DROP_REQUEST),
        "timeout" => emitter.listener_count(SERVER_TIMEOUT),
        "connection" => emitter.listener_count(CONNECTION),
        "listening" => emitter.listener_count(LISTENING),
        _ => count_end(emitter, name),
    }
}

fn server_operation<'js>(
    scope: &Scope<'js>,
    server: &Server,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    match operation {
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            note(listeners, key, listen_server(server, listen));
        }
        "off" => remove(scope, listeners, server.emitter(), args),
        "emit" => return emit_error(scope, server.emitter(), args),
        "count" => {
            let count = count_server(server, &text(scope, args, 0)?);
            return Ok(scope.number(count as f64));
        }
        "listen" => {
            let address: Address = address(scope, &arg(scope, args, 0))?;
            server.listen(address);
        }
        "close" => {
            let callback = arg(scope, args, 0);
            if !callback.is_function() {
                server.close();
                return Ok(scope.undefined());
            }
            let callback = scope.hold(&callback);
            server.close_with_result(move |result: Result<(), Error>| {
                callback.call(|scope| match result {
                    Ok(()) => Ok(Vec::new()),
                    Err(error) => Ok(vec![error::of_node(scope, &error)?]),
                });
            });
        }
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            let emitter = server.emitter();
            emitter.once(stream::CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
        }
        "closeIdle" => server.close_idle_connections(),
        "closeAll" => server.close_all_connections(),
        "address" => {
            return match server.address() {
                None => Ok(scope.null()),
                address => shown(scope, address),
            };
        }
        "listening" => return Ok(scope.boolean(server.is_listening())),
        "getConnections" => {
            let callback = scope.hold(&arg(scope, args, 0));
            server.get_connections(move |result| {
                callback.call(|scope| match result {
                    Ok(count) => Ok(vec![scope.null(), scope.number(count as f64)]),
                    Err(error) => Ok(vec![error::of_node(scope, &error)?]),
                });
            });
        }
        "ref" => match arg(scope, args, 0).is_truthy() {
            true => server.ref_(),
            false => server.unref(),
        },
        _ => return limit(scope, server, operation, args),
    }
    Ok(scope.undefined())
}

/// Returns a limit of a server, or sets it.
fn limit<'js>(scope: &Scope<'js>, server: &Server, name: &str, args: &[Val<'js>]) -> Res<'js> {
    let new = (!args.is_empty()).then(|| number(scope, args, 0).max(0.0));
    macro_rules! limit {
        ($get:ident, $set:ident, $Kind:ty) => {{
            if let Some(new) = new {
                server.$set(new as $Kind);
            }
            f64::from(server.$get() as u32)
        }};
    }
    Ok(scope.number(match name {
        "headersTimeout" => limit!(headers_timeout, set_headers_timeout, f64),
        "requestTimeout" => limit!(request_timeout, set_request_timeout, f64),
        "keepAliveTimeout" => limit!(keep_alive_timeout, set_keep_alive_timeout, f64),
        "timeout" => limit!(timeout, set_timeout, f64),
        "maxHeadersCount" => limit!(max_headers_count, set_max_headers_count, usize),
        "maxRequestsPerSocket" => {
            limit!(max_requests_per_socket, set_max_requests_per_socket, u64)
        }
        _ => return Ok(scope.undefined()),
    }))
}

/// Returns the text behind a status.
fn status<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    match http::status_message(number(scope, args, 0) as u16) {
        Some(text) => scope.string(text),
        None => Ok(scope.undefined()),
    }
}

fn methods<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let list = http::METHODS.iter().map(|it| scope.string(it));
    let list: Res<'js, Vec<_>> = list.collect();
    scope.array(&list?)
}

/// Throws if a name, or a value if one is given, may not be that of a header.
fn check_header<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let name = text(scope, args, 0)?;
    let checked = match args.len() {
        1 => http::validate_header_name(&name),
        _ => http::validate_header_value(&name, &text(scope, args, 1)?),
    };
    match checked {
        Ok(()) => Ok(scope.undefined()),
        Err(error) => Err(scope.throw_reason(&error.into())),
    }
}

/// Returns the delay of an argument.
fn delay<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Delay {
    Delay::from(number(scope, args, 0))
}
