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
use phaseloop::{Local, block_on, spawn, time};
use tokio::io::AsyncWrite;
use tokio_test::assert_pending;

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

/// The script checks each byte that its peer is sent, and that the peer is sent all of them.
#[test]
fn tokio_copies_between_a_stream_of_the_loop_and_a_scripted_peer() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (mut client, mut server) = pair().await;
        let mut script = tokio_test::io::Builder::new();
        script.write(b"pi").write(b"ng").read(b"po").read(b"ng");
        let mut peer = script.build();
        client.write_all(b"ping").await.unwrap();
        AsyncWriteExt::shutdown(&mut client).await.unwrap();
        let copied = tokio::io::copy_bidirectional(&mut server, &mut peer).await;
        assert_eq!(copied.unwrap(), (4, 4));
        drop(server);
        let mut back = String::new();
        client.read_to_string(&mut back).await.unwrap();
        assert_eq!(back, "pong");
    });
}

/// A reference reads and writes, so that one task does both at once.
#[test]
fn tokios_traits_on_references_and_halves() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (client, server) = pair().await;
        let (mut read, mut write) = phaseloop::io::split(server);
        let echo = spawn(async move {
            let copied = tokio::io::copy(&mut read, &mut write).await.unwrap();
            write.shutdown().await.unwrap();
            // The stream is open as long as the other half is.
            (read, write, copied)
        });
        let (mut reader, mut writer) = (&client, &client);
        writer.write_all(b"hello").await.unwrap();
        writer.flush().await.unwrap();
        assert!(AsyncWrite::is_write_vectored(&writer));
        AsyncWriteExt::shutdown(&mut writer).await.unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
        let (read, write, copied) = echo.await.unwrap();
        assert_eq!(copied, 5);
        assert!(read.as_ref().local_addr().is_ok());
        write.reunite(read).unwrap();
    });
}

/// A half that is shut down is dropped; the other reads on.
#[test]
fn a_half_that_tokios_shutdown_has_ended_leaves_the_other() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (client, server) = pair().await;
        let (mut read, mut write) = phaseloop::io::split(client);
        write.write_all(b"x").await.unwrap();
        AsyncWriteExt::shutdown(&mut write).await.unwrap();
        assert!(
            write.write_all(b"y").await.is_err(),
            "the direction is shut down"
        );
        drop(write);
        let mut server = server;
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "x");
        server.write_all(b"back").await.unwrap();
        drop(server);
        let mut back = String::new();
        read.read_to_string(&mut back).await.unwrap();
        assert_eq!(back, "back");
    });
}

#[test]
fn tokios_traits_on_files() {
    use std::io::SeekFrom;
    use std::pin::Pin;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncSeek, AsyncSeekExt, AsyncWriteExt};

    block_on(async {
        let folder = phaseloop::fs::mkdtemp(std::env::temp_dir().join("bridges-XXXXXX"));
        let path = folder.await.unwrap().join("file");
        let mut options = phaseloop::fs::File::options();
        options.read(true).write(true).create(true);
        let mut file = options.open(&path).await.unwrap();
        file.write_all(b"one\ntwo\nthree").await.unwrap();
        AsyncWriteExt::flush(&mut file).await.unwrap();
        assert_eq!(file.rewind().await.unwrap(), 0);
        let mut text = String::new();
        file.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "one\ntwo\nthree");
        assert_eq!(
            AsyncSeekExt::seek(&mut file, SeekFrom::Start(4))
                .await
                .unwrap(),
            4
        );
        assert_eq!(file.stream_position().await.unwrap(), 4);
        let mut line = String::new();
        AsyncBufReadExt::read_line(&mut file, &mut line)
            .await
            .unwrap();
        assert_eq!(line, "two\n");
        let seek = SeekFrom::Current(-4);
        assert_eq!(AsyncSeekExt::seek(&mut &file, seek).await.unwrap(), 4);
        // A second seek waits for the first.
        Pin::new(&mut file).start_seek(SeekFrom::End(-5)).unwrap();
        let second = Pin::new(&mut file).start_seek(SeekFrom::Start(0));
        assert!(second.unwrap_err().to_string().contains("under way"));
        let position = std::future::poll_fn(|cx| Pin::new(&mut file).poll_complete(cx)).await;
        assert_eq!(position.unwrap(), 8);
        let refused = AsyncSeekExt::seek(&mut file, SeekFrom::Current(-100)).await;
        assert_eq!(
            refused.unwrap_err().kind(),
            std::io::ErrorKind::InvalidInput
        );
        let mut rest = Vec::new();
        AsyncReadExt::read_to_end(&mut file, &mut rest)
            .await
            .unwrap();
        assert_eq!(rest, b"three");
        (&file).write_all(b"!").await.unwrap();
        AsyncWriteExt::shutdown(&mut file).await.unwrap();
        assert_eq!(
            phaseloop::fs::read(&path).await.unwrap(),
            b"one\ntwo\nthree!"
        );
        phaseloop::fs::remove_dir_all(path.parent().unwrap())
            .await
            .unwrap();
    });
}

