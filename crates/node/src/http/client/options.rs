//! The options of a request.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::abort::AbortSignal;
use crate::delay::Delay;
use crate::error::Error;
use crate::http::agent::Agent;
use crate::http::outgoing::{Field, HeaderValue};
use crate::net::Address;

/// Where a request goes: a host and a port, or the path of a local socket.
///
/// A text is `host:port`, `host` for the default port, or `[address]:port` for IPv6.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{RequestOptions, Target};
///
/// fn main() {
///     assert_eq!(Target::from("localhost:8080"), Target::from(("localhost", 8080)));
///     let options = RequestOptions::new("[::1]:8080").path("/status");
///     println!("{options:?}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name or the IP address, without brackets.
    pub(super) host: String,
    /// `None`: the default port of the agent.
    pub(super) port: Option<u16>,
    /// The path of a local socket, to which the request goes in place of the host.
    pub(super) path: Option<PathBuf>,
}

impl Target {
    fn host(host: impl Into<String>, port: Option<u16>) -> Self {
        Self {
            host: host.into(),
            port,
            path: None,
        }
    }
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            return Self::host(host, port);
        }
        match text.split_once(':') {
            // Several colons: an IPv6 address.
            Some((host, port)) if !port.contains(':') => Self::host(host, port.parse().ok()),
            _ => Self::host(text, None),
        }
    }
}

impl From<String> for Target {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<(&str, u16)> for Target {
    fn from((host, port): (&str, u16)) -> Self {
        Self::host(host, Some(port))
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::host(address.ip().to_string(), Some(address.port()))
    }
}

impl From<u16> for Target {
    fn from(port: u16) -> Self {
        Self::host("localhost", Some(port))
    }
}

impl From<&Path> for Target {
    fn from(path: &Path) -> Self {
        Self {
            path: Some(path.to_owned()),
            ..Self::host("localhost", None)
        }
    }
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        Self::from(&*path)
    }
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        match address {
            Address::Socket(address) => address.into(),
            Address::Host(host, port) => Self::host(host, Some(port)),
            Address::Port(port) => port.into(),
            Address::Path(path) => path.into(),
        }
    }
}

/// The options of a request: where it goes, its method, path and headers, and how it is sent. The
/// defaults are Node's: `GET /` with the global agent.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{Agent, RequestOptions};
///
/// fn main() {
///     let options = RequestOptions::new("127.0.0.1:8080")
///         .method("PUT")
///         .path("/items/1")
///         .header("content-type", "application/json")
///         .agent(&Agent::none());
///     println!("{options:?}");
/// }
/// ```
#[derive(Clone)]
#[must_use = "options do nothing until they are passed to `request`"]
pub struct RequestOptions {
    pub(super) target: Target,
    pub(super) method: String,
    /// Whether the method is sent as it is written.
    pub(super) keeps_case: bool,
    pub(super) path: String,
    pub(super) headers: Vec<Field>,
    /// The headers as they are sent, without any added `Host`.
    pub(super) raw_headers: Option<Vec<Field>>,
    pub(super) sets_host: bool,
    pub(super) auth: Option<String>,
    pub(super) agent: Option<Agent>,
    pub(super) timeout: Option<Delay>,
    pub(super) signal: Option<AbortSignal>,
    pub(super) max_header_size: Option<usize>,
    pub(super) max_headers_count: Option<usize>,
    pub(super) joins_duplicates: bool,
    /// The protocol of the URL, which must be that of the agent.
    pub(super) protocol: Option<&'static str>,
}

impl RequestOptions {
    /// Creates the options of a request to `target`. JavaScript: `{ host, port }`.
    pub fn new(target: impl Into<Target>) -> Self {
        Self {
            target: target.into(),
            method: "GET".to_owned(),
            keeps_case: false,
            path: "/".to_owned(),
            headers: Vec::new(),
            raw_headers: None,
            sets_host: true,
            auth: None,
            agent: None,
            timeout: None,
            signal: None,
            max_header_size: None,
            max_headers_count: None,
            joins_duplicates: false,
            protocol: None,
        }
    }

