//! A client of `node::http` with servers that mean it harm, or are broken. Each test checks what the
//! program sees, and that the connection is gone afterwards. The tests run on the paused clock.

use crate::util::trace::paused;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Agent, RESPONSE, RequestOptions};
use phaseloop_node::net::{self, LISTENING, Server, Socket};
use phaseloop_node::stream::{CLOSE, DRAIN};
use phaseloop_node::{
    AbortSignal, Deferred, Emitter, call, run_on, set_interval, set_timeout, sleep,
};

/// Runs a program with a server that treats its connections as `serve` does.
fn with<F>(serve: impl Fn(&Socket) + 'static, program: impl FnOnce(Server) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = net::create_server(move |socket| {
            socket.on(ERROR, |_| ());
            // Otherwise the kernel holds small writes back for a time that the paused clock skips.
            socket.set_no_delay(true);
            serve(socket);
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(server.clone()).await;
        // The client has closed its connections: a server that reads on learns of it.
        sleep(10).await.unwrap();
        assert_eq!(server.connections(), 0);
        server.close();
    });
    assert_eq!(exit.code(), 0);
}

/// A server that answers each request with `bytes` and leaves the connection open.
fn says(bytes: impl Into<Vec<u8>>) -> impl Fn(&Socket) + 'static {
    let bytes = bytes.into();
    move |socket| {
        let bytes = bytes.clone();
        socket.on_data_this(move |socket, _| _ = socket.write(bytes.clone()));
    }
}

fn to(server: &Server) -> RequestOptions {
    RequestOptions::new(server.address().unwrap()).agent(&Agent::none())
}

/// Sends a request and returns the code of its error, and the number of bytes of body before it.
async fn failure(server: &Server) -> (String, usize) {
    failure_of(to(server)).await
}

async fn failure_of(options: RequestOptions) -> (String, usize) {
    let request = http::get(options);
    let size = Rc::new(Cell::new(0));
    let (code, on_response) = (Rc::<RefCell<String>>::default(), size.clone());
    let failed = code.clone();
    request.on(ERROR, move |error| {
        failed.replace(error.code().unwrap_or_default().to_owned());
    });
    let broken = code.clone();
    request.on_response(move |response| {
        response.on_data(move |bytes| on_response.set(on_response.get() + bytes.len()));
        response.on(ERROR, move |error| {
            if broken.borrow().is_empty() {
                broken.replace(error.code().unwrap_or_default().to_owned());
            }
        });
    });
    let closed = Deferred::new();
    let promise = closed.promise();
    request.on(CLOSE, move |()| closed.resolve(()));
    promise.await.unwrap();
    // A cut response reports it a tick after the request has closed.
    sleep(1).await.unwrap();
    (code.take(), size.get())
}

#[test]
fn h078_heads_and_extensions_without_end_are_refused() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = format!("{ok}Transfer-Encoding: chunked\r\n\r\n");
    let bombs = [
        (
            format!("{ok}X: {}", "y".repeat(1 << 20)),
            "HPE_HEADER_OVERFLOW",
        ),
        (
            format!("{ok}{}", "X: y\r\n".repeat(1 << 16)),
            "HPE_HEADER_OVERFLOW",
        ),
        (
            format!("HTTP/1.1 200 {}", "y".repeat(1 << 20)),
            "HPE_HEADER_OVERFLOW",
        ),
        (
            format!("{chunked}0\r\nX: {}", "y".repeat(1 << 20)),
            "HPE_HEADER_OVERFLOW",
        ),
        (
            format!("{chunked}1;{}", "e".repeat(1 << 20)),
            "HPE_CHUNK_EXTENSIONS_OVERFLOW",
        ),
        (
            format!("{chunked}10000000000000000\r\n"),
            "HPE_INVALID_CHUNK_SIZE",
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "HPE_INVALID_CONSTANT"),
    ];
    for (bytes, code) in bombs {
        with(says(bytes), move |server| async move {
            assert_eq!(failure(&server).await, (code.to_owned(), 0));
        });
    }
}

/// How much a server says before it goes away, and how many bytes of body that is.
fn stages() -> [(String, usize); 4] {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    [
        (String::new(), 0),
        ("HTTP/1.1 2".to_owned(), 0),
        (head.to_owned(), 0),
        (format!("{head}hello"), 5),
    ]
}

#[test]
fn h064_h065_connections_that_end_too_early() {
    for (bytes, size) in stages() {
        let serve = move |socket: &Socket| {
            let bytes = bytes.clone();
            socket.on_data_this(move |socket, _| socket.end(bytes.clone()));
        };
        with(serve, move |server| async move {
            assert_eq!(failure(&server).await, ("ECONNRESET".to_owned(), size));
        });
    }
}

