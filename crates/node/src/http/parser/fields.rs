//! Header lines and trailers.

use super::classes::{TOKEN, VALUE, digit, is, run};
use super::{Fault, Kind, Parser, State};

/// A place in the header lines. The next byte belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldState {
    /// The first line behind the request or status line.
    First,
    /// The start of a line.
    Start,
    Name,
    /// The blanks before the value.
    Blank,
    /// Behind the CR of an empty value.
    EmptyLf,
    /// Behind the line of an empty value.
    AfterEmpty,
    Value,
    /// The value of `Content-Length`, and the blanks behind it.
    Length,
    LengthBlank,
    /// The value of `Transfer-Encoding`.
    Coding,
    ValueLf,
    /// Behind the line of a value.
    AfterValue,
    /// Behind the CR of the empty line.
    LastLf,
}

/// The headers that the parser reads itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    None,
    Connection,
    ContentLength,
    TransferEncoding,
    Upgrade,
}

impl Special {
    fn named(name: &[u8]) -> Self {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        match name.len() {
            7 if is(b"upgrade") => Self::Upgrade,
            10 if is(b"connection") => Self::Connection,
            14 if is(b"content-length") => Self::ContentLength,
            16 if is(b"proxy-connection") => Self::Connection,
            17 if is(b"transfer-encoding") => Self::TransferEncoding,
            _ => Self::None,
        }
    }
}

impl Special {
    /// Whether the header says how long the body is.
    fn is_framing(self) -> bool {
        matches!(self, Self::ContentLength | Self::TransferEncoding)
    }
}

/// A place in a list of codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// So many bytes of `chunked` were seen at the start of an element.
    Word(u8),
    /// Behind the word, and perhaps blanks.
    Chunked,
    /// Inside another element.
    Other,
    /// The blanks behind a comma.
    Blank,
}

/// The tokens of `Connection` that matter.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(|token| {
        let start = token.iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        let token = &token[start.unwrap_or(token.len())..];
        let end = token.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
        &token[..end.map_or(0, |end| end + 1)]
    })
}

impl Parser {
    pub(super) fn field(
        &mut self,
        field: FieldState,
        input: &[u8],
        at: &mut usize,
    ) -> Result<(), Fault> {
        let byte = input[*at];
        match field {
            FieldState::Name => return self.name(input, at),
            FieldState::Value => return self.value(input, at),
            FieldState::First if byte == b' ' => {
                *at += 1;
                return Err(Fault::UnexpectedSpace);
            }
            FieldState::First | FieldState::Start => {
                while self.usual_line(input, at)? {}
                return match input.get(*at) {
                    Some(byte) => self.line_start(*byte, at),
                    None => Ok(()),
                };
            }
            FieldState::Blank => return self.blank(input, at),
            FieldState::AfterEmpty => return self.after_empty(byte, at),
            FieldState::Length | FieldState::LengthBlank | FieldState::Coding => {
                return self.framing_value(field, input, at);
            }
            FieldState::AfterValue => {
                if matches!(byte, b' ' | b'\t') {
                    return Err(Fault::InvalidHeaderToken);
                }
                return self.end_field();
            }
            FieldState::EmptyLf | FieldState::ValueLf | FieldState::LastLf => {}
        }
        let (next, otherwise) = match field {
            FieldState::EmptyLf => (State::Field(FieldState::AfterEmpty), Fault::Strict),
            FieldState::ValueLf => (State::Field(FieldState::AfterValue), Fault::LfExpected),
            _ => (self.after_last_line(), Fault::Strict),
        };
        if byte != b'\n' {
            return Err(otherwise);
        }
        *at += 1;
        self.state = next;
        if next == State::Head {
            self.end_head();
        }
        Ok(())
    }

    fn after_last_line(&self) -> State {
        if self.flags.is_trailing {
            State::End
        } else {
            State::Head
        }
    }

