//! Messages: what they have beside the methods of streams.

use phaseloop_node::Error;
use phaseloop_node::events::{Emitter as _, ListenerId};
use phaseloop_node::http::{
    self, ABORTED, ClientRequest, FREE, HeaderValue, INFORMATION, IncomingMessage, OutgoingMessage,
    RESPONSE, SOCKET, ServerResponse,
};
use phaseloop_node::net::{Socket, TIMEOUT};

use super::{SERVER_TIMEOUT, delay, handover_args, headers, incoming, raw, texts};
use crate::engine::{Res, Scope, Val};
use crate::error;
use crate::natives::emitter::Listen;
use crate::natives::net::socket_object;
use crate::natives::{arg, number, text};

/// A message that is the stream of an object.
#[derive(Clone)]
pub(crate) enum Message {
    Incoming(IncomingMessage),
    Response(ServerResponse),
    Request(ClientRequest),
}

impl Message {
    /// Returns the message that goes out.
    fn outgoing(&self) -> Option<&OutgoingMessage> {
        match self {
            Self::Incoming(_) => None,
            Self::Response(it) => Some(it),
            Self::Request(it) => Some(it),
        }
    }
}

/// Adds a listener for an event that streams do not have.
pub(in crate::natives) fn listen(message: &Message, listen: Listen) -> Result<ListenerId, Listen> {
    Ok(match (message, listen.name.as_str()) {
        (Message::Incoming(it), "aborted") => listen.plain(it.emitter(), ABORTED),
        (Message::Incoming(it), "timeout") if it.status_code().is_some() => {
            listen.plain(it.emitter(), TIMEOUT)
        }
        (Message::Incoming(it), "timeout") => {
            listen.add(it.emitter(), SERVER_TIMEOUT, |scope, it: &Socket| {
                Ok(vec![socket_object(scope, it)?])
            })
        }
        (Message::Response(it), "timeout") => {
            listen.add(it.emitter(), SERVER_TIMEOUT, |scope, it: &Socket| {
                Ok(vec![socket_object(scope, it)?])
            })
        }
        (Message::Request(it), "timeout") => listen.plain(it.emitter(), TIMEOUT),
        (Message::Response(it), "socket") => {
            listen.add(it.emitter(), SOCKET, |scope, it: &Socket| {
                Ok(vec![socket_object(scope, it)?])
            })
        }
        (Message::Request(it), "socket") => {
            listen.add(it.emitter(), SOCKET, |scope, it: &Socket| {
                Ok(vec![socket_object(scope, it)?])
            })
        }
        (Message::Request(it), "response") => listen.add(it.emitter(), RESPONSE, |scope, it| {
            Ok(vec![incoming(scope, it)?])
        }),
        (Message::Request(it), "continue") => listen.plain(it.emitter(), http::CONTINUE),
        (Message::Request(it), "upgrade") => listen.add(it.emitter(), http::UPGRADE, handover_args),
        (Message::Request(it), "connect") => listen.add(it.emitter(), http::CONNECT, handover_args),
        (Message::Request(it), "information") => {
            listen.add(it.emitter(), INFORMATION, |scope, it| {
                let object = scope.object()?;
                object.set("statusCode", &scope.number(f64::from(it.status_code)))?;
                object.set("statusMessage", &scope.string(&it.status_message)?)?;
                object.set("httpVersion", &scope.string(it.http_version)?)?;
                object.set("headers", &headers(scope, &it.headers)?)?;
                object.set("rawHeaders", &raw(scope, &it.raw_headers)?)?;
                Ok(vec![object])
            })
        }
        _ => return Err(listen),
    })
}

