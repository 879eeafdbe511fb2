//! Files: what modules are read by, and the part of `fs` that is bound.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use phaseloop_node::fs as node;
use phaseloop_node::{Error, Reason};

use super::{arg, number, text};
use crate::engine::{Fault, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("write", write),
    ("isFile", is_file),
    ("exists", exists),
    ("realPath", real_path),
    ("readText", read_text),
    ("makeTemporary", make_temporary),
    ("removeAll", remove_all),
    ("makeFolder", make_folder),
    ("unlink", unlink),
    ("readFile", read_file),
    ("writeFile", write_file),
];

/// Returns the path of an argument, if the engine may touch it.
fn path<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js, PathBuf> {
    let path = PathBuf::from(text(scope, args, 0)?);
    if scope.inner.data.settings.files.allows(&path) {
        return Ok(path);
    }
    let error = Error::with_code(
        "ERR_ACCESS_DENIED",
        "Access to this API has been restricted",
    );
    Err(scope.throw_reason(&Reason::new(error)))
}

fn failed(scope: &Scope<'_>, error: io::Error, syscall: &str, path: &Path) -> Fault {
    let node = Error::from(error);
    let thrown = error::of_node(scope, &node).and_then(|value| {
        let code = node.code().unwrap_or("EIO");
        let why = node.message();
        let message = format!("{code}: {why}, {syscall} '{}'", path.display());
        value.set("message", &scope.string(&message)?)?;
        value.set("syscall", &scope.string(syscall)?)?;
        value.set("path", &scope.string(&path.to_string_lossy())?)?;
        Ok(scope.throw(value))
    });
    thrown.unwrap_or_else(|fault| fault)
}

fn write<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (fd, text) = (number(scope, args, 0), text(scope, args, 1)?);
    let mut console = scope.inner.data.console.borrow_mut();
    if let Some(console) = &mut *console {
        console.write(fd == 2.0, &text);
    } else {
        // A reader that has gone away ends nothing.
        let _ = match fd {
            2.0 => io::stderr().write_all(text.as_bytes()),
            _ => io::stdout()
                .write_all(text.as_bytes())
                .and_then(|()| io::stdout().flush()),
        };
    }
    Ok(scope.number(text.len() as f64))
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

fn make_temporary<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let prefix = path(scope, args)?;
    let mut seed = std::process::id() as usize ^ std::ptr::from_ref(scope) as usize;
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("{}{:06x}", prefix.display(), (seed >> 20) & 0xff_ffff);
        match fs::create_dir(&name) {
            Ok(()) => return scope.string(&name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(scope, error, "mkdtemp", Path::new(&name))),
        }
    }
}

fn remove_all<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let path = path(scope, args)?;
    let is_folder = path.is_dir();
    let removed = match is_folder {
        true => fs::remove_dir_all(&path),
        false => fs::remove_file(&path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(scope, error, "rm", &path))
        }
        _ => Ok(scope.undefined()),
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

fn make_folder<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let done = callback(scope, &arg(scope, args, 1), |scope, ()| {
        Ok(scope.undefined())
    });
    node::mkdir(path(scope, args)?, done);
    Ok(scope.undefined())
}

fn unlink<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let done = callback(scope, &arg(scope, args, 1), |scope, ()| {
        Ok(scope.undefined())
    });
    node::unlink(path(scope, args)?, done);
    Ok(scope.undefined())
}

fn read_file<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let is_text = arg(scope, args, 2).is_truthy();
    let done = callback(
        scope,
        &arg(scope, args, 1),
        move |scope, bytes: Vec<u8>| match is_text {
            true => scope.string(&String::from_utf8_lossy(&bytes)),
            false => scope.bytes(&bytes),
        },
    );
    node::read_file(path(scope, args)?, done);
    Ok(scope.undefined())
}

fn write_file<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let data = arg(scope, args, 2);
    let bytes = match data.to_bytes() {
        Some(bytes) => bytes,
        None => data.to_text()?.into_bytes(),
    };
    let done = callback(scope, &arg(scope, args, 1), |scope, ()| {
        Ok(scope.undefined())
    });
    node::write_file(path(scope, args)?, bytes, done);
    Ok(scope.undefined())
}