/// A pipe's writer is closed by its shutdown: nothing else reports the end to the reader.
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

/// hyper boxes an upgraded connection as `dyn Io + Send`.
#[test]
fn an_upgraded_connection_is_ours_again_at_both_ends() {
    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (client, server) = pair().await;
        let service = service_fn(|mut request: Request<hyper::body::Incoming>| {
            let upgrade = hyper::upgrade::on(&mut request);
            spawn(async move {
                let upgraded = upgrade.await.unwrap();
                let parts = upgraded.downcast::<HyperIo<TcpStream>>().unwrap();
                let mut stream = parts.io.into_inner();
                let mut word = [0; 4];
                let early = parts.read_buf.len();
                word[..early].copy_from_slice(&parts.read_buf);
                stream.read_exact(&mut word[early..]).await.unwrap();
                word.reverse();
                stream.write_all(&word).await.unwrap();
            })
            .detach();
            let answer = Response::builder()
                .status(101)
                .header("upgrade", "backwards");
            async { answer.body(Empty::<Bytes>::new()) }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(HyperIo::new(server), service)
            .with_upgrades();
        let serving = spawn(serving);
        let io = HyperIo::new(client);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        spawn(connection.with_upgrades()).detach();
        let request = Request::get("/").header("upgrade", "backwards");
        let request = request.header("connection", "upgrade");
        let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap());
        let upgraded = hyper::upgrade::on(answer.await.unwrap()).await.unwrap();
        let parts = upgraded.downcast::<HyperIo<TcpStream>>().unwrap();
        let mut stream = parts.io.into_inner();
        stream.write_all(b"loop").await.unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"pool");
        serving.await.unwrap().unwrap();
    });
}

fn asks_for_send<T: Send + Sync + 'static>(value: T) -> T {
    value
}

/// A stream that is dropped by a thread of another runtime closes on its own loop.
#[test]
fn a_connection_that_another_thread_drops_is_closed_at_home() {
    use phaseloop::io::AsyncReadExt;

    block_on(async {
        let (mut client, server) = pair().await;
        let io = asks_for_send(HyperIo::new(server));
        std::thread::spawn(move || drop(io)).join().unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "EOF");
    });
}

#[test]
fn a_connection_that_another_thread_reads_panics_and_names_its_line() {
    block_on(async {
        let (_client, server) = pair().await;
        let io = HyperIo::new(server);
        let line = line!() - 1;
        let used = std::thread::spawn(move || io.get_ref().nodelay().is_ok()).join();
        let text = *used.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains(&format!("bridges.rs:{line}")), "{text}");
    });
}

