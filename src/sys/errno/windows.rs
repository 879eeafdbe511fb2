//! Names of Windows' error numbers: those under which libuv reports them.

use windows_sys::Win32::Foundation::*;
use windows_sys::Win32::Networking::WinSock::*;

/// Returns the name of an error number, such as `ENOENT`. `None` for a number that is not listed.
pub fn name(number: i32) -> Option<&'static str> {
    match u32::try_from(number).ok()? {
        number @ 10_000..12_000 => name_of_socket_error(number as i32),
        number => name_of_system_error(number),
    }
}

fn name_of_system_error(number: u32) -> Option<&'static str> {
    Some(match number {
        ERROR_META_EXPANSION_TOO_LONG => "E2BIG",
        ERROR_CANT_ACCESS_FILE | ERROR_ELEVATION_REQUIRED | ERROR_NOACCESS => "EACCES",
        ERROR_ADDRESS_ALREADY_ASSOCIATED => "EADDRINUSE",
        ERROR_INVALID_FLAGS | ERROR_INVALID_HANDLE => "EBADF",
        ERROR_BUSY | ERROR_LOCK_VIOLATION | ERROR_PIPE_BUSY | ERROR_SHARING_VIOLATION => "EBUSY",
        ERROR_OPERATION_ABORTED => "ECANCELED",
        ERROR_CONNECTION_ABORTED => "ECONNABORTED",
        ERROR_CONNECTION_REFUSED => "ECONNREFUSED",
        ERROR_NETNAME_DELETED => "ECONNRESET",
        ERROR_ALREADY_EXISTS | ERROR_FILE_EXISTS => "EEXIST",
        ERROR_BUFFER_OVERFLOW => "EFAULT",
        ERROR_FILE_TOO_LARGE => "EFBIG",
        ERROR_HOST_UNREACHABLE => "EHOSTUNREACH",
        ERROR_INSUFFICIENT_BUFFER
        | ERROR_INVALID_DATA
        | ERROR_INVALID_PARAMETER
        | ERROR_NEGATIVE_SEEK
        | ERROR_NOT_A_REPARSE_POINT
        | ERROR_SYMLINK_NOT_SUPPORTED => "EINVAL",
        ERROR_CRC | ERROR_DISK_CORRUPT | ERROR_GEN_FAILURE | ERROR_IO_DEVICE
        | ERROR_NO_SIGNAL_SENT | ERROR_OPEN_FAILED | ERROR_SIGNAL_REFUSED => "EIO",
        ERROR_DIRECTORY_NOT_SUPPORTED | ERROR_INVALID_FUNCTION => "EISDIR",
        ERROR_CANT_RESOLVE_FILENAME => "ELOOP",
        ERROR_TOO_MANY_OPEN_FILES => "EMFILE",
        ERROR_TOO_MANY_LINKS => "EMLINK",
        ERROR_FILENAME_EXCED_RANGE => "ENAMETOOLONG",
        ERROR_NETWORK_UNREACHABLE => "ENETUNREACH",
        ERROR_BAD_NETPATH
        | ERROR_BAD_NET_NAME
        | ERROR_BAD_PATHNAME
        | ERROR_ENVVAR_NOT_FOUND
        | ERROR_FILE_NOT_FOUND
        | ERROR_INVALID_DRIVE
        | ERROR_INVALID_NAME
        | ERROR_INVALID_REPARSE_DATA
        | ERROR_MOD_NOT_FOUND
        | ERROR_PATH_NOT_FOUND => "ENOENT",
        ERROR_NOT_ENOUGH_MEMORY | ERROR_OUTOFMEMORY => "ENOMEM",
        ERROR_CANNOT_MAKE | ERROR_DISK_FULL | ERROR_HANDLE_DISK_FULL => "ENOSPC",
        ERROR_CALL_NOT_IMPLEMENTED => "ENOSYS",
        ERROR_NOT_CONNECTED => "ENOTCONN",
        // libuv reports `ENOENT` for this one in general, and `ENOTDIR` where a directory is read.
        ERROR_DIRECTORY => "ENOTDIR",
        ERROR_DIR_NOT_EMPTY => "ENOTEMPTY",
        ERROR_NOT_SUPPORTED => "ENOTSUP",
        ERROR_ACCESS_DENIED | ERROR_PRIVILEGE_NOT_HELD => "EPERM",
        ERROR_BAD_PIPE | ERROR_BROKEN_PIPE | ERROR_NO_DATA | ERROR_PIPE_NOT_CONNECTED => "EPIPE",
        ERROR_WRITE_PROTECT => "EROFS",
        ERROR_SEEK_ON_DEVICE => "ESPIPE",
        ERROR_SEM_TIMEOUT | WAIT_TIMEOUT => "ETIMEDOUT",
        ERROR_NOT_SAME_DEVICE => "EXDEV",
        _ => return None,
    })
}

