//! What sockets, requests and fetches that are destroyed leave behind: bytes, counted by the
//! allocator, and descriptors. Each test is in a process of its own, and on the paused clock.
#![cfg(all(target_os = "linux", feature = "tls", feature = "fetch"))]

use crate::left::{closing, descriptors, isolated, leaves_nothing, until};
use std::cell::{Cell, RefCell};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use phaseloop::net::TcpSocket;
use phaseloop::{Handle as _, phase};
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Agent, RequestOptions};
use phaseloop_node::net::{self, CONNECT, LISTENING, Server, Socket};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::tls::{self, ClientContext, ServerContext};
use phaseloop_node::{AbortSignal, Emitter, Error, fetch, https, sleep};

const CA: &[u8] = include_bytes!("../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

/// More than the kernel takes for a peer that does not read.
const LARGE: usize = 8 << 20;

async fn listening(server: &Server) -> SocketAddr {
    let listens = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    server.address().unwrap()
}

async fn http_listening(server: &http::Server) -> SocketAddr {
    let listens = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    server.address().unwrap()
}

fn trusting() -> ClientContext {
    ClientContext::with_ca(CA).unwrap()
}

fn identity() -> ServerContext {
    ServerContext::new(CERTIFICATE, KEY).unwrap()
}

/// Counts the callbacks that get an error with this code.
fn counted(
    count: &Rc<Cell<usize>>,
    code: &'static str,
) -> impl FnOnce(Result<(), Error>) + 'static {
    let count = count.clone();
    move |result| {
        assert_eq!(result.unwrap_err().code(), Some(code));
        count.set(count.get() + 1);
    }
}

