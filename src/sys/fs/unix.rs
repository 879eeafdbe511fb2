//! Unix.
#![allow(unsafe_code, reason = "the C library's `close`, for its error")]

use std::fs::{DirBuilder, File, Metadata, OpenOptions, ReadDir};
use std::io::{self, IoSliceMut, Seek, SeekFrom, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::{FileSystem, Time};

/// Closes a file. After `EINTR` the descriptor is closed, so the error is ignored.
///
/// # Errors
///
/// Any OS error of `close`.
#[inline]
pub fn close(file: File) -> io::Result<()> {
    let descriptor = file.into_raw_fd();
    // SAFETY: `file` owned the descriptor and has released it, so no other code closes it.
    if unsafe { libc::close(descriptor) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        error => Err(error),
    }
}

/// Sets the times of a file, or of a symbolic link itself.
#[inline]
pub(crate) fn set_times(
    path: &Path,
    accessed: Time,
    modified: Time,
    follow_links: bool,
) -> io::Result<()> {
    let flags = if follow_links {
        AtFlags::empty()
    } else {
        AtFlags::SYMLINK_NOFOLLOW
    };
    let times = timestamps(accessed, modified)?;
    Ok(rustix::fs::utimensat(CWD, path, &times, flags)?)
}

#[inline]
pub(crate) fn set_file_times(file: &File, accessed: Time, modified: Time) -> io::Result<()> {
    Ok(rustix::fs::futimens(
        file,
        &timestamps(accessed, modified)?,
    )?)
}

#[inline]
fn timestamps(accessed: Time, modified: Time) -> io::Result<Timestamps> {
    Ok(Timestamps {
        last_access: timespec(accessed)?,
        last_modification: timespec(modified)?,
    })
}

/// Converts a time to a `timespec`: seconds rounded down, also before 1970, plus nanoseconds.
#[inline]
fn timespec(time: Time) -> io::Result<Timespec> {
    let too_far = |_| {
        let text = "the time does not fit into a `timespec`";
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let (seconds, nanoseconds) = match time {
        Time::Keep => (0, UTIME_OMIT),
        Time::Now => (0, UTIME_NOW),
        Time::At(time) => match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (
                i64::try_from(after.as_secs()).map_err(too_far)?,
                after.subsec_nanos() as _,
            ),
            Err(error) => {
                let before = error.duration();
                let whole = Duration::from_secs(before.as_secs());
                let seconds = -i64::try_from(before.as_secs()).map_err(too_far)?;
                match (before - whole).subsec_nanos() {
                    0 => (seconds, 0),
                    nanoseconds => (seconds - 1, (1_000_000_000 - nanoseconds) as _),
                }
            }
        },
    };
    Ok(Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    })
}

/// Whether [`read_at_once`] may be tried. With `O_DIRECT` it would wait for the disk.
#[cfg(target_os = "linux")]
#[inline]
pub(crate) fn is_read_at_once(file: &File) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl};
    fcntl_getfl(file).is_ok_and(|flags| !flags.contains(OFlags::DIRECT))
}

#[cfg(not(target_os = "linux"))]
#[inline]
pub(crate) fn is_read_at_once(_: &File) -> bool {
    false
}

/// Reads from the page cache: at an offset, or at the position. It fails with
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if the data is not cached, and with other errors if
/// the file system does not report it.
#[cfg(target_os = "linux")]
#[inline]
pub(crate) fn read_at_once(
    file: &File,
    buffers: &mut [IoSliceMut<'_>],
    offset: Option<u64>,
) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    // Offset -1: `preadv2` reads at the position and moves it.
    let offset = match offset {
        Some(u64::MAX) => return Err(Errno::INVAL.into()),
        Some(offset) => offset,
        None => u64::MAX,
    };
    // The kernel accepts at most `IOV_MAX` buffers.
    let count = buffers.len().min(1024);
    let buffers = &mut buffers[..count];
    Ok(preadv2(file, buffers, offset, ReadWriteFlags::NOWAIT)?)
}

#[cfg(not(target_os = "linux"))]
#[inline]
pub(crate) fn read_at_once(
    _: &File,
    _: &mut [IoSliceMut<'_>],
    _: Option<u64>,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Shares the data blocks of a file until one of both is written to.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(crate) fn clone_data(from: &File, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(crate) fn clone_data(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether both are one file.
#[inline]
pub(crate) fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(identity(&one.metadata()?) == identity(&other.metadata()?))
}

/// Returns what no two files have in common: the device and the inode.
#[inline]
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether metadata shows no change between two checks of a path. Any change of a field that is not
/// compared here also changes `ctime`.
#[inline]
pub(crate) fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    let state = |metadata: &Metadata| {
        let times = [
            (metadata.ctime(), metadata.ctime_nsec()),
            (metadata.mtime(), metadata.mtime_nsec()),
        ];
        let owner = (metadata.uid(), metadata.gid(), metadata.mode());
        (times, metadata.size(), owner, metadata.created().ok())
    };
    identity(before) == identity(now) && state(before) == state(now)
}

/// Copies the owner of a file, as far as this process has the privilege.
#[inline]
pub(crate) fn copy_owner(file: &File, of: &Metadata) {
    let _ = fchown(file, Some(of.uid()), Some(of.gid()));
}

/// Creates new files with the permissions of another from the start.
#[inline]
pub(crate) fn create_like(options: &mut OpenOptions, of: &Metadata) {
    options.mode(of.mode() & 0o777);
}

/// Creates new files for their owner only.
#[inline]
pub(crate) fn create_private(options: &mut OpenOptions) {
    set_mode(options, 0o600, false);
}

/// Creates a directory for its owner only.
#[inline]
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    create_dir(path, 0o700)
}

/// Creates a directory with these permission bits, minus the umask of the process.
///
/// # Errors
///
/// Any OS error of `mkdir`.
#[inline]
pub fn create_dir(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)
}

