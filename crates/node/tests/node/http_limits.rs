//! The limits of a server of `node::http`: heads, trailers, chunks, extensions and lengths that are
//! meant to exhaust it. The tests run on the paused clock.

use crate::util::http::{BAD_REQUEST, HEAD_TOO_LARGE, Peer, TOO_LARGE, plain, with};
use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{self, IncomingMessage, ServerResponse};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, net, sleep};

/// Bytes that are refused because of a limit, and what the server answers.
fn bombs() -> Vec<(&'static str, String, &'static str)> {
    let head = |rest: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{rest}");
    let chunked = |rest: &str| head(&format!("Transfer-Encoding: chunked\r\n\r\n{rest}"));
    vec![
        (
            "a long value",
            head(&format!("X: {}\r\n", "v".repeat(17_000))),
            HEAD_TOO_LARGE,
        ),
        (
            "a long name",
            head(&format!("{}: v\r\n", "N".repeat(17_000))),
            HEAD_TOO_LARGE,
        ),
        (
            "many headers",
            head(&"X: y\r\n".repeat(17_000)),
            HEAD_TOO_LARGE,
        ),
        (
            "a long url",
            format!("GET /{} HTTP/1.1\r\n", "u".repeat(17_000)),
            HEAD_TOO_LARGE,
        ),
        (
            "a long trailer",
            chunked(&format!("0\r\nT: {}\r\n", "v".repeat(17_000))),
            HEAD_TOO_LARGE,
        ),
        (
            "a long extension",
            chunked(&format!("1;{}", "e".repeat(17_000))),
            TOO_LARGE,
        ),
        (
            "a long quoted extension",
            chunked(&format!("1;a=\"{}", "e".repeat(17_000))),
            TOO_LARGE,
        ),
        (
            "a chunk of 2^64 bytes",
            chunked("10000000000000000\r\n"),
            BAD_REQUEST,
        ),
        (
            "a length of 2^64",
            head("Content-Length: 18446744073709551616\r\n\r\n"),
            BAD_REQUEST,
        ),
    ]
}

#[test]
fn h039_what_exceeds_a_limit_is_refused_however_it_is_cut() {
    let answers_later = |req: &IncomingMessage, res: &ServerResponse| {
        req.on(ERROR, |_| ());
        let res = res.clone();
        if req.url() == "/last" {
            return res.end("/last");
        }
        req.on(END, move |()| res.end("end"));
        req.resume();
    };
    with(
        move || http::create_server(answers_later),
        |server| async move {
            for (name, bytes, expected) in bombs() {
                for piece in [bytes.len(), 1460, 97] {
                    let peer = Peer::connect(&server).reading();
                    for piece in bytes.as_bytes().chunks(piece) {
                        if peer.socket.destroyed() {
                            break;
                        }
                        peer.socket.write(piece.to_vec());
                        sleep(1).await.unwrap();
                    }
                    assert_eq!(peer.rest().await, expected, "{name} in pieces of {piece}");
                }
            }
            assert_eq!(server.connections(), 0);
        },
    );
}

#[test]
fn h039_a_megabyte_of_headers_is_not_read_to_its_end() {
    let read = Rc::new(Cell::new(0));
    let count = read.clone();
    let server = move || {
        let server = plain();
        server.on(net::CONNECTION, move |socket| {
            let count = count.clone();
            socket.on_this(CLOSE, move |socket, ()| count.set(socket.bytes_read()));
        });
        server
    };
    with(server, |server| async move {
        let lines = [
            "X: y\r\n".repeat(1 << 18),
            format!("X: {}\r\n", "y".repeat(1 << 20)),
        ];
        for lines in lines {
            let peer = Peer::send(&server, format!("GET / HTTP/1.1\r\n{lines}"));
            peer.rest().await;
            assert!(read.get() <= 2 * 65_536, "{} bytes were read", read.get());
        }
    });
}

#[test]
fn h004_many_chunks_of_one_byte_are_one_body() {
    const CHUNKS: usize = 1 << 17;
    let counts = |req: &IncomingMessage, res: &ServerResponse| {
        let (size, res) = (Rc::new(Cell::new(0)), res.clone());
        let count = size.clone();
        req.on_data(move |bytes| count.set(count.get() + bytes.len()));
        let url = req.url().to_owned();
        req.on(END, move |()| match &*url {
            "/last" => res.end("/last"),
            _ => res.end(size.get().to_string()),
        });
    };
    with(
        move || http::create_server(counts),
        |server| async move {
            let head = "POST /chunks HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
            let body = "1\r\nx\r\n".repeat(CHUNKS);
            let peer = Peer::send(&server, format!("{head}{body}0\r\n\r\n"));
            let answer = peer.rest().await;
            assert!(answer.ends_with(&format!("\r\n\r\n{CHUNKS}")), "{answer}");
        },
    );
}

#[test]
fn a_declared_length_allocates_nothing() {
    let waits = |req: &IncomingMessage, res: &ServerResponse| {
        req.on(ERROR, |_| ());
        req.resume();
        if req.url() == "/last" {
            res.end("/last");
        }
    };
    with(
        move || http::create_server(waits),
        |server| async move {
            let bodies = [
                "Content-Length: 18446744073709551615\r\n\r\nx",
                "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
            ];
            for body in bodies {
                let peer = Peer::send(&server, format!("POST / HTTP/1.1\r\nHost: a\r\n{body}"));
                sleep(10).await.unwrap();
                assert_eq!((peer.text(), server.connections()), (String::new(), 1));
                // The body is cut.
                peer.socket.end(());
                assert_eq!(peer.rest().await, BAD_REQUEST);
            }
        },
    );
}

/// H13: hundreds of names are found in any case, and joined if they come again.
#[test]
fn h013_a_long_head_is_read_by_name() {
    let server = || {
        http::create_server(|request, response| {
            let headers = request.headers();
            let expected = (request.url() == "/long").then_some("1, 2");
            for n in 0..400 {
                assert_eq!(headers.get(&format!("X-{n}")), expected);
            }
            for n in 0..200 {
                let name = format!("{}-{}", if n < 100 { "R" } else { "r" }, n % 100);
                response.set_header(name, n);
            }
            for n in 0..50 {
                response.remove_header(&format!("R-{n}")).unwrap();
            }
            assert!(response.get_header("R-49").is_none());
            assert_eq!(response.get_header("R-50").unwrap(), "150");
            response.end(request.url());
        })
    };
    with(server, |server| async move {
        let lines = |value| (0..400).map(move |n| format!("x-{n}: {value}\r\n"));
        let lines: String = lines(1).chain(lines(2)).collect();
        let head = format!("GET /long HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{lines}\r\n");
        let peer = Peer::send(&server, head).reading();
        assert!(peer.rest().await.ends_with("/long"));
    });
}
