//! What a server of `node::http` keeps in memory for its peers, counted by the allocator. Each test
//! is in a process of its own, and on the paused clock.

use crate::util::child::in_child;
use crate::util::memory::live;
use crate::util::trace::paused;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::net::TcpStream;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, IncomingMessage, Server, ServerResponse};
use phaseloop_node::net::LISTENING;
use phaseloop_node::{Emitter, run_on, sleep};

/// Runs `program` with a listening server, in a process of its own.
#[track_caller]
fn measured<F>(
    test: &str,
    handler: impl Fn(&IncomingMessage, &ServerResponse) + 'static,
    program: impl FnOnce(Server) -> F + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    let child = in_child(&[], test, || {
        let (mut event_loop, _, _) = paused();
        let exit = run_on(&mut event_loop, async move {
            let server = http::create_server(handler);
            let listening = once(&server, LISTENING);
            server.listen(("127.0.0.1", 0));
            listening.await.unwrap();
            // What is allocated once, by the first connection, does not count.
            drop(answered(&server, "GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await);
            settle().await;
            program(server.clone()).await;
            server.close_all_connections();
            server.close();
        });
        assert_eq!(exit.code(), 0);
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
}

/// Lets the server do what it can do at once.
async fn settle() {
    sleep(100).await.unwrap();
}

/// Connects and sends bytes, by a socket that takes no memory of this process.
async fn answered(server: &Server, bytes: &str) -> TcpStream {
    let mut peer = TcpStream::connect(server.address().unwrap()).unwrap();
    peer.write_all(bytes.as_bytes()).unwrap();
    settle().await;
    peer
}

/// The growth since `before`, in bytes.
fn grown(before: usize) -> usize {
    live().saturating_sub(before)
}

#[test]
fn an_idle_connection_takes_a_few_kilobytes() {
    const PEERS: usize = 300;
    let answer = |_: &IncomingMessage, res: &ServerResponse| res.end("hello");
    let test = "an_idle_connection_takes_a_few_kilobytes";
    measured(test, answer, |server| async move {
        let before = live();
        let mut peers = Vec::new();
        for _ in 0..PEERS {
            let mut peer = TcpStream::connect(server.address().unwrap()).unwrap();
            peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            peers.push(peer);
        }
        settle().await;
        assert_eq!(server.connections(), PEERS);
        let each = grown(before) / PEERS;
        assert!(each < 8 << 10, "{each} bytes each");
        // The idle timeout ends them, and their memory is free again.
        sleep(10_000).await.unwrap();
        assert_eq!(server.connections(), 0);
        assert!(
            grown(before) < 256 << 10,
            "{} bytes are kept",
            grown(before)
        );
    });
}

#[test]
fn bodies_and_headers_that_never_end_take_no_more_than_the_buffers() {
    let reads = |req: &IncomingMessage, _: &ServerResponse| {
        req.on(ERROR, |_| ());
        // The body is not read: it waits in the buffers.
        req.pause();
    };
    let test = "bodies_and_headers_that_never_end_take_no_more_than_the_buffers";
    measured(test, reads, |server| async move {
        let heads = [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"
                .to_owned(),
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(16_000)),
            format!("GET /{}", "u".repeat(16_000)),
        ];
        for head in heads {
            let before = live();
            let mut peer = answered(&server, &head).await;
            // What the kernel takes of 4 MiB of body; the writer of a head stops before the limit.
            peer.set_nonblocking(true).unwrap();
            if head.ends_with('\n') {
                let _taken = peer.write(&vec![b'x'; 4 << 20]);
            }
            settle().await;
            assert!(
                grown(before) < 512 << 10,
                "{} bytes: {head:.40}",
                grown(before)
            );
        }
    });
}

#[test]
fn a_pipeline_that_is_not_answered_takes_bounded_memory() {
    let kept = Rc::<RefCell<Vec<ServerResponse>>>::default();
    let handled = Rc::new(Cell::new(0));
    let (keep, count) = (kept.clone(), handled.clone());
    let keeps = move |_: &IncomingMessage, res: &ServerResponse| {
        count.set(count.get() + 1);
        keep.borrow_mut().push(res.clone());
    };
    let test = "a_pipeline_that_is_not_answered_takes_bounded_memory";
    measured(test, keeps, |server| async move {
        let before = live();
        let mut peer = TcpStream::connect(server.address().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        for _ in 0..20 {
            let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10_000);
            // The rest would block.
            let _taken = peer.write(requests.as_bytes());
            drop(requests);
            settle().await;
        }
        assert!(handled.get() < 4000, "{} handlers", handled.get());
        let each = grown(before) / handled.get();
        assert!(each < 8 << 10, "{each} bytes for each of {}", handled.get());
        drop(peer);
        kept.take();
        server.close_all_connections();
        settle().await;
        assert!(
            grown(before) < 256 << 10,
            "{} bytes are kept",
            grown(before)
        );
    });
}

#[test]
fn answers_to_a_peer_that_never_reads_take_bounded_memory() {
    let answer = |_: &IncomingMessage, res: &ServerResponse| res.end(vec![b'x'; 64 << 10]);
    let test = "answers_to_a_peer_that_never_reads_take_bounded_memory";
    measured(test, answer, |server| async move {
        let before = live();
        let mut peer = TcpStream::connect(server.address().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000);
        for _ in 0..50 {
            let _taken = peer.write(requests.as_bytes());
            settle().await;
        }
        // One read of 64 KiB brings up to 2,000 requests, whose answers are there at once.
        let bound = 2_200 * (66 << 10);
        assert!(grown(before) < bound, "{} bytes", grown(before));
        drop(peer);
        settle().await;
        assert_eq!(server.connections(), 0);
        assert!(
            grown(before) < 256 << 10,
            "{} bytes are kept",
            grown(before)
        );
    });
}
