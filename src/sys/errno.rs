//! Names of OS error numbers.

use std::io;

/// Returns the name of an error number, such as `ENOENT`. `None` for a number that is not listed.
#[cfg(unix)]
pub fn name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => {
            match number {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        };
    }
    names! {
        E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBUSY ECANCELED ECONNABORTED ECONNREFUSED
        ECONNRESET EDESTADDRREQ EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EILSEQ EINTR EINVAL EIO EISCONN EISDIR ELOOP
        EMFILE EMLINK EMSGSIZE ENAMETOOLONG ENETDOWN ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT ENOMEM ENOPROTOOPT ENOSPC
        ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP ENOTTY ENXIO EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT
        EPROTOTYPE ERANGE EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ETIMEDOUT ETXTBSY EXDEV
    }
}

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::name;

/// What an error means, to compare it with another. Windows has several numbers for one meaning.
#[derive(Debug, PartialEq, Eq)]
#[cfg(feature = "fs")]
pub(crate) enum Meaning {
    Named(&'static str),
    Other(io::ErrorKind, Option<i32>),
}

#[cfg(feature = "fs")]
impl Meaning {
    pub(crate) fn of(error: &io::Error) -> Self {
        let number = error.raw_os_error();
        number
            .and_then(name)
            .map_or(Self::Other(error.kind(), number), Self::Named)
    }
}

/// Returns the error of an operation whose handle was closed before it completed.
#[cfg(unix)]
pub fn cancelled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}

/// Returns the error of an operation whose handle was closed.
#[cfg(not(unix))]
pub fn cancelled() -> io::Error {
    io::Error::other("operation canceled: its handle was closed")
}

/// Returns the error that a socket of the kernel has for a fault, with its number.
#[cfg(all(unix, feature = "test-util"))]
pub(crate) fn fault(fault: Fault) -> io::Error {
    io::Error::from_raw_os_error(match fault {
        Fault::AddressInUse => libc::EADDRINUSE,
        Fault::AddressNotAvailable => libc::EADDRNOTAVAIL,
        Fault::BrokenPipe => libc::EPIPE,
        Fault::Crashed => libc::ECONNABORTED,
        Fault::DestinationRequired => libc::EDESTADDRREQ,
        Fault::HostUnreachable => libc::EHOSTUNREACH,
        Fault::Invalid => libc::EINVAL,
        Fault::MessageSize => libc::EMSGSIZE,
        Fault::NetworkUnreachable => libc::ENETUNREACH,
        Fault::NotConnected => libc::ENOTCONN,
        Fault::NotThisFamily => libc::ENOPROTOOPT,
        Fault::Refused => libc::ECONNREFUSED,
        Fault::Reset => libc::ECONNRESET,
        Fault::TimedOut => libc::ETIMEDOUT,
        Fault::WouldBlock => libc::EAGAIN,
    })
}

#[cfg(all(not(unix), feature = "test-util"))]
pub(crate) fn fault(fault: Fault) -> io::Error {
    use io::ErrorKind as Kind;
    io::Error::from(match fault {
        Fault::AddressInUse => Kind::AddrInUse,
        Fault::AddressNotAvailable => Kind::AddrNotAvailable,
        Fault::BrokenPipe => Kind::BrokenPipe,
        Fault::Crashed => Kind::ConnectionAborted,
        Fault::DestinationRequired | Fault::NotConnected => Kind::NotConnected,
        Fault::HostUnreachable => Kind::HostUnreachable,
        Fault::Invalid | Fault::MessageSize | Fault::NotThisFamily => Kind::InvalidInput,
        Fault::NetworkUnreachable => Kind::NetworkUnreachable,
        Fault::Refused => Kind::ConnectionRefused,
        Fault::Reset => Kind::ConnectionReset,
        Fault::TimedOut => Kind::TimedOut,
        Fault::WouldBlock => Kind::WouldBlock,
    })
}

/// What a socket in memory may fail with.
#[cfg(feature = "test-util")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    AddressInUse,
    AddressNotAvailable,
    BrokenPipe,
    /// The host of the socket has crashed.
    Crashed,
    DestinationRequired,
    HostUnreachable,
    Invalid,
    MessageSize,
    NetworkUnreachable,
    NotConnected,
    /// The option belongs to sockets of the other family.
    NotThisFamily,
    Refused,
    Reset,
    TimedOut,
    WouldBlock,
}

#[cfg(feature = "test-util")]
impl From<Fault> for io::Error {
    fn from(kind: Fault) -> Self {
        fault(kind)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::name;

    #[test]
    fn numbers_have_their_names() {
        assert_eq!(name(libc::ENOENT), Some("ENOENT"));
        assert_eq!(name(libc::EWOULDBLOCK), Some("EAGAIN"));
        assert_eq!(name(0), None);
    }
}