/// Returns how many listeners an event has that streams do not have.
pub(in crate::natives) fn count(message: &Message, name: &str) -> Option<usize> {
    let emitter = match message {
        Message::Incoming(it) => it.emitter(),
        Message::Response(it) => it.emitter(),
        Message::Request(it) => it.emitter(),
    };
    Some(match name {
        "aborted" => emitter.listener_count(ABORTED),
        "timeout" => emitter.listener_count(TIMEOUT) + emitter.listener_count(SERVER_TIMEOUT),
        "socket" => emitter.listener_count(SOCKET),
        "response" => emitter.listener_count(RESPONSE),
        "continue" => emitter.listener_count(http::CONTINUE),
        "upgrade" => emitter.listener_count(http::UPGRADE),
        "connect" => emitter.listener_count(http::CONNECT),
        "information" => emitter.listener_count(INFORMATION),
        "free" => emitter.listener_count(FREE),
        _ => return None,
    })
}

/// What concerns a message; `None` for what all streams have.
pub(in crate::natives) fn operation<'js>(
    scope: &Scope<'js>,
    message: &Message,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    let known = match message {
        Message::Incoming(it) => of_incoming(scope, it, operation, args)?,
        Message::Response(it) => of_response(scope, it, operation, args)?,
        Message::Request(it) => of_request(scope, it, operation, args)?,
    };
    match (known, message.outgoing()) {
        (None, Some(it)) => of_outgoing(scope, it, operation, args),
        (known, _) => Ok(known),
    }
}

fn of_incoming<'js>(
    scope: &Scope<'js>,
    it: &IncomingMessage,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    Ok(Some(match operation {
        "method" => match it.status_code() {
            None => scope.string(it.method())?,
            Some(_) => scope.null(),
        },
        "url" => {
            if !args.is_empty() {
                it.set_url(text(scope, args, 0)?);
            }
            scope.string(it.url())?
        }
        "httpVersion" => scope.string(it.http_version())?,
        "statusCode" => match it.status_code() {
            Some(status) => scope.number(f64::from(status)),
            None => scope.null(),
        },
        "statusMessage" => match it.status_code() {
            Some(_) => scope.string(it.status_message())?,
            None => scope.null(),
        },
        "headers" => headers(scope, it.headers())?,
        "rawHeaders" => raw(scope, it.raw_headers())?,
        "trailers" => headers(scope, it.trailers())?,
        "rawTrailers" => raw(scope, it.raw_trailers())?,
        "complete" => scope.boolean(it.complete()),
        "aborted" => scope.boolean(it.aborted()),
        "upgrade" => scope.boolean(it.upgrade()),
        "socket" => socket_object(scope, it.socket())?,
        "setTimeout" => {
            it.set_timeout(delay(scope, args));
            scope.undefined()
        }
        _ => return Ok(None),
    }))
}

/// Returns the value of a header; a missing one for `undefined`.
fn value<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Res<'js, HeaderValue> {
    if value.is_undefined() {
        return Ok(HeaderValue::from(None::<String>));
    }
    if value.is_array() {
        let list: Res<'js, Vec<_>> = value.elements()?.iter().map(Val::to_text).collect();
        return Ok(HeaderValue::from(list?));
    }
    let _ = scope;
    Ok(HeaderValue::from(value.to_text()?))
}

/// Returns the pairs of a list `[[name, value], …]`.
pub(super) fn pairs<'js>(
    scope: &Scope<'js>,
    list: &Val<'js>,
) -> Res<'js, Vec<(String, HeaderValue)>> {
    let pairs = list.elements()?.into_iter().map(|pair| {
        let pair = pair.elements()?;
        Ok((text(scope, &pair, 0)?, value(scope, &arg(scope, &pair, 1))?))
    });
    pairs.collect()
}

fn thrown<'js, T>(scope: &Scope<'js>, result: Result<T, Error>) -> Res<'js, T> {
    result.map_err(|error| scope.throw_reason(&error.into()))
}

fn shown_value<'js>(scope: &Scope<'js>, value: &HeaderValue) -> Res<'js> {
    match value.is_list() {
        true => texts(scope, value.values()),
        false => scope.string(&value.to_string()),
    }
}

