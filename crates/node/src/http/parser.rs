//! The parser of HTTP/1 messages: pure data, without I/O and clock.
//!
//! It is fed pieces of bytes and returns what it finds, one part at a time. Where the bytes are cut
//! makes no difference to the parts, except that a body is returned as it comes.
//!
//! ```text
//!   first line ──> header lines ──> Head ──┬── length, chunks or close ──> Body … ──┐
//!        ^                                 ├── no body ─────────────────────────────┴──> End
//!        │                                 └── another protocol ──> End ──> Rest
//!        └── kept alive ── End ── not kept ──> closed: any further byte is refused
//! ```
//!
//! It accepts what Node's parser accepts without lenient flags, and refuses the rest with Node's
//! codes. Memory is bounded by the limit of the head's size; a declared length allocates nothing.
//
// H40, H45, H56 and the table of strictness.

mod body;
mod classes;
mod fault;
mod fields;
mod head;
mod line;
mod methods;

use std::ops::Range;

use self::body::BodyState;
pub(super) use self::classes::are_of_token;
pub(super) use self::fault::Fault;
use self::fields::{Coding, FieldState, Special};
pub(super) use self::head::Head;
use self::line::LineState;
pub(super) use self::methods::Method;

/// The default limit of the size of a head: URL, names and values together. JavaScript:
/// `http.maxHeaderSize`.
pub const MAX_HEADER_SIZE: usize = 16 * 1024;

/// The largest size of the extensions of one chunk.
const MAX_CHUNK_EXTENSIONS: usize = 16 * 1024;

/// What the messages of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
}

/// The limits of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The size of URL, names and values; a head of this size is refused.
    pub(super) header_size: usize,
    /// The number of header lines, and of trailers; 0 means no limit. A request with more is
    /// refused. Of a response so many are kept, and framing uses all.
    pub(super) header_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_size: MAX_HEADER_SIZE,
            header_count: 1000,
        }
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All bytes are used, and more are needed.
    NeedMore,
    /// A head is complete: [`Parser::take_head`]. [`Parser::skip_body`] and [`Parser::upgrade`] may
    /// be called now.
    Head,
    /// A piece of the body, as a range of the input.
    Body(Range<usize>),
    /// The message is complete: [`Parser::take_trailers`].
    End,
    /// The rest of the input belongs to another protocol.
    Rest,
}

/// How the body of a message is to be read, beyond what its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    AsHead,
    /// There is no body: the response to a HEAD request.
    Skip,
    /// The connection leaves HTTP after the head.
    Upgrade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between messages.
    Start,
    Line(LineState),
    Field(FieldState),
    /// The head is complete and not yet returned.
    Head,
    /// The head was returned.
    AfterHead,
    Body(BodyState),
    /// The message is complete and not yet returned.
    End,
    /// The rest is another protocol.
    Rest,
    /// The last message said that no other follows.
    Closed,
    Failed(Fault),
}

/// What the header lines said about framing.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    has_length: bool,
    has_coding: bool,
    is_chunked: bool,
    close: bool,
    keep_alive: bool,
    connection_upgrade: bool,
    has_upgrade: bool,
    /// The header lines are trailers.
    is_trailing: bool,
}

/// A parser of the messages of one direction of a connection.
#[derive(Debug)]
pub(super) struct Parser {
    kind: Kind,
    limits: Limits,
    state: State,
    head: Head,
    plan: Plan,
    flags: Flags,
    /// The status and the version of the message, whose head may be taken.
    status: u16,
    version: (u8, u8),
    /// The declared length of the body, or what is left of it or of the chunk.
    length: u64,
    /// The size of the head, or of the extensions of the chunk, so far.
    size: usize,
    /// The number of header lines so far.
    seen: usize,
    /// Where the current header line starts in the buffer of the head, and where its name ends.
    field_start: usize,
    name_end: usize,
    special: Special,
    coding: Coding,
    /// The word that the input must continue with, and how much of it was seen.
    word: (&'static [u8], usize),
    /// The method as far as it was received.
    method: ([u8; 16], usize),
    /// Whether a message has begun and is not complete.
    is_inside: bool,
    /// Whether the last head asked for another protocol.
    asked_upgrade: bool,
}

impl Parser {
    pub(super) fn new(kind: Kind, limits: Limits) -> Self {
        Self {
            kind,
            limits,
            state: State::Start,
            head: Head::default(),
            plan: Plan::AsHead,
            flags: Flags::default(),
            status: 0,
            version: (0, 0),
            length: 0,
            size: 0,
            seen: 0,
            field_start: 0,
            name_end: 0,
            special: Special::None,
            coding: Coding::Word(0),
            word: (b"", 0),
            method: ([0; 16], 0),
            is_inside: false,
            asked_upgrade: false,
        }
    }

