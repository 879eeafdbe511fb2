//! Errors of requests to the system, in Node's words.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::system::{Endpoint, Request, code_of, errno_of, head_of_file, text_of_socket};
use super::{Cause, Error, Inner};
use phaseloop::{OsError, os_error};

impl Error {
    pub(super) fn of_system(
        code: Option<&'static str>,
        message: String,
        request: Request,
        error: io::Error,
    ) -> Self {
        let inner = Rc::new(Inner {
            name: Cow::Borrowed("Error"),
            code: code.map(Cow::Borrowed),
            message: Cow::Owned(message),
            cause: Some(Cause::Io(error)),
            request: Some(Box::new(request)),
            site: None,
            value: None,
        });
        Self { inner }
    }

    /// Creates an error of a socket. An error without a code of Node's keeps its own text.
    fn of_socket(
        error: io::Error,
        syscall: &'static str,
        says_why: bool,
        endpoint: &Endpoint<'_>,
    ) -> Self {
        let code = code_of(&error);
        let text = code.map(|code| text_of_socket(syscall, code, says_why, endpoint));
        let request = Request {
            syscall: syscall.into(),
            path: match endpoint {
                Endpoint::Path(path) => Some((*path).to_owned()),
                _ => None,
            },
            address: match endpoint {
                Endpoint::Address(address) => Some(*address),
                _ => None,
            },
            ..Request::default()
        };
        let text = text.unwrap_or_else(|| format!("{syscall}: {error}"));
        Self::of_system(code, text, request, error)
    }

    /// Creates `read ECONNRESET`.
    pub(crate) fn of_call(error: io::Error, syscall: &'static str) -> Self {
        Self::of_socket(error, syscall, false, &Endpoint::None)
    }

    /// Creates `write EPIPE` for an error of the system that does not name its call, and keeps the
    /// text of any other.
    pub(crate) fn of_io(error: io::Error, syscall: &'static str) -> Self {
        match os_error(&error) {
            Some(_) if OsError::of(&error).is_none() => Self::of_call(error, syscall),
            _ => error.into(),
        }
    }

    /// Creates the error of a call that was not made.
    pub(crate) fn of_code(code: &'static str, syscall: &'static str) -> Self {
        let text = format!("{syscall} {code}");
        Self::unasked(code, syscall, text, errno_of(code))
    }

    /// Creates the error of an operation of a file that is closed.
    pub(crate) fn of_closed_file(syscall: &'static str) -> Self {
        Self::unasked("EBADF", syscall, "file closed".to_owned(), None)
    }

    /// Creates an error of which the system knows nothing.
    fn unasked(
        code: &'static str,
        syscall: &'static str,
        text: String,
        errno: Option<i32>,
    ) -> Self {
        let request = Request {
            syscall: syscall.into(),
            errno,
            ..Request::default()
        };
        let error = Self::with_code(code, text);
        error.change(|inner| inner.request = Some(Box::new(request)))
    }

    /// Creates `connect ECONNREFUSED 127.0.0.1:1` or `connect ENOENT /no/such/socket`, with the
    /// address or path that `error` carries.
    pub(crate) fn of_connect(error: io::Error) -> Self {
        Self::of_endpoint(error, "connect", false, None)
    }

    /// Creates `connect ENETUNREACH 224.0.0.1:1 - Local (0.0.0.0:0)`: as in Node, an error of the
    /// call itself names the local address, which a local socket does not have.
    pub(crate) fn of_connect_call(error: io::Error, local: Option<SocketAddr>) -> Self {
        let local = match local {
            Some(local) => format!("{}:{}", local.ip(), local.port()),
            None => "undefined:undefined".to_owned(),
        };
        let error = Self::of_connect(error);
        let text = format!("{} - Local ({local})", error.message());
        error.change(|inner| inner.message = text.into())
    }

    /// Creates `listen EADDRINUSE: address already in use 127.0.0.1:1`.
    pub(crate) fn of_listen(error: io::Error, address: Option<SocketAddr>) -> Self {
        Self::of_endpoint(error, "listen", true, address)
    }

