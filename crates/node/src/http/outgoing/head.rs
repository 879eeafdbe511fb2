//! The head of a message that is written: its bytes, and the choice of the framing.

use std::cell::Cell;

use super::fields::Field;
use crate::error::Error;
use crate::http::date::push_date;
use crate::http::validate::{has_word, push_latin1};

/// The first line of a head.
pub(in crate::http) struct FirstLine<'a> {
    /// The line without its CRLF.
    pub(in crate::http) text: &'a str,
    /// Whether the message has no body even if the program asks for chunks: status 204 and 304.
    pub(in crate::http) forbids_chunks: bool,
}

/// The `Keep-Alive` line of a server.
#[derive(Clone, Copy)]
pub(in crate::http) struct KeepAliveLine {
    pub(in crate::http) seconds: u64,
    /// The largest number of requests of the connection.
    pub(in crate::http) max: Option<u64>,
}

/// What decides about the lines that are added to a head, and what the head has decided.
pub(in crate::http) struct Framing {
    /// Whether the message has a body. It has none if it answers HEAD, or by its status.
    pub(in crate::http) has_body: Cell<bool>,
    /// Whether a body of unknown length is chunked.
    pub(in crate::http) chunks_by_default: Cell<bool>,
    /// Whether the message leaves the connection open after it.
    pub(in crate::http) keeps_alive: Cell<bool>,
    /// Whether the message is a request, which says `keep-alive` also without a body.
    pub(in crate::http) is_request: Cell<bool>,
    pub(in crate::http) keep_alive_line: Cell<Option<KeepAliveLine>>,
    /// Whether the connection has brought as many requests as it may.
    pub(in crate::http) is_last_allowed: Cell<bool>,
    pub(in crate::http) sends_date: Cell<bool>,
    /// Whether a body of a length that differs from `Content-Length` is an error of the program.
    pub(in crate::http) is_strict: Cell<bool>,
    /// Whether the connection is closed after the message. Valid once the head is fixed.
    pub(in crate::http) is_last: Cell<bool>,
    /// Whether the body is chunked. Valid once the head is fixed.
    pub(super) is_chunked: Cell<bool>,
    /// The length of the body: the program's, or that of a body given to `end`.
    pub(super) content_length: Cell<Option<u64>>,
    pub(super) removed_connection: Cell<bool>,
    pub(super) removed_length: Cell<bool>,
    pub(super) removed_coding: Cell<bool>,
}

impl Framing {
    pub(super) fn new() -> Self {
        let [yes, no] = [true, false].map(Cell::new);
        Self {
            has_body: yes.clone(),
            chunks_by_default: yes.clone(),
            keeps_alive: yes,
            is_request: no.clone(),
            keep_alive_line: Cell::new(None),
            is_last_allowed: no.clone(),
            sends_date: no.clone(),
            is_strict: no.clone(),
            is_last: no.clone(),
            is_chunked: no.clone(),
            content_length: Cell::new(None),
            removed_connection: no.clone(),
            removed_length: no.clone(),
            removed_coding: no,
        }
    }

    /// Makes the framing that of a new message.
    pub(super) fn renew(&self) {
        // Without `..`, so that a new field is thought of here.
        let Self {
            has_body,
            chunks_by_default,
            keeps_alive,
            is_request,
            keep_alive_line,
            is_last_allowed,
            sends_date,
            is_strict,
            is_last,
            is_chunked,
            content_length,
            removed_connection,
            removed_length,
            removed_coding,
        } = &Self::new();
        self.has_body.swap(has_body);
        self.chunks_by_default.swap(chunks_by_default);
        self.keeps_alive.swap(keeps_alive);
        self.is_request.swap(is_request);
        self.keep_alive_line.swap(keep_alive_line);
        self.is_last_allowed.swap(is_last_allowed);
        self.sends_date.swap(sends_date);
        self.is_strict.swap(is_strict);
        self.is_last.swap(is_last);
        self.is_chunked.swap(is_chunked);
        self.content_length.swap(content_length);
        self.removed_connection.swap(removed_connection);
        self.removed_length.swap(removed_length);
        self.removed_coding.swap(removed_coding);
    }

    /// Notes that the program has removed a header that would be added.
    pub(super) fn removed(&self, name: &str) {
        let flags = [
            ("connection", &self.removed_connection),
            ("content-length", &self.removed_length),
            ("transfer-encoding", &self.removed_coding),
        ];
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if let Some((_, flag)) = flags.iter().find(|(known, _)| is(known)) {
            flag.set(true);
        } else if is("date") {
            self.sends_date.set(false);
        }
    }
}

/// What the program's headers say.
#[derive(Default)]
struct Seen {
    connection: Option<Connection>,
    length: Option<Option<u64>>,
    coding: bool,
    is_chunked: bool,
    date: bool,
    expect: bool,
    trailer: bool,
    keep_alive: bool,
}

enum Connection {
    Close,
    Other,
}

impl Seen {
    fn line(&mut self, name: &str, value: &str) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is("date") => self.date = true,
            6 if is("expect") => self.expect = true,
            7 if is("trailer") => self.trailer = true,
            10 if is("keep-alive") => self.keep_alive = true,
            10 if is("connection") => {
                let closes = matches!(self.connection, Some(Connection::Close));
                self.connection = Some(if closes || has_word(value, "close") {
                    Connection::Close
                } else {
                    Connection::Other
                });
            }
            14 if is("content-length") => self.length = Some(value.trim().parse().ok()),
            17 if is("transfer-encoding") => {
                self.coding = true;
                self.is_chunked |= has_word(value, "chunked");
            }
            _ => {}
        }
    }
}

