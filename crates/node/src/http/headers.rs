//! The headers of a received message.

use std::fmt;

use super::names::Names;
use super::parser::Head;

/// The headers, or the trailers, of a received message. Names match in any case. JavaScript:
/// `message.headers`, `message.headersDistinct`.
///
/// Repeated headers are joined as in Node: by `, ` as a rule, and `Cookie` by `; `. Of headers that
/// make sense only once, such as `Host` or `Content-Type`, the first counts. `Set-Cookie` is a
/// list.
///
/// A byte of the message is one character: the text is latin1.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|request, response| {
///             assert_eq!(request.headers().get("HOST"), Some("127.0.0.1"));
///             response.end(());
///         });
///         server.listen_this(("127.0.0.1", 0), |server| server.close());
///     })
/// }
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    list: Vec<Entry>,
    names: Names,
}

#[derive(Clone)]
struct Entry {
    name: String,
    values: Vec<String>,
    /// All values as one text, if there are several that are joined.
    joined: Option<String>,
}

/// What happens to a header that comes again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Joined(&'static str),
    /// The first one counts.
    Dropped,
    /// The values are a list.
    Listed,
}

impl Again {
    // H11, H12.
    fn of(name: &str, joins_all: bool) -> Self {
        match name {
            "set-cookie" => Self::Listed,
            "cookie" => Self::Joined("; "),
            "age"
            | "authorization"
            | "content-length"
            | "content-type"
            | "etag"
            | "expires"
            | "from"
            | "host"
            | "if-modified-since"
            | "if-unmodified-since"
            | "last-modified"
            | "location"
            | "max-forwards"
            | "proxy-authorization"
            | "referer"
            | "retry-after"
            | "server"
            | "user-agent" => match joins_all {
                true => Self::Joined(", "),
                false => Self::Dropped,
            },
            _ => Self::Joined(", "),
        }
    }
}

impl Headers {
    /// Reads the header lines of a head.
    pub(super) fn of(head: &Head, joins_all: bool) -> Self {
        let mut headers = Self::default();
        for (name, value) in head.fields() {
            headers.add(name, value, joins_all);
        }
        headers
    }

    fn add(&mut self, name: &[u8], value: &[u8], joins_all: bool) {
        let (mut name, value) = (latin1(name), latin1(value));
        name.make_ascii_lowercase();
        let Some(place) = self.place(&name) else {
            self.list.push(Entry {
                name,
                values: vec![value],
                joined: None,
            });
            let list = &self.list;
            return self.names.added(list.len(), |place| &list[place].name);
        };
        let entry = &mut self.list[place];
        if let Again::Joined(separator) = Again::of(&entry.name, joins_all) {
            let joined = entry.joined.get_or_insert_with(|| entry.values[0].clone());
            joined.push_str(separator);
            joined.push_str(&value);
        }
        entry.values.push(value);
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.place(name).map(|place| &self.list[place])
    }

    fn place(&self, name: &str) -> Option<usize> {
        let list = &self.list;
        self.names.find(name, list.len(), |place| &list[place].name)
    }

    /// Returns the value of a header, as one text if it was repeated. Of `Set-Cookie` it is the
    /// first value. JavaScript: `message.headers[name]`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entry(name).map(Entry::text)
    }

    /// Returns all values of a header, as they were received. JavaScript:
    /// `message.headersDistinct[name]`.
    #[must_use]
    pub fn get_all(&self, name: &str) -> &[String] {
        self.entry(name).map_or(&[], |entry| &entry.values)
    }

    /// Returns the values of `Set-Cookie`. JavaScript: `message.headers['set-cookie']`.
    #[must_use]
    pub fn set_cookie(&self) -> &[String] {
        self.get_all("set-cookie")
    }

    /// Returns whether there is a header of this name. JavaScript: `name in message.headers`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Returns the names in lower case with their values, in the order of their first lines. Each
    /// value of `Set-Cookie` is an item of its own. JavaScript: `Object.entries(message.headers)`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.list.iter().flat_map(|entry| {
            let is_list = Again::of(&entry.name, false) == Again::Listed;
            let count = if is_list { entry.values.len() } else { 1 };
            (0..count).map(move |at| match is_list {
                true => (&*entry.name, &*entry.values[at]),
                false => (&*entry.name, entry.text()),
            })
        })
    }

    /// Returns the names in lower case, in the order of their first lines. JavaScript:
    /// `Object.keys(message.headers)`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|entry| &*entry.name)
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there are no headers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The items of [`iter`](Headers::iter), as the headers of a proxy are passed on.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{IncomingMessage, RequestOptions};
///
/// /// The options of the request that a proxy sends.
/// fn upstream(request: &IncomingMessage) -> RequestOptions {
///     let options = RequestOptions::new(8081).method(request.method());
///     options.path(request.url()).headers(request.headers())
/// }
///
/// fn main() {
///     let _ = upstream; // a server calls it
/// }
/// ```
impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a str, &'a str);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

impl Entry {
    fn text(&self) -> &str {
        self.joined.as_ref().unwrap_or(&self.values[0])
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Converts bytes to text: one byte, one character.
pub(super) fn latin1(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => text.to_owned(),
        _ => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Returns names and values as they were received.
pub(super) fn raw(head: &Head) -> Vec<(String, String)> {
    let fields = head.fields();
    fields
        .map(|(name, value)| (latin1(name), latin1(value)))
        .collect()
}
