//! Peers that are slow, silent, idle, or do not read: none of them holds a server up.

use std::future::ready;
use std::io;

use futures::AsyncReadExt;
use http_body_util::Empty;
use hyper::Request;
use hyper::service::service_fn;
use phaseloop::hyper::{ServeError, serve};
use phaseloop::{LoopHandle, block_on, time};

use super::{
    ASK, Client, Running, SECOND, answer, counting, http2_client, listener, settle, start,
};
use std::time::Duration;

/// The connection is open until the limit has passed, and closed then.
async fn after(client: &mut Client, limit: Duration, server: &Running) {
    settle().await;
    time::advance(limit - SECOND).await;
    settle().await;
    let mut byte = [0];
    let read = client.stream.try_read(&mut byte);
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock, "open");
    assert!(server.errors.borrow().is_empty());
    time::advance(SECOND).await;
    assert!(client.is_closed().await);
}

#[test]
fn a_peer_that_says_nothing_is_out_of_time() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()).header_timeout(10 * SECOND));
        let mut client = Client::connect(address).await;
        after(&mut client, 10 * SECOND, &server).await;
        let errors = server.end().await;
        assert!(
            matches!(errors[..], [ServeError::HeaderTimeout]),
            "{errors:?}"
        );
    });
}

/// A byte from time to time does not help, neither in the first head nor in a later one.
#[test]
fn a_head_that_comes_slowly_is_out_of_time() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = serve(listener, counting()).header_timeout(10 * SECOND);
        let server = start(server.idle_timeout(1000 * SECOND));
        for asked in [false, true] {
            let mut client = Client::connect(address).await;
            if asked {
                client.ask().await;
                time::advance(500 * SECOND).await;
            }
            for _ in 0..9 {
                client.send(b"G").await;
                settle().await;
                time::advance(SECOND).await;
            }
            settle().await;
            assert!(server.errors.borrow().is_empty());
            client.send(b"G").await;
            settle().await;
            time::advance(SECOND).await;
            assert!(client.is_closed().await);
            let errors = server.errors.take();
            assert!(
                matches!(errors[..], [ServeError::HeaderTimeout]),
                "{errors:?}"
            );
        }
        server.end().await;
    });
}

#[test]
fn an_idle_connection_is_closed_without_an_error() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()).idle_timeout(20 * SECOND));
        let mut client = Client::connect(address).await;
        for _ in 0..3 {
            client.ask().await;
            time::advance(19 * SECOND).await;
            settle().await;
        }
        client.ask().await;
        after(&mut client, 20 * SECOND, &server).await;
        assert!(server.end().await.is_empty());
    });
}

/// Requests of minutes are no fault of the peer.
#[test]
fn a_slow_service_has_no_time_limit() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let service = service_fn(|_| async {
            time::sleep(600 * SECOND).await;
            answer("at last")
        });
        let server = start(serve(listener, service));
        assert_eq!(Client::connect(address).await.ask().await, "at last");
        assert!(server.end().await.is_empty());
    });
}

/// A limit of zero is checked for as well, but not without a pause.
#[test]
fn a_limit_of_zero_lets_the_loop_sleep_while_a_request_is_answered() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let service = service_fn(|_| async {
            time::sleep(SECOND).await;
            answer("at last")
        });
        let server = start(serve(listener, service).idle_timeout(Duration::ZERO));
        let mut client = Client::connect(address).await;
        client.send(ASK).await;
        settle().await;
        let next = LoopHandle::current().next_timeout();
        assert!(next > Some(Duration::ZERO), "{next:?}");
        assert_eq!(client.answer().await, "at last");
        assert!(client.is_closed().await);
        assert!(server.end().await.is_empty());
    });
}

#[test]
fn an_idle_connection_of_http2_is_told_to_go() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = start(serve(listener, counting()).idle_timeout(20 * SECOND));
        let mut sender = http2_client(address).await;
        let request = || Request::get("http://here/").body(Empty::new()).unwrap();
        sender.send_request(request()).await.unwrap();
        settle().await;
        time::advance(19 * SECOND).await;
        settle().await;
        sender.send_request(request()).await.unwrap();
        settle().await;
        time::advance(20 * SECOND).await;
        settle().await;
        assert!(sender.send_request(request()).await.is_err());
        assert!(server.end().await.is_empty());
    });
}

/// A peer of HTTP/2 that sends its preface and nothing else cannot hold the server up.
#[test]
fn a_peer_that_does_not_take_part_in_the_end_is_closed() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let server = serve(listener, counting()).idle_timeout(20 * SECOND);
        let server = start(server.header_timeout(5 * SECOND));
        let mut client = Client::connect(address).await;
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        settle().await;
        server.stop.send(()).unwrap();
        settle().await;
        time::advance(5 * SECOND).await;
        server.task.await.unwrap().unwrap();
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest).await;
    });
}

#[test]
fn a_peer_that_does_not_read_is_out_of_time() {
    block_on(async {
        time::pause();
        let (listener, address) = listener().await;
        let service = service_fn(|_| ready(answer(vec![b'x'; 64 << 20])));
        let server = start(serve(listener, service).write_timeout(10 * SECOND));
        let mut client = Client::connect(address).await;
        client.send(ASK).await;
        settle().await;
        time::advance(9 * SECOND).await;
        settle().await;
        // Something was read, so the time starts again.
        let mut some = vec![0; 8 << 20];
        client.stream.read_exact(&mut some).await.unwrap();
        settle().await;
        time::advance(9 * SECOND).await;
        settle().await;
        assert!(server.errors.borrow().is_empty());
        time::advance(SECOND).await;
        settle().await;
        let errors = server.end().await;
        assert!(
            matches!(errors[..], [ServeError::WriteTimeout]),
            "{errors:?}"
        );
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest).await;
        assert!(rest.len() < 56 << 20, "cut");
    });
}
