//! Operations that take a path and complete in one job.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::job::{on_path, on_paths, prepared_on_path};
use super::times::FileTimes;
use crate::sys;

/// Reads a whole file: one job.
///
/// # Errors
///
/// Any OS error of `open` and `read`, such as [`NotFound`](io::ErrorKind::NotFound) and
/// [`IsADirectory`](io::ErrorKind::IsADirectory); [`InvalidInput`](io::ErrorKind::InvalidInput) for
/// a path that contains a zero byte.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let manifest = phaseloop::fs::read("Cargo.toml").await?;
///     assert!(manifest.starts_with(b"[package]"));
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Vec<u8>>> {
    on_path("read", path, read_whole).here()
}

/// Reads a whole file as text: one job.
///
/// # Errors
///
/// The errors of [`read`]; [`InvalidData`](io::ErrorKind::InvalidData) for a file that is not
/// UTF-8.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let manifest = phaseloop::fs::read_to_string("Cargo.toml").await?;
///     assert!(manifest.starts_with("[package]"));
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn read_to_string(path: impl AsRef<Path>) -> impl Future<Output = io::Result<String>> {
    on_path("read_to_string", path, |path| {
        String::from_utf8(read_whole(path)?)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
    })
    .here()
}

/// Opens, stats, reads and closes a file. For a small file, a read with room for one byte more than
/// the size that returns exactly the size has also seen EOF, which saves a second read.
#[inline]
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    const SMALL: usize = 64 * 1024;
    let mut file = sys::fs::open(OpenOptions::new().read(true), path)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    if (1..SMALL).contains(&size) {
        bytes.resize(size + 1, 0);
        let count = retry(|| file.read(&mut bytes))?;
        bytes.truncate(count);
        if count == 0 || count == size {
            return Ok(bytes);
        }
    } else {
        bytes.try_reserve_exact(size)?;
    }
    // This is a large file, a file that has changed meanwhile, or one without a size, as in
    // `/proc`.
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Repeats a call that fails with `EINTR`.
///
/// # Errors
///
/// The errors of `call` but `Interrupted`.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Writes a whole file in one job. The file is created, or truncated first.
///
/// # Errors
///
/// The errors of [`read`], and [`StorageFull`](io::ErrorKind::StorageFull). After an error, part of
/// the contents may have been written.
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
///     let path = folder.join("greeting");
///     fs::write(&path, "hello").await?;
///     fs::append(&path, ", world").await?;
///     assert_eq!(fs::read_to_string(&path).await?, "hello, world");
///     fs::remove_dir_all(folder).await
/// }
/// ```
#[track_caller]
pub fn write(
    path: impl AsRef<Path>,
    contents: impl AsRef<[u8]>,
) -> impl Future<Output = io::Result<()>> {
    let call = prepared_on_path("write", path, move || {
        let contents = contents.as_ref().to_owned();
        move |path: &Path| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            sys::fs::open(&options, path)?.write_all(&contents)
        }
    });
    call.here()
}

/// Appends to a file in one job. The file is created if it does not exist.
///
/// # Errors
///
/// The errors of [`write()`].
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
///     fs::append(folder.join("log"), "one\n").await?;
///     fs::append(folder.join("log"), "two\n").await?;
///     assert_eq!(fs::read(folder.join("log")).await?, b"one\ntwo\n");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn append(
    path: impl AsRef<Path>,
    contents: impl AsRef<[u8]>,
) -> impl Future<Output = io::Result<()>> {
    let call = prepared_on_path("append", path, move || {
        let contents = contents.as_ref().to_owned();
        move |path: &Path| {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            sys::fs::open(&options, path)?.write_all(&contents)
        }
    });
    call.here()
}

/// Truncates a file to a length, or extends it with zeros.
///
/// # Errors
///
/// The errors of [`write()`]; [`NotFound`](io::ErrorKind::NotFound) if the file does not exist.
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
///     fs::write(folder.join("log"), "hello, world").await?;
///     fs::truncate(folder.join("log"), 5).await?;
///     assert_eq!(fs::read(folder.join("log")).await?, b"hello");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn truncate(path: impl AsRef<Path>, length: u64) -> impl Future<Output = io::Result<()>> {
    on_path("truncate", path, move |path| {
        sys::fs::open(OpenOptions::new().write(true), path)?.set_len(length)
    })
    .here()
}

/// Returns the metadata of a file. Symbolic links are followed.
///
/// # Errors
///
/// The errors of [`read`].
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let metadata = phaseloop::fs::metadata("Cargo.toml").await?;
///     assert!(metadata.is_file() && metadata.len() > 0);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn metadata(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Metadata>> {
    on_path("metadata", path, |path| fs::metadata(path)).here()
}

