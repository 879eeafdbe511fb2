//! Compressed bodies, unpacked in steps of bounded size.

#[cfg(feature = "fetch-brotli")]
mod brotli;

use std::fmt;
use std::io::{self, Write as _};
use std::mem::take;

use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};

use crate::error::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

/// The largest number of codings of a body. More are an attempt to make little input much work.
const MOST_CODINGS: usize = 5;

/// Returns what the peer may compress bodies with. Brotli is offered over TLS only, as in browsers:
/// proxies of plain connections have damaged what they did not know.
pub(super) fn accepted(scheme: &str) -> Option<&'static str> {
    let has_brotli = cfg!(feature = "fetch-brotli") && scheme == "https";
    Some(match has_brotli {
        true => "br, gzip, deflate",
        false => "gzip, deflate",
    })
}

/// Unpacks a body. One [`step`](Self::step) returns some tens of kilobytes at most, however well
/// the input is compressed.
#[derive(Debug)]
pub(super) struct Decoder {
    /// In the order in which the input passes them.
    stages: Vec<Stage>,
}

impl Decoder {
    /// Creates the decoder for the value of a `Content-Encoding` header. `None`: the body is not
    /// compressed, or in a way that is not known.
    pub(super) fn of(codings: Option<&str>) -> Result<Option<Self>> {
        let codings: Vec<_> = codings.unwrap_or_default().split(',').collect();
        if codings.len() > MOST_CODINGS {
            let message = format!(
                "too many content-encodings in response: {}, maximum allowed is {MOST_CODINGS}",
                codings.len()
            );
            return Err(Error::new(message));
        }
        let mut stages = Vec::new();
        // The coding that was applied last is undone first.
        for coding in codings.into_iter().rev() {
            stages.push(Stage::new(match &*coding.trim().to_ascii_lowercase() {
                "gzip" | "x-gzip" => Coding::Known(Box::new(Gunzip::new())),
                "deflate" => Coding::Deflate,
                #[cfg(feature = "fetch-brotli")]
                "br" => Coding::Known(Box::new(brotli::Brotli::new())),
                _ => return Ok(None),
            }));
        }
        Ok(Some(Self { stages }))
    }

    pub(super) fn feed(&mut self, bytes: Vec<u8>) {
        if let Some(first) = self.stages.first_mut() {
            first.feed(&bytes);
        }
    }

    /// Unpacks some more of the input. `None`: the input is used up.
    pub(super) fn step(&mut self) -> Result<Option<Vec<u8>>> {
        step(&mut self.stages)
    }

    /// The input has ended. Returns what is left, in one step at a time; `None` at the end. An
    /// input that is cut off is no error, as in Node.
    pub(super) fn finish(&mut self) -> Result<Option<Vec<u8>>> {
        for at in 0..self.stages.len() {
            // A stage is finished once no input waits, neither for it nor for those before it.
            if let Some(bytes) = self.step()? {
                return Ok(Some(bytes));
            }
            let rest = self.stages[at].rest()?;
            if !rest.is_empty() {
                match self.stages.get_mut(at + 1) {
                    Some(next) => next.feed(&rest),
                    None => return Ok(Some(rest)),
                }
            }
        }
        self.step()
    }
}

/// Returns what the last stage makes of the input of the first.
fn step(stages: &mut [Stage]) -> Result<Option<Vec<u8>>> {
    let Some((last, before)) = stages.split_last_mut() else {
        return Ok(None);
    };
    loop {
        while last.has_work() {
            let bytes = last.step()?;
            if !bytes.is_empty() {
                return Ok(Some(bytes));
            }
        }
        match step(before)? {
            Some(bytes) => last.feed(&bytes),
            None => return Ok(None),
        }
    }
}

/// Undoes one coding.
trait Unpack {
    /// Uses some of the input, unless the compressed data has ended.
    fn unpack(&mut self, input: &[u8]) -> Result<usize>;

    /// Whether more comes out without more input.
    fn has_more(&self) -> bool {
        false
    }

    /// Brings out what the input so far gives.
    fn flush(&mut self) -> Result<()>;

    /// Brings out what is left after the last input.
    fn finish(&mut self) -> Result<()>;

    /// Takes what has come out.
    fn output(&mut self) -> Vec<u8>;
}

macro_rules! unpack_with_flate2 {
    ($($decoder:ident)*) => {$(
        impl Unpack for $decoder<Vec<u8>> {
            fn unpack(&mut self, input: &[u8]) -> Result<usize> {
                self.write(input).map_err(damaged)
            }

            fn flush(&mut self) -> Result<()> {
                io::Write::flush(self).map_err(damaged)
            }

            fn finish(&mut self) -> Result<()> {
                // The error of an input that is cut off is ignored, as in Node.
                drop(self.try_finish());
                Ok(())
            }

            fn output(&mut self) -> Vec<u8> {
                take(self.get_mut())
            }
        }
    )*};
}

