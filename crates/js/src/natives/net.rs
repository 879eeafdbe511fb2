//! Sockets and servers of TCP and of local sockets.

use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::Emitter as _;
use phaseloop_node::net::{
    Address, BlockList, CONNECT, CONNECTION, ConnectOptions, DROP, KeepAliveOptions, LISTENING,
    ListenOptions, READY, Server, Socket, SocketOptions, TIMEOUT,
};
use phaseloop_node::{Delay, Error, stream};

use super::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use super::stream::{Handle, bind, keep, object_of};
use super::{arg, number, operations, text};
use crate::engine::{Closure, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("socket", new_socket),
    ("netServer", new_server),
    ("ipVersion", ip_version),
    ("blockList", block_list),
];

/// Returns 4 or 6 for the text of an address, otherwise 0.
fn ip_version<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let parsed = text(scope, args, 0)?.parse::<std::net::IpAddr>();
    Ok(scope.number(match parsed {
        Ok(address) if address.is_ipv4() => 4.0,
        Ok(_) => 6.0,
        Err(_) => 0.0,
    }))
}

/// Creates a list of addresses, and returns the function that calls it.
fn block_list<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let list = BlockList::new();
    let closure: Closure = Rc::new(move |scope, args| {
        let ip = |index: usize| -> Res<'_, std::net::IpAddr> {
            let text = text(scope, args, index)?;
            text.parse().map_err(|_| {
                let error = Error::type_error(format!("Invalid address: {text}"));
                scope.throw_reason(&error.coded("ERR_INVALID_ADDRESS").into())
            })
        };
        let added = match text(scope, args, 0)?.as_str() {
            "address" => {
                list.add_address(ip(1)?);
                Ok(())
            }
            "range" => list.add_range(ip(1)?, ip(2)?),
            "subnet" => list.add_subnet(ip(1)?, number(scope, args, 2) as u8),
            "check" => return Ok(scope.boolean(ip(1).is_ok_and(|it| list.check(it)))),
            "lend" => {
                scope.inner.data.lent_list.set(Some(list.clone()));
                Ok(())
            }
            _ => {
                let rules: Res<'_, Vec<_>> =
                    list.rules().iter().map(|it| scope.string(it)).collect();
                return scope.array(&rules?);
            }
        };
        match added {
            Ok(()) => Ok(scope.undefined()),
            Err(error) => Err(scope.throw_reason(&error.into())),
        }
    });
    scope.closure("list", closure)
}

/// Returns the list of the option `blockList`.
fn lent_list<'js>(scope: &Scope<'js>, options: &Val<'js>) -> Res<'js, Option<BlockList>> {
    let native = option(scope, options, "blockList")?.get(scope, "native")?;
    if native.is_function() {
        native.call(&scope.undefined(), &[scope.string("lend")?])?;
    }
    Ok(scope.inner.data.lent_list.take())
}

/// Returns the property of an object.
fn option<'js>(scope: &Scope<'js>, options: &Val<'js>, name: &str) -> Res<'js> {
    options.get(scope, name)
}

fn socket_options<'js>(scope: &Scope<'js>, options: &Val<'js>) -> Res<'js, SocketOptions> {
    let mark = option(scope, options, "highWaterMark")?.as_number();
    Ok(SocketOptions {
        allow_half_open: option(scope, options, "allowHalfOpen")?.is_truthy(),
        high_water_mark: mark.map(|mark| mark as usize),
    })
}

/// Returns the address of the options of `listen` and `connect`.
pub(super) fn address<'js>(scope: &Scope<'js>, options: &Val<'js>) -> Res<'js, Address> {
    if let Some(path) = option(scope, options, "path")?.as_text() {
        return Ok(Address::Path(path.into()));
    }
    let port = option(scope, options, "port")?.as_number().unwrap_or(0.0) as u16;
    Ok(match option(scope, options, "host")?.as_text() {
        Some(host) => Address::Host(host, port),
        None => Address::Port(port),
    })
}

/// Returns Node's object of an address.
pub(super) fn shown<'js>(scope: &Scope<'js>, address: Option<SocketAddr>) -> Res<'js> {
    let object = scope.object()?;
    if let Some(address) = address {
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        object.set("address", &scope.string(&address.ip().to_string())?)?;
        object.set("family", &scope.string(family)?)?;
        object.set("port", &scope.number(f64::from(address.port())))?;
    }
    Ok(object)
}

/// Creates the socket of an object, and returns the function that calls it.
fn new_socket<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = socket_options(scope, &arg(scope, args, 1))?;
    bind_socket(scope, &arg(scope, args, 0), Socket::with_options(options))
}

