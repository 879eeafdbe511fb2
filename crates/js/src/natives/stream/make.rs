//! Streams whose functions are methods of JavaScript.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::stream::{
    Done, Duplex, Readable, ReadableBuilder, Transform, Transformed, Writable, WritableBuilder,
};
use phaseloop_node::{Error, Reason};

use super::chunk::{Chunk, JsChunk as _};
use super::{Handle, Reading, Writing};
use crate::engine::{Closure, Held, Res, Scope, Val};
use crate::error;

/// The options of a stream, as the prelude passes them.
struct Options<'s, 'js>(&'s Scope<'js>, Val<'js>);

impl Options<'_, '_> {
    fn flag(&self, name: &str) -> bool {
        self.1.get(self.0, name).is_ok_and(|it| it.is_truthy())
    }

    fn mark(&self, name: &str) -> Option<usize> {
        let mark = self.1.get(self.0, name).ok()?.as_number()?;
        Some(mark as usize)
    }
}

/// Calls a method of the stream, from the loop.
fn call(
    stream: &Held,
    method: &'static str,
    args: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, Vec<Val<'js>>>,
) {
    if let Some(inner) = stream.engine() {
        inner.run(|scope| {
            let it = stream.get(scope)?;
            let args = args(scope)?;
            it.get(scope, method)?.call(&it, &args).map(drop)
        });
    }
}

/// Returns the error of Rust for a value that JavaScript has passed as one; `None` for none.
pub(in crate::natives) fn failure<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Option<Error> {
    (!value.is_nullish()).then(|| error::to_node(scope, value))
}

/// Returns a function that calls `f` once with its error and value; a second call is an error.
fn once<'js>(
    scope: &Scope<'js>,
    f: impl for<'a> FnOnce(&Scope<'a>, Option<Error>, &Val<'a>) -> Res<'a, ()> + 'static,
) -> Res<'js> {
    let f = RefCell::new(Some(f));
    let closure: Closure = Rc::new(move |scope, args| {
        let (first, second) = (super::arg(scope, args, 0), super::arg(scope, args, 1));
        let Some(f) = f.take() else {
            let error = Error::with_code("ERR_MULTIPLE_CALLBACK", "Callback called multiple times");
            return Err(scope.throw_reason(&Reason::new(error)));
        };
        f(scope, failure(scope, &first), &second)?;
        Ok(scope.undefined())
    });
    scope.closure("callback", closure)
}

/// Returns the callback of a function that reports its end by `done`.
pub(in crate::natives) fn callback<'js>(scope: &Scope<'js>, done: Done) -> Res<'js> {
    once(scope, move |_, error, _| {
        done.pass(error);
        Ok(())
    })
}

fn write_args<'js>(
    scope: &Scope<'js>,
    chunk: &Chunk,
    is_object: bool,
    last: Val<'js>,
) -> Res<'js, Vec<Val<'js>>> {
    let value = chunk.to_js(scope, false)?;
    let args = [value, scope.boolean(is_object), last];
    scope.internal("writeArgs", &args)?.elements()
}

/// Sets the options that both sides have.
macro_rules! shared {
    ($builder:expr, $options:expr, $stream:expr) => {{
        let mut builder = $builder.auto_destroy(!$options.flag("noAutoDestroy"));
        if $options.flag("construct") {
            let stream = $stream.clone();
            builder = builder.construct(move |done| {
                call(&stream, "_construct", |scope| {
                    Ok(vec![callback(scope, done)?])
                });
            });
        }
        let stream = $stream.clone();
        builder.destroy(move |error, done| {
            call(&stream, "_destroy", |scope| {
                let error = match &error {
                    Some(error) => error::of_node(scope, error)?,
                    None => scope.null(),
                };
                Ok(vec![error, callback(scope, done)?])
            });
        })
    }};
}

fn readable(stream: &Held, options: &Options<'_, '_>) -> ReadableBuilder<Chunk> {
    let mut builder = match options.flag("readableObjectMode") {
        true => Readable::objects(),
        false => Readable::bytes(),
    };
    if let Some(mark) = options.mark("readableHighWaterMark") {
        builder = builder.high_water_mark(mark);
    }
    let it = stream.clone();
    builder.read(move |_, size| {
        call(&it, "_read", |scope| Ok(vec![scope.number(size as f64)]));
    })
}