    /// Creates `listen EADDRINUSE: address already in use /path`. As libuv does, it reports a
    /// directory that is not there as one that does not permit the socket.
    pub(crate) fn of_listen_at(error: io::Error, path: &Path) -> Self {
        let error = match error.kind() {
            io::ErrorKind::NotFound => io::ErrorKind::PermissionDenied.into(),
            _ => error,
        };
        Self::of_socket(error, "listen", true, &Endpoint::Path(path))
    }

    /// Creates `bind EADDRINUSE 127.0.0.1:1` or `send EMSGSIZE 127.0.0.1:1`.
    pub(crate) fn of_address(error: io::Error, syscall: &'static str, to: SocketAddr) -> Self {
        Self::of_endpoint(error, syscall, false, Some(to))
    }

    /// Creates an error of a socket with `address`, or else with the address or path that `error`
    /// carries.
    pub(super) fn of_endpoint(
        error: io::Error,
        syscall: &'static str,
        says_why: bool,
        address: Option<SocketAddr>,
    ) -> Self {
        let about = OsError::of(&error);
        let address = address.or_else(|| about?.address());
        let path = about.and_then(OsError::path).map(Path::to_owned);
        let endpoint = match (address, &path) {
            (Some(address), _) => Endpoint::Address(address),
            (None, Some(path)) => Endpoint::Path(path),
            (None, None) => Endpoint::None,
        };
        Self::of_socket(error, syscall, says_why, &endpoint)
    }

    /// Creates the error of `rm` for a directory without `recursive`: `Path is a directory: rm
    /// returned EISDIR (is a directory) /path`.
    pub(crate) fn of_rm_of_directory(path: PathBuf) -> Self {
        Self::of_files("ERR_FS_EISDIR", "rm", "is a directory", path)
    }

    /// Creates the error of `cp`.
    pub(crate) fn of_cp(code: &'static str, why: String, path: &Path) -> Self {
        Self::of_files(code, "cp", &why, path.to_owned())
    }

    /// Creates an error that Node finds itself, in the form of a system error.
    fn of_files(code: &'static str, syscall: &'static str, why: &str, path: PathBuf) -> Self {
        let (head, returned) = head_of_file(code);
        let place = path.display();
        // As in Node, the number of such an error is positive.
        let errno = errno_of(returned).map(|number| -number);
        let text = format!("{head}: {syscall} returned {returned} ({why}) {place}");
        let request = Request {
            syscall: syscall.into(),
            path: Some(path),
            errno,
            ..Request::default()
        };
        let error = Self::named("SystemError", text).coded(code);
        error.change(|inner| inner.request = Some(Box::new(request)))
    }

    /// Creates `spawn no-such-program ENOENT`.
    pub(crate) fn of_spawn(error: io::Error, program: &Path) -> Self {
        let (code, name) = (code_of(&error), program.display());
        let text = match code {
            Some(code) => format!("spawn {name} {code}"),
            None => error.to_string(),
        };
        let request = Request {
            syscall: format!("spawn {name}").into(),
            path: Some(program.to_owned()),
            ..Request::default()
        };
        Self::of_system(code, text, request, error)
    }

    /// Creates `getaddrinfo ENOTFOUND no.such.name`. Errors of the resolver have no kinds: either
    /// the name is unknown, or no name server answered.
    pub(crate) fn of_lookup(error: io::Error, host: &str) -> Self {
        let known = code_of(&error).filter(|code| *code != "ENOENT");
        let (code, errno) = match known {
            Some(code) => (code, None),
            // These are the texts of the C libraries; the standard library does not expose the
            // code. The numbers are those of libuv.
            None if is_temporary(&error.to_string()) => ("EAI_AGAIN", Some(-3001)),
            None => ("ENOTFOUND", Some(-3008)),
        };
        let text = text_of_socket("getaddrinfo", code, false, &Endpoint::Name(host));
        let request = Request {
            syscall: "getaddrinfo".into(),
            host: Some(host.into()),
            errno,
            ..Request::default()
        };
        Self::of_system(Some(code), text, request, error)
    }
}

fn is_temporary(text: &str) -> bool {
    let words = ["Temporary failure", "Try again", "temporarily"];
    words.iter().any(|words| text.contains(words))
}
