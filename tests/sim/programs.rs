//! Programs that know nothing of the network in memory: hyper, axum, tokio's traits.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use futures::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use phaseloop::hyper::{Connector, serve};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::shuffle::{Determinism, Explore};
use phaseloop::sim::{Link, Network, Settings};
use phaseloop::spawn;
use phaseloop::time::sleep;

fn router() -> Router {
    let double = |Path(n): Path<u64>| async move { (2 * n).to_string() };
    let echo = |body: Bytes| async move { body };
    Router::new()
        .route("/double/{n}", get(double))
        .route("/echo", post(echo))
}

async fn serve_axum() {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    serve(listener, router()).await.unwrap();
}

async fn fetch(host: &str) {
    let client = Connector::new().client();
    let long = Bytes::from(vec![b'x'; 100_000]);
    let request = Request::post(format!("http://{host}/echo"));
    let request = request.body(Full::new(long.clone())).unwrap();
    let echoed = client.request(request).await.unwrap();
    assert_eq!(echoed.into_body().collect().await.unwrap().to_bytes(), long);
    let request = Request::get(format!("http://{host}/double/21"));
    let answer = client.request(request.body(Full::default()).unwrap()).await;
    let body = answer.unwrap().into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), "42");
}

#[test]
fn axum_and_hypers_client_run_unchanged() {
    Explore::new().seeds(40).run(|| async {
        let server = spawn(serve_axum());
        phaseloop::task::yield_now_immediate().await;
        fetch("127.0.0.1").await;
        server.abort();
    });
}

#[test]
fn axum_runs_on_a_host_and_answers_others() {
    Explore::new().seeds(20).run(|| async {
        let network = Network::current();
        let server = network.host("api", [10, 0, 0, 1]);
        server.run(serve_axum).detach();
        let client = network.host("client", [10, 0, 0, 2]).run(|| async {
            sleep(Duration::from_secs(1)).await;
            fetch("api").await;
        });
        client.await.unwrap();
    });
}

#[test]
fn tokios_traits_work() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    Explore::new().seeds(40).run(|| async {
        let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
        let server = spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            AsyncReadExt::read_to_string(&mut stream, &mut text)
                .await
                .unwrap();
            text
        });
        let mut client = TcpStream::connect("127.0.0.1:7").await.unwrap();
        AsyncWriteExt::write_all(&mut client, b"by tokio's traits")
            .await
            .unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(server.await.unwrap(), "by tokio's traits");
    });
}

/// Frames of one byte of length and so many bytes, over links that are slow, on many hosts.
async fn frames() {
    let network = Network::current();
    let hub = network.host("hub", [10, 0, 0, 1]);
    hub.run(|| async {
        let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            spawn(async move {
                let mut length = [0];
                while stream.read_exact(&mut length).await.is_ok() {
                    let mut frame = vec![0; length[0].into()];
                    stream.read_exact(&mut frame).await.unwrap();
                    frame.reverse();
                    stream.write_all(&frame).await.unwrap();
                }
            })
            .detach();
        }
    })
    .detach();
    let clients = (1..9_u8).map(|n| {
        let host = network.host(&format!("client{n}"), [10, 0, 1, n]);
        let link = Link {
            bandwidth: Some(10_000),
            ..Link::default()
        };
        network.link("hub", &format!("client{n}"), link);
        host.run(move || async move {
            sleep(Duration::from_millis(10)).await;
            let mut stream = TcpStream::connect("hub:1").await.unwrap();
            for length in [1_u8, 7, 200] {
                let frame: Vec<u8> = (0..length).map(|byte| byte ^ n).collect();
                stream
                    .write_all(&[&[length][..], &frame].concat())
                    .await
                    .unwrap();
                let mut answer = vec![0; length.into()];
                stream.read_exact(&mut answer).await.unwrap();
                answer.reverse();
                assert_eq!(answer, frame);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[test]
fn a_protocol_that_is_right_survives_every_seed() {
    let explore = Explore::new().seeds(200).check(Determinism::Every(10));
    explore.run(frames);
}
