//! What a handshake has agreed on.

use rustls::{Connection, HandshakeKind, ProtocolVersion};

use super::Certificate;

use crate::net::Socket;

/// Returns what the handshake of a socket has agreed on. `None` if the socket is not connected, or
/// not encrypted.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Emitter, Exit, net::CONNECT, run, tls};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let socket = tls::connect(("example.org", 443));
///         socket.on_this(CONNECT, |socket, ()| {
///             let session = tls::session(socket).unwrap();
///             println!("{:?} {:?}", session.protocol(), session.cipher());
///             for certificate in session.peer_certificates() {
///                 println!("{}", certificate.fingerprint256());
///             }
///             socket.end(());
///         });
///     })
/// }
/// ```
#[must_use]
pub fn session(socket: &Socket) -> Option<Session> {
    socket.session()
}

/// What a handshake has agreed on. JavaScript: properties of `tls.TLSSocket`.
///
/// A client that connects to a server again with the same [`ClientContext`](super::ClientContext),
/// or a clone, resumes the session of the time before, if the server has kept it. A resumed session
/// has the certificates of the first handshake; in Node it has none.
#[derive(Clone, Debug)]
pub struct Session {
    alpn_protocol: Option<String>,
    protocol: Option<&'static str>,
    cipher: Option<String>,
    server_name: Option<String>,
    is_reused: bool,
    peer_certificates: Vec<Certificate>,
}

impl Session {
    pub(super) fn of(session: &Connection) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let cipher = session.negotiated_cipher_suite();
        let certificates = session.peer_certificates().unwrap_or_default();
        Self {
            alpn_protocol: session.alpn_protocol().map(text),
            protocol: match session.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => Some("TLSv1.3"),
                Some(ProtocolVersion::TLSv1_2) => Some("TLSv1.2"),
                _ => None,
            },
            // The names of the standard have no number.
            cipher: cipher.map(|cipher| {
                let name = format!("{:?}", cipher.suite());
                name.replacen("TLS13_", "TLS_", 1)
            }),
            server_name: match session {
                Connection::Server(session) => session.server_name().map(str::to_owned),
                Connection::Client(_) => None,
            },
            is_reused: session.handshake_kind() == Some(HandshakeKind::Resumed),
            peer_certificates: certificates
                .iter()
                .map(|certificate| Certificate::new(certificate))
                .collect(),
        }
    }

    /// Returns the protocol that the server has chosen. JavaScript: `socket.alpnProtocol`, which is
    /// `false` if there is none.
    #[must_use]
    pub fn alpn_protocol(&self) -> Option<&str> {
        self.alpn_protocol.as_deref()
    }

    /// Returns `TLSv1.3` or `TLSv1.2`. JavaScript: `socket.getProtocol()`.
    #[must_use]
    pub fn protocol(&self) -> Option<&'static str> {
        self.protocol
    }

    /// Returns the name of the cipher suite in the standard. JavaScript:
    /// `socket.getCipher().standardName`.
    #[must_use]
    pub fn cipher(&self) -> Option<&str> {
        self.cipher.as_deref()
    }

    /// Returns the name that the client has asked for; on the server's side alone. JavaScript:
    /// `socket.servername`.
    #[must_use]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns whether the handshake has resumed an earlier session. JavaScript:
    /// `socket.isSessionReused()`.
    #[must_use]
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Returns the certificates of the peer, its own one first. A client shows none, unless the
    /// server asks. JavaScript: `socket.getPeerCertificate(true)`.
    #[must_use]
    pub fn peer_certificates(&self) -> &[Certificate] {
        &self.peer_certificates
    }

    /// Returns the certificate of the peer. JavaScript: `socket.getPeerCertificate()`.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<&Certificate> {
        self.peer_certificates.first()
    }
}
