//! Servers and their clients.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::routing::get;
use futures::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use phaseloop::hyper::{Connector, HyperExecutor, Listener, TlsStream, serve};
use phaseloop::net::TcpListener;
use phaseloop::time::sleep;
use phaseloop::{Local, spawn};
use tokio::sync::oneshot;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::{Outcome, ROUNDS, certificates};

const LOCALHOST: &str = "127.0.0.1:0";

/// `axum::serve`, unmodified, in a task of tokio. Its handlers wait for timers of both.
pub(crate) struct AxumServe {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl AxumServe {
    pub(crate) async fn start() -> Outcome<Self> {
        let slow = || async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Local::new(sleep(Duration::from_millis(50))).await;
            "slow"
        };
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/slow", get(slow));
        let listener = tokio::net::TcpListener::bind(LOCALHOST).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let server = axum::serve(listener, router);
            let server = server.with_graceful_shutdown(async { _ = stopped.await });
            server.await.expect("the server ends well");
        });
        Ok(Self {
            address,
            stop,
            task,
        })
    }

    /// Stops the server while a request is under way, which is answered.
    pub(crate) async fn stop(self) -> Outcome {
        let slow = spawn(reqwest::get(format!("http://{}/slow", self.address)));
        sleep(Duration::from_millis(20)).await;
        self.stop.send(()).expect("the server waits for it");
        assert_eq!(slow.await??.text().await?, "slow");
        Ok(self.task.await?)
    }
}

pub(crate) async fn reqwest(address: SocketAddr) -> Outcome {
    let client = reqwest::Client::new();
    for _ in 0..ROUNDS {
        let answer = client.get(format!("http://{address}/")).send().await?;
        assert_eq!(answer.text().await?, "hello");
    }
    Ok(())
}

type Hits = Local<Rc<Cell<usize>>>;

/// axum with an `Rc` as state, on sockets of the loop with TLS; the client is that of hyper-util.
pub(crate) async fn https() -> Outcome {
    let hit = async |State(hits): State<Hits>| {
        hits.set(hits.get() + 1);
        format!("hit {}", hits.get())
    };
    let router = Router::new()
        .route("/", get(hit))
        .with_state(Hits::new(Rc::default()));
    let listener = TcpListener::bind(LOCALHOST).await?;
    let port = listener.local_addr()?.port();
    let config = certificates::server_config();
    let listener = listener.with_handshake(move |stream| TlsStream::accept(config.clone(), stream));
    let server = spawn(serve(listener, router));
    let connector = Connector::new().tls_config(certificates::client_config());
    let client = connector.client::<Empty<Bytes>>();
    for n in 1..=ROUNDS {
        let answer = client.get(format!("https://localhost:{port}/").parse()?);
        let body = answer.await?.into_body().collect().await?.to_bytes();
        assert_eq!(body, format!("hit {n}"));
    }
    server.abort();
    Ok(())
}

/// axum's WebSocket on a socket of the loop: hyper drives it in a task of the loop, and axum runs
/// its handler in a task of tokio.
pub(crate) async fn websocket() -> Outcome {
    let upgrade = async |upgrade: WebSocketUpgrade| {
        upgrade.on_upgrade(async |mut socket| {
            while let Some(Ok(message)) = socket.recv().await {
                if matches!(message, Message::Text(_)) && socket.send(message).await.is_err() {
                    break;
                }
            }
        })
    };
    let listener = TcpListener::bind(LOCALHOST).await?;
    let url = format!("ws://{}/echo", listener.local_addr()?);
    let router = Router::new().route("/echo", get(upgrade));
    let server = spawn(serve(listener, router));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
    for n in 0..ROUNDS {
        socket.send(format!("message {n}").into()).await?;
        let answer = socket.next().await.ok_or("closed")??;
        assert_eq!(answer.into_text()?.as_str(), format!("message {n}"));
    }
    socket.close(None).await?;
    server.abort();
    Ok(())
}

/// A server and a `Channel` of tonic, both on sockets of the loop.
pub(crate) async fn grpc() -> Outcome {
    let (reporter, health) = tonic_health::server::health_reporter();
    let serving = tonic_health::ServingStatus::Serving;
    reporter.set_service_status("echo", serving).await;
    let listener = TcpListener::bind(LOCALHOST).await?;
    let uri: hyper::Uri = format!("http://{}", listener.local_addr()?).parse()?;
    let server = spawn(serve(listener, tonic::service::Routes::new(health)));
    let endpoint = tonic::transport::Endpoint::from(uri).executor(HyperExecutor);
    let channel = endpoint.connect_with_connector(Connector::new()).await?;
    let mut client = HealthClient::new(channel);
    for _ in 0..ROUNDS {
        let question = HealthCheckRequest {
            service: "echo".into(),
        };
        let answer = client.check(question).await?.into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    server.abort();
    Ok(())
}
