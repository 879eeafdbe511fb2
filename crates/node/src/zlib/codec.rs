//! What packs and unpacks, one step at a time. A codec is moved to the pool for each step.

#[cfg(feature = "zlib-brotli")]
mod brotli;

use std::borrow::Cow;

use zlib_rs::{
    Deflate, DeflateConfig, Inflate, InflateError, Method, Status, Strategy as Repetitions,
};

use super::options::{Flush, Options, Strategy};
use crate::error::Error;

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gzip,
    Gunzip,
    Deflate,
    Inflate,
    DeflateRaw,
    InflateRaw,
    Unzip,
    #[cfg(feature = "zlib-brotli")]
    BrotliDecompress,
}

impl Kind {
    pub(super) fn unpacks(self) -> bool {
        !matches!(self, Self::Gzip | Self::Deflate | Self::DeflateRaw)
    }

    /// The name of the class in Node.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "Gzip",
            Self::Gunzip => "Gunzip",
            Self::Deflate => "Deflate",
            Self::Inflate => "Inflate",
            Self::DeflateRaw => "DeflateRaw",
            Self::InflateRaw => "InflateRaw",
            Self::Unzip => "Unzip",
            #[cfg(feature = "zlib-brotli")]
            Self::BrotliDecompress => "BrotliDecompress",
        }
    }
}

/// An error of a codec. It can leave the pool, which an [`Error`] cannot.
#[derive(Debug)]
pub(super) struct Fault {
    code: Cow<'static, str>,
    text: &'static str,
}

impl Fault {
    const CUT_OFF: Self = Self::new("Z_BUF_ERROR", "unexpected end of file");

    const fn new(code: &'static str, text: &'static str) -> Self {
        let code = Cow::Borrowed(code);
        Self { code, text }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::with_code(fault.code, fault.text)
    }
}

/// What a step has used of its input, and written to its output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub(super) used: usize,
    pub(super) written: usize,
}

pub(super) enum Codec {
    Pack(Deflate),
    Unpack(Box<Unpack>),
    #[cfg(feature = "zlib-brotli")]
    Brotli(brotli::Brotli),
}

impl Codec {
    pub(super) fn new(kind: Kind, options: &Options) -> Self {
        let bits = i32::from(options.window_bits);
        let window_bits = match kind {
            Kind::Gzip => bits + 16,
            Kind::Deflate => bits,
            // zlib refuses a window of 8 bits for raw data, and takes 9 bits for other data.
            Kind::DeflateRaw => -bits.max(9),
            #[cfg(feature = "zlib-brotli")]
            Kind::BrotliDecompress => return Self::Brotli(brotli::Brotli::new()),
            _ => return Self::Unpack(Box::new(Unpack::new(kind, options))),
        };
        let mut deflate = Deflate::new_with_config(DeflateConfig {
            level: options.level,
            method: Method::Deflated,
            window_bits,
            mem_level: options.mem_level.into(),
            strategy: match options.strategy {
                Strategy::Default => Repetitions::Default,
                Strategy::Filtered => Repetitions::Filtered,
                Strategy::HuffmanOnly => Repetitions::HuffmanOnly,
                Strategy::Rle => Repetitions::Rle,
                Strategy::Fixed => Repetitions::Fixed,
            },
        });
        if let Some(dictionary) = options.dictionary.as_ref().filter(|_| kind != Kind::Gzip) {
            // A new stream without a gzip header takes any dictionary.
            let _ = deflate.set_dictionary(dictionary);
        }
        Self::Pack(deflate)
    }

    /// Uses some of `input` and fills some of `output`. Space that is left in `output` means that
    /// the input is used up, or that the data has ended before its end.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        flush: Flush,
    ) -> Result<Step, Fault> {
        match self {
            Self::Pack(deflate) => {
                let before = (deflate.total_in(), deflate.total_out());
                let packed = deflate.compress(input, output, flush.of_deflate());
                packed.map_err(|_| Fault::new("Z_STREAM_ERROR", "Zlib error"))?;
                Ok(step_since(
                    before,
                    (deflate.total_in(), deflate.total_out()),
                ))
            }
            Self::Unpack(unpack) => unpack.step(input, output, flush),
            #[cfg(feature = "zlib-brotli")]
            Self::Brotli(brotli) => brotli.step(input, output, flush),
        }
    }
}

