//! A server of `node::http` on the paused clock, and peers that speak bytes.

use super::trace::paused;
use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, Server};
use phaseloop_node::net::{self, LISTENING, Socket};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Deferred, Emitter, Promise, run_on};

pub(crate) const BAD_REQUEST: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
pub(crate) const TIMED_OUT: &str = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";
pub(crate) const TOO_LARGE: &str = "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\n\r\n";
pub(crate) const HEAD_TOO_LARGE: &str =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n";

/// A request that ends its connection.
pub(crate) const LAST_GET: &str = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Runs a program with a listening server on the paused clock. The server is closed at the end.
pub(crate) fn with<F>(
    server: impl FnOnce() -> Server + 'static,
    program: impl FnOnce(Server) -> F + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    with_any(server, |server| async move {
        program(server.clone()).await;
        assert_eq!(get(&server).await, "/last", "the next client is served");
    });
}

/// Runs a program with a listening server on the paused clock. The server and its connections are
/// closed at the end.
pub(crate) fn with_any<F>(
    server: impl FnOnce() -> Server + 'static,
    program: impl FnOnce(Server) -> F + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    let (mut event_loop, _, _) = paused();
    let exit = run_on(&mut event_loop, async move {
        let server = server();
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        program(server.clone()).await;
        server.close();
        server.close_all_connections();
    });
    assert_eq!(exit.code(), 0);
}

/// A server that answers each request with its URL.
pub(crate) fn plain() -> Server {
    http::create_server(|req, res| res.end(req.url()))
}

/// One end of a connection that speaks bytes.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) socket: Socket,
    pub(crate) got: Rc<RefCell<Vec<u8>>>,
    pub(crate) closed: Promise<()>,
}

impl Peer {
    pub(crate) fn connect(server: &Server) -> Self {
        Self::of(net::connect(server.address().unwrap()))
    }

    pub(crate) fn of(socket: Socket) -> Self {
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
    pub(crate) fn send(server: &Server, bytes: impl AsRef<[u8]>) -> Self {
        let peer = Self::connect(server).reading();
        peer.socket.write(bytes.as_ref().to_vec());
        peer
    }

    pub(crate) fn reading(self) -> Self {
        let got = self.got.clone();
        self.socket
            .on_data(move |bytes| got.borrow_mut().extend(bytes));
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.got.borrow()).into_owned()
    }

    /// Waits for the end of the connection, and returns all that came.
    pub(crate) async fn rest(&self) -> String {
        self.closed.clone().await.unwrap();
        self.text()
    }
}

/// Sends a request of its own and returns the body of the answer.
pub(crate) async fn get(server: &Server) -> String {
    let answer = Peer::send(server, LAST_GET).rest().await;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .expect("the answer has a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}