fn of_outgoing<'js>(
    scope: &Scope<'js>,
    it: &OutgoingMessage,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    let name = || text(scope, args, 0);
    Ok(Some(match operation {
        "setHeader" => {
            let value = value(scope, &arg(scope, args, 1))?;
            thrown(scope, it.try_set_header(name()?, value))?;
            scope.undefined()
        }
        "appendHeader" => {
            let value = value(scope, &arg(scope, args, 1))?;
            thrown(scope, it.append_header(name()?, value).map(drop))?;
            scope.undefined()
        }
        "removeHeader" => {
            thrown(scope, it.remove_header(&name()?))?;
            scope.undefined()
        }
        "getHeader" => match it.get_header(&name()?) {
            Some(value) => shown_value(scope, &value)?,
            None => scope.undefined(),
        },
        "hasHeader" => scope.boolean(it.has_header(&name()?)),
        "headerNames" => texts(scope, &it.header_names())?,
        "rawHeaderNames" => texts(scope, &it.raw_header_names())?,
        "headersSent" => scope.boolean(it.headers_sent()),
        "flushHeaders" => {
            it.flush_headers();
            scope.undefined()
        }
        "addTrailers" => {
            let trailers = pairs(scope, &arg(scope, args, 0))?;
            thrown(scope, it.add_trailers(trailers))?;
            scope.undefined()
        }
        "strictContentLength" => {
            it.strict_content_length(arg(scope, args, 0).is_truthy());
            scope.undefined()
        }
        "socket" => match it.socket() {
            Some(socket) => socket_object(scope, &socket)?,
            None => scope.null(),
        },
        _ => return Ok(None),
    }))
}

fn of_response<'js>(
    scope: &Scope<'js>,
    it: &ServerResponse,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    match operation {
        "status" => {
            if !args.is_empty() {
                it.set_status(number(scope, args, 0) as u16);
            }
            return Ok(Some(scope.number(f64::from(it.status()))));
        }
        "statusMessage" => {
            if !args.is_empty() {
                it.set_status_message(text(scope, args, 0)?);
            }
            return Ok(Some(match it.status_message() {
                Some(text) => scope.string(&text)?,
                None => scope.undefined(),
            }));
        }
        "sendDate" => _ = it.send_date(arg(scope, args, 0).is_truthy()),
        "shouldKeepAlive" => _ = it.set_keep_alive(arg(scope, args, 0).is_truthy()),
        "writeHead" => {
            let reason = arg(scope, args, 1).as_text();
            let headers = pairs(scope, &arg(scope, args, 2))?;
            let status = number(scope, args, 0) as u16;
            thrown(scope, it.try_write_head(status, reason.as_deref(), headers))?;
        }
        "writeContinue" => {
            let callback = arg(scope, args, 0);
            match callback.is_function() {
                true => {
                    let callback = scope.hold(&callback);
                    it.write_continue_with(move |result| {
                        callback.call(|scope| match result {
                            Ok(()) => Ok(Vec::new()),
                            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
                        });
                    });
                }
                false => it.write_continue(),
            }
        }
        "writeProcessing" => it.write_processing(),
        "writeEarlyHints" => {
            let hints = pairs(scope, &arg(scope, args, 0))?;
            thrown(scope, it.write_early_hints(hints))?;
        }
        "setTimeout" => _ = it.set_timeout(delay(scope, args)),
        _ => return Ok(None),
    }
    Ok(Some(scope.undefined()))
}

fn of_request<'js>(
    scope: &Scope<'js>,
    it: &ClientRequest,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    Ok(Some(match operation {
        "method" => scope.string(it.method())?,
        "path" => scope.string(it.path())?,
        "reusedSocket" => scope.boolean(it.reused_socket()),
        "setTimeout" => {
            it.set_timeout(delay(scope, args));
            scope.undefined()
        }
        _ => return Ok(None),
    }))
}
