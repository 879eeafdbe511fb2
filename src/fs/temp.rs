//! Temporary files and directories with unique names.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::file::File;
use super::job::on_path;
use crate::sys;

/// The suffix of every template.
const PLACEHOLDER: &str = "XXXXXX";

/// Names that are tried before the call fails. A directory in which this many names are taken is
/// under attack or full.
const ATTEMPTS: usize = 1000;

/// Creates a directory with a unique name and permissions for this user only, and returns its path.
///
/// The template ends in `XXXXXX`, which random letters and digits replace. The caller removes the
/// directory.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a template that does not end in `XXXXXX`; any
/// OS error of creating the file or directory.
///
/// # Cancel safety
///
/// If the future is dropped, the directory may have been created.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     assert!(fs::metadata(&folder).await?.is_dir());
///     fs::remove_dir(folder).await
/// }
/// ```
#[track_caller]
pub fn mkdtemp(template: impl AsRef<Path>) -> impl Future<Output = io::Result<PathBuf>> {
    on_path("mkdtemp", template, |template| {
        let make = |path: &Path| sys::fs::create_private_dir(path);
        make_unique(template, make).map(|((), path)| path)
    })
    .here()
}

/// Creates a file with a unique name and permissions for this user only, and opens it for reading
/// and writing. The template is that of [`mkdtemp`].
///
/// # Errors
///
/// The errors of [`mkdtemp`].
///
/// # Cancel safety
///
/// If the future is dropped, the file may have been created; its descriptor is closed.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (file, path) = fs::mkstemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     file.write_all_at(b"secret", 0).await?; // no other user can read it
///     fs::remove_file(path).await?;
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn mkstemp(template: impl AsRef<Path>) -> impl Future<Output = io::Result<(File, PathBuf)>> {
    let call = on_path("mkstemp", template, |template| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        sys::fs::create_private(&mut options);
        make_unique(template, |path| options.open(path))
    });
    call.here()
        .map(|(file, path)| (File::new(file, path.clone()), path))
}

/// Tries names until one is free.
fn make_unique<T>(
    template: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let Some(stem) = sys::fs::strip_suffix(template.as_os_str(), PLACEHOLDER) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a template ends in XXXXXX",
        ));
    };
    let mut result = Err(io::ErrorKind::AlreadyExists.into());
    for _ in 0..ATTEMPTS {
        let mut path = OsString::from(stem);
        path.push(random_name());
        let path = PathBuf::from(path);
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => result = Err(error),
            Err(error) => return Err(error),
        }
    }
    result
}

/// Returns six random letters and digits.
#[inline]
fn random_name() -> String {
    const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // `RandomState` is seeded from the kernel's random source and differs in every call, which is
    // enough for names; guessing them gains nothing, since creation is exclusive.
    let mut random = RandomState::new().hash_one(PLACEHOLDER);
    let mut next = || {
        let character = CHARACTERS[(random % 62) as usize];
        random /= 62;
        char::from(character)
    };
    (0..PLACEHOLDER.len()).map(|_| next()).collect()
}
