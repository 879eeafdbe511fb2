//! A reader of JSON for what the crate writes: it accepts what the grammar has, and nothing else.
//! The package `tests/bridges` compares it with `serde_json`, which would be five more crates here.

use std::ops::Index;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Value {
    /// Reads a text. It panics with the place at which the text is not JSON.
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = Reader { rest: text };
        let value = reader.value().filter(|_| reader.space().is_empty());
        let rest: String = reader.rest.chars().take(40).collect();
        value.unwrap_or_else(|| panic!("no JSON at {rest:?}"))
    }

    pub(crate) fn as_array(&self) -> Option<&Vec<Self>> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// `Null` for what is not there.
impl Index<&str> for Value {
    type Output = Self;

    fn index(&self, key: &str) -> &Self {
        let Self::Object(fields) = self else {
            return &Self::Null;
        };
        let field = fields.iter().find(|(name, _)| name == key);
        field.map_or(&Self::Null, |(_, value)| value)
    }
}

/// `Null` for what is not there.
impl Index<usize> for Value {
    type Output = Self;

    fn index(&self, index: usize) -> &Self {
        let values = self.as_array().map_or(&[][..], Vec::as_slice);
        values.get(index).unwrap_or(&Self::Null)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == Some(text)
    }
}

impl PartialEq<u64> for Value {
    #[allow(clippy::cast_precision_loss, reason = "numbers of tests are small")]
    fn eq(&self, number: &u64) -> bool {
        self.as_f64() == Some(*number as f64)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Skips white space and returns the rest.
    fn space(&mut self) -> &'a str {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.rest
    }

    /// Takes these characters, if they are next.
    fn take(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn value(&mut self) -> Option<Value> {
        match self.space().chars().next()? {
            'n' => self.take("null").map(|()| Value::Null),
            't' => self.take("true").map(|()| Value::Bool(true)),
            'f' => self.take("false").map(|()| Value::Bool(false)),
            '"' => self.text().map(Value::Text),
            '[' => self.list('[', ']', Self::value).map(Value::Array),
            '{' => self.list('{', '}', Self::field).map(Value::Object),
            _ => self.number().map(Value::Number),
        }
    }

    fn field(&mut self) -> Option<(String, Value)> {
        self.space();
        let name = self.text()?;
        self.space();
        self.take(":")?;
        Some((name, self.value()?))
    }

    /// What is between two brackets, with commas between its members.
    fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut member: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.rest = self.rest.strip_prefix(open)?;
        let mut members = Vec::new();
        if let Some(rest) = self.space().strip_prefix(close) {
            self.rest = rest;
            return Some(members);
        }
        loop {
            members.push(member(self)?);
            let next = self.space().chars().next()?;
            if next != ',' && next != close {
                return None;
            }
            self.rest = &self.rest[1..];
            if next == close {
                return Some(members);
            }
        }
    }

    fn number(&mut self) -> Option<f64> {
        let is_part =
            |character: char| matches!(character, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let length = self.rest.find(|character| !is_part(character));
        let (text, rest) = self.rest.split_at(length.unwrap_or(self.rest.len()));
        // What Rust reads as a number and JSON does not: `+1`, `01`, `.5`, `5.`.
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        let is_json = match digits {
            [b'0', b'0'..=b'9', ..] => false,
            [first, ..] => first.is_ascii_digit(),
            [] => false,
        };
        let mut parts = text.split('.').skip(1);
        let has_fraction = parts.all(|part| part.starts_with(|digit: char| digit.is_ascii_digit()));
        if !is_json || !has_fraction {
            return None;
        }
        let number = text.parse().ok()?;
        self.rest = rest;
        Some(number)
    }

    fn text(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut text = String::new();
        loop {
            let next = self.rest.chars().next()?;
            if next < ' ' {
                return None;
            }
            self.rest = &self.rest[next.len_utf8()..];
            match next {
                '"' => return Some(text),
                '\\' => text.push(self.escape()?),
                other => text.push(other),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(match next {
            '"' | '\\' | '/' => next,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit()?;
                let second = if (0xd800..0xdc00).contains(&first) {
                    self.take("\\u")?;
                    Some(self.unit()?)
                } else {
                    None
                };
                let units = std::iter::once(first).chain(second);
                char::decode_utf16(units).next()?.ok()?
            }
            _ => return None,
        })
    }

    /// The four digits of a unit of UTF-16.
    fn unit(&mut self) -> Option<u16> {
        let digits = self.rest.get(..4)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let unit = is_hex.then(|| u16::from_str_radix(digits, 16).ok())??;
        self.rest = &self.rest[4..];
        Some(unit)
    }
}