fn name_of_socket_error(number: i32) -> Option<&'static str> {
    Some(match number {
        WSAEACCES => "EACCES",
        WSAEADDRINUSE => "EADDRINUSE",
        WSAEADDRNOTAVAIL => "EADDRNOTAVAIL",
        WSAEAFNOSUPPORT => "EAFNOSUPPORT",
        WSAEWOULDBLOCK => "EAGAIN",
        WSAEALREADY => "EALREADY",
        WSAEBADF => "EBADF",
        WSAECANCELLED | WSAEINTR | WSA_E_CANCELLED => "ECANCELED",
        WSAECONNABORTED => "ECONNABORTED",
        WSAECONNREFUSED => "ECONNREFUSED",
        WSAECONNRESET | WSAENETRESET => "ECONNRESET",
        WSAEDESTADDRREQ => "EDESTADDRREQ",
        WSAEFAULT => "EFAULT",
        WSAEHOSTDOWN => "EHOSTDOWN",
        WSAEHOSTUNREACH => "EHOSTUNREACH",
        WSAEINVAL | WSAEPFNOSUPPORT => "EINVAL",
        WSAEISCONN => "EISCONN",
        WSAELOOP => "ELOOP",
        WSAEMFILE => "EMFILE",
        WSAEMSGSIZE => "EMSGSIZE",
        WSAENAMETOOLONG => "ENAMETOOLONG",
        WSAENETDOWN => "ENETDOWN",
        WSAENETUNREACH => "ENETUNREACH",
        WSAENOBUFS => "ENOBUFS",
        WSAHOST_NOT_FOUND | WSANO_DATA => "ENOENT",
        WSAENOPROTOOPT => "ENOPROTOOPT",
        WSAENOTCONN => "ENOTCONN",
        WSAENOTEMPTY => "ENOTEMPTY",
        WSAENOTSOCK => "ENOTSOCK",
        WSAEOPNOTSUPP => "ENOTSUP",
        WSAESHUTDOWN => "EPIPE",
        WSAEPROTONOSUPPORT => "EPROTONOSUPPORT",
        WSAEPROTOTYPE => "EPROTOTYPE",
        WSAESOCKTNOSUPPORT => "ESOCKTNOSUPPORT",
        WSAETIMEDOUT => "ETIMEDOUT",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::name;
    use std::io::{Error, ErrorKind};

    #[test]
    fn numbers_have_the_names_of_unix() {
        for (number, expected) in [
            (2, "ENOENT"),
            (5, "EPERM"),
            (32, "EBUSY"),
            (145, "ENOTEMPTY"),
            (10048, "EADDRINUSE"),
            (10054, "ECONNRESET"),
            (10058, "EPIPE"),
            (10061, "ECONNREFUSED"),
        ] {
            assert_eq!(name(number), Some(expected), "{number}");
        }
        assert_eq!((name(0), name(-1), name(10_999)), (None, None, None));
    }

    /// A kind and a name of one error must not contradict each other.
    #[test]
    fn names_fit_the_kinds_of_the_standard_library() {
        let pairs = [
            ("EADDRINUSE", ErrorKind::AddrInUse),
            ("EADDRNOTAVAIL", ErrorKind::AddrNotAvailable),
            ("EAGAIN", ErrorKind::WouldBlock),
            ("ECONNABORTED", ErrorKind::ConnectionAborted),
            ("ECONNREFUSED", ErrorKind::ConnectionRefused),
            ("EEXIST", ErrorKind::AlreadyExists),
            ("EHOSTUNREACH", ErrorKind::HostUnreachable),
            ("ENETDOWN", ErrorKind::NetworkDown),
            ("ENETUNREACH", ErrorKind::NetworkUnreachable),
            ("ENOTCONN", ErrorKind::NotConnected),
            ("ENOTDIR", ErrorKind::NotADirectory),
            ("EROFS", ErrorKind::ReadOnlyFilesystem),
            ("EXDEV", ErrorKind::CrossesDevices),
        ];
        for number in 0..12_000 {
            let kind = Error::from_raw_os_error(number).kind();
            for (expected, of_name) in pairs {
                if kind == of_name {
                    assert!(
                        name(number).is_none_or(|name| name == expected),
                        "{number}: {:?}, {kind:?}",
                        name(number)
                    );
                }
            }
        }
    }
}
