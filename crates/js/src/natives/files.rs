//! Files: what modules are read by, and the part of `fs` that is bound.

mod blocking;
mod handle;
mod pool;
mod sync;
mod watch;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use phaseloop_node::{Error, host};

use super::{arg, number, text, unknown};
use crate::engine::{Fault, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("write", write),
    ("isFile", is_file),
    ("exists", exists),
    ("realPath", real_path),
    ("readText", read_text),
    ("readBytes", read_bytes),
    ("makeTemporary", make_temporary),
    ("isFolder", is_folder),
    ("remove", remove),
    ("isTerminal", is_terminal),
    ("fs", pool::call),
    ("fsStream", handle::stream),
    ("fsSync", sync::call),
    ("watch", watch::watch),
    ("watchFile", watch::watch_file),
    ("unwatchFile", watch::unwatch_file),
];

/// Returns the path of an argument, if the engine may touch it.
fn path<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js, PathBuf> {
    allowed(scope, PathBuf::from(text(scope, args, 0)?))
}

fn allowed<'js>(scope: &Scope<'js>, path: PathBuf) -> Res<'js, PathBuf> {
    if scope.inner.data.settings.files.allows(&path) {
        return Ok(path);
    }
    Err(super::denied(scope))
}

/// The error of an operation with two paths.
fn failed_two(scope: &Scope<'_>, error: io::Error, syscall: &str, from: &Path, to: &Path) -> Fault {
    let node = Error::from(error);
    let thrown = error::of_node(scope, &node).and_then(|value| {
        let code = node.code().unwrap_or("EIO");
        let why = host::text_of(code).unwrap_or(node.message());
        let (from, to) = (from.display().to_string(), to.display().to_string());
        let message = format!("{code}: {why}, {syscall} '{from}' -> '{to}'");
        let fields = [
            ("message", message.as_str()),
            ("syscall", syscall),
            ("path", &from),
            ("dest", &to),
        ];
        for (key, text) in fields {
            value.set(key, &scope.string(text)?)?;
        }
        Ok(scope.throw(value))
    });
    thrown.unwrap_or_else(|fault| fault)
}

fn failed(scope: &Scope<'_>, error: io::Error, syscall: &str, path: &Path) -> Fault {
    let is_folder = error.kind() == io::ErrorKind::IsADirectory;
    let node = Error::from(error);
    let thrown = error::of_node(scope, &node).and_then(|value| {
        let code = node.code().unwrap_or("EIO");
        let why = host::text_of(code).unwrap_or(node.message());
        // A folder can be opened; to read it fails, without a path as in Node.
        let (syscall, place) = match is_folder && syscall == "open" {
            true => ("read", String::new()),
            false => (syscall, format!(" '{}'", path.display())),
        };
        let message = format!("{code}: {why}, {syscall}{place}");
        value.set("message", &scope.string(&message)?)?;
        value.set("syscall", &scope.string(syscall)?)?;
        if !place.is_empty() {
            value.set("path", &scope.string(&path.to_string_lossy())?)?;
        }
        Ok(scope.throw(value))
    });
    thrown.unwrap_or_else(|fault| fault)
}

/// Returns the bytes of an argument: those of a view, or of a text in UTF-8.
fn data<'js>(scope: &Scope<'js>, args: &[Val<'js>], index: usize) -> Res<'js, Vec<u8>> {
    let data = arg(scope, args, index);
    match data.to_bytes() {
        Some(bytes) => Ok(bytes),
        None => Ok(data.to_text()?.into_bytes()),
    }
}

fn write<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (fd, bytes) = (number(scope, args, 0), data(scope, args, 1)?);
    let mut console = scope.inner.data.console.borrow_mut();
    if let Some(console) = &mut *console {
        console.write(fd == 2.0, &String::from_utf8_lossy(&bytes));
    } else {
        // A reader that has gone away ends nothing.
        let _ = match fd {
            2.0 => io::stderr().write_all(&bytes),
            _ => io::stdout()
                .write_all(&bytes)
                .and_then(|()| io::stdout().flush()),
        };
    }
    Ok(scope.number(bytes.len() as f64))
}

fn is_terminal<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let has_console = scope.inner.data.console.borrow().is_some();
    let is_terminal = match number(scope, args, 0) {
        0.0 => return Ok(scope.boolean(io::stdin().is_terminal())),
        2.0 => io::stderr().is_terminal(),
        _ => io::stdout().is_terminal(),
    };
    Ok(scope.boolean(!has_console && is_terminal))
}

fn is_file<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    Ok(scope.boolean(path(scope, args)?.is_file()))
}

fn exists<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    Ok(scope.boolean(path(scope, args)?.exists()))
}

fn real_path<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    match fs::canonicalize(&path) {
        Ok(real) => scope.string(&real.to_string_lossy()),
        Err(error) => Err(failed(scope, error, "realpath", &path)),
    }
}

fn read_text<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    match fs::read(&path) {
        Ok(bytes) => scope.string(&String::from_utf8_lossy(&bytes)),
        Err(error) => Err(failed(scope, error, "open", &path)),
    }
}

fn read_bytes<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    match fs::read(&path) {
        Ok(bytes) => scope.bytes(&bytes),
        Err(error) => Err(failed(scope, error, "open", &path)),
    }
}

fn make_temporary<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let prefix = path(scope, args)?;
    let mut builder = fs::DirBuilder::new();
    // As `mkdtemp`: for its owner alone.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let mut seed = std::process::id() as usize ^ std::ptr::from_ref(scope) as usize;
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("{}{:06x}", prefix.display(), (seed >> 20) & 0xff_ffff);
        match builder.create(&name) {
            Ok(()) => return scope.string(&name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(scope, error, "mkdtemp", Path::new(&name))),
        }
    }
}

/// Returns whether a path is a folder, without following a link.
fn is_folder<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    match fs::symlink_metadata(&path) {
        Ok(found) => Ok(scope.boolean(found.is_dir())),
        Err(error) => Err(failed(scope, error, "lstat", &path)),
    }
}

/// Removes a file, or a folder and all in it.
fn remove<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    let removed = match arg(scope, args, 1).is_truthy() {
        true => fs::remove_dir_all(&path),
        false => fs::remove_file(&path),
    };
    match removed {
        Ok(()) => Ok(scope.undefined()),
        Err(error) => Err(failed(scope, error, "rm", &path)),
    }
}

/// Calls the callback of JavaScript with an error, or with what `value` makes.
fn callback<'s, T>(
    scope: &Scope<'s>,
    function: &Val<'s>,
    value: impl for<'js> FnOnce(&Scope<'js>, T) -> Res<'js> + 'static,
) -> impl FnOnce(Result<T, Error>) + 'static
where
    T: 'static,
{
    let function = scope.hold(function);
    move |result| {
        function.call(|scope| match result {
            Ok(output) => Ok(vec![scope.null(), value(scope, output)?]),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    }
}