fn step_since(before: (u64, u64), after: (u64, u64)) -> Step {
    // Neither is longer than a slice.
    let size = |from, to| usize::try_from(to - from).unwrap_or(usize::MAX);
    Step {
        used: size(before.0, after.0),
        written: size(before.1, after.1),
    }
}

/// Unpacks raw data, zlib's format, and gzip files, which may have several members.
pub(super) struct Unpack {
    inflate: Inflate,
    /// [`Kind::Unzip`] becomes one of the others when the first bytes have come.
    kind: Kind,
    /// The formats of the first member, which are those of all.
    formats: Kind,
    bits: u8,
    dictionary: Option<Vec<u8>>,
    /// How many bytes have come of the two that identify a gzip file; for [`Kind::Unzip`].
    identified: u8,
}

impl Unpack {
    fn new(kind: Kind, options: &Options) -> Self {
        let bits = match options.window_bits {
            0 => 15,
            bits => bits,
        };
        let dictionary = options.dictionary.clone();
        let mut inflate = start(kind, bits);
        if let (Kind::InflateRaw, Some(dictionary)) = (kind, &dictionary) {
            // A new stream takes any dictionary.
            let _ = inflate.set_dictionary(dictionary);
        }
        Self {
            inflate,
            kind,
            formats: kind,
            bits,
            dictionary,
            identified: 0,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Result<Step, Fault> {
        if self.kind == Kind::Unzip {
            self.identify(input);
        }
        let mut all = Step::default();
        loop {
            let (rest, room) = (&input[all.used..], &mut output[all.written..]);
            let (step, status) = self.inflate(rest, room, flush)?;
            all.used += step.used;
            all.written += step.written;
            let is_full = all.written == output.len();
            if status != Status::StreamEnd {
                return match flush == Flush::Finish && !is_full {
                    true => Err(Fault::CUT_OFF),
                    false => Ok(all),
                };
            }
            // Zeros behind a member are padding.
            let follows = input.get(all.used).is_some_and(|next| *next != 0);
            if !follows || self.kind != Kind::Gunzip {
                return Ok(all);
            }
            self.inflate = start(self.formats, self.bits);
        }
    }

    fn inflate(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        flush: Flush,
    ) -> Result<(Step, Status), Fault> {
        let totals = |inflate: &Inflate| (inflate.total_in(), inflate.total_out());
        let before = totals(&self.inflate);
        let mut result = self.inflate.decompress(input, output, flush.of_inflate());
        if let (Err(InflateError::NeedDict { .. }), Some(dictionary)) = (&result, &self.dictionary)
        {
            if self.inflate.set_dictionary(dictionary).is_err() {
                return Err(Fault::new("Z_NEED_DICT", "Bad dictionary"));
            }
            let used = step_since(before, totals(&self.inflate)).used;
            result = self
                .inflate
                .decompress(&input[used..], output, flush.of_inflate());
        }
        let step = step_since(before, totals(&self.inflate));
        let text = |or| self.inflate.error_message().unwrap_or(or);
        match result {
            Ok(status) => Ok((step, status)),
            Err(InflateError::NeedDict { .. }) => {
                Err(Fault::new("Z_NEED_DICT", "Missing dictionary"))
            }
            Err(InflateError::DataError) => Err(Fault::new("Z_DATA_ERROR", text("Zlib error"))),
            Err(InflateError::MemError) => Err(Fault::new("Z_MEM_ERROR", text("Zlib error"))),
            Err(InflateError::StreamError) => Err(Fault::new("Z_STREAM_ERROR", text("Zlib error"))),
        }
    }

    /// Finds out whether this is a gzip file, whose members are followed by further ones.
    fn identify(&mut self, input: &[u8]) {
        const IDENTITY: [u8; 2] = [0x1f, 0x8b];
        for byte in input {
            if *byte != IDENTITY[usize::from(self.identified)] {
                return self.kind = Kind::Inflate;
            }
            self.identified += 1;
            if self.identified == 2 {
                return self.kind = Kind::Gunzip;
            }
        }
    }
}

fn start(kind: Kind, bits: u8) -> Inflate {
    match kind {
        Kind::InflateRaw => Inflate::new(false, bits),
        Kind::Inflate => Inflate::new(true, bits),
        Kind::Gunzip => Inflate::new(true, 16 + bits),
        _ => Inflate::new(true, 32 + bits),
    }
}
