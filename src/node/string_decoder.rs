//! Bytes to text, chunk by chunk. Node's `string_decoder`, and the encodings of its buffers.

use std::fmt;
use std::str::FromStr;

use super::error::Error;

/// How bytes stand for text: the encodings of Node's `Buffer`.
///
/// JavaScript: `buffer.toString('hex')` is [`Encoding::Hex`]`.decode(bytes)`. The names of Node, such as `"utf-8"` or
/// `"ucs2"`, can be [parsed](FromStr).
///
/// # Examples
///
/// ```
/// use phaseloop::node::string_decoder::Encoding;
///
/// assert_eq!(Encoding::Base64.decode(b"hi"), "aGk=");
/// assert_eq!("latin1".parse::<Encoding>().unwrap().decode(&[0xe9]), "é");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// `utf8`. Invalid bytes become U+FFFD.
    #[default]
    Utf8,
    /// `utf16le`, `ucs2`. An unpaired surrogate becomes U+FFFD, since a `String` cannot hold one.
    Utf16le,
    /// `latin1`, `binary`: each byte is the character of that number.
    Latin1,
    /// `ascii`: as `Latin1`, without the highest bit.
    Ascii,
    /// `hex`: two digits a byte.
    Hex,
    /// `base64`, padded with `=`.
    Base64,
    /// `base64url`, without padding.
    Base64url,
}

impl Encoding {
    /// Node's name.
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

    /// Decodes bytes that are all there. JavaScript: `buffer.toString(encoding)`.
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

    /// Takes Node's names, in any case.
    ///
    /// # Errors
    ///
    /// `ERR_UNKNOWN_ENCODING` for another name.
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

/// Decodes text that comes in chunks: what a chunk ends in the middle of waits for the next one.
///
/// JavaScript: `new StringDecoder('utf8')`. A character is never cut, in UTF-8 and UTF-16; in base64 the digits of three
/// bytes belong together.
///
/// # Examples
///
/// ```
/// use phaseloop::node::string_decoder::{Encoding, StringDecoder};
///
/// let mut decoder = StringDecoder::new(Encoding::Utf8);
/// assert_eq!(decoder.write(&[0xe2, 0x82]), "");
/// assert_eq!(decoder.write(&[0xac]), "€");
/// assert_eq!(decoder.end(), "");
/// ```
#[derive(Clone, Debug)]
pub struct StringDecoder {
    encoding: Encoding,
    /// The beginning of a character.
    kept: [u8; 4],
    kept_count: usize,
    /// How many bytes the character still needs.
    missing: usize,
}

impl StringDecoder {
    /// A decoder that has seen nothing.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            kept: [0; 4],
            kept_count: 0,
            missing: 0,
        }
    }

    /// The encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Decodes a chunk, as far as its characters are complete. JavaScript: `decoder.write(buffer)`.
    #[must_use = "the text is not kept"]
    pub fn write(&mut self, mut bytes: &[u8]) -> String {
        use Encoding::{Ascii, Hex, Latin1};
        if matches!(self.encoding, Ascii | Hex | Latin1) {
            return self.encoding.decode(bytes);
        }
        let mut text = String::new();
        // A high surrogate that is complete waits for the low one.
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

    /// Decodes what is left of a character that never became complete, and begins anew. JavaScript: `decoder.end()`.
    #[must_use = "the text is not kept"]
    pub fn end(&mut self) -> String {
        self.missing = 0;
        self.take_kept()
    }

    /// Decodes a last chunk. JavaScript: `decoder.end(buffer)`.
    #[must_use = "the text is not kept"]
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

    /// Gives the kept character the bytes it misses, and returns the bytes after it.
    fn complete<'a>(&mut self, bytes: &'a [u8], text: &mut String) -> &'a [u8] {
        let mut count = self.missing.min(bytes.len());
        if self.encoding == Encoding::Utf8 {
            let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
            let fitting = bytes[..count].iter().take_while(is_continuation).count();
            if fitting < count {
                // The next character begins too early.
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

    /// How many bytes at the end of a chunk wait, and for how many more.
    fn incomplete_end(&self, bytes: &[u8]) -> (usize, usize) {
        match self.encoding {
            Encoding::Utf8 => incomplete_utf8(bytes),
            Encoding::Utf16le if bytes.len() % 2 == 1 => {
                // The byte before may be that of a high surrogate: it waits as well.
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

/// Whether the second byte of a UTF-16 unit, the higher one, is that of a high surrogate.
fn is_high_surrogate(byte: u8) -> bool {
    byte & 0xfc == 0xd8
}

/// As [`StringDecoder::incomplete_end`]: where the last character begins, and whether it is complete by its first byte.
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
