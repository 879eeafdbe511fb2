//! Bytes to lines, chunk by chunk. No input or output.

use std::time::Duration;

use crate::string_decoder::{Encoding, StringDecoder};
use phaseloop::time::{Instant, now};

/// The shortest and default time between the halves of a line end in two chunks.
const LEAST_CRLF_DELAY: Duration = Duration::from_millis(100);

/// Splits decoded chunks into lines.
// H111.
pub(super) struct LineSplitter {
    decoder: StringDecoder,
    /// The beginning of the next line.
    rest: String,
    /// When a chunk ended with `\r`, until the next chunk.
    returned_at: Option<Instant>,
    crlf_delay: Duration,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self {
            decoder: StringDecoder::new(Encoding::Utf8),
            rest: String::new(),
            returned_at: None,
            crlf_delay: LEAST_CRLF_DELAY,
        }
    }
}

impl LineSplitter {
    pub(super) fn set_crlf_delay(&mut self, delay: Duration) {
        self.crlf_delay = delay.max(LEAST_CRLF_DELAY);
    }

    /// Adds bytes and returns the lines that they complete.
    pub(super) fn add(&mut self, chunk: &[u8]) -> Vec<String> {
        let text = self.decoder.write(chunk);
        self.add_text(&text)
    }

    /// Adds text and returns the lines that it completes.
    pub(super) fn add_text(&mut self, mut text: &str) -> Vec<String> {
        let returned_at = self.returned_at.take();
        if returned_at.is_some_and(|at| now().duration_since(at) <= self.crlf_delay) {
            text = text.strip_prefix('\n').unwrap_or(text);
        }
        let mut lines = Vec::new();
        while let Some(at) = text.find(['\n', '\r', '\u{2028}', '\u{2029}']) {
            let (line, end) = text.split_at(at);
            let mut whole = std::mem::take(&mut self.rest);
            whole.push_str(line);
            lines.push(whole);
            let mut behind = end.chars();
            behind.next();
            text = end.strip_prefix("\r\n").unwrap_or(behind.as_str());
            if text.is_empty() && end == "\r" {
                self.returned_at = Some(now());
            }
        }
        self.rest.push_str(text);
        lines
    }

    /// Takes the text without a line end. As in Node, an incomplete character is dropped.
    pub(super) fn take_rest(&mut self) -> String {
        std::mem::take(&mut self.rest)
    }
}
