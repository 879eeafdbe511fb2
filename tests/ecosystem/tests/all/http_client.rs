//! HTTP clients: hyper-util's by our connector, ureq on the pool, isahc, async-h1.

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
        let config = crate::certificates::server_config();
        let listener =
            listener.with_handshake(move |stream| TlsStream::accept(config.clone(), stream));
        let server = spawn(serve(listener, router()));
        let connector = Connector::new().tls_config(crate::certificates::client_config());
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

/// curl runs in a thread of isahc's own.
#[cfg(feature = "heavy")]
#[test]
fn isahc_as_it_is() {
    use isahc::AsyncReadResponseExt;

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(serve(listener, router()));
        let answer = isahc::get_async(format!("http://{address}/")).await;
        assert_eq!(answer.unwrap().bytes().await.unwrap(), b"hello");
        server.abort();
    });
}

/// async-h1 asks for a stream that is `Clone + Send + Sync`.
#[test]
fn async_h1_at_both_ends() {
    use http_types::{Method, Request, Response, StatusCode};
    use phaseloop::Local;
    use phaseloop::net::TcpStream;

    let shared = |stream: TcpStream| async_dup::Arc::new(Local::new(stream));
    block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let hello = |_: Request| async {
                let mut response = Response::new(StatusCode::Ok);
                response.set_body("hello");
                Ok(response)
            };
            async_h1::accept(shared(stream), hello).await.unwrap();
        });
        let stream = shared(TcpStream::connect(address).await.unwrap());
        let url: http_types::Url = format!("http://{address}/").parse().unwrap();
        let request = Request::new(Method::Get, url);
        let mut answer = async_h1::connect(stream, request).await.unwrap();
        assert_eq!(answer.body_string().await.unwrap(), "hello");
        drop(answer);
        server.await.unwrap();
    });
}
