//! How streams and functions pack and unpack.

use zlib_rs::{DeflateFlush, InflateFlush};

use super::codec::Kind;
use crate::error::Error;
use crate::reason::throw;

/// How much of the output is brought out with a chunk. JavaScript: `zlib.constants.Z_SYNC_FLUSH`
/// and its neighbours.
///
/// # Examples
///
/// ```
/// use phaseloop_node::zlib::Flush;
///
/// fn main() {
///     assert!(Flush::None < Flush::Sync && Flush::Sync < Flush::Finish);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    /// As much as packs well: `Z_NO_FLUSH`.
    #[default]
    None,
    /// All of it, up to the end of a block: `Z_BLOCK`.
    Block,
    /// All of it, without the end of the last byte: `Z_PARTIAL_FLUSH`.
    Partial,
    /// All of it, up to the end of a byte: `Z_SYNC_FLUSH`.
    Sync,
    /// As [`Sync`](Self::Sync), so that a reader can begin at this place: `Z_FULL_FLUSH`.
    Full,
    /// The end of the data: `Z_FINISH`. Input that ends before is an error.
    Finish,
}

impl Flush {
    pub(super) fn of_deflate(self) -> DeflateFlush {
        match self {
            Self::None => DeflateFlush::NoFlush,
            Self::Block => DeflateFlush::Block,
            Self::Partial => DeflateFlush::PartialFlush,
            Self::Sync => DeflateFlush::SyncFlush,
            Self::Full => DeflateFlush::FullFlush,
            Self::Finish => DeflateFlush::Finish,
        }
    }

    pub(super) fn of_inflate(self) -> InflateFlush {
        match self {
            Self::None => InflateFlush::NoFlush,
            Self::Block => InflateFlush::Block,
            Self::Partial | Self::Sync | Self::Full => InflateFlush::SyncFlush,
            Self::Finish => InflateFlush::Finish,
        }
    }
}

/// How repetitions are looked for. JavaScript: `zlib.constants.Z_FILTERED` and its neighbours.
///
/// # Examples
///
/// ```
/// use phaseloop_node::zlib::{Options, Strategy};
///
/// fn main() {
///     let pixels = Options { strategy: Strategy::Rle, ..Options::default() };
///     assert_eq!(pixels.level, -1);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// For most data: `Z_DEFAULT_STRATEGY`.
    #[default]
    Default,
    /// For small values with a random distribution: `Z_FILTERED`.
    Filtered,
    /// Without repetitions: `Z_HUFFMAN_ONLY`.
    HuffmanOnly,
    /// Repetitions of the last byte alone: `Z_RLE`.
    Rle,
    /// Without a table of its own: `Z_FIXED`.
    Fixed,
}

/// The options of streams and functions of [`zlib`](super). JavaScript: the object `options` of
/// `zlib.createGzip(options)`.
///
/// The options of packing have no effect on unpacking.
///
/// # Examples
///
/// ```
/// use phaseloop_node::zlib::{Options, gunzip_sync_with, gzip_sync_with};
///
/// fn main() {
///     let small = Options { level: 9, ..Options::default() };
///     let packed = gzip_sync_with(vec![0; 10_000], &small).unwrap();
///     let limited = Options { max_output_length: 100, ..Options::default() };
///     let error = gunzip_sync_with(packed, &limited).unwrap_err();
///     assert_eq!(error.code(), Some("ERR_BUFFER_TOO_LARGE"));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// How each chunk is flushed. The default is [`Flush::None`].
    pub flush: Flush,
    /// How the last chunk is flushed. The default is [`Flush::Finish`]; [`Flush::Sync`] accepts
    /// input that is cut off.
    pub finish_flush: Flush,
    /// The size of the chunks of output: 16 KiB by default, and at least 64.
    pub chunk_size: usize,
    /// The level from 0 to 9: from fast to small. -1 is the default, which is 6.
    pub level: i32,
    /// The size of the window as the exponent of 2: from 9 to 15, also 8 for what is no gzip. For
    /// unpacking also 0, which takes the largest. The default is 15.
    pub window_bits: u8,
    /// The memory for packing: 1 to 9. The default is 8.
    pub mem_level: u8,
    /// How repetitions are looked for.
    pub strategy: Strategy,
    /// What both sides know before the data. Gzip does not use it.
    pub dictionary: Option<Vec<u8>>,
    /// The most bytes that a function returns. There is no limit by default. A stream has none: it
    /// unpacks no more than its reader takes.
    pub max_output_length: usize,
    /// Makes bytes behind the end an error, `ERR_TRAILING_JUNK_AFTER_STREAM_END`. They are dropped
    /// by default.
    pub reject_garbage_after_end: bool,
    /// The high water mark of both sides of a stream, if not the usual one.
    pub high_water_mark: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flush: Flush::None,
            finish_flush: Flush::Finish,
            chunk_size: 16 * 1024,
            level: -1,
            window_bits: 15,
            mem_level: 8,
            strategy: Strategy::Default,
            dictionary: None,
            max_output_length: usize::MAX,
            reject_garbage_after_end: false,
            high_water_mark: None,
        }
    }
}

impl Options {
    /// Throws `ERR_OUT_OF_RANGE` if a value is not allowed.
    pub(super) fn check(&self, kind: Kind) {
        let bits = i64::from(self.window_bits);
        let least_bits = if kind == Kind::Gzip { 9 } else { 8 };
        let takes_largest = bits == 0 && kind.unpacks();
        let chunk_size = i64::try_from(self.chunk_size).unwrap_or(i64::MAX);
        if chunk_size < 64 {
            refuse("chunkSize", ">= 64", chunk_size);
        }
        if self.max_output_length == 0 {
            refuse("maxOutputLength", ">= 1 and <= 9007199254740991", 0);
        }
        for (name, value, least, most) in [
            ("windowBits", bits, least_bits, 15),
            ("level", i64::from(self.level), -1, 9),
            ("memLevel", i64::from(self.mem_level), 1, 9),
        ] {
            let is_largest = takes_largest && name == "windowBits";
            if !(least..=most).contains(&value) && !is_largest {
                refuse(name, &format!(">= {least} and <= {most}"), value);
            }
        }
    }
}

fn refuse(name: &str, range: &str, value: i64) -> ! {
    let text = format!(
        "The value of \"options.{name}\" is out of range. It must be {range}. Received {value}"
    );
    throw(Error::range_error(text).coded("ERR_OUT_OF_RANGE"))
}