/// hyper's memory is not initialised. Sockets receive into it, other streams through a buffer; both
/// leave what was read before alone.
#[test]
fn hyper_reads_of_any_stream_append_to_its_buffer() {
    use hyper::rt::{Read, ReadBuf};
    use std::mem::MaybeUninit;
    use std::pin::Pin;

    async fn read_twice(mut io: impl Read + Unpin, feed: impl Fn(&[u8])) {
        let mut memory = [MaybeUninit::uninit(); 8];
        let mut buffer = ReadBuf::uninit(&mut memory);
        for (bytes, total) in [(&b"abc"[..], "abc"), (b"defghijk", "abcdefgh")] {
            feed(bytes);
            std::future::poll_fn(|cx| Pin::new(&mut io).poll_read(cx, buffer.unfilled()))
                .await
                .unwrap();
            assert_eq!(buffer.filled(), total.as_bytes());
        }
    }

    block_on(async {
        let (client, server) = pair().await;
        let feed = |bytes: &[u8]| _ = client.try_write(bytes).unwrap();
        read_twice(HyperIo::new(server), feed).await;
        let (client, server) = pair().await;
        let feed = |bytes: &[u8]| _ = client.try_write(bytes).unwrap();
        let buffered = futures::io::BufReader::new(server);
        read_twice(HyperIo::new(buffered), feed).await;
        #[cfg(unix)]
        {
            let (client, server) = phaseloop::net::UnixStream::pair().unwrap();
            let feed = |bytes: &[u8]| _ = client.try_write(bytes).unwrap();
            read_twice(HyperIo::new(server), feed).await;
        }
    });
}

#[test]
fn tokios_reads_append_to_memory_that_is_not_initialised() {
    use std::mem::MaybeUninit;
    use std::pin::Pin;
    use tokio::io::{AsyncRead, ReadBuf};

    block_on(async {
        let (client, mut server) = pair().await;
        let mut memory = [MaybeUninit::uninit(); 8];
        let mut buffer = ReadBuf::uninit(&mut memory);
        for (bytes, total) in [(&b"abc"[..], "abc"), (b"defghijk", "abcdefgh")] {
            client.try_write(bytes).unwrap();
            std::future::poll_fn(|cx| Pin::new(&mut server).poll_read(cx, &mut buffer))
                .await
                .unwrap();
            assert_eq!(buffer.filled(), total.as_bytes());
            assert_eq!(buffer.initialized().len(), total.len(), "not zeroed first");
        }
    });
}

/// hyper takes deadlines from the timer's `now`, and moves a sleep instead of making another.
#[test]
fn hypers_timer_follows_the_clock_of_the_loop_and_moves_its_sleeps() {
    use hyper::rt::Timer;

    block_on(async {
        time::pause();
        let start = HyperTimer.now();
        assert_eq!(start, time::now().into_std());
        let mut sleep = HyperTimer.sleep(Duration::from_secs(1));
        assert_pending!(futures::poll!(sleep.as_mut()));
        let place = std::ptr::from_ref(&*sleep).cast::<u8>();
        HyperTimer.reset(&mut sleep, start + Duration::from_secs(60));
        assert_eq!(std::ptr::from_ref(&*sleep).cast::<u8>(), place, "in place");
        asks_for_send(sleep).await;
        assert_eq!(time::now().into_std() - start, Duration::from_secs(60));
    });
}

/// axum asks for `Send` handlers and `Send + Sync` state; both hold what lives on the loop.
#[test]
fn an_axum_handler_awaits_the_loop_and_its_state_is_an_rc() {
    use axum::extract::State;
    use tower_service::Service;

    type Hits = Local<Rc<Cell<u32>>>;

    async fn hit(State(hits): State<Hits>) -> String {
        Local::new(time::sleep(Duration::from_millis(1))).await;
        hits.set(hits.get() + 1);
        let doubled = hits.get() * 2;
        let task = spawn(async move { doubled + 1 });
        let answer = Local::new(task).await.unwrap();
        format!("{answer}")
    }

    block_on(async {
        let hits = Rc::new(Cell::new(0));
        let mut router = axum::Router::new()
            .route("/", axum::routing::get(hit))
            .with_state(Local::new(hits.clone()));
        for expected in ["3", "5"] {
            let request = Request::get("/").body(axum::body::Body::empty()).unwrap();
            let answer = router.call(request).await.unwrap();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, expected);
        }
        assert_eq!(hits.get(), 2);
    });
}
