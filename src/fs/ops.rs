//! Operations that take a path and are over with their call.

use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::job::{on_path, on_paths};
use super::times::FileTimes;
use crate::sys;

/// Reads a whole file: one job.
///
/// # Errors
///
/// Those of the system, such as [`NotFound`](io::ErrorKind::NotFound) and
/// [`IsADirectory`](io::ErrorKind::IsADirectory); [`InvalidInput`](io::ErrorKind::InvalidInput) for a path with a zero byte.
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let manifest = phaseloop::fs::read("Cargo.toml").await?;
///     assert!(manifest.starts_with(b"[package]"));
///     Ok(())
/// })
/// # }
/// ```
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    on_path("read", path.as_ref(), read_whole).await
}

/// Reads a whole file as text: one job.
///
/// # Errors
///
/// As [`read`]; [`InvalidData`](io::ErrorKind::InvalidData) for a file that is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    on_path("read_to_string", path.as_ref(), |path| {
        String::from_utf8(read_whole(path)?)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
    })
    .await
}

/// Open, ask for the size, read, close. A read of a small file that asks for more than the size and gets just that has seen
/// the end, so it is not made again.
fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    const SMALL: usize = 64 * 1024;
    let mut file = fs::File::open(path)?;
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
    // A large file; one that changes meanwhile; one without a size, as in `/proc`.
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Calls again what a signal has interrupted (R292).
pub(super) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Writes a whole file, which is made, or emptied first: one job.
///
/// # Errors
///
/// As [`read`], and [`StorageFull`](io::ErrorKind::StorageFull); a part may have been written then.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     let path = folder.join("greeting");
///     fs::write(&path, "hello").await?;
///     fs::append(&path, ", world").await?;
///     assert_eq!(fs::read_to_string(&path).await?, "hello, world");
///     fs::remove_dir_all(folder).await
/// })
/// # }
/// ```
pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let contents = contents.as_ref().to_owned();
    on_path("write", path.as_ref(), move |path| {
        fs::write(path, contents)
    })
    .await
}

/// Writes to the end of a file, which is made if there is none: one job.
///
/// # Errors
///
/// As [`write()`].
pub async fn append(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let contents = contents.as_ref().to_owned();
    on_path("append", path.as_ref(), move |path| {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(path)?;
        file.write_all(&contents)
    })
    .await
}

/// Cuts a file to a length, or extends it with zeros.
///
/// # Errors
///
/// As [`write()`]; the file has to exist.
pub async fn truncate(path: impl AsRef<Path>, length: u64) -> io::Result<()> {
    on_path("truncate", path.as_ref(), move |path| {
        OpenOptions::new().write(true).open(path)?.set_len(length)
    })
    .await
}

/// What the system knows of a file; symbolic links are followed.
///
/// # Errors
///
/// As [`read`].
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let metadata = phaseloop::fs::metadata("Cargo.toml").await?;
///     assert!(metadata.is_file() && metadata.len() > 0);
///     Ok(())
/// })
/// # }
/// ```
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("metadata", path.as_ref(), |path| fs::metadata(path)).await
}

/// What the system knows of a file; of a symbolic link, the link itself.
///
/// # Errors
///
/// As [`read`].
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    on_path("symlink_metadata", path.as_ref(), |path| {
        fs::symlink_metadata(path)
    })
    .await
}

/// Whether there is something at a path; symbolic links are followed.
///
/// # Errors
///
/// Those of the system, when it cannot say.
pub async fn exists(path: impl AsRef<Path>) -> io::Result<bool> {
    on_path("exists", path.as_ref(), |path| fs::exists(path)).await
}

/// Gives a file another name; one that has it already is replaced.
///
/// # Errors
///
/// Those of the system, among them [`CrossesDevices`](io::ErrorKind::CrossesDevices).
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    on_paths("rename", from.as_ref(), to.as_ref(), |from, to| {
        fs::rename(from, to)
    })
    .await
}

/// Removes a file, or a symbolic link.
///
/// # Errors
///
/// Those of the system.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove_file", path.as_ref(), |path| fs::remove_file(path)).await
}

/// Removes an empty directory.
///
/// # Errors
///
/// Those of the system, among them [`DirectoryNotEmpty`](io::ErrorKind::DirectoryNotEmpty).
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove_dir", path.as_ref(), |path| fs::remove_dir(path)).await
}

/// Removes a directory with all that is in it; symbolic links are not followed. One job, which may take long.
///
/// # Errors
///
/// Those of the system; a part may be gone then.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("remove_dir_all", path.as_ref(), |path| {
        fs::remove_dir_all(path)
    })
    .await
}

/// Makes a directory.
///
/// # Errors
///
/// Those of the system: [`AlreadyExists`](io::ErrorKind::AlreadyExists), and [`NotFound`](io::ErrorKind::NotFound) without
/// the directory above it.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("create_dir", path.as_ref(), |path| fs::create_dir(path)).await
}

/// Makes a directory and those above it that are missing. One that exists already is no error.
///
/// # Errors
///
/// Those of the system.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    on_path("create_dir_all", path.as_ref(), |path| {
        fs::create_dir_all(path)
    })
    .await
}

/// Gives a file a second name.
///
/// # Errors
///
/// Those of the system.
pub async fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    on_paths(
        "hard_link",
        original.as_ref(),
        link.as_ref(),
        |original, link| fs::hard_link(original, link),
    )
    .await
}

/// What a symbolic link says.
///
/// # Errors
///
/// Those of the system; [`InvalidInput`](io::ErrorKind::InvalidInput) for what is no link.
pub async fn read_link(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_path("read_link", path.as_ref(), |path| fs::read_link(path)).await
}

/// The absolute path of a file, without links, `.` and `..`.
///
/// # Errors
///
/// Those of the system.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_path("canonicalize", path.as_ref(), |path| fs::canonicalize(path)).await
}

/// Sets the permissions of a file; symbolic links are followed.
///
/// # Errors
///
/// Those of the system.
pub async fn set_permissions(path: impl AsRef<Path>, permissions: Permissions) -> io::Result<()> {
    on_path("set_permissions", path.as_ref(), move |path| {
        fs::set_permissions(path, permissions)
    })
    .await
}

/// Sets the times of a file; symbolic links are followed.
///
/// # Errors
///
/// Those of the system; [`InvalidInput`](io::ErrorKind::InvalidInput) for a time that it cannot express.
pub async fn set_times(path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
    on_path("set_times", path.as_ref(), move |path| {
        sys::fs::set_times(path, times.accessed, times.modified, true)
    })
    .await
}

/// Sets the times of a file; of a symbolic link, those of the link itself (on Unix; elsewhere as [`set_times`]).
///
/// # Errors
///
/// As [`set_times`].
pub async fn set_times_nofollow(path: impl AsRef<Path>, times: FileTimes) -> io::Result<()> {
    on_path("set_times_nofollow", path.as_ref(), move |path| {
        sys::fs::set_times(path, times.accessed, times.modified, false)
    })
    .await
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
