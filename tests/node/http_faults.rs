//! A server of `node::http` among peers that mean it harm, or are broken: slow ones, ones that
//! never read, cut and reset connections, floods and bombs. Each test checks three things: the
//! bytes of the answer, what the server keeps of the connection, and that others are served.
//!
//! The tests run on the paused clock: a time is exact, however busy the machine is.
#![cfg(all(unix, feature = "node"))]

use crate::util::trace::{ms, paused};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::LoopHandle;
use phaseloop::node::events::{ERROR, once};
use phaseloop::node::http::{self, IncomingMessage, Server, ServerResponse};
use phaseloop::node::net::{self, LISTENING, Socket};
use phaseloop::node::stream::{CLOSE, END, Readable, pipeline};
use phaseloop::node::{Deferred, Emitter, Promise, run_on, set_interval, set_timeout, sleep};

const BAD_REQUEST: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
const TOO_LARGE: &str = "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\n\r\n";
const HEAD_TOO_LARGE: &str =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n";

/// A request that ends its connection.
const LAST_GET: &str = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Runs a program with a listening server on the paused clock. The server is closed at the end.
fn with<F>(server: impl FnOnce() -> Server + 'static, program: impl FnOnce(Server) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = server();
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(server.clone()).await;
        assert_eq!(get(&server).await, "/last", "the next client is served");
        server.close();
    });
    assert_eq!(exit.code(), 0);
}

/// A server that answers each request with its URL.
fn plain() -> Server {
    http::create_server(|req, res| res.end_bytes(req.url()))
}

/// One end of a connection that speaks bytes.
#[derive(Clone)]
struct Peer {
    socket: Socket,
    got: Rc<RefCell<Vec<u8>>>,
    closed: Promise<()>,
}

impl Peer {
    fn connect(server: &Server) -> Self {
        Self::of(net::connect(server.address().unwrap()))
    }

    fn of(socket: Socket) -> Self {
        let (got, closed) = (Rc::<RefCell<Vec<u8>>>::default(), Deferred::new());
        let peer = Self {
            socket,
            got: got.clone(),
            closed: closed.promise(),
        };
        peer.socket.on(ERROR, |_| ());
        peer.socket.on(CLOSE, move |()| closed.resolve(()));
        peer
    }

    /// Connects, sends bytes, and reads all that comes.
    fn send(server: &Server, bytes: impl AsRef<[u8]>) -> Self {
        let peer = Self::connect(server).reading();
        peer.socket.write(bytes.as_ref().to_vec());
        peer
    }

    fn reading(self) -> Self {
        let got = self.got.clone();
        self.socket
            .on_data(move |bytes| got.borrow_mut().extend(bytes));
        self
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.got.borrow()).into_owned()
    }

    /// Waits for the end of the connection, and returns all that came.
    async fn rest(&self) -> String {
        self.closed.clone().await.unwrap();
        self.text()
    }
}

/// Sends a request of its own and returns the body of the answer.
async fn get(server: &Server) -> String {
    let answer = Peer::send(server, LAST_GET).rest().await;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .expect("the answer has a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// The time since the loop was built, on its paused clock.
fn now(start: Instant) -> Duration {
    LoopHandle::current().now() - start
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
        let passed = now(start);
        assert!(passed >= ms(60_000) && passed <= ms(90_100), "{passed:?}");
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
            res.end_bytes("/last");
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
            let passed = now(start);
            assert!(passed >= ms(300_000) && passed <= ms(330_100), "{passed:?}");
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
        let passed = now(start);
        assert!(passed >= ms(6000) && passed < ms(6100), "{passed:?}");
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
            return res.end_bytes("/last");
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
            assert!(res.length() <= 3 * 16_384 && res.need_drain());
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
            "/last" => res.end_bytes("/last"),
            _ => res.end_bytes(vec![b'x'; 100_000]),
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
fn unanswered_requests_of_one_connection_are_bounded() {
    let handled = Rc::new(Cell::new(0));
    let (count, kept) = (
        handled.clone(),
        Rc::<RefCell<Vec<ServerResponse>>>::default(),
    );
    let keeps = move |req: &IncomingMessage, res: &ServerResponse| {
        if req.url() == "/last" {
            return res.end_bytes("/last");
        }
        count.set(count.get() + 1);
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
        set_timeout((REQUESTS + 1 - number) as f64, move || res.end_bytes(text));
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
    let exit = phaseloop::node::run(async {
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
            return res.end_bytes("/last");
        }
        req.on(END, move |()| res.end_bytes("end"));
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
            "/last" => res.end_bytes("/last"),
            _ => res.end_bytes(size.get().to_string()),
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
            res.end_bytes("/last");
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
                peer.socket.end();
                assert_eq!(peer.rest().await, BAD_REQUEST);
            }
        },
    );
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
            return res.end_bytes("/last");
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
                rustix::net::sockopt::set_socket_linger(&stream, linger).unwrap();
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
                peer.socket.end();
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
