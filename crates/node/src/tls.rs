//! Encrypted sockets and servers: Node's `tls`, on rustls.
//!
//! ```no_run
//! use phaseloop_node::{Emitter, Exit, net::CONNECT, run, tls};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let socket = tls::connect(("example.org", 443));
//!         socket.on_this(CONNECT, |socket, ()| socket.end("GET / HTTP/1.0\r\n\r\n"));
//!         socket.on_text(|text| println!("{text}"));
//!     })
//! }
//! ```
//!
//! A socket is a [`net::Socket`](super::net::Socket) whose connection encrypts: all of its methods
//! and events work. [`CONNECT`](super::net::CONNECT) is emitted when the handshake is complete and
//! the peer is verified, where Node emits `'secureConnect'`.
//!
//! | JavaScript | here |
//! |---|---|
//! | `tls.connect({ port, host, servername, ca })` | [`connect`], [`connect_with`] |
//! | `tls.createSecureContext({ ca })` | [`ClientContext::with_ca`] |
//! | `tls.createSecureContext({ cert, key })` of a client | [`ClientContext::with_certificate`] |
//! | `tls.createServer({ cert, key }, listener)` | [`create_server`] |
//! | `{ requestCert: true, ca }` | [`ServerContext::with_client_ca`] |
//! | `server.addContext(name, context)` | [`ServerContext::add_context`] |
//! | `{ SNICallback }` | [`ServerContext::with_sni_callback`] |
//! | `{ ALPNCallback }` | [`ServerContext::with_alpn_callback`] |
//! | `tls.connect({ socket: duplex })` | [`connect_over`] |
//! | `new tls.TLSSocket(duplex, ..)` | [`accept_over`] |
//! | `{ ALPNProtocols }` | [`ServerContext::with_alpn_protocols`] and that of the client |
//! | `alpnProtocol`, `getPeerCertificate`, `isSessionReused` of a socket | [`session`] |
//!
//! Peers are verified against Mozilla's roots, which are compiled in as in Node. There is no option
//! that switches the verification off. A peer that fails it is an error with Node's code:
//! `DEPTH_ZERO_SELF_SIGNED_CERT`, `UNABLE_TO_VERIFY_LEAF_SIGNATURE`, `CERT_HAS_EXPIRED`,
//! `ERR_TLS_CERT_ALTNAME_INVALID`. For a certificate that a server has made for itself, name that
//! certificate in [`ClientContext::with_ca`].
//!
//! Left out: `rejectUnauthorized: false`, and session tickets of one's own.

mod accepting;
mod certificate;
mod choice;
mod context;
mod der;
mod over;
mod session;
mod stream;
mod verify;

use std::panic::Location;
use std::rc::Rc;

use rustls::pki_types::ServerName;

pub use self::certificate::Certificate;
pub use self::context::{ClientContext, ServerContext};
pub use self::over::{accept_over, connect_over};
pub use self::session::{Session, session};
use self::stream::TlsStream;
use super::error::Error;
use super::net::{Address, Connection, Server, Socket, SocketOptions, open_connection};
use crate::site::Site;

/// Creates a socket and connects it to a host whose certificate must be for the name in `address`.
/// JavaScript: `tls.connect(port, host)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Emitter, Exit, net::CONNECT, run, tls};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let socket = tls::connect(("example.org", 443));
///         socket.on_this(CONNECT, |socket, ()| socket.end(()));
///     })
/// }
/// ```
#[track_caller]
pub fn connect(address: impl Into<Address>) -> Socket {
    connect_with(address, None, &ClientContext::new())
}

/// Creates a socket and connects it to a peer whose certificate is for `server_name`, or for the
/// host of `address`, and is verified by `context`. JavaScript: `tls.connect({ port, host,
/// servername, ca })`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{run, tls};
///
/// fn main() -> phaseloop_node::Exit<()> {
///     let ca = std::fs::read("ca.pem").unwrap();
///     run(async move {
///         let context = tls::ClientContext::with_ca(&ca).unwrap();
///         let socket = tls::connect_with(("127.0.0.1", 8443), Some("localhost"), &context);
///         socket.end("hello");
///     })
/// }
/// ```
#[track_caller]
pub fn connect_with(
    address: impl Into<Address>,
    server_name: Option<&str>,
    context: &ClientContext,
) -> Socket {
    let socket = Socket::new();
    connect_socket(
        &socket,
        address.into(),
        server_name,
        context,
        Location::caller(),
    );
    socket
}

/// Connects a socket that has its options already, for a line of the program.
pub(super) fn connect_socket(
    socket: &Socket,
    address: Address,
    server_name: Option<&str>,
    context: &ClientContext,
    site: Site,
) {
    let context = context.clone();
    let name = match (server_name, &address) {
        (Some(name), _) => name.to_owned(),
        (None, Address::Host(host, _)) => host.clone(),
        (None, Address::Socket(address)) => address.ip().to_string(),
        (None, Address::Port(_) | Address::Path(_)) => "localhost".to_owned(),
    };
    socket.connect_by(site, async move {
        let Ok(server) = ServerName::try_from(name.clone()) else {
            return Err(bad_name(&name));
        };
        let connection = open_connection(address, site, Rc::default()).await?;
        let stream = TlsStream::client(connection, &context, server)?;
        stream.shake_hands().await?;
        let stream: Box<dyn Connection> = Box::new(stream);
        Ok(stream)
    });
}

fn bad_name(name: &str) -> Error {
    let message = format!("{name} is no name of a host");
    Error::with_code("ERR_INVALID_ARG_VALUE", message)
}

/// Creates a server with a certificate. `listener` gets each socket whose handshake is complete. A
/// handshake that fails, or takes two minutes, closes its connection without an event. JavaScript:
/// `tls.createServer({ cert, key }, listener)`.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{run, tls};
///
/// fn main() -> phaseloop_node::Exit<()> {
///     let certificate = std::fs::read("certificate.pem").unwrap();
///     let key = std::fs::read("key.pem").unwrap();
///     run(async move {
///         let context = tls::ServerContext::new(&certificate, &key).unwrap();
///         let server = tls::create_server(&context, |socket| socket.end("hello"));
///         server.listen(8443);
///     })
/// }
/// ```
pub fn create_server(context: &ServerContext, listener: impl Fn(&Socket) + 'static) -> Server {
    let server = super::net::create_server_with(SocketOptions::default(), listener);
    encrypt(&server, context);
    server
}

/// Lets a server accept encrypted connections only.
pub(super) fn encrypt(server: &Server, context: &ServerContext) {
    let context = context.clone();
    server.wrap_listener(Rc::new(move |listener| {
        Box::new(accepting::TlsListener::new(listener, context.clone()))
    }));
}
