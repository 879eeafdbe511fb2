//! The kinds of errors of Windows that have none in the standard library.

use std::io::{self, ErrorKind};

/// Returns the kind of an error: on Windows also of errors that the standard library has no kind
/// for, and that have one on Unix.
#[cfg(any(feature = "fs", feature = "net"))]
pub(crate) fn kind_of(error: &io::Error) -> ErrorKind {
    missing_kind(error).unwrap_or_else(|| error.kind())
}

/// Gives an error its kind. Its number stays the source.
pub(crate) fn with_kind(error: io::Error) -> io::Error {
    match missing_kind(&error) {
        Some(kind) => io::Error::new(kind, error),
        None => error,
    }
}

fn missing_kind(error: &io::Error) -> Option<ErrorKind> {
    if !cfg!(windows) {
        return None;
    }
    error.raw_os_error().and_then(kind_on_windows)
}

/// Returns the kind that an error of Windows has on Unix, under the name that libuv gives it.
const fn kind_on_windows(number: i32) -> Option<ErrorKind> {
    Some(match number {
        // Sharing and lock violations, and a pipe without a free instance.
        32 | 33 | 231 => ErrorKind::ResourceBusy,
        // ERROR_NOT_SUPPORTED, WSAEOPNOTSUPP
        50 | 10045 => ErrorKind::Unsupported,
        // ERROR_NETNAME_DELETED
        64 => ErrorKind::ConnectionReset,
        // A seek before the start; what a link is asked for, of a file that is none.
        131 | 1464 | 4390 => ErrorKind::InvalidInput,
        // Pipes without a peer, and WSAESHUTDOWN.
        230 | 233 | 10058 => ErrorKind::BrokenPipe,
        // ERROR_ELEVATION_REQUIRED, ERROR_NOACCESS, ERROR_PRIVILEGE_NOT_HELD,
        // ERROR_CANT_ACCESS_FILE
        740 | 998 | 1314 | 1920 => ErrorKind::PermissionDenied,
        // ERROR_CONNECTION_REFUSED
        1225 => ErrorKind::ConnectionRefused,
        // ERROR_ADDRESS_ALREADY_ASSOCIATED
        1227 => ErrorKind::AddrInUse,
        // ERROR_CONNECTION_ABORTED
        1236 => ErrorKind::ConnectionAborted,
        // ERROR_NOT_CONNECTED
        2250 => ErrorKind::NotConnected,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{kind_on_windows, missing_kind, with_kind};
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_write_after_a_shutdown_is_a_broken_pipe_on_windows() {
        assert_eq!(kind_on_windows(10058), Some(ErrorKind::BrokenPipe));
        assert_eq!(kind_on_windows(32), Some(ErrorKind::ResourceBusy));
        assert_eq!(kind_on_windows(2), None, "the standard library knows it");
    }

    #[test]
    fn an_error_keeps_its_number_beside_its_kind() {
        let number = 10058;
        let error = with_kind(Error::from_raw_os_error(number));
        #[cfg(feature = "net")]
        assert_eq!(crate::error::os_error(&error), Some(number));
        if cfg!(windows) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert_eq!(
                missing_kind(&Error::from_raw_os_error(number)),
                Some(error.kind())
            );
        }
    }
}
