//! Unix: descriptors in a mode that other processes see, and which is not changed.
#![allow(unsafe_code, reason = "receives into bytes that are initialised")]

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, IsTerminal, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Mode, OFlags};
use socket2::{SockRef, Type};

use super::StdioKind;
use crate::label::{Label, Role};
use crate::sys::describe::describe;
use crate::sys::descriptor::access;

impl StdioKind {
    /// Determines the kind of `descriptor`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::StdioKind;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let null = std::fs::File::open("/dev/null")?;
    ///     assert_eq!(StdioKind::of(&null), StdioKind::Device);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn of(descriptor: impl AsFd) -> Self {
        let descriptor = descriptor.as_fd();
        if descriptor.is_terminal() {
            return Self::Terminal;
        }
        let Ok(status) = rustix::fs::fstat(descriptor) else {
            return Self::Unknown;
        };
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::CharacterDevice => Self::Device,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::of_socket(descriptor).unwrap_or(Self::Unknown),
            _ => Self::Unknown,
        }
    }

    fn of_socket(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let socket = SockRef::from(&socket);
        let address = socket.local_addr()?;
        let is_internet = address.is_ipv4() || address.is_ipv6();
        Ok(match socket.r#type()? {
            Type::STREAM if address.is_unix() => Self::Unix,
            Type::STREAM if is_internet => Self::Tcp,
            Type::DGRAM if is_internet => Self::Udp,
            _ => Self::Unknown,
        })
    }
}

/// A borrowed standard descriptor.
pub(crate) type Borrowed<'a> = BorrowedFd<'a>;

/// A duplicate of a standard descriptor, which threads of the pool read and write.
pub(crate) type Descriptor = OwnedFd;

/// A descriptor that the poller watches for its pool threads.
pub(crate) type Watched = Arc<OwnedFd>;

pub(crate) fn borrow(descriptor: &impl AsFd) -> Borrowed<'_> {
    descriptor.as_fd()
}

pub(crate) fn duplicate(descriptor: Borrowed<'_>, _: Role) -> io::Result<Descriptor> {
    descriptor.try_clone_to_owned()
}

/// Returns what the poller can watch.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with a platform that can watch none"
)]
pub(crate) fn watched(descriptor: &Arc<Descriptor>) -> Option<Watched> {
    Some(descriptor.clone())
}

/// Names a descriptor as users do.
pub(crate) fn label(descriptor: &Descriptor, role: Role) -> Label {
    describe(descriptor.as_fd(), role, None)
}

/// A non-blocking view of a descriptor that may be in blocking mode.
pub(crate) enum Unblocked {
    /// The object was opened a second time, so this mode is its own.
    Reopened(File),
    /// Each call passes `MSG_DONTWAIT`.
    Socket(OwnedFd),
}

impl Unblocked {
    /// # Errors
    ///
    /// `Unsupported` for a kind that can neither be opened again nor used with `MSG_DONTWAIT`; any
    /// OS error of `open`.
    #[inline]
    pub(crate) fn new(descriptor: BorrowedFd<'_>, kind: StdioKind) -> io::Result<Self> {
        match kind {
            StdioKind::Terminal => Ok(Self::Reopened(reopen_terminal(descriptor)?.into())),
            StdioKind::Pipe => Ok(Self::Reopened(reopen_by_number(descriptor)?.into())),
            StdioKind::Unix | StdioKind::Tcp | StdioKind::Udp => {
                Ok(Self::Socket(descriptor.try_clone_to_owned()?))
            }
            StdioKind::File | StdioKind::Device | StdioKind::Unknown => {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }
}

impl AsFd for Unblocked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Reopened(file) => file.as_fd(),
            Self::Socket(socket) => socket.as_fd(),
        }
    }
}

