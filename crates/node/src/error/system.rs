//! OS errors in Node's words: codes, texts, and the failed request.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use phaseloop::extension::errno_name;
use phaseloop::os_error;

/// What no OS error number reaches.
const LARGEST_NUMBER: i32 = 4096;

/// The request that failed: a system call and its operands.
#[derive(Default)]
pub(super) struct Request {
    pub(super) syscall: Cow<'static, str>,
    pub(super) path: Option<PathBuf>,
    /// The second path, for calls with two paths.
    pub(super) target: Option<PathBuf>,
    pub(super) address: Option<SocketAddr>,
    /// The name that was looked up.
    pub(super) host: Option<Box<str>>,
    /// The number, if it is not that of the OS error.
    pub(super) errno: Option<i32>,
}

/// Returns Node's code for an error: by its number, or by its kind where only one code fits.
pub(crate) fn code_of(error: &io::Error) -> Option<&'static str> {
    os_error(error)
        .and_then(errno_name)
        .or_else(|| code_of_kind(error.kind()))
}

/// Returns the negative OS error number for a code.
pub(super) fn errno_of(code: &str) -> Option<i32> {
    let mut numbers = 1..LARGEST_NUMBER;
    let number = numbers.find(|&number| errno_name(number) == Some(code));
    number.map(|number| -number)
}

fn code_of_kind(kind: io::ErrorKind) -> Option<&'static str> {
    use io::ErrorKind as Kind;
    Some(match kind {
        Kind::NotFound => "ENOENT",
        Kind::PermissionDenied => "EACCES",
        Kind::ConnectionRefused => "ECONNREFUSED",
        Kind::ConnectionReset => "ECONNRESET",
        Kind::HostUnreachable => "EHOSTUNREACH",
        Kind::NetworkUnreachable => "ENETUNREACH",
        Kind::ConnectionAborted => "ECONNABORTED",
        Kind::NotConnected => "ENOTCONN",
        Kind::AddrInUse => "EADDRINUSE",
        Kind::AddrNotAvailable => "EADDRNOTAVAIL",
        Kind::BrokenPipe => "EPIPE",
        Kind::AlreadyExists => "EEXIST",
        Kind::WouldBlock => "EAGAIN",
        Kind::NotADirectory => "ENOTDIR",
        Kind::IsADirectory => "EISDIR",
        Kind::DirectoryNotEmpty => "ENOTEMPTY",
        Kind::ReadOnlyFilesystem => "EROFS",
        Kind::InvalidInput => "EINVAL",
        Kind::TimedOut => "ETIMEDOUT",
        Kind::StorageFull => "ENOSPC",
        Kind::FileTooLarge => "EFBIG",
        Kind::ResourceBusy => "EBUSY",
        Kind::ExecutableFileBusy => "ETXTBSY",
        Kind::TooManyLinks => "EMLINK",
        Kind::ArgumentListTooLong => "E2BIG",
        Kind::Interrupted => "EINTR",
        Kind::OutOfMemory => "ENOMEM",
        _ => return None,
    })
}

/// Returns Node's text for a code.
pub(crate) fn text_of(code: &str) -> Option<&'static str> {
    Some(match code {
        "E2BIG" => "argument list too long",
        "EACCES" => "permission denied",
        "EADDRINUSE" => "address already in use",
        "EADDRNOTAVAIL" => "address not available",
        "EAFNOSUPPORT" => "address family not supported",
        "EAGAIN" => "resource temporarily unavailable",
        "EALREADY" => "connection already in progress",
        "EBADF" => "bad file descriptor",
        "EBUSY" => "resource busy or locked",
        "ECANCELED" => "operation canceled",
        "ECONNABORTED" => "software caused connection abort",
        "ECONNREFUSED" => "connection refused",
        "ECONNRESET" => "connection reset by peer",
        "EDESTADDRREQ" => "destination address required",
        "EEXIST" => "file already exists",
        "EFAULT" => "bad address in system call argument",
        "EFBIG" => "file too large",
        "EHOSTDOWN" => "host is down",
        "EHOSTUNREACH" => "host is unreachable",
        "EILSEQ" => "illegal byte sequence",
        "EINTR" => "interrupted system call",
        "EINVAL" => "invalid argument",
        "EIO" => "i/o error",
        "EISCONN" => "socket is already connected",
        "EISDIR" => "illegal operation on a directory",
        "ELOOP" => "too many symbolic links encountered",
        "EMFILE" => "too many open files",
        "EMLINK" => "too many links",
        "EMSGSIZE" => "message too long",
        "ENAMETOOLONG" => "name too long",
        "ENETDOWN" => "network is down",
        "ENETUNREACH" => "network is unreachable",
        "ENFILE" => "file table overflow",
        "ENOBUFS" => "no buffer space available",
        "ENODEV" => "no such device",
        "ENOENT" => "no such file or directory",
        "ENOMEM" => "not enough memory",
        "ENOPROTOOPT" => "protocol not available",
        "ENOSPC" => "no space left on device",
        "ENOSYS" => "function not implemented",
        "ENOTCONN" => "socket is not connected",
        "ENOTDIR" => "not a directory",
        "ENOTEMPTY" => "directory not empty",
        "ENOTSOCK" => "socket operation on non-socket",
        "ENOTSUP" => "operation not supported on socket",
        "ENOTTY" => "inappropriate ioctl for device",
        "ENXIO" => "no such device or address",
        "EOVERFLOW" => "value too large for defined data type",
        "EPERM" => "operation not permitted",
        "EPIPE" => "broken pipe",
        "EPROTO" => "protocol error",
        "EPROTONOSUPPORT" => "protocol not supported",
        "EPROTOTYPE" => "protocol wrong type for socket",
        "ERANGE" => "result too large",
        "EROFS" => "read-only file system",
        "ESHUTDOWN" => "cannot send after transport endpoint shutdown",
        "ESOCKTNOSUPPORT" => "socket type not supported",
        "ESPIPE" => "invalid seek",
        "ESRCH" => "no such process",
        "ETIMEDOUT" => "connection timed out",
        "ETXTBSY" => "text file is busy",
        "EXDEV" => "cross-device link not permitted",
        _ => return None,
    })
}

