//! The parser against any bytes and any cuts.

use super::*;

/// What a parser found, without the cuts of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    messages: Vec<Message>,
    fault: Option<Fault>,
    rest: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Message {
    method: &'static str,
    status: u16,
    line: Vec<u8>,
    version: (u8, u8),
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    keep_alive: bool,
    upgrade: bool,
    body: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    ended: bool,
}

fn owned(head: &Head) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = head.fields();
    fields
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

fn feed(parser: &mut Parser, piece: &[u8], found: &mut Found) {
    let mut at = 0;
    loop {
        match parser.next(piece, &mut at) {
            Ok(Part::NeedMore) => return assert_eq!(at, piece.len()),
            Ok(Part::Head) => {
                let head = parser.take_head(None);
                if head.is_upgrade() {
                    parser.upgrade();
                }
                found.messages.push(Message {
                    method: head.method().map_or("", Method::name),
                    status: head.status(),
                    line: head.line().to_vec(),
                    version: head.version(),
                    headers: owned(&head),
                    keep_alive: head.keeps_alive(),
                    upgrade: head.is_upgrade(),
                    ..Message::default()
                });
            }
            Ok(Part::Body(range)) => {
                assert!(!range.is_empty());
                let message = found.messages.last_mut().unwrap();
                message.body.extend_from_slice(&piece[range]);
            }
            Ok(Part::End) => end(parser, found),
            Ok(Part::Rest) => return found.rest.extend_from_slice(&piece[at..]),
            Err(fault) => {
                assert!(at <= piece.len());
                found.fault = Some(fault);
                return;
            }
        }
    }
}

fn end(parser: &mut Parser, found: &mut Found) {
    let message = found.messages.last_mut().unwrap();
    message.ended = true;
    message.trailers = parser
        .take_trailers()
        .map_or(Vec::new(), |head| owned(&head));
}

/// Parses the pieces, and then the end of the input.
fn parse(kind: Kind, pieces: &[&[u8]]) -> Found {
    let mut parser = Parser::new(kind, Limits::default());
    let mut found = Found::default();
    for piece in pieces {
        feed(&mut parser, piece, &mut found);
        if found.fault.is_some() {
            return found;
        }
    }
    match parser.finish() {
        Ok(Part::End) => end(&mut parser, &mut found),
        Ok(_) => {}
        Err(fault) => found.fault = Some(fault),
    }
    found
}

fn request(bytes: &str) -> Found {
    parse(Kind::Request, &[bytes.as_bytes()])
}

fn response(bytes: &str) -> Found {
    parse(Kind::Response, &[bytes.as_bytes()])
}

fn fault(bytes: &str) -> Option<Fault> {
    request(bytes).fault
}

/// A small generator of pseudo-random numbers: the same inputs in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn of<'a>(&mut self, list: &[&'a [u8]]) -> &'a [u8] {
        list[self.below(list.len())]
    }
}

/// Pieces of messages that are worth joining at random.
const WORDS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\n",
    b"POST /a?b#c HTTP/1.1\r\n",
    b"CONNECT h:1 HTTP/1.1\r\n",
    b"PUT http://u@h/ HTTP/1.0\r\n",
    b"GET /\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 304\r\n",
    b"HTTP/1.0 100 Continue\r\n",
    b"Host: h\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length:  0 \r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Connection: keep-alive, Upgrade\r\n",
    b"Connection: close\r\n",
    b"Upgrade: x\r\n",
    b"A:\r\n",
    b"a-b: \xffx \t\r\n",
    b"\r\n",
    b"abc",
    b"3\r\nabc\r\n",
    b"2;n=\"q\\\"\";m\r\nab\r\n",
    b"0\r\n",
    b"T: 1\r\n",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b"\0",
    b":",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

fn random_bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    if random.below(2) == 0 {
        // The order of a message: a first line, header lines, an empty line.
        bytes.extend_from_slice(random.of(&WORDS[..8]));
        for _ in 0..random.below(4) {
            bytes.extend_from_slice(random.of(&WORDS[8..18]));
        }
        bytes.extend_from_slice(b"\r\n");
    }
    for _ in 0..1 + random.below(12) {
        bytes.extend_from_slice(random.of(WORDS));
    }
    for _ in 0..random.below(3) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[at] = random.below(256) as u8,
            1 => bytes.insert(at, random.below(256) as u8),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            bytes.push(b'G');
        }
    }
    bytes
}

