//! The operations of `fs` that block, by name.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use phaseloop_node::{fs as node, host};

use super::pool::{dirent, flags, stats, target, time};
use super::{allowed, data, failed, failed_two};
use crate::engine::{Res, Scope, Val};
use crate::natives::{arg, number, text};

/// Reads what is at a position, or at that of the file.
pub(super) fn read(mut file: &fs::File, bytes: &mut [u8], at: Option<u64>) -> io::Result<usize> {
    let Some(at) = at else {
        return file.read(bytes);
    };
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, bytes, at);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, bytes, at);
}

/// Writes all bytes, at a position or at that of the file.
pub(super) fn write_at(mut file: &fs::File, bytes: &[u8], at: Option<u64>) -> io::Result<()> {
    let Some(at) = at else {
        return file.write_all(bytes);
    };
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(windows)]
    {
        let mut written = 0;
        while written < bytes.len() {
            let (rest, at) = (&bytes[written..], at + written as u64);
            match std::os::windows::fs::FileExt::seek_write(file, rest, at)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }
}

/// Opens a file with the flags of `fs.open`.
fn open(path: &Path, flag: &str, mode: u32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    let (is_append, is_new) = (flag.starts_with('a'), flag.contains('x'));
    let is_old = flag.starts_with('r');
    let writes = !is_old || flag.contains('+');
    options.read(is_old || flag.contains('+'));
    options.append(is_append).write(writes && !is_append);
    options.truncate(!is_append && !is_old);
    options.create(!is_old).create_new(is_new);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Opens a file with the flags of the system.
fn open_with(path: &Path, bits: i32, mode: u32) -> io::Result<fs::File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let access = bits & 0b11;
        let mut options = fs::OpenOptions::new();
        options.read(access != 1).write(access != 0);
        options.custom_flags(bits & !0b11).mode(mode).open(path)
    }
    #[cfg(not(unix))]
    {
        let _ = (path, bits, mode);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Creates a folder; returns the topmost that was created, if those above it may be created too.
fn make(path: &Path, is_recursive: bool, mode: u32) -> io::Result<Option<PathBuf>> {
    let missing = path.ancestors().take_while(|it| !it.exists());
    let topmost = missing.last().map(Path::to_owned);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(is_recursive);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.create(path)?;
    Ok(topmost.filter(|_| is_recursive))
}

fn set_times(path: &Path, accessed: f64, modified: f64) -> io::Result<()> {
    let times = fs::FileTimes::new()
        .set_accessed(time(accessed))
        .set_modified(time(modified));
    fs::File::open(path)?.set_times(times)
}

#[cfg(unix)]
fn link_to(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn link_to(target: &Path, link: &Path) -> io::Result<()> {
    match link.parent().unwrap_or(Path::new("")).join(target).is_dir() {
        true => std::os::windows::fs::symlink_dir(target, link),
        false => std::os::windows::fs::symlink_file(target, link),
    }
}

/// Calls an operation.
pub(super) fn call<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (operation, args) = (text(scope, args, 0)?, &args[1..]);
    if let Some(done) = super::blocking::call(scope, &operation, args) {
        return done;
    }
    let path = |index: usize| -> Res<'js, PathBuf> {
        allowed(scope, PathBuf::from(text(scope, args, index)?))
    };
    let mode = |index: usize| number(scope, args, index) as u32;
    let nothing = |()| Ok(scope.undefined());
    let text_of = |path: PathBuf| scope.string(&path.to_string_lossy());
    // Two paths.
    if ["symlink", "link", "rename", "copyFile"].contains(&&*operation) {
        let to = path(1)?;
        let (from, done, name) = match operation.as_str() {
            "symlink" => {
                let from = target(scope, &text(scope, args, 0)?, &to)?;
                let done = link_to(&from, &to);
                (from, done, "symlink")
            }
            "link" => (path(0)?, fs::hard_link(path(0)?, &to), "link"),
            "rename" => (path(0)?, fs::rename(path(0)?, &to), "rename"),
            _ if mode(2) & 1 != 0 && fs::symlink_metadata(&to).is_ok() => {
                let error = io::Error::from(io::ErrorKind::AlreadyExists);
                (path(0)?, Err(error), "copyfile")
            }
            _ => (path(0)?, fs::copy(path(0)?, &to).map(drop), "copyfile"),
        };
        let done = done.map_err(|error| failed_two(scope, error, name, &from, &to));
        return done.and_then(nothing);
    }
    let at = path(0)?;
    let (done, name): (io::Result<Res<'js>>, _) = match operation.as_str() {
        "writeFile" => {
            let (bytes, flag) = (data(scope, args, 1)?, text(scope, args, 2)?);
            flags(scope, &flag)?;
            let opened = open(&at, &flag, mode(3));
            let written = opened.and_then(|file| write_at(&file, &bytes, None));
            (written.map(nothing), "open")
        }
        "open" => {
            let opened = match arg(scope, args, 1).as_number() {
                Some(bits) => open_with(&at, bits as i32, mode(2)),
                None => {
                    let flag = text(scope, args, 1)?;
                    flags(scope, &flag)?;
                    open(&at, &flag, mode(2))
                }
            };
            let opened = opened.map(host::file_handle);
            (opened.map(|it| super::handle::file(scope, it)), "open")
        }
        "mkdir" => {
            let made = make(&at, arg(scope, args, 1).is_truthy(), mode(2));
            let shown = |it: Option<PathBuf>| it.map_or(Ok(scope.undefined()), text_of);
            (made.map(shown), "mkdir")
        }
        "stat" => {
            let found = fs::metadata(&at).map(node::Stats::from);
            (found.map(|it| stats(scope, &it)), "stat")
        }
        "lstat" => {
            let found = fs::symlink_metadata(&at).map(node::Stats::from);
            (found.map(|it| stats(scope, &it)), "lstat")
        }
        "readdir" => (
            entries(&at).map(|it| {
                let is_typed = arg(scope, args, 1).is_truthy();
                let values = it.into_iter().map(|(name, kind)| match is_typed {
                    true => dirent(scope, &name, &at, kind),
                    false => scope.string(&name.to_string_lossy()),
                });
                scope.array(&values.collect::<Res<'js, Vec<_>>>()?)
            }),
            "scandir",
        ),
        "readlink" => (fs::read_link(&at).map(text_of), "readlink"),
        "realpath" => (fs::canonicalize(&at).map(text_of), "realpath"),
        "unlink" => (fs::remove_file(&at).map(nothing), "unlink"),
        "rmdir" => (fs::remove_dir(&at).map(nothing), "rmdir"),
        "utimes" => {
            let [accessed, modified] = [1, 2].map(|index| number(scope, args, index));
            (set_times(&at, accessed, modified).map(nothing), "utime")
        }
        "truncate" => {
            let opened = fs::OpenOptions::new().write(true).open(&at);
            let cut = opened.and_then(|it| it.set_len(number(scope, args, 1) as u64));
            (cut.map(nothing), "open")
        }
        #[cfg(unix)]
        "chmod" => {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode(1));
            (fs::set_permissions(&at, mode).map(nothing), "chmod")
        }
        _ => return Err(super::unknown(scope, &operation)),
    };
    done.unwrap_or_else(|error| Err(failed(scope, error, name, &at)))
}

/// Returns the names in a folder, sorted.
fn entries(path: &Path) -> io::Result<Vec<(std::ffi::OsString, fs::FileType)>> {
    let entries = fs::read_dir(path)?.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name(), entry.file_type()?))
    });
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(entries)
}
