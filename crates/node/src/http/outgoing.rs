//! Messages that are written: what `ServerResponse` and
//! `ClientRequest` have in common.
//!
//! ```text
//!   headers may be set ── write, end, flush_headers, write_head ──> the head is fixed
//!   no socket: bytes are kept ── attach ──> bytes go to the socket ── all written ──> 'finish'
//! ```
//
// H20 to H34.

mod fields;
mod head;
mod sending;

use std::fmt;
use std::rc::Rc;

pub(super) use self::fields::{Field, validate_field};
pub use self::fields::{HeaderValue, IntoHeaders, Pairs};
pub(super) use self::head::{FirstLine, KeepAliveLine};
pub(super) use self::sending::Sending;
use super::validate::{validate_text, validate_token};
use crate::error::Error;
use crate::events::{Emitter, Event, EventEmitter};
use crate::net::Socket;
use crate::reason::throw;
use crate::stream::{IntoChunk, IntoLast, Sink as _, Writable};

/// A message has got its socket: a request its connection, a response its turn. JavaScript:
/// `'socket'`.
pub const SOCKET: Event<Socket> = Event::new("socket");

/// What differs between requests and responses.
pub(super) trait Role {
    /// Fixes the head of a message whose program has not written one.
    fn fix_implicit_head(&self, message: &Sending) -> Result<(), Error>;

    /// Called right before 'finish' is emitted.
    fn finished(&self, message: &Sending);

    /// Called once, when the message is destroyed by the program. The message is marked already.
    fn destroyed(&self, message: &Sending, error: Option<Error>);

    /// Called when the number of bytes changes that a message without a socket keeps.
    fn kept_bytes_changed(&self, added: usize, removed: usize) {
        let _ = (added, removed);
    }
}

/// A message that is written: the common part of `ServerResponse` and
/// `ClientRequest`, which dereference to it. JavaScript:
/// `http.OutgoingMessage`.
///
/// Headers are set before the head is fixed, which the first [`write`](Self::write),
/// [`end`](Self::end) or [`flush_headers`](Self::flush_headers) does. The head leaves together with
/// the first bytes of the body.
///
/// The events are [`PREFINISH`](crate::stream::PREFINISH),
/// [`FINISH`](crate::stream::FINISH), [`DRAIN`](crate::stream::DRAIN),
/// [`CLOSE`](crate::stream::CLOSE), [`ERROR`](crate::events::ERROR) and [`SOCKET`].
#[derive(Clone)]
pub struct OutgoingMessage {
    writable: Writable<Vec<u8>>,
    sending: Rc<Sending>,
}

impl OutgoingMessage {
    pub(super) fn new(class: &'static str, role: Rc<dyn Role>) -> Self {
        let (writable, sending) = Writable::foreign(class, |base| Sending::new(base, role));
        Self { writable, sending }
    }

    /// Returns whether the program has no access to the message: there is one handle, and perhaps
    /// the callback that finishes the message.
    pub(super) fn is_unseen(&self) -> bool {
        self.writable.is_untouched(1) && Sending::is_unseen(&self.sending)
    }

    /// Makes an unseen message ready for another use.
    pub(super) fn renew(&self) {
        self.sending.renew();
    }

    /// The state, for the connection that sends the message.
    pub(super) fn sending(&self) -> &Rc<Sending> {
        &self.sending
    }

    // Headers.

    /// Sets a header. A header that was set before keeps its place and gets the new name and value.
    /// JavaScript: `message.setHeader(name, value)`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) the error of [`try_set_header`](Self::try_set_header), as Node does.
    /// A header that a peer may choose belongs there.
    #[track_caller]
    pub fn set_header(&self, name: impl Into<String>, value: impl Into<HeaderValue>) -> &Self {
        match self.try_set_header(name, value) {
            Ok(()) => self,
            Err(error) => throw(error),
        }
    }

    /// Sets a header like [`set_header`](Self::set_header), but returns the error.
    ///
    /// # Errors
    ///
    /// `ERR_INVALID_HTTP_TOKEN` for a bad name, `ERR_INVALID_CHAR` or
    /// `ERR_HTTP_INVALID_HEADER_VALUE` for a bad value, `ERR_HTTP_HEADERS_SENT` when the head is
    /// fixed. The message is left as it was.
    pub fn try_set_header(
        &self,
        name: impl Into<String>,
        value: impl Into<HeaderValue>,
    ) -> Result<(), Error> {
        self.must_be_open("set")?;
        let field = (name.into(), value.into());
        validate_field(&field)?;
        self.sending.fields.borrow_mut().set(field);
        Ok(())
    }

