//! Bytes to text, chunk by chunk: Node's `string_decoder`, and the encodings of its buffers.
//!
//! ```
//! use phaseloop_node::string_decoder::{Encoding, StringDecoder};
//!
//! fn main() {
//!     let mut decoder = StringDecoder::new(Encoding::Utf8);
//!     assert_eq!(decoder.write(&[0xe2, 0x82]), "");
//!     assert_eq!(decoder.write(&[0xac]), "€");
//!     assert_eq!(decoder.end(), "");
//! }
//! ```

use std::fmt;
use std::str::FromStr;

use super::error::Error;

/// The encodings of Node's `Buffer`.
///
/// `buffer.toString('hex')` of JavaScript is [`Encoding::Hex`]`.decode(bytes)`. Node's names, such
/// as `"utf-8"` or `"ucs2"`, can be [parsed](FromStr).
///
/// # Examples
///
/// ```
/// use phaseloop_node::string_decoder::Encoding;
///
/// fn main() {
///     assert_eq!(Encoding::Base64.decode(b"hi"), "aGk=");
///     assert_eq!("latin1".parse::<Encoding>().unwrap().decode(&[0xe9]), "é");
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `utf8`. Invalid bytes are replaced by U+FFFD.
    #[default]
    Utf8,
    /// `utf16le`, `ucs2`. An unpaired surrogate is replaced by U+FFFD, since a `String` cannot hold
    /// it.
    Utf16le,
    /// `latin1`, `binary`: each byte is the code point of a character.
    Latin1,
    /// `ascii`: like `Latin1`, with the highest bit cleared.
    Ascii,
    /// `hex`: two digits for each byte.
    Hex,
    /// `base64`, padded with `=`.
    Base64,
    /// `base64url`, without padding.
    Base64url,
}

impl Encoding {
    /// Returns Node's name of the encoding.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Utf16le => "utf16le",
            Self::Latin1 => "latin1",
            Self::Ascii => "ascii",
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Base64url => "base64url",
        }
    }

    /// Decodes a complete buffer. JavaScript: `buffer.toString(encoding)`.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> String {
        const STANDARD: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const FOR_URLS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Self::Utf16le => {
                let units = bytes.chunks_exact(2);
                let units: Vec<_> = units
                    .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                    .collect();
                String::from_utf16_lossy(&units)
            }
            Self::Latin1 => bytes.iter().copied().map(char::from).collect(),
            Self::Ascii => bytes.iter().map(|byte| char::from(byte & 0x7f)).collect(),
            Self::Hex => {
                let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
                digits
                    .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
                    .collect()
            }
            Self::Base64 => base64(bytes, STANDARD, true),
            Self::Base64url => base64(bytes, FOR_URLS, false),
        }
    }
}

fn base64(bytes: &[u8], alphabet: &[u8; 64], is_padded: bool) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_usize {
            if place <= group.len() {
                let digit = bits >> (18 - 6 * place) & 63;
                text.push(char::from(alphabet[digit as usize]));
            } else if is_padded {
                text.push('=');
            }
        }
    }
    text
}

impl FromStr for Encoding {
    type Err = Error;

    /// Parses Node's names, in upper or lower case.
    ///
    /// # Errors
    ///
    /// `ERR_UNKNOWN_ENCODING` for any other name.
    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "utf8" | "utf-8" => Self::Utf8,
            "utf16le" | "utf-16le" | "ucs2" | "ucs-2" => Self::Utf16le,
            "latin1" | "binary" => Self::Latin1,
            "ascii" => Self::Ascii,
            "hex" => Self::Hex,
            "base64" => Self::Base64,
            "base64url" => Self::Base64url,
            _ => {
                let text = format!("Unknown encoding: {name}");
                return Err(Error::named("TypeError", text).coded("ERR_UNKNOWN_ENCODING"));
            }
        })
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decodes text that arrives in chunks. An incomplete character at the end of a chunk waits for the
/// next chunk. JavaScript: `new StringDecoder('utf8')`.
///
/// A character of UTF-8 or UTF-16 is never split. In base64 the digits of three bytes stay
/// together.
///
/// # Examples
///
/// ```
/// use phaseloop_node::string_decoder::{Encoding, StringDecoder};
///
/// fn main() {
///     let mut decoder = StringDecoder::new(Encoding::Utf8);
///     assert_eq!(decoder.write(&[0xe2, 0x82]), "");
///     assert_eq!(decoder.write(&[0xac]), "€");
///     assert_eq!(decoder.end(), "");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct StringDecoder {
    encoding: Encoding,
    /// The first bytes of an incomplete character.
    kept: [u8; 4],
    kept_count: usize,
    /// How many bytes the character still needs.
    missing: usize,
}

