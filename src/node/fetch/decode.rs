//! Compressed bodies, unpacked in steps of bounded size.

use std::fmt;
use std::io::{self, Write as _};
use std::mem::take;

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What the peer may compress bodies with.
pub(super) const ACCEPTED: Option<&str> = Some("gzip, deflate");

/// The largest number of codings of a body. More are an attempt to make little input much work.
const MOST_CODINGS: usize = 5;

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
    pub(super) fn of(codings: Option<&str>) -> Option<Self> {
        let codings = codings?
            .split(',')
            .map(|coding| coding.trim().to_ascii_lowercase());
        let mut stages = Vec::new();
        for coding in codings {
            stages.push(match &*coding {
                "gzip" | "x-gzip" => Stage::new(Coding::Gzip(MultiGzDecoder::new(Vec::new()))),
                "deflate" => Stage::new(Coding::Deflate),
                _ => return None,
            });
        }
        // The coding that was applied last is undone first.
        stages.reverse();
        (stages.len() <= MOST_CODINGS).then_some(Self { stages })
    }

    pub(super) fn feed(&mut self, bytes: Vec<u8>) {
        if let Some(first) = self.stages.first_mut() {
            first.feed(&bytes);
        }
    }

    /// Unpacks some more of the input. `None`: the input is used up.
    pub(super) fn step(&mut self) -> io::Result<Option<Vec<u8>>> {
        step(&mut self.stages)
    }

    /// The input has ended. Returns what is left, in one step at a time; `None` at the end. An
    /// input that is cut off is no error, as in Node.
    pub(super) fn finish(&mut self) -> io::Result<Option<Vec<u8>>> {
        for at in 0..self.stages.len() {
            if let Some(bytes) = step(&mut self.stages[..=at])? {
                match self.stages.get_mut(at + 1) {
                    Some(next) => next.feed(&bytes),
                    None => return Ok(Some(bytes)),
                }
            }
            let rest = self.stages[at].rest();
            if !rest.is_empty() {
                match self.stages.get_mut(at + 1) {
                    Some(next) => next.feed(&rest),
                    None => return Ok(Some(rest)),
                }
            }
        }
        step(&mut self.stages)
    }
}

/// Returns what the last stage makes of the input of the first.
fn step(stages: &mut [Stage]) -> io::Result<Option<Vec<u8>>> {
    let Some((last, before)) = stages.split_last_mut() else {
        return Ok(None);
    };
    loop {
        while last.has_input() {
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

/// One coding.
struct Stage {
    coding: Coding,
    input: Vec<u8>,
    /// How much of the input is used.
    used: usize,
}

enum Coding {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// With or without the header of zlib; the first byte decides.
    Deflate,
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
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
            self.coding = match first & 0x0f {
                8 => Coding::Zlib(ZlibDecoder::new(Vec::new())),
                _ => Coding::Raw(DeflateDecoder::new(Vec::new())),
            };
        }
    }

    fn has_input(&self) -> bool {
        self.used < self.input.len()
    }

    /// Uses some input, and returns what came out.
    fn step(&mut self) -> io::Result<Vec<u8>> {
        let input = &self.input[self.used..];
        let used = match &mut self.coding {
            Coding::Gzip(decoder) => decoder.write(input)?,
            Coding::Zlib(decoder) => decoder.write(input)?,
            Coding::Raw(decoder) => decoder.write(input)?,
            Coding::Deflate => 0,
        };
        self.used += used;
        if used == 0 {
            // Bytes behind the end of the compressed data are dropped.
            self.used = self.input.len();
        }
        if !self.has_input() {
            match &mut self.coding {
                Coding::Gzip(decoder) => decoder.flush()?,
                Coding::Zlib(decoder) => decoder.flush()?,
                Coding::Raw(decoder) => decoder.flush()?,
                Coding::Deflate => {}
            }
        }
        Ok(self.output())
    }

    fn output(&mut self) -> Vec<u8> {
        match &mut self.coding {
            Coding::Gzip(decoder) => take(decoder.get_mut()),
            Coding::Zlib(decoder) => take(decoder.get_mut()),
            Coding::Raw(decoder) => take(decoder.get_mut()),
            Coding::Deflate => Vec::new(),
        }
    }

    /// Returns what the decoder still has after its last input.
    fn rest(&mut self) -> Vec<u8> {
        // The error of an input that is cut off is ignored.
        drop(match &mut self.coding {
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Zlib(decoder) => decoder.try_finish(),
            Coding::Raw(decoder) => decoder.try_finish(),
            Coding::Deflate => Ok(()),
        });
        self.output()
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.coding {
            Coding::Gzip(_) => "gzip",
            Coding::Deflate | Coding::Zlib(_) | Coding::Raw(_) => "deflate",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::Decoder;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Unpacks `input`, fed in pieces of `size`. Returns the output and the largest step.
    fn unpack(codings: &str, input: &[u8], size: usize) -> (Vec<u8>, usize) {
        let mut decoder = Decoder::of(Some(codings)).unwrap();
        let (mut all, mut largest) = (Vec::new(), 0);
        let mut add = |bytes: Vec<u8>| {
            largest = largest.max(bytes.len());
            all.extend(bytes);
        };
        for piece in input.chunks(size) {
            decoder.feed(piece.to_vec());
            while let Some(bytes) = decoder.step().unwrap() {
                add(bytes);
            }
        }
        while let Some(bytes) = decoder.finish().unwrap() {
            add(bytes);
        }
        (all, largest)
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
    fn other_codings_are_left_alone() {
        assert!(Decoder::of(None).is_none());
        assert!(Decoder::of(Some("br")).is_none());
        assert!(Decoder::of(Some("gzip, gzip, gzip, gzip, gzip, gzip")).is_none());
    }
}
