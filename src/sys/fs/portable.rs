//! Where the system is not a Unix: what the standard library can do.

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::time::SystemTime;

use super::Time;

/// Closes a file. Its errors cannot be had here.
pub(crate) fn close(file: File) -> io::Result<()> {
    drop(file);
    Ok(())
}

/// Sets the times of a file, which has to be writable; links are followed here.
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

/// Reads what the system has in memory. Not known here.
pub(crate) fn read_at_once(_: &File, _: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes two files share their data. No such thing here.
pub(crate) fn clone_data(_: &File, _: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether both are of one file. Not known here.
pub(crate) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Whether nothing is known to have changed between two looks at a path (R313).
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

/// Gives a file the owner of another. No such thing here.
pub(crate) fn copy_owner(_: &File, _: &Metadata) {}

/// New files get the permissions of another.
pub(crate) fn create_like(_: &mut OpenOptions, _: &Metadata) {}

/// New files are for their owner only. The folder decides that here.
pub(crate) fn create_private(_: &mut OpenOptions) {}

/// The same for directories.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}