impl Read for &Unblocked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Unblocked::Reopened(file) => (&mut &*file).read(buffer),
            Unblocked::Socket(socket) => {
                let room: *mut [u8] = buffer;
                // SAFETY: the kernel writes initialised bytes, so `buffer` stays initialised.
                let room = unsafe { &mut *(room as *mut [MaybeUninit<u8>]) };
                SockRef::from(socket).recv_with_flags(room, libc::MSG_DONTWAIT)
            }
        }
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Unblocked::Reopened(file) => (&mut &*file).read_vectored(buffers),
            // One buffer only: callers must expect partial reads anyway.
            Unblocked::Socket(_) => match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
                Some(buffer) => self.read(buffer),
                None => Ok(0),
            },
        }
    }
}

impl Write for &Unblocked {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Unblocked::Reopened(file) => (&mut &*file).write(buffer),
            Unblocked::Socket(socket) => {
                #[cfg(not(target_vendor = "apple"))]
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                // Apple platforms have no `MSG_NOSIGNAL`; the Rust runtime ignores SIGPIPE.
                #[cfg(target_vendor = "apple")]
                let flags = libc::MSG_DONTWAIT;
                SockRef::from(socket).send_with_flags(buffer, flags)
            }
        }
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Unblocked::Reopened(file) => (&mut &*file).write_vectored(buffers),
            Unblocked::Socket(_) => match buffers.iter().find(|buffer| !buffer.is_empty()) {
                Some(buffer) => self.write(buffer),
                None => Ok(0),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a terminal a second time in non-blocking mode.
///
/// # Errors
///
/// `Unsupported` for the controlling side of a pseudo-terminal, where `open` would create a new
/// pair; any OS error of `open`.
#[inline]
pub(crate) fn reopen_terminal(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    if is_controlling_side(terminal) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // The descriptor number works even where the name leads elsewhere, as in another mount
    // namespace.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return reopen_by_number(terminal);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let name = rustix::termios::ttyname(terminal, Vec::new())?;
        reopen(terminal, &name)
    }
}

/// Whether a terminal is the controlling side of a pseudo-terminal.
pub(crate) fn is_controlling_side(terminal: BorrowedFd<'_>) -> bool {
    // Linux gives all controlling sides the number of the device that creates them.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return rustix::fs::fstat(terminal).is_ok_and(|stat| stat.st_rdev == rustix::fs::makedev(5, 2));
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    return rustix::pty::ptsname(terminal, Vec::new()).is_ok();
    // This platform offers no query; opening such a terminal by name fails anyway.
    #[cfg(not(any(
        target_vendor = "apple",
        target_os = "android",
        target_os = "freebsd",
        target_os = "linux"
    )))]
    {
        let _ = terminal;
        false
    }
}

/// Opens the object of a descriptor a second time through `/proc/self/fd`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reopen_by_number(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    reopen(
        descriptor,
        format!("/proc/self/fd/{}", descriptor.as_raw_fd()),
    )
}

/// Elsewhere `/dev/fd` duplicates the descriptor, and the duplicate shares the mode.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reopen_by_number(_: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

fn reopen(descriptor: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let access = access(descriptor)?;
    let direction = match (access.can_read, access.can_write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    let flags = direction | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, Mode::empty())?)
}

/// The direction of a readiness check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Read,
    Write,
}

/// Whether a read or write of a blocking descriptor would return without blocking now.
pub(crate) fn is_ready(descriptor: impl AsFd, wanted: Wanted) -> io::Result<bool> {
    let flags = match wanted {
        Wanted::Read => PollFlags::IN,
        Wanted::Write => PollFlags::OUT,
    };
    let mut descriptors = [PollFd::new(&descriptor, flags)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let ready = rustix::io::retry_on_intr(|| rustix::event::poll(&mut descriptors, Some(&at_once)));
    Ok(ready? > 0)
}

/// Reads, blocking if the descriptor is in blocking mode.
pub(crate) fn read(descriptor: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::io::read(&descriptor, &mut *buffer)
    })?)
}

/// Writes, blocking if the descriptor is in blocking mode.
pub(crate) fn write(descriptor: impl AsFd, buffer: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::io::write(&descriptor, buffer)
    })?)
}