unpack_with_flate2!(DeflateDecoder ZlibDecoder);

fn damaged(error: io::Error) -> Error {
    Error::with_code("Z_DATA_ERROR", error.to_string())
}

/// Unpacks the members of a gzip file. Zeros behind a member are padding, and end it.
struct Gunzip {
    member: GzDecoder<Vec<u8>>,
    /// How many of the bytes that identify a member have come, and whether others came.
    identified: (usize, bool),
    is_over: bool,
}

impl Gunzip {
    fn new() -> Self {
        Self {
            member: GzDecoder::new(Vec::new()),
            identified: (0, false),
            is_over: false,
        }
    }

    fn write(&mut self, input: &[u8]) -> Result<usize> {
        self.identify(input)?;
        self.member.write(input).map_err(damaged)
    }

    /// Checks the first bytes of a member once both have come, as zlib does. The decoder checks
    /// them with the whole header, and so never if less than a header comes.
    fn identify(&mut self, input: &[u8]) -> Result<()> {
        const IDENTITY: [u8; 2] = [0x1f, 0x8b];
        let (known, is_other) = &mut self.identified;
        let left = &IDENTITY[*known..];
        let count = left.len().min(input.len());
        *known += count;
        *is_other |= input[..count] != left[..count];
        match *is_other && *known == IDENTITY.len() {
            true => Err(damaged(io::Error::other("incorrect header check"))),
            false => Ok(()),
        }
    }
}

impl Unpack for Gunzip {
    fn unpack(&mut self, input: &[u8]) -> Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let used = self.write(input)?;
        let Some(first) = input.first().filter(|_| used == 0) else {
            return Ok(used);
        };
        // The member is complete.
        self.member.try_finish().map_err(damaged)?;
        if *first == 0 {
            self.is_over = true;
            return Ok(0);
        }
        self.member = GzDecoder::new(self.output());
        self.identified = (0, false);
        self.write(input)
    }

    fn flush(&mut self) -> Result<()> {
        match self.is_over {
            true => Ok(()),
            false => self.member.flush().map_err(damaged),
        }
    }

    fn finish(&mut self) -> Result<()> {
        // Once only: the byte below would become a part of a member that is cut off.
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let rest = self.output();
        // A member that takes no further byte is complete, so that its checksum counts.
        let is_complete = matches!(self.member.write(&[0]), Ok(0));
        *self.member.get_mut() = rest;
        match is_complete {
            true => self.member.try_finish().map_err(damaged),
            false => Ok(()),
        }
    }

    fn output(&mut self) -> Vec<u8> {
        take(self.member.get_mut())
    }
}

/// One coding of a body, with the input that waits for it.
struct Stage {
    coding: Coding,
    input: Vec<u8>,
    /// How much of the input is used.
    used: usize,
}

enum Coding {
    Known(Box<dyn Unpack>),
    /// With or without the header of zlib; the first byte decides.
    Deflate,
}

