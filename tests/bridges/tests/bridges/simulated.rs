//! Programs that know nothing of the network in memory: hyper, axum, tokio's traits.

use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use phaseloop::hyper::{Connector, serve};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::shuffle::Explore;
use phaseloop::sim::Network;
use phaseloop::spawn;
use phaseloop::time::sleep;

use crate::both::{Log, scripts};
use crate::util::polls::poll_once;

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

scripts! { 40,
    an_empty_read_of_tokio_waits_for_data,
}

mod scripts {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::{Log, TcpListener, TcpStream, poll_once};

    pub(super) async fn an_empty_read_of_tokio_waits_for_data(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (mut client, (mut server, _)) = (client.unwrap(), listener.accept().await.unwrap());
        log.line(poll_once(server.read(&mut [])).await.is_pending());
        client.write_all(b"x").await.unwrap();
        log.result("read", server.read(&mut []).await);
        let mut byte = [0];
        log.result("the byte", server.read(&mut byte).await);
        log.line(byte[0]);
        drop(client);
        log.result("at the end", server.read(&mut []).await);
    }
}
