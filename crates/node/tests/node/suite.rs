//! Behaviours that Node's own tests (`test/parallel`) check. The files are of a sample that a seed
//! has chosen; `tests/NODE.md` has the list.

use crate::util::trace::{Trace, paused};

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Agent, CLIENT_ERROR, RESPONSE, RequestOptions, SOCKET, Server};
use phaseloop_node::net::{self, CONNECT, LISTENING};
use phaseloop_node::stream::{
    CLOSE, DRAIN, Duplex, END, FINISH, PIPE, PREFINISH, Readable, Transform, Writable,
};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::{Emitter, dgram, fs, queue_microtask, run_on, set_timeout, sleep};

fn traced<F: Future<Output = ()> + 'static>(program: impl FnOnce(Trace) -> F + 'static) -> String {
    let (mut event_loop, _, trace) = paused();
    let log = trace.clone();
    let exit = run_on(&mut event_loop, async move { program(log).await });
    assert_eq!(exit.code(), 0);
    trace.take()
}

async fn listening(server: &Server) {
    let listening = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listening.await.unwrap();
}

/// Sends bytes to the server, and returns all that comes back.
async fn exchange(server: &Server, bytes: &str) -> String {
    let client = net::connect(server.address().unwrap());
    let ended = once(&client, END);
    let text = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let known = text.clone();
    client.on_data(move |bytes| known.borrow_mut().extend_from_slice(bytes));
    client.write(bytes);
    ended.await.unwrap();
    String::from_utf8(text.take()).unwrap()
}

// test-http-blank-header: an empty header is a header, and bytes behind a GET are no request.
#[test]
fn an_empty_header_is_kept_and_junk_behind_a_request_is_refused() {
    let said = traced(|trace| async move {
        let log = trace.clone();
        let server = http::create_server(move |req, _| {
            let cookie = req.headers().get("cookie").map(str::to_owned);
            log.log(format!("{} {cookie:?}", req.url()));
        });
        listening(&server).await;
        let request = "GET /blah HTTP/1.1\r\nHost: h\r\nCookie:\r\n\r\n\r\nhello world";
        trace.log(exchange(&server, request).await.escape_debug());
        server.close();
    });
    let refused = r"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    assert_eq!(said, format!("/blah Some(\"\") {refused}"));
}

// test-http-max-headers-count-overflow, test-http-double-content-length.
#[test]
fn too_many_headers_and_two_lengths_are_errors_of_the_client() {
    let said = traced(|trace| async move {
        let server = http::create_server(|_, _| unreachable!());
        let log = trace.clone();
        server.on(CLIENT_ERROR, move |fault| {
            log.log(fault.error.code().unwrap());
            fault.socket.end("HTTP/1.1 431 No\r\n\r\n");
        });
        listening(&server).await;
        let two = "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        exchange(&server, two).await;
        server.set_max_headers_count(2);
        let three = "POST / HTTP/1.1\r\nHost: h\r\nX-A: b\r\nContent-Length: 3\r\n\r\nabc";
        assert!(exchange(&server, three).await.starts_with("HTTP/1.1 431 "));
        server.close();
    });
    assert_eq!(said, "HPE_UNEXPECTED_CONTENT_LENGTH HPE_HEADER_OVERFLOW");
}

// test-http-server-request-timeout-pipelining: the second request of a connection has its own time.
#[test]
fn a_slow_pipelined_request_is_answered_with_408() {
    let said = traced(|trace| async move {
        let server = Server::builder()
            .headers_timeout(0)
            .request_timeout(2000)
            .keep_alive_timeout(0)
            .connections_checking_interval(500);
        let server = server.build().unwrap();
        server.on_request(|_, res| res.end(()));
        listening(&server).await;
        let requests = "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nConnection: ";
        let answers = exchange(&server, requests).await;
        for line in answers.lines().filter(|line| line.starts_with("HTTP")) {
            trace.log(line);
        }
        server.close();
    });
    assert_eq!(said, "HTTP/1.1 200 OK HTTP/1.1 408 Request Timeout");
}

// test-http-response-writehead-returns-this, test-http-url.parse-path.
#[test]
fn write_head_returns_the_response_and_a_url_has_a_path() {
    let said = traced(|trace| async move {
        let server = http::create_server(|req, res| {
            res.write_head(200, [("a-header", req.url().to_owned())])
                .end("abc");
        });
        listening(&server).await;
        let url = format!("http://{}/asdf", server.address().unwrap());
        let request = http::get(RequestOptions::url(&url).unwrap());
        let response = once(&request, RESPONSE).await.unwrap();
        let body = response.readable().to_array().await.unwrap().concat();
        trace.log(response.headers().get("a-header").unwrap());
        trace.log(String::from_utf8(body).unwrap());
        server.close();
    });
    assert_eq!(said, "/asdf abc");
}