/// Binds a socket. A socket that is no clone keeps its listeners when it is closed.
fn bind_socket<'js>(scope: &Scope<'js>, object: &Val<'js>, socket: Socket) -> Res<'js> {
    let mut handle = Handle::of_bytes(Some(socket.readable()), Some(socket.writable()));
    handle.socket = Some(socket);
    bind(scope, object, handle)
}

/// Returns the object of a socket of Rust; a new one, if it has none.
pub(super) fn socket_object<'js>(scope: &Scope<'js>, socket: &Socket) -> Res<'js> {
    let known = object_of(scope, socket.duplex().readable().id())?;
    if !known.is_undefined() {
        return Ok(known);
    }
    let it = socket.clone();
    let bind: Closure =
        Rc::new(move |scope, args| bind_socket(scope, &arg(scope, args, 0), it.clone()));
    let object = scope.internal("wrapSocket", &[scope.closure("", bind)?])?;
    keep(scope, &object, socket.emitter(), socket.readable().id());
    Ok(object)
}

/// Adds a listener for an event that streams do not have.
pub(super) fn listen_socket(
    socket: &Socket,
    listen: Listen,
) -> Result<phaseloop_node::events::ListenerId, Listen> {
    let emitter = socket.emitter();
    Ok(match listen.name.as_str() {
        "connect" => listen.plain(emitter, CONNECT),
        "ready" => listen.plain(emitter, READY),
        "timeout" => listen.plain(emitter, TIMEOUT),
        "close" => {
            let weak = phaseloop_node::events::WeakThis::weak_this(socket);
            listen.add(emitter, stream::CLOSE, move |scope, ()| {
                let had_error = weak().is_some_and(|socket| socket.had_error());
                Ok(vec![scope.boolean(had_error)])
            })
        }
        _ => return Err(listen),
    })
}

/// Returns how many listeners an event has that streams do not have.
pub(super) fn count_socket(socket: &Socket, name: &str) -> Option<usize> {
    let emitter = socket.emitter();
    Some(match name {
        "connect" => emitter.listener_count(CONNECT),
        "ready" => emitter.listener_count(READY),
        "timeout" => emitter.listener_count(TIMEOUT),
        _ => return None,
    })
}

fn connect<'js>(scope: &Scope<'js>, socket: &Socket, args: &[Val<'js>]) -> Res<'js> {
    let options = arg(scope, args, 0);
    let address = address(scope, &options)?;
    let local = option(scope, &options, "localAddress")?.as_text();
    let port = option(scope, &options, "localPort")?.as_number();
    let block_list = lent_list(scope, &options)?;
    if local.is_none() && port.is_none() && block_list.is_none() {
        socket.connect(address);
        return Ok(scope.undefined());
    }
    let options = ConnectOptions {
        local_address: local.and_then(|it| it.parse().ok()),
        local_port: port.unwrap_or(0.0) as u16,
        block_list,
        ..ConnectOptions::default()
    };
    socket.connect_with_options(address, options);
    Ok(scope.undefined())
}

/// What concerns a socket; `None` for what all streams have.
pub(super) fn socket_operation<'js>(
    scope: &Scope<'js>,
    socket: &Socket,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    let first = || arg(scope, args, 0).is_truthy();
    Ok(Some(match operation {
        "connect" => {
            keep(
                scope,
                &arg(scope, args, 1),
                socket.emitter(),
                socket.readable().id(),
            );
            connect(scope, socket, args)?
        }
        "setTimeout" => {
            match number(scope, args, 0) {
                delay if delay > 0.0 => socket.set_timeout(delay),
                _ => socket.clear_timeout(),
            }
            scope.undefined()
        }
        "setNoDelay" => {
            socket.set_no_delay(first());
            scope.undefined()
        }
        "setKeepAlive" => {
            let delay = |index| arg(scope, args, index).as_number().map(Delay::from);
            socket.set_keep_alive_with(KeepAliveOptions {
                enable: first(),
                initial_delay: delay(1),
                interval: delay(2),
                count: arg(scope, args, 3).as_number().map(|it| it as u32),
            });
            scope.undefined()
        }
        "ref" => {
            match first() {
                true => socket.ref_(),
                false => socket.unref(),
            };
            scope.undefined()
        }
        "destroySoon" => {
            socket.destroy_soon();
            scope.undefined()
        }
        "reset" => {
            socket.reset_and_destroy();
            scope.undefined()
        }
        "connecting" => scope.boolean(socket.connecting()),
        "pending" => scope.boolean(socket.pending()),
        "readyState" => scope.string(socket.ready_state())?,
        "bytesRead" => scope.number(socket.bytes_read() as f64),
        "bytesWritten" => scope.number(socket.bytes_written() as f64),
        "local" => shown(scope, socket.local_address())?,
        "remote" => shown(scope, socket.remote_address())?,
        "halfOpen" => match args.is_empty() {
            true => scope.boolean(socket.allow_half_open()),
            false => {
                socket.set_allow_half_open(first());
                scope.undefined()
            }
        },
        _ => return Ok(None),
    }))
}

