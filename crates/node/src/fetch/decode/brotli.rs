//! Brotli, through a decoder without `unsafe` that stops when its output is full.

use std::mem::take;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Result, Unpack};
use crate::error::Error;

/// The most that one step brings out.
const STEP: usize = 64 * 1024;

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// The memory of a stream is bounded by its window, which has 16 MiB at most. Larger windows are an
/// extension of the format and are refused, as by Node.
pub(super) struct Brotli {
    state: Box<State>,
    /// The memory of each step.
    buffer: Vec<u8>,
    /// The bytes of the last step.
    written: usize,
    has_more: bool,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let memory = StandardAlloc::default;
        Self {
            state: Box::new(State::new_strict(memory(), memory(), memory())),
            buffer: vec![0; STEP],
            written: 0,
            has_more: false,
        }
    }

    /// The error that the state remembers, with Node's code: `ERR__ERROR_FORMAT_PADDING_1` and its
    /// like.
    fn failed(&self) -> Error {
        let name = format!("{:?}", self.state.error_code);
        let code = name.replacen("BROTLI_DECODER", "ERR_", 1);
        Error::with_code(code, "Decompression failed")
    }
}

impl Unpack for Brotli {
    fn unpack(&mut self, input: &[u8]) -> Result<usize> {
        let (mut unused, mut used) = (input.len(), 0);
        let (mut room, mut written, mut total) = (STEP, 0, 0);
        let result = BrotliDecompressStream(
            &mut unused,
            &mut used,
            input,
            &mut room,
            &mut written,
            &mut self.buffer,
            &mut total,
            &mut self.state,
        );
        self.written = written;
        self.has_more = matches!(result, BrotliResult::NeedsMoreOutput);
        match result {
            BrotliResult::ResultFailure => Err(self.failed()),
            _ => Ok(used),
        }
    }

    fn has_more(&self) -> bool {
        self.has_more
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn output(&mut self) -> Vec<u8> {
        // The memory of a piece is no larger than the piece: a reader that is slow holds as many
        // as its limit of bytes allows.
        self.buffer[..take(&mut self.written)].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use crate::error::Error;

    /// 1,000 times a line of text, packed by Node.
    const TEXT: &str = "1b27a0e81d076e2ccd5b5ee23942a52748185989a5154b194ce4c0b12d0c6f20cf202aae92592afba75b\
        908f13fadc4b8023";
    const LINE: &str = "a text that is long enough to be packed, ";

    /// 64 MiB of zeros.
    const BOMB: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffff\
        c13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0\
        bdffcbffff3ffc1300715800a07bff07";

    /// With a window of 256 MiB, an extension of the format.
    const LARGE_WINDOW: &str = "115cfc0fe09f0088c60201b901";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Returns the length of the output, the largest step, and the beginning.
    fn unpack(input: &[u8], size: usize) -> Result<(usize, usize, Vec<u8>), Error> {
        let mut decoder = Decoder::of(Some("br"))?.expect("the coding is known");
        let (mut length, mut largest, mut beginning) = (0, 0, Vec::new());
        for piece in input.chunks(size) {
            decoder.feed(piece.to_vec());
            while let Some(bytes) = decoder.step()? {
                assert_eq!(bytes.capacity(), bytes.len(), "no memory for more");
                length += bytes.len();
                largest = largest.max(bytes.len());
                if beginning.len() < 1 << 20 {
                    beginning.extend(bytes);
                }
            }
        }
        assert!(decoder.finish()?.is_none(), "all has come out");
        Ok((length, largest, beginning))
    }

    // H95.
    #[test]
    fn brotli_is_undone_whatever_the_cuts_and_bytes_behind_it_are_dropped() {
        for size in [1, 3, usize::MAX] {
            for rest in [&b""[..], b"rest"] {
                let packed = [&*bytes(TEXT), rest].concat();
                let (_, _, all) = unpack(&packed, size).unwrap();
                assert!(all == LINE.repeat(1000).as_bytes(), "by {size}");
            }
        }
    }

    #[test]
    fn a_bomb_is_undone_in_steps_of_bounded_size() {
        for size in [1, usize::MAX] {
            let (length, largest, _) = unpack(&bytes(BOMB), size).unwrap();
            assert_eq!(length, 64 << 20);
            assert!(largest <= super::STEP, "{largest}");
        }
    }

    #[test]
    fn an_input_that_is_cut_off_gives_what_is_there_and_a_broken_one_an_error() {
        let packed = bytes(TEXT);
        let (length, _, _) = unpack(&packed[..packed.len() - 3], 9).unwrap();
        assert!(length < 41_000);
        let code = |input: &[u8]| {
            unpack(input, usize::MAX)
                .unwrap_err()
                .code()
                .unwrap()
                .to_owned()
        };
        let garbage = b"this is not brotli at all";
        assert_eq!(code(garbage), "ERR__ERROR_FORMAT_PADDING_1");
        assert_eq!(code(&bytes(LARGE_WINDOW)), "ERR__ERROR_FORMAT_WINDOW_BITS");
    }
}
