//! The operations of `fs` that run on the pool, by name: the operation, the callback, a signal that
//! follows that of JavaScript, and the arguments.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use phaseloop_node::fs as node;
use phaseloop_node::{Error, Reason};

use super::{allowed, callback, data};
use crate::engine::{Held, Res, Scope, Val};
use crate::natives::{arg, number, outside, text};

/// Returns the object of the figures of a file.
pub(super) fn stats<'js>(scope: &Scope<'js>, stats: &node::Stats) -> Res<'js> {
    let numbers = [
        stats.dev() as f64,
        f64::from(stats.mode()),
        stats.nlink() as f64,
        f64::from(stats.uid()),
        f64::from(stats.gid()),
        stats.rdev() as f64,
        stats.blksize() as f64,
        stats.ino() as f64,
        stats.size() as f64,
        stats.blocks() as f64,
        stats.atime_ms(),
        stats.mtime_ms(),
        stats.ctime_ms(),
        stats.birthtime_ms(),
    ];
    let values = numbers.map(|it| scope.number(it));
    scope.internal("fsStats", &values)
}

/// Returns the object of an entry of a folder.
pub(super) fn dirent<'js>(
    scope: &Scope<'js>,
    name: &std::ffi::OsStr,
    folder: &Path,
    kind: std::fs::FileType,
) -> Res<'js> {
    let args = [
        scope.string(&name.to_string_lossy())?,
        scope.string(&folder.to_string_lossy())?,
        scope.number(kind_of(kind)),
    ];
    scope.internal("fsDirent", &args)
}

/// Returns the number that Node has for a type of file.
fn kind_of(kind: std::fs::FileType) -> f64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let others = [
            (kind.is_fifo(), 4.0),
            (kind.is_socket(), 5.0),
            (kind.is_char_device(), 6.0),
            (kind.is_block_device(), 7.0),
        ];
        if let Some((_, number)) = others.into_iter().find(|(is, _)| *is) {
            return number;
        }
    }
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => 1.0,
        (_, true) => 2.0,
        _ if kind.is_symlink() => 3.0,
        _ => 0.0,
    }
}

fn path_text<'js>(scope: &Scope<'js>, path: &Path) -> Res<'js> {
    scope.string(&path.to_string_lossy())
}

/// Returns the time of a number of seconds.
pub(super) fn time(seconds: f64) -> SystemTime {
    let length = Duration::try_from_secs_f64(seconds.abs()).unwrap_or_default();
    match seconds < 0.0 {
        true => SystemTime::UNIX_EPOCH - length,
        false => SystemTime::UNIX_EPOCH + length,
    }
}

/// Returns the flags of a text.
pub(super) fn flags<'js>(scope: &Scope<'js>, text: &str) -> Res<'js, node::Flags> {
    text.parse()
        .map_err(|error: Error| scope.throw_reason(&Reason::new(error)))
}

/// Checks what a link shall point to, which is relative to the folder of the link.
pub(super) fn target<'js>(scope: &Scope<'js>, target: &str, link: &Path) -> Res<'js, PathBuf> {
    let folder = link.parent().unwrap_or(Path::new(""));
    allowed(scope, folder.join(target))?;
    Ok(target.into())
}

