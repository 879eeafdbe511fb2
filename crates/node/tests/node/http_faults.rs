//! A server of `node::http` among peers that mean it harm, or are broken: slow ones, ones that
//! never read, cut and reset connections, floods. Each test checks three things: the bytes of the
//! answer, what the server keeps of the connection, and that others are served.
//!
//! The tests run on the paused clock: on Linux a time is exact, however busy the machine is.

use crate::util::http::{BAD_REQUEST, LAST_GET, Peer, TIMED_OUT, get, plain, with};
use crate::util::trace::ms;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::LoopHandle;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, IncomingMessage, Server, ServerResponse};
use phaseloop_node::net::LISTENING;
use phaseloop_node::stream::{CLOSE, Readable, pipeline};
use phaseloop_node::{Deferred, Emitter, set_interval, set_timeout, sleep};

/// Checks how much time has passed on the paused clock, which goes on when the loop has nothing to
/// do. On Linux a byte arrives in the call that sends it. Elsewhere the clock goes on while a byte
/// is on its way, so that only the lower bound holds.
fn has_passed(start: Instant, at_least: Duration, at_most: Duration) {
    let passed = LoopHandle::current().now() - start;
    assert!(passed >= at_least, "{passed:?}");
    assert!(
        passed <= at_most || !cfg!(target_os = "linux"),
        "{passed:?}"
    );
}

