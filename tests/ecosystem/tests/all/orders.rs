//! What seeds find in crates of the ecosystem. Each finding has a second test without a loop, which
//! shows that the loop has no part in it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use async_lock::RwLock;
use futures::io::Cursor;
use futures::{AsyncRead, AsyncWrite, FutureExt};
use http_types::{Body, Method, Request, Response, StatusCode, Url};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::shuffle::{Explore, Found};
use phaseloop::time::sleep;
use phaseloop::{Local, spawn, spawn_blocking};

fn request() -> Request {
    Request::new(Method::Get, Url::parse("http://localhost/").unwrap())
}

/// Explores a program that has to fail, and prints what was found.
fn find<F: Future<Output = ()>>(explore: Explore, program: impl Fn() -> F) -> Found {
    let explored = explore.seeds(2_000).try_run(program);
    let found = explored.expect_err("the crate is mended: the guide has to say so");
    println!("{found}");
    *found
}

// async-h1 2.3.4 waits for ever if the end of a body in chunks comes in two reads: its decoder
// returns `Pending` after a read that was ready, so no waker is registered.

/// Client and server are those of async-h1. A body whose length is not known is sent in chunks.
async fn a_body_in_chunks_is_read() {
    let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
    let server = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = async_dup::Arc::new(Local::new(stream));
        let answer = |_| async {
            let mut answer = Response::new(StatusCode::Ok);
            answer.set_body(Body::from_reader(Cursor::new("hello"), None));
            Ok(answer)
        };
        async_h1::accept(stream, answer).await.unwrap();
    });
    let stream = TcpStream::connect("127.0.0.1:80").await.unwrap();
    let stream = async_dup::Arc::new(Local::new(stream));
    let mut answer = async_h1::connect(stream, request()).await.unwrap();
    assert_eq!(answer.body_string().await.unwrap(), "hello");
    drop(answer);
    server.await.unwrap();
}

#[test]
fn seeds_find_that_async_h1_waits_for_ever_for_the_end_of_a_body() {
    let found = find(Explore::new(), a_body_in_chunks_is_read);
    assert!(found.seed.is_some(), "the usual order suffices: {found}");
    assert!(
        found
            .message
            .starts_with("nothing is left that could wake the program"),
        "{found}"
    );
}

/// A peer whose bytes come in pieces, one for each read. It is always ready.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let piece = self.0.pop_front().unwrap_or_default();
        buffer[..piece.len()].copy_from_slice(&piece);
        Poll::Ready(Ok(piece.len()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// A reader that is always ready cannot be the cause of a wait.
#[test]
fn async_h1_waits_without_a_waker_although_its_reader_is_always_ready() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = format!("{head}5\r\nhello\r\n0\r\n\r\n").into_bytes();
    let (most, last) = answer.split_at(answer.len() - 1);
    let pieces = Pieces(VecDeque::from([most.to_vec(), last.to_vec()]));
    let connected = async_h1::connect(pieces, request()).now_or_never();
    let mut answer = connected.expect("the head is there").unwrap();
    let mut body = answer.body_string().boxed_local();
    assert!(body.as_mut().now_or_never().is_none());
    assert_eq!(body.now_or_never().unwrap().unwrap(), "hello");
}

// The server of async-h1 reads each request through a buffer of its own, and drops the buffer with
// what it has read ahead. A client that has its answer before the server has read the body may send
// the next request at once.

/// A client sends two requests, the second one after the answer to the first one.
async fn two_requests_are_answered() {
    let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
    let server = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = async_dup::Arc::new(Local::new(stream));
        let answer = |_| async { Ok(Response::new(StatusCode::Ok)) };
        async_h1::accept(stream, answer).await.unwrap();
    });
    let stream = TcpStream::connect("127.0.0.1:80").await.unwrap();
    let stream = async_dup::Arc::new(Local::new(stream));
    for _ in 0..2 {
        let mut request = request();
        request.set_method(Method::Post);
        request.set_body("a body that the server does not read");
        let mut answer = async_h1::connect(stream.clone(), request).await.unwrap();
        assert_eq!(answer.body_string().await.unwrap(), "");
    }
    drop(stream);
    server.await.unwrap();
}

#[test]
fn seeds_find_that_async_h1_loses_a_request_after_a_body_that_was_not_read() {
    let found = find(Explore::new(), two_requests_are_answered);
    assert!(found.seed.is_some(), "the usual order suffices: {found}");
    assert!(
        found
            .message
            .starts_with("nothing is left that could wake the program"),
        "{found}"
    );
}

#[test]
fn async_h1_drops_what_it_has_read_after_a_body() {
    let first = b"POST /1 HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n";
    let second = b"GET /2 HTTP/1.1\r\nhost: a\r\n\r\n";
    let answered = |pieces: Vec<Vec<u8>>| {
        let requests = Rc::new(Cell::new(0));
        let stream = async_dup::Arc::new(async_dup::Mutex::new(Pieces(pieces.into())));
        let served = async_h1::accept(stream, |_| {
            requests.set(requests.get() + 1);
            async { Ok(Response::new(StatusCode::Ok)) }
        });
        served.now_or_never().expect("the peer is ready").unwrap();
        requests.get()
    };
    let [first, second] = [first.to_vec(), second.to_vec()];
    let apart = vec![first.clone(), b"body".to_vec(), second.clone()];
    assert_eq!(answered(apart), 2);
    let together = vec![first, [b"body".to_vec(), second].concat()];
    assert_eq!(answered(together), 1);
}

// async-lock 3.5.0: a reader of its `RwLock` that was woken wakes the next reader before it looks
// whether it has the lock. If a writer has come first, two readers wake each other until the writer
// leaves. Microtasks run until none is left, as in Node, so the writer never leaves.

/// Two updates of a value that two tasks read later.
async fn a_value_is_updated_and_read() {
    let value = Rc::new(RwLock::new(0));
    let read = |value: Rc<RwLock<u32>>| async move {
        sleep(Duration::from_millis(5)).await;
        *value.read().await
    };
    let readers = [spawn(read(value.clone())), spawn(read(value.clone()))];
    for _ in 0..2 {
        let mut value = value.write().await;
        *value += spawn_blocking(|| 1).await.unwrap();
    }
    for reader in readers {
        assert!(reader.await.unwrap() <= 2);
    }
}

#[test]
fn seeds_find_that_readers_of_an_async_lock_wake_each_other_for_ever() {
    let explore = Explore::new().max_drain(1_000.try_into().unwrap());
    let found = find(explore, a_value_is_updated_and_read);
    assert!(found.seed.is_some(), "the usual order suffices: {found}");
    assert!(
        found.message.contains("1000 ticks and microtasks"),
        "{found}"
    );
}

/// A waker that remembers its wake.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn readers_of_an_async_lock_wake_each_other_while_a_writer_has_it() {
    let lock = RwLock::new(());
    let first = lock.try_write().unwrap();
    let mut readers = [Box::pin(lock.read()), Box::pin(lock.read())];
    let woken = [Arc::new(Woken::default()), Arc::new(Woken::default())];
    let mut poll = |reader: usize| {
        let waker = woken[reader].clone().into();
        let poll = readers[reader]
            .as_mut()
            .poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    };
    poll(0);
    poll(1);
    drop(first);
    let second = lock.try_write().unwrap();
    for turn in 0..1_000 {
        let reader = turn % 2;
        let is_woken = woken[reader].0.swap(false, Ordering::Relaxed);
        assert!(is_woken, "the readers are at rest after {turn} wakes");
        poll(reader);
    }
    drop(second);
}