/// Returns Node's name of the system call behind an operation of [`phaseloop::fs`].
pub(super) fn syscall_of(operation: &'static str) -> &'static str {
    match operation {
        // Operations on whole files begin with `open`.
        "read" | "read_to_string" | "write" | "append" => "open",
        "read_at" => "read",
        "write_at" => "write",
        "set_len" => "ftruncate",
        "sync_all" => "fsync",
        "sync_data" => "fdatasync",
        "metadata" => "stat",
        "symlink_metadata" => "lstat",
        "remove_file" => "unlink",
        "remove_dir" => "rmdir",
        "remove_dir_all" => "rm",
        "create_dir" | "create_dir_all" => "mkdir",
        "scan_dir" | "read_dir" => "scandir",
        "copy" => "copyfile",
        "read_link" => "readlink",
        "canonicalize" => "realpath",
        "hard_link" => "link",
        "set_permissions" => "chmod",
        "set_times" => "utime",
        "set_times_nofollow" => "lutime",
        other => other,
    }
}

/// Returns the head of an error that Node finds itself, and the code that it compares with.
pub(super) fn head_of_file(code: &'static str) -> (&'static str, &'static str) {
    match code {
        "ERR_FS_EISDIR" => ("Path is a directory", "EISDIR"),
        "ERR_FS_CP_DIR_TO_NON_DIR" => ("Cannot overwrite non-directory with directory", "EISDIR"),
        "ERR_FS_CP_NON_DIR_TO_DIR" => ("Cannot overwrite directory with non-directory", "ENOTDIR"),
        "ERR_FS_CP_EEXIST" => ("Target already exists", "EEXIST"),
        "ERR_FS_CP_SYMLINK_TO_SUBDIRECTORY" => {
            ("Cannot overwrite symlink in subdirectory of self", "EINVAL")
        }
        "ERR_FS_CP_SOCKET" => ("Cannot copy a socket file", "EINVAL"),
        "ERR_FS_CP_FIFO_PIPE" => ("Cannot copy a FIFO pipe", "EINVAL"),
        _ => ("Invalid src or dest", "EINVAL"),
    }
}

/// Formats `ENOENT: no such file or directory, open 'x'`.
pub(super) fn text_of_file(code: &str, request: &Request) -> String {
    let mut text = format!("{code}: {}", text_of(code).unwrap_or("unknown error"));
    let _ = write!(text, ", {}", request.syscall);
    if let Some(path) = &request.path {
        let _ = write!(text, " '{}'", path.display());
    }
    if let Some(target) = &request.target {
        let _ = write!(text, " -> '{}'", target.display());
    }
    text
}

/// The peer or local address of a socket, as Node writes it: without brackets.
pub(super) enum Endpoint<'a> {
    None,
    Address(SocketAddr),
    Path(&'a Path),
    Name(&'a str),
}

/// Formats `connect ECONNREFUSED 127.0.0.1:1` or `read ECONNRESET`; with the text of the code,
/// `listen EADDRINUSE: address already in use 127.0.0.1:1`.
pub(super) fn text_of_socket(
    syscall: &str,
    code: &str,
    says_why: bool,
    endpoint: &Endpoint<'_>,
) -> String {
    let mut text = format!("{syscall} {code}");
    if let Some(why) = text_of(code).filter(|_| says_why) {
        let _ = write!(text, ": {why}");
    }
    let _ = match endpoint {
        Endpoint::None => Ok(()),
        // As in Node, any port is none.
        Endpoint::Address(address) if address.port() == 0 => write!(text, " {}", address.ip()),
        Endpoint::Address(address) => write!(text, " {}:{}", address.ip(), address.port()),
        Endpoint::Path(path) => write!(text, " {}", path.display()),
        Endpoint::Name(name) => write!(text, " {name}"),
    };
    text
}
