//! Operations that exist on Unix only.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{self, DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::dir_builder::DirBuilder;
use super::file::File;
use super::job::on_path;
use super::open_options::OpenOptions;

/// Sets the owner and the group of a file; `None` leaves them unchanged. Symbolic links are
/// followed. Unix only.
///
/// # Errors
///
/// Any OS error of `chown`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     fs::chown("site", Some(33), Some(33)).await?; // as root
///     fs::lchown("link", Some(33), None).await?; // the link, not its target
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn chown(
    path: impl AsRef<Path>,
    user: Option<u32>,
    group: Option<u32>,
) -> impl Future<Output = io::Result<()>> {
    on_path("chown", path, move |path| fs::chown(path, user, group)).here()
}

/// Sets the owner and the group of a file without following symbolic links; `None` leaves them
/// unchanged. Unix only.
///
/// # Errors
///
/// Any OS error of `lchown`.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     fs::chown("site", Some(33), Some(33)).await?; // as root
///     fs::lchown("link", Some(33), None).await?; // the link, not its target
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn lchown(
    path: impl AsRef<Path>,
    user: Option<u32>,
    group: Option<u32>,
) -> impl Future<Output = io::Result<()>> {
    on_path("lchown", path, move |path| fs::lchown(path, user, group)).here()
}

#[inline]
pub(super) fn set_mode(builder: &mut std::fs::DirBuilder, mode: u32) {
    builder.mode(mode);
}

impl OpenOptions {
    /// Sets the permissions of a created file, before the umask is applied. The default is 0o666.
    /// Unix only.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::fs::PermissionsExt;
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.write(true).create(true).mode(0o600).custom_flags(0);
    ///     let file = options.open(folder.join("key")).await?;
    ///     assert_eq!(file.metadata().await?.permissions().mode() & 0o777, 0o600);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.options.mode(mode);
        self
    }

    /// Sets additional flags for `open`. Unix only.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::os::unix::fs::PermissionsExt;
    /// use phaseloop::fs::{self, OpenOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let mut options = OpenOptions::new();
    ///     options.write(true).create(true).mode(0o600).custom_flags(0);
    ///     let file = options.open(folder.join("key")).await?;
    ///     assert_eq!(file.metadata().await?.permissions().mode() & 0o777, 0o600);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.options.custom_flags(flags);
        self
    }
}

impl DirBuilder {
    /// Sets the permissions of the created directories, before the umask is applied. The default is
    /// 0o777. Unix only.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = Some(mode);
        self
    }
}

/// Wraps an open descriptor, as [`File::from_std`] does.
impl From<OwnedFd> for File {
    fn from(file: OwnedFd) -> Self {
        Self::from_std(file.into())
    }
}

impl File {
    /// Sets the owner and the group of the file; `None` leaves them unchanged. Unix only.
    ///
    /// # Errors
    ///
    /// Any OS error of `fchown`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the operation may or may not take place: a started job is carried
    /// out.
    pub async fn chown(&self, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
        self.on_file("chown", move |file| fs::fchown(file, user, group))
            .await
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.get_ref().as_raw_fd()
    }
}
