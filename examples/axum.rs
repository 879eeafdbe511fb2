//! An axum router on hyper's HTTP/1, without a tokio runtime, and a service whose state is an `Rc`.
//!
//! ```text
//! cargo run --release --example axum                      # sends itself requests, then exits
//! cargo run --release --example axum -- 127.0.0.1:8080    # serves until ctrl-c
//! curl http://127.0.0.1:8080/add/1/2
//! ```

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, Response};
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use phaseloop::hyper::{HyperIo, HyperTimer};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::spawn;
use tower_service::Service;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    phaseloop::block_on(async {
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let here = listener.local_addr()?;
        println!("listening on http://{here}/");
        let server = spawn(serve(listener));
        if address.is_some() {
            return server.await.expect("the server does not panic");
        }
        for path in ["/add/20/22", "/requests", "/"] {
            let answer = ask(here, path).await?;
            println!("{path}: {}", answer.lines().last().unwrap_or("nothing"));
        }
        server.abort();
        Ok(())
    })
}

pub(crate) async fn serve(listener: TcpListener) -> io::Result<()> {
    let router = Router::new()
        .route("/", get(|| async { "hello from axum\n" }))
        .route("/add/{a}/{b}", get(add));
    let requests = Rc::new(Cell::new(0_u64));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (router, requests) = (router.clone(), requests.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            requests.set(requests.get() + 1);
            // axum's handlers must be `Send`, so the route that needs the `Rc` is answered here.
            let local = (request.uri().path() == "/requests").then(|| requests.get());
            let answer = router.clone().call(request.map(Body::new));
            async move {
                match local {
                    Some(count) => Ok(Response::new(Body::from(format!("{count} requests\n")))),
                    None => answer.await,
                }
            }
        });
        spawn(async move {
            let connection = http1::Builder::new()
                .timer(HyperTimer)
                .serve_connection(HyperIo::new(stream), service);
            if let Err(error) = connection.await {
                eprintln!("connection: {error}");
            }
        })
        .detach();
    }
}

async fn add(Path((a, b)): Path<(i64, i64)>) -> String {
    format!("{}\n", a + b)
}

async fn ask(address: std::net::SocketAddr, path: &str) -> io::Result<String> {
    let mut client = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await?;
    Ok(answer)
}