    /// Creates the options of a request to a URL: host, port, path, query and credentials.
    /// JavaScript: `http.request(url)`.
    ///
    /// # Errors
    ///
    /// A `TypeError` with the code `ERR_INVALID_URL`, or `ERR_INVALID_PROTOCOL` for a scheme other
    /// than `http` and, with the feature `tls`, `https`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::http::RequestOptions;
    ///
    /// fn main() {
    ///     let options = RequestOptions::url("http://127.0.0.1:8080/items?page=2").unwrap();
    ///     let error = RequestOptions::url("ftp://127.0.0.1/").unwrap_err();
    ///     assert_eq!(error.code(), Some("ERR_INVALID_PROTOCOL"));
    ///     println!("{options:?}");
    /// }
    /// ```
    #[cfg(feature = "fetch")]
    pub fn url(url: &str) -> Result<Self, Error> {
        let invalid = || Error::type_error("Invalid URL").coded("ERR_INVALID_URL");
        let url = url::Url::parse(url).map_err(|_| invalid())?;
        let protocol = match url.scheme() {
            "http" => "http:",
            #[cfg(feature = "tls")]
            "https" => "https:",
            other => return Err(invalid_protocol(&format!("{other}:"), "http:")),
        };
        let host = url.host_str().ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let mut options = Self::new(Target::host(host, url.port()));
        options.protocol = Some(protocol);
        options.path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        if !url.username().is_empty() || url.password().is_some() {
            let decoded = |text| percent_decoded(text).ok_or_else(invalid);
            let (user, password) = (url.username(), url.password().unwrap_or_default());
            options.auth = Some(format!("{}:{}", decoded(user)?, decoded(password)?));
        }
        Ok(options)
    }

    /// Sets the method; it is sent in upper case. An empty one is GET. JavaScript: `{ method }`.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets the method, which is sent as it is written.
    #[cfg(feature = "fetch")]
    pub(crate) fn exact_method(mut self, method: &str) -> Self {
        self.keeps_case = true;
        self.method(method)
    }

