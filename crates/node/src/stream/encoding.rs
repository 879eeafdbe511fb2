//! Byte streams that are read as text.

use super::chunk::{ByteChunk, Bytes, Mode};
use super::readable::Readable;
use crate::events::ListenerId;
use crate::string_decoder::{Encoding, StringDecoder};

impl Readable<Vec<u8>> {
    /// Decodes the stream from now on, so that no chunk ends within a character. JavaScript:
    /// `readable.setEncoding('utf8')`.
    ///
    /// Chunks stay `Vec<u8>` and hold UTF-8 text whatever `encoding` is; [`on_text`](Self::on_text)
    /// and [`read_text`](Self::read_text) return it as text. A chunk that completes no character
    /// emits nothing. Bytes that EOF leaves incomplete are the last chunk. As in Node, the buffer
    /// and [`read_size`](Self::read_size) count in UTF-16 units from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, stream::Readable, string_decoder::Encoding};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let readable = Readable::bytes().build();
    ///         readable.set_encoding(Encoding::Utf8);
    ///         readable.push(vec![0xe2, 0x82]);
    ///         readable.push(vec![0xac]);
    ///         readable.on_text(|text| assert_eq!(text, "€"));
    ///     })
    /// }
    /// ```
    pub fn set_encoding(&self, encoding: Encoding) -> &Self {
        let state = &self.state;
        let mut decoder = StringDecoder::new(encoding);
        let kept = state.buffer.take();
        let text: String = kept.iter().map(|chunk| decoder.write(chunk)).collect();
        state.mode.set(Mode::of(&TEXT));
        let text = text.into_bytes();
        state.length.set(state.mode.get().size(&text));
        if !text.is_empty() {
            state.buffer.borrow_mut().push_back(text);
        }
        let before = state.decode.replace(Some(Box::new(move |chunk| {
            let text = match chunk {
                Some(bytes) => decoder.write(&bytes),
                None => decoder.end(),
            };
            text.into_bytes()
        })));
        drop(before);
        state.encoding.set(Some(encoding));
        self
    }

    /// Returns the encoding set by [`set_encoding`](Self::set_encoding). JavaScript:
    /// `readable.readableEncoding`.
    #[must_use]
    pub fn encoding(&self) -> Option<Encoding> {
        self.state.encoding.get()
    }

    /// Adds a listener for chunks as text and starts the flow; see [`on_data`](Self::on_data).
    ///
    /// Without [`set_encoding`](Self::set_encoding) each chunk is decoded as UTF-8 by itself: a
    /// character that spans two chunks is replaced.
    pub fn on_text(&self, listener: impl Fn(&str) + 'static) -> ListenerId {
        self.on_data(move |chunk| listener(&String::from_utf8_lossy(chunk)))
    }

    /// Reads the buffered data as text; see [`read`](Self::read) and [`on_text`](Self::on_text).
    pub fn read_text(&self) -> Option<String> {
        let chunk = self.read()?;
        Some(String::from_utf8_lossy(&chunk).into_owned())
    }
}

impl<T: ByteChunk> Readable<T> {
    /// Decodes the stream from now on with `decode`, which gets each chunk, and `None` at the end.
    /// The chunks that it returns count as their [`size`](ByteChunk::size) is.
    pub(crate) fn decode_with(
        &self,
        encoding: Encoding,
        mut decode: impl FnMut(Option<T>) -> T + 'static,
    ) {
        let state = &self.state;
        let kept = state.buffer.take();
        let kept = kept.into_iter().map(|chunk| decode(Some(chunk)));
        let kept: std::collections::VecDeque<_> = kept.filter(|text| text.size() > 0).collect();
        state.length.set(kept.iter().map(T::size).sum());
        drop(state.buffer.replace(kept));
        drop(state.decode.replace(Some(Box::new(decode))));
        state.encoding.set(Some(encoding));
    }
}

/// UTF-8 text that is counted in UTF-16 units, as JavaScript counts.
static TEXT: Bytes<Vec<u8>> = Bytes::counted(utf16_length, |text, units| {
    let rest = text.split_off(utf16_end(text, units));
    std::mem::replace(text, rest)
});

/// Returns the number of UTF-16 units that a byte of UTF-8 stands for. The first byte of a
/// character counts for the whole character.
fn units(byte: u8) -> usize {
    match byte {
        0x80..=0xbf => 0,
        0xf0..=0xff => 2,
        _ => 1,
    }
}

// The functions of a mode take the chunk type of the stream, which is a vector.
#[expect(
    clippy::ptr_arg,
    reason = "a pointer to it has the type of `ByteChunk::size`"
)]
fn utf16_length(text: &Vec<u8>) -> usize {
    text.iter().map(|byte| units(*byte)).sum()
}

/// Returns the byte offset after the first `count` units. A split inside a character moves to its
/// end.
fn utf16_end(text: &[u8], count: usize) -> usize {
    let mut left = count;
    for (index, byte) in text.iter().enumerate() {
        let units = units(*byte);
        if units > 0 && left == 0 {
            return index;
        }
        left = left.saturating_sub(units);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{utf16_end, utf16_length};

    #[test]
    fn text_is_counted_and_cut_in_utf16_units() {
        let text = "a€😀b".as_bytes();
        assert_eq!(utf16_length(&text.to_vec()), 5);
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 9].map(|count| utf16_end(text, count)),
            [0, 1, 4, 8, 8, 9, 9]
        );
    }
}
