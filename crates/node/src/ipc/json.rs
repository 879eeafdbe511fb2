//! The messages of the channel.

use std::fmt::{self, Write as _};

/// A message between parent and child: a value as JSON text.
///
/// A library such as `serde_json` writes and parses the text. Strings, numbers and booleans convert
/// by [`From`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::child_process::Json;
///
/// fn main() {
///     assert_eq!(Json::from("say \"hi\"").as_text(), r#""say \"hi\"""#);
///     assert_eq!(Json::from("a\nb").to_text_value().as_deref(), Some("a\nb"));
///     assert_eq!(Json::from(3).as_text(), "3");
///     assert_eq!(Json::from_text("{ \"a\":\n 1 }").as_text(), "{ \"a\":  1 }");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json {
    text: String,
}

impl Json {
    /// Wraps a text that is JSON already, without a check. Line breaks become spaces, since a
    /// message is one line; in JSON they only occur between tokens.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.contains(['\n', '\r']) {
            text = text.replace(['\n', '\r'], " ");
        }
        Self { text }
    }

    /// The JSON text.
    #[must_use]
    pub fn as_text(&self) -> &str {
        &self.text
    }

    /// The string that this is the JSON of; `None` if the value is not a string.
    #[must_use]
    pub fn to_text_value(&self) -> Option<String> {
        let quoted = self.text.trim();
        let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
        unescape(inner)
    }
}

fn unescape(text: &str) -> Option<String> {
    let (mut units, mut characters) = (Vec::new(), text.chars());
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                other => other,
            },
            '"' => return None,
            other => other,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
    Some(String::from_utf16_lossy(&units))
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        let mut text = String::with_capacity(value.len() + 2);
        text.push('"');
        for character in value.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\0'..='\u{1f}' => {
                    let _ = write!(text, "\\u{:04x}", u32::from(character));
                }
                other => text.push(other),
            }
        }
        text.push('"');
        Self { text }
    }
}

impl From<String> for Json {
    fn from(value: String) -> Self {
        value.as_str().into()
    }
}

macro_rules! from_plain {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Json {
            fn from(value: $kind) -> Self {
                Self { text: value.to_string() }
            }
        })*
    };
}

from_plain!(bool, i32, i64, u32);

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
