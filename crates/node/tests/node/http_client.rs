//! The client of `node::http` beyond the recorded programs: servers that mean it harm, bodies whose
//! length is wrong, and what is left when the loop goes. All on the paused clock.

use crate::run_on_to_end;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop::LoopHandle;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions};
use phaseloop_node::net::{self, LISTENING, Server, Socket};
use phaseloop_node::stream::{CLOSE, DRAIN, END, Readable};
use phaseloop_node::{Deferred, Emitter, Promise, catch, run_on, set_timeout, sleep};

use crate::util::trace::{ms, paused};

/// Runs a program with a server that speaks bytes.
fn with<F>(peer: impl Fn(&Socket) + 'static, program: impl FnOnce(SocketAddr) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = net::create_server(move |socket| {
            socket.on(ERROR, |_| ());
            peer(socket);
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(server.address().unwrap()).await;
        server.close();
    });
    assert_eq!(exit.code(), 0);
}

fn alone(address: SocketAddr) -> RequestOptions {
    RequestOptions::new(address).agent(&Agent::none())
}

/// Calls `first` with the first bytes of a connection; the others are dropped.
fn on_request(socket: &Socket, first: impl FnOnce(&Socket) + 'static) {
    socket.once_this(Readable::<Vec<u8>>::DATA, |socket, _| first(socket));
    socket.resume();
}

/// Writes `piece` again and again while the socket takes it, at most `limit` bytes. Returns the
/// number of bytes taken so far.
fn flood(socket: &Socket, piece: &'static [u8], limit: usize) -> Rc<Cell<usize>> {
    fn pour(socket: &Socket, piece: &'static [u8], sent: &Cell<usize>, limit: usize) {
        while sent.get() < limit && !socket.destroyed() {
            sent.set(sent.get() + piece.len());
            if !socket.write(piece) {
                return;
            }
        }
    }
    let sent = Rc::new(Cell::new(0));
    pour(socket, piece, &sent, limit);
    let (socket, drained) = (socket.clone(), sent.clone());
    let peer = socket.clone();
    socket.on(DRAIN, move |()| pour(&peer, piece, &drained, limit));
    sent
}

async fn closed(emitter: &impl Emitter) {
    let closed = Deferred::new();
    let promise = closed.promise();
    emitter.once(CLOSE, move |()| closed.resolve(()));
    promise.await.unwrap();
}

#[test]
fn h078_an_endless_head_ends_with_an_error() {
    let poured: Rc<RefCell<Option<Rc<Cell<usize>>>>> = Rc::default();
    let of_peer = poured.clone();
    let peer = move |socket: &Socket| {
        let of_peer = of_peer.clone();
        on_request(socket, move |socket| {
            socket.write("HTTP/1.1 200 OK\r\n");
            of_peer.replace(Some(flood(
                socket,
                b"X: yyyyyyyyyyyyyyyyyyyyy\r\n",
                64 << 20,
            )));
        });
    };
    with(peer, |address| async move {
        let request = http::get(alone(address));
        let failed = once(&request, ERROR);
        request.on(RESPONSE, |_| panic!("the head never ends"));
        assert_eq!(failed.await.unwrap().code(), Some("HPE_HEADER_OVERFLOW"));
        let poured = poured.take().unwrap();
        assert!(poured.get() < 32 << 20, "{} bytes", poured.get());
    });
}

#[test]
fn h063_a_body_without_a_reader_stops_the_peer() {
    let poured: Rc<RefCell<Option<Rc<Cell<usize>>>>> = Rc::default();
    let of_peer = poured.clone();
    let limit = 256 << 20;
    let peer = move |socket: &Socket| {
        let of_peer = of_peer.clone();
        on_request(socket, move |socket| {
            socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            of_peer.replace(Some(flood(socket, &CHUNK, limit)));
        });
    };
    with(peer, move |address| async move {
        let request = http::get(alone(address));
        let responded = once(&request, RESPONSE);
        let response = responded.await.unwrap();
        sleep(1000).await.unwrap();
        let poured = poured.take().unwrap();
        let before = poured.get();
        sleep(1000).await.unwrap();
        assert_eq!(poured.get(), before, "the peer waits");
        assert!(before < limit / 4, "{before} bytes");
        assert!(response.readable().length() <= 256 << 10);
        response.destroy(None);
        closed(&request).await;
    });
}

