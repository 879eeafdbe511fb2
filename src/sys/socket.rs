//! Socket operations that `std` and `socket2` do not offer.
#![allow(unsafe_code, reason = "a datagram socket loses its peer by a call")]

mod options;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
#[cfg(unix)]
use socket2::{SockAddrStorage, SockRef};

pub(crate) use options::{join_from, keepalive, leave_from, set_tos, tos};

/// Creates a non-blocking, close-on-exec socket.
pub(crate) fn socket(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Socket> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return Socket::new(domain, kind.nonblocking(), protocol);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let socket = Socket::new(domain, kind, protocol)?;
        socket.set_nonblocking(true)?;
        // Windows excludes IPv4 from IPv6 sockets by default; other platforms, and libuv, do not.
        #[cfg(windows)]
        if domain == Domain::IPV6 {
            socket.set_only_v6(false)?;
        }
        Ok(socket)
    }
}

/// Starts to connect. It returns `true` if the socket is connected at once, and `false` if the
/// attempt is in progress.
///
/// An interrupted call is repeated. If the first call has started the attempt, the second one
/// reports it.
pub(crate) fn connect(socket: &Socket, address: &SockAddr) -> io::Result<bool> {
    let mut was_interrupted = false;
    loop {
        match socket.connect(address) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => was_interrupted = true,
            Err(error) if was_interrupted && is_done(&error) => return Ok(true),
            Err(error) if is_under_way(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Makes a socket listen. One without an address gets any, which Windows leaves to the caller.
pub(crate) fn listen(socket: &Socket, backlog: i32) -> io::Result<()> {
    if cfg!(windows) && socket.local_addr().is_err() {
        let any = |ip: IpAddr| socket.bind(&SocketAddr::new(ip, 0).into());
        // Only one of both is of the socket's family.
        any(Ipv4Addr::UNSPECIFIED.into()).or_else(|_| any(Ipv6Addr::UNSPECIFIED.into()))?;
    }
    socket.listen(backlog)
}

/// The length of an address of no family. The kernel of macOS wants that of a whole `sockaddr`.
#[cfg(unix)]
const UNSPECIFIED_LENGTH: libc::socklen_t = size_of::<libc::sockaddr>() as libc::socklen_t;

/// Takes the peer of a connected datagram socket off.
pub(crate) fn disconnect(socket: &std::net::UdpSocket) -> io::Result<()> {
    #[cfg(unix)]
    {
        // SAFETY: all zeros are an address of the family `AF_UNSPEC`, of any length.
        let nowhere = unsafe { SockAddr::new(SockAddrStorage::zeroed(), UNSPECIFIED_LENGTH) };
        SockRef::from(socket).connect(&nowhere)
    }
    #[cfg(not(unix))]
    socket.connect((Ipv4Addr::UNSPECIFIED, 0))
}

/// Connects a Unix or datagram socket, which is connected at once or not at all.
#[cfg(unix)]
pub(crate) fn connect_at_once(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    loop {
        match socket.connect(address) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            connected => return connected,
        }
    }
}

/// Adds a scope to a link-local IPv6 address without one: that of the first interface with a
/// link-local address. Such an address alone does not name an interface.
#[inline]
pub(crate) fn fill_scope(address: SocketAddr) -> SocketAddr {
    #[cfg(unix)]
    if let SocketAddr::V6(mut address) = address {
        if address.scope_id() == 0 && address.ip().is_unicast_link_local() {
            if let Some(scope) = super::interfaces::link_local_scope() {
                address.set_scope_id(scope);
            }
            return address.into();
        }
    }
    address
}

fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    let under_way = matches!(
        error.raw_os_error(),
        Some(libc::EINPROGRESS | libc::EALREADY)
    );
    #[cfg(not(unix))]
    let under_way = false;
    under_way || error.kind() == io::ErrorKind::WouldBlock
}

/// Returns whether the error of a second `connect` says that the first one has succeeded.
fn is_done(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EISCONN);
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

/// Accepts a connection in non-blocking, close-on-exec mode.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let (stream, address) = SockRef::from(listener).accept4(flags)?;
        let address = address.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        Ok((stream.into(), address))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let (stream, address) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok((stream, address))
    }
}

/// Lets no further handshake begin on a listener, where that is possible; those under way complete.
/// The peers try again, and are refused after the close. Returns whether it has an effect.
#[cfg(feature = "cluster")]
pub(crate) fn hold_back(listener: &TcpListener) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use socket2::SockFilter;
        const FLAGS: u32 = 13;
        const SYN: u32 = 2;
        const ACK: u32 = 16;
        const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
        const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
        const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        // It drops what begins a handshake. A connection inherits the filter, which does not
        // concern its packets.
        let program = [
            SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
            SockFilter::new(AND, 0, 0, SYN | ACK),
            SockFilter::new(IF_EQUAL, 0, 1, SYN),
            SockFilter::new(RETURN, 0, 0, 0),
            SockFilter::new(RETURN, 0, 0, u32::MAX),
        ];
        SockRef::from(listener).attach_filter(&program).is_ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = listener;
        false
    }
}

/// Returns whether the socket is a TCP socket. It returns `false` on platforms where nothing
/// depends on it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn is_tcp(socket: impl std::os::fd::AsFd) -> bool {
    matches!(SockRef::from(&socket).protocol(), Ok(Some(Protocol::TCP)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn is_tcp<S>(_: S) -> bool {
    false
}

#[cfg(unix)]
pub(crate) use std::os::fd::BorrowedFd as BorrowedSocket;
#[cfg(not(unix))]
pub(crate) use std::os::windows::io::BorrowedSocket;

/// What lends its socket to calls of the OS.
pub(crate) trait Lend {
    fn lend(&self) -> BorrowedSocket<'_>;
}

#[cfg(unix)]
impl<S: std::os::fd::AsFd> Lend for S {
    fn lend(&self) -> BorrowedSocket<'_> {
        self.as_fd()
    }
}

#[cfg(not(unix))]
impl<S: std::os::windows::io::AsSocket> Lend for S {
    fn lend(&self) -> BorrowedSocket<'_> {
        self.as_socket()
    }
}

