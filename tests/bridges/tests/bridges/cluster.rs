//! hyper and axum on all loops of a cluster.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use futures::{AsyncReadExt, AsyncWriteExt};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use phaseloop::cluster;
use phaseloop::hyper::serve;
use phaseloop::net::TcpStream;

use crate::util::clusters::{listeners, shut_down, until_all_listen};

const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";

/// Asks four times, each on a connection of its own, and returns the bodies.
async fn ask_four_times(address: SocketAddr) -> Vec<String> {
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(ASK).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        bodies.push(body.to_owned());
    }
    bodies.sort();
    bodies
}

// C14: `hyper::serve` takes the listener of a loop.
#[test]
fn hyper_serves_on_all_loops() {
    let run = cluster::Builder::new().loops(2).block_on(async {
        let listeners = listeners().await;
        let address = listeners.local_addr();
        let (listens, listening) = cluster::channel(2);
        let servers = cluster::current().each(move |index| {
            let answer = move |_: Request<Incoming>| async move {
                let body = Full::new(Bytes::from(format!("hyper {index}")));
                Ok::<_, Infallible>(Response::new(body))
            };
            let here = listeners.here();
            let serving = serve(here, service_fn(answer))
                .with_graceful_shutdown(cluster::stopping().cancelled());
            let listens = listens.clone();
            async move {
                listens.send(()).await.unwrap();
                serving.await
            }
        });
        until_all_listen(listening).await;
        let bodies = ask_four_times(address).await;
        assert_eq!(bodies, ["hyper 0", "hyper 0", "hyper 1", "hyper 1"]);
        shut_down().await;
        for server in servers.await {
            server.unwrap().unwrap();
        }
    });
    run.unwrap();
}

// C14: axum, with the address of the peer.
#[test]
fn axum_serves_on_all_loops() {
    let run = cluster::Builder::new().loops(2).block_on(async {
        let listeners = listeners().await;
        let address = listeners.local_addr();
        let (listens, listening) = cluster::channel(2);
        let servers = cluster::current().each(move |index| {
            let answer = move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
                assert!(peer.ip().is_loopback());
                format!("axum {index}")
            };
            let router = Router::new().route("/", get(answer));
            let router = router.into_make_service_with_connect_info::<SocketAddr>();
            let serving = serve(listeners.here(), router)
                .with_graceful_shutdown(cluster::stopping().cancelled());
            let listens = listens.clone();
            async move {
                listens.send(()).await.unwrap();
                serving.await
            }
        });
        until_all_listen(listening).await;
        let bodies = ask_four_times(address).await;
        assert_eq!(bodies, ["axum 0", "axum 0", "axum 1", "axum 1"]);
        shut_down().await;
        for server in servers.await {
            server.unwrap().unwrap();
        }
    });
    run.unwrap();
}
