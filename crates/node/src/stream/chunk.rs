//! How chunks are counted, joined and split.

use std::borrow::Cow;
use std::collections::VecDeque;

/// The default high water mark in bytes.
pub(crate) const BYTES: usize = if cfg!(windows) { 16 } else { 64 } * 1024;

/// The default high water mark in object mode.
const OBJECTS: usize = 16;

/// A chunk of bytes, which can be joined and split. `Vec<u8>` and `String` implement it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::stream::ByteChunk as _;
///
/// fn main() {
///     let mut text = "hello, ".to_owned();
///     text.append("world".to_owned());
///     assert_eq!(text.take_first(5), "hello");
///     assert_eq!(text.size(), 7);
/// }
/// ```
pub trait ByteChunk: Sized + 'static {
    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// Appends the bytes of another chunk.
    fn append(&mut self, other: Self);

    /// Removes and returns the first `size` bytes. The chunk has at least that many.
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

/// Strings count in bytes, as Node's buffers do. A split inside a character moves to the end of
/// that character.
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

/// A value that can be written to a stream of `T`: a `T` itself, or a value that converts to a
/// chunk of bytes or text.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Writable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = Writable::bytes(|bytes: Vec<u8>, done| {
///             println!("{} bytes", bytes.len());
///             done.ok();
///         })
///         .build();
///         sink.write("a text");
///         sink.write(b"bytes");
///         sink.write(vec![1, 2, 3]);
///         sink.end(format!("{}", 4));
///     })
/// }
/// ```
pub trait IntoChunk<T> {
    /// Converts the value to a chunk.
    fn into_chunk(self) -> T;
}

impl<T> IntoChunk<T> for T {
    fn into_chunk(self) -> T {
        self
    }
}

/// Implements `IntoChunk` for types that convert with `From`.
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

/// The argument of `end`: a last chunk, or `()` for none. JavaScript: `end(chunk)` and `end()`.
///
/// `K` is [`NoChunk`] or [`LastChunk`]; the compiler finds it. A stream whose chunks are `()` ends
/// with [`NoChunk`] itself.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Writable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = || Writable::bytes(|_bytes: Vec<u8>, done| done.ok()).build();
///         sink().end("the last text");
///         sink().end(());
///     })
/// }
/// ```
pub trait IntoLast<T, K> {
    /// Converts the value to the last chunk, if it is one.
    fn into_last(self) -> Option<T>;
}

/// The end of a stream without a last chunk; see [`IntoLast`].
#[derive(Clone, Copy, Debug)]
pub struct NoChunk;

/// The end of a stream with a last chunk; see [`IntoLast`].
#[derive(Clone, Copy, Debug)]
pub struct LastChunk;

impl<T> IntoLast<T, NoChunk> for () {
    fn into_last(self) -> Option<T> {
        None
    }
}

impl<T> IntoLast<T, Self> for NoChunk {
    fn into_last(self) -> Option<T> {
        None
    }
}

impl<T, C: IntoChunk<T>> IntoLast<T, LastChunk> for C {
    fn into_last(self) -> Option<T> {
        Some(self.into_chunk())
    }
}

/// The mode of a stream: bytes or objects.
pub(super) struct Mode<T: 'static> {
    bytes: Option<&'static Bytes<T>>,
}

// Not derived: a derive would require `T: Clone`, but the field is a reference.
impl<T> Clone for Mode<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Mode<T> {}

/// How chunks of bytes are counted, joined and split.
pub(super) struct Bytes<T> {
    /// Counts bytes, even if `size` counts another unit.
    byte_size: fn(&T) -> usize,
    size: fn(&T) -> usize,
    append: fn(&mut T, T),
    take_first: fn(&mut T, usize) -> T,
}

impl<T: ByteChunk> Bytes<T> {
    const PLAIN: &'static Self = &Self::counted(T::size, T::take_first);

    /// Creates the functions for bytes with their own unit for counting and splitting.
    pub(super) const fn counted(size: fn(&T) -> usize, take_first: fn(&mut T, usize) -> T) -> Self {
        Self {
            byte_size: T::size,
            size,
            append: T::append,
            take_first,
        }
    }
}

impl<T> Mode<T> {
    pub(super) const OBJECTS: Self = Self { bytes: None };

    pub(super) fn bytes() -> Self
    where
        T: ByteChunk,
    {
        Self::of(Bytes::PLAIN)
    }

    pub(super) const fn of(bytes: &'static Bytes<T>) -> Self {
        Self { bytes: Some(bytes) }
    }

    pub(super) fn is_objects(&self) -> bool {
        self.bytes.is_none()
    }

    /// Returns whether a chunk has no bytes. An object is never empty.
    pub(super) fn is_empty(&self, chunk: &T) -> bool {
        self.byte_size(chunk) == 0
    }

    /// Returns the number of bytes of a chunk; an object counts one.
    pub(super) fn byte_size(&self, chunk: &T) -> usize {
        self.bytes.map_or(1, |bytes| (bytes.byte_size)(chunk))
    }

    pub(super) fn size(&self, chunk: &T) -> usize {
        self.bytes.map_or(1, |bytes| (bytes.size)(chunk))
    }

    pub(super) fn high_water_mark(&self) -> usize {
        if self.is_objects() { OBJECTS } else { BYTES }
    }

    /// Removes `size` units from the front of a buffer that holds as many: one object, or that many
    /// bytes.
    pub(super) fn take(&self, buffer: &mut VecDeque<T>, size: usize) -> Option<T> {
        let Some(bytes) = self.bytes else {
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
        // The literal has the chunk type of the stream, so `IntoChunk` must not change it.
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
