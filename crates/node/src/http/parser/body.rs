//! What follows a head: the choice of the framing, bodies and chunks.

use super::classes::{QUOTED, TOKEN, VALUE, hex_digit, is};
use super::fields::FieldState;
use super::methods::Method;
use super::{Fault, Kind, MAX_CHUNK_EXTENSIONS, Parser, Part, Plan, State};

/// A place in a body. The next byte belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyState {
    /// A body with a length.
    Length,
    UntilClose,
    /// The first digit of the size of a chunk.
    Size,
    SizeRest,
    /// Behind the CR of the size.
    SizeLf,
    /// Behind the semicolon of an extension.
    Extension,
    ExtensionName,
    ExtensionValue,
    Quoted,
    /// Behind the backslash in a quoted value.
    QuotedPair,
    AfterQuoted,
    /// The data of a chunk.
    Chunk,
    ChunkCr,
    ChunkLf,
}

impl Parser {
    /// Sets what the head says about the connection.
    pub(super) fn end_head(&mut self) {
        self.status = self.head.status;
        self.version = self.head.version;
        self.size = 0;
        let asks = self.flags.has_upgrade && self.flags.connection_upgrade;
        // Where the body of such a request ends is unknown, and Node does not read it: nothing
        // behind it may be taken for another request.
        let has_unknown_body = self.flags.has_coding && !self.flags.is_chunked;
        self.flags.close |= self.kind == Kind::Request && asks && has_unknown_body;
        self.head.upgrade = match self.kind {
            Kind::Request => asks || self.head.method == Some(Method::CONNECT),
            Kind::Response => asks && self.head.status == 101,
        };
        self.asked_upgrade = self.head.upgrade;
        self.head.keep_alive = self.keeps_alive();
    }

    fn has_no_body_by_status(&self) -> bool {
        self.kind == Kind::Response && matches!(self.status, 100..=199 | 204 | 304)
    }

    /// Whether only the end of the connection ends the message.
    fn needs_eof(&self) -> bool {
        if self.kind == Kind::Request || self.has_no_body_by_status() || self.plan == Plan::Skip {
            return false;
        }
        let framed = self.flags.is_chunked || (self.flags.has_length && !self.flags.has_coding);
        !framed
    }

    pub(super) fn keeps_alive(&self) -> bool {
        let (major, minor) = self.version;
        let is_kept = if major > 0 && minor > 0 {
            !self.flags.close
        } else {
            self.flags.keep_alive
        };
        is_kept && !self.needs_eof()
    }

    /// Chooses how the body is read, after the head was returned.
    // H45: a coding that does not end in chunked is refused after the handler was called.
    pub(super) fn begin_body(&mut self) -> Result<(), Fault> {
        self.seen = 0;
        self.head.clear();
        if self.kind == Kind::Response && self.status == 101 {
            self.plan = Plan::Upgrade;
        }
        let has_body = self.flags.is_chunked || self.length > 0;
        let is_over = self.plan != Plan::AsHead
            || self.asked_upgrade && !has_body
            || matches!(self.status, 100..=103 | 204 | 304) && self.kind == Kind::Response;
        self.state = if is_over {
            State::End
        } else if self.flags.is_chunked {
            State::Body(BodyState::Size)
        } else if self.flags.has_coding {
            match self.kind {
                Kind::Request => return Err(Fault::UnknownCoding),
                Kind::Response => State::Body(BodyState::UntilClose),
            }
        } else if !self.flags.has_length {
            match self.needs_eof() {
                true => State::Body(BodyState::UntilClose),
                false => State::End,
            }
        } else if self.length == 0 {
            State::End
        } else {
            State::Body(BodyState::Length)
        };
        Ok(())
    }

    /// Returns the body bytes at `at`. There is at least one.
    pub(super) fn body_piece(&mut self, input: &[u8], at: &mut usize) -> Part {
        let start = *at;
        if self.state == State::Body(BodyState::UntilClose) {
            *at = input.len();
            return Part::Body(start..*at);
        }
        let there = (input.len() - start) as u64;
        let size = there.min(self.length);
        self.length -= size;
        // Not above the length of the input.
        *at = start + size as usize;
        if self.length == 0 {
            self.state = match self.state {
                State::Body(BodyState::Chunk) => State::Body(BodyState::ChunkCr),
                _ => State::End,
            };
        }
        Part::Body(start..*at)
    }

