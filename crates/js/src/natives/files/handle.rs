//! Open files, folders, and the streams of files.

use std::path::Path;
use std::rc::Rc;

use phaseloop_node::events::Emitter as _;
use phaseloop_node::fs as node;
use phaseloop_node::host;

use super::pool::{dirent, flags, stats, time};
use super::{allowed, callback, data};
use crate::engine::{Closure, Res, Scope, Val};
use crate::error;
use crate::natives::stream::{Handle, bind, keep};
use crate::natives::{arg, number, operations, text};

/// Returns the number of an open file; `None` once it is closed.
fn descriptor(file: &node::FileHandle) -> Option<f64> {
    #[cfg(unix)]
    return file.fd().map(f64::from);
    // It has no number there: that of the object stands for it.
    #[cfg(not(unix))]
    {
        let _ = file;
        Some(f64::NAN)
    }
}

/// Returns the function of an open file.
pub(super) fn file<'js>(scope: &Scope<'js>, file: node::FileHandle) -> Res<'js> {
    operations(scope, "file", move |scope, operation, args| {
        operate(scope, &file, operation, args)
    })
}

fn operate<'js>(
    scope: &Scope<'js>,
    file: &node::FileHandle,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let done = arg(scope, args, 0);
    let args = args.get(1..).unwrap_or_default();
    let unit = || callback(scope, &done, |scope, ()| Ok(scope.undefined()));
    let position = |index: usize| arg(scope, args, index).as_number().map(|it| it as u64);
    #[cfg(unix)]
    let mode = |index: usize| number(scope, args, index) as u32;
    match operation {
        "fd" => {
            return Ok(match descriptor(file) {
                Some(number) => scope.number(number),
                None => scope.undefined(),
            });
        }
        "lend" => scope.inner.data.lent_file.set(Some(file.clone())),
        "closeSync" => host::close_file(file),
        "readSync" | "writeSync" | "statSync" => return sync(scope, file, operation, &done, args),
        "read" => {
            let read = callback(scope, &done, |scope, it: Vec<u8>| scope.bytes(&it));
            node::read(file, number(scope, args, 0) as usize, position(1), read);
        }
        "write" => {
            let written = callback(scope, &done, |scope, count: usize| {
                Ok(scope.number(count as f64))
            });
            node::write(file, data(scope, args, 0)?, position(1), written);
        }
        "stat" => {
            let found = callback(scope, &done, |scope, it: node::Stats| stats(scope, &it));
            node::fstat(file, found);
        }
        "truncate" => node::ftruncate(file, position(0).unwrap_or(0), unit()),
        "sync" => node::fsync(file, unit()),
        "datasync" => node::fdatasync(file, unit()),
        "utimes" => {
            let [accessed, modified] = [0, 1].map(|at| time(number(scope, args, at)));
            node::futimes(file, accessed, modified, unit());
        }
        #[cfg(unix)]
        "chmod" => node::fchmod(file, mode(0), unit()),
        #[cfg(unix)]
        "chown" => node::fchown(file, mode(0), mode(1), unit()),
        "close" => node::close(file, unit()),
        "readFile" => {
            let held = scope.hold(&done);
            host::on_settled(&file.read_file(), move |result| {
                held.call(|scope| match result {
                    Ok(bytes) => Ok(vec![scope.null(), scope.bytes(&bytes)?]),
                    Err(reason) => Ok(vec![error::to_value(scope, &reason)?]),
                });
            });
        }
        "writeFile" => {
            let held = scope.hold(&done);
            host::on_settled(&file.write_file(data(scope, args, 0)?), move |result| {
                held.call(|scope| match result {
                    Ok(()) => Ok(vec![scope.null()]),
                    Err(reason) => Ok(vec![error::to_value(scope, &reason)?]),
                });
            });
        }
        "readStream" => {
            let stream = file.create_read_stream(read_options(scope, &arg(scope, args, 0))?);
            return bind_reading(scope, &done, &stream);
        }
        "writeStream" => {
            let stream = file.create_write_stream(write_options(scope, &arg(scope, args, 0))?);
            return bind_writing(scope, &done, &stream);
        }
        _ => return Err(super::unknown(scope, operation)),
    }
    Ok(scope.undefined())
}