/// A chunk of 4 KiB with its frame.
static CHUNK: [u8; 4096 + 8] = {
    let mut chunk = [b'x'; 4096 + 8];
    let frame = *b"1000\r\n";
    let mut at = 0;
    while at < frame.len() {
        chunk[at] = frame[at];
        at += 1;
    }
    chunk[4096 + 6] = b'\r';
    chunk[4096 + 7] = b'\n';
    chunk
};

#[test]
fn h125_a_request_with_a_short_body_does_not_leave_its_connection_to_others() {
    let answers = |socket: &Socket| {
        socket.on_data_this(|socket, _| {
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        });
    };
    with(answers, |address| async move {
        let agent = Agent::builder().keep_alive(true).build();
        for (body, free) in [("abcd", 1), ("ab", 0), ("abcdef", 0)] {
            let options = RequestOptions::new(address).agent(&agent).method("POST");
            let request = http::request(options.header("Content-Length", 4));
            request.on(RESPONSE, |response| _ = response.resume());
            request.end(body);
            closed(&request).await;
            sleep(10).await.unwrap();
            assert_eq!(agent.free_sockets(), free, "{body}");
        }
        agent.destroy();
    });
}

#[test]
fn h125_a_strict_length_is_checked() {
    with(
        |_| (),
        |address| async move {
            let strict = || {
                let options = alone(address).method("POST").header("Content-Length", 4);
                let request = http::request(options);
                request.on(ERROR, |_| ());
                request.strict_content_length(true);
                request
            };
            let short = strict();
            let thrown = catch(|| short.end("abc")).unwrap_err();
            assert_eq!(thrown.code(), Some("ERR_HTTP_CONTENT_LENGTH_MISMATCH"));
            let long = strict();
            long.write("abc");
            let thrown = catch(|| long.write("de")).unwrap_err();
            assert_eq!(thrown.code(), Some("ERR_HTTP_CONTENT_LENGTH_MISMATCH"));
            let exact = strict();
            exact.write("abc");
            exact.end("d");
            assert!(exact.ended());
            for request in [short, long, exact] {
                request.destroy(None);
            }
        },
    );
}

#[test]
fn h034_a_request_is_full_and_drains() {
    let got = Rc::new(Cell::new(0));
    let count = got.clone();
    let peer = move |socket: &Socket| {
        let count = count.clone();
        socket.on_data_this(move |socket, bytes| {
            count.set(count.get() + bytes.len());
            if bytes.ends_with(b"0\r\n\r\n") {
                socket.end("HTTP/1.1 204 No Content\r\n\r\n");
            }
        });
    };
    with(peer, move |address| async move {
        let request = http::request(alone(address).method("PUT"));
        assert!(request.write("a"));
        assert!(!request.write(vec![b'b'; 100_000]), "more than 16 KiB wait");
        assert!(request.need_drain());
        once(&request, DRAIN).await.unwrap();
        assert!(!request.need_drain());
        request.end(());
        closed(&request).await;
        assert!(got.get() > 100_000);
    });
}

#[test]
fn h029_bad_requests_are_refused_at_the_call() {
    with(
        |_| (),
        |address| async move {
            let code = |options: RequestOptions| {
                let error = http::try_request(options).unwrap_err();
                error.code().map(str::to_owned).unwrap()
            };
            let at = || alone(address);
            for path in ["/a b", "/\r\nx", "/\u{20ac}", "\u{7f}\u{100}"] {
                assert_eq!(code(at().path(path)), "ERR_UNESCAPED_CHARACTERS");
            }
            for method in ["G T", "GET\r\n", "\u{e9}"] {
                assert_eq!(code(at().method(method)), "ERR_INVALID_HTTP_TOKEN");
            }
            assert_eq!(code(at().header("a b", "1")), "ERR_INVALID_HTTP_TOKEN");
            assert_eq!(code(at().header("a", "1\r\nb: 2")), "ERR_INVALID_CHAR");
            assert_eq!(code(at().raw_headers([("a", "\0")])), "ERR_INVALID_CHAR");
        },
    );
}

#[test]
fn h072_a_free_socket_closes_after_the_time_of_the_agent() {
    let answers = |socket: &Socket| {
        socket.on_data_this(|socket, _| {
            socket.write("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=3\r\nContent-Length: 0\r\n\r\n");
        });
    };
    with(answers, |address| async move {
        // The peer's hint of three seconds, less one, is shorter than the agent's time.
        let agent = Agent::builder().keep_alive(true).timeout(10_000).build();
        let request = http::get(RequestOptions::new(address).agent(&agent));
        request.on(RESPONSE, |response| _ = response.resume());
        closed(&request).await;
        let start = LoopHandle::current().now();
        sleep(1900).await.unwrap();
        assert_eq!(agent.free_sockets(), 1);
        while agent.free_sockets() > 0 {
            sleep(50).await.unwrap();
        }
        let passed = LoopHandle::current().now() - start;
        assert!(passed <= ms(2200), "{passed:?}");
    });
}