/// Returns the metadata of a file without following symbolic links.
///
/// # Errors
///
/// The errors of [`read`].
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::symlink("target", folder.join("link")).await?; // the target need not exist
///     assert!(fs::symlink_metadata(folder.join("link")).await?.is_symlink());
///     assert_eq!(fs::read_link(folder.join("link")).await?, std::path::Path::new("target"));
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn symlink_metadata(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Metadata>> {
    on_path("symlink_metadata", path, |path| fs::symlink_metadata(path)).here()
}

/// Returns whether a path exists. Symbolic links are followed.
///
/// # Errors
///
/// Any OS error of `stat` other than `ENOENT`.
///
/// # Cancel safety
///
/// Dropping the future discards the result and has no other effect.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     assert!(fs::exists("Cargo.toml").await?);
///     assert!(!fs::exists("no-such-file").await?);
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "try_exists")]
pub fn exists(path: impl AsRef<Path>) -> impl Future<Output = io::Result<bool>> {
    on_path("exists", path, |path| fs::exists(path)).here()
}

/// Renames a file or directory. An existing file at the new name is replaced.
///
/// # Errors
///
/// Any OS error of `rename`, such as [`CrossesDevices`](io::ErrorKind::CrossesDevices).
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
///     // Readers see the old text or the new one, never a part.
///     fs::write(folder.join("settings.new"), "a = 1").await?;
///     fs::rename(folder.join("settings.new"), folder.join("settings")).await?;
///     assert_eq!(fs::read(folder.join("settings")).await?, b"a = 1");
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn rename(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> impl Future<Output = io::Result<()>> {
    on_paths("rename", from, to, sys::fs::rename).here()
}

/// Sets the permissions of a file. Symbolic links are followed.
///
/// # Errors
///
/// Any OS error of `chmod`.
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
///     let path = folder.join("notes");
///     fs::write(&path, "text").await?;
///     let mut permissions = fs::metadata(&path).await?.permissions();
///     permissions.set_readonly(true);
///     fs::set_permissions(&path, permissions).await?;
///     assert!(fs::metadata(&path).await?.permissions().readonly());
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn set_permissions(
    path: impl AsRef<Path>,
    permissions: Permissions,
) -> impl Future<Output = io::Result<()>> {
    on_path("set_permissions", path, move |path| {
        fs::set_permissions(path, permissions)
    })
    .here()
}

/// Sets the access and modification times of a file. Symbolic links are followed.
///
/// # Errors
///
/// Any OS error of `utimensat`; [`InvalidInput`](io::ErrorKind::InvalidInput) for a time outside
/// the range of the OS.
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use phaseloop::fs::{self, FileTimes};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     fs::write(folder.join("old"), "text").await?;
///     let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
///     fs::set_times(folder.join("old"), FileTimes::new().set_modified(time)).await?;
///     assert_eq!(fs::metadata(folder.join("old")).await?.modified()?, time);
///     fs::remove_dir_all(folder).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn set_times(path: impl AsRef<Path>, times: FileTimes) -> impl Future<Output = io::Result<()>> {
    on_path("set_times", path, move |path| {
        sys::fs::set_times(path, times.accessed, times.modified, true)
    })
    .here()
}

/// Sets the access and modification times of a file without following symbolic links. On platforms
/// other than Unix it follows them, as [`set_times`] does.
///
/// # Errors
///
/// The errors of [`set_times`].
///
/// # Cancel safety
///
/// If the future is dropped, the operation may or may not take place: a started job is carried out.
#[track_caller]
pub fn set_times_nofollow(
    path: impl AsRef<Path>,
    times: FileTimes,
) -> impl Future<Output = io::Result<()>> {
    on_path("set_times_nofollow", path, move |path| {
        sys::fs::set_times(path, times.accessed, times.modified, false)
    })
    .here()
}

#[cfg(test)]
mod tests {
    use super::retry;
    use std::io::{self, ErrorKind};

    #[test]
    fn r292_what_a_signal_interrupts_is_tried_again() {
        let mut results = vec![
            Err(ErrorKind::NotFound),
            Ok(1),
            Err(ErrorKind::Interrupted),
            Err(ErrorKind::Interrupted),
        ];
        let mut call = || results.pop().unwrap().map_err(io::Error::from);
        assert_eq!(retry(&mut call).unwrap(), 1);
        assert_eq!(retry(&mut call).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
