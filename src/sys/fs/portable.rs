//! Windows: mostly the part that the standard library offers.
#![allow(unsafe_code, reason = "asks for the identity and the type of a file")]

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions, ReadDir};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::SystemTime;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_DIR_NOT_EMPTY, ERROR_DIRECTORY,
    ERROR_DIRECTORY_NOT_SUPPORTED, ERROR_FILE_EXISTS, ERROR_SEEK_ON_DEVICE,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, GetFileType};

use super::{FileSystem, Time};

/// Closes a file. The standard library does not report errors of closing.
///
/// # Errors
///
/// Any OS error of the call.
pub fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Sets the times of a file, which must be writable. Symbolic links are followed.
pub(crate) fn set_times(path: &Path, accessed: Time, modified: Time, _: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    set_file_times(&file, accessed, modified)
}

pub(crate) fn set_file_times(file: &File, accessed: Time, modified: Time) -> io::Result<()> {
    let mut times = FileTimes::new();
    if let Some(time) = time_of(accessed) {
        times = times.set_accessed(time);
    }
    if let Some(time) = time_of(modified) {
        times = times.set_modified(time);
    }
    file.set_times(times)
}

fn time_of(time: Time) -> Option<SystemTime> {
    match time {
        Time::Keep => None,
        Time::Now => Some(SystemTime::now()),
        Time::At(time) => Some(time),
    }
}

/// Whether [`read_at_once`] may be tried.
pub(crate) fn is_read_at_once(_: &File) -> bool {
    false
}

/// Reads from the page cache. This platform does not report what is cached.
pub(crate) fn read_at_once(
    _: &File,
    _: &mut [IoSliceMut<'_>],
    _: Option<u64>,
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Shares the data blocks of a file. This platform cannot.
pub(crate) fn clone_data(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether both are one file.
pub(crate) fn is_same_file(one: &File, other: &File) -> io::Result<bool> {
    Ok(identity(one)? == identity(other)?)
}

/// Returns what no two open files have in common: the volume, and the number in it.
fn identity(file: &File) -> io::Result<(u32, u32, u32)> {
    use windows_sys::Win32::Storage::FileSystem::{
        BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle,
    };
    let mut information = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and `information` has room for the answer.
    match unsafe { GetFileInformationByHandle(file.as_raw_handle(), &mut information) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok((
            information.dwVolumeSerialNumber,
            information.nFileIndexHigh,
            information.nFileIndexLow,
        )),
    }
}

/// Whether metadata shows no change between two checks of a path.
pub(crate) fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    let state = |metadata: &Metadata| {
        let times = [metadata.modified().ok(), metadata.created().ok()];
        (
            times,
            metadata.len(),
            metadata.permissions(),
            metadata.file_type(),
        )
    };
    state(before) == state(now)
}

/// Copies the owner of a file. This platform has no owners in the sense of Unix.
pub(crate) fn copy_owner(_: &File, _: &Metadata) {}

/// Creates new files with the permissions of another. The permissions are copied later here.
pub(crate) fn create_like(_: &mut OpenOptions, _: &Metadata) {}

/// Creates new files for their owner only. The directory's access list decides it here.
pub(crate) fn create_private(_: &mut OpenOptions) {}

/// Creates a directory for its owner only. The parent's access list decides it here.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Creates a directory. The parent's access list decides its permissions here.
///
/// # Errors
///
/// Any OS error of the call.
pub fn create_dir(path: &Path, _mode: u32) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Does nothing: permission bits and `O_SYNC` exist on Unix only.
pub fn set_mode(_: &mut OpenOptions, _mode: u32, _is_synchronous: bool) {}

/// Runs an operation that uses the position of a file. Operations at an offset move the position
/// here and move it back, so that no two operations on one file may run at once. The kernel lets
/// them wait for each other anyway.
pub fn at_position<R>(file: &File, operation: impl FnOnce() -> R) -> R {
    let _held = Held::new(file);
    operation()
}

/// Whether the file has a position. Windows lets pipes and devices take one, and ignores it.
pub(crate) fn can_seek(file: &File) -> bool {
    // SAFETY: the handle is open.
    let kind = unsafe { GetFileType(file.as_raw_handle()) };
    kind == FILE_TYPE_DISK
}

/// Moves the position.
pub(crate) fn seek(mut file: &File, to: SeekFrom) -> io::Result<u64> {
    if !can_seek(file) {
        return Err(io::Error::from_raw_os_error(NOT_SEEKABLE));
    }
    file.seek(to)
}

/// Reads a directory.
pub(crate) fn read_dir(path: &Path) -> io::Result<ReadDir> {
    std::fs::read_dir(path).map_err(|error| match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => io::Error::from_raw_os_error(NOT_A_DIRECTORY),
        _ => error,
    })
}

/// Reads at an offset; the position stays.
///
/// # Errors
///
/// Any OS error of the call.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    keep_position(file, || file.seek_read(buffer, offset))
}

