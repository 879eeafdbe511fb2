//! Copying files.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::job::on_paths;
use crate::sys;

/// Copies a file in one job and returns its length. Permissions are copied; times and owner are
/// copied where the OS permits it.
///
/// An existing target is overwritten. A copy of a file onto itself changes nothing and returns 0.
/// [`CopyOptions`] offers exclusive copies and reflinks.
///
/// # Errors
///
/// The errors of [`CopyOptions::copy`].
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let (one, other) = (folder.join("one"), folder.join("other"));
///     fs::write(&one, "hello").await?;
///     assert_eq!(fs::copy(&one, &other).await?, 5);
///     assert_eq!(fs::read(&other).await?, b"hello");
///     fs::remove_dir_all(folder).await
/// }
/// ```
#[track_caller]
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> impl Future<Output = io::Result<u64>> {
    CopyOptions::new().copy(from, to)
}

/// Whether a copy shares the data blocks of the original until one of them is written to. Btrfs and
/// XFS support it within one file system.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::{self, CopyOptions, Reflink};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let to = std::env::temp_dir().join(format!("phaseloop-reflink-{}", std::process::id()));
///     CopyOptions::new().reflink(Reflink::Try).copy("Cargo.toml", &to).await?;
///     fs::remove_file(&to).await
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflink {
    /// Copy the bytes.
    #[default]
    Never,
    /// Share the blocks if the file system supports it, else copy the bytes.
    Try,
    /// Share the blocks, or fail.
    Require,
}

/// Options for copying a file.
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use phaseloop::fs::{self, CopyOptions, Reflink};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let (one, other) = (folder.join("one"), folder.join("other"));
///     fs::write(&one, "hello").await?;
///     let options = CopyOptions::new().exclusive(true).reflink(Reflink::Try);
///     assert_eq!(options.copy(&one, &other).await?, 5);
///     let again = options.copy(&one, &other).await;
///     assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until `copy`"]
pub struct CopyOptions {
    exclusive: bool,
    reflink: Reflink,
}

impl CopyOptions {
    /// Creates the options of [`copy`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, CopyOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let copy = folder.join("copy");
    ///     CopyOptions::new().copy("Cargo.toml", &copy).await?;
    ///     let again = CopyOptions::new().exclusive(true).copy("Cargo.toml", &copy).await;
    ///     assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails if the target exists.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, CopyOptions};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let copy = folder.join("copy");
    ///     CopyOptions::new().copy("Cargo.toml", &copy).await?;
    ///     let again = CopyOptions::new().exclusive(true).copy("Cargo.toml", &copy).await;
    ///     assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Sets whether the copy shares the data blocks of the original.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, CopyOptions, Reflink};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     // It shares the blocks where the file system can, and copies them elsewhere.
    ///     let options = CopyOptions::new().reflink(Reflink::Try);
    ///     options.copy("Cargo.toml", folder.join("copy")).await?;
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn reflink(mut self, reflink: Reflink) -> Self {
        self.reflink = reflink;
        self
    }

    /// Copies a file: one job.
    ///
    /// # Errors
    ///
    /// Any OS error of opening, reading and writing the files;
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) for an exclusive copy whose target exists;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a source that is not a regular file; the
    /// OS error of `ioctl(FICLONE)` for a required reflink; `EINVAL` for a target that is a device
    /// or a pipe. A target that was partly written is removed; an existing target that was not
    /// modified stays.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a job that has started.
    #[track_caller]
    pub fn copy(
        self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> impl Future<Output = io::Result<u64>> {
        on_paths("copy", from, to, move |from, to| copy_with(from, to, self)).here()
    }
}

#[inline]
fn copy_with(from: &Path, to: &Path, how: CopyOptions) -> io::Result<u64> {
    let source = match sys::fs::open(OpenOptions::new().read(true), from) {
        // Windows opens no directory.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(not_a_file()),
        opened => opened?,
    };
    let original = source.metadata()?;
    if !original.is_file() {
        return Err(not_a_file());
    }
    let (target, is_new) = open_target(to, &original, how.exclusive)?;
    if !is_new && sys::fs::is_same_file(&source, &target)? {
        return Ok(0);
    }
    let mut is_touched = is_new;
    let copied = copy_open(&source, &original, &target, how.reflink, &mut is_touched);
    if copied.is_err() && is_touched {
        drop(target);
        // The error of the copy is returned; a failing removal would hide it.
        let _ = fs::remove_file(to);
    }
    copied
}

#[inline]
fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "only files can be copied")
}

/// Opens the target without truncating it, and returns whether it is new.
#[inline]
fn open_target(path: &Path, original: &Metadata, exclusive: bool) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    sys::fs::create_like(&mut options, original);
    match sys::fs::open(&options, path) {
        Err(error) if !exclusive && error.kind() == io::ErrorKind::AlreadyExists => {
            // `create` covers a target that has been removed since, and a dangling symbolic link.
            let target = sys::fs::open(options.create_new(false).create(true), path)?;
            Ok((target, false))
        }
        opened => Ok((opened?, true)),
    }
}

#[inline]
fn copy_open(
    source: &File,
    original: &Metadata,
    target: &File,
    reflink: Reflink,
    is_touched: &mut bool,
) -> io::Result<u64> {
    let cloned = match reflink {
        Reflink::Never => false,
        Reflink::Try => sys::fs::clone_data(source, target).is_ok(),
        Reflink::Require => {
            sys::fs::clone_data(source, target)?;
            true
        }
    };
    let length = if cloned {
        *is_touched = true;
        target.set_len(original.len())?;
        original.len()
    } else {
        // A device or a pipe has no length: it is not touched by this, and must not be removed.
        target.set_len(0)?;
        *is_touched = true;
        // `io::copy` uses `copy_file_range` or `sendfile` where the kernel supports it.
        io::copy(&mut &*source, &mut &*target)?
    };
    // `chown` can clear permission bits, so the permissions come after it.
    sys::fs::copy_owner(target, original);
    target.set_permissions(original.permissions())?;
    keep_times(original, target);
    Ok(length)
}

/// Copies the times of the original. Failure is ignored: not every file system stores them.
#[inline]
fn keep_times(original: &Metadata, target: &File) {
    if let (Ok(accessed), Ok(modified)) = (original.accessed(), original.modified()) {
        let times = FileTimes::new()
            .set_accessed(accessed)
            .set_modified(modified);
        let _ = target.set_times(times);
    }
}