    /// Continues with the bytes of `input` from `at` on, and moves `at` behind what was used. Call
    /// it again with the same input until it returns [`Part::NeedMore`] or [`Part::Rest`].
    ///
    /// # Errors
    ///
    /// If the bytes are refused. `at` is then where Node says that the fault is. The parser stays
    /// failed.
    pub(super) fn next(&mut self, input: &[u8], at: &mut usize) -> Result<Part, Fault> {
        loop {
            let state = self.state;
            let stepped = match state {
                State::Head => {
                    self.state = State::AfterHead;
                    return Ok(Part::Head);
                }
                State::AfterHead => self.begin_body(),
                State::End => {
                    self.end_message();
                    return Ok(Part::End);
                }
                State::Rest => return Ok(Part::Rest),
                State::Failed(fault) => return Err(fault),
                _ if *at == input.len() => return Ok(Part::NeedMore),
                State::Body(BodyState::Length | BodyState::Chunk | BodyState::UntilClose) => {
                    return Ok(self.body_piece(input, at));
                }
                State::Start => self.start(input, at),
                State::Line(line) => self.line(line, input, at),
                State::Field(field) => self.field(field, input, at),
                State::Body(body) => self.chunk_frame(body, input, at),
                State::Closed => self.closed(input, at),
            };
            if let Err(fault) = stepped {
                self.state = State::Failed(fault);
                return Err(fault);
            }
        }
    }

    /// The input has ended. Returns [`Part::End`] if that ends the message.
    ///
    /// # Errors
    ///
    /// If a message is not complete.
    pub(super) fn finish(&mut self) -> Result<Part, Fault> {
        match self.state {
            State::Body(BodyState::UntilClose) => {
                self.end_message();
                Ok(Part::End)
            }
            State::Failed(_) | State::Rest => Ok(Part::NeedMore),
            _ if self.is_inside => {
                self.state = State::Failed(Fault::InvalidEofState);
                Err(Fault::InvalidEofState)
            }
            _ => Ok(Part::NeedMore),
        }
    }

    /// Returns the head after [`Part::Head`]. `spare` is an old one whose memory may be used again.
    pub(super) fn take_head(&mut self, spare: Option<Head>) -> Head {
        std::mem::replace(&mut self.head, spare.unwrap_or_default())
    }

    /// Returns the number of header lines of the head, after [`Part::Head`].
    pub(super) fn lines_seen(&self) -> usize {
        self.seen
    }

    /// Returns whether the parser knows nothing of the connection: any other parser would continue
    /// alike.
    pub(super) fn is_at_rest(&self) -> bool {
        self.state == State::Start && !self.asked_upgrade
    }

    /// Uses a parser that is at rest for another connection.
    pub(super) fn set_limits(&mut self, limits: Limits) {
        debug_assert!(self.is_at_rest(), "a connection uses the parser");
        self.limits = limits;
    }

    /// Returns the trailers after [`Part::End`]; `None` if there were none.
    pub(super) fn take_trailers(&mut self) -> Option<Head> {
        let has_some = self.head.len() > 0;
        has_some.then(|| std::mem::take(&mut self.head))
    }

    /// Says after [`Part::Head`] that the message has no body, whatever its head says.
    pub(super) fn skip_body(&mut self) {
        self.plan = Plan::Skip;
    }

    /// Says after [`Part::Head`] that the connection leaves HTTP: [`Part::Rest`] follows the end.
    pub(super) fn upgrade(&mut self) {
        self.plan = Plan::Upgrade;
    }

    /// Returns whether faults are not reported: between a head that asks for another protocol,
    /// which the program does not get, and the next head. Node ignores the rest of the input then.
    pub(super) fn hides_faults(&self) -> bool {
        self.asked_upgrade
    }

    /// Returns whether a message has begun and is not complete.
    pub(super) fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Returns whether a head has begun and is not complete.
    pub(super) fn is_in_head(&self) -> bool {
        let is_head = matches!(self.state, State::Line(_) | State::Field(_) | State::Head);
        is_head && !self.flags.is_trailing
    }

    // Between messages.

    fn start(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        while let Some(b'\r' | b'\n') = input.get(*at) {
            *at += 1;
        }
        if *at < input.len() {
            self.head.clear();
            self.head.reserve(input.len() - *at);
            self.plan = Plan::AsHead;
            self.flags = Flags::default();
            self.length = 0;
            self.size = 0;
            self.seen = 0;
            self.method.1 = 0;
            self.is_inside = true;
            self.state = State::Line(match self.kind {
                Kind::Request => LineState::Method,
                Kind::Response => LineState::Protocol,
            });
        }
        Ok(())
    }

    fn closed(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        while let Some(b'\r' | b'\n') = input.get(*at) {
            *at += 1;
        }
        if *at == input.len() {
            return Ok(());
        }
        *at += 1;
        Err(Fault::ClosedConnection)
    }

    fn end_message(&mut self) {
        self.is_inside = false;
        self.state = if self.plan == Plan::Upgrade {
            State::Rest
        } else if self.keeps_alive() {
            State::Start
        } else {
            State::Closed
        };
    }

    /// Counts bytes of the head: a name, a value or another part that is over, or the rest of the
    /// input. A part that is too long and has a fault in it is one or the other, as Node sees it.
    fn count(&mut self, bytes: usize) -> Result<(), Fault> {
        self.size = self.size.saturating_add(bytes);
        self.check_size()
    }

    fn check_size(&self) -> Result<(), Fault> {
        match self.size < self.limits.header_size {
            true => Ok(()),
            false => Err(Fault::HeaderOverflow),
        }
    }

    /// Takes the next byte of the word that must follow. Returns whether the word is complete.
    fn match_word(&mut self, byte: u8, otherwise: Fault) -> Result<bool, Fault> {
        let (word, seen) = self.word;
        if word.get(seen) != Some(&byte) {
            return Err(otherwise);
        }
        self.word.1 = seen + 1;
        Ok(seen + 1 == word.len())
    }
}

#[cfg(test)]
mod tests;