    /// Takes a whole header line at once if it is a usual one: complete, with a value, and of no
    /// meaning for the framing, within the limit. Returns whether it was.
    fn usual_line(&mut self, input: &[u8], at: &mut usize) -> Result<bool, Fault> {
        let rest = &input[*at..];
        let name = run(rest, TOKEN);
        if name == 0 || rest.get(name) != Some(&b':') {
            return Ok(false);
        }
        let is_value = |byte: &u8| !matches!(byte, b' ' | b'\t');
        let blanks = rest[name + 1..].iter().position(is_value);
        let Some(start) = blanks.map(|blanks| name + 1 + blanks) else {
            return Ok(false);
        };
        let end = start + run(&rest[start..], VALUE);
        let is_whole = rest[end..].starts_with(b"\r\n") && rest.get(end + 2).is_some_and(is_value);
        let special = Special::named(&rest[..name]);
        let size = self.size + name + end - start;
        let is_short = size < self.limits.header_size;
        if end == start || !is_whole || !is_short || special.is_framing() {
            return Ok(false);
        }
        self.size = size;
        self.special = special;
        self.flags.has_upgrade |= special == Special::Upgrade;
        self.field_start = self.head.size();
        self.head.add(&rest[..name]);
        self.name_end = self.head.size();
        self.head.add(&rest[start..end]);
        *at += end + 2;
        self.end_field().map(|()| true)
    }

    fn line_start(&mut self, byte: u8, at: &mut usize) -> Result<(), Fault> {
        match byte {
            b'\r' => {
                *at += 1;
                self.state = State::Field(FieldState::LastLf);
            }
            b'\n' => {
                *at += 1;
                return Err(Fault::InvalidHeaderToken);
            }
            _ if is(byte, TOKEN) => {
                self.field_start = self.head.size();
                self.state = State::Field(FieldState::Name);
            }
            _ => return Err(Fault::InvalidHeaderToken),
        }
        Ok(())
    }

    fn name(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        let rest = &input[*at..];
        let length = run(rest, TOKEN);
        self.head.add(&rest[..length]);
        *at += length;
        let Some(byte) = rest.get(length) else {
            return self.count(length);
        };
        let special = Special::named(self.head.since(self.field_start));
        if *byte != b':' {
            // Node counts the blank behind a header that it knows as used.
            *at += usize::from(*byte == b' ' && special != Special::None);
            return Err(Fault::InvalidHeaderToken);
        }
        *at += 1;
        self.count(length)?;
        self.special = special;
        self.name_end = self.head.size();
        match special {
            Special::TransferEncoding if self.flags.has_length => {
                return Err(Fault::CodingWithLength);
            }
            Special::ContentLength if self.flags.has_coding => {
                return Err(Fault::LengthWithCoding);
            }
            _ => {}
        }
        self.state = State::Field(FieldState::Blank);
        Ok(())
    }

    fn blank(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        while let Some(b' ' | b'\t') = input.get(*at) {
            *at += 1;
        }
        let Some(byte) = input.get(*at) else {
            return Ok(());
        };
        match byte {
            b'\r' => {
                *at += 1;
                self.state = State::Field(FieldState::EmptyLf);
                Ok(())
            }
            b'\n' => {
                *at += 1;
                Err(Fault::InvalidHeaderToken)
            }
            _ => self.value_start(at),
        }
    }

    /// The value has at least one byte.
    fn value_start(&mut self, at: &mut usize) -> Result<(), Fault> {
        self.state = State::Field(match self.special {
            Special::TransferEncoding => {
                if self.flags.is_chunked && self.kind == Kind::Request {
                    *at += 1;
                    return Err(Fault::InvalidTransferEncoding);
                }
                self.flags.has_coding = true;
                self.flags.is_chunked = false;
                self.coding = Coding::Word(0);
                FieldState::Coding
            }
            Special::ContentLength => {
                if self.flags.has_length {
                    return Err(Fault::UnexpectedContentLength);
                }
                FieldState::Length
            }
            Special::Upgrade => {
                self.flags.has_upgrade = true;
                FieldState::Value
            }
            Special::Connection | Special::None => FieldState::Value,
        });
        Ok(())
    }

    fn value(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        let rest = &input[*at..];
        let length = run(rest, VALUE);
        self.head.add(&rest[..length]);
        *at += length;
        let ended = match rest.get(length) {
            None => Ok(()),
            Some(byte) => self.end_value(*byte, at),
        };
        self.count(length).and(ended)
    }

    /// Takes a byte of a value that the parser reads itself.
    fn framing_value(
        &mut self,
        field: FieldState,
        input: &[u8],
        at: &mut usize,
    ) -> Result<(), Fault> {
        let byte = input[*at];
        let stepped = match field {
            FieldState::Coding => self.coding(byte, at),
            _ => self.length(field, byte, at),
        };
        let is_over = stepped.is_err()
            || self.state == State::Field(FieldState::ValueLf)
            || *at == input.len();
        match is_over {
            true => self.check_size().and(stepped),
            false => stepped,
        }
    }