#[test]
fn a_download_that_the_client_leaves_frees_its_response() {
    isolated(
        "a_download_that_the_client_leaves_frees_its_response",
        || async {
            let (cancelled, closed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let (count, ends) = (cancelled.clone(), closed.clone());
            let server = http::create_server(move |_, response| {
                response.write_with(vec![b'x'; LARGE], counted(&count, "ECANCELED"));
                response.end_with((), counted(&count, "ECANCELED"));
                let (ends, held) = (ends.clone(), response.clone());
                response.on(CLOSE, move |()| {
                    assert!(!held.finished());
                    ends.set(ends.get() + 1);
                });
            });
            let address = http_listening(&server).await;
            let rounds = Cell::new(0);
            leaves_nothing(30, async || {
                rounds.set(rounds.get() + 1);
                let mut peer = TcpStream::connect(address).unwrap();
                peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    .unwrap();
                peer.set_nonblocking(true).unwrap();
                let mut some = [0; 1024];
                assert!(until(|| (&peer).read(&mut { some }).is_ok()).await);
                some.fill(0);
                drop(peer);
                assert!(until(|| closed.get() == rounds.get()).await);
            })
            .await;
            assert_eq!(cancelled.get(), 2 * rounds.get());
            server.close();
        },
    );
}

#[test]
fn an_upload_that_is_destroyed_frees_its_request() {
    isolated("an_upload_that_is_destroyed_frees_its_request", || async {
        // The server does not read, and destroys every second request itself.
        let seen = Rc::new(Cell::new(0));
        let count = seen.clone();
        let server = http::create_server(move |request, response| {
            request.on(ERROR, |_| ());
            request.pause();
            count.set(count.get() + 1);
            if count.get() % 2 == 0 {
                response.destroy(None);
            }
        });
        let address = http_listening(&server).await;
        let (begun, cancelled) = (Cell::new(0), Rc::new(Cell::new(0)));
        leaves_nothing(30, async || {
            begun.set(begun.get() + 1);
            let options = RequestOptions::new(address).method("POST");
            let request = http::request(options);
            let held = request.clone();
            request.on(ERROR, move |_| drop(held.clone()));
            let closed = closing(&request);
            let count = cancelled.clone();
            request.write_with(vec![b'x'; LARGE], move |result| {
                assert!(result.is_err());
                count.set(count.get() + 1);
            });
            assert!(until(|| seen.get() == begun.get()).await);
            request.destroy(None);
            closed.await.unwrap();
            // A server that does not read sees no reset.
            server.close_all_connections();
        })
        .await;
        assert_eq!(cancelled.get(), begun.get());
        server.close();
    });
}

#[test]
fn a_pending_write_of_a_destroyed_socket_is_cancelled_and_freed() {
    let test = "a_pending_write_of_a_destroyed_socket_is_cancelled_and_freed";
    isolated(test, || async {
        let (_listener, address) = silent();
        let path = std::env::temp_dir().join(format!("pl-{}.sock", std::process::id()));
        let local = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let (begun, cancelled) = (Cell::new(0), Rc::new(Cell::new(0)));
        leaves_nothing(30, async || {
            begun.set(begun.get() + 2);
            for address in [address.into(), net::Address::from(path.clone())] {
                let client = net::connect(address);
                let (connected, closed) = (once(&client, CONNECT), closing(&client));
                connected.await.unwrap();
                client.write_with(vec![b'x'; LARGE], counted(&cancelled, "ECANCELED"));
                client.write_with("y", counted(&cancelled, "ECANCELED"));
                client.end_with((), counted(&cancelled, "ECANCELED"));
                let held = client.clone();
                client.on(CLOSE, move |()| assert!(held.destroyed()));
                client.destroy(None);
                closed.await.unwrap();
            }
        })
        .await;
        assert_eq!(cancelled.get(), 3 * begun.get());
        drop(local);
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn a_pending_write_of_a_destroyed_tls_socket_is_cancelled_and_freed() {
    let test = "a_pending_write_of_a_destroyed_tls_socket_is_cancelled_and_freed";
    isolated(test, || async {
        let cancelled = Rc::new(Cell::new(0));
        let count = cancelled.clone();
        let server = https::create_server(&identity(), move |_, response| {
            // The peer's reset may be seen by the write before it is seen by the read.
            let count = count.clone();
            response.write_with(vec![b'x'; LARGE], move |result| {
                assert!(result.is_err());
                count.set(count.get() + 1);
            });
            response.end(());
        });
        let address = http_listening(&server).await;
        let (context, begun) = (trusting(), Cell::new(0));
        leaves_nothing(30, async || {
            begun.set(begun.get() + 1);
            let client = tls::connect_with(address, Some("localhost"), &context);
            let closed = closing(&client);
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let held = client.clone();
            client.on_data(move |_| held.destroy(None));
            closed.await.unwrap();
            assert!(until(|| cancelled.get() == begun.get()).await);
        })
        .await;
        server.close();
    });
}

#[test]
fn a_tls_server_that_destroys_its_socket_frees_what_it_has_written() {
    let test = "a_tls_server_that_destroys_its_socket_frees_what_it_has_written";
    isolated(test, || async {
        let cancelled = Rc::new(Cell::new(0));
        let count = cancelled.clone();
        // The peer does not read, so that only the destruction ends the write.
        let server = tls::create_server(&identity(), move |socket| {
            socket.write_with(vec![b'x'; LARGE], counted(&count, "ECANCELED"));
            let socket = socket.clone();
            phaseloop_node::set_timeout(20, move || socket.destroy(None));
        });
        let address = listening(&server).await;
        let (context, begun) = (trusting(), Cell::new(0));
        leaves_nothing(30, async || {
            begun.set(begun.get() + 1);
            let client = tls::connect_with(address, Some("localhost"), &context);
            let closed = closing(&client);
            client.on(ERROR, |_| ());
            client.pause();
            assert!(until(|| cancelled.get() == begun.get()).await);
            client.destroy(None);
            closed.await.unwrap();
        })
        .await;
        server.close();
    });
}

#[test]
fn a_shutdown_that_waits_for_a_tls_peer_is_cancelled() {
    let test = "a_shutdown_that_waits_for_a_tls_peer_is_cancelled";
    isolated(test, || async {
        let accepted = Rc::<RefCell<Vec<Socket>>>::default();
        let list = accepted.clone();
        let server = tls::create_server(&identity(), move |socket| {
            socket.on(ERROR, |_| ());
            socket.pause();
            list.borrow_mut().push(socket.clone());
        });
        let address = listening(&server).await;
        let (context, ended) = (trusting(), Rc::new(Cell::new(0)));
        let begun = Cell::new(0);
        leaves_nothing(20, async || {
            begun.set(begun.get() + 1);
            let client = tls::connect_with(address, Some("localhost"), &context);
            let (connected, closed) = (once(&client, CONNECT), closing(&client));
            connected.await.unwrap();
            // The kernel is full: the last record and the goodbye wait behind each other.
            while client.write(vec![b'x'; 64 << 10]) {}
            client.end_with((), counted(&ended, "ECANCELED"));
            client.destroy(None);
            closed.await.unwrap();
            assert!(until(|| !accepted.borrow().is_empty()).await);
            for socket in accepted.take() {
                socket.destroy(None);
            }
        })
        .await;
        assert_eq!(ended.get(), begun.get());
        server.close();
    });
}

#[test]
fn requests_that_are_destroyed_without_a_socket_are_freed() {
    let test = "requests_that_are_destroyed_without_a_socket_are_freed";
    isolated(test, || async {
        let server = http::create_server(|_, response| response.end("hello"));
        let address = http_listening(&server).await;
        let narrow = Agent::builder().keep_alive(true).max_sockets(1).build();
        let stages = Cell::new(0);
        let stage = async || {
            let number = stages.replace(stages.get() + 1);
            let agent = match number % 2 {
                0 => http::global_agent(),
                _ => narrow.clone(),
            };
            let options = RequestOptions::new(address).agent(&agent);
            let request = http::request(options);
            let closed = closing(&request);
            let held = request.clone();
            request.on(ERROR, move |_| drop(held.clone()));
            let held = request.clone();
            match number % 5 {
                0 => request.destroy(None),
                1 => {
                    request.end_with((), move |_| drop(held));
                    request.destroy(None);
                }
                2 => {
                    request.destroy(None);
                    request.end("late");
                }
                3 => {
                    request.write_with("body", move |_| drop(held));
                    request.destroy(None);
                    phase::check().await;
                }
                _ => {
                    request.end(());
                    let response = once(&request, http::RESPONSE).await.unwrap();
                    response.resume();
                }
            }
            closed.await.unwrap();
            // What is written to a closed request must not hold it.
            request.end(());
        };
        leaves_nothing(500, stage).await;
        narrow.destroy();
        http::global_agent().destroy();
        server.close();
        server.close_all_connections();
    });
}

/// A server that accepts by its kernel only.
fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn a_fetch_that_times_out_leaves_nothing() {
    isolated("a_fetch_that_times_out_leaves_nothing", || async {
        let (_listener, address) = silent();
        for scheme in ["http", "https"] {
            leaves_nothing(20, async || {
                let request = fetch(format!("{scheme}://{address}"));
                let answer = request.signal(&AbortSignal::timeout(50)).send().await;
                assert_eq!(answer.unwrap_err().name(), "TimeoutError");
            })
            .await;
        }
    });
}

#[test]
fn a_request_that_times_out_leaves_nothing() {
    isolated("a_request_that_times_out_leaves_nothing", || async {
        let (_listener, address) = silent();
        leaves_nothing(20, async || {
            let request = http::get(RequestOptions::new(address).timeout(50));
            let closed = closing(&request);
            request.on(ERROR, |_| ());
            let held = request.clone();
            request.on(net::TIMEOUT, move |()| held.destroy(None));
            closed.await.unwrap();
        })
        .await;
    });
}

/// A listener whose queue is full: connections to it never complete.
fn full() -> (phaseloop::net::TcpListener, SocketAddr, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let patience = Duration::from_millis(300);
    let connect = |()| TcpStream::connect_timeout(&address, patience).ok();
    let waiting = std::iter::repeat(()).map_while(connect).collect();
    (listener, address, waiting)
}

#[test]
fn a_destroyed_socket_stops_to_connect_at_once() {
    isolated("a_destroyed_socket_stops_to_connect_at_once", || async {
        let (listener, address, waiting) = full();
        listener.unref();
        leaves_nothing(20, async || {
            let open = descriptors();
            let client = net::connect(address);
            let closed = closing(&client);
            phase::check().await;
            assert_eq!(descriptors(), open + 1);
            client.destroy(None);
            assert_eq!(descriptors(), open, "the socket is closed inside the call");
            closed.await.unwrap();
        })
        .await;
        // Nothing keeps the loop alive: the program ends, though no connection has failed.
        let client = net::connect(address);
        phase::check().await;
        client.destroy(None);
        drop((listener, waiting));
    });
}

#[test]
fn a_destroyed_socket_stops_its_handshake_at_once() {
    isolated("a_destroyed_socket_stops_its_handshake_at_once", || async {
        let (_listener, address) = silent();
        let context = trusting();
        leaves_nothing(20, async || {
            let open = descriptors();
            let client = tls::connect_with(address, Some("localhost"), &context);
            let closed = closing(&client);
            sleep(50).await.unwrap();
            assert_eq!(descriptors(), open + 1);
            client.destroy(None);
            assert_eq!(descriptors(), open, "the socket is closed inside the call");
            closed.await.unwrap();
        })
        .await;
    });
}

#[test]
fn a_server_that_closes_drops_its_handshakes() {
    isolated("a_server_that_closes_drops_its_handshakes", || async {
        leaves_nothing(20, async || {
            let server = tls::create_server(&identity(), |_| ());
            let address = listening(&server).await;
            let peers: Vec<_> = (0..3)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            sleep(20).await.unwrap();
            let closed = once(&server, CLOSE);
            server.close();
            closed.await.unwrap();
            drop(peers);
        })
        .await;
    });
}

#[test]
fn a_socket_that_connects_again_and_again_is_freed_at_last() {
    let test = "a_socket_that_connects_again_and_again_is_freed_at_last";
    isolated(test, || async {
        let server = net::create_server(|socket| socket.end("hello"));
        let address = listening(&server).await;
        leaves_nothing(30, async || {
            let socket = Socket::new();
            let (left, got) = (Rc::new(Cell::new(4)), Rc::<RefCell<Vec<u8>>>::default());
            let (again, all, count) = (socket.clone(), got.clone(), left.clone());
            socket.on_data(move |bytes| all.borrow_mut().extend_from_slice(bytes));
            socket.on(CLOSE, move |()| {
                count.set(count.get() - 1);
                match count.get() {
                    0 => {}
                    2 => {
                        let later = again.clone();
                        phaseloop_node::set_timeout(10, move || later.connect(address));
                    }
                    _ => again.connect(address),
                }
            });
            socket.connect(address);
            drop(socket);
            assert!(until(|| left.get() == 0).await);
            assert_eq!(*got.borrow(), b"hello".repeat(4));
        })
        .await;
        server.close();
    });
}

#[test]
fn a_socket_that_is_dropped_before_it_connects_is_freed() {
    let test = "a_socket_that_is_dropped_before_it_connects_is_freed";
    isolated(test, || async {
        leaves_nothing(500, async || {
            let socket = Socket::new();
            socket.on_data(|_| ());
            socket.resume();
            phase::check().await;
        })
        .await;
    });
}

#[test]
fn responses_that_are_left_at_odd_moments_leave_nothing() {
    let test = "responses_that_are_left_at_odd_moments_leave_nothing";
    isolated(test, || async {
        let server = http::create_server(|request, response| match request.url() {
            "/silent" => {}
            "/half" => drop(response.write("half")),
            "/large" => response.end(vec![b'x'; 1 << 20]),
            _ => response.end("hello"),
        });
        let address = http_listening(&server).await;
        let number = Cell::new(0);
        leaves_nothing(200, async || {
            let stage = number.replace(number.get() + 1) % 6;
            let path = ["silent", "half", "large", "whole", "half", "large"][stage];
            if stage >= 4 {
                let url = format!("http://{address}/{path}");
                let response = fetch(url).send().await.unwrap();
                return drop(response);
            }
            let request = http::get(RequestOptions::new(address).path(format!("/{path}")));
            let closed = closing(&request);
            let held = request.clone();
            request.on(ERROR, move |_| drop(held.clone()));
            let held = request.clone();
            request.on_response(move |response| {
                let kept = response.clone();
                response.on(ERROR, move |_| drop(kept.clone()));
                match stage {
                    3 => {
                        response.resume();
                    }
                    _ => held.destroy(None),
                }
            });
            if stage == 0 {
                sleep(10).await.unwrap();
                request.destroy(None);
            }
            drop(request);
            closed.await.unwrap();
        })
        .await;
        http::global_agent().destroy();
        server.close_all_connections();
        server.close();
    });
}
