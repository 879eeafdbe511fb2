//! Names of OS error numbers.

use std::io;

/// Returns the name of an error number, such as `ENOENT`. `None` for a number that is not listed,
/// and on platforms without `errno`.
#[cfg(unix)]
#[allow(dead_code, reason = "called by the layer for Node only")]
pub(crate) fn name(number: i32) -> Option<&'static str> {
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

#[cfg(not(unix))]
#[allow(dead_code, reason = "called by the layer for Node only")]
pub(crate) fn name(_number: i32) -> Option<&'static str> {
    None
}

/// Returns the error of an operation whose handle was closed before it completed.
#[cfg(unix)]
pub(crate) fn cancelled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}

#[cfg(not(unix))]
pub(crate) fn cancelled() -> io::Error {
    io::Error::other("the handle was closed before the operation completed")
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