    /// Sets the path with the query. JavaScript: `{ path }`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Adds a header; [`headers`](Self::headers) adds several. JavaScript: `{ headers }`.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<HeaderValue>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds several headers. JavaScript: `{ headers }`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::http::RequestOptions;
    ///
    /// fn main() {
    ///     let accepted = [("accept", "text/html"), ("accept-language", "en")];
    ///     let options = RequestOptions::new(8080).headers(accepted).header("dnt", "1");
    ///     println!("{options:?}");
    /// }
    /// ```
    pub fn headers<N, V>(mut self, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<HeaderValue>,
    {
        let headers = headers.into_iter().map(|(n, v)| (n.into(), v.into()));
        self.headers.extend(headers);
        self
    }

    /// Sets the headers as they are sent: names may repeat, neither `Host` nor `Authorization` is
    /// added, and the head is fixed at once. JavaScript: `{ headers: [name, value, ..] }`.
    pub fn raw_headers<N, V>(mut self, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<HeaderValue>,
    {
        let headers = headers.into_iter().map(|(n, v)| (n.into(), v.into()));
        self.raw_headers = Some(headers.collect());
        self
    }

    /// Sets whether a `Host` header is added. The default is `true`. JavaScript: `{ setHost }`.
    pub fn set_host(mut self, sets_host: bool) -> Self {
        self.sets_host = sets_host;
        self
    }

    /// Sets `user:password`, which is sent as an `Authorization` header. JavaScript: `{ auth }`.
    pub fn auth(mut self, auth: impl Into<String>) -> Self {
        self.auth = Some(auth.into());
        self
    }

    /// Sets the agent. [`Agent::none`] is JavaScript's `{ agent: false }`. JavaScript: `{ agent }`.
    pub fn agent(mut self, agent: &Agent) -> Self {
        self.agent = Some(agent.clone());
        self
    }

    /// Sets after how much inactivity of the socket [`TIMEOUT`](crate::net::TIMEOUT) is
    /// emitted, from the start of the connection on. Zero sets no limit; what is no time is an
    /// error of the request. JavaScript: `{ timeout }`.
    pub fn timeout(mut self, timeout: impl Into<Delay>) -> Self {
        self.timeout = Some(timeout.into());
        self
    }

    /// Destroys the request with an `AbortError` when `signal` is aborted. JavaScript: `{ signal
    /// }`.
    pub fn signal(mut self, signal: &AbortSignal) -> Self {
        self.signal = Some(signal.clone());
        self
    }

    /// Sends the request over the local socket at `path`. JavaScript: `{ socketPath }`.
    pub fn local(mut self, path: impl Into<PathBuf>) -> Self {
        self.target.path = Some(path.into());
        self
    }

    /// Sets the limit of the size of the response's head. JavaScript: `{ maxHeaderSize }`.
    pub fn max_header_size(mut self, bytes: usize) -> Self {
        self.max_header_size = Some(bytes);
        self
    }

    /// Sets how many headers of the response are kept; 0 means no limit. JavaScript:
    /// `request.maxHeadersCount`.
    pub fn max_headers_count(mut self, count: usize) -> Self {
        self.max_headers_count = Some(count);
        self
    }

    /// Sets whether repeated headers of the response are joined that are otherwise dropped.
    /// JavaScript: `{ joinDuplicateHeaders }`.
    pub fn join_duplicate_headers(mut self, joins: bool) -> Self {
        self.joins_duplicates = joins;
        self
    }
}

impl<T: Into<Target>> From<T> for RequestOptions {
    fn from(target: T) -> Self {
        Self::new(target)
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("target", &self.target)
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Where the connection of a request goes.
pub(in crate::http) struct Destination {
    pub(in crate::http) address: Address,
    /// The name that a TLS peer must prove.
    pub(in crate::http) server_name: Option<String>,
    /// The name of the pool's list.
    pub(super) pool_name: String,
    /// The default of the `Host` header.
    pub(super) host_header: String,
}

impl Destination {
    pub(super) fn new(target: &Target, default_port: u16) -> Self {
        let port = target.port.unwrap_or(default_port);
        let host = &target.host;
        let ip: Option<IpAddr> = host.parse().ok();
        let address = match (&target.path, ip) {
            (Some(path), _) => Address::Path(path.clone()),
            (None, Some(ip)) => Address::Socket((ip, port).into()),
            (None, None) => Address::Host(host.clone(), port),
        };
        let mut pool_name = format!("{host}:{port}:");
        if let Some(path) = &target.path {
            pool_name.push(':');
            pool_name.push_str(&path.to_string_lossy());
        }
        let is_bare_ipv6 = host.matches(':').count() > 1 && !host.starts_with('[');
        let mut host_header = match is_bare_ipv6 {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        if port != default_port {
            host_header.push_str(&format!(":{port}"));
        }
        Self {
            address,
            server_name: Some(host.clone()),
            pool_name,
            host_header,
        }
    }
}

/// The error of a URL that is not for the agent.
pub(super) fn invalid_protocol(found: &str, expected: &str) -> Error {
    let message = format!("Protocol \"{found}\" not supported. Expected \"{expected}\"");
    Error::type_error(message).coded("ERR_INVALID_PROTOCOL")
}

/// Decodes `%41` and the like. `None` if the result is not UTF-8.
#[cfg(feature = "fetch")]
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Encodes the value of an `Authorization` header.
pub(super) fn basic_auth(auth: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "Basic ".to_owned();
    for group in auth.as_bytes().chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place > group.len() {
                '='
            } else {
                digit.into()
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Target, basic_auth};

    // H74.
    #[test]
    fn credentials_are_written_in_base64() {
        for (auth, text) in [
            ("", "Basic "),
            ("a", "Basic YQ=="),
            ("ab", "Basic YWI="),
            ("abc", "Basic YWJj"),
            ("user:pass", "Basic dXNlcjpwYXNz"),
            ("\u{e9}?~", "Basic w6k/fg=="),
        ] {
            assert_eq!(basic_auth(auth), text);
        }
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn a_url_names_a_host_a_path_and_credentials() {
        use super::RequestOptions;
        let options = RequestOptions::url("http://u%3a:p%40@[::1]:8080/a b?q=1#x").unwrap();
        assert_eq!(options.target, Target::host("::1", Some(8080)));
        assert_eq!(options.path, "/a%20b?q=1");
        assert_eq!(options.auth.as_deref(), Some("u::p@"));
        let code = |url| {
            RequestOptions::url(url)
                .unwrap_err()
                .code()
                .map(str::to_owned)
        };
        assert_eq!(code("127.0.0.1").as_deref(), Some("ERR_INVALID_URL"));
        assert_eq!(
            code("ftp://127.0.0.1").as_deref(),
            Some("ERR_INVALID_PROTOCOL")
        );
    }

    #[test]
    fn a_text_names_a_host_and_a_port() {
        let target = |host: &str, port| Target::host(host, port);
        for (text, expected) in [
            ("localhost", target("localhost", None)),
            ("127.0.0.1:80", target("127.0.0.1", Some(80))),
            ("[::1]:8080", target("::1", Some(8080))),
            ("[::1]", target("::1", None)),
            ("::1", target("::1", None)),
        ] {
            assert_eq!(Target::from(text), expected);
        }
    }
}
