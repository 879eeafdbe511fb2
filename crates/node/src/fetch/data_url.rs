//! `data:` URLs: a type, and the bytes themselves.

use url::Url;

use crate::http::is_token;

/// What a `data:` URL holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DataUrl {
    /// The type, as a value of `Content-Type`.
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

/// The type of a URL that says none, or no type at all.
const DEFAULT_TYPE: &str = "text/plain;charset=US-ASCII";

impl DataUrl {
    /// Reads a URL with the scheme `data`. `None` if it has no comma, or its base64 is broken.
    pub(super) fn of(url: &Url) -> Option<Self> {
        let query = url.query().map(|query| format!("?{query}"));
        let text = format!("{}{}", url.path(), query.unwrap_or_default());
        let (kind, body) = text.split_once(',')?;
        let mut kind = kind.trim_matches(is_blank);
        let mut body: Vec<u8> = percent_decoded(body.as_bytes());
        if let Some(rest) = without_base64(kind) {
            kind = rest;
            body = base64_decoded(&body)?;
        }
        let content_type = match kind.starts_with(';') {
            true => content_type(&format!("text/plain{kind}")),
            false => content_type(kind),
        };
        Some(Self {
            content_type: content_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            body,
        })
    }
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// Returns the type before `;base64`, if it ends so.
fn without_base64(kind: &str) -> Option<&str> {
    let at = kind.len().checked_sub("base64".len())?;
    let (rest, word) = (kind.get(..at)?, kind.get(at..)?);
    let rest = rest.trim_end_matches(' ').strip_suffix(';')?;
    word.eq_ignore_ascii_case("base64").then_some(rest)
}

fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two digits are one byte.
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

/// Decodes base64 with blanks in it, and with or without `=` at its end.
fn base64_decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| is_blank(char::from(*byte));
    let mut digits: Vec<u8> = bytes.iter().copied().filter(|b| !is_blank(b)).collect();
    if digits.len() % 4 == 0 {
        for _ in 0..2 {
            if digits.last() == Some(&b'=') {
                digits.pop();
            }
        }
    }
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut decoded = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            bits = bits << 6 | base64_digit(*digit)?;
        }
        bits <<= 6 * (4 - group.len());
        decoded.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(decoded)
}

fn base64_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

/// Returns a type in its usual form: names in lower case, without parameters that are repeated or
/// broken. `None` if it is no type.
fn content_type(text: &str) -> Option<String> {
    let text = text.trim_matches(is_blank);
    let (essence, mut rest) = text.split_once(';').unwrap_or((text, ""));
    let (kind, subkind) = essence.split_once('/')?;
    let subkind = subkind.trim_end_matches(is_blank);
    if !is_token(kind) || !is_token(subkind) {
        return None;
    }
    let mut shown = format!("{kind}/{subkind}").to_ascii_lowercase();
    let mut known: Vec<String> = Vec::new();
    while !rest.is_empty() {
        let (name, value);
        (name, value, rest) = parameter(rest);
        let is_good = is_token(&name) && !value.is_empty() && value.chars().all(is_quotable);
        if is_good && !known.contains(&name) {
            let value = match is_token(&value) {
                true => value,
                false => format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
            };
            shown.push_str(&format!(";{name}={value}"));
            known.push(name);
        }
    }
    Some(shown)
}

fn is_quotable(char: char) -> bool {
    matches!(char, '\t' | ' '..='~' | '\u{80}'..='\u{ff}')
}

/// Splits a parameter off: its name, its value, and what follows the next semicolon.
fn parameter(text: &str) -> (String, String, &str) {
    let text = text.trim_start_matches(is_blank);
    let end = text.find([';', '=']).unwrap_or(text.len());
    let name = text[..end].to_ascii_lowercase();
    let Some(value) = text[end..].strip_prefix('=') else {
        return (name, String::new(), text[end..].trim_start_matches(';'));
    };
    if let Some(quoted) = value.strip_prefix('"') {
        let (value, rest) = unquoted(quoted);
        let rest = rest.find(';').map_or("", |at| &rest[at + 1..]);
        return (name, value, rest);
    }
    let (value, rest) = value.split_once(';').unwrap_or((value, ""));
    (name, value.trim_end_matches(is_blank).to_owned(), rest)
}

/// Reads a quoted text to its closing quote, which is not returned.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(chars.next().map_or('\\', |(_, char)| char)),
            _ => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::DataUrl;
    use url::Url;

    fn read(url: &str) -> Option<(String, String)> {
        let url = DataUrl::of(&Url::parse(url).unwrap())?;
        let body = url.body.iter().copied().map(char::from).collect();
        Some((url.content_type, body))
    }

    // The values are those of `fetch(url)` on Node.
    #[test]
    fn a_data_url_has_the_type_and_the_bytes_that_node_reads() {
        let default = "text/plain;charset=US-ASCII";
        for (url, kind, body) in [
            ("data:,hello", default, "hello"),
            ("data:text/plain,a%20b%ZZ", "text/plain", "a b%ZZ"),
            (
                "data:text/html;charset=utf-8,<p>",
                "text/html;charset=utf-8",
                "<p>",
            ),
            ("data:;base64,aGVsbG8=", default, "hello"),
            ("data:text/plain;base64,aGVs bG8", "text/plain", "hello"),
            ("data:text/plain; base64,aGVsbG8=", "text/plain", "hello"),
            ("data:base64,abc", default, "abc"),
            ("data:text/plain;base64,aG%56sbG8%3D", "text/plain", "hello"),
            ("data:bad type,x", default, "x"),
            (
                "data:Text/Plain;Charset=\"a;b\" ;x=,y",
                "text/plain;charset=\"a;b\"",
                "y",
            ),
            ("data:;charset=utf-8,ü", "text/plain;charset=utf-8", "Ã¼"),
            ("data:image/png;base64,", "image/png", ""),
            ("data:text/plain,a?b#frag", "text/plain", "a?b"),
            ("data:;x=1;base64,aGk=", "text/plain;x=1", "hi"),
            ("data:a/b;c=d;c=e,z", "a/b;c=d", "z"),
            ("data:text/plain;BASE64,aGk=", "text/plain", "hi"),
            ("data: text/plain ,x", "text/plain", "x"),
            ("data:a/b;q=\"a\\\"b\" ,z", "a/b;q=\"a\\\"b\"", "z"),
            ("data:a/b;=x;y,z", "a/b", "z"),
        ] {
            let expected = Some((kind.to_owned(), body.to_owned()));
            assert_eq!(read(url), expected, "{url}");
        }
        for url in [
            "data:nocomma",
            "data:text/plain;base64,a",
            "data:text/plain;base64,aGVsbG8==",
            "data:text/plain;base64,====",
            "data:text/plain;base64,aGVsbG8-",
        ] {
            assert_eq!(read(url), None, "{url}");
        }
    }
}