// H56.
#[test]
fn any_bytes_cut_anywhere_give_the_same_messages_and_faults() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..20_000 {
        let bytes = random_bytes(&mut random);
        let kind = [Kind::Request, Kind::Response][round % 2];
        let whole = parse(kind, &[&bytes]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(kind, &single), whole, "{:?}", bytes.escape_ascii());
        let (first, last) = bytes.split_at(random.below(bytes.len()));
        assert_eq!(
            parse(kind, &[first, last]),
            whole,
            "{:?}",
            bytes.escape_ascii()
        );
    }
}

fn encode(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (major, minor) = message.version;
    let mut add = |part: &[u8]| bytes.extend_from_slice(part);
    add(message.method.as_bytes());
    add(b" ");
    add(&message.line);
    // A line without a version means 0.9, and the preface of HTTP/2 is a request only without one.
    if message.version != (0, 9) {
        add(format!(" HTTP/{major}.{minor}").as_bytes());
    }
    add(b"\r\n");
    let mut is_chunked = false;
    for (name, value) in &message.headers {
        add(name);
        add(b": ");
        add(value);
        add(b"\r\n");
        is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding") && !value.is_empty();
    }
    add(b"\r\n");
    if !is_chunked {
        add(&message.body);
        return bytes;
    }
    if !message.body.is_empty() {
        add(format!("{:x}\r\n", message.body.len()).as_bytes());
        add(&message.body);
        add(b"\r\n");
    }
    add(b"0\r\n");
    for (name, value) in &message.trailers {
        add(name);
        add(b":");
        add(value);
        add(b"\r\n");
    }
    add(b"\r\n");
    bytes
}

#[test]
fn an_accepted_request_written_again_is_parsed_to_the_same() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut accepted = 0;
    for _ in 0..40_000 {
        let found = parse(Kind::Request, &[&random_bytes(&mut random)]);
        for message in found.messages.iter().filter(|message| message.ended) {
            let again = parse(Kind::Request, &[&encode(message)]);
            assert_eq!(again.fault, None, "{message:?}");
            assert_eq!(again.messages[0], *message);
            accepted += 1;
        }
    }
    assert!(accepted > 1000, "the test accepts too little: {accepted}");
}

#[test]
fn memory_stays_below_the_limit_of_the_head_whatever_comes() {
    let endless: [&[u8]; 4] = [
        b"GET /aaaaaaaaaaaaaaaa",
        b"GET / HTTP/1.1\r\na:",
        b"GET / HTTP/1.1\r\nTransfer-Encoding:",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ];
    for start in endless {
        let mut parser = Parser::new(Kind::Request, Limits::default());
        let mut found = Found::default();
        feed(&mut parser, start, &mut found);
        for _ in 0..40_000 {
            feed(&mut parser, b"x", &mut found);
            assert!(parser.head.size() <= MAX_HEADER_SIZE);
        }
        assert!(found.fault.is_some(), "{:?}", start.escape_ascii());
    }
}

#[test]
fn a_head_of_exactly_the_limit_is_refused_and_one_byte_less_is_not() {
    let head = |size: usize| format!("GET / HTTP/1.1\r\nab:  {}  \r\n\r\n", "x".repeat(size));
    // The URL, the name, the value and the two blanks behind it.
    let counted = 1 + 2 + 2;
    assert_eq!(
        fault(&head(MAX_HEADER_SIZE - counted)),
        Some(Fault::HeaderOverflow)
    );
    assert_eq!(fault(&head(MAX_HEADER_SIZE - counted - 1)), None);
}

#[test]
fn lengths_and_chunk_sizes_are_below_2_to_the_64() {
    let length = |text: &str| {
        fault(&format!(
            "POST / HTTP/1.1\r\nContent-Length: {text}\r\n\r\n"
        ))
    };
    assert_eq!(length("18446744073709551615"), Some(Fault::InvalidEofState));
    assert_eq!(
        length("18446744073709551616"),
        Some(Fault::ContentLengthOverflow)
    );
    assert_eq!(length("-1"), Some(Fault::InvalidContentLength));
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = |text: &str| fault(&format!("{head}{text}\r\n"));
    assert_eq!(chunk("ffffffffffffffff"), Some(Fault::InvalidEofState));
    assert_eq!(chunk("10000000000000000"), Some(Fault::InvalidChunkSize));
}