/// Creates the server of an object, and returns the function that calls it.
fn new_server<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = arg(scope, args, 0);
    let server = Server::with_options(socket_options(scope, &options)?);
    let flag = |name: &str| -> Res<'js, bool> { Ok(option(scope, &options, name)?.is_truthy()) };
    server.set_pause_on_connect(flag("pauseOnConnect")?);
    server.set_no_delay(flag("noDelay")?);
    if let Some(list) = lent_list(scope, &options)? {
        server.set_block_list(&list);
    }
    if flag("keepAlive")? {
        let delay = option(scope, &options, "keepAliveInitialDelay")?.as_number();
        server.set_keep_alive(true, delay.unwrap_or(0.0));
    }
    let listeners = Numbered::default();
    operations(scope, "server", move |scope, operation, args| {
        server_operation(scope, &server, &listeners, operation, args)
    })
}

fn server_operation<'js>(
    scope: &Scope<'js>,
    server: &Server,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = server.emitter();
    Ok(match operation {
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            let id = match listen.name.as_str() {
                "listening" => listen.plain(emitter, LISTENING),
                "connection" => listen.add(emitter, CONNECTION, |scope, socket: &Socket| {
                    Ok(vec![socket_object(scope, socket)?])
                }),
                "drop" => listen.add(emitter, DROP, |scope, dropped| {
                    Ok(vec![shown_drop(scope, dropped.local, dropped.remote)?])
                }),
                _ => listen.end(emitter),
            };
            note(listeners, key, id);
            scope.undefined()
        }
        "off" => {
            remove(scope, listeners, emitter, args);
            scope.undefined()
        }
        "emit" => return emit_error(scope, emitter, args),
        "count" => scope.number(match text(scope, args, 0)?.as_str() {
            "listening" => emitter.listener_count(LISTENING),
            "connection" => emitter.listener_count(CONNECTION),
            "drop" => emitter.listener_count(DROP),
            name => count_end(emitter, name),
        } as f64),
        "listen" => {
            let options = arg(scope, args, 0);
            let backlog = option(scope, &options, "backlog")?.as_number();
            let settings = ListenOptions {
                backlog: backlog.map_or(511, |it| it as u32),
                ipv6_only: option(scope, &options, "ipv6Only")?.is_truthy(),
                reuse_port: option(scope, &options, "reusePort")?.is_truthy(),
                signal: None,
            };
            server.listen_with_options(address(scope, &options)?, settings);
            scope.undefined()
        }
        "close" => {
            close(scope, server, &arg(scope, args, 0));
            scope.undefined()
        }
        "address" => match server.address() {
            None => scope.null(),
            address => shown(scope, address)?,
        },
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(stream::CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
            scope.undefined()
        }
        "listening" => scope.boolean(server.is_listening()),
        "connections" => scope.number(server.connections() as f64),
        "getConnections" => {
            let callback = scope.hold(&arg(scope, args, 0));
            server.get_connections(move |result| {
                callback.call(|scope| match result {
                    Ok(count) => Ok(vec![scope.null(), scope.number(count as f64)]),
                    Err(error) => Ok(vec![error::of_node(scope, &error)?]),
                });
            });
            scope.undefined()
        }
        "maxConnections" => {
            let most = arg(scope, args, 0).as_number();
            server.set_max_connections(most.map(|most| most as usize));
            scope.undefined()
        }
        "ref" => {
            match arg(scope, args, 0).is_truthy() {
                true => server.ref_(),
                false => server.unref(),
            };
            scope.undefined()
        }
        _ => scope.undefined(),
    })
}

fn close<'js>(scope: &Scope<'js>, server: &Server, callback: &Val<'js>) {
    if !callback.is_function() {
        return server.close();
    }
    let callback = scope.hold(callback);
    server.close_with_result(move |result: Result<(), Error>| {
        callback.call(|scope| match result {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    });
}

fn shown_drop<'js>(
    scope: &Scope<'js>,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
) -> Res<'js> {
    let object = scope.object()?;
    for (side, address) in [("local", local), ("remote", remote)] {
        let shown = shown(scope, address)?;
        for (key, from) in [
            ("Address", "address"),
            ("Port", "port"),
            ("Family", "family"),
        ] {
            object.set(&format!("{side}{key}"), &shown.get(scope, from)?)?;
        }
    }
    Ok(object)
}