/// Sets the permission bits of a created file, and whether its writes are synchronous (`O_SYNC`).
#[inline]
pub fn set_mode(options: &mut OpenOptions, mode: u32, is_synchronous: bool) {
    options.mode(mode);
    if is_synchronous {
        options.custom_flags(libc::O_SYNC);
    }
}

/// Reads at an offset; the position stays.
///
/// # Errors
///
/// Any OS error of `pread`.
#[inline]
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    FileExt::read_at(file, buffer, offset)
}

/// Writes at an offset; the position stays.
///
/// # Errors
///
/// Any OS error of `pwrite`.
#[inline]
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    FileExt::write_at(file, bytes, offset)
}

/// Creates a symbolic link.
#[inline]
pub(crate) fn symlink(original: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(original, link)
}

/// Fills a buffer from an offset.
#[inline]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    FileExt::read_exact_at(file, buffer, offset)
}

/// Writes all bytes at an offset.
#[inline]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    FileExt::write_all_at(file, bytes, offset)
}

/// Whether the file has a position. Pipes have none.
#[inline]
pub(crate) fn can_seek(mut file: &File) -> bool {
    file.stream_position().is_ok()
}

/// Moves the position.
#[inline]
pub(crate) fn seek(mut file: &File, to: SeekFrom) -> io::Result<u64> {
    file.seek(to)
}

/// Reads a directory.
#[inline]
pub(crate) fn read_dir(path: &Path) -> io::Result<ReadDir> {
    std::fs::read_dir(path)
}

/// Runs an operation that uses the position of a file. Operations at an offset do not move it.
#[inline]
pub fn at_position<R>(_: &File, operation: impl FnOnce() -> R) -> R {
    operation()
}

/// Opens a file.
///
/// # Errors
///
/// Any OS error of `open`.
#[inline]
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

/// Removes a file or a symbolic link.
#[inline]
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// Renames a file or a directory, and replaces a file or an empty directory.
#[inline]
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Checks permissions of this process: `R_OK`, `W_OK` and `X_OK`, in this order.
#[inline]
pub(crate) fn access(path: &Path, [read, write, execute]: [bool; 3]) -> io::Result<()> {
    use rustix::fs::Access;
    let mut access = Access::EXISTS;
    access.set(Access::READ_OK, read);
    access.set(Access::WRITE_OK, write);
    access.set(Access::EXEC_OK, execute);
    Ok(rustix::fs::access(path, access)?)
}

#[inline]
pub(crate) fn file_system(path: &Path) -> io::Result<FileSystem> {
    let figures = rustix::fs::statvfs(path)?;
    Ok(FileSystem {
        kind: file_system_kind(path)?,
        block_size: figures.f_bsize,
        fragment_size: figures.f_frsize,
        blocks: figures.f_blocks,
        free_blocks: figures.f_bfree,
        available_blocks: figures.f_bavail,
        files: figures.f_files,
        free_files: figures.f_ffree,
    })
}

/// The magic number of the file system.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn file_system_kind(path: &Path) -> io::Result<u64> {
    // It is a pattern of 32 bits in a type that differs between platforms.
    Ok(rustix::fs::statfs(path)?.f_type as u64 & 0xffff_ffff)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn file_system_kind(_: &Path) -> io::Result<u64> {
    Ok(0)
}

/// Copies bytes from an offset of one file to the position of another, inside the kernel where
/// possible.
///
/// Returns the number of bytes copied: fewer than `length` if `from` ends, or if an error occurs
/// after some.
#[inline]
pub(crate) fn copy_range(from: &File, offset: u64, to: &File, length: u64) -> io::Result<u64> {
    let mut done = 0;
    let mut reads_and_writes = false;
    while done < length {
        let (offset, rest) = (offset + done, length - done);
        let copied = if reads_and_writes {
            copy_by_hand(from, offset, to, rest)
        } else {
            copy_in_kernel(from, offset, to, rest)
        };
        match copied {
            Ok(0) if reads_and_writes => break,
            Ok(count) if count > 0 => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if reads_and_writes && done == 0 => return Err(error),
            Err(_) if reads_and_writes => break,
            // EOF, an error, or a file that the kernel cannot copy: reading and writing finds
            // out which.
            _ => reads_and_writes = true,
        }
    }
    Ok(done)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn copy_in_kernel(from: &File, mut offset: u64, to: &File, length: u64) -> io::Result<u64> {
    // Some kernels refuse more than this in one call.
    let length = usize::try_from(length).map_or(1 << 30, |length| length.min(1 << 30));
    let copied = rustix::fs::copy_file_range(from, Some(&mut offset), to, None, length);
    let copied = copied.or_else(|_| rustix::fs::sendfile(to, from, Some(&mut offset), length))?;
    Ok(copied as u64)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn copy_in_kernel(_: &File, _: u64, _: &File, _: u64) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[inline]
fn copy_by_hand(from: &File, offset: u64, mut to: &File, length: u64) -> io::Result<u64> {
    let mut buffer = [0; 64 * 1024];
    let length = usize::try_from(length).map_or(buffer.len(), |length| length.min(buffer.len()));
    let count = from.read_at(&mut buffer[..length], offset)?;
    Ok(to.write(&buffer[..count])? as u64)
}
