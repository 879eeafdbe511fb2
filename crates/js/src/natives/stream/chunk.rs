//! Chunks of streams, between the two languages.

use phaseloop_node::stream::ByteChunk;

use crate::engine::{Held, Res, Scope, Val};

/// A chunk of a stream of JavaScript.
#[derive(Clone)]
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    /// Decoded by `setEncoding`.
    Text(String),
    /// A value, and its size in a stream of bytes.
    Value(Held, usize),
}

impl Chunk {
    /// The chunk of a value of an iterable, for a stream of any mode.
    pub(super) fn item(value: &crate::Value) -> Self {
        let text = value.with(|_, value| Ok(value.as_text().map(|it| it.encode_utf16().count())));
        Self::Value(value.held().clone(), text.ok().flatten().unwrap_or(1))
    }
}

impl ByteChunk for Chunk {
    fn size(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Text(text) => text.encode_utf16().count(),
            Self::Value(_, size) => *size,
        }
    }

    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Bytes(bytes), Self::Bytes(more)) => bytes.extend(more),
            (Self::Text(text), Self::Text(more)) => text.push_str(&more),
            // A stream of bytes has no other pairs.
            (place, other) => *place = other,
        }
    }

    fn take_first(&mut self, size: usize) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(ByteChunk::take_first(bytes, size)),
            Self::Text(text) => {
                let mut units = 0;
                let end = text.char_indices().find(|(_, c)| {
                    let is_end = units >= size;
                    units += c.len_utf16();
                    is_end
                });
                let end = end.map_or(text.len(), |(place, _)| place);
                let rest = text.split_off(end);
                Self::Text(std::mem::replace(text, rest))
            }
            Self::Value(..) => self.clone(),
        }
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Chunk> for Vec<u8> {
    fn from(chunk: Chunk) -> Self {
        match chunk {
            Chunk::Bytes(bytes) => bytes,
            Chunk::Text(text) => text.into_bytes(),
            Chunk::Value(held, _) => match held.engine() {
                Some(inner) => inner.run(|scope| bytes_of(scope, &held.get(scope)?)),
                None => Self::new(),
            },
        }
    }
}

/// Returns the bytes of a text or of a view; another value is an error of its type.
pub(crate) fn bytes_of<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Res<'js, Vec<u8>> {
    if let Some(bytes) = value.to_bytes() {
        return Ok(bytes);
    }
    match value.as_text() {
        Some(text) => Ok(text.into_bytes()),
        None => {
            let error = scope.internal("invalidChunk", std::slice::from_ref(value))?;
            Err(scope.throw(error))
        }
    }
}

/// What a stream of JavaScript may consist of.
pub(crate) trait JsChunk: ByteChunk + Clone {
    fn to_js<'js>(&self, scope: &Scope<'js>, is_text: bool) -> Res<'js>;
    fn from_js<'js>(scope: &Scope<'js>, value: &Val<'js>, is_object: bool) -> Res<'js, Self>;
}

fn buffer<'js>(scope: &Scope<'js>, bytes: &[u8]) -> Res<'js> {
    scope.internal("asBuffer", &[scope.bytes(bytes)?])
}

impl JsChunk for Chunk {
    fn to_js<'js>(&self, scope: &Scope<'js>, _: bool) -> Res<'js> {
        match self {
            Self::Bytes(bytes) => buffer(scope, bytes),
            Self::Text(text) => scope.string(text),
            Self::Value(held, _) => held.get(scope),
        }
    }

    fn from_js<'js>(scope: &Scope<'js>, value: &Val<'js>, is_object: bool) -> Res<'js, Self> {
        if is_object {
            return Ok(Self::Value(scope.hold(value), 1));
        }
        match value.as_text() {
            Some(text) => Ok(Self::Value(scope.hold(value), text.encode_utf16().count())),
            None => bytes_of(scope, value).map(Self::Bytes),
        }
    }
}

impl JsChunk for Vec<u8> {
    fn to_js<'js>(&self, scope: &Scope<'js>, is_text: bool) -> Res<'js> {
        match is_text {
            true => scope.string(&String::from_utf8_lossy(self)),
            false => buffer(scope, self),
        }
    }

    fn from_js<'js>(scope: &Scope<'js>, value: &Val<'js>, _: bool) -> Res<'js, Self> {
        bytes_of(scope, value)
    }
}
