//! The first line: of a request or of a response.

use super::classes::{HOST, LETTER, URL, digit, is, run};
use super::fields::FieldState;
use super::methods::Method;
use super::{Fault, Kind, Parser, State};

/// A place in the first line. The next byte belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineState {
    Method,
    /// The blanks behind the method.
    BeforeUrl,
    Url(UrlState),
    /// Behind the CR of a line that has no version.
    UrlLf,
    /// Right behind the blank after the URL.
    AfterUrl,
    /// Right behind a line that has no version.
    AfterNoVersion,
    /// The blanks before the version.
    BeforeProtocol,
    /// At the first letter of the protocol.
    Protocol,
    ProtocolRest,
    Slash,
    Major,
    Dot,
    Minor,
    /// Behind the version of a request.
    VersionCr,
    VersionLf,
    /// The preface of HTTP/2, behind its version.
    Preface,
    /// Behind the version of a response.
    BeforeStatus,
    /// A digit of the status: 0 to 2.
    Status(u8),
    AfterStatus,
    Reason,
    ReasonLf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlState {
    Start,
    Scheme,
    /// One of the two slashes behind the scheme: 0 or 1.
    Slash(u8),
    Host,
    /// Behind the `@` of a host.
    HostAfterAt,
    Path,
    Query,
    Fragment,
}

impl Parser {
    pub(super) fn line(
        &mut self,
        line: LineState,
        input: &[u8],
        at: &mut usize,
    ) -> Result<(), Fault> {
        let byte = input[*at];
        match line {
            LineState::Method => return self.method(input, at),
            LineState::Url(url) => return self.url(url, input, at),
            LineState::Reason => return self.reason(input, at),
            LineState::BeforeUrl if byte != b' ' => {
                let is_connect = self.head.method == Some(Method::CONNECT);
                let first = if is_connect {
                    UrlState::Host
                } else {
                    UrlState::Start
                };
                self.state = State::Line(LineState::Url(first));
                return Ok(());
            }
            // Node counts these two bytes as bytes of the URL.
            LineState::AfterUrl | LineState::AfterNoVersion if matches!(byte, b'\t' | 0x0c) => {
                *at += 1;
                return Err(Fault::InvalidUrl);
            }
            LineState::AfterUrl => {
                self.state = State::Line(LineState::BeforeProtocol);
                self.usual_version(input, at);
                return Ok(());
            }
            LineState::AfterNoVersion => {
                self.state = State::Field(FieldState::First);
                return Ok(());
            }
            LineState::BeforeProtocol if byte != b' ' => {
                self.state = State::Line(LineState::Protocol);
                return Ok(());
            }
            _ => {}
        }
        let next = self.line_byte(line, byte, at)?;
        self.state = next;
        *at += 1;
        Ok(())
    }

    /// Takes the rest of the line at once if it is the usual one.
    fn usual_version(&mut self, input: &[u8], at: &mut usize) {
        const USUAL: &[u8] = b"HTTP/1.1\r\n";
        let method = self.head.method;
        let fits = method.is_some_and(|method| method != Method::PRI && method.fits(b"HTTP"));
        if fits && input[*at..].starts_with(USUAL) {
            *at += USUAL.len();
            self.head.version = (1, 1);
            self.state = State::Field(FieldState::First);
        }
    }

    /// Takes one byte of the line. Returns the state behind it.
    fn line_byte(&mut self, line: LineState, byte: u8, at: &mut usize) -> Result<State, Fault> {
        let next = match line {
            LineState::UrlLf => match byte {
                b'\n' => return Ok(self.without_version()),
                _ => return Err(Fault::InvalidUrl),
            },
            LineState::Protocol => {
                let words: [&[u8]; 3] = [b"HTTP", b"RTSP", b"ICE"];
                let word = words.into_iter().find(|word| word[0] == byte);
                self.word = (word.ok_or(Fault::InvalidConstant)?, 1);
                LineState::ProtocolRest
            }
            LineState::ProtocolRest => {
                if !self.match_word(byte, Fault::InvalidConstant)? {
                    return Ok(State::Line(line));
                }
                if self
                    .head
                    .method
                    .is_some_and(|method| !method.fits(self.word.0))
                {
                    *at += 1;
                    return Err(Fault::InvalidConstant);
                }
                LineState::Slash
            }
            LineState::Slash if byte == b'/' => LineState::Major,
            LineState::Slash => return Err(Fault::InvalidConstant),
            LineState::Major | LineState::Dot | LineState::Minor => {
                return self.version_byte(line, byte, at);
            }
            LineState::VersionCr | LineState::VersionLf | LineState::Preface => {
                return self.after_version(line, byte, at);
            }
            LineState::BeforeStatus
            | LineState::Status(_)
            | LineState::AfterStatus
            | LineState::ReasonLf => return self.status_byte(line, byte, at),
            // The blanks; what else may follow is handled by the caller.
            LineState::BeforeUrl | LineState::BeforeProtocol => line,
            LineState::Method
            | LineState::Url(_)
            | LineState::Reason
            | LineState::AfterUrl
            | LineState::AfterNoVersion => {
                unreachable!("the caller handles these states")
            }
        };
        Ok(State::Line(next))
    }