/// Starts an operation.
pub(super) fn call<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (operation, done, signal) = (
        text(scope, args, 0)?,
        arg(scope, args, 1),
        arg(scope, args, 2),
    );
    let args = &args[3..];
    let path = |index: usize| -> Res<'js, PathBuf> {
        allowed(scope, PathBuf::from(text(scope, args, index)?))
    };
    let size = |index: usize| number(scope, args, index) as u64;
    let mode = |index: usize| number(scope, args, index) as u32;
    let flag = |index: usize| arg(scope, args, index).is_truthy();
    let when = |index: usize| time(number(scope, args, index));
    let signal = || crate::natives::signals::lent(scope, &signal);
    let unit = || callback(scope, &done, |scope, ()| Ok(scope.undefined()));
    let stat = || callback(scope, &done, |scope, it: node::Stats| stats(scope, &it));
    let place = || callback(scope, &done, |scope, it: PathBuf| path_text(scope, &it));
    let copied = || callback(scope, &done, |scope, _: u64| Ok(scope.undefined()));
    match operation.as_str() {
        "access" => node::access(path(0)?, access(mode(1)), unit()),
        "stat" => node::stat(path(0)?, stat()),
        "lstat" => node::lstat(path(0)?, stat()),
        "statfs" => node::statfs(
            path(0)?,
            callback(scope, &done, |scope, it: node::StatFs| {
                let numbers = [
                    it.kind, it.bsize, it.blocks, it.bfree, it.bavail, it.files, it.ffree,
                ];
                scope.internal("fsStatFs", &numbers.map(|it| scope.number(it as f64)))
            }),
        ),
        "readlink" => node::readlink(path(0)?, place()),
        "realpath" => node::realpath(path(0)?, place()),
        "mkdtemp" => node::mkdtemp(path(0)?, place()),
        "truncate" => node::truncate(path(0)?, size(1), unit()),
        "utimes" => node::utimes(path(0)?, when(1), when(2), unit()),
        "lutimes" => node::lutimes(path(0)?, when(1), when(2), unit()),
        #[cfg(unix)]
        "chmod" => node::chmod(path(0)?, mode(1), unit()),
        #[cfg(unix)]
        "chown" => node::chown(path(0)?, mode(1), mode(2), unit()),
        #[cfg(unix)]
        "lchown" => node::lchown(path(0)?, mode(1), mode(2), unit()),
        "mkdir" => node::mkdir(path(0)?, unit()),
        "mkdirWith" => {
            let options = node::MkdirOptions {
                recursive: flag(1),
                mode: mode(2),
            };
            let made = callback(scope, &done, |scope, it: Option<PathBuf>| match it {
                Some(path) => path_text(scope, &path),
                None => Ok(scope.undefined()),
            });
            node::mkdir_with(path(0)?, options, made);
        }
        "rm" => {
            let options = node::RmOptions {
                recursive: flag(1),
                force: flag(2),
                max_retries: mode(3),
                retry_delay: number(scope, args, 4).into(),
            };
            node::rm(path(0)?, options, unit());
        }
        "rmdir" => node::rmdir(path(0)?, unit()),
        "unlink" => node::unlink(path(0)?, unit()),
        "readdir" => {
            let names = callback(scope, &done, |scope, it: Vec<std::ffi::OsString>| {
                let names = it.iter().map(|it| scope.string(&it.to_string_lossy()));
                scope.array(&names.collect::<Res<'_, Vec<_>>>()?)
            });
            node::readdir(path(0)?, names);
        }
        "readdirWith" => {
            let options = node::ReaddirOptions { recursive: flag(1) };
            let entries = callback(scope, &done, |scope, it: Vec<node::Dirent>| {
                let each =
                    |it: &node::Dirent| dirent(scope, it.name(), it.parent_path(), it.file_type());
                let entries = it.iter().map(each);
                scope.array(&entries.collect::<Res<'_, Vec<_>>>()?)
            });
            node::readdir_with(path(0)?, options, entries);
        }
        "opendir" => node::opendir(path(0)?, callback(scope, &done, super::handle::folder)),
        "open" => {
            let flags = flags(scope, &text(scope, args, 1)?)?;
            let opened = callback(scope, &done, super::handle::file);
            node::open_with_mode(path(0)?, flags, mode(2), opened);
        }
        "readFile" => {
            let options = node::ReadFileOptions {
                flag: flags(scope, &text(scope, args, 1)?)?,
                signal: signal()?,
            };
            let read = callback(scope, &done, |scope, it: Vec<u8>| scope.bytes(&it));
            node::read_file_with(path(0)?, options, read);
        }
        "writeFile" => {
            let options = node::WriteFileOptions {
                flag: flags(scope, &text(scope, args, 2)?)?,
                mode: mode(3),
                flush: flag(4),
                signal: signal()?,
            };
            node::write_file_with(path(0)?, data(scope, args, 1)?, options, unit());
        }
        "symlink" => {
            let link = path(1)?;
            let target = target(scope, &text(scope, args, 0)?, &link)?;
            node::symlink(target, link, unit());
        }
        "link" => node::link(path(0)?, path(1)?, unit()),
        "rename" => node::rename(path(0)?, path(1)?, unit()),
        "copyFile" => {
            let options = node::CopyOptions::new();
            let options = match mode(2) & 1 {
                0 => options,
                _ => options.exclusive(true),
            };
            node::copy_file_with(path(0)?, path(1)?, options, copied());
        }
        "cp" => node::cp_with(path(0)?, path(1)?, cp_options(scope, args)?, unit()),
        "glob" => {
            // A pattern names any folder.
            outside(scope)?;
            let patterns = arg(scope, args, 0).elements()?;
            let patterns: Vec<_> = patterns.iter().map(Val::to_text).collect::<Res<'js, _>>()?;
            let options = node::GlobOptions::default().cwd(text(scope, args, 1)?);
            let exclude = arg(scope, args, 2);
            let options = match exclude.is_function() {
                false => options,
                true => {
                    let exclude = scope.hold(&exclude);
                    options.exclude(move |path| decided(&exclude, &[path]))
                }
            };
            let found = callback(scope, &done, |scope, it: Vec<PathBuf>| {
                let paths = it.iter().map(|it| path_text(scope, it));
                scope.array(&paths.collect::<Res<'_, Vec<_>>>()?)
            });
            node::glob_with(patterns, options, found);
        }
        _ => return Err(super::unknown(scope, &operation)),
    }
    Ok(scope.undefined())
}

/// Asks a function of JavaScript about paths. Throws its exception.
fn decided(function: &Held, paths: &[&Path]) -> bool {
    function.engine().is_some_and(|inner| {
        inner.run(|scope| {
            let paths = paths.iter().map(|it| path_text(scope, it));
            let paths = paths.collect::<Res<'_, Vec<_>>>()?;
            let answer = function.get(scope)?.call(&scope.undefined(), &paths)?;
            Ok(answer.is_truthy())
        })
    })
}

/// Decides about a path and its copy.
type Filter = dyn Fn(&Path, &Path) -> bool;

/// The options of `cp`: six flags, whether the target must not exist, and the filter.
pub(super) fn cp_options<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js, node::CpOptions> {
    let flag = |index: usize| arg(scope, args, index).is_truthy();
    let filter = arg(scope, args, 9);
    let filter: Option<Rc<Filter>> = match filter.is_function() {
        true => {
            let filter = scope.hold(&filter);
            Some(Rc::new(move |from, to| decided(&filter, &[from, to])))
        }
        false => None,
    };
    Ok(node::CpOptions {
        dereference: flag(2),
        error_on_exist: flag(3),
        force: flag(4),
        preserve_timestamps: flag(5),
        recursive: flag(6),
        verbatim_symlinks: flag(7),
        mode: node::CopyOptions::new().exclusive(flag(8)),
        filter,
    })
}

pub(super) fn access(bits: u32) -> node::Access {
    let each = [
        (4, node::Access::READ),
        (2, node::Access::WRITE),
        (1, node::Access::EXECUTE),
    ];
    let wanted = each.into_iter().filter(|(bit, _)| bits & bit != 0);
    wanted.fold(node::Access::EXISTS, |all, (_, access)| all | access)
}
