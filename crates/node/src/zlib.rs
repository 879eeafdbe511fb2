//! Packing and unpacking: Node's `zlib`, for gzip, zlib's format, raw deflate and Brotli.
//!
//! ```
//! use phaseloop_node::{Exit, run, zlib::promises::{gunzip, gzip}};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let packed = gzip("some text").await.unwrap();
//!         assert_eq!(gunzip(packed).await.unwrap(), b"some text");
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `zlib.createGzip()`, `createGunzip()`, … | [`create_gzip`], [`create_gunzip`], … |
//! | `zlib.createGzip({ level: 9 })` | [`create_gzip_with`] |
//! | `zlib.gzip(bytes, callback)` | [`gzip`] |
//! | `await promisify(zlib.gzip)(bytes)` | [`promises::gzip`] |
//! | `zlib.gzipSync(bytes)` | [`gzip_sync`] |
//! | `{ maxOutputLength: 1 << 20 }` | [`Options::max_output_length`] |
//! | `zlib.crc32(bytes)` | [`crc32`] |
//!
//! Streams and functions with callbacks work on the thread pool, one chunk of output at a time, so
//! that large inputs do not stall the loop. The functions `*_sync` work inside of the call.
//!
//! A gzip file may have several members, which are unpacked as one. Zeros behind a member are
//! padding. Other bytes behind a gzip member must be a further member; behind other formats they
//! are dropped, unless [`Options::reject_garbage_after_end`] is set.
//!
//! The packed bytes are not those of Node, which has another zlib; either side unpacks what the
//! other one packs. Node's packing by Brotli, and Zstandard, have no counterpart here.

mod codec;
mod options;
mod stream;

use std::cell::RefCell;
use std::rc::Rc;

use self::codec::{Codec, Kind};
pub use self::options::{Flush, Options, Strategy};
pub use self::stream::Zlib;
use crate::error::Error;
use crate::events::{ERROR, Emitter as _};
use crate::promise::{Deferred, Promise};
use crate::stream::END;