    /// The line of a request has ended without a version, which means HTTP/0.9.
    fn without_version(&mut self) -> State {
        self.head.version = (0, 9);
        State::Line(LineState::AfterNoVersion)
    }

    fn method(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        if self.method.1 == 0 {
            // The two methods that are worth a shortcut.
            let shortcuts: [(&[u8], Method); 2] =
                [(b"GET ", Method::GET), (b"POST ", Method::POST)];
            for (start, method) in shortcuts {
                if input[*at..].starts_with(start) {
                    *at += start.len();
                    self.end_method(method);
                    return Ok(());
                }
            }
        }
        while let Some(byte) = input.get(*at) {
            let (name, length) = &mut self.method;
            if *byte == b' ' {
                let method = Method::named(&name[..*length]).ok_or(Fault::InvalidMethod)?;
                *at += 1;
                self.end_method(method);
                return Ok(());
            }
            name[*length] = *byte;
            if !Method::starts_with(&name[..=*length]) {
                return Err(Fault::InvalidMethod);
            }
            *length += 1;
            *at += 1;
        }
        Ok(())
    }

    fn end_method(&mut self, method: Method) {
        self.head.method = Some(method);
        self.state = State::Line(LineState::BeforeUrl);
    }

    fn url(&mut self, url: UrlState, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        let rest = &input[*at..];
        let class = match url {
            UrlState::Scheme => LETTER,
            UrlState::Host => HOST,
            UrlState::Path | UrlState::Query | UrlState::Fragment => URL,
            _ => 0,
        };
        let length = run(rest, class);
        self.size += length;
        self.head.add(&rest[..length]);
        *at += length;
        let Some(byte) = rest.get(length) else {
            return self.check_size();
        };
        let Some(next) = url.after(*byte) else {
            return self.end_url(url, *byte, at);
        };
        // The host begins at a byte that it judges itself.
        if !matches!((url, next), (UrlState::Start, UrlState::Scheme)) {
            self.size += 1;
            self.head.add(&[*byte]);
            *at += 1;
        }
        self.state = State::Line(LineState::Url(next));
        match *at == input.len() {
            true => self.check_size(),
            false => Ok(()),
        }
    }

    /// A byte that does not belong to the URL: its end, or a fault.
    fn end_url(&mut self, url: UrlState, byte: u8, at: &mut usize) -> Result<(), Fault> {
        let may_end = !matches!(url, UrlState::Start | UrlState::Scheme | UrlState::Slash(_));
        match byte {
            b' ' | b'\r' if may_end => {}
            // Node takes it for the end of a line without a version. A proxy in front may not.
            b'\n' if may_end => return Err(Fault::CrExpected),
            // Node counts these bytes as used.
            b' ' | b'\r' | b'\n' | b'\t' | 0x0c => {
                *at += 1;
                return Err(Fault::InvalidUrl);
            }
            b'@' if url == UrlState::HostAfterAt => {
                *at += 1;
                return Err(Fault::InvalidUrl);
            }
            _ => return Err(Fault::InvalidUrl),
        }
        self.check_size()?;
        *at += 1;
        self.head.end_line();
        self.state = match byte {
            b' ' => State::Line(LineState::AfterUrl),
            _ => State::Line(LineState::UrlLf),
        };
        Ok(())
    }