/// The sockets of the internet that another process may send.
#[cfg(unix)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Internet {
    Listener,
    Stream,
    Datagrams,
}

/// Checks what a descriptor is.
///
/// # Errors
///
/// `InvalidInput`, which names what was expected.
#[cfg(unix)]
pub(crate) fn expect(descriptor: &std::os::fd::OwnedFd, expected: Internet) -> io::Result<()> {
    let socket = SockRef::from(descriptor);
    let (kind, name) = match expected {
        Internet::Listener => (Type::STREAM, "a TCP listener"),
        Internet::Stream => (Type::STREAM, "a TCP stream"),
        Internet::Datagrams => (Type::DGRAM, "a UDP socket"),
    };
    // A descriptor that is no socket fails here.
    let is_kind = socket.r#type().is_ok_and(|found| found == kind);
    let is_internet = socket
        .local_addr()
        .is_ok_and(|address| address.as_socket().is_some());
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    let is_role = kind == Type::DGRAM
        || socket
            .is_listener()
            .is_ok_and(|listens| listens == (expected == Internet::Listener));
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let is_role = true;
    if is_kind && is_internet && is_role {
        return Ok(());
    }
    let text = format!("the descriptor is not {name}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Sets whether several sockets can be bound to one address (`SO_REUSEPORT`).
pub(crate) fn set_reuse_port(socket: &Socket, reuse: bool) -> io::Result<()> {
    #[cfg(unix)]
    return socket.set_reuse_port(reuse);
    #[cfg(not(unix))]
    {
        let _ = (socket, reuse);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Lets several sockets listen on one address, where the kernel spreads the connections over them.
/// macOS and the other BSDs give them all to one socket.
#[cfg(feature = "cluster")]
pub(crate) fn set_spread_port(socket: &Socket) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return socket.set_reuse_port(true);
    #[cfg(target_os = "freebsd")]
    return socket.set_reuse_port_lb(true);
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    {
        let _ = socket;
        let text = "the kernel does not spread connections over listeners of one port";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }
}

/// Returns whether several sockets can be bound to one address (`SO_REUSEPORT`).
pub(crate) fn reuse_port(socket: &Socket) -> io::Result<bool> {
    #[cfg(unix)]
    return socket.reuse_port();
    #[cfg(not(unix))]
    {
        let _ = socket;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sets `SO_REUSEADDR`, so that an address can be bound while old connections are in `TIME_WAIT`.
/// Windows allows that by default, and there the option has another meaning.
pub(crate) fn allow_lingering_address(socket: &Socket) -> io::Result<()> {
    #[cfg(unix)]
    return socket.set_reuse_address(true);
    #[cfg(not(unix))]
    {
        let _ = socket;
        Ok(())
    }
}

/// Returns whether an error of `accept` concerns one connection only, which is lost: the next
/// attempt gets the next connection.
pub(crate) fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    #[cfg(unix)]
    if let Some(libc::EPROTO | libc::ENOPROTOOPT | libc::EHOSTDOWN) = error.raw_os_error() {
        return true;
    }
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::HostUnreachable
            | Kind::NetworkDown
            | Kind::NetworkUnreachable
            | Kind::TimedOut
    )
}

/// Returns whether an error of `accept` says that the listener does not accept any more.
#[cfg(any(feature = "cluster", feature = "hyper"))]
pub(crate) fn is_of_listener(error: &io::Error) -> bool {
    #[cfg(unix)]
    return matches!(
        error.raw_os_error(),
        Some(libc::EBADF | libc::ECANCELED | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP)
    );
    #[cfg(not(unix))]
    {
        // WSAEINVAL, WSAENOTSOCK, WSAEOPNOTSUPP
        matches!(error.raw_os_error(), Some(10022 | 10038 | 10045))
    }
}

/// Returns whether the error is `EMFILE` or `ENFILE`: no descriptor is left in the process or in
/// the OS.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(unix)]
    return matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    #[cfg(not(unix))]
    {
        // WSAEMFILE
        error.raw_os_error() == Some(10024)
    }
}

/// A reserve descriptor for the case that none is left, shared by the loops of the process.
#[cfg(unix)]
mod reserve {
    use std::fs::File;
    use std::sync::{Mutex, PoisonError};

    static RESERVE: Mutex<Option<File>> = Mutex::new(None);

    /// Opens the reserve if it is closed. An error is ignored: without a reserve, connections wait
    /// instead of being refused.
    pub(crate) fn ensure_open() {
        let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
        if reserve.is_none() {
            *reserve = File::open("/dev/null").ok();
        }
    }

    /// Closes the reserve, calls `f`, and opens the reserve again. `None` if there was no reserve.
    pub(crate) fn with_spare<R>(f: impl FnOnce() -> R) -> Option<R> {
        let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = reserve.take()?;
        drop(spare);
        let result = f();
        *reserve = File::open("/dev/null").ok();
        Some(result)
    }
}

#[cfg(not(unix))]
mod reserve {
    pub(crate) fn ensure_open() {}

    pub(crate) fn with_spare<R>(_: impl FnOnce() -> R) -> Option<R> {
        None
    }
}

pub(crate) use reserve::{ensure_open as keep_reserve, with_spare};
