//! What a request of `fetch` sends, and how a redirection changes that.

use std::borrow::Cow;

use url::Url;

use super::body::Content;
use super::decode::accepted;
use crate::error::Error;
use crate::http::{ClientRequest, RequestOptions, fetch_agent, is_token, request_at};
use crate::site::Site;

/// The next request. Redirections change it.
pub(super) struct Plan {
    pub(super) url: Url,
    pub(super) method: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<super::Body>,
    /// The line of the program that asked for it.
    pub(super) site: Site,
}

fn is_connection_word(value: &str) -> bool {
    value.split(',').all(|word| is_token(word.trim()))
}

/// The bytes of a location are UTF-8, if they are not ASCII.
fn location_text(latin1: &str) -> Cow<'_, str> {
    if latin1.is_ascii() {
        return latin1.into();
    }
    let bytes: Vec<u8> = latin1.chars().map(|char| char as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned().into()
}

pub(super) fn has(headers: &[(String, String)], name: &str) -> bool {
    headers
        .iter()
        .any(|(known, _)| known.eq_ignore_ascii_case(name))
}

/// Ports of other protocols, which might take a request for a command, in order.
#[rustfmt::skip]
const BAD_PORTS: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080,
];

/// Headers that describe a body, which a redirection may drop.
const OF_BODY: [&str; 5] = [
    "content-encoding",
    "content-language",
    "content-location",
    "content-type",
    "content-length",
];

/// Headers of requests that depend on what the program has stored.
const CONDITIONS: [&str; 5] = [
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "if-match",
    "if-range",
];

/// Headers that another origin must not see.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "host"];

impl Plan {
    /// Begins the request.
    pub(super) fn begin(&self) -> Result<ClientRequest, Error> {
        if self
            .url
            .port()
            .is_some_and(|port| BAD_PORTS.binary_search(&port).is_ok())
        {
            return Err(Error::new("bad port"));
        }
        let host = self
            .url
            .host_str()
            .ok_or_else(|| Error::new("unknown scheme"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(80);
        let path = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let agent = fetch_agent(self.url.scheme()).ok_or_else(|| Error::new("unknown scheme"))?;
        let options = RequestOptions::new((bare, port))
            .exact_method(&self.method)
            .path(path)
            .raw_headers(self.lines()?)
            // The size of the head is limited.
            .max_headers_count(0)
            .agent(&agent);
        request_at(options, self.site)
    }

    /// The header lines, in the order in which Node writes them.
    // H95.
    fn lines(&self) -> Result<Vec<(String, String)>, Error> {
        let mut lines = vec![("host".to_owned(), self.host_line())];
        let closes = self.closes();
        let connection = if closes { "close" } else { "keep-alive" };
        lines.push(("connection".to_owned(), connection.to_owned()));
        for (name, value) in &self.headers {
            match &*name.to_ascii_lowercase() {
                "host" => {}
                "connection" if is_connection_word(value) => {}
                "content-length" if value.parse::<u64>().is_ok() => {}
                lower @ ("connection" | "content-length" | "transfer-encoding" | "keep-alive"
                | "upgrade") => {
                    let message = format!("invalid {lower} header");
                    let error = Error::named("InvalidArgumentError", message);
                    return Err(error.coded("UND_ERR_INVALID_ARG"));
                }
                "expect" => {
                    let error = Error::named("NotSupportedError", "expect header not supported");
                    return Err(error.coded("UND_ERR_NOT_SUPPORTED"));
                }
                _ => lines.push((name.clone(), value.clone())),
            }
        }
        let mut add = |name: &str, value: &str| {
            if !has(&self.headers, name) {
                lines.push((name.to_owned(), value.to_owned()));
            }
        };
        add("accept", "*/*");
        add("accept-language", "*");
        add("sec-fetch-mode", "cors");
        add("user-agent", "node");
        if CONDITIONS.iter().any(|name| has(&self.headers, name)) {
            // The program has a cache of its own.
            add("pragma", "no-cache");
            add("cache-control", "no-cache");
        }
        let codings = match has(&self.headers, "range") {
            true => Some("identity"),
            false => accepted(self.url.scheme()),
        };
        if let Some(codings) = codings {
            add("accept-encoding", codings);
        }
        lines.extend(self.framing()?);
        Ok(lines)
    }

    fn host_line(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Whether the connection is closed after the response.
    fn closes(&self) -> bool {
        let asks = |(name, value): &(String, String)| {
            let mut words = value.split(',').map(str::trim);
            name.eq_ignore_ascii_case("connection")
                && words.any(|word| word.eq_ignore_ascii_case("close"))
        };
        self.method == "HEAD" || self.headers.iter().any(asks)
    }

    fn framing(&self) -> Result<Option<(String, String)>, Error> {
        let methods = ["PUT", "POST", "PATCH", "QUERY", "PROPFIND", "PROPPATCH"];
        let expects_body = methods.contains(&&*self.method);
        let length = match &self.body {
            Some(body) if body.is_stream() => {
                return Ok(Some(("transfer-encoding".to_owned(), "chunked".to_owned())));
            }
            Some(super::Body {
                content: Content::Bytes(bytes),
                ..
            }) => bytes.len(),
            _ => 0,
        };
        let declared = self
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if length > 0 && declared.is_some_and(|(_, value)| value.parse() != Ok(length)) {
            let message = "Request body length does not match content-length header";
            let error = Error::named("RequestContentLengthMismatchError", message);
            return Err(error.coded("UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"));
        }
        let is_written = self.body.is_some() || expects_body;
        Ok(is_written.then(|| ("content-length".to_owned(), length.to_string())))
    }

    /// Changes the plan as a redirection asks.
    pub(super) fn redirect(&mut self, status: u16, location: &str) -> Result<(), Error> {
        let mut url = self
            .url
            .join(&location_text(location))
            .map_err(|_| Error::type_error("Invalid URL").coded("ERR_INVALID_URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::new("URL scheme must be a HTTP(S) scheme"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let message = "cross origin not allowed for request mode \"cors\"";
            return Err(Error::new(message));
        }
        if url.fragment().is_none() {
            url.set_fragment(self.url.fragment());
        }
        if status != 303 && self.body.as_ref().is_some_and(super::Body::is_stream) {
            return Err(Error::new("a stream is sent only once"));
        }
        let becomes_get = match status {
            301 | 302 => self.method == "POST",
            303 => !matches!(&*self.method, "GET" | "HEAD"),
            _ => false,
        };
        if becomes_get {
            "GET".clone_into(&mut self.method);
            self.body = None;
            self.drop_headers(&OF_BODY);
        }
        if url.origin() != self.url.origin() {
            self.drop_headers(&SECRET);
        }
        self.url = url;
        Ok(())
    }

    fn drop_headers(&mut self, names: &[&str]) {
        let is_kept = |(name, _): &(String, String)| {
            !names.iter().any(|other| name.eq_ignore_ascii_case(other))
        };
        self.headers.retain(is_kept);
    }
}
