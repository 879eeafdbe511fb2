//! Whole streams as one value: Node's `stream/consumers`.
//!
//! ```
//! use phaseloop_node::{Exit, run, stream::{Readable, consumers}};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let stream = Readable::from_iter([b"one ".to_vec(), b"two".to_vec()]);
//!         assert_eq!(consumers::text(&stream).await.unwrap(), "one two");
//!     })
//! }
//! ```

use futures::StreamExt as _;

use super::readable::Readable;
use crate::error::Error;
use crate::promise::{Promise, try_call};
use crate::string_decoder::{Encoding, StringDecoder};

/// Reads a stream to its end and returns its bytes. JavaScript: `await buffer(stream)`.
///
/// # Errors
///
/// The promise is rejected with the error of the stream.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, consumers}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let stream = Readable::from_iter([vec![1, 2], vec![3]]);
///         assert_eq!(consumers::buffer(&stream).await.unwrap(), [1, 2, 3]);
///     })
/// }
/// ```
pub fn buffer(stream: &Readable<Vec<u8>>) -> Promise<Vec<u8>> {
    let mut chunks = stream.chunks();
    try_call(async move {
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.next().await {
            bytes.append(&mut chunk?);
        }
        Ok::<_, Error>(bytes)
    })
}

/// Reads a stream to its end and decodes it as UTF-8. Invalid bytes become U+FFFD, and a byte order
/// mark at the beginning is dropped. JavaScript: `await text(stream)`.
///
/// # Errors
///
/// The promise is rejected with the error of the stream.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, consumers}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let (first, second) = "é".as_bytes().split_at(1);
///         let stream = Readable::from_iter([first.to_vec(), second.to_vec()]);
///         assert_eq!(consumers::text(&stream).await.unwrap(), "é");
///     })
/// }
/// ```
pub fn text(stream: &Readable<Vec<u8>>) -> Promise<String> {
    let mut chunks = stream.chunks();
    try_call(async move {
        let mut decoder = StringDecoder::new(Encoding::Utf8);
        let mut text = String::new();
        while let Some(chunk) = chunks.next().await {
            text.push_str(&decoder.write(&chunk?));
        }
        text.push_str(&decoder.end());
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Ok::<_, Error>(text)
    })
}