/// Reads or writes at once: the length or the bytes, and the position.
fn sync<'js>(
    scope: &Scope<'js>,
    file: &node::FileHandle,
    operation: &str,
    what: &Val<'js>,
    args: &[Val<'js>],
) -> Res<'js> {
    let failed = |error: phaseloop_node::Error| scope.throw_reason(&error.into());
    let file = host::file_of(file).map_err(failed)?;
    let position = arg(scope, args, 0).as_number().map(|it| it as u64);
    let done = match operation {
        "statSync" => {
            let found = file.metadata().map(node::Stats::from);
            found.map(|it| stats(scope, &it))
        }
        "readSync" => {
            let mut bytes = vec![0; what.as_number().unwrap_or(0.0) as usize];
            super::sync::read(&file, &mut bytes, position).map(|count| scope.bytes(&bytes[..count]))
        }
        _ => {
            let bytes = data(scope, std::slice::from_ref(what), 0)?;
            super::sync::write_at(&file, &bytes, position)
                .map(|()| Ok(scope.number(bytes.len() as f64)))
        }
    };
    done.unwrap_or_else(|error| Err(failed(error.into())))
}

/// Returns the function of an open folder.
pub(super) fn folder<'js>(scope: &Scope<'js>, folder: node::Dir) -> Res<'js> {
    let closure: Closure =
        Rc::new(move |scope, args| {
            let done = arg(scope, args, 1);
            match text(scope, args, 0)?.as_str() {
                "path" => return scope.string(&folder.path().to_string_lossy()),
                "read" => {
                    folder.read_with(callback(scope, &done, |scope, it: Option<node::Dirent>| {
                        match it {
                            Some(it) => dirent(scope, it.name(), it.parent_path(), it.file_type()),
                            None => Ok(scope.null()),
                        }
                    }));
                }
                _ => folder.close_with(callback(scope, &done, |scope, ()| Ok(scope.undefined()))),
            }
            Ok(scope.undefined())
        });
    scope.closure("folder", closure)
}

fn read_options<'js>(scope: &Scope<'js>, given: &Val<'js>) -> Res<'js, node::ReadStreamOptions> {
    let number = |name: &str| -> Res<'js, Option<f64>> { Ok(given.get(scope, name)?.as_number()) };
    let usual = node::ReadStreamOptions::default();
    Ok(node::ReadStreamOptions {
        flags: match given.get(scope, "flags")?.as_text() {
            Some(text) => flags(scope, &text)?,
            None => usual.flags,
        },
        mode: number("mode")?.map_or(usual.mode, |it| it as u32),
        start: number("start")?.map_or(usual.start, |it| it as u64),
        end: number("end")?.map_or(usual.end, |it| it as u64),
        high_water_mark: number("highWaterMark")?.map_or(usual.high_water_mark, |it| it as usize),
        auto_close: given.get(scope, "autoClose")?.as_bool() != Some(false),
        signal: None,
    })
}

fn write_options<'js>(scope: &Scope<'js>, given: &Val<'js>) -> Res<'js, node::WriteStreamOptions> {
    let number = |name: &str| -> Res<'js, Option<f64>> { Ok(given.get(scope, name)?.as_number()) };
    let usual = node::WriteStreamOptions::default();
    Ok(node::WriteStreamOptions {
        flags: match given.get(scope, "flags")?.as_text() {
            Some(text) => flags(scope, &text)?,
            None => usual.flags,
        },
        mode: number("mode")?.map_or(usual.mode, |it| it as u32),
        start: number("start")?.map_or(usual.start, |it| it as u64),
        high_water_mark: number("highWaterMark")?.map_or(usual.high_water_mark, |it| it as usize),
        flush: given.get(scope, "flush")?.is_truthy(),
        auto_close: given.get(scope, "autoClose")?.as_bool() != Some(false),
        signal: None,
    })
}

type Bytes = Vec<u8>;

fn bind_reading<'js>(
    scope: &Scope<'js>,
    object: &Val<'js>,
    stream: &phaseloop_node::stream::Readable<Bytes>,
) -> Res<'js> {
    keep(scope, object, stream.emitter(), stream.id());
    bind(scope, object, Handle::of_bytes(Some(stream), None))
}

fn bind_writing<'js>(
    scope: &Scope<'js>,
    object: &Val<'js>,
    stream: &phaseloop_node::stream::Writable<Bytes>,
) -> Res<'js> {
    keep(scope, object, stream.emitter(), stream.id());
    bind(scope, object, Handle::of_bytes(None, Some(stream)))
}

/// Creates the stream of a file: the object, whether it writes, the path and the options.
pub(super) fn stream<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (object, path) = (arg(scope, args, 0), text(scope, args, 2)?);
    let (path, given) = (
        allowed(scope, Path::new(&path).into())?,
        arg(scope, args, 3),
    );
    match arg(scope, args, 1).is_truthy() {
        false => {
            let options = read_options(scope, &given)?;
            bind_reading(
                scope,
                &object,
                &node::create_read_stream_with(path, options),
            )
        }
        true => {
            let options = write_options(scope, &given)?;
            bind_writing(
                scope,
                &object,
                &node::create_write_stream_with(path, options),
            )
        }
    }
}
