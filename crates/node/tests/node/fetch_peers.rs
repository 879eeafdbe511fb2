//! `node::fetch` with servers that mean it harm, or are broken: the causes of its errors, and where it
//! does not go. The names and codes are those of Node. All on the paused clock.
#![cfg(feature = "fetch-gzip")]

use std::cell::Cell;
use std::error::Error as _;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::net::{self, LISTENING};
use phaseloop_node::{Emitter, Error, Reason, fetch, run_on, set_timeout};

use crate::util::trace::paused;

/// Runs a program with a server that answers each request with `bytes`, and then resets the connection or
/// leaves it open. The program gets the server's URL.
fn with<F>(bytes: impl Into<Vec<u8>>, resets: bool, program: impl FnOnce(String) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let bytes: Rc<[u8]> = bytes.into().into();
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = net::create_server(move |socket| {
            let bytes = bytes.clone();
            socket.on(ERROR, |_| ());
            socket.set_no_delay(true);
            let has_answered = Cell::new(false);
            socket.on_data_this(move |socket, _| {
                // The request may come in pieces.
                if has_answered.replace(true) {
                    return;
                }
                socket.write(bytes.to_vec());
                let socket = socket.clone();
                if resets {
                    // The client has read the bytes by then.
                    set_timeout(100, move || socket.reset_and_destroy());
                }
            });
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(format!("http://{}/", server.address().unwrap())).await;
        server.close();
    });
    assert_eq!(exit.code(), 0);
}

/// The message of an error, and the name, code and message of its cause.
fn parts_of(reason: &Reason) -> [String; 4] {
    let error = reason.downcast_ref::<Error>().unwrap();
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let cause: &Error = cause.unwrap();
    let code = cause.code().unwrap_or_default();
    [error.message(), cause.name(), code, cause.message()].map(str::to_owned)
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn h092_a_body_that_breaks_fails_with_the_reason() {
    let cases = [
        ("zz\r\n".to_owned(), ["HTTPParserError", ""]),
        (
            "2\r\nok\r\n0\r\nBad Name: x\r\n\r\n".to_owned(),
            ["HTTPParserError", ""],
        ),
        (
            format!("2\r\nok\r\n0\r\nX: {}\r\n\r\n", "y".repeat(20_000)),
            ["HeadersOverflowError", "UND_ERR_HEADERS_OVERFLOW"],
        ),
    ];
    for (chunks, cause) in cases {
        with(format!("{CHUNKED}{chunks}"), false, move |url| async move {
            let response = fetch(url).send().await.unwrap();
            let [message, name, code, _] = parts_of(&response.text().await.unwrap_err());
            assert_eq!(message, "terminated");
            assert_eq!([name, code], cause);
        });
    }
    with(format!("{CHUNKED}5\r\nhel"), true, |url| async move {
        let response = fetch(url).send().await.unwrap();
        let failed = parts_of(&response.text().await.unwrap_err());
        assert_eq!(
            failed,
            ["terminated", "Error", "ECONNRESET", "read ECONNRESET"]
        );
    });
}

#[test]
fn h096_no_request_is_sent_to_a_port_of_another_protocol() {
    with("", false, |_| async {
        for port in [1, 22, 25, 6000, 6697, 10080] {
            let url = format!("http://127.0.0.1:{port}/");
            let failed = parts_of(&fetch(url).send().await.unwrap_err());
            assert_eq!(failed, ["fetch failed", "Error", "", "bad port"]);
        }
    });
    let redirection =
        "HTTP/1.1 302 R\r\nLocation: http://127.0.0.1:25/\r\nContent-Length: 0\r\n\r\n";
    with(redirection, false, |url| async {
        let failed = parts_of(&fetch(url).send().await.unwrap_err());
        assert_eq!(failed, ["fetch failed", "Error", "", "bad port"]);
    });
}

#[test]
fn h090_a_status_that_ends_no_request_is_refused() {
    for status in ["101", "000", "099"] {
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        with(answer, false, |url| async {
            let failed = fetch(url).send().await.unwrap_err();
            let error = failed.downcast_ref::<Error>().unwrap();
            assert_eq!(error.message(), "fetch failed");
        });
    }
}

#[test]
fn h090_all_headers_of_a_head_within_the_limit_are_kept() {
    let head = format!(
        "HTTP/1.1 200 OK\r\n{}Content-Length: 2\r\n\r\nok",
        "A: b\r\n".repeat(2500)
    );
    with(head, false, |url| async {
        let response = fetch(url).send().await.unwrap();
        let all = response.headers().get("a").unwrap();
        assert_eq!(all.split(", ").count(), 2500);
        assert_eq!(response.text().await.unwrap(), "ok");
    });
}

#[test]
fn h094_locations_are_joined_as_other_headers_are() {
    let twice =
        "HTTP/1.1 302 R\r\nLocation: http://127.0.0.1\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n";
    with(twice, false, |url| async {
        let failed = parts_of(&fetch(url).send().await.unwrap_err());
        let why = [
            "fetch failed",
            "TypeError",
            "ERR_INVALID_URL",
            "Invalid URL",
        ];
        assert_eq!(failed, why);
    });
}
