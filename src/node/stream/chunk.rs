//! What a stream counts, and how chunks are joined and cut.

use std::borrow::Cow;
use std::collections::VecDeque;

/// How many bytes a stream keeps unless told otherwise.
const BYTES: usize = 16 * 1024;

/// How many chunks a stream in object mode keeps unless told otherwise.
const OBJECTS: usize = 16;

/// A chunk of bytes: can be joined with others, and cut.
pub trait ByteChunk: Sized + 'static {
    /// How many bytes there are.
    fn size(&self) -> usize;

    /// Adds the bytes of another chunk.
    fn append(&mut self, other: Self);

    /// Takes the first `size` bytes out; at least as many are there.
    fn take_first(&mut self, size: usize) -> Self;
}

impl ByteChunk for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn append(&mut self, mut other: Self) {
        Self::append(self, &mut other);
    }

    fn take_first(&mut self, size: usize) -> Self {
        let rest = self.split_off(size);
        std::mem::replace(self, rest)
    }
}

/// Counted in bytes, as Node's buffers. A cut inside a character moves to its end.
impl ByteChunk for String {
    fn size(&self) -> usize {
        self.len()
    }

    fn append(&mut self, other: Self) {
        self.push_str(&other);
    }

    fn take_first(&mut self, size: usize) -> Self {
        let mut end = size;
        while !self.is_char_boundary(end) {
            end += 1;
        }
        let rest = self.split_off(end);
        std::mem::replace(self, rest)
    }
}

/// What can be written to a stream of `T`: a `T`, and for bytes and texts what can be made into them.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, stream::Writable};
///
/// run(async {
///     let sink = Writable::bytes(|bytes: Vec<u8>, done| {
///         println!("{} bytes", bytes.len());
///         done.ok();
///     })
///     .build();
///     sink.write("a text");
///     sink.write(b"bytes");
///     sink.write(vec![1, 2, 3]);
///     sink.end_chunk(format!("{}", 4));
/// });
/// ```
pub trait IntoChunk<T> {
    /// The chunk.
    fn into_chunk(self) -> T;
}

impl<T> IntoChunk<T> for T {
    fn into_chunk(self) -> T {
        self
    }
}

/// Types from which the standard library makes the chunk.
macro_rules! chunks_from {
    ($($chunk:ty: $($from:ty),+;)+) => {$($(
        impl IntoChunk<$chunk> for $from {
            fn into_chunk(self) -> $chunk {
                self.into()
            }
        }
    )+)+};
}

chunks_from! {
    Vec<u8>: &[u8], &mut [u8], Box<[u8]>, Cow<'_, [u8]>, &str, String;
    String: &str, &mut str, &String, Box<str>, Cow<'_, str>, char;
}

