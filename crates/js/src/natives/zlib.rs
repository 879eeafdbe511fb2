//! `zlib`: its functions and streams, by the names of its classes.

use std::cell::RefCell;

use phaseloop_node::Error;
use phaseloop_node::events::Emitter as _;
use phaseloop_node::zlib::{self, Flush, Options, Strategy, Zlib};

use super::stream::{Handle, bind, keep};
use super::{arg, number, operations, text, unknown};
use crate::engine::{Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("zlib", with_callback),
    ("zlibSync", at_once),
    ("zlibStream", stream),
    ("crc32", crc32),
];

/// Chooses a function of a format.
macro_rules! of_kind {
    ($scope:expr, $kind:expr, $gzip:ident, $gunzip:ident, $deflate:ident, $inflate:ident, $deflate_raw:ident,
        $inflate_raw:ident, $unzip:ident, $brotli:ident, $($arg:expr),*) => {
        match $kind {
            "Gzip" => zlib::$gzip($($arg),*),
            "Gunzip" => zlib::$gunzip($($arg),*),
            "Deflate" => zlib::$deflate($($arg),*),
            "Inflate" => zlib::$inflate($($arg),*),
            "DeflateRaw" => zlib::$deflate_raw($($arg),*),
            "InflateRaw" => zlib::$inflate_raw($($arg),*),
            "Unzip" => zlib::$unzip($($arg),*),
            "BrotliDecompress" => zlib::$brotli($($arg),*),
            other => return Err(unknown($scope, other)),
        }
    };
}

/// Returns the options of an object that the prelude has checked.
fn options<'js>(scope: &Scope<'js>, given: &Val<'js>) -> Res<'js, Options> {
    let mut options = Options::default();
    let field = |name: &str| -> Res<'js, Option<f64>> { Ok(given.get(scope, name)?.as_number()) };
    if let Some(value) = field("flush")? {
        options.flush = flush(value);
    }
    if let Some(value) = field("finishFlush")? {
        options.finish_flush = flush(value);
    }
    if let Some(value) = field("chunkSize")? {
        options.chunk_size = value as usize;
    }
    if let Some(value) = field("level")? {
        options.level = value as i32;
    }
    if let Some(value) = field("windowBits")? {
        options.window_bits = value as u8;
    }
    if let Some(value) = field("memLevel")? {
        options.mem_level = value as u8;
    }
    if let Some(value) = field("strategy")? {
        options.strategy = match value as u8 {
            1 => Strategy::Filtered,
            2 => Strategy::HuffmanOnly,
            3 => Strategy::Rle,
            4 => Strategy::Fixed,
            _ => Strategy::Default,
        };
    }
    if let Some(value) = field("maxOutputLength")? {
        options.max_output_length = value as usize;
    }
    options.high_water_mark = field("highWaterMark")?.map(|value| value as usize);
    options.dictionary = given.get(scope, "dictionary")?.to_bytes();
    options.reject_garbage_after_end = given.get(scope, "rejectGarbageAfterEnd")?.is_truthy();
    Ok(options)
}

fn flush(value: f64) -> Flush {
    match value as u8 {
        1 => Flush::Partial,
        2 => Flush::Sync,
        3 => Flush::Full,
        4 => Flush::Finish,
        5 => Flush::Block,
        _ => Flush::None,
    }
}

/// Takes the class, the bytes, the options and a callback.
fn with_callback<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let kind = text(scope, args, 0)?;
    let bytes = arg(scope, args, 1).to_bytes().unwrap_or_default();
    let options = options(scope, &arg(scope, args, 2))?;
    let callback = scope.hold(&arg(scope, args, 3));
    let done = move |result: Result<Vec<u8>, Error>| {
        callback.call(|scope| match result {
            Ok(bytes) => Ok(vec![scope.null(), scope.bytes(&bytes)?]),
            Err(failed) => Ok(vec![error::of_node(scope, &failed)?]),
        });
    };
    of_kind!(
        scope,
        kind.as_str(),
        gzip_with,
        gunzip_with,
        deflate_with,
        inflate_with,
        deflate_raw_with,
        inflate_raw_with,
        unzip_with,
        brotli_decompress_with,
        bytes,
        &options,
        done
    );
    Ok(scope.undefined())
}

fn at_once<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let kind = text(scope, args, 0)?;
    let bytes = arg(scope, args, 1).to_bytes().unwrap_or_default();
    let options = options(scope, &arg(scope, args, 2))?;
    let result = of_kind!(
        scope,
        kind.as_str(),
        gzip_sync_with,
        gunzip_sync_with,
        deflate_sync_with,
        inflate_sync_with,
        deflate_raw_sync_with,
        inflate_raw_sync_with,
        unzip_sync_with,
        brotli_decompress_sync_with,
        bytes,
        &options
    );
    match result {
        Ok(bytes) => scope.bytes(&bytes),
        Err(error) => Err(scope.throw_reason(&error.into())),
    }
}

/// Creates the stream of an object; returns its function, and that of what a stream of zlib has more.
fn stream<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (object, kind) = (arg(scope, args, 0), text(scope, args, 1)?);
    let options = options(scope, &arg(scope, args, 2))?;
    let made = of_kind!(
        scope,
        kind.as_str(),
        create_gzip_with,
        create_gunzip_with,
        create_deflate_with,
        create_inflate_with,
        create_deflate_raw_with,
        create_inflate_raw_with,
        create_unzip_with,
        create_brotli_decompress_with,
        &options
    );
    keep(scope, &object, made.emitter(), made.readable().id());
    let handle = Handle::of_bytes(Some(made.readable()), Some(made.writable()));
    let native = bind(scope, &object, handle)?;
    let more = operations(scope, "zlib", move |scope, operation, args| {
        operate(scope, &made, operation, args)
    });
    scope.array(&[native, more?])
}

fn operate<'js>(scope: &Scope<'js>, stream: &Zlib, operation: &str, args: &[Val<'js>]) -> Res<'js> {
    match operation {
        "bytesWritten" => return Ok(scope.number(stream.bytes_written() as f64)),
        "flush" => {
            let callback = RefCell::new(Some(scope.hold(&arg(scope, args, 1))));
            stream.flush(flush(number(scope, args, 0)), move || {
                if let Some(callback) = callback.take() {
                    callback.call(|_| Ok(Vec::new()));
                }
            });
        }
        _ => return Err(unknown(scope, operation)),
    }
    Ok(scope.undefined())
}

fn crc32<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let bytes = arg(scope, args, 0).to_bytes().unwrap_or_default();
    let value = number(scope, args, 1) as u32;
    Ok(scope.number(f64::from(zlib::crc32(bytes, value))))
}
