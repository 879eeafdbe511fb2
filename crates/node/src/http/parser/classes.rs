//! The classes of bytes in a head, as one table.

/// A byte of a header name: `tchar` of RFC 9110.
pub(super) const TOKEN: u8 = 1;
/// A byte of a header value: HTAB, SP, visible ASCII and bytes above it.
pub(super) const VALUE: u8 = 1 << 1;
/// A byte of a path, query or fragment, without `?` and `#`.
pub(super) const URL: u8 = 1 << 2;
/// A byte of the host in a URL, without `@`.
pub(super) const HOST: u8 = 1 << 3;
/// A byte between the quotes of a chunk extension, without `"` and `\`.
pub(super) const QUOTED: u8 = 1 << 4;
/// A letter.
pub(super) const LETTER: u8 = 1 << 5;

static CLASSES: [u8; 256] = table();

const fn table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        table[at] = classes_of(at as u8);
        at += 1;
    }
    table
}

const fn classes_of(byte: u8) -> u8 {
    let mut classes = 0;
    if byte.is_ascii_alphabetic() {
        classes |= LETTER;
    }
    if byte.is_ascii_alphanumeric() || is_one_of(byte, b"!#$%&'*+-.^_`|~") {
        classes |= TOKEN;
    }
    if byte == b'\t' || (byte >= b' ' && byte != 0x7f) {
        classes |= VALUE;
        if byte != b'"' && byte != b'\\' {
            classes |= QUOTED;
        }
    }
    if byte.is_ascii_graphic() && !is_one_of(byte, b"?#") {
        classes |= URL;
    }
    if byte.is_ascii_alphanumeric() || is_one_of(byte, b"-_.!~*'()%;:&=+$,[]") {
        classes |= HOST;
    }
    classes
}

const fn is_one_of(byte: u8, set: &[u8]) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

/// Returns whether a byte belongs to a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Returns the number of bytes of a class at the start of `bytes`.
#[inline]
pub(super) fn run(bytes: &[u8], class: u8) -> usize {
    let end = bytes.iter().position(|byte| !is(*byte, class));
    end.unwrap_or(bytes.len())
}

/// Returns whether all bytes are those of a token.
pub(in crate::http) fn are_of_token(bytes: &[u8]) -> bool {
    run(bytes, TOKEN) == bytes.len()
}

/// Returns the value of a hexadecimal digit.
pub(super) fn hex_digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

/// Returns the value of a decimal digit.
pub(super) fn digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(10).map(u64::from)
}
