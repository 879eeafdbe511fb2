//! Sockets for datagrams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use phaseloop_node::dgram::{CONNECT, Datagram, Interface, MESSAGE, Socket, SocketOptions};
use phaseloop_node::events::Emitter as _;
use phaseloop_node::net::LISTENING;
use phaseloop_node::{Error, Reason, stream};

use super::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use super::net::shown;
use super::{arg, number, operations, text};
use crate::engine::{Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[("datagrams", new)];

/// Creates a socket with options, and returns the function that calls it.
fn new<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let given = arg(scope, args, 0);
    let flag = |name: &str| -> Res<'js, bool> { Ok(given.get(scope, name)?.is_truthy()) };
    let size = |name: &str| -> Res<'js, Option<usize>> {
        Ok(given.get(scope, name)?.as_number().map(|it| it as usize))
    };
    let socket = Socket::with_options(SocketOptions {
        reuse_addr: flag("reuseAddr")?,
        reuse_port: flag("reusePort")?,
        ipv6_only: flag("ipv6Only")?,
        recv_buffer_size: size("recvBufferSize")?,
        send_buffer_size: size("sendBufferSize")?,
        ..SocketOptions::default()
    });
    let listeners = Numbered::default();
    operations(
        scope,
        "socket",
        move |scope, operation, args| match operation {
            "on" => {
                let listen = Listen::new(scope, args)?;
                let key = listen.key();
                note(&listeners, key, listen_to(&socket, listen));
                Ok(scope.undefined())
            }
            "off" => {
                remove(scope, &listeners, socket.emitter(), args);
                Ok(scope.undefined())
            }
            _ => operate(scope, &socket, operation, args),
        },
    )
}

fn listen_to(socket: &Socket, listen: Listen) -> phaseloop_node::events::ListenerId {
    let emitter = socket.emitter();
    match listen.name.as_str() {
        "listening" => listen.plain(emitter, LISTENING),
        "connect" => listen.plain(emitter, CONNECT),
        "message" => listen.add(emitter, MESSAGE, |scope, message: &Datagram| {
            let from = shown(scope, Some(message.from))?;
            from.set("size", &scope.number(message.bytes.len() as f64))?;
            let bytes = scope.internal("asBuffer", &[scope.bytes(&message.bytes)?])?;
            Ok(vec![bytes, from])
        }),
        _ => listen.end(emitter),
    }
}

fn ip<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, IpAddr> {
    let text = text(scope, args, index)?;
    text.parse().map_err(|_| {
        let error = Error::type_error(format!("Invalid address: {text}"));
        scope.throw_reason(&Reason::new(error.coded("ERR_INVALID_ADDRESS")))
    })
}

/// Returns the address of two arguments: the IP address and the port.
fn address<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, SocketAddr> {
    let port = number(scope, args, index + 1) as u16;
    Ok(SocketAddr::new(ip(scope, args, index)?, port))
}

/// Returns the interface of an argument: an address, or a number.
fn interface<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, Interface> {
    let value = arg(scope, args, index);
    if value.is_nullish() {
        return Ok(Interface::Any);
    }
    let text = value.to_text()?;
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(address.into());
    }
    let number = text.rsplit('%').next().and_then(|it| it.parse().ok());
    Ok(number.map_or(Interface::Any, Interface::Index))
}

fn operate<'js>(
    scope: &Scope<'js>,
    socket: &Socket,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = socket.emitter();
    let amount = || number(scope, args, 0) as u32;
    let truth = || arg(scope, args, 0).is_truthy();
    match operation {
        "emit" => return emit_error(scope, emitter, args),
        "count" => {
            return Ok(scope.number(match text(scope, args, 0)?.as_str() {
                "listening" => emitter.listener_count(LISTENING),
                "connect" => emitter.listener_count(CONNECT),
                "message" => emitter.listener_count(MESSAGE),
                name => count_end(emitter, name),
            } as f64));
        }
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(stream::CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
        }
        "bind" => {
            let (at, callback) = (address(scope, args, 0)?, arg(scope, args, 2));
            match callback.is_function() {
                true => {
                    let callback = scope.hold(&callback);
                    socket.bind_with(at, move || callback.call(|_| Ok(Vec::new())));
                }
                false => socket.bind(at),
            }
        }
        "send" => send(scope, socket, args)?,
        "connect" => socket.connect(address(scope, args, 0)?),
        "disconnect" => socket.disconnect(),
        "remote" => return shown(scope, Some(socket.remote_address())),
        "address" => {
            return match socket.address() {
                Some(address) => shown(scope, Some(address)),
                None => Ok(scope.undefined()),
            };
        }
        "close" => socket.close(),
        "setTTL" => socket.set_ttl(amount()),
        "setBroadcast" => socket.set_broadcast(truth()),
        "setMulticastTTL" => socket.set_multicast_ttl(amount()),
        "setMulticastLoopback" => socket.set_multicast_loopback(truth()),
        "setMulticastInterface" => socket.set_multicast_interface(interface(scope, args, 0)?),
        "addMembership" => {
            socket.add_membership(ip(scope, args, 0)?, interface(scope, args, 1)?);
        }
        "dropMembership" => {
            socket.drop_membership(ip(scope, args, 0)?, interface(scope, args, 1)?);
        }
        "addSource" | "dropSource" => {
            let (source, group) = (ip(scope, args, 0)?, ip(scope, args, 1)?);
            let (IpAddr::V4(source), IpAddr::V4(group)) = (source, group) else {
                let text = "A source of a group of IPv6 is not implemented";
                let error = Error::with_code("ERR_METHOD_NOT_IMPLEMENTED", text);
                return Err(scope.throw_reason(&Reason::new(error)));
            };
            let interface = interface(scope, args, 2)?;
            match operation {
                "addSource" => socket.add_source_specific_membership(source, group, interface),
                _ => socket.drop_source_specific_membership(source, group, interface),
            }
        }
        "getRecvBufferSize" => return Ok(scope.number(socket.get_recv_buffer_size() as f64)),
        "getSendBufferSize" => return Ok(scope.number(socket.get_send_buffer_size() as f64)),
        "setRecvBufferSize" => socket.set_recv_buffer_size(amount() as usize),
        "setSendBufferSize" => socket.set_send_buffer_size(amount() as usize),
        _ => {}
    }
    Ok(scope.undefined())
}

/// Sends bytes to an address, or to the peer: the bytes, the callback, and the address.
fn send<'js>(scope: &Scope<'js>, socket: &Socket, args: &[Val<'js>]) -> Res<'js, ()> {
    let bytes = arg(scope, args, 0).to_bytes().unwrap_or_default();
    let callback = arg(scope, args, 1);
    let to = match arg(scope, args, 2).is_undefined() {
        true => None,
        false => Some(address(scope, args, 2)?),
    };
    if !callback.is_function() {
        match to {
            Some(to) => socket.send(&bytes, to),
            None => socket.send_to_peer(&bytes),
        }
        return Ok(());
    }
    let callback = scope.hold(&callback);
    let sent = move |result: Result<usize, Error>| {
        callback.call(|scope| match result {
            Ok(size) => Ok(vec![scope.null(), scope.number(size as f64)]),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    };
    match to {
        Some(to) => socket.send_with(&bytes, to, sent),
        None => socket.send_to_peer_with(&bytes, sent),
    }
    Ok(())
}