impl Stage {
    fn new(coding: Coding) -> Self {
        Self {
            coding,
            input: Vec::new(),
            used: 0,
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.input.drain(..take(&mut self.used));
        self.input.extend_from_slice(bytes);
        if let (Coding::Deflate, Some(first)) = (&self.coding, self.input.first()) {
            self.coding = Coding::Known(match first & 0x0f {
                8 => Box::new(ZlibDecoder::new(Vec::new())),
                _ => Box::new(DeflateDecoder::new(Vec::new())),
            });
        }
    }

    fn has_input(&self) -> bool {
        self.used < self.input.len()
    }

    fn has_work(&self) -> bool {
        let has_more = || matches!(&self.coding, Coding::Known(decoder) if decoder.has_more());
        self.has_input() || has_more()
    }

    /// Uses some input, and returns what came out.
    fn step(&mut self) -> Result<Vec<u8>> {
        let Coding::Known(decoder) = &mut self.coding else {
            return Ok(Vec::new());
        };
        let used = decoder.unpack(&self.input[self.used..])?;
        self.used += used;
        if used == 0 && !decoder.has_more() {
            // Bytes behind the end of the compressed data are dropped.
            self.used = self.input.len();
        }
        if self.used == self.input.len() {
            decoder.flush()?;
        }
        Ok(decoder.output())
    }

    /// Returns what the decoder still has after its last input.
    fn rest(&mut self) -> Result<Vec<u8>> {
        let Coding::Known(decoder) = &mut self.coding else {
            return Ok(Vec::new());
        };
        decoder.finish()?;
        Ok(decoder.output())
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.input.len() - self.used;
        f.debug_struct("Stage")
            .field("waiting", &waiting)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::{Decoder, Error};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Unpacks `input`, fed in pieces of `size`. Returns the output and the largest step.
    fn try_unpack(codings: &str, input: &[u8], size: usize) -> Result<(Vec<u8>, usize), Error> {
        let mut decoder = Decoder::of(Some(codings))?.expect("the codings are known");
        let (mut all, mut largest) = (Vec::new(), 0);
        let mut add = |bytes: Vec<u8>| {
            largest = largest.max(bytes.len());
            all.extend(bytes);
        };
        for piece in input.chunks(size) {
            decoder.feed(piece.to_vec());
            while let Some(bytes) = decoder.step()? {
                add(bytes);
            }
        }
        while let Some(bytes) = decoder.finish()? {
            add(bytes);
        }
        Ok((all, largest))
    }

    fn unpack(codings: &str, input: &[u8], size: usize) -> (Vec<u8>, usize) {
        try_unpack(codings, input, size).unwrap()
    }

    fn code(codings: &str, input: &[u8]) -> String {
        let codes = [1, 7, usize::MAX].map(|size| {
            let error = try_unpack(codings, input, size).unwrap_err();
            error.code().unwrap().to_owned()
        });
        let [code, ..] = &codes;
        assert!(codes.iter().all(|other| other == code), "{codes:?}");
        code.clone()
    }

    // H95.
    #[test]
    fn codings_are_undone_whatever_the_cuts() {
        let text: Vec<u8> = (0..20_000_u32)
            .flat_map(|n| n.to_string().into_bytes())
            .collect();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let zlib = zlib.finish().unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(&text).unwrap();
        let raw = raw.finish().unwrap();
        let two = [gzip(&text[..100]), gzip(&text[100..])].concat();
        for size in [1, 7, 1000, usize::MAX] {
            for (codings, input) in [
                ("gzip", &gzip(&text)),
                ("X-GZIP", &two),
                ("deflate", &zlib),
                ("deflate", &raw),
                ("deflate, gzip", &gzip(&zlib)),
            ] {
                assert!(
                    unpack(codings, input, size).0 == text,
                    "{codings} by {size}"
                );
            }
        }
    }

    #[test]
    fn a_step_is_bounded_however_well_the_input_is_compressed() {
        let zeros = vec![0; 16 << 20];
        let once = gzip(&zeros);
        for (codings, input) in [("gzip", once.clone()), ("gzip, gzip", gzip(&once))] {
            let (all, largest) = unpack(codings, &input, usize::MAX);
            assert_eq!(all.len(), zeros.len());
            assert!(largest <= 128 << 10, "{codings}: {largest}");
        }
    }

    #[test]
    fn an_input_that_is_cut_off_gives_what_is_there() {
        let packed = gzip(b"hello, hello, hello");
        let (all, _) = unpack("gzip", &packed[..packed.len() - 8], 5);
        assert_eq!(all, b"hello, hello, hello");
    }

    #[test]
    fn bytes_behind_gzip_are_another_member_or_padding_or_an_error() {
        let (one, two) = (gzip(b"one"), gzip(b"two"));
        for size in [1, 7, usize::MAX] {
            let unpacked = |parts: &[&[u8]]| unpack("gzip", &parts.concat(), size).0;
            assert_eq!(unpacked(&[&one, &two]), b"onetwo");
            assert_eq!(unpacked(&[&one, &[0; 5]]), b"one");
            assert_eq!(unpacked(&[&one, &[0; 2], &two]), b"one");
            assert_eq!(unpacked(&[&one, &[0x1f]]), b"one");
        }
        assert_eq!(code("gzip", &[&*one, b"rest"].concat()), "Z_DATA_ERROR");
    }

    #[test]
    fn a_wrong_checksum_is_an_error() {
        let mut packed = gzip(b"hello");
        let at = packed.len() - 6;
        packed[at] ^= 1;
        assert_eq!(code("gzip", &packed), "Z_DATA_ERROR");
    }

    #[test]
    fn the_end_may_be_asked_for_again_although_the_input_is_cut_off() {
        let packed = gzip(b"hello");
        for cut in 1..8 {
            let mut decoder = Decoder::of(Some("gzip")).unwrap().unwrap();
            decoder.feed(packed[..packed.len() - cut].to_vec());
            assert_eq!(decoder.step().unwrap().unwrap(), b"hello");
            for _ in 0..10 {
                assert!(decoder.finish().unwrap().is_none(), "cut by {cut}");
            }
        }
    }

    #[test]
    fn other_codings_are_left_alone_and_too_many_are_refused() {
        for codings in [
            None,
            Some(""),
            Some("zstd"),
            Some("identity"),
            Some("gzip,"),
        ] {
            assert!(Decoder::of(codings).unwrap().is_none(), "{codings:?}");
        }
        let six = Decoder::of(Some("x, gzip, gzip, gzip, gzip, gzip"));
        let message = "too many content-encodings in response: 6, maximum allowed is 5";
        assert_eq!(six.unwrap_err().message(), message);
    }
}