#[test]
fn h037_clients_that_drip_their_heads_get_408_and_delay_no_other() {
    with(plain, |server| async move {
        let start = LoopHandle::current().now();
        let drips: Vec<_> = (0..50)
            .map(|_| {
                let peer = Peer::send(&server, "GET / HTTP/1.1\r\nHost: a\r\n");
                let socket = peer.socket.clone();
                set_interval(1000, move |timer| {
                    if socket.destroyed() || !socket.write("X: y\r\n") {
                        timer.close();
                    }
                });
                peer
            })
            .collect();
        for _ in 0..5 {
            sleep(10_000).await.unwrap();
            assert_eq!(get(&server).await, "/last");
        }
        for peer in &drips {
            assert_eq!(peer.rest().await, TIMED_OUT);
        }
        // The limit is one minute, and a look at all connections takes place every half.
        has_passed(start, ms(60_000), ms(90_100));
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn h037_connections_without_a_byte_get_408() {
    with(plain, |server| async move {
        let silent: Vec<_> = (0..500).map(|_| Peer::send(&server, "")).collect();
        sleep(1000).await.unwrap();
        assert_eq!(server.connections(), silent.len());
        assert_eq!(get(&server).await, "/last");
        for peer in &silent {
            assert_eq!(peer.rest().await, TIMED_OUT);
        }
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn h037_a_body_that_drips_gets_408_unless_an_answer_was_begun() {
    let begins = |req: &IncomingMessage, res: &ServerResponse| {
        req.resume();
        req.on(ERROR, |_| ());
        if req.url() == "/begun" {
            res.write("begun");
        }
        if req.url() == "/last" {
            res.end("/last");
        }
    };
    with(
        move || http::create_server(begins),
        |server| async move {
            let start = LoopHandle::current().now();
            let peers = ["/", "/begun"].map(|path| {
                let head =
                    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
                let peer = Peer::send(&server, head);
                let socket = peer.socket.clone();
                set_interval(1000, move |timer| {
                    if socket.destroyed() || !socket.write("x") {
                        timer.close();
                    }
                });
                peer
            });
            assert_eq!(peers[0].rest().await, TIMED_OUT);
            let begun = peers[1].rest().await;
            assert!(begun.ends_with("5\r\nbegun\r\n"), "{begun}");
            has_passed(start, ms(300_000), ms(330_100));
        },
    );
}

#[test]
fn h036_idle_connections_are_closed_after_six_seconds() {
    with(plain, |server| async move {
        let start = LoopHandle::current().now();
        let request = "GET /idle HTTP/1.1\r\nHost: a\r\n\r\n";
        let idle: Vec<_> = (0..500).map(|_| Peer::send(&server, request)).collect();
        sleep(1000).await.unwrap();
        assert_eq!(server.connections(), idle.len());
        for peer in &idle {
            assert!(peer.rest().await.ends_with("\r\n\r\n/idle"));
        }
        has_passed(start, ms(6000), ms(6100));
        assert_eq!(server.connections(), 0);
    });
}

/// An endless stream, and how many bytes were taken from it.
fn endless() -> (Readable<Vec<u8>>, Rc<Cell<usize>>) {
    let taken = Rc::new(Cell::new(0));
    let count = taken.clone();
    let stream = Readable::bytes()
        .read(move |stream, _| {
            count.set(count.get() + 16_384);
            stream.push(vec![b'x'; 16_384]);
        })
        .build();
    (stream, taken)
}

/// More than the kernel buffers for one connection on the loopback interface.
const KERNEL_BUFFERS: usize = 32 << 20;

#[test]
fn h034_a_peer_that_never_reads_stops_the_stream_that_is_piped_to_it() {
    let taken = Rc::new(RefCell::new(None));
    let kept = taken.clone();
    let endless = move |req: &IncomingMessage, res: &ServerResponse| {
        if req.url() == "/last" {
            return res.end("/last");
        }
        let (stream, count) = endless();
        let ended = Deferred::new();
        kept.replace(Some((count, res.clone(), ended.promise())));
        pipeline(&stream)
            .into(res.writable())
            .then(move |result| ended.resolve(result.is_err()));
    };
    with(
        move || http::create_server(endless),
        |server| async move {
            let peer = Peer::connect(&server);
            peer.socket
                .write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
            sleep(100).await.unwrap();
            let (count, res, failed) = taken.take().unwrap();
            let sent = count.get();
            assert!(
                sent < KERNEL_BUFFERS,
                "{sent} bytes for a peer that never reads"
            );
            assert!(res.length() <= 2 * 65_536 && res.need_drain());
            assert_eq!(get(&server).await, "/last", "others are served meanwhile");
            sleep(3_600_000).await.unwrap();
            assert_eq!(count.get(), sent, "nothing is taken while nothing is read");
            peer.socket.destroy(None);
            assert!(failed.await.unwrap(), "the pipeline ends with its peer");
            assert_eq!(server.connections(), 0);
        },
    );
}

#[test]
fn h018_a_peer_that_asks_on_and_never_reads_is_not_read_any_more() {
    const ASKED: usize = 20_000;
    let handled = Rc::new(Cell::new(0));
    let count = handled.clone();
    let answer = move |req: &IncomingMessage, res: &ServerResponse| {
        count.set(count.get() + 1);
        match req.url() {
            "/last" => res.end("/last"),
            _ => res.end(vec![b'x'; 100_000]),
        }
    };
    with(
        move || http::create_server(answer),
        |server| async move {
            let peer = Peer::connect(&server);
            peer.socket
                .write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(ASKED));
            sleep(1000).await.unwrap();
            let before = handled.get();
            // The kernel has room for some answers, and one read brings many requests.
            assert!(
                before < 5000,
                "{before} handlers for a peer that never reads"
            );
            sleep(1000).await.unwrap();
            assert_eq!(handled.get(), before);
            peer.socket.destroy(None);
            sleep(1).await.unwrap();
            assert_eq!(server.connections(), 0);
        },
    );
}

#[test]
fn unanswered_requests_of_one_connection_are_bounded_and_closed_with_it() {
    let (handled, closed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (count, gone) = (handled.clone(), closed.clone());
    let kept = Rc::<RefCell<Vec<ServerResponse>>>::default();
    let keeps = move |req: &IncomingMessage, res: &ServerResponse| {
        if req.url() == "/last" {
            return res.end("/last");
        }
        count.set(count.get() + 1);
        let gone = gone.clone();
        req.on(CLOSE, move |()| gone.set(gone.get() + 1));
        kept.borrow_mut().push(res.clone());
    };
    with(
        move || http::create_server(keeps),
        |server| async move {
            let peer = Peer::connect(&server);
            peer.socket
                .write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100_000));
            sleep(1000).await.unwrap();
            // One read may bring 2,000 requests more than the limit of 1,000.
            assert!(handled.get() < 4000, "{} requests wait", handled.get());
            peer.socket.destroy(None);
            // The connection is not read, and its end not seen: it is given up after five minutes.
            sleep(331_000).await.unwrap();
            assert_eq!(server.connections(), 0);
            assert_eq!(closed.get(), handled.get(), "each request has closed");
        },
    );
}

#[test]
fn h017_a_pipeline_of_a_thousand_requests_in_one_packet_is_answered_in_order() {
    const REQUESTS: usize = 1000;
    // The later a request, the earlier its answer is there.
    let reversed = |req: &IncomingMessage, res: &ServerResponse| {
        let (text, res) = (req.url().to_owned(), res.clone());
        let number: usize = text[1..].parse().unwrap_or(REQUESTS);
        set_timeout((REQUESTS + 1 - number) as f64, move || res.end(text));
    };
    with(
        move || http::create_server(reversed),
        |server| async move {
            let requests: String = (1..REQUESTS)
                .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: a\r\n\r\n"))
                .collect();
            let answers = Peer::send(&server, requests + LAST_GET).rest().await;
            let bodies: Vec<_> = answers.split("HTTP/1.1 200 OK\r\n").skip(1).collect();
            assert_eq!(bodies.len(), REQUESTS);
            for (n, answer) in bodies.iter().enumerate() {
                let body = answer.split("\r\n\r\n").nth(1).unwrap();
                let expected = format!("/{}", n + 1);
                assert_eq!(
                    body,
                    if n + 1 == REQUESTS {
                        "/last"
                    } else {
                        &expected
                    }
                );
            }
        },
    );
}

#[test]
fn a_flood_of_requests_keeps_no_timer_from_firing() {
    // On the clock of the machine: the paused clock stands still while a loop is busy.
    let exit = phaseloop_node::run(async {
        let server = plain();
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let peer = Peer::connect(&server).reading();
        let request = "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
        peer.socket.write(request.clone());
        let (got, socket) = (peer.got.clone(), peer.socket.clone());
        // Each answer brings the next requests: the connection is never idle.
        peer.socket.on_data(move |_| {
            got.borrow_mut().clear();
            if socket.writable().length() < request.len() {
                socket.write(request.clone());
            }
        });
        for _ in 0..5 {
            sleep(10).await.unwrap();
        }
        assert_eq!(get(&server).await, "/last");
        peer.socket.destroy(None);
        server.close();
    });
    assert_eq!(exit.code(), 0);
}

/// How far a peer comes before it goes away.
const STAGES: [&str; 6] = [
    "",
    "GET /",
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// A server that writes without end to all but the last client, and counts what becomes of its
/// requests.
fn writes_on(closed: Rc<Cell<usize>>) -> Server {
    http::create_server(move |req, res| {
        if req.url() == "/last" {
            return res.end("/last");
        }
        let (res, count) = (res.clone(), closed.clone());
        req.on(ERROR, |_| ());
        req.resume();
        res.on(CLOSE, move |()| count.set(count.get() + 1));
        set_interval(1, move |timer| {
            if res.destroyed() || !res.write("more") {
                timer.close();
            }
        });
    })
}

#[test]
fn h051_peers_that_reset_their_connections_are_forgotten() {
    let closed = Rc::new(Cell::new(0));
    let count = closed.clone();
    with(
        move || writes_on(count),
        |server| async move {
            for stage in STAGES {
                let stream = std::net::TcpStream::connect(server.address().unwrap()).unwrap();
                std::io::Write::write_all(&mut &stream, stage.as_bytes()).unwrap();
                sleep(20).await.unwrap();
                assert_eq!(server.connections(), 1, "{stage:?}");
                // A close with a linger of zero is a reset.
                let linger = Some(Duration::ZERO);
                socket2::SockRef::from(&stream).set_linger(linger).unwrap();
                drop(stream);
                sleep(20).await.unwrap();
                assert_eq!(server.connections(), 0, "{stage:?}");
            }
            assert_eq!(closed.get(), 3, "each response was closed");
        },
    );
}

#[test]
fn h043_h055_peers_that_end_their_side_get_400_inside_a_message_and_no_later_answer() {
    let closed = Rc::new(Cell::new(0));
    let count = closed.clone();
    with(
        move || writes_on(count),
        |server| async move {
            for stage in STAGES {
                let peer = Peer::send(&server, stage);
                peer.socket.end(());
                let answer = peer.rest().await;
                match stage {
                    "" => assert_eq!(answer, ""),
                    _ if stage.ends_with("\r\n\r\n") && stage.starts_with("GET") => {
                        assert!(!answer.contains("\r\n0\r\n"), "the answer is cut: {answer}");
                    }
                    _ => assert!(answer.ends_with(BAD_REQUEST), "{stage:?}: {answer}"),
                }
                assert_eq!(server.connections(), 0, "{stage:?}");
            }
            assert_eq!(closed.get(), 3, "each response was closed");
        },
    );
}