// H45.
#[test]
fn two_ways_to_frame_a_body_are_refused() {
    let both = "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = |both| fault(both).unwrap().message();
    let expected = "Parse Error: Transfer-Encoding can't be present with Content-Length";
    assert_eq!(text(both), expected);
    let both = "POST / HTTP/1.1\r\nTransfer-Encoding: x\r\nContent-Length: 1\r\n\r\n";
    let expected = "Parse Error: Content-Length can't be present with Transfer-Encoding";
    assert_eq!(text(both), expected);
    let empty = "POST / HTTP/1.1\r\nTransfer-Encoding: \r\n\r\n";
    assert_eq!(text(empty), "Parse Error: Empty Transfer-Encoding");
    let empty = "POST / HTTP/1.1\r\nContent-Length: \r\n\r\n";
    assert_eq!(text(empty), "Parse Error: Empty Content-Length");
    let twice = "POST / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n";
    assert_eq!(fault(twice), Some(Fault::UnexpectedContentLength));
    let last = "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n";
    let found = request(last);
    assert_eq!(found.fault, Some(Fault::UnknownCoding));
    assert_eq!(found.messages.len(), 1, "the head was returned before");
}

#[test]
fn only_so_many_lines_of_a_response_are_kept_but_all_are_used() {
    let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
    for n in 0..100 {
        text += &format!("h{n}: {n}\r\n");
    }
    text += "Connection: close\r\nContent-Length: 0\r\n\r\n";
    let limits = Limits {
        header_count: 40,
        ..Limits::default()
    };
    let mut parser = Parser::new(Kind::Response, limits);
    let mut found = Found::default();
    feed(&mut parser, text.as_bytes(), &mut found);
    assert_eq!(found.messages[0].headers.len(), 40);
    assert!(!found.messages[0].keep_alive);
}

#[test]
fn a_request_with_more_header_lines_or_trailers_than_the_limit_is_refused() {
    let lines = |count| {
        (0..count)
            .map(|n| format!("h{n}: {n}\r\n"))
            .collect::<String>()
    };
    let limits = Limits {
        header_count: 40,
        ..Limits::default()
    };
    for (headers, trailers, fault) in [
        (40, 40, None),
        (41, 0, Some(Fault::HeaderOverflow)),
        (10, 41, Some(Fault::HeaderOverflow)),
    ] {
        let (headers, trailers) = (lines(headers - 1), lines(trailers));
        let text = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{headers}\r\n0\r\n{trailers}\r\n"
        );
        let mut parser = Parser::new(Kind::Request, limits);
        let mut found = Found::default();
        feed(&mut parser, text.as_bytes(), &mut found);
        assert_eq!(found.fault, fault);
    }
}

/// Returns the fault of a request in one piece, and where it is.
fn fault_at(text: &str, header_size: usize) -> (Fault, usize) {
    let limits = Limits {
        header_size,
        ..Limits::default()
    };
    let (mut parser, mut at) = (Parser::new(Kind::Request, limits), 0);
    loop {
        match parser.next(text.as_bytes(), &mut at) {
            Ok(Part::NeedMore | Part::Rest) => panic!("{text} is refused"),
            Ok(Part::Head) => drop(parser.take_head(None)),
            Ok(_) => {}
            Err(fault) => return (fault, at),
        }
    }
}

// H39, H42.
#[test]
fn a_part_that_is_too_long_is_refused_where_it_ends() {
    let line = "GET / HTTP/1.1\r\n";
    let rows = [
        // A fault in a name or a URL is reported before its length.
        ("GET /aaaaaaaaaaaa HTTP/1.1\r\n", Fault::HeaderOverflow, 17),
        ("GET /aaaaaaaaaaaa\u{1} HTTP/1.1", Fault::InvalidUrl, 17),
        ("GET /aaaaaaaaaaaa", Fault::HeaderOverflow, 17),
        (
            &format!("{line}aaaaaaaaa: b\r\n"),
            Fault::HeaderOverflow,
            26,
        ),
        (
            &format!("{line}aaaaaaaaa b\r\n"),
            Fault::InvalidHeaderToken,
            25,
        ),
        (&format!("{line}aaaaaaaaa"), Fault::HeaderOverflow, 25),
        (
            &format!("{line}a: bbbbbbbb \r\n\r\n"),
            Fault::HeaderOverflow,
            29,
        ),
        (
            &format!("{line}a: bbbbbbbb\u{1}\r\n"),
            Fault::HeaderOverflow,
            27,
        ),
        (&format!("{line}a: bbbbbbbb\n"), Fault::HeaderOverflow, 27),
        (&format!("{line}a: bbbbbbbb"), Fault::HeaderOverflow, 27),
    ];
    for (text, fault, at) in rows {
        assert_eq!(fault_at(text, 10), (fault, at), "{text:?}");
    }
}