/// Writes at an offset; the position stays.
///
/// # Errors
///
/// Any OS error of the call.
pub fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    keep_position(file, || file.seek_write(bytes, offset))
}

fn keep_position<R>(mut file: &File, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    at_position(file, || {
        let position = file.stream_position()?;
        let result = operation();
        file.seek(SeekFrom::Start(position))?;
        result
    })
}

/// Fills a buffer from an offset.
pub(crate) fn read_exact_at(file: &File, mut rest: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !rest.is_empty() {
        match read_at(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                rest = &mut rest[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes at an offset.
pub(crate) fn write_all_at(file: &File, mut rest: &[u8], mut offset: u64) -> io::Result<()> {
    while !rest.is_empty() {
        match write_at(file, rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                rest = &rest[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The files, by their handles, whose position is in use.
static IN_USE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Notified when one of them is no longer in use.
static RELEASED: Condvar = Condvar::new();

/// The right to use the position of a file.
struct Held(usize);

impl Held {
    fn new(file: &File) -> Self {
        let handle = file.as_raw_handle() as usize;
        let in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = |in_use: &mut Vec<usize>| in_use.contains(&handle);
        let mut in_use = RELEASED
            .wait_while(in_use, is_taken)
            .unwrap_or_else(PoisonError::into_inner);
        in_use.push(handle);
        Self(handle)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|&handle| handle != self.0);
        drop(in_use);
        RELEASED.notify_all();
    }
}

/// Opens a file. A directory is no file here, and the error says so.
///
/// # Errors
///
/// Any OS error of the call.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    options
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(DENIED) if path.is_dir() => io::Error::from_raw_os_error(IS_A_DIRECTORY),
            _ => error,
        })
}

/// Removes a file or a symbolic link.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path).map_err(|error| match error.raw_os_error() {
        Some(DENIED) if is_real_dir(path) => io::Error::from_raw_os_error(IS_A_DIRECTORY),
        _ => error,
    })
}

/// Renames a file or a directory, and replaces a file. Windows denies access if the target cannot
/// be replaced; the error says why.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).map_err(|error| match error.raw_os_error() {
        Some(DENIED | EXISTS | FILE_EXISTS) => {
            why_not_renamed(from, to).map_or(error, io::Error::from_raw_os_error)
        }
        _ => error,
    })
}

/// Returns the number of the error that fits, if the kinds of both files are the reason.
fn why_not_renamed(from: &Path, to: &Path) -> Option<i32> {
    if !to.try_exists().ok()? {
        return None;
    }
    match (is_real_dir(from), is_real_dir(to)) {
        (false, true) => Some(IS_A_DIRECTORY),
        (true, false) => Some(NOT_A_DIRECTORY),
        (true, true) => std::fs::read_dir(to)
            .is_ok_and(|mut entries| entries.next().is_some())
            .then_some(NOT_EMPTY),
        (false, false) => None,
    }
}

