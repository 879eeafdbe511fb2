//! The headers of a message that is written: their values, and the list in the order of setting.

use std::fmt;

use crate::error::Error;
use crate::http::names::Names;
use crate::http::validate::{validate_header_name, validate_header_value};

/// The value of a header: a text, a number, or a list of them. A list is written as several lines.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::HeaderValue;
///
/// fn main() {
///     assert_eq!(HeaderValue::from(13).to_string(), "13");
///     let list = HeaderValue::from(["a=1", "b=2"]);
///     assert_eq!(list.values(), ["a=1", "b=2"]);
///     assert_eq!(list.to_string(), "a=1, b=2");
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValue(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// JavaScript's `undefined`, which is refused.
    Missing,
    One(String),
    List(Vec<String>),
}

impl HeaderValue {
    /// Returns all values: one for a text or a number.
    #[must_use]
    pub fn values(&self) -> &[String] {
        match &self.0 {
            Kind::Missing => &[],
            Kind::One(value) => std::slice::from_ref(value),
            Kind::List(values) => values,
        }
    }

    /// Returns whether the header was set to a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.0, Kind::List(_))
    }

    pub(super) fn validate(&self, name: &str) -> Result<(), Error> {
        if self.0 == Kind::Missing {
            let message = format!("Invalid value \"undefined\" for header \"{name}\"");
            return Err(Error::type_error(message).coded("ERR_HTTP_INVALID_HEADER_VALUE"));
        }
        let mut values = self.values().iter();
        values.try_for_each(|value| validate_header_value(name, value))
    }

    fn append(&mut self, other: Self) {
        let mut values = std::mem::replace(self, Self(Kind::Missing)).into_values();
        values.extend(other.into_values());
        self.0 = Kind::List(values);
    }

    fn into_values(self) -> Vec<String> {
        match self.0 {
            Kind::Missing => Vec::new(),
            Kind::One(value) => vec![value],
            Kind::List(values) => values,
        }
    }
}

impl fmt::Display for HeaderValue {
    /// Writes the values of a list with `, ` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.values().iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Missing => f.write_str("undefined"),
            Kind::One(value) => value.fmt(f),
            Kind::List(values) => values.fmt(f),
        }
    }
}

impl PartialEq<str> for HeaderValue {
    fn eq(&self, other: &str) -> bool {
        matches!(&self.0, Kind::One(value) if value == other)
    }
}

impl PartialEq<&str> for HeaderValue {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// The headers of a [`write_head`](crate::http::ServerResponse::write_head): pairs of names and
/// values, or `()` for none.
///
/// `K` is `()` or [`Pairs`]; the compiler finds it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| match request.url() {
///             "/" => response.write_head(200, [("Content-Type", "text/plain")]).end("hello"),
///             _ => response.write_head(404, ()).end(()),
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
pub trait IntoHeaders<K> {
    /// Converts the value to names and values.
    fn into_headers(self) -> Vec<(String, HeaderValue)>;
}

/// Pairs of names and values; see [`IntoHeaders`].
#[derive(Clone, Copy, Debug)]
pub struct Pairs;

impl IntoHeaders<()> for () {
    fn into_headers(self) -> Vec<(String, HeaderValue)> {
        Vec::new()
    }
}

impl<N: Into<String>, V: Into<HeaderValue>, I: IntoIterator<Item = (N, V)>> IntoHeaders<Pairs>
    for I
{
    fn into_headers(self) -> Vec<(String, HeaderValue)> {
        let pairs = self.into_iter();
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }
}

impl From<&str> for HeaderValue {
    fn from(value: &str) -> Self {
        Self(Kind::One(value.to_owned()))
    }
}

impl From<String> for HeaderValue {
    fn from(value: String) -> Self {
        Self(Kind::One(value))
    }
}

impl From<&String> for HeaderValue {
    fn from(value: &String) -> Self {
        Self(Kind::One(value.clone()))
    }
}

/// Numbers are written in decimal digits.
macro_rules! from_numbers {
    ($($number:ty),+) => {$(
        impl From<$number> for HeaderValue {
            fn from(value: $number) -> Self {
                Self(Kind::One(value.to_string()))
            }
        }
    )+};
}

from_numbers!(u8, u16, u32, u64, usize, i32, i64, f64);

impl<T: Into<String>> From<Vec<T>> for HeaderValue {
    fn from(values: Vec<T>) -> Self {
        Self(Kind::List(values.into_iter().map(Into::into).collect()))
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for HeaderValue {
    fn from(values: [T; N]) -> Self {
        Self(Kind::List(values.into_iter().map(Into::into).collect()))
    }
}

/// `None` is JavaScript's `undefined`: an error when the header is set.
impl<T: Into<Self>> From<Option<T>> for HeaderValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(Kind::Missing), Into::into)
    }
}

impl From<&Self> for HeaderValue {
    fn from(value: &Self) -> Self {
        value.clone()
    }
}

/// A header: its name as it was set last, and its value.
pub(in crate::http) type Field = (String, HeaderValue);

/// Checks a header.
pub(in crate::http) fn validate_field((name, value): &Field) -> Result<(), Error> {
    validate_header_name(name)?;
    value.validate(name)
}

/// The headers of a message, in the order in which they were set first.
#[derive(Clone, Default)]
pub(super) struct Fields {
    list: Vec<Field>,
    names: Names,
    /// Whether a header was ever set; it may be removed since.
    is_used: bool,
}

impl Fields {
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.names = Names::default();
        self.is_used = false;
    }

    pub(super) fn list(&self) -> &[Field] {
        &self.list
    }

    fn position(&self, name: &str) -> Option<usize> {
        let list = &self.list;
        self.names.find(name, list.len(), |place| &list[place].0)
    }

    pub(super) fn get(&self, name: &str) -> Option<&HeaderValue> {
        self.position(name).map(|place| &self.list[place].1)
    }

    /// Sets a valid header. A known one keeps its place.
    pub(super) fn set(&mut self, field: Field) {
        self.is_used = true;
        match self.position(&field.0) {
            Some(place) => self.list[place] = field,
            None => {
                self.list.push(field);
                let list = &self.list;
                self.names.added(list.len(), |place| &list[place].0);
            }
        }
    }

    /// Adds fields, which replace those with their names. A list that repeats a name keeps all its
    /// lines, as Node's arrays do, in the places of the list.
    pub(super) fn merge(&mut self, given: Vec<Field>) {
        let is_repeated = |(at, (name, _)): (usize, &Field)| {
            let mut before = given[..at].iter();
            before.any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        if !given.iter().enumerate().any(is_repeated) {
            return given.into_iter().for_each(|field| self.set(field));
        }
        for (name, _) in &given {
            self.remove(name);
        }
        given.into_iter().for_each(|field| self.append(field));
    }

    /// Adds to a header, which becomes a list and keeps its name.
    pub(super) fn append(&mut self, field: Field) {
        match self.position(&field.0) {
            Some(place) => self.list[place].1.append(field.1),
            None => self.set(field),
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Field> {
        let place = self.position(name)?;
        self.names.removed(place);
        Some(self.list.remove(place))
    }
}
