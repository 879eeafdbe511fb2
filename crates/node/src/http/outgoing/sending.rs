//! How a message is sent: writes, chunks, the end, and what is kept while it has no socket.

mod sink;
mod socket;

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::rc::{Rc, Weak};

use super::Role;
use super::fields::{Field, Fields, validate_field};
use super::head::{FirstLine, Framing, Head, make_head};
use crate::error::Error;
use crate::events::{ERROR, EventEmitter};
use crate::net::Socket;
use crate::reason::throw;
use crate::stream::{Base, Callback, FINISH, HIGH_WATER_MARK, PREFINISH, Sink as _, destroyed};
use phaseloop::task::next_tick;

/// Bytes up to this number are copied behind the head or the size of their chunk. More bytes are
/// passed to the socket as they are; the socket is corked, so that all leave in one system call.
const MOST_COPIED: usize = 16 * 1024;

/// The end of a chunk.
const CRLF: &[u8] = b"\r\n";

/// The state of a message.
pub(in crate::http) struct Sending {
    pub(in crate::http) base: Rc<Base>,
    me: Weak<Self>,
    role: Rc<dyn Role>,
    pub(super) fields: RefCell<Fields>,
    pub(in crate::http) framing: Framing,
    head: RefCell<HeadState>,
    pub(super) trailers: RefCell<Vec<u8>>,
    socket: RefCell<Option<Rc<Socket>>>,
    /// Whether the socket belongs to this message now.
    has_turn: Cell<bool>,
    /// What was written while the message had no turn.
    kept: RefCell<Vec<(Vec<u8>, Option<Callback>)>>,
    kept_size: Cell<usize>,
    /// Whether the connection is gone before the message had its turn.
    is_abandoned: Cell<bool>,
    /// The corks of the message, of which its socket has as many.
    corked: Cell<usize>,
    /// The pieces of a chunked body that were written while the message was corked: one chunk.
    gathered: RefCell<Vec<(Vec<u8>, Option<Callback>)>>,
    gathered_size: Cell<usize>,
    /// The number of bytes of the body so far, without the framing.
    body_size: Cell<u64>,
    needs_drain: Cell<bool>,
    ended: Cell<bool>,
    /// Whether all bytes were written.
    is_finished: Cell<bool>,
    /// Whether an error of the connection was reported, after which 'finish' is not emitted.
    pub(in crate::http) had_error: Cell<bool>,
    /// The callbacks of `end`.
    end_callbacks: RefCell<Vec<Callback>>,
    /// The error of an end whose bytes were not written.
    end_error: RefCell<Option<Error>>,
    /// Whether 'finish' may follow 'close'.
    finishes_closed: Cell<bool>,
}

enum HeadState {
    /// Headers may still be set.
    Open,
    /// The bytes wait for the first ones of the body.
    Fixed(Vec<u8>),
    Sent,
}

