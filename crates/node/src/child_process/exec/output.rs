//! The output of a process as far as it was collected.

use crate::string_decoder::Encoding;

#[derive(Default)]
pub(super) struct Output {
    pub(super) text: String,
    /// The number of bytes that the process has written.
    size: usize,
}

impl Output {
    /// Adds a piece of decoded output. Returns whether the process has written more than `limit`
    /// bytes.
    pub(super) fn add(&mut self, piece: &[u8], limit: usize, encoding: Encoding) -> bool {
        let piece = String::from_utf8_lossy(piece);
        let room = limit.saturating_sub(self.size);
        self.size += size_of(&piece, encoding);
        if self.size <= limit {
            self.text += &piece;
            return false;
        }
        // As in Node, the bytes that have room are counted, and so many characters are kept.
        let mut units = 0;
        let fits = |c: &char| {
            units += c.len_utf16();
            units <= room
        };
        self.text.extend(piece.chars().take_while(fits));
        true
    }
}

/// Returns the number of bytes behind decoded text.
fn size_of(text: &str, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => text.len(),
        Encoding::Utf16le => text.encode_utf16().count() * 2,
        Encoding::Latin1 | Encoding::Ascii => text.chars().count(),
        Encoding::Hex => text.len() / 2,
        Encoding::Base64 | Encoding::Base64url => text.trim_end_matches('=').len() * 3 / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::Output;
    use crate::string_decoder::Encoding;

    // Node 26 prints the same for `exec` with `maxBuffer` and `encoding`.
    #[test]
    fn n104_bytes_are_counted_and_characters_are_kept() {
        let collected = |piece: &str, limit, encoding| {
            let mut output = Output::default();
            let is_too_much = output.add(piece.as_bytes(), limit, encoding);
            (is_too_much, output.text)
        };
        let kept = |text: &str, is_cut| (is_cut, text.to_owned());
        assert_eq!(collected("héé", 5, Encoding::Utf8), kept("héé", false));
        assert_eq!(collected("héé", 3, Encoding::Utf8), kept("héé", true));
        assert_eq!(collected("héé", 2, Encoding::Utf8), kept("hé", true));
        assert_eq!(collected("héé", 3, Encoding::Latin1), kept("héé", false));
        assert_eq!(collected("héé", 2, Encoding::Latin1), kept("hé", true));
        assert_eq!(collected("616263", 3, Encoding::Hex), kept("616263", false));
        assert_eq!(collected("616263", 2, Encoding::Hex), kept("61", true));
        assert_eq!(collected("YWJj", 3, Encoding::Base64), kept("YWJj", false));
        assert_eq!(collected("YWJj", 2, Encoding::Base64), kept("YW", true));
    }
}