    /// Takes one byte of the framing of a chunk.
    pub(super) fn chunk_frame(
        &mut self,
        body: BodyState,
        input: &[u8],
        at: &mut usize,
    ) -> Result<(), Fault> {
        let byte = input[*at];
        let next = match body {
            BodyState::Size | BodyState::SizeRest => return self.chunk_size(body, byte, at),
            BodyState::SizeLf => match byte {
                b'\n' => {
                    *at += 1;
                    self.begin_chunk();
                    return Ok(());
                }
                _ => return Err(Fault::Strict),
            },
            BodyState::ChunkCr => match byte {
                b'\r' => BodyState::ChunkLf,
                b'\n' => {
                    *at += 1;
                    return Err(Fault::CrExpected);
                }
                _ => return Err(Fault::Strict),
            },
            BodyState::ChunkLf if byte == b'\n' => BodyState::Size,
            BodyState::ChunkLf => return Err(Fault::Strict),
            _ => return self.extension(body, input, at),
        };
        *at += 1;
        self.state = State::Body(next);
        Ok(())
    }

    fn chunk_size(&mut self, body: BodyState, byte: u8, at: &mut usize) -> Result<(), Fault> {
        let is_first = body == BodyState::Size;
        if is_first {
            self.length = 0;
            self.size = 0;
        }
        let next = match byte {
            _ if hex_digit(byte).is_some() => {
                let digit = hex_digit(byte).unwrap_or(0);
                let longer = self.length.checked_mul(16);
                let longer = longer.and_then(|length| length.checked_add(digit));
                let Some(longer) = longer else {
                    *at += 1;
                    return Err(Fault::InvalidChunkSize);
                };
                self.length = longer;
                BodyState::SizeRest
            }
            b'\r' if !is_first => BodyState::SizeLf,
            b';' if !is_first => BodyState::Extension,
            b'\n' if !is_first => {
                *at += 1;
                return Err(Fault::CrExpected);
            }
            _ => {
                *at += usize::from(matches!(byte, b' ' | b'\t') && !is_first);
                return Err(Fault::InvalidChunkSize);
            }
        };
        *at += 1;
        self.state = State::Body(next);
        Ok(())
    }

    /// The line with the size has ended.
    fn begin_chunk(&mut self) {
        self.size = 0;
        self.state = if self.length == 0 {
            self.flags.is_trailing = true;
            State::Field(FieldState::Start)
        } else {
            State::Body(BodyState::Chunk)
        };
    }

    /// Takes one byte of an extension. Its size is checked when a name or a value is over, and at
    /// the end of the input.
    fn extension(&mut self, body: BodyState, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        let stepped = self.extension_byte(body, input[*at], at);
        let is_quoted = matches!(
            self.state,
            State::Body(BodyState::Quoted | BodyState::QuotedPair)
        );
        let is_inside = is_quoted || self.state == State::Body(body);
        let is_over = stepped.is_err() || !is_inside || *at == input.len();
        match is_over && self.size > MAX_CHUNK_EXTENSIONS {
            true => Err(Fault::ChunkExtensionsOverflow),
            false => stepped,
        }
    }

    fn extension_byte(&mut self, body: BodyState, byte: u8, at: &mut usize) -> Result<(), Fault> {
        let next = match (body, byte) {
            (BodyState::Extension, b' ' | b'\r') => {
                *at += 1;
                return Err(Fault::Strict);
            }
            (BodyState::Extension, _) => {
                self.state = State::Body(BodyState::ExtensionName);
                return Ok(());
            }
            (BodyState::ExtensionName, b'=') => BodyState::ExtensionValue,
            (BodyState::ExtensionValue, b'"') => BodyState::Quoted,
            (BodyState::ExtensionName | BodyState::ExtensionValue, _) if is(byte, TOKEN) => body,
            (BodyState::Quoted, b'"') => BodyState::AfterQuoted,
            (BodyState::Quoted, b'\\') => BodyState::QuotedPair,
            (BodyState::Quoted, _) if is(byte, QUOTED) => body,
            (BodyState::QuotedPair, _) if is(byte, VALUE) => BodyState::Quoted,
            (BodyState::Quoted | BodyState::QuotedPair, _) => {
                *at += 1;
                return Err(Fault::Strict);
            }
            (_, b';') => BodyState::Extension,
            (_, b'\r') => BodyState::SizeLf,
            (_, b'\n') => return Err(Fault::CrExpected),
            (BodyState::AfterQuoted, _) => return Err(Fault::Strict),
            _ => {
                *at += 1;
                return Err(Fault::Strict);
            }
        };
        // Node counts names and values, without the signs between them.
        let is_sign = !matches!(body, BodyState::Quoted | BodyState::QuotedPair)
            && matches!(byte, b';' | b'=' | b'\r');
        self.size += usize::from(!is_sign);
        *at += 1;
        self.state = State::Body(next);
        Ok(())
    }
}