#[test]
fn a_value_that_the_parser_reads_is_refused_where_it_ends() {
    let line = "POST / HTTP/1.1\r\n";
    let rows = [
        ("Content-Length: 00000000003\r\n", Fault::HeaderOverflow, 45),
        (
            "Content-Length: 00000000003x\r\n",
            Fault::HeaderOverflow,
            44,
        ),
        (
            "Content-Length: 00000000003 x\r\n",
            Fault::HeaderOverflow,
            45,
        ),
        (
            "Transfer-Encoding: xxxxxxxxxxxx\r\n",
            Fault::HeaderOverflow,
            49,
        ),
        (
            "Transfer-Encoding: chunked   ,\r\n",
            Fault::HeaderOverflow,
            47,
        ),
    ];
    for (field, fault, at) in rows {
        let text = format!("{line}{field}\r\n");
        assert_eq!(fault_at(&text, 25), (fault, at), "{text:?}");
    }
    let length = format!("{line}Content-Length: 18446744073709551616\r\n\r\n");
    assert_eq!(fault_at(&length, 1000), (Fault::ContentLengthOverflow, 53));
    let size = format!("{line}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n");
    assert_eq!(fault_at(&size, 1000), (Fault::InvalidChunkSize, 64));
}

#[test]
fn extensions_that_are_too_long_are_refused_where_a_part_ends() {
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (start, long) = (head.len(), "x".repeat(17_000));
    let rows = [
        (format!("3;{long}\r\n"), 17_003),
        (format!("3;{long}=a\r\n"), 17_003),
        (format!("3;{long};a\r\n"), 17_003),
        (format!("3;{long} a\r\n"), 17_003),
        (format!("3;{long}\n"), 17_002),
        (format!("3;a={long}\r\n"), 17_005),
        (format!("3;a=\"{long}\"\r\n"), 17_006),
        (format!("3;a=\"\\\"{long}\\\"\"\r\n"), 17_010),
        (format!("3;a=\"{long}\u{1}\"\r\n"), 17_006),
        (format!("3;{long}"), 17_002),
    ];
    for (chunk, at) in rows {
        let text = format!("{head}{chunk}");
        let expected = (Fault::ChunkExtensionsOverflow, start + at);
        assert_eq!(fault_at(&text, 1000), expected, "{}", &chunk[..8]);
    }
}

#[test]
fn a_response_ends_by_its_length_its_chunks_or_the_connection() {
    let length = response("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert!(length.messages[0].ended && length.messages[0].keep_alive);
    let chunks = response("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    assert_eq!(chunks.messages[0].body, b"ok");
    let close = response("HTTP/1.1 200 OK\r\n\r\nall of this");
    assert_eq!(close.messages[0].body, b"all of this");
    assert!(close.messages[0].ended && !close.messages[0].keep_alive);
}

#[test]
fn responses_without_a_body_are_told_by_their_status() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n\
                HTTP/1.1 204\r\n\r\nHTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nrest";
    let found = response(text);
    let statuses: Vec<_> = found
        .messages
        .iter()
        .map(|message| message.status)
        .collect();
    assert_eq!(statuses, [100, 304, 204, 101]);
    assert!(
        found
            .messages
            .iter()
            .all(|message| message.ended && message.body.is_empty())
    );
    assert_eq!(found.rest, b"rest");
}

#[test]
fn a_skipped_body_is_not_waited_for() {
    let mut parser = Parser::new(Kind::Response, Limits::default());
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let mut at = 0;
    assert_eq!(parser.next(head, &mut at), Ok(Part::Head));
    parser.skip_body();
    drop(parser.take_head(None));
    assert_eq!(parser.next(head, &mut at), Ok(Part::End));
    assert_eq!(parser.next(head, &mut at), Ok(Part::NeedMore));
    assert!(!parser.is_inside());
}

// H19.
#[test]
fn bytes_behind_a_message_that_closes_are_refused() {
    let first = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(fault(&format!("{first}\r\n")), None);
    assert_eq!(fault(&format!("{first}GET")), Some(Fault::ClosedConnection));
}