    /// A byte that does not belong to the value: its end, or a fault.
    fn end_value(&mut self, byte: u8, at: &mut usize) -> Result<(), Fault> {
        match byte {
            b'\r' => {
                *at += 1;
                self.state = State::Field(FieldState::ValueLf);
                Ok(())
            }
            b'\n' => Err(Fault::CrExpected),
            _ => Err(Fault::InvalidHeaderToken),
        }
    }

    fn length(&mut self, field: FieldState, byte: u8, at: &mut usize) -> Result<(), Fault> {
        let digit = digit(byte).filter(|_| field == FieldState::Length);
        if let Some(digit) = digit {
            let longer = self.length.checked_mul(10);
            let longer = longer.and_then(|length| length.checked_add(digit));
            let Some(longer) = longer else {
                *at += 1;
                return Err(Fault::ContentLengthOverflow);
            };
            self.length = longer;
        } else if matches!(byte, b' ' | b'\t') {
            self.state = State::Field(FieldState::LengthBlank);
        } else if matches!(byte, b'\r' | b'\n') {
            self.flags.has_length = true;
            return self.end_value(byte, at);
        } else {
            return Err(Fault::InvalidContentLength);
        }
        self.value_byte(byte, at);
        Ok(())
    }

    fn coding(&mut self, byte: u8, at: &mut usize) -> Result<(), Fault> {
        const WORD: &[u8] = b"chunked";
        match self.coding {
            Coding::Word(seen) => {
                let expected = WORD[usize::from(seen)];
                if byte.to_ascii_lowercase() != expected {
                    self.coding = Coding::Other;
                    return Ok(());
                }
                self.coding = match usize::from(seen) + 1 {
                    all if all == WORD.len() => Coding::Chunked,
                    _ => Coding::Word(seen + 1),
                };
            }
            Coding::Chunked => match byte {
                b' ' => {}
                b'\r' | b'\n' => {
                    self.flags.is_chunked = true;
                    return self.end_value(byte, at);
                }
                b',' if self.kind == Kind::Request => {
                    *at += 1;
                    return Err(Fault::InvalidTransferEncoding);
                }
                b',' => self.coding = Coding::Word(0),
                _ => {
                    self.coding = Coding::Other;
                    return Ok(());
                }
            },
            Coding::Other => match byte {
                b',' => self.coding = Coding::Blank,
                _ if is(byte, VALUE) => {}
                _ => return self.end_value(byte, at),
            },
            Coding::Blank => {
                if !matches!(byte, b' ' | b'\t') {
                    self.coding = Coding::Word(0);
                    return Ok(());
                }
            }
        }
        self.value_byte(byte, at);
        Ok(())
    }

    fn value_byte(&mut self, byte: u8, at: &mut usize) {
        self.size += 1;
        self.head.add(&[byte]);
        *at += 1;
    }

    fn after_empty(&mut self, byte: u8, at: &mut usize) -> Result<(), Fault> {
        if matches!(byte, b' ' | b'\t') {
            *at += 1;
            return Err(Fault::InvalidHeaderToken);
        }
        match self.special {
            Special::ContentLength => return Err(Fault::EmptyContentLength),
            Special::TransferEncoding => return Err(Fault::EmptyTransferEncoding),
            _ => {}
        }
        self.end_field()
    }

    /// A header line is complete.
    fn end_field(&mut self) -> Result<(), Fault> {
        if self.special == Special::Connection {
            for token in tokens(self.head.since(self.name_end)) {
                let is = |word: &[u8]| token.eq_ignore_ascii_case(word);
                match token.len() {
                    5 => self.flags.close |= is(b"close"),
                    7 => self.flags.connection_upgrade |= is(b"upgrade"),
                    10 => self.flags.keep_alive |= is(b"keep-alive"),
                    _ => {}
                }
            }
        }
        let limit = self.limits.header_count;
        self.head.end_field(self.field_start, self.name_end, limit);
        self.seen += 1;
        self.state = State::Field(FieldState::Start);
        // H13, H14. The lines of a response above the limit are dropped.
        match self.kind == Kind::Request && limit > 0 && self.seen > limit {
            true => Err(Fault::HeaderOverflow),
            false => Ok(()),
        }
    }
}