#[test]
fn h064_h065_connections_that_are_reset() {
    for (bytes, size) in stages() {
        let (mut event_loop, _, _) = paused();
        let exit = run_on(&mut event_loop, async move {
            let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let target = server.local_addr().unwrap();
            let failure = call(failure_of(
                RequestOptions::new(target).agent(&Agent::none()),
            ));
            sleep(10).await.unwrap();
            let (mut stream, _) = server.accept().unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            sleep(10).await.unwrap();
            // A close with a linger of zero is a reset.
            let linger = Some(std::time::Duration::ZERO);
            socket2::SockRef::from(&stream).set_linger(linger).unwrap();
            drop(stream);
            assert_eq!(failure.await.unwrap(), ("ECONNRESET".to_owned(), size));
        });
        assert_eq!(exit.code(), 0);
    }
}

#[test]
fn h034_an_answer_that_is_not_read_stops_its_server() {
    let sent = Rc::new(Cell::new(0));
    let count = sent.clone();
    let endless = move |socket: &Socket| {
        let fill = |socket: &Socket, count: &Cell<usize>| {
            while socket.write(vec![b'x'; 16_384]) {
                count.set(count.get() + 16_384);
            }
        };
        let (count, more) = (count.clone(), count.clone());
        socket.on_data_this(move |socket, _| {
            socket.write("HTTP/1.1 200 OK\r\n\r\n");
            fill(socket, &count);
        });
        socket.on_this(DRAIN, move |socket, ()| fill(socket, &more));
    };
    with(endless, |server| async move {
        let request = http::get(to(&server));
        let response = once(&request, RESPONSE).await.unwrap();
        sleep(1000).await.unwrap();
        let before = sent.get();
        assert!(
            before < 32 << 20,
            "{before} bytes for a client that never reads"
        );
        assert!(response.readable().length() < 256 << 10);
        sleep(1000).await.unwrap();
        assert_eq!(sent.get(), before);
        response.destroy(None);
    });
}

#[test]
fn h056_an_answer_that_comes_byte_by_byte_is_one_answer() {
    let drips = |socket: &Socket| {
        socket.resume();
        let (socket, at) = (socket.clone(), Cell::new(0));
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        set_interval(1000, move |timer| {
            if at.get() == bytes.len() {
                timer.close();
                return;
            }
            socket.write(vec![bytes[at.get()]]);
            at.set(at.get() + 1);
        });
    };
    with(drips, |server| async move {
        let request = http::get(to(&server).timeout(5000));
        request.on(net::TIMEOUT, |()| panic!("a byte comes each second"));
        let response = once(&request, RESPONSE).await.unwrap();
        let body = response.readable().to_array().await.unwrap();
        assert_eq!(body.concat(), b"ok");
    });
}

#[test]
fn h069_a_server_that_drips_its_answer_is_given_up_by_the_program() {
    let drips = |socket: &Socket| {
        socket.resume();
        let socket = socket.clone();
        socket.write("HTTP/1.1 200 OK\r\nX: ");
        set_interval(1000, move |timer| {
            if socket.destroyed() || !socket.write("y") {
                timer.close();
            }
        });
    };
    with(drips, |server| async move {
        // The timeout of inactivity does not fire, since bytes come; a signal ends the wait.
        let signal = AbortSignal::timeout(60_000);
        let options = to(&server).timeout(5000).signal(&signal);
        let request = http::get(options);
        let timeouts = Rc::new(Cell::new(0));
        let count = timeouts.clone();
        request.on(net::TIMEOUT, move |()| count.set(count.get() + 1));
        let error = once(&request, ERROR).await.unwrap();
        assert_eq!((error.code(), timeouts.get()), (Some("ABORT_ERR"), 0));
    });
}

#[test]
fn h072_an_answer_that_was_not_asked_for_is_not_taken_for_the_next_one() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let serve = move |socket: &Socket| {
        socket.on_data_this(move |socket, _| {
            socket.write(answer);
            let socket = socket.clone();
            // It comes while the connection is free.
            set_timeout(10, move || {
                socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
            });
        });
    };
    with(serve, move |server| async move {
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        for _ in 0..3 {
            let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
            let request = http::get(options);
            let response = once(&request, RESPONSE).await.unwrap();
            let body = response.readable().to_array().await.unwrap();
            assert_eq!(body.concat(), b"ok");
            sleep(100).await.unwrap();
        }
        agent.destroy();
    });
}
