//! The headers of a response.

use std::fmt;

use crate::error::Error;
use crate::http::{Names, is_token, validate_header_value};

/// The headers of a [`Response`](super::Response). Names match in any case. JavaScript: `Headers`.
///
/// A byte of the message is one character: the text is latin1.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fetch, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let server = http::create_server(|_, response| {
///             response.set_header("X-Many", ["1", "2"]);
///             response.set_header("Set-Cookie", ["a=1", "b=2"]);
///             response.end(());
///         });
///         server.listen(("127.0.0.1", 0));
///         let url = format!("http://{}", server.address().unwrap());
///         let response = fetch(url).send().await.unwrap();
///         let headers = response.headers();
///         assert_eq!(headers.get("x-many").as_deref(), Some("1, 2"));
///         assert_eq!(headers.get_set_cookie(), ["a=1", "b=2"]);
///         server.close();
///     })
/// }
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    /// Names in lower case, sorted; the values of a name in the order received.
    list: Vec<(String, String)>,
}

impl Headers {
    pub(super) fn new(lines: &[(String, String)]) -> Self {
        let lower = |(name, value): &(String, String)| (name.to_ascii_lowercase(), value.clone());
        let mut list: Vec<_> = lines.iter().map(lower).collect();
        // Stable: values keep their order.
        list.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { list }
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &str> + use<'_> {
        let name = name.to_ascii_lowercase();
        let start = self.list.partition_point(|(known, _)| *known < name);
        let found = self.list[start..].iter();
        found
            .take_while(move |(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the value of a header. Several values are joined by `, `. JavaScript:
    /// `headers.get(name)`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        let values: Vec<_> = self.values(name).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Returns whether a header is there. JavaScript: `headers.has(name)`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// Returns the values of `Set-Cookie`. JavaScript: `headers.getSetCookie()`.
    #[must_use]
    pub fn get_set_cookie(&self) -> Vec<String> {
        self.values("set-cookie").map(str::to_owned).collect()
    }

    /// Returns names in lower case with their joined values, sorted by name. Each value of
    /// `set-cookie` is an element of its own. JavaScript: `for (const [name, value] of headers)`.
    pub fn iter(&self) -> impl Iterator<Item = (String, String)> {
        let mut joined: Vec<(String, String)> = Vec::new();
        for (name, value) in &self.list {
            match joined.last_mut() {
                Some((known, all)) if known == name && name != "set-cookie" => {
                    all.push_str(", ");
                    all.push_str(value);
                }
                _ => joined.push((name.clone(), value.clone())),
            }
        }
        joined.into_iter()
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Checks the headers of a request, and joins the values of each name under its first spelling.
pub(super) fn joined(headers: Vec<(String, String)>) -> Result<Vec<(String, String)>, Error> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut names = Names::default();
    for (name, value) in headers {
        check(&name, &value)?;
        let value = value.trim_matches([' ', '\t', '\r', '\n']);
        let known = names.find(&name, all.len(), |place| &all[place].0);
        match known.map(|place| &mut all[place]) {
            Some((known, values)) => {
                let is_cookie = known.eq_ignore_ascii_case("cookie");
                values.push_str(if is_cookie { "; " } else { ", " });
                values.push_str(value);
            }
            None => {
                all.push((name, value.to_owned()));
                names.added(all.len(), |place| &all[place].0);
            }
        }
    }
    Ok(all)
}

/// Checks a header of a request.
fn check(name: &str, value: &str) -> Result<(), Error> {
    if !is_token(name) {
        let message = format!("Headers.append: \"{name}\" is an invalid header name.");
        return Err(Error::type_error(message));
    }
    let value = value.trim_matches([' ', '\t', '\r', '\n']);
    validate_header_value(name, value).map_err(|_| {
        let message = format!("Headers.append: \"{value}\" is an invalid header value.");
        Error::type_error(message)
    })
}
