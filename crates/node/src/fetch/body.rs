//! The bodies of requests.

use std::fmt;

use crate::stream::Readable;

/// The body of a request: text, bytes, a form, or a stream of bytes.
///
/// # Examples
///
/// ```
/// use phaseloop_node::fetch::{Body, fetch};
///
/// fn main() {
///     let form = fetch("http://127.0.0.1/").method("POST").body(Body::form([("x", "1 2")]));
///     let bytes = fetch("http://127.0.0.1/").method("PUT").body(vec![1, 2, 3]);
///     drop((form, bytes)); // requests that are not sent have no effect
/// }
/// ```
#[derive(Clone)]
pub struct Body {
    pub(super) content: Content,
    /// The content type, if the program has not set one.
    pub(super) content_type: Option<&'static str>,
}

#[derive(Clone)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Stream(Readable<Vec<u8>>),
}

impl Body {
    /// Creates a form, encoded like a query. JavaScript: `new URLSearchParams(fields)`.
    pub fn form<N, V>(fields: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut text = url::form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(fields);
        Self {
            content: Content::Bytes(text.finish().into_bytes()),
            content_type: Some("application/x-www-form-urlencoded;charset=UTF-8"),
        }
    }

    fn text(text: String) -> Self {
        Self {
            content: Content::Bytes(text.into_bytes()),
            content_type: Some("text/plain;charset=UTF-8"),
        }
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Self {
            content: Content::Bytes(bytes),
            content_type: None,
        }
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.content, Content::Stream(_))
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Self::text(text.to_owned())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&String> for Body {
    fn from(text: &String) -> Self {
        Self::text(text.clone())
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::bytes(bytes)
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Self::bytes(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Body {
    fn from(bytes: &[u8; N]) -> Self {
        Self::bytes(bytes.to_vec())
    }
}

/// A stream is sent in chunks, and only once: a redirection that repeats the request fails.
impl From<&Readable<Vec<u8>>> for Body {
    fn from(stream: &Readable<Vec<u8>>) -> Self {
        Self {
            content: Content::Stream(stream.clone()),
            content_type: None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Bytes(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Content::Stream(stream) => f.debug_tuple("Body").field(stream).finish(),
        }
    }
}
