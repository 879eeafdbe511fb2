//! HTTP clients: hyper-util's by our connector, ureq on the pool.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use phaseloop::hyper::{Connector, Listener, TlsStream, serve};
use phaseloop::net::TcpListener;
use phaseloop::{block_on, spawn, spawn_blocking};

fn router() -> axum::Router {
    axum::Router::new().route("/", axum::routing::get(async || "hello"))
}

#[test]
fn hyper_utils_client_over_tls() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = crate::tls::server_config();
        let listener =
            listener.with_handshake(move |stream| TlsStream::accept(config.clone(), stream));
        let server = spawn(serve(listener, router()));
        let connector = Connector::new().tls_config(crate::tls::client_config());
        let client = connector.client::<Empty<Bytes>>();
        let uri = format!("https://localhost:{port}/").parse().unwrap();
        let answer = client.get(uri).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "hello");
        server.abort();
    });
}

#[test]
fn ureq_on_the_pool() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(serve(listener, router()));
        let body = spawn_blocking(move || {
            let answer = ureq::get(format!("http://{address}/")).call().unwrap();
            answer.into_body().read_to_string().unwrap()
        });
        assert_eq!(body.await.unwrap(), "hello");
        server.abort();
    });
}