impl StringDecoder {
    /// Creates a decoder without pending bytes.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            kept: [0; 4],
            kept_count: 0,
            missing: 0,
        }
    }

    /// Returns the encoding. JavaScript: `decoder.encoding`.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Decodes a chunk up to its last complete character. JavaScript: `decoder.write(buffer)`.
    #[must_use = "the decoded text is returned, not stored"]
    pub fn write(&mut self, mut bytes: &[u8]) -> String {
        use Encoding::{Ascii, Hex, Latin1};
        if matches!(self.encoding, Ascii | Hex | Latin1) {
            return self.encoding.decode(bytes);
        }
        let mut text = String::new();
        // A loop, because a complete high surrogate waits for its low surrogate.
        while self.missing > 0 && !bytes.is_empty() {
            bytes = self.complete(bytes, &mut text);
        }
        if bytes.is_empty() {
            return text;
        }
        let (count, missing) = self.incomplete_end(bytes);
        let (whole, rest) = bytes.split_at(bytes.len() - count);
        text.push_str(&self.encoding.decode(whole));
        self.keep(rest);
        self.missing = missing;
        text
    }

    /// Decodes the bytes of an incomplete character, and resets the decoder. JavaScript:
    /// `decoder.end()`.
    #[must_use = "the decoded text is returned, not stored"]
    pub fn end(&mut self) -> String {
        self.missing = 0;
        self.take_kept()
    }

    /// Decodes a last chunk, then ends as [`end`](Self::end) does. JavaScript:
    /// `decoder.end(buffer)`.
    #[must_use = "the decoded text is returned, not stored"]
    pub fn end_with(&mut self, bytes: &[u8]) -> String {
        let text = self.write(bytes);
        text + &self.end()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let end = self.kept_count + bytes.len();
        self.kept[self.kept_count..end].copy_from_slice(bytes);
        self.kept_count = end;
    }

    fn take_kept(&mut self) -> String {
        let count = std::mem::take(&mut self.kept_count);
        self.encoding.decode(&self.kept[..count])
    }

    /// Completes the pending character with the first bytes, and returns the bytes after it.
    fn complete<'a>(&mut self, bytes: &'a [u8], text: &mut String) -> &'a [u8] {
        let mut count = self.missing.min(bytes.len());
        if self.encoding == Encoding::Utf8 {
            let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
            let fitting = bytes[..count].iter().take_while(is_continuation).count();
            if fitting < count {
                // The next character starts before the pending one is complete, which is invalid
                // UTF-8.
                count = fitting;
                self.missing = fitting;
            }
        }
        let (fitting, rest) = bytes.split_at(count);
        self.keep(fitting);
        self.missing -= count;
        if self.missing == 0 {
            let is_utf16 = self.encoding == Encoding::Utf16le;
            if is_utf16 && self.kept_count == 2 && is_high_surrogate(self.kept[1]) {
                self.missing = 2;
            } else {
                text.push_str(&self.take_kept());
            }
        }
        rest
    }

    /// Returns how many bytes at the end of a chunk are incomplete, and how many more they need.
    fn incomplete_end(&self, bytes: &[u8]) -> (usize, usize) {
        match self.encoding {
            Encoding::Utf8 => incomplete_utf8(bytes),
            Encoding::Utf16le if bytes.len() % 2 == 1 => {
                // The unit before may be a high surrogate; it waits too.
                match bytes.len().checked_sub(2) {
                    Some(before) if is_high_surrogate(bytes[before]) => (3, 1),
                    _ => (1, 1),
                }
            }
            Encoding::Utf16le if bytes.last().is_some_and(|byte| is_high_surrogate(*byte)) => {
                (2, 2)
            }
            Encoding::Base64 | Encoding::Base64url => match bytes.len() % 3 {
                0 => (0, 0),
                count => (count, 3 - count),
            },
            _ => (0, 0),
        }
    }
}

/// Returns whether the second, higher byte of a UTF-16 unit marks a high surrogate.
fn is_high_surrogate(byte: u8) -> bool {
    byte & 0xfc == 0xd8
}

/// Returns the result of [`StringDecoder::incomplete_end`] for UTF-8: it finds the first byte of
/// the last character, which gives the length of that character.
fn incomplete_utf8(bytes: &[u8]) -> (usize, usize) {
    let last = bytes.iter().rev().take(4).enumerate();
    for (after, &byte) in last {
        let count = after + 1;
        let size = match byte {
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 0,
        };
        return if count < size {
            (count, size - count)
        } else {
            (0, 0)
        };
    }
    (0, 0)
}
