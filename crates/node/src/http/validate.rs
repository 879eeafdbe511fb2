//! What may stand in a head: methods, names, values, paths.

use super::parser::are_of_token;
use crate::error::Error;

/// The methods that a server accepts. JavaScript: `http.METHODS`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::METHODS;
///
/// fn main() {
///     assert!(METHODS.contains(&"GET"));
/// }
/// ```
pub const METHODS: &[&str] = &[
    "ACL",
    "BIND",
    "CHECKOUT",
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LINK",
    "LOCK",
    "M-SEARCH",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MOVE",
    "NOTIFY",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "SOURCE",
    "SUBSCRIBE",
    "TRACE",
    "UNBIND",
    "UNLINK",
    "UNLOCK",
    "UNSUBSCRIBE",
];

/// Checks the name of a header: one or more characters of a token. JavaScript:
/// `http.validateHeaderName(name)`.
///
/// # Errors
///
/// A `TypeError` with the code `ERR_INVALID_HTTP_TOKEN`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::validate_header_name;
///
/// fn main() {
///     assert!(validate_header_name("x-id").is_ok());
///     let error = validate_header_name("a b").unwrap_err();
///     assert_eq!(error.code(), Some("ERR_INVALID_HTTP_TOKEN"));
/// }
/// ```
pub fn validate_header_name(name: &str) -> Result<(), Error> {
    validate_token("Header name", name)
}

/// Checks the value of a header: tabs, and the printable characters of latin1. JavaScript:
/// `http.validateHeaderValue(name, value)`.
///
/// # Errors
///
/// A `TypeError` with the code `ERR_INVALID_CHAR`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::validate_header_value;
///
/// fn main() {
///     assert!(validate_header_value("x-id", "1\t2").is_ok());
///     let error = validate_header_value("x-id", "1\r\nx-other: 2").unwrap_err();
///     assert_eq!(error.code(), Some("ERR_INVALID_CHAR"));
/// }
/// ```
pub fn validate_header_value(name: &str, value: &str) -> Result<(), Error> {
    validate_text("header content", Some(name), value)
}

/// Checks that `text` is a token.
pub(super) fn validate_token(what: &str, text: &str) -> Result<(), Error> {
    if is_token(text) {
        return Ok(());
    }
    let message = format!("{what} must be a valid HTTP token [\"{text}\"]");
    Err(Error::type_error(message).coded("ERR_INVALID_HTTP_TOKEN"))
}

/// Checks the characters of a value, a trailer or a reason phrase.
pub(super) fn validate_text(what: &str, name: Option<&str>, text: &str) -> Result<(), Error> {
    if is_text(text) {
        return Ok(());
    }
    let message = match name {
        Some(name) => format!("Invalid character in {what} [\"{name}\"]"),
        None => format!("Invalid character in {what}"),
    };
    Err(Error::type_error(message).coded("ERR_INVALID_CHAR"))
}

/// Checks the path of a request.
pub(super) fn validate_path(path: &str) -> Result<(), Error> {
    if path.chars().all(|c| matches!(c, '\x21'..='\u{ff}')) {
        return Ok(());
    }
    let error = Error::type_error("Request path contains unescaped characters");
    Err(error.coded("ERR_UNESCAPED_CHARACTERS"))
}

/// Whether `text` is not empty and has only characters of a token.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && are_of_token(text.as_bytes())
}

fn is_text(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
    if text.bytes().all(is_plain) {
        return true;
    }
    let is_allowed = |c| matches!(c, '\t' | ' '..='~' | '\u{80}'..='\u{ff}');
    text.chars().all(is_allowed)
}

/// Appends latin1 text: one byte for each character. The text was validated, so that no character
/// needs more.
pub(super) fn push_latin1(bytes: &mut Vec<u8>, text: &str) {
    if text.is_ascii() {
        bytes.extend_from_slice(text.as_bytes());
    } else {
        bytes.extend(text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')));
    }
}

/// Whether `text` has `word` in any case, with no letter, digit or underscore next to it.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let is_part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    text.windows(word.len()).enumerate().any(|(start, found)| {
        found.eq_ignore_ascii_case(word)
            && !is_part(start.checked_sub(1).and_then(|before| text.get(before)))
            && !is_part(text.get(start + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::{has_word, push_latin1};

    #[test]
    fn a_word_has_no_letter_beside_it() {
        for text in ["close", "Close", "keep, CLOSE", "close;x", "un-close"] {
            assert!(has_word(text, "close"), "{text}");
        }
        for text in ["", "closed", "disclose", "close_", "clos", "1close"] {
            assert!(!has_word(text, "close"), "{text}");
        }
    }

    #[test]
    fn latin1_text_is_one_byte_a_character() {
        let mut bytes = b"x: ".to_vec();
        push_latin1(&mut bytes, "a\u{e9}\u{ff}");
        assert_eq!(bytes, b"x: a\xe9\xff");
    }
}
