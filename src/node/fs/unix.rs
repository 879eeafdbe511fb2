//! File operations of Unix.

use std::fs::Permissions;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::handle::FileHandle;
use super::{promise_of, steps};
use crate::fs;
pub use crate::fs::Access;
use crate::node::callback_futures::in_callbacks_as;
use crate::node::error::Error;
use crate::node::promise::Promise;

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
    /// Checks whether this process may access a file. JavaScript: `fs.access(path,
    /// fs.constants.R_OK, callback)` is [`Access::READ`]; `fs.access(path, callback)` is
    /// [`Access::EXISTS`].
    ///
    /// # Errors
    ///
    /// Any OS error of `access`: `EACCES` if the access is not permitted.
    access(path: impl AsRef<Path>, access: Access) -> () = {
        let path = path.as_ref().to_owned();
        async move { fs::access(path, access).await }
    };

    /// Creates a symbolic link at `path` that points to `target`. JavaScript: `fs.symlink(target,
    /// path, callback)`.
    ///
    /// # Errors
    ///
    /// Any OS error of `symlink`.
    symlink(target: impl AsRef<Path>, path: impl AsRef<Path>) -> () = {
        let (target, path) = (target.as_ref().to_owned(), path.as_ref().to_owned());
        async move { fs::symlink(target, path).await }
    };

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
