//! Brotli, through a decoder without `unsafe`.

use std::borrow::Cow;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{Fault, Flush, Step};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

/// Unpacks Brotli. Windows above 16 MiB are an extension of the format and are refused.
pub(in super::super) struct Brotli {
    state: Box<State>,
}

impl Brotli {
    pub(super) fn new() -> Self {
        let memory = StandardAlloc::default;
        Self {
            state: Box::new(State::new_strict(memory(), memory(), memory())),
        }
    }

    pub(super) fn step(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        flush: Flush,
    ) -> Result<Step, Fault> {
        let (mut unused, mut used) = (input.len(), 0);
        let (mut room, mut written, mut total) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut unused,
            &mut used,
            input,
            &mut room,
            &mut written,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(self.fault()),
            BrotliResult::NeedsMoreInput if flush == Flush::Finish => Err(Fault::CUT_OFF),
            _ => Ok(Step { used, written }),
        }
    }

    /// The error that the state remembers, with Node's code: `ERR__ERROR_FORMAT_PADDING_1` and its
    /// like.
    fn fault(&self) -> Fault {
        let name = format!("{:?}", self.state.error_code);
        Fault {
            code: Cow::Owned(name.replacen("BROTLI_DECODER", "ERR_", 1)),
            text: "Decompression failed",
        }
    }
}