/// A head that is ready to be sent.
pub(super) struct Head {
    pub(super) bytes: Vec<u8>,
    /// Whether the head leaves at once, because the peer is asked before the body is sent.
    pub(super) is_urgent: bool,
}

/// The lines that decide about the connection and the body.
struct Decision {
    is_chunked: bool,
    keeps_alive: bool,
    is_last: bool,
}

/// Writes the head of a message with the headers of the program, then what is missing of `Date`,
/// `Connection`, `Keep-Alive`, and `Content-Length` or `Transfer-Encoding`, in this order.
// H20, H22, H23, H25, H27.
pub(super) fn make_head(
    framing: &Framing,
    first: &FirstLine<'_>,
    fields: &[Field],
) -> Result<Head, Error> {
    let mut bytes = Vec::with_capacity(256);
    push_latin1(&mut bytes, first.text);
    bytes.extend_from_slice(b"\r\n");
    let mut seen = Seen::default();
    for field in fields {
        push_field(&mut bytes, field, |name, value| seen.line(name, value));
    }
    if framing.sends_date.get() && !seen.date {
        bytes.extend_from_slice(b"Date: ");
        push_date(&mut bytes);
        bytes.extend_from_slice(b"\r\n");
    }
    let mut decision = Decision {
        is_chunked: seen.is_chunked,
        keeps_alive: framing.keeps_alive.get()
            || matches!(seen.connection, Some(Connection::Other)),
        is_last: matches!(seen.connection, Some(Connection::Close)),
    };
    if decision.is_chunked && first.forbids_chunks {
        decision.is_chunked = false;
        decision.keeps_alive = false;
    }
    push_connection(&mut bytes, framing, &seen, &mut decision);
    if seen.length.is_none() && !seen.coding {
        push_framing(&mut bytes, framing, &seen, &mut decision);
    }
    if !decision.is_chunked && seen.trailer {
        let message = "Trailers are invalid with this transfer encoding";
        return Err(Error::with_code("ERR_HTTP_TRAILER_INVALID", message));
    }
    bytes.extend_from_slice(b"\r\n");
    // Nothing fails from here on: what was decided becomes the state of the message.
    framing.is_chunked.set(decision.is_chunked);
    framing.keeps_alive.set(decision.keeps_alive);
    framing.is_last.set(decision.is_last);
    if let Some(length) = seen.length {
        framing.content_length.set(length);
    }
    Ok(Head {
        bytes,
        is_urgent: seen.expect,
    })
}

/// Appends the lines of a header: one for each value, and one for a list of cookies.
fn push_field(bytes: &mut Vec<u8>, (name, value): &Field, mut line: impl FnMut(&str, &str)) {
    let values = value.values();
    if values.len() > 1 && name.eq_ignore_ascii_case("cookie") {
        return push_line(bytes, name, &values.join("; "));
    }
    for value in values {
        push_line(bytes, name, value);
        line(name, value);
    }
}

fn push_line(bytes: &mut Vec<u8>, name: &str, value: &str) {
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(b": ");
    push_latin1(bytes, value);
    bytes.extend_from_slice(b"\r\n");
}

fn push_connection(bytes: &mut Vec<u8>, framing: &Framing, seen: &Seen, decision: &mut Decision) {
    if framing.removed_connection.get() && seen.connection.is_none() {
        decision.is_last = !decision.keeps_alive;
        return;
    }
    if seen.connection.is_some() {
        return;
    }
    let may_keep =
        seen.length.is_some() || framing.chunks_by_default.get() || framing.is_request.get();
    if !decision.keeps_alive || !may_keep {
        decision.is_last = true;
        return bytes.extend_from_slice(b"Connection: close\r\n");
    }
    if framing.is_last_allowed.get() {
        return bytes.extend_from_slice(b"Connection: close\r\n");
    }
    bytes.extend_from_slice(b"Connection: keep-alive\r\n");
    if let (Some(line), false) = (framing.keep_alive_line.get(), seen.keep_alive) {
        bytes.extend_from_slice(b"Keep-Alive: timeout=");
        push_number(bytes, line.seconds);
        if let Some(max) = line.max {
            bytes.extend_from_slice(b", max=");
            push_number(bytes, max);
        }
        bytes.extend_from_slice(b"\r\n");
    }
}

fn push_framing(bytes: &mut Vec<u8>, framing: &Framing, seen: &Seen, decision: &mut Decision) {
    let length = framing.content_length.get();
    let length = length.filter(|_| !seen.trailer && !framing.removed_length.get());
    if !framing.has_body.get() {
        decision.is_chunked = false;
    } else if !framing.chunks_by_default.get() {
        decision.is_last = true;
    } else if let Some(length) = length {
        bytes.extend_from_slice(b"Content-Length: ");
        push_number(bytes, length);
        bytes.extend_from_slice(b"\r\n");
    } else if !framing.removed_coding.get() {
        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        decision.is_chunked = true;
    } else {
        // The end of the connection is the end of the body.
        decision.is_last = true;
    }
}

/// Appends a number in decimal digits.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    let start = bytes.len();
    loop {
        bytes.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    bytes[start..].reverse();
}

/// Writes the trailers of a chunked body.
pub(super) fn trailer_lines(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        for value in value.values() {
            push_line(&mut bytes, name, value);
        }
    }
    bytes
}