/// Defines the stream and the functions of each format.
macro_rules! formats {
    ($(
        $(#[$gate:meta])*
        $kind:ident: $does:literal, $js:literal,
        $create:ident, $create_with:ident, $name:ident, $with:ident, $sync:ident, $sync_with:ident;
    )*) => {
        $(
            #[doc = concat!("Returns a stream that ", $does, ". JavaScript: `zlib.create", stringify!($kind), "()`.")]
            ///
            /// The stream is destroyed with an error if its input is refused; see [`Zlib`].
            $(#[$gate])*
            #[must_use]
            pub fn $create() -> Zlib {
                $create_with(&Options::default())
            }

            #[doc = concat!("Returns a stream that ", $does, ", with options. JavaScript: `zlib.create", stringify!($kind), "(options)`.")]
            ///
            /// The stream is destroyed with an error if its input is refused; see [`Zlib`].
            ///
            /// # Panics
            ///
            /// [Throws](crate::throw) `ERR_OUT_OF_RANGE` if an option is outside of its range.
            $(#[$gate])*
            #[must_use]
            pub fn $create_with(options: &Options) -> Zlib {
                Zlib::new(Kind::$kind, options)
            }

            #[doc = concat!("Calls back with all output of a stream that ", $does, ". JavaScript: `zlib.", $js, "(bytes, callback)`.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("The errors of [`", stringify!($sync), "`].")]
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            $(#[$gate])*
            pub fn $name(bytes: impl Into<Vec<u8>>, callback: impl FnOnce(Result<Vec<u8>, Error>) + 'static) {
                $with(bytes, &Options::default(), callback);
            }

            #[doc = concat!("Calls back with all output of a stream that ", $does, ", with options. JavaScript: `zlib.", $js, "(bytes, options, callback)`.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("The errors of [`", stringify!($sync_with), "`].")]
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread. [Throws](crate::throw) `ERR_OUT_OF_RANGE` if an
            /// option is outside of its range.
            $(#[$gate])*
            pub fn $with(
                bytes: impl Into<Vec<u8>>,
                options: &Options,
                callback: impl FnOnce(Result<Vec<u8>, Error>) + 'static,
            ) {
                collect(&$create_with(options), options, bytes.into(), Box::new(callback));
            }

            #[doc = concat!("Returns all output of what ", $does, ", inside of the call. JavaScript: `zlib.", $js, "Sync(bytes)`.")]
            ///
            /// # Errors
            ///
            #[doc = concat!("The errors of [`", stringify!($sync_with), "`].")]
            $(#[$gate])*
            pub fn $sync(bytes: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
                at_once(Kind::$kind, bytes.as_ref(), &Options::default())
            }

            #[doc = concat!("Returns all output of what ", $does, ", inside of the call, with options. JavaScript: `zlib.", $js, "Sync(bytes, options)`.")]
            ///
            /// # Errors
            ///
            /// `Z_DATA_ERROR` if the input is not of the format, `Z_BUF_ERROR` if it is cut off,
            /// `Z_NEED_DICT` if it needs another dictionary, `ERR_BUFFER_TOO_LARGE` if the output
            /// is larger than [`Options::max_output_length`]. Brotli has codes of its own, such as
            /// `ERR__ERROR_FORMAT_PADDING_1`.
            ///
            /// # Panics
            ///
            /// [Throws](crate::throw) `ERR_OUT_OF_RANGE` if an option is outside of its range.
            $(#[$gate])*
            pub fn $sync_with(bytes: impl AsRef<[u8]>, options: &Options) -> Result<Vec<u8>, Error> {
                at_once(Kind::$kind, bytes.as_ref(), options)
            }
        )*

        /// The functions of [`zlib`](super) with promises in place of callbacks.
        ///
        /// # Examples
        ///
        /// ```
        /// use phaseloop_node::{Exit, run, zlib::promises::{gunzip, gzip}};
        ///
        /// fn main() -> Exit<()> {
        ///     run(async {
        ///         let packed = gzip("some text").await.unwrap();
        ///         assert_eq!(gunzip(packed).await.unwrap(), b"some text");
        ///     })
        /// }
        /// ```
        pub mod promises {
            use super::{Options, Promise, promise_of};

            $(
                #[doc = concat!("Returns all output of what ", $does, ". JavaScript: `promisify(zlib.", $js, ")(bytes)`.")]
                ///
                /// # Errors
                ///
                #[doc = concat!("The errors of [`", stringify!($sync), "`](super::", stringify!($sync), ").")]
                ///
                /// # Panics
                ///
                /// When no loop runs on this thread.
                $(#[$gate])*
                pub fn $name(bytes: impl Into<Vec<u8>>) -> Promise<Vec<u8>> {
                    $with(bytes, &Options::default())
                }

                #[doc = concat!("Returns all output of what ", $does, ", with options. JavaScript: `promisify(zlib.", $js, ")(bytes, options)`.")]
                ///
                /// # Errors
                ///
                #[doc = concat!("The errors of [`", stringify!($sync_with), "`](super::", stringify!($sync_with), ").")]
                ///
                /// # Panics
                ///
                /// When no loop runs on this thread. [Throws](crate::throw) `ERR_OUT_OF_RANGE` if
                /// an option is outside of its range.
                $(#[$gate])*
                pub fn $with(bytes: impl Into<Vec<u8>>, options: &Options) -> Promise<Vec<u8>> {
                    promise_of(|callback| super::$with(bytes, options, callback))
                }
            )*
        }
    };
}

formats! {
    Gzip: "packs into a gzip file", "gzip",
        create_gzip, create_gzip_with, gzip, gzip_with, gzip_sync, gzip_sync_with;
    Gunzip: "unpacks a gzip file", "gunzip",
        create_gunzip, create_gunzip_with, gunzip, gunzip_with, gunzip_sync, gunzip_sync_with;
    Deflate: "packs with the header of zlib", "deflate",
        create_deflate, create_deflate_with, deflate, deflate_with, deflate_sync, deflate_sync_with;
    Inflate: "unpacks data with the header of zlib", "inflate",
        create_inflate, create_inflate_with, inflate, inflate_with, inflate_sync, inflate_sync_with;
    DeflateRaw: "packs without a header", "deflateRaw",
        create_deflate_raw, create_deflate_raw_with, deflate_raw, deflate_raw_with, deflate_raw_sync,
        deflate_raw_sync_with;
    InflateRaw: "unpacks data without a header", "inflateRaw",
        create_inflate_raw, create_inflate_raw_with, inflate_raw, inflate_raw_with, inflate_raw_sync,
        inflate_raw_sync_with;
    Unzip: "unpacks a gzip file or data with the header of zlib", "unzip",
        create_unzip, create_unzip_with, unzip, unzip_with, unzip_sync, unzip_sync_with;
    #[cfg(feature = "zlib-brotli")]
    BrotliDecompress: "unpacks Brotli", "brotliDecompress",
        create_brotli_decompress, create_brotli_decompress_with, brotli_decompress,
        brotli_decompress_with, brotli_decompress_sync, brotli_decompress_sync_with;
}

/// Returns the CRC-32 checksum of `bytes`, which continues the one of earlier bytes: `value`, 0 at
/// the beginning. JavaScript: `zlib.crc32(bytes, value)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::zlib::crc32;
///
/// fn main() {
///     assert_eq!(crc32("hello", 0), 907_060_870);
///     assert_eq!(crc32("lo", crc32("hel", 0)), 907_060_870);
/// }
/// ```
#[must_use]
pub fn crc32(bytes: impl AsRef<[u8]>, value: u32) -> u32 {
    zlib_rs::crc32::crc32(value, bytes.as_ref())
}

type Callback = Box<dyn FnOnce(Result<Vec<u8>, Error>)>;

/// Writes all input to a stream, and calls back with all its output, as Node does.
fn collect(stream: &Zlib, options: &Options, bytes: Vec<u8>, callback: Callback) {
    let most = options.max_output_length;
    let callback = Rc::new(RefCell::new(Some(callback)));
    let report = move |result| {
        let callback = callback.take();
        if let Some(callback) = callback {
            callback(result);
        }
    };
    let output = Rc::new(RefCell::new(Vec::new()));
    let (collected, too_large, failed) = (output.clone(), report.clone(), report.clone());
    stream
        .readable()
        .on_data_this(move |readable, bytes: &Vec<u8>| {
            let mut output = collected.borrow_mut();
            output.extend_from_slice(bytes);
            if output.len() > most {
                readable.destroy(None);
                drop(output);
                too_large(Err(too_large_error(most)));
            }
        });
    stream.on(ERROR, move |error| failed(Err(error.clone())));
    stream.on(END, move |()| report(Ok(output.take())));
    stream.writable().end(bytes);
}

/// Packs or unpacks all input inside of this call.
fn at_once(kind: Kind, bytes: &[u8], options: &Options) -> Result<Vec<u8>, Error> {
    options.check(kind);
    let mut codec = Codec::new(kind, options);
    let flush = options.flush.max(options.finish_flush);
    let (mut output, mut used) = (Vec::new(), 0);
    loop {
        let before = output.len();
        output.resize(before + options.chunk_size, 0);
        let step = codec.step(&bytes[used..], &mut output[before..], flush)?;
        used += step.used;
        output.truncate(before + step.written);
        if output.len() > options.max_output_length {
            return Err(too_large_error(options.max_output_length));
        }
        if step.written < options.chunk_size {
            break;
        }
    }
    if used < bytes.len() && options.reject_garbage_after_end {
        return Err(stream::trailing_junk());
    }
    Ok(output)
}

fn too_large_error(most: usize) -> Error {
    let text = format!("Cannot create a Buffer larger than {most} bytes");
    Error::range_error(text).coded("ERR_BUFFER_TOO_LARGE")
}

fn promise_of(start: impl FnOnce(Callback)) -> Promise<Vec<u8>> {
    let deferred = Deferred::new();
    let promise = deferred.promise();
    start(Box::new(move |result| match result {
        Ok(output) => deferred.resolve(output),
        Err(error) => deferred.reject(error),
    }));
    promise
}