impl<const N: usize> IntoChunk<Vec<u8>> for &[u8; N] {
    fn into_chunk(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl<const N: usize> IntoChunk<Vec<u8>> for [u8; N] {
    fn into_chunk(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl IntoChunk<Vec<u8>> for &Vec<u8> {
    fn into_chunk(self) -> Vec<u8> {
        self.clone()
    }
}

impl IntoChunk<Vec<u8>> for &String {
    fn into_chunk(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl IntoChunk<Vec<u8>> for Cow<'_, str> {
    fn into_chunk(self) -> Vec<u8> {
        self.into_owned().into_bytes()
    }
}

/// Whether a stream is one of bytes or one of objects.
pub(super) struct Mode<T> {
    bytes: Option<Bytes<T>>,
}

// By hand: whatever the chunks are, these are pointers to functions.
impl<T> Clone for Mode<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mode<T> {}

struct Bytes<T> {
    /// In bytes, also where `size` counts something else.
    byte_size: fn(&T) -> usize,
    size: fn(&T) -> usize,
    append: fn(&mut T, T),
    take_first: fn(&mut T, usize) -> T,
}

impl<T> Clone for Bytes<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Bytes<T> {}

impl<T> Mode<T> {
    pub(super) const OBJECTS: Self = Self { bytes: None };

    pub(super) fn bytes() -> Self
    where
        T: ByteChunk,
    {
        Self {
            bytes: Some(Bytes {
                byte_size: T::size,
                size: T::size,
                append: T::append,
                take_first: T::take_first,
            }),
        }
    }

    /// As bytes, but counted and cut in another way.
    pub(super) fn counted(size: fn(&T) -> usize, take_first: fn(&mut T, usize) -> T) -> Self
    where
        T: ByteChunk,
    {
        Self {
            bytes: Some(Bytes {
                byte_size: T::size,
                size,
                append: T::append,
                take_first,
            }),
        }
    }

    pub(super) fn is_objects(&self) -> bool {
        self.bytes.is_none()
    }

    /// Whether a chunk has no bytes at all. An object is never empty.
    pub(super) fn is_empty(&self, chunk: &T) -> bool {
        self.byte_size(chunk) == 0
    }

    /// How many bytes a chunk has; an object counts one.
    pub(super) fn byte_size(&self, chunk: &T) -> usize {
        self.bytes
            .as_ref()
            .map_or(1, |bytes| (bytes.byte_size)(chunk))
    }

    pub(super) fn size(&self, chunk: &T) -> usize {
        self.bytes.as_ref().map_or(1, |bytes| (bytes.size)(chunk))
    }

    pub(super) fn high_water_mark(&self) -> usize {
        if self.is_objects() { OBJECTS } else { BYTES }
    }

    /// Takes `size` out of the front of a buffer that has as much: one object, or that many bytes.
    pub(super) fn take(&self, buffer: &mut VecDeque<T>, size: usize) -> Option<T> {
        let Some(bytes) = &self.bytes else {
            return buffer.pop_front();
        };
        let first = buffer.front_mut()?;
        if (bytes.size)(first) > size {
            return Some((bytes.take_first)(first, size));
        }
        let mut chunk = buffer.pop_front()?;
        while let Some(next) = buffer.front_mut() {
            let missing = size.saturating_sub((bytes.size)(&chunk));
            if missing == 0 {
                break;
            }
            if (bytes.size)(next) > missing {
                let part = (bytes.take_first)(next, missing);
                (bytes.append)(&mut chunk, part);
            } else if let Some(next) = buffer.pop_front() {
                (bytes.append)(&mut chunk, next);
            }
        }
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{ByteChunk, IntoChunk, Mode};

    #[test]
    fn texts_and_bytes_become_chunks_of_either() {
        let bytes = |chunk: Vec<u8>| assert_eq!(chunk, b"a");
        bytes("a".into_chunk());
        bytes("a".to_owned().into_chunk());
        bytes((&"a".to_owned()).into_chunk());
        bytes(b"a".into_chunk());
        bytes((*b"a").into_chunk());
        bytes((&b"a".to_vec()).into_chunk());
        bytes(b"a"[..].into_chunk());
        bytes(Cow::Borrowed("a").into_chunk());
        let text = |chunk: String| assert_eq!(chunk, "a");
        text("a".into_chunk());
        text('a'.into_chunk());
        text((&"a".to_owned()).into_chunk());
        // An object is itself: the type of the number is that of the stream.
        let object = |chunk: u64| assert_eq!(chunk, 1);
        object(1.into_chunk());
    }

    #[test]
    fn bytes_are_joined_and_cut() {
        let mode = Mode::<Vec<u8>>::bytes();
        let mut buffer = [b"ab".to_vec(), b"cde".to_vec(), b"f".to_vec()].into();
        assert_eq!(mode.take(&mut buffer, 1).unwrap(), b"a");
        assert_eq!(mode.take(&mut buffer, 3).unwrap(), b"bcd");
        assert_eq!(mode.take(&mut buffer, 2).unwrap(), b"ef");
        assert_eq!(mode.take(&mut buffer, 1), None);
    }

    #[test]
    fn objects_come_one_by_one() {
        let mode = Mode::OBJECTS;
        let mut buffer = [1, 2].into();
        assert_eq!(mode.take(&mut buffer, 1), Some(1));
        assert_eq!(mode.size(&7), 1);
    }

    #[test]
    fn text_is_cut_between_characters() {
        let mut text = "aéb".to_owned();
        assert_eq!(text.take_first(2), "aé");
        assert_eq!(text, "b");
    }
}