#[test]
fn h072_bytes_on_a_free_socket_are_dropped_and_its_end_is_seen() {
    let peers: Rc<RefCell<Vec<Socket>>> = Rc::default();
    let known = peers.clone();
    let answers = move |socket: &Socket| {
        known.borrow_mut().push(socket.clone());
        socket.on_data_this(|socket, _| {
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        });
    };
    with(answers, move |address| async move {
        let agent = Agent::builder().keep_alive(true).build();
        let get = || {
            let request = http::get(RequestOptions::new(address).agent(&agent));
            request.on(RESPONSE, |response| _ = response.resume());
            request
        };
        closed(&get()).await;
        sleep(10).await.unwrap();
        let peer = peers.borrow()[0].clone();
        peer.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
        sleep(10).await.unwrap();
        let again = get();
        let response = once(&again, RESPONSE);
        let response = response.await.unwrap();
        let length = response.headers().get("content-length").map(str::to_owned);
        assert_eq!(length.as_deref(), Some("1"), "the response to this request");
        assert!(again.reused_socket());
        sleep(10).await.unwrap();
        peer.end(());
        sleep(10).await.unwrap();
        assert_eq!(agent.free_sockets(), 0);
    });
}

#[test]
fn a_loop_that_is_dropped_frees_its_requests_and_agents() {
    struct Dropped(Rc<Cell<usize>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let count = Rc::new(Cell::new(0));
    let witness = count.clone();
    let (mut event_loop, _, _) = paused();
    run_on_to_end(&mut event_loop, async move {
        let server = Server::new();
        server.listen_this(("127.0.0.1", 0), move |server| {
            let address = server.address().unwrap();
            let agent = Agent::builder().keep_alive(true).build();
            let options = RequestOptions::new(address).agent(&agent);
            let request = http::get(options);
            let (held, dropped) = (request.clone(), Dropped(witness));
            // A cycle, as JavaScript closures make it.
            request.on(RESPONSE, move |_| drop((held.clone(), &dropped)));
            set_timeout(10, || phaseloop_node::process::exit(0));
        });
    });
    drop(event_loop);
    assert_eq!(count.get(), 1);
}

#[test]
fn a_waiting_request_that_is_destroyed_takes_no_socket_from_others() {
    let answers = |socket: &Socket| {
        socket.on_data_this(|socket, bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let path = text.split(' ').nth(1).unwrap().to_owned();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
            socket.write(head + &path);
        });
    };
    with(answers, |address| async move {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        let get = |path: &str| http::get(RequestOptions::new(address).agent(&agent).path(path));
        let body = |request: &http::ClientRequest| -> Promise<String> {
            let done = Deferred::new();
            let promise = done.promise();
            request.on_response(move |response| {
                let text = Rc::new(RefCell::new(String::new()));
                let part = text.clone();
                response.on_data(move |bytes| {
                    part.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
                });
                response.once(END, move |()| done.resolve(text.take()));
            });
            promise
        };
        let [one, two, three] = ["/1", "/2", "/3"].map(get);
        let failed = once(&two, ERROR);
        let bodies = [body(&one), body(&three)];
        two.destroy(None);
        let [one, three] = bodies;
        assert_eq!(one.await.unwrap(), "/1");
        assert_eq!(failed.await.unwrap().message(), "socket hang up");
        assert_eq!(three.await.unwrap(), "/3");
        agent.destroy();
    });
}

#[test]
fn several_headers_are_added_in_order_to_those_before() {
    let head = Rc::new(RefCell::new(Vec::new()));
    let received = head.clone();
    let peer = move |socket: &Socket| {
        let received = received.clone();
        socket.on_data_this(move |socket, bytes| {
            received.borrow_mut().extend_from_slice(bytes);
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        });
    };
    with(peer, |address| async move {
        let options = alone(address)
            .header("A", "1")
            .headers([("B", "2"), ("C", "3")]);
        let request = http::get(options.header("D", "4"));
        request.on_response(|response| {
            response.resume();
        });
        closed(&request).await;
        let head = String::from_utf8(head.take()).unwrap();
        assert!(
            head.contains("\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n"),
            "{head}"
        );
    });
}
