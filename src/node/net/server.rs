//! Servers.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::Location;
use std::rc::{Rc, Weak};

use super::super::abort::AbortController;
use super::super::callback_futures::{call_user, in_callbacks};
use super::super::dns;
use super::super::error::Error;
use super::super::events::{ERROR, Emitter, Event, EventEmitter};
use super::super::stream::CLOSE;
use super::address::Address;
use super::connection::Listener;
use super::local;
use super::socket::{Socket, SocketOptions};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::net::TcpSocket;
use crate::site::Site;
use crate::task::next_tick;

/// The server listens.
pub const LISTENING: Event<()> = Event::new("listening");

/// Somebody has connected.
pub const CONNECTION: Event<Socket> = Event::new("connection");

/// How many connections wait to be accepted.
const BACKLOG: u32 = 511;

/// A server that calls `listener` with each connection. It does not listen yet.
pub fn create_server(listener: impl Fn(&Socket) + 'static) -> Server {
    let server = Server::new();
    server.on(CONNECTION, listener);
    server
}

/// A server whose sockets are made with options. It does not listen yet. JavaScript: `net.createServer({ allowHalfOpen,
/// highWaterMark }, listener)`.
pub fn create_server_with(options: SocketOptions, listener: impl Fn(&Socket) + 'static) -> Server {
    let server = create_server(listener);
    server.inner.options.set(options);
    server
}

/// Waits for connections. A clone is the same server.
///
/// While it listens it lives on its loop, and keeps that alive.
///
/// An error of accepting that does not concern one connection, such as `ENOBUFS` or `EPERM`, is emitted as
/// [`ERROR`](super::super::events::ERROR). The server stays open and tries again some milliseconds later.
#[derive(Clone)]
pub struct Server {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    emitter: EventEmitter,
    address: Cell<Option<SocketAddr>>,
    /// Ends the accepting; `None` when the server does not listen.
    listening: RefCell<Option<AbortController>>,
    connections: Cell<usize>,
    /// Changes with each close: what was begun before does not listen any more.
    generation: Cell<u64>,
    /// How its sockets are made.
    options: Cell<SocketOptions>,
    /// The listening socket. The task that accepts owns it, so that it closes with the loop.
    listener: RefCell<Option<Weak<dyn Listener>>>,
    /// It does not keep the loop alive.
    is_unreferenced: Cell<bool>,
}

impl Server {
    /// A server without listeners.
    #[must_use]
    pub fn new() -> Self {
        let inner = Rc::<Inner>::default();
        inner.emitter.set_class("Server");
        Self { inner }
    }

