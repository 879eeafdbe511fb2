//! Windows: mostly the part that the standard library offers.
#![allow(unsafe_code, reason = "asks for the identity of a file")]

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::time::SystemTime;

use super::{FileSystem, Time};

/// Closes a file. The standard library does not report errors of closing.
pub(crate) fn close(file: File) -> io::Result<()> {
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

/// Reads from the page cache. This platform cannot tell what is cached.
pub(crate) fn read_at_once(_: &File, _: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
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
    use std::os::windows::io::AsRawHandle;
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
pub(crate) fn create_dir(path: &Path, _mode: u32) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Does nothing: permission bits and `O_SYNC` exist on Unix only.
pub(crate) fn set_mode(_: &mut OpenOptions, _mode: u32, _is_synchronous: bool) {}

/// Reads at an offset, and moves the position.
pub(crate) fn read_at(mut file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Read, Seek};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read(buffer)
}

/// Writes at an offset, and moves the position.
pub(crate) fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    use std::io::{Seek, Write};
    file.seek(io::SeekFrom::Start(offset))?;
    file.write(bytes)
}

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
            .and_then(|count| to.write(&buffer[..count]));
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