// test-http-client-timeout-connect-listener: a request on a kept socket waits for no connection.
#[test]
fn a_timeout_on_a_kept_socket_does_not_listen_for_its_connection() {
    let said = traced(|trace| async move {
        let server = http::create_server(|_, res| res.end(()));
        listening(&server).await;
        let agent = Agent::builder().keep_alive(true).max_sockets(1).build();
        for _ in 0..2 {
            let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
            let request = http::get(options.timeout(i32::MAX));
            let log = trace.clone();
            request.on(SOCKET, move |socket| {
                log.log(socket.listener_count(CONNECT))
            });
            let response = once(&request, RESPONSE).await.unwrap();
            response.readable().to_array().await.unwrap();
            sleep(1).await.unwrap();
        }
        agent.destroy();
        server.close();
    });
    assert!(said.ends_with(" 0"), "{said}");
}

// test-stream-writable-final-destroy, test-stream-events-prepend.
#[test]
fn a_stream_that_is_destroyed_in_its_end_does_not_finish() {
    let said = traced(|trace| async move {
        let writable = Writable::bytes(|_: Vec<u8>, done| done.ok());
        let writable = writable
            .end(|done| queue_microtask(move || done.ok()))
            .build();
        writable.end(());
        writable.destroy(None);
        for event in [PREFINISH, FINISH, CLOSE] {
            let log = trace.clone();
            writable.on(event, move |()| log.log(event.name()));
        }
        let sink = Writable::objects(|_: u32, done| done.ok()).build();
        sink.on(PIPE, move |_| trace.log("pipe"));
        Readable::from_iter([1]).pipe(&sink);
        sleep(1).await.unwrap();
    });
    assert_eq!(said, "pipe close");
}

// test-stream-passthrough-drain, test-stream-duplex-writable-finished.
#[test]
fn a_transform_without_room_drains_when_it_is_read() {
    let said = traced(|trace| async move {
        let pass = Transform::bytes(|chunk: Vec<u8>, out| out.ok_with(chunk)).high_water_mark(0);
        let pass: Transform<Vec<u8>, Vec<u8>> = pass.build();
        let log = trace.clone();
        pass.on(DRAIN, move |()| log.log("drain"));
        trace.log(pass.writable().write("hello"));
        pass.readable().read();
        pass.readable().read();
        sleep(1).await.unwrap();
        let writes = Writable::bytes(|_: Vec<u8>, done| done.ok());
        let duplex = Duplex::new(Readable::<Vec<u8>>::bytes(), writes);
        let (log, known) = (trace.clone(), duplex.clone());
        duplex.on(FINISH, move |()| log.log(known.writable().finished()));
        let (log, known) = (trace.clone(), duplex.clone());
        duplex
            .writable()
            .end_with("x", move |_| log.log(known.writable().finished()));
        trace.log(duplex.writable().finished());
        sleep(1).await.unwrap();
        duplex.destroy(None);
    });
    assert_eq!(said, "false drain false true true");
}

// test-net-server-unref-persistent: an unref'd server that listens later does not hold the loop.
#[test]
fn a_server_that_is_unrefd_before_it_listens_lets_the_loop_end() {
    let said = traced(|_| async {
        let server = net::create_server(|_| ());
        server.unref();
        server.listen(("127.0.0.1", 0));
        set_timeout(1000, || unreachable!()).unref();
    });
    assert_eq!(said, "");
}

// test-dgram-send-multi-buffer-copy, test-fs-rmdir-throws-not-found.
#[test]
fn several_buffers_are_one_datagram_and_a_missing_directory_is_enoent() {
    let said = traced(|trace| async move {
        let error = fs::promises::rmdir("/nonexistent/noexist.txt")
            .await
            .unwrap_err();
        trace.log(phaseloop_node::Error::from(error).code().unwrap());
        let client = dgram::Socket::new();
        let log = trace.clone();
        client.on_message_this(move |client, message| {
            log.log(message.bytes.len());
            client.close();
        });
        client.bind_this(([127, 0, 0, 1], 0).into(), |client| {
            client.send_all(&[&[b'x'; 256], &[b'y'; 256]], client.address().unwrap());
        });
        once(&client, CLOSE).await.unwrap();
    });
    assert_eq!(said, "ENOENT 512");
}

// test-stream2-read-correct-num-bytes-in-utf8: a sized read counts characters of decoded text.
#[test]
fn a_sized_read_takes_what_it_asks_for_across_chunks() {
    let said = traced(|trace| async move {
        let readable = Readable::<Vec<u8>>::bytes().build();
        readable.set_encoding(Encoding::Utf8);
        readable.push(b"abc".to_vec());
        readable.push(b"defgh".to_vec());
        readable.push_end();
        for size in [5, 3, 1] {
            let read = readable.read_size(size);
            trace.log(read.map_or("none".to_owned(), |text| String::from_utf8(text).unwrap()));
        }
        readable.on(ERROR, |_| ());
    });
    assert_eq!(said, "abcde fgh none");
}