    /// Adds a value to a header, which becomes a list. JavaScript: `message.appendHeader(name,
    /// value)`.
    ///
    /// # Errors
    ///
    /// See [`try_set_header`](Self::try_set_header).
    pub fn append_header(
        &self,
        name: impl Into<String>,
        value: impl Into<HeaderValue>,
    ) -> Result<(), Error> {
        self.must_be_open("append")?;
        let field = (name.into(), value.into());
        validate_field(&field)?;
        self.sending.fields.borrow_mut().append(field);
        Ok(())
    }

    /// Removes a header, also one that would be added to the head: `Connection`, `Content-Length`,
    /// `Transfer-Encoding` and `Date`. JavaScript: `message.removeHeader(name)`.
    ///
    /// # Errors
    ///
    /// `ERR_HTTP_HEADERS_SENT` when the head is fixed.
    pub fn remove_header(&self, name: &str) -> Result<(), Error> {
        self.must_be_open("remove")?;
        self.sending.framing.removed(name);
        self.sending.fields.borrow_mut().remove(name);
        Ok(())
    }

    /// Returns the value of a header as it was set. Names match in any case. JavaScript:
    /// `message.getHeader(name)`.
    #[must_use]
    pub fn get_header(&self, name: &str) -> Option<HeaderValue> {
        self.sending.fields.borrow().get(name).cloned()
    }