/// Whether the path is a directory, and no link to one.
fn is_real_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

const DENIED: i32 = ERROR_ACCESS_DENIED as i32;
const EXISTS: i32 = ERROR_ALREADY_EXISTS as i32;
const FILE_EXISTS: i32 = ERROR_FILE_EXISTS as i32;
const IS_A_DIRECTORY: i32 = ERROR_DIRECTORY_NOT_SUPPORTED as i32;
const NOT_A_DIRECTORY: i32 = ERROR_DIRECTORY as i32;
const NOT_EMPTY: i32 = ERROR_DIR_NOT_EMPTY as i32;
const NOT_SEEKABLE: i32 = ERROR_SEEK_ON_DEVICE as i32;

/// Creates a symbolic link: one to a directory if the target is a directory.
pub(crate) fn symlink(original: &Path, link: &Path) -> io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    // A relative target starts at the directory of the link.
    let target = link.parent().unwrap_or(Path::new("")).join(original);
    if target.is_dir() {
        symlink_dir(original, link)
    } else {
        symlink_file(original, link)
    }
}

/// Checks permissions of this process for reading, writing and executing, as libuv does: a file
/// that is read-only may not be written.
pub(crate) fn access(path: &Path, [_, write, _]: [bool; 3]) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    if write && !metadata.is_dir() && metadata.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

pub(crate) fn file_system(path: &Path) -> io::Result<FileSystem> {
    use windows_sys::Win32::Storage::FileSystem::{
        GetDiskFreeSpaceExW, GetDiskFreeSpaceW, GetVolumePathNameW,
    };
    // The calls below take directories that exist, so a file is answered by its volume.
    let path = wide(&std::fs::canonicalize(path)?);
    let mut volume = vec![0; path.len().max(64)];
    let check = |result| match result {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: the path ends with a zero, and `volume` has room for as many units as it says.
    check(unsafe { GetVolumePathNameW(path.as_ptr(), volume.as_mut_ptr(), volume.len() as u32) })?;
    let (mut sectors, mut bytes, mut unused) = (0, 0, [0; 2]);
    let [free, total] = &mut unused;
    // SAFETY: the volume ends with a zero, and the others have room for the answers.
    check(unsafe { GetDiskFreeSpaceW(volume.as_ptr(), &mut sectors, &mut bytes, free, total) })?;
    let (mut available, mut all, mut free) = (0, 0, 0);
    // SAFETY: as above.
    check(unsafe { GetDiskFreeSpaceExW(volume.as_ptr(), &mut available, &mut all, &mut free) })?;
    let size = (u64::from(sectors) * u64::from(bytes)).max(1);
    Ok(FileSystem {
        kind: 0,
        block_size: size,
        fragment_size: size,
        blocks: all / size,
        free_blocks: free / size,
        available_blocks: available / size,
        files: 0,
        free_files: 0,
    })
}

/// Returns a path as the OS takes it, with a zero at its end.
fn wide(path: &Path) -> Vec<u16> {
    use std::os::windows::ffi::OsStrExt;
    path.as_os_str().encode_wide().chain([0]).collect()
}

/// Copies bytes from an offset of one file to the position of another.
///
/// Returns the number of bytes copied: fewer than `length` if `from` ends, or if an error occurs
/// after some.
pub(crate) fn copy_range(from: &File, offset: u64, mut to: &File, length: u64) -> io::Result<u64> {
    use std::io::Write;
    let mut buffer = [0; 64 * 1024];
    let mut done = 0;
    while done < length {
        let most =
            usize::try_from(length - done).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let copied = read_at(from, &mut buffer[..most], offset + done)
            .and_then(|count| at_position(to, || to.write(&buffer[..count])));
        match copied {
            Ok(0) => break,
            Ok(count) => done += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}
