//! `node::fetch` beyond the recorded programs: compressed bodies, streams, what is refused, and
//! connections that nothing reads. All on the paused clock.
#![cfg(feature = "fetch-gzip")]

use crate::run_on_to_end;
use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use phaseloop::LoopHandle;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::fetch::Fetch;
use phaseloop_node::net::{self, LISTENING, Socket};
use phaseloop_node::stream::{CLOSE, Readable};
use phaseloop_node::{Emitter, Error, Reason, fetch, http, run_on, set_timeout, sleep};

use crate::util::http::with_any;
use crate::util::trace::paused;

/// Runs a program with a listening server.
fn with<F>(
    server: impl FnOnce() -> http::Server + 'static,
    program: impl FnOnce(http::Server, String) -> F + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    with_any(server, |server| {
        let url = format!("http://{}", server.address().unwrap());
        program(server, url)
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn cause(reason: &Reason) -> Option<String> {
    let error = reason.downcast_ref::<Error>()?;
    let cause = error.source()?.downcast_ref::<Error>()?;
    cause.code().map(str::to_owned)
}

/// A server that sends `body` with this coding.
fn packed(coding: &'static str, body: Vec<u8>) -> http::Server {
    http::create_server(move |_, response| {
        response.set_header("Content-Encoding", coding);
        response.end(&body);
    })
}

#[test]
fn h095_a_compressed_body_is_unpacked() {
    let text = "a text that is long enough to be packed ".repeat(10_000);
    let body = gzip(text.as_bytes());
    with(
        || packed("gzip", body),
        |_, url| async move {
            let response = fetch(&url).send().await.unwrap();
            assert_eq!(
                response.headers().get("content-encoding").as_deref(),
                Some("gzip")
            );
            assert!(response.text().await.unwrap() == text);
        },
    );
}

#[test]
fn h095_a_bomb_is_unpacked_only_as_far_as_it_is_read() {
    let body = gzip(&vec![0; 64 << 20]);
    with(
        || packed("gzip", body),
        |_, url| async move {
            let response = fetch(&url).send().await.unwrap();
            let body = response.body().unwrap();
            sleep(1000).await.unwrap();
            assert!(body.length() <= 256 << 10, "{} bytes wait", body.length());
            let read = Rc::new(Cell::new(0));
            let count = read.clone();
            let stops = body.clone();
            body.on_data(move |bytes| {
                count.set(count.get() + bytes.len());
                if count.get() > 8 << 20 {
                    stops.destroy(None);
                }
            });
            once(&body, CLOSE).await.unwrap();
            assert!(read.get() < 9 << 20);
        },
    );
}

/// 64 MiB of zeros, packed by Node.
#[cfg(feature = "fetch-brotli")]
const BROTLI_BOMB: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffff\
    c13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bd\
    ffcbffff3ffc1300715800a07bff07";

#[cfg(feature = "fetch-brotli")]
#[test]
fn h095_brotli_is_unpacked_only_as_far_as_it_is_read() {
    let digits = BROTLI_BOMB.as_bytes().chunks(2);
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let body: Vec<u8> = digits.map(byte).collect();
    with(
        || packed("br", body),
        |_, url| async move {
            let response = fetch(&url).send().await.unwrap();
            let body = response.body().unwrap();
            sleep(1000).await.unwrap();
            assert!(body.length() <= 256 << 10, "{} bytes wait", body.length());
            let all = fetch(&url).send().await.unwrap().bytes().await.unwrap();
            assert!(all.len() == 64 << 20 && all.iter().all(|&byte| byte == 0));
        },
    );
}

#[cfg(feature = "fetch-brotli")]
#[test]
fn h095_broken_brotli_fails_with_the_code_of_its_decoder() {
    with(
        || packed("br", b"this is not brotli at all".to_vec()),
        |_, url| async move {
            let failed = fetch(&url).send().await.unwrap().text().await.unwrap_err();
            assert_eq!(failed.to_string(), "terminated");
            assert_eq!(
                cause(&failed).as_deref(),
                Some("ERR__ERROR_FORMAT_PADDING_1")
            );
        },
    );
}

#[test]
fn h095_a_body_with_too_many_codings_is_refused() {
    with(
        || packed("gzip, gzip, gzip, gzip, gzip, gzip", gzip(b"x")),
        |_, url| async move {
            let failed = fetch(&url).send().await.unwrap_err();
            assert_eq!(failed.to_string(), "fetch failed");
            let error: &Error = failed.downcast_ref().unwrap();
            let cause = error.source().unwrap().to_string();
            assert!(
                cause.contains("too many content-encodings in response: 6"),
                "{cause}"
            );
        },
    );
}

#[test]
fn h095_a_broken_compressed_body_fails() {
    with(
        || packed("gzip", b"this is not gzip at all, not even nearly".to_vec()),
        |_, url| async move {
            let failed = fetch(&url).send().await.unwrap().text().await.unwrap_err();
            assert_eq!(failed.to_string(), "terminated");
            assert_eq!(cause(&failed).as_deref(), Some("Z_DATA_ERROR"));
        },
    );
}

#[test]
fn h092_a_response_that_is_dropped_closes_its_connection() {
    let endless = || {
        http::create_server(|_, response| {
            response.write("the first of many");
        })
    };
    with(endless, |server, url| async move {
        let response = fetch(&url).send().await.unwrap();
        assert_eq!(server.connections(), 1);
        drop(response);
        sleep(10).await.unwrap();
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn h095_a_response_that_was_received_frees_its_connection_without_a_reader() {
    let plain = || http::create_server(|_, response| response.end("short"));
    with(plain, |server, url| async move {
        for _ in 0..3 {
            let response = fetch(&url).send().await.unwrap();
            sleep(10).await.unwrap();
            drop(response);
        }
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn h095_free_connections_do_not_keep_the_loop_alive() {
    let (mut event_loop, handle, _) = paused();
    let start = handle.now();
    run_on_to_end(&mut event_loop, async {
        let server = net::create_server(|socket| {
            socket.unref();
            socket.on_data_this(|socket, _| {
                socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            });
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let url = format!("http://{}", server.address().unwrap());
        assert_eq!(
            fetch(&url).send().await.unwrap().text().await.unwrap(),
            "ok"
        );
        server.unref();
    });
    assert_eq!(handle.now() - start, std::time::Duration::ZERO);
}

#[test]
fn h091_a_cloned_body_is_read_twice() {
    let text = "0123456789".repeat(20_000);
    let body = text.clone();
    with(
        || http::create_server(move |_, response| response.end(&*body)),
        |_, url| async move {
            let one = fetch(&url).send().await.unwrap();
            let two = one.clone_body().unwrap();
            assert!(one.text().await.unwrap() == text);
            assert!(two.text().await.unwrap() == text);
            assert_eq!(one.clone_body().unwrap_err().name(), "TypeError");
        },
    );
}

/// A server that answers with the coding and the body of the request.
fn echo() -> http::Server {
    http::create_server(|request, response| {
        if request.url() == "/again" {
            response.write_head(307, [("Location", "/")]);
            request.resume();
            return response.end(());
        }
        let coding = request
            .headers()
            .get("transfer-encoding")
            .unwrap_or("-")
            .to_owned();
        response.write(format!("{coding} "));
        request.readable().pipe(response.writable());
    })
}

#[test]
fn h095_a_stream_is_sent_in_chunks_and_only_once() {
    with(echo, |_, url| async move {
        let stream = || Readable::from_iter(["one ", "two"].map(|part| part.as_bytes().to_vec()));
        let sent = fetch(&url).method("POST").body(&stream());
        let text = sent.send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "chunked one two");
        let again = fetch(format!("{url}/again")).method("POST").body(&stream());
        assert_eq!(again.send().await.unwrap_err().to_string(), "fetch failed");
        let bytes = fetch(format!("{url}/again")).method("POST").body("whole");
        let text = bytes.send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "- whole");
    });
}

#[test]
fn h096_bad_requests_are_refused() {
    with(echo, |server, url| async move {
        let refused = async |request: Fetch| {
            let failed = request.send().await.unwrap_err();
            assert_eq!(failed.name(), "TypeError");
            cause(&failed).unwrap_or_default()
        };
        assert_eq!(refused(fetch("/relative")).await, "ERR_INVALID_URL");
        assert_eq!(refused(fetch("http://user:password@127.0.0.1/")).await, "");
        for method in ["", "a b", "CONNECT", "trace"] {
            assert_eq!(refused(fetch(&url).method(method)).await, "");
        }
        for (name, value) in [("a b", "c"), ("a", "b\r\nc: d"), ("a", "\u{20ac}")] {
            assert_eq!(refused(fetch(&url).header(name, value)).await, "");
        }
        let invalid = [
            "transfer-encoding",
            "keep-alive",
            "upgrade",
            "connection",
            "content-length",
        ];
        for name in invalid {
            let code = refused(fetch(&url).header(name, "x y")).await;
            assert_eq!(code, "UND_ERR_INVALID_ARG", "{name}");
        }
        let expects = refused(fetch(&url).header("expect", "x")).await;
        assert_eq!(expects, "UND_ERR_NOT_SUPPORTED");
        let wrong = fetch(&url)
            .method("POST")
            .body("abc")
            .header("content-length", "2");
        assert_eq!(refused(wrong).await, "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH");
        assert_eq!(server.connections(), 0, "nothing was sent");
    });
}

#[test]
fn h096_a_head_that_never_comes_is_an_error_after_five_minutes() {
    let silent = || http::create_server(|_, _| ());
    with(silent, |_, url| async move {
        let failed = fetch(&url).send().await.unwrap_err();
        assert_eq!(cause(&failed).as_deref(), Some("UND_ERR_HEADERS_TIMEOUT"));
    });
}

#[test]
fn a_loop_that_is_dropped_frees_what_it_fetches() {
    let dropped = Rc::new(RefCell::new(()));
    let witness = dropped.clone();
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = net::create_server(|socket: &Socket| {
            socket.on(ERROR, |_| ());
            socket.on_data_this(|socket, _| {
                socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
            });
        });
        server.listen(("127.0.0.1", 0));
        let address: SocketAddr = server.address().unwrap();
        let response = fetch(format!("http://{address}")).send().await.unwrap();
        response.text().then(move |_| drop(witness));
        sleep(10).await.unwrap();
        phaseloop_node::process::exit(3);
    });
    assert_eq!(exit.code(), 3, "{exit:?}");
    drop(event_loop);
    assert_eq!(Rc::strong_count(&dropped), 1);
}

// Values of Node.
#[test]
fn data_urls_are_read_without_a_connection() {
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async {
        let response = fetch("data:text/html;base64,aGVsbG8=#part")
            .send()
            .await
            .unwrap();
        assert_eq!((response.status(), response.status_text()), (200, "OK"));
        assert_eq!(response.url(), "data:text/html;base64,aGVsbG8=");
        let kind = response.headers().get("content-type");
        assert_eq!(kind.as_deref(), Some("text/html"));
        assert_eq!(response.text().await.unwrap(), "hello");
        let head = fetch("data:,x").method("HEAD").send().await.unwrap();
        assert!(head.body().is_none());
        for (url, why) in [
            ("data:nocomma", "failed to fetch the data URL"),
            ("about:blank", "about scheme is not supported"),
            ("file:///etc/passwd", "not implemented... yet..."),
            ("ftp://a/", "unknown scheme"),
        ] {
            let failed = fetch(url).send().await.unwrap_err();
            let error = failed.downcast_ref::<Error>().unwrap();
            assert_eq!(error.message(), "fetch failed", "{url}");
            assert_eq!(error.source().unwrap().to_string(), why, "{url}");
        }
    });
    assert_eq!(exit.code(), 0);
}

#[test]
fn h092_a_body_that_stops_is_an_error_after_five_minutes() {
    let server = || {
        http::create_server(|_, response| {
            response.write("begin");
            let response = response.clone();
            set_timeout(299_000, move || _ = response.write("more"));
        })
    };
    with(server, |_, url| async move {
        let before = LoopHandle::current().now();
        let response = fetch(&url).send().await.unwrap();
        let failed = response.text().await.unwrap_err();
        assert_eq!(cause(&failed).as_deref(), Some("UND_ERR_BODY_TIMEOUT"));
        let after = LoopHandle::current().now();
        assert_eq!((after - before).as_secs(), 599);
    });
}
