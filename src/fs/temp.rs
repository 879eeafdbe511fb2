//! Files and directories with names that nobody else has.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use super::file::File;
use super::job::on_path;
use crate::sys;

/// What a template ends in.
const PLACEHOLDER: &str = "XXXXXX";

/// How many names are tried before it is given up: with this many taken, the directory is not the place for another.
const ATTEMPTS: usize = 1000;

/// Makes a directory with a name of its own, for this user only, and returns its path.
///
/// The template's last six characters are `XXXXXX`; letters and digits take their place. Who makes it removes it.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for another template, and those of the system.
///
/// # Examples
///
/// ```
/// use phaseloop::fs;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
///     assert!(fs::metadata(&folder).await?.is_dir());
///     fs::remove_dir(folder).await
/// })
/// # }
/// ```
pub async fn mkdtemp(template: impl AsRef<Path>) -> io::Result<PathBuf> {
    on_path("mkdtemp", template.as_ref(), |template| {
        let make = |path: &Path| sys::fs::create_private_dir(path);
        make_unique(template, make).map(|((), path)| path)
    })
    .await
}

/// Makes a file with a name of its own, for this user only, and opens it for reading and writing.
///
/// As [`mkdtemp`].
///
/// # Errors
///
/// As [`mkdtemp`].
pub async fn mkstemp(template: impl AsRef<Path>) -> io::Result<(File, PathBuf)> {
    let (file, path) = on_path("mkstemp", template.as_ref(), |template| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        sys::fs::create_private(&mut options);
        make_unique(template, |path| options.open(path))
    })
    .await?;
    Ok((File::new(file, path.clone()), path))
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

/// Six letters and digits, of which another call makes others.
fn random_name() -> String {
    const CHARACTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // The standard library's hash maps have keys from the system's random numbers, and new ones each time.
    let mut random = RandomState::new().hash_one(PLACEHOLDER);
    let mut next = || {
        let character = CHARACTERS[(random % 62) as usize];
        random /= 62;
        char::from(character)
    };
    (0..PLACEHOLDER.len()).map(|_| next()).collect()
}