    fn version_byte(&mut self, line: LineState, byte: u8, at: &mut usize) -> Result<State, Fault> {
        let digit = digit(byte).map(|digit| digit as u8);
        let next = match line {
            LineState::Major => {
                self.head.version.0 = digit.ok_or(Fault::InvalidVersion)?;
                LineState::Dot
            }
            LineState::Dot if byte == b'.' => LineState::Minor,
            LineState::Dot => return Err(Fault::InvalidVersion),
            _ => {
                self.head.version.1 = digit.ok_or(Fault::InvalidVersion)?;
                if !matches!(self.head.version, (0, 9) | (1, 0 | 1) | (2, 0)) {
                    *at += 1;
                    return Err(Fault::InvalidVersion);
                }
                match (self.kind, self.head.method) {
                    (Kind::Response, _) => LineState::BeforeStatus,
                    (Kind::Request, Some(Method::PRI)) => {
                        self.word = (b"\r\n\r\nSM\r\n\r\n", 0);
                        LineState::Preface
                    }
                    (Kind::Request, _) => LineState::VersionCr,
                }
            }
        };
        Ok(State::Line(next))
    }

    fn after_version(&mut self, line: LineState, byte: u8, at: &mut usize) -> Result<State, Fault> {
        match (line, byte) {
            (LineState::VersionCr, b'\r') => Ok(State::Line(LineState::VersionLf)),
            (LineState::VersionCr, b'\n') => {
                *at += 1;
                Err(Fault::InvalidVersion)
            }
            (LineState::VersionCr, _) => Err(Fault::InvalidVersion),
            (LineState::VersionLf, b'\n') => Ok(State::Field(FieldState::First)),
            (LineState::VersionLf, _) => Err(Fault::Strict),
            _ => {
                if self.match_word(byte, Fault::InvalidVersion)? {
                    *at += 1;
                    return Err(Fault::PausedH2Upgrade);
                }
                Ok(State::Line(line))
            }
        }
    }

    fn status_byte(&mut self, line: LineState, byte: u8, at: &mut usize) -> Result<State, Fault> {
        let next = match (line, byte) {
            (LineState::BeforeStatus, b' ') => LineState::Status(0),
            (LineState::BeforeStatus, _) => return Err(Fault::InvalidVersion),
            (LineState::Status(place), _) => {
                let digit = digit(byte).ok_or(Fault::InvalidStatus)?;
                self.head.status = self.head.status * 10 + digit as u16;
                match place {
                    2 => LineState::AfterStatus,
                    _ => LineState::Status(place + 1),
                }
            }
            (LineState::AfterStatus, b' ') => LineState::Reason,
            (LineState::AfterStatus, b'\r') => LineState::ReasonLf,
            (LineState::AfterStatus, b'\n') => {
                *at += 1;
                return Err(Fault::InvalidStatus);
            }
            (LineState::AfterStatus, _) => return Err(Fault::InvalidStatus),
            // Node takes a second CR for the LF.
            (_, b'\n' | b'\r') => {
                self.head.end_line();
                return Ok(State::Field(FieldState::First));
            }
            _ => return Err(Fault::Strict),
        };
        Ok(State::Line(next))
    }

    fn reason(&mut self, input: &[u8], at: &mut usize) -> Result<(), Fault> {
        let rest = &input[*at..];
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let length = end.unwrap_or(rest.len());
        *at += length;
        self.count(length)?;
        self.head.add(&rest[..length]);
        match rest.get(length) {
            None => return Ok(()),
            Some(b'\r') => self.state = State::Line(LineState::ReasonLf),
            Some(_) => {
                *at += 1;
                return Err(Fault::CrExpected);
            }
        }
        *at += 1;
        Ok(())
    }
}

impl UrlState {
    /// Returns the state behind `byte`, a byte that is not of the state's own class. `None` if the
    /// URL does not continue with it.
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Start, b'/' | b'*') => Self::Path,
            (Self::Start, _) if is(byte, LETTER) => Self::Scheme,
            (Self::Scheme, b':') => Self::Slash(0),
            (Self::Slash(0), b'/') => Self::Slash(1),
            (Self::Slash(_), b'/') => Self::Host,
            (Self::Host | Self::HostAfterAt, b'/') => Self::Path,
            (Self::Host | Self::HostAfterAt, b'?') | (Self::Path, b'?') => Self::Query,
            (Self::Host, b'@') => Self::HostAfterAt,
            (Self::HostAfterAt, _) if is(byte, HOST) => Self::Host,
            (Self::Query, b'?') => Self::Query,
            (Self::Path | Self::Query, b'#') => Self::Fragment,
            (Self::Fragment, b'?' | b'#') => Self::Fragment,
            _ => return None,
        })
    }
}
