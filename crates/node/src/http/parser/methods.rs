//! The methods that the parser knows.

/// A method, as an index into the table of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Method(u8);

/// The protocols whose requests may have a method.
const HTTP: u8 = 1;
const RTSP: u8 = 1 << 1;

/// The methods of HTTP, and those of RTSP, whose requests share the port of some HTTP servers. The
/// most frequent methods stand first.
const NAMES: &[(&str, u8)] = &[
    ("GET", HTTP | RTSP),
    ("POST", HTTP | RTSP),
    ("PUT", HTTP),
    ("HEAD", HTTP),
    ("CONNECT", HTTP),
    ("PRI", HTTP),
    ("SOURCE", HTTP),
    ("ACL", HTTP),
    ("ANNOUNCE", RTSP),
    ("BIND", HTTP),
    ("CHECKOUT", HTTP),
    ("COPY", HTTP),
    ("DELETE", HTTP),
    ("DESCRIBE", RTSP),
    ("FLUSH", RTSP),
    ("GET_PARAMETER", RTSP),
    ("LINK", HTTP),
    ("LOCK", HTTP),
    ("M-SEARCH", HTTP),
    ("MERGE", HTTP),
    ("MKACTIVITY", HTTP),
    ("MKCALENDAR", HTTP),
    ("MKCOL", HTTP),
    ("MOVE", HTTP),
    ("NOTIFY", HTTP),
    ("OPTIONS", HTTP | RTSP),
    ("PATCH", HTTP),
    ("PAUSE", RTSP),
    ("PLAY", RTSP),
    ("PROPFIND", HTTP),
    ("PROPPATCH", HTTP),
    ("PURGE", HTTP),
    ("QUERY", HTTP),
    ("REBIND", HTTP),
    ("RECORD", RTSP),
    ("REDIRECT", RTSP),
    ("REPORT", HTTP),
    ("SEARCH", HTTP),
    ("SETUP", RTSP),
    ("SET_PARAMETER", RTSP),
    ("SUBSCRIBE", HTTP),
    ("TEARDOWN", RTSP),
    ("TRACE", HTTP),
    ("UNBIND", HTTP),
    ("UNLINK", HTTP),
    ("UNLOCK", HTTP),
    ("UNSUBSCRIBE", HTTP),
];

impl Method {
    pub(super) const GET: Self = Self(0);
    pub(super) const POST: Self = Self(1);
    pub(super) const HEAD: Self = Self(3);
    pub(super) const CONNECT: Self = Self(4);
    pub(super) const PRI: Self = Self(5);
    const SOURCE: Self = Self(6);

    /// Returns the method with this name.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let found = NAMES.iter().position(|known| known.0.as_bytes() == name);
        found.and_then(|at| u8::try_from(at).ok()).map(Self)
    }

    /// Returns whether the name of a method starts with these bytes.
    pub(super) fn starts_with(start: &[u8]) -> bool {
        let mut names = NAMES.iter().map(|known| known.0.as_bytes());
        names.any(|name| name.starts_with(start))
    }

    pub(in crate::http) fn name(self) -> &'static str {
        NAMES[usize::from(self.0)].0
    }

    /// Returns whether a request of this method may name `protocol` as its version.
    pub(super) fn fits(self, protocol: &[u8]) -> bool {
        let protocols = NAMES[usize::from(self.0)].1;
        match protocol {
            b"HTTP" => protocols & HTTP != 0,
            b"RTSP" => protocols & RTSP != 0,
            _ => self == Self::SOURCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_methods_are_where_their_constants_say() {
        let constants = [
            (Method::GET, "GET"),
            (Method::POST, "POST"),
            (Method::HEAD, "HEAD"),
            (Method::CONNECT, "CONNECT"),
            (Method::PRI, "PRI"),
            (Method::SOURCE, "SOURCE"),
        ];
        for (method, name) in constants {
            assert_eq!(method.name(), name);
            assert_eq!(Method::named(name.as_bytes()), Some(method));
        }
        assert_eq!(Method::named(b"get"), None);
        assert!(Method::starts_with(b"PROPP") && !Method::starts_with(b"PROPS"));
    }
}
