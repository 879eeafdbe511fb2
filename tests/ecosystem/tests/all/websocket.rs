//! WebSockets, four ways.

use std::convert::Infallible;

use futures::{SinkExt, StreamExt};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use phaseloop::hyper::{HyperExecutor, HyperIo, serve};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{block_on, spawn};

#[test]
fn async_tungstenite_at_both_ends() {
    use async_tungstenite::tungstenite::Message;

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = async_tungstenite::accept_async(stream).await.unwrap();
            let message = socket.next().await.unwrap().unwrap();
            socket.send(message).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/");
        let (mut socket, _) = async_tungstenite::client_async(url, stream).await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.next().await.unwrap().unwrap(),
            Message::text("hello")
        );
        server.await.unwrap();
    });
}

#[test]
fn tokio_tungstenite_at_both_ends() {
    use tokio_tungstenite::tungstenite::Message;

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let message = socket.next().await.unwrap().unwrap();
            socket.send(message).await.unwrap();
        });
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/");
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.next().await.unwrap().unwrap(),
            Message::text("hello")
        );
        server.await.unwrap();
    });
}

async fn echo_frames(
    mut request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, fastwebsockets::WebSocketError> {
    let (response, socket) = fastwebsockets::upgrade::upgrade(&mut request)?;
    spawn(async move {
        let mut socket = fastwebsockets::FragmentCollector::new(socket.await.unwrap());
        let frame = socket.read_frame().await.unwrap();
        socket.write_frame(frame).await.unwrap();
    })
    .detach();
    Ok(response)
}

/// The server is `serve`, the client fastwebsockets' own handshake with our executor.
#[test]
fn fastwebsockets_by_an_upgrade_of_hyper() {
    use fastwebsockets::{Frame, OpCode, Payload};

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(serve(listener, service_fn(echo_frames)));
        let stream = TcpStream::connect(address).await.unwrap();
        let request = Request::get(format!("http://{address}/"))
            .header("host", "here")
            .header("upgrade", "websocket")
            .header("connection", "upgrade")
            .header(
                "sec-websocket-key",
                fastwebsockets::handshake::generate_key(),
            )
            .header("sec-websocket-version", "13")
            .body(Empty::<Bytes>::new())
            .unwrap();
        let stream = phaseloop::Local::new(stream);
        let (socket, _) = fastwebsockets::handshake::client(&HyperExecutor, request, stream)
            .await
            .unwrap();
        let mut socket = fastwebsockets::FragmentCollector::new(socket);
        let hello = Frame::text(Payload::Borrowed(b"hello"));
        socket.write_frame(hello).await.unwrap();
        let frame = socket.read_frame().await.unwrap();
        assert_eq!(
            (frame.opcode, &*frame.payload),
            (OpCode::Text, &b"hello"[..])
        );
        server.abort();
    });
}

/// `on_upgrade` calls `tokio::spawn`, so it needs the island; the sockets are ours.
#[test]
fn axums_websockets_on_the_island() {
    use axum::extract::ws::{WebSocket, WebSocketUpgrade};
    use axum::routing::any;
    use tokio_tungstenite::tungstenite::Message;

    async fn echo(mut socket: WebSocket) {
        while let Some(Ok(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    }

    phaseloop::tokio::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let upgrade = async |upgrade: WebSocketUpgrade| upgrade.on_upgrade(echo);
        let router = axum::Router::new().route("/", any(upgrade));
        let server = spawn(serve(listener, router));
        let stream = TcpStream::connect(address).await.unwrap();
        let url = format!("ws://{address}/");
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        for text in ["hello", "again"] {
            socket.send(Message::text(text)).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(text));
        }
        server.abort();
    });
}

/// The types of hyper's upgrades are `Send`, so a service may keep them.
#[test]
fn an_upgraded_connection_is_send() {
    fn asks_for_send<T: Send>() {}
    asks_for_send::<HyperIo<TcpStream>>();
    asks_for_send::<Result<hyper::upgrade::Upgraded, Infallible>>();
}
