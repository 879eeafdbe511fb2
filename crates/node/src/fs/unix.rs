//! File operations of Unix.

use std::fs::Permissions;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::handle::FileHandle;
use super::{promise_of, steps};
use crate::callback_futures::in_callbacks_as;
use crate::error::Error;
use crate::promise::Promise;
use phaseloop::fs;

impl FileHandle {
    /// Returns the file descriptor; `None` after the close. JavaScript: `filehandle.fd`.
    #[must_use]
    pub fn fd(&self) -> Option<RawFd> {
        let file = self.opened().ok()?;
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
}
