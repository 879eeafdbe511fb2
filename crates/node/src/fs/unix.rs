//! File operations of Unix.

use std::fs::{Metadata, Permissions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::handle::FileHandle;
use super::stats::Numbers;
use super::{promise_of, steps};
use crate::callback_futures::in_callbacks_as;
use crate::error::Error;
use crate::promise::Promise;
use phaseloop::fs;

/// Returns the numbers of a file, and the time of its last change.
pub(super) fn numbers(metadata: &Metadata) -> (Numbers, Option<SystemTime>) {
    let numbers = Numbers {
        dev: metadata.dev(),
        ino: metadata.ino(),
        mode: metadata.mode(),
        nlink: metadata.nlink(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: metadata.rdev(),
        blksize: metadata.blksize(),
        blocks: metadata.blocks(),
    };
    let seconds = u64::try_from(metadata.ctime()).ok();
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or_default();
    let since = seconds.map(|seconds| Duration::new(seconds, nanoseconds));
    (
        numbers,
        since.and_then(|since| UNIX_EPOCH.checked_add(since)),
    )
}

/// Sets the permissions of a copy.
pub(super) async fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode & 0o7777)).await
}

impl FileHandle {
    /// Returns the file descriptor; `None` after the close. JavaScript: `filehandle.fd`.
    #[must_use]
    pub fn fd(&self) -> Option<RawFd> {
        let file = self.opened("fstat").ok()?;
        Some(file.as_raw_fd())
    }
}

handle_operations! {
    /// Sets the permissions. JavaScript: `filehandle.chmod(mode)`, `fs.fchmod(fd, mode, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fchmod`.
    chmod, fchmod(mode: u32) -> () = |file| {
        let permissions = Permissions::from_mode(mode);
        steps::with_file("fchmod", &file, move |file| file.set_permissions(permissions))
    };

    /// Sets the owner and the group. JavaScript: `filehandle.chown(uid, gid)`, `fs.fchown(fd, uid,
    /// gid, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `fchown`.
    chown, fchown(user: u32, group: u32) -> () = |file| {
        steps::with_file("fchown", &file, move |file| {
            std::os::unix::fs::fchown(file, Some(user), Some(group))
        })
    };
}

operations! {
    /// Sets the permissions of a file. JavaScript: `fs.chmod(path, mode, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `chmod`.
    chmod(path: impl AsRef<Path>, mode: u32) -> () = {
        let permissions = Permissions::from_mode(mode);
        let path = path.as_ref().to_owned();
        async move { fs::set_permissions(path, permissions).await }
    };

    /// Sets the owner and the group of a file. JavaScript: `fs.chown(path, uid, gid, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `chown`.
    chown(path: impl AsRef<Path>, user: u32, group: u32) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::chown(path, Some(user), Some(group)).await }
    };

    /// Sets the owner and the group of a file, or of a symbolic link itself. JavaScript:
    /// `fs.lchown(path, uid, gid, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `lchown`.
    lchown(path: impl AsRef<Path>, user: u32, group: u32) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::lchown(path, Some(user), Some(group)).await }
    };
}