    /// Returns whether a header was set. JavaScript: `message.hasHeader(name)`.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.sending.fields.borrow().get(name).is_some()
    }

    /// Returns the names of the headers in lower case, in the order of setting. JavaScript:
    /// `message.getHeaderNames()`.
    #[must_use]
    pub fn header_names(&self) -> Vec<String> {
        let names = self.raw_header_names().into_iter();
        names.map(|name| name.to_ascii_lowercase()).collect()
    }

    /// Returns the names of the headers as they were set. JavaScript:
    /// `message.getRawHeaderNames()`.
    #[must_use]
    pub fn raw_header_names(&self) -> Vec<String> {
        let fields = self.sending.fields.borrow();
        fields.list().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the headers, with the names in lower case. JavaScript: `message.getHeaders()`.
    #[must_use]
    pub fn get_headers(&self) -> Vec<(String, HeaderValue)> {
        let fields = self.sending.fields.borrow();
        let lower = |(name, value): &Field| (name.to_ascii_lowercase(), value.clone());
        fields.list().iter().map(lower).collect()
    }

    /// Returns whether the head is fixed. JavaScript: `message.headersSent`.
    #[must_use]
    pub fn headers_sent(&self) -> bool {
        self.sending.is_head_fixed()
    }

    /// Sends the head now, without waiting for the body. A body without a length is chunked then.
    /// JavaScript: `message.flushHeaders()`.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) the error of a bad head; see [`write`](Self::write).
    pub fn flush_headers(&self) {
        self.sending.flush_headers();
    }

    /// Sets the headers after a chunked body. They are dropped if the body is not chunked.
    /// JavaScript: `message.addTrailers(headers)`.
    ///
    /// # Errors
    ///
    /// `ERR_INVALID_HTTP_TOKEN` for a bad name and `ERR_INVALID_CHAR` for a bad value.
    pub fn add_trailers<N, V>(
        &self,
        trailers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(), Error>
    where
        N: Into<String>,
        V: Into<HeaderValue>,
    {
        let trailers = trailers.into_iter();
        let trailers: Vec<Field> = trailers.map(|(n, v)| (n.into(), v.into())).collect();
        for (name, value) in &trailers {
            validate_token("Trailer name", name)?;
            for value in value.values() {
                validate_text("trailer content", Some(name), value)?;
            }
        }
        let lines = head::trailer_lines(&trailers);
        self.sending.trailers.replace(lines);
        Ok(())
    }

    fn must_be_open(&self, operation: &str) -> Result<(), Error> {
        match self.sending.is_head_fixed() {
            true => Err(headers_sent(operation)),
            false => Ok(()),
        }
    }

    /// Sets whether a body whose length is not that of the `Content-Length` header is an error of
    /// the program. Without it, such a body closes the connection. JavaScript:
    /// `message.strictContentLength = true`.
    pub fn strict_content_length(&self, is_strict: bool) {
        self.sending.framing.is_strict.set(is_strict);
    }

    // The body.

    /// Returns the message as a writable stream, for `pipe` and
    /// [`pipeline`](crate::stream::pipeline()).
    #[must_use]
    pub fn writable(&self) -> &Writable<Vec<u8>> {
        &self.writable
    }

    /// Writes a piece of the body; the first one fixes the head. Returns `false` if the message is
    /// full; [`DRAIN`](crate::stream::DRAIN) reports that it has room again. JavaScript:
    /// `message.write(chunk)`.
    ///
    /// The writes of one callback leave together, on the next tick.
    ///
    /// # Panics
    ///
    /// [Throws](crate::throw) if the head cannot be made (`ERR_HTTP_TRAILER_INVALID`,
    /// `ERR_HTTP_INVALID_STATUS_CODE`), and after
    /// [`strict_content_length`](Self::strict_content_length) if the body is too long
    /// (`ERR_HTTP_CONTENT_LENGTH_MISMATCH`).
    pub fn write(&self, bytes: impl IntoChunk<Vec<u8>>) -> bool {
        self.sending.write(bytes.into_chunk(), None)
    }

    /// Writes a piece of the body, and calls `callback` when it is written. JavaScript:
    /// `message.write(chunk, callback)`.
    ///
    /// # Panics
    ///
    /// See [`write`](Self::write).
    pub fn write_with(
        &self,
        bytes: impl IntoChunk<Vec<u8>>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) -> bool {
        let callback = Box::new(callback);
        self.sending.write(bytes.into_chunk(), Some(callback))
    }

    /// Ends the message. [`FINISH`](crate::stream::FINISH) follows when all bytes are
    /// written. JavaScript: `message.end(chunk)`.
    ///
    /// `last` is the last piece of the body; `()` is none. A body that is given here as a whole has
    /// a `Content-Length`.
    ///
    /// # Panics
    ///
    /// See [`write`](Self::write). A strict length must be met here.
    pub fn end<K>(&self, last: impl IntoLast<Vec<u8>, K>) {
        self.sending.end(last.into_last(), None);
    }

    /// Ends the message like [`end`](Self::end), and calls `callback` as a listener of
    /// [`FINISH`](crate::stream::FINISH). JavaScript: `message.end(chunk, callback)`.
    ///
    /// # Panics
    ///
    /// See [`end`](Self::end).
    pub fn end_with<K>(
        &self,
        last: impl IntoLast<Vec<u8>, K>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) {
        let callback = Box::new(callback);
        self.sending.end(last.into_last(), Some(callback));
    }

    /// Buffers all writes until [`uncork`](Self::uncork) was called as often. JavaScript:
    /// `message.cork()`.
    pub fn cork(&self) {
        self.sending.cork();
    }

    /// Undoes one [`cork`](Self::cork). JavaScript: `message.uncork()`.
    pub fn uncork(&self) {
        self.sending.uncork();
    }

    /// Returns how often [`uncork`](Self::uncork) must be called before bytes leave. JavaScript:
    /// `message.writableCorked`.
    #[must_use]
    pub fn corked(&self) -> usize {
        self.sending.corked()
    }

    /// Destroys the message and its connection. JavaScript: `message.destroy(error)`.
    pub fn destroy(&self, error: Option<Error>) {
        self.writable.destroy(error);
    }

    /// Returns whether the message was destroyed, or is closed. JavaScript: `message.destroyed`.
    #[must_use]
    pub fn destroyed(&self) -> bool {
        self.writable.destroyed()
    }

    /// Returns whether [`end`](Self::end) was called. JavaScript: `message.writableEnded`.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.sending.ended()
    }

    /// Returns whether the message has ended and the kernel has all bytes. JavaScript:
    /// `message.writableFinished`.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.sending.finished()
    }

    /// Returns whether the message is full. JavaScript: `message.writableNeedDrain`.
    #[must_use]
    pub fn need_drain(&self) -> bool {
        self.writable.need_drain()
    }

    /// Returns the number of bytes that wait, with those that wait in the socket. JavaScript:
    /// `message.writableLength`.
    #[must_use]
    pub fn length(&self) -> usize {
        self.sending.length()
    }

    /// Returns how many bytes may wait before the message is full. JavaScript:
    /// `message.writableHighWaterMark`.
    #[must_use]
    pub fn high_water_mark(&self) -> usize {
        self.sending.high_water_mark()
    }

    /// Returns the socket. `None` before the message has one, and for a response after
    /// [`FINISH`](crate::stream::FINISH). JavaScript: `message.socket`.
    #[must_use]
    pub fn socket(&self) -> Option<Socket> {
        self.sending.socket().map(|socket| (*socket).clone())
    }
}

/// The error of a call that needs a head that is not fixed.
pub(super) fn headers_sent(operation: &str) -> Error {
    let message = format!("Cannot {operation} headers after they are sent to the client");
    Error::with_code("ERR_HTTP_HEADERS_SENT", message)
}

impl Emitter for OutgoingMessage {
    fn emitter(&self) -> &EventEmitter {
        self.sending.emitter()
    }
}

crate::weak_this!(OutgoingMessage { writable, sending });

impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingMessage")
            .field("headers", &self.get_headers())
            .field("headers_sent", &self.headers_sent())
            .field("ended", &self.ended())
            .finish_non_exhaustive()
    }
}