    /// Listens: at once, and says so by a tick. An error is emitted, by a tick. A name is looked up first.
    ///
    /// A bare port is listened to on all addresses, of IPv6 and of IPv4; of IPv4 alone where there is no IPv6.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn listen(&self, address: impl Into<Address>) {
        let (address, site) = (address.into(), Location::caller());
        let listener = match (&address, address.to_listen()) {
            (Address::Path(path), _) => {
                local::listen(path, site).map_err(|error| Error::of_listen(error, None))
            }
            (Address::Port(port), Some(address)) => bind(address, site).or_else(|error| {
                if error.code() == Some("EADDRINUSE") {
                    return Err(error);
                }
                // There is no IPv6.
                bind((Ipv4Addr::UNSPECIFIED, *port).into(), site)
            }),
            (_, Some(address)) => bind(address, site),
            (Address::Host(host, port), None) => return self.look_up(host, *port, site),
            (_, None) => unreachable!("what is no name and no path has an address"),
        };
        self.listen_on(listener, site);
    }

    #[track_caller]
    fn look_up(&self, host: &str, port: u16, site: Site) {
        let (server, generation) = (self.clone(), self.inner.generation.get());
        dns::lookup(host, move |address| {
            if server.inner.generation.get() != generation {
                // Closed meanwhile.
                return;
            }
            match address {
                Ok(address) => {
                    let listener = bind((address, port).into(), site);
                    server.listen_on(listener, site);
                }
                Err(error) => {
                    server.inner.emitter.emit(ERROR, &error);
                }
            }
        });
    }

    #[track_caller]
    fn listen_on(&self, listener: Result<Box<dyn Listener>, Error>, site: Site) {
        let server = self.clone();
        match listener {
            Ok(listener) => {
                self.inner.address.set(listener.address());
                self.start(listener, site);
                next_tick(move || {
                    // It may have been closed meanwhile.
                    if server.is_listening() {
                        server.inner.emitter.emit(LISTENING, ());
                    }
                });
            }
            Err(error) => {
                next_tick(move || {
                    server.inner.emitter.emit(ERROR, &error);
                });
            }
        }
    }

    /// Listens, and calls `callback` when it does.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn listen_with(&self, address: impl Into<Address>, callback: impl FnOnce() + 'static) {
        self.once(LISTENING, move |()| callback());
        self.listen(address);
    }

    /// Listens, and calls `callback` with the server when it does.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::node::{net, run};
    ///
    /// run(async {
    ///     let server = net::create_server(|socket| socket.end_chunk("hello"));
    ///     server.listen_this(("127.0.0.1", 0), |server| {
    ///         println!("listening on {}", server.address().unwrap());
    ///         server.close();
    ///     });
    /// });
    /// ```
    #[track_caller]
    pub fn listen_this(&self, address: impl Into<Address>, callback: impl FnOnce(&Self) + 'static) {
        self.once_this(LISTENING, move |server, ()| callback(server));
        self.listen(address);
    }

    fn start(&self, listener: Box<dyn Listener>, site: Site) {
        let (server, controller) = (self.clone(), AbortController::new());
        let signal = controller.signal();
        let before = self.inner.listening.replace(Some(controller));
        drop(before);
        let listener: Rc<dyn Listener> = Rc::from(listener);
        listener.set_referenced(!self.inner.is_unreferenced.get());
        self.inner.listener.replace(Some(Rc::downgrade(&listener)));
        in_callbacks(async move {
            let closed = signal.clone();
            let accepting = signal.guard(async move {
                while !closed.aborted() {
                    match listener.accept(site).await {
                        Ok(connection) => {
                            server.inner.connections.set(server.connections() + 1);
                            let inner = server.inner.clone();
                            let gone = Box::new(move || inner.socket_gone());
                            let socket = Socket::of(connection, server.inner.options.get(), gone);
                            call_user(|| server.inner.emitter.emit(CONNECTION, &socket));
                        }
                        Err(error) if is_worth_an_event(&error, &*listener) => {
                            let error = Error::of_call(error, "accept");
                            call_user(|| server.inner.emitter.emit(ERROR, &error));
                        }
                        Err(_) => {}
                    }
                }
            });
            // Aborted, it was closed.
            drop(accepting.await);
        });
    }

    /// Accepts no more. [`CLOSE`] is emitted by a tick, when no connection is left.
    pub fn close(&self) {
        self.inner.generation.set(self.inner.generation.get() + 1);
        let listener = self.inner.listener.take();
        drop(listener);
        let listening = self.inner.listening.take();
        if let Some(listening) = listening {
            listening.abort();
        }
        self.inner.close_if_drained();
    }

    /// Accepts no more, and calls `callback` when it is closed.
    pub fn close_with(&self, callback: impl FnOnce() + 'static) {
        self.once(CLOSE, move |()| callback());
        self.close();
    }

    /// Whether the server listens.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.inner.listening.borrow().is_some()
    }

    /// The address that is listened on. `None` for a local socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.inner.address.get()
    }

    /// Calls back with the number of open connections, by a tick. JavaScript: `server.getConnections(callback)`; the number
    /// itself is [`connections`](Self::connections).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn get_connections(&self, callback: impl FnOnce(Result<usize, Error>) + 'static) {
        let count = self.connections();
        next_tick(move || callback(Ok(count)));
    }

    /// Lets the loop end although the server listens. JavaScript: `server.unref()`.
    pub fn unref(&self) {
        self.set_referenced(false);
    }

    /// Makes the server keep the loop alive while it listens; it does from the start. JavaScript: `server.ref()`.
    pub fn ref_(&self) {
        self.set_referenced(true);
    }

    fn set_referenced(&self, is_referenced: bool) {
        self.inner.is_unreferenced.set(!is_referenced);
        let listener = self.inner.listener.borrow().clone();
        if let Some(listener) = listener.and_then(|listener| listener.upgrade()) {
            listener.set_referenced(is_referenced);
        }
    }

    /// How many of its connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.connections.get()
    }
}

/// Whether an error of accepting is the server's, which its listeners hear while it rests. A connection that was gone
/// before it was accepted is none of theirs, nor are those that were turned away for want of a descriptor.
fn is_worth_an_event(error: &io::Error, listener: &dyn Listener) -> bool {
    listener.is_resting() && error.kind() != io::ErrorKind::ConnectionAborted
}

#[track_caller]
fn bind(address: SocketAddr, site: Site) -> Result<Box<dyn Listener>, Error> {
    bind_now(address, site).map_err(|error| Error::of_listen(error, Some(address)))
}

#[track_caller]
fn bind_now(address: SocketAddr, site: Site) -> io::Result<Box<dyn Listener>> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        let socket = TcpSocket::new_v6()?;
        // All addresses are those of IPv4 as well.
        if address.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        socket
    };
    socket.bind(address)?;
    let handle = LoopHandle::current();
    Ok(Box::new(socket.listen_on(&handle, BACKLOG, site)?))
}

impl Inner {
    fn socket_gone(self: &Rc<Self>) {
        self.connections.set(self.connections.get() - 1);
        self.close_if_drained();
    }

    fn close_if_drained(self: &Rc<Self>) {
        if self.listening.borrow().is_none() && self.connections.get() == 0 {
            let server = self.clone();
            next_tick(move || {
                server.emitter.emit(CLOSE, ());
            });
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter for Server {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }

    /// Weak: a server keeps its listeners after its close, since it may listen again. While it emits, it is there.
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = Rc::downgrade(&self.inner);
        Box::new(move || this.upgrade().map(|inner| Self { inner }))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address())
            .field("listening", &self.is_listening())
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
