//! The bridges: hyper's traits, for services that are not `Send`, and tokio's I/O traits on our
//! streams.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper::{Request, Response};
use phaseloop::hyper::{HyperExecutor, HyperIo, HyperTimer};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{block_on, spawn, time};

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (client, server) = futures::join!(client, listener.accept());
    (client.unwrap(), server.unwrap().0)
}

/// Both ends are hyper's; the server counts in an `Rc`, over one connection that stays open.
#[test]
fn hyper_serves_and_asks_on_the_loop() {
    block_on(async {
        let (client, server) = pair().await;
        let requests = Rc::new(Cell::new(0));
        let count = requests.clone();
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            count.set(count.get() + 1);
            let answer = format!("{} was request {}", request.uri().path(), count.get());
            async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer)))) }
        });
        let server = spawn(
            hyper::server::conn::http1::Builder::new()
                .timer(HyperTimer)
                .serve_connection(HyperIo::new(server), service),
        );
        let io = HyperIo::new(client);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        let connection = spawn(connection);
        for (path, expected) in [("/a", "/a was request 1"), ("/b", "/b was request 2")] {
            let request = Request::get(path).header("host", "here");
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, expected);
        }
        drop(sender);
        connection.await.unwrap().unwrap();
        server.await.unwrap().unwrap();
        assert_eq!(requests.get(), 2);
    });
}

/// A timer of the loop ends the connection of a client that never finishes its request.
#[test]
fn hyper_times_a_slow_client_out() {
    block_on(async {
        time::pause();
        let start = time::now();
        let (client, server) = pair().await;
        client.try_write(b"GET / HTTP/1.1\r\nHo").unwrap();
        let service =
            service_fn(|_| async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(HyperTimer)
            .header_read_timeout(Duration::from_secs(30))
            .serve_connection(HyperIo::new(server), service)
            .await;
        assert!(served.unwrap_err().is_timeout());
        assert!(time::now() - start >= Duration::from_secs(30));
    });
}

/// What hyper spawns need not be `Send`.
#[test]
fn the_executor_spawns_on_the_running_loop() {
    block_on(async {
        let done = Rc::new(Cell::new(false));
        let mark = done.clone();
        hyper::rt::Executor::execute(&HyperExecutor, async move { mark.set(true) });
        assert!(!done.get(), "not inside the call");
        phaseloop::task::yield_now().await;
        assert!(done.get());
    });
}

#[test]
fn tokios_traits_read_write_and_shut_down() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"hello").await.unwrap();
        AsyncWriteExt::shutdown(&mut client).await.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        server.write_all(b"and back").await.unwrap();
        drop(server);
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, b"and back");
    });
}

/// A pipe's writer is closed by its shutdown: nothing else tells the reader of the end.
#[cfg(unix)]
#[test]
fn tokios_traits_on_pipes() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (mut reader, mut writer) = phaseloop::io::pipe().unwrap();
        writer.write_all(b"hello").await.unwrap();
        writer.shutdown().await.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
    });
}