impl Sending {
    pub(super) fn new(base: Rc<Base>, role: Rc<dyn Role>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            base,
            me: me.clone(),
            role,
            fields: RefCell::default(),
            framing: Framing::new(),
            head: RefCell::new(HeadState::Open),
            trailers: RefCell::default(),
            socket: RefCell::default(),
            has_turn: Cell::new(false),
            kept: RefCell::default(),
            kept_size: Cell::new(0),
            is_abandoned: Cell::new(false),
            corked: Cell::new(0),
            gathered: RefCell::default(),
            gathered_size: Cell::new(0),
            body_size: Cell::new(0),
            needs_drain: Cell::new(false),
            ended: Cell::new(false),
            is_finished: Cell::new(false),
            had_error: Cell::new(false),
            end_callbacks: RefCell::default(),
            end_error: RefCell::default(),
            finishes_closed: Cell::new(false),
        })
    }

    /// Returns whether the message has one handle, which its stream doubles, and perhaps the
    /// callback of its last write.
    pub(super) fn is_unseen(self: &Rc<Self>) -> bool {
        let holders = 2 + usize::from(self.ended.get());
        // The weak references are the message's own, and that of its stream.
        Rc::strong_count(self) == holders && Rc::weak_count(self) == 2
    }

    /// Makes an unseen message ready for another use.
    pub(super) fn renew(&self) {
        // Without `..`, so that a new field is thought of here.
        let Self {
            base: _,
            me: _,
            role: _,
            fields,
            framing,
            head,
            trailers,
            socket,
            has_turn,
            kept,
            kept_size,
            is_abandoned,
            corked,
            gathered,
            gathered_size,
            body_size,
            needs_drain,
            ended,
            is_finished,
            had_error,
            end_callbacks,
            end_error,
            finishes_closed,
        } = self;
        let ends = [ended, is_finished, had_error, finishes_closed];
        for flag in [has_turn, is_abandoned, needs_drain]
            .into_iter()
            .chain(ends)
        {
            flag.set(false);
        }
        let sizes = (kept_size.take(), corked.take(), body_size.take());
        framing.renew();
        fields.borrow_mut().clear();
        trailers.borrow_mut().clear();
        let left = (head.replace(HeadState::Open), socket.take(), kept.take());
        let left = (left, gathered.take(), gathered_size.take());
        let ends = (end_callbacks.take(), end_error.take());
        drop((left, sizes, ends));
    }

    pub(in crate::http) fn me(&self) -> Rc<Self> {
        self.me.upgrade().expect("the caller holds the message")
    }

    pub(in crate::http) fn emitter(&self) -> &EventEmitter {
        &self.base.emitter
    }

    pub(in crate::http) fn socket(&self) -> Option<Rc<Socket>> {
        self.socket.borrow().clone()
    }

    // The head.

    /// Returns whether the head is fixed: headers can no longer be changed.
    pub(in crate::http) fn is_head_fixed(&self) -> bool {
        !matches!(*self.head.borrow(), HeadState::Open)
    }

    /// Returns whether bytes of the head were passed on.
    pub(in crate::http) fn is_head_sent(&self) -> bool {
        matches!(*self.head.borrow(), HeadState::Sent)
    }

    /// Fixes the head. If headers were set before, `given` is merged into them; otherwise it is
    /// taken as it is and may repeat names.
    // H21.
    pub(in crate::http) fn fix_head(
        &self,
        first: &FirstLine<'_>,
        given: Vec<Field>,
    ) -> Result<(), Error> {
        given.iter().try_for_each(validate_field)?;
        let head = if given.is_empty() {
            make_head(&self.framing, first, self.fields.borrow().list())?
        } else if self.fields.borrow().is_used() {
            let mut fields = self.fields.borrow().clone();
            fields.merge(given);
            let head = make_head(&self.framing, first, fields.list())?;
            self.fields.replace(fields);
            head
        } else {
            make_head(&self.framing, first, &given)?
        };
        let Head { bytes, is_urgent } = head;
        self.head.replace(HeadState::Fixed(bytes));
        if is_urgent {
            self.send_head();
        }
        Ok(())
    }

    /// Fixes the head that the message has if the program did not write one.
    fn fix_implicit_head(&self) {
        if self.is_head_fixed() {
            return;
        }
        if let Err(error) = self.role.fix_implicit_head(self) {
            throw(error);
        }
    }

    fn take_head(&self) -> Option<Vec<u8>> {
        let mut head = self.head.borrow_mut();
        match std::mem::replace(&mut *head, HeadState::Sent) {
            HeadState::Fixed(bytes) => Some(bytes),
            HeadState::Sent => None,
            HeadState::Open => {
                *head = HeadState::Open;
                None
            }
        }
    }

    fn send_head(&self) {
        let bytes = self.take_head().unwrap_or_default();
        self.write_raw(bytes, None);
    }

    /// Sends the head now.
    // H33.
    pub(in crate::http) fn flush_headers(&self) {
        self.fix_implicit_head();
        self.send_head();
    }

    // Writing.

    /// Writes bytes to the socket, or keeps them until the message has one.
    pub(in crate::http) fn write_raw(&self, bytes: Vec<u8>, callback: Option<Callback>) -> bool {
        let socket = self.socket();
        if socket.as_ref().is_some_and(|socket| socket.destroyed()) {
            return false;
        }
        let turn = socket.filter(|socket| self.has_turn.get() && socket.writable().is_writable());
        if let Some(socket) = turn {
            self.write_kept(&socket);
            return socket.writable().write_chunk(bytes, callback);
        }
        let size = self.kept_size.get() + bytes.len();
        let added = bytes.len();
        self.kept_size.set(size);
        if self.is_abandoned.get() {
            return size < HIGH_WATER_MARK;
        }
        self.kept.borrow_mut().push((bytes, callback));
        self.role.kept_bytes_changed(added, 0);
        size < HIGH_WATER_MARK
    }

    /// Refuses a write after the end or to a destroyed message.
    // H30, H51.
    fn refuse(&self, error: Error, callback: Option<Callback>) {
        let is_destroyed = self.base.destroyed.get();
        let me = self.me();
        next_tick(move || {
            if let Some(callback) = callback {
                callback(Err(error.clone()));
            }
            if !is_destroyed && !me.base.destroyed.get() {
                me.emitter().emit(ERROR, error);
            }
        });
    }

    /// Writes a piece of the body. Returns whether there is room for more.
    // H24, H25, H33.
    fn write_body(&self, chunk: Vec<u8>, callback: Option<Callback>) -> bool {
        if self.ended.get() {
            let error = Error::with_code("ERR_STREAM_WRITE_AFTER_END", "write after end");
            self.refuse(error, callback);
            return false;
        }
        if self.base.destroyed.get() {
            self.refuse(destroyed("write"), callback);
            return false;
        }
        self.count_body(chunk.len(), false);
        self.fix_implicit_head();
        if !self.framing.has_body.get() {
            if let Some(callback) = callback {
                next_tick(move || callback(Ok(())));
            }
            return true;
        }
        self.cork_for_a_tick();
        let is_chunked = self.framing.is_chunked.get();
        let gathers = is_chunked && self.corked.get() > 0;
        if gathers && !(chunk.is_empty() && self.gathered.borrow().is_empty()) {
            self.gather(chunk, callback);
            return self.length() < self.high_water_mark();
        }
        let mut bytes = self.take_head().unwrap_or_default();
        if is_chunked && !chunk.is_empty() {
            push_chunk_size(&mut bytes, chunk.len());
            return self.write_parts(bytes, chunk, CRLF, callback);
        }
        self.write_parts(bytes, chunk, b"", callback)
    }

    /// Writes the head and the framing before a piece, the piece, and the framing after it.
    fn write_parts(
        &self,
        mut before: Vec<u8>,
        piece: Vec<u8>,
        after: &[u8],
        callback: Option<Callback>,
    ) -> bool {
        if before.is_empty() && after.is_empty() {
            return self.write_raw(piece, callback);
        }
        if piece.len() <= MOST_COPIED {
            before.extend_from_slice(&piece);
            before.extend_from_slice(after);
            return self.write_raw(before, callback);
        }
        if !before.is_empty() {
            self.write_raw(before, None);
        }
        if after.is_empty() {
            return self.write_raw(piece, callback);
        }
        self.write_raw(piece, None);
        self.write_raw(after.to_vec(), callback)
    }

    /// Corks the message until the next tick, so that all writes of one callback leave together.
    fn cork_for_a_tick(&self) {
        let socket = self.socket();
        if socket.is_some_and(|socket| socket.writable().corked() == 0) {
            self.cork();
            let me = self.me();
            next_tick(move || {
                if me.corked.get() > 0 {
                    me.uncork();
                }
            });
        }
    }

    /// Keeps a piece of a chunked body for the chunk that leaves with the last uncork.
    fn gather(&self, piece: Vec<u8>, callback: Option<Callback>) {
        let size = self.gathered_size.get() + piece.len();
        self.gathered_size.set(size);
        self.gathered.borrow_mut().push((piece, callback));
    }

    /// Writes the pieces that were gathered, as one chunk. Returns whether it could.
    fn write_gathered(&self) -> bool {
        let socket = self.socket();
        let is_gone = socket.is_some_and(|socket| socket.destroyed());
        if is_gone || self.base.destroyed.get() {
            self.drop_gathered();
            return false;
        }
        let mut bytes = self.take_head().unwrap_or_default();
        push_chunk_size(&mut bytes, self.gathered_size.take());
        let mut callbacks = Vec::new();
        for (piece, callback) in self.gathered.take() {
            callbacks.extend(callback);
            if piece.len() <= MOST_COPIED {
                bytes.extend_from_slice(&piece);
            } else {
                self.write_raw(std::mem::take(&mut bytes), None);
                self.write_raw(piece, None);
            }
        }
        bytes.extend_from_slice(CRLF);
        let all = move |result: Result<(), Error>| {
            for callback in callbacks {
                callback(result.clone());
            }
        };
        self.write_raw(bytes, Some(Box::new(all)));
        true
    }

    /// Fails the callbacks of the pieces that were gathered.
    pub(in crate::http) fn drop_gathered(&self) {
        self.gathered_size.set(0);
        let pieces = self.gathered.take();
        if pieces.is_empty() {
            return;
        }
        let error = self.error().unwrap_or_else(|| destroyed("write"));
        for callback in pieces.into_iter().filter_map(|(_, callback)| callback) {
            let error = error.clone();
            next_tick(move || callback(Err(error)));
        }
    }

    /// Returns the error of the message or of its socket.
    fn error(&self) -> Option<Error> {
        let own = self.base.errored.borrow().clone();
        own.or_else(|| self.socket()?.writable().errored())
    }

    /// Counts bytes of the body, and compares them with the length that the program has set.
    // H125.
    fn count_body(&self, size: usize, is_end: bool) {
        let framing = &self.framing;
        let size = self.body_size.get() + size as u64;
        if framing.is_strict.get() && framing.has_body.get() && !framing.is_chunked.get() {
            let declared = match self.is_head_fixed() {
                true => framing.content_length.get(),
                false => None,
            };
            if let Some(length) =
                declared.filter(|length| size > *length || is_end && size != *length)
            {
                let message = format!(
                    "Response body's content-length of {size} byte(s) does not match the content-length of {length} \
                     byte(s) set in header"
                );
                throw(Error::with_code(
                    "ERR_HTTP_CONTENT_LENGTH_MISMATCH",
                    message,
                ));
            }
        }
        self.body_size.set(size);
    }

    /// Closes the connection after a body whose length is not the one in the head: the peer would
    /// take the next message for a part of this one.
    // H125.
    fn check_length(&self) {
        let framing = &self.framing;
        let has_length = framing.has_body.get() && !framing.is_chunked.get();
        let length = framing.content_length.get().filter(|_| has_length);
        if length.is_some_and(|length| length != self.body_size.get()) {
            framing.is_last.set(true);
            framing.keeps_alive.set(false);
        }
    }

    // The end.

    /// Ends the message.
    // H7, H23, H30.
    fn end_body(&self, chunk: Option<Vec<u8>>, callback: Option<Callback>) {
        let chunk = chunk.filter(|chunk| !chunk.is_empty());
        if self.ended.get() {
            return self.end_again(chunk.is_some(), callback);
        }
        let size = chunk.as_ref().map_or(0, Vec::len);
        let has_chunk = chunk.is_some();
        if self.base.destroyed.get() && has_chunk {
            // As a write to a destroyed message: only a piece of the body is refused.
            self.refuse(destroyed("write"), None);
        } else {
            if !self.is_head_fixed() {
                self.framing.content_length.set(Some(size as u64));
            }
            self.fix_implicit_head();
            self.count_body(size, true);
        }
        if let Some(callback) = callback {
            self.when_finished(callback);
        }
        self.check_length();
        let mut chunk = chunk.filter(|_| !self.base.destroyed.get());
        let joins = self.corked.get() > 0 && self.framing.is_chunked.get();
        if let Some(chunk) = chunk.take_if(|_| joins && self.framing.has_body.get()) {
            self.gather(chunk, None);
        }
        if !self.gathered.borrow().is_empty() {
            if let Some(socket) = self.socket() {
                socket.writable().cork();
            }
            self.corked.set(1);
            self.uncork();
        }
        let finishes = self.send_end(chunk, has_chunk);
        if let Some(socket) = self.socket() {
            socket.writable().uncork_all();
        }
        self.corked.set(0);
        self.ended.set(true);
        if self.kept.borrow().is_empty() && self.has_turn.get() {
            self.emitter().emit(PREFINISH, ());
        }
        if !finishes {
            self.release_closed();
        }
    }

    fn end_again(&self, has_chunk: bool, callback: Option<Callback>) {
        if has_chunk {
            if !self.base.destroyed.get() {
                let error = Error::with_code("ERR_STREAM_WRITE_AFTER_END", "write after end");
                self.refuse(error, callback);
            }
            return;
        }
        if let Some(callback) = callback {
            self.when_finished(callback);
        }
    }

    /// Calls back right before 'finish', or with the error of an end whose bytes are not written.
    fn when_finished(&self, callback: Callback) {
        if self.is_finished.get() {
            let message = "Cannot call end after a stream was finished";
            callback(Err(Error::with_code(
                "ERR_STREAM_ALREADY_FINISHED",
                message,
            )));
        } else if let Some(error) = self.end_error.borrow().clone() {
            next_tick(move || callback(Err(error)));
        } else {
            self.end_callbacks.borrow_mut().push(callback);
        }
    }

    /// Sends the last piece and the end of the body. 'finish' follows when the socket has written
    /// them, also if the last piece is not sent. Returns whether there is nothing to write, so that
    /// 'finish' is certain.
    fn send_end(&self, chunk: Option<Vec<u8>>, has_chunk: bool) -> bool {
        let has_body = self.framing.has_body.get();
        let is_chunked = has_body && self.framing.is_chunked.get();
        let chunk = chunk.filter(|_| has_body);
        let is_long = chunk
            .as_ref()
            .is_some_and(|chunk| chunk.len() > MOST_COPIED);
        if let Some(socket) = self.socket().filter(|_| is_long) {
            socket.writable().cork();
        }
        let is_head_sent = self.is_head_sent();
        let mut before = self.take_head().unwrap_or_default();
        let mut after = Vec::new();
        if is_chunked {
            if let Some(chunk) = &chunk {
                push_chunk_size(&mut before, chunk.len());
                after.extend_from_slice(CRLF);
            }
            after.extend_from_slice(b"0\r\n");
            after.extend_from_slice(&self.trailers.take());
            after.extend_from_slice(CRLF);
        }
        let me = self.me();
        let nothing_left = is_head_sent && !has_chunk && !is_chunked && self.length() == 0;
        if nothing_left {
            next_tick(move || me.finish(Ok(())));
            return true;
        }
        let finish: Callback = Box::new(move |written| me.finish(written));
        self.write_parts(before, chunk.unwrap_or_default(), &after, Some(finish));
        false
    }

    /// The last bytes are written, or never will be.
    // H7.
    fn finish(&self, written: Result<(), Error>) {
        if self.base.is_closed() && !self.finishes_closed.get() && written.is_ok() {
            return;
        }
        let end_error = || self.error().unwrap_or_else(|| destroyed("end"));
        let had_error = self.had_error.get() || self.error().is_some();
        let error = written.err().or_else(|| had_error.then(end_error));
        let callbacks = self.end_callbacks.take();
        if let Some(error) = error {
            self.end_error.replace(Some(error.clone()));
            for callback in callbacks {
                callback(Err(error.clone()));
            }
            return;
        }
        self.is_finished.set(true);
        for callback in callbacks {
            callback(Ok(()));
        }
        self.role.finished(self);
        self.emitter().emit(FINISH, ());
        self.release_closed();
    }
}

/// Appends the line before a chunk.
fn push_chunk_size(bytes: &mut Vec<u8>, size: usize) {
    let written = write!(bytes, "{size:x}\r\n");
    debug_assert!(written.is_ok(), "a vector accepts all bytes");
}