fn writable(stream: &Held, options: &Options<'_, '_>) -> WritableBuilder<Chunk> {
    let is_object = options.flag("writableObjectMode");
    let it = stream.clone();
    let write = move |chunk: Chunk, done: Done| {
        call(&it, "_write", |scope| {
            let done = callback(scope, done)?;
            write_args(scope, &chunk, is_object, done)
        });
    };
    let mut builder = match is_object {
        true => Writable::objects(write),
        false => Writable::bytes(write),
    };
    if let Some(mark) = options.mark("writableHighWaterMark") {
        builder = builder.high_water_mark(mark);
    }
    if options.flag("writev") {
        let it = stream.clone();
        builder = builder.write_all(move |chunks, done| {
            call(&it, "_writev", |scope| {
                let list = chunks.iter().map(|chunk| {
                    let args = write_args(scope, chunk, is_object, scope.undefined())?;
                    let entry = scope.object()?;
                    entry.set("chunk", &args[0])?;
                    entry.set("encoding", &args[1])?;
                    Ok(entry)
                });
                let list: Res<'_, Vec<_>> = list.collect();
                Ok(vec![scope.array(&list?)?, callback(scope, done)?])
            });
        });
    }
    if options.flag("final") {
        let it = stream.clone();
        builder = builder.end(move |done| {
            call(&it, "_final", |scope| Ok(vec![callback(scope, done)?]));
        });
    }
    builder
}

/// Returns the callback of `_transform` and `_flush`.
fn transformed<'js>(scope: &Scope<'js>, out: Transformed<Chunk>, is_object: bool) -> Res<'js> {
    once(scope, move |scope, error, data| {
        match error {
            Some(error) => out.fail(error),
            None if data.is_nullish() => out.ok(),
            None => out.ok_with(super::chunk_of(scope, data, is_object)?),
        }
        Ok(())
    })
}

fn transform(stream: &Held, options: &Options<'_, '_>) -> Handle {
    let reads = options.flag("readableObjectMode");
    let writes = options.flag("writableObjectMode");
    let it = stream.clone();
    let run = move |chunk: Chunk, out: Transformed<Chunk>| {
        call(&it, "_transform", |scope| {
            let done = transformed(scope, out, reads)?;
            write_args(scope, &chunk, writes, done)
        });
    };
    let mut builder = match (writes, reads) {
        (false, false) => Transform::bytes(run),
        (true, true) => Transform::objects(run),
        (false, true) => Transform::bytes_to_objects(run),
        (true, false) => Transform::objects_to_bytes(run),
    };
    if let Some(mark) = options.mark("readableHighWaterMark") {
        builder = builder.readable_high_water_mark(mark);
    }
    if let Some(mark) = options.mark("writableHighWaterMark") {
        builder = builder.writable_high_water_mark(mark);
    }
    if options.flag("flush") {
        let it = stream.clone();
        builder = builder.flush(move |out| {
            call(&it, "_flush", |scope| {
                Ok(vec![transformed(scope, out, reads)?])
            });
        });
    }
    let built = shared!(builder, options, stream).build();
    Handle {
        read: Some(Reading::Js(built.readable().clone())),
        write: Some(Writing::Js(built.writable().clone())),
        reads_objects: reads,
        writes_objects: writes,
        socket: None,
        message: None,
    }
}

/// Creates the stream of an object of JavaScript.
pub(super) fn make<'js>(
    scope: &Scope<'js>,
    object: &Val<'js>,
    kind: &str,
    options: Val<'js>,
) -> Handle {
    let options = Options(scope, options);
    let stream = scope.hold(object);
    let (read, write) = match kind {
        "readable" => {
            let builder = readable(&stream, &options);
            let built = shared!(builder, options, stream).build();
            (Some(built), None)
        }
        "writable" => {
            let builder = writable(&stream, &options);
            let built = shared!(builder, options, stream).build();
            (None, Some(built))
        }
        "transform" => return transform(&stream, &options),
        _ => {
            let (reads, writes) = (readable(&stream, &options), writable(&stream, &options));
            let writes = shared!(writes, options, stream);
            let built = match options.flag("notHalfOpen") {
                true => Duplex::new_not_half_open(reads, writes),
                false => Duplex::new(reads, writes),
            };
            (
                Some(built.readable().clone()),
                Some(built.writable().clone()),
            )
        }
    };
    Handle {
        read: read.map(Reading::Js),
        write: write.map(Writing::Js),
        reads_objects: options.flag("readableObjectMode"),
        writes_objects: options.flag("writableObjectMode"),
        socket: None,
        message: None,
    }
}
