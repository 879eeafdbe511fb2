//! Copies of files.

use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::job::on_paths;
use crate::sys;

/// Copies a file, with its permissions and, as far as possible, its times and owner; one job. Says how many bytes it has.
///
/// A file that is there is overwritten; a file onto itself is left alone, and 0 is returned. [`CopyOptions`] says more.
///
/// # Errors
///
/// As [`CopyOptions::copy`].
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let (one, other) = (folder.join("one"), folder.join("other"));
///     fs::write(&one, "hello").await?;
///     assert_eq!(fs::copy(&one, &other).await?, 5);
///     assert_eq!(fs::read(&other).await?, b"hello");
///     fs::remove_dir_all(folder).await
/// })
/// # }
/// ```
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    CopyOptions::new().copy(from, to).await
}

/// Whether a copy shares the data of the original until one of the two is written to. Some file systems can do that
/// (Btrfs, XFS), within themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reflink {
    /// The bytes are copied.
    #[default]
    Never,
    /// Shared where that is possible, else copied.
    Try,
    /// Shared, or the copy fails.
    Require,
}

/// How to copy a file.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until `copy`"]
pub struct CopyOptions {
    exclusive: bool,
    reflink: Reflink,
}

impl CopyOptions {
    /// As [`copy`] does it.
    pub fn new() -> Self {
        Self::default()
    }

    /// There must be no file at the target.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Whether the copy shares the data of the original.
    pub fn reflink(mut self, reflink: Reflink) -> Self {
        self.reflink = reflink;
        self
    }

    /// Copies a file: one job.
    ///
    /// # Errors
    ///
    /// Those of the system; [`AlreadyExists`](io::ErrorKind::AlreadyExists) if it is to be exclusive and is not;
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a source that is not a file; what the file system says to a
    /// required reflink. The target of a copy that has failed half-way is removed; one that was there before and has not
    /// been touched stays.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it goes on if it has begun.
    pub async fn copy(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
        on_paths("copy", from.as_ref(), to.as_ref(), move |from, to| {
            copy_with(from, to, self)
        })
        .await
    }
}

fn copy_with(from: &Path, to: &Path, how: CopyOptions) -> io::Result<u64> {
    let source = File::open(from)?;
    let original = source.metadata()?;
    if !original.is_file() {
        let text = "only files can be copied";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let (target, is_new) = open_target(to, &original, how.exclusive)?;
    if !is_new && sys::fs::is_same_file(&original, &target.metadata()?) {
        return Ok(0);
    }
    let mut is_touched = is_new;
    let copied = copy_open(&source, &original, &target, how.reflink, &mut is_touched);
    if copied.is_err() && is_touched {
        drop(target);
        // The copy has failed; that it cannot be removed either is not worth more words.
        let _ = fs::remove_file(to);
    }
    copied
}

/// Opens the target without emptying it, and says whether it is new.
fn open_target(path: &Path, original: &Metadata, exclusive: bool) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    sys::fs::create_like(&mut options, original);
    match options.open(path) {
        Err(error) if !exclusive && error.kind() == io::ErrorKind::AlreadyExists => {
            // Should it be gone by now, it is made; a link that leads nowhere makes what it names.
            let target = options.create_new(false).create(true).open(path)?;
            Ok((target, false))
        }
        opened => Ok((opened?, true)),
    }
}

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
    *is_touched = true;
    let length = if cloned {
        target.set_len(original.len())?;
        original.len()
    } else {
        target.set_len(0)?;
        // In the kernel where that is possible.
        io::copy(&mut &*source, &mut &*target)?
    };
    // A new owner may cost permissions, so these come after it.
    sys::fs::copy_owner(target, original);
    target.set_permissions(original.permissions())?;
    keep_times(original, target);
    Ok(length)
}

/// Gives the copy the times of the original, as far as the system lets it.
fn keep_times(original: &Metadata, target: &File) {
    if let (Ok(accessed), Ok(modified)) = (original.accessed(), original.modified()) {
        let times = FileTimes::new()
            .set_accessed(accessed)
            .set_modified(modified);
        let _ = target.set_times(times);
    }
}
