//! An axum router without a tokio runtime. Its state is an `Rc`, and its handlers await the loop.
//!
//! ```text
//! cargo run --release -p phaseloop-bridges-tests --example axum                    # sends itself requests, then exits
//! cargo run --release -p phaseloop-bridges-tests --example axum -- 127.0.0.1:8080  # serves until ctrl-c
//! curl http://127.0.0.1:8080/add/1/2
//! ```

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use phaseloop::hyper::{Serve, serve};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::signal::ctrl_c;
use phaseloop::{Local, time};

/// axum asks for `Send` state and `Send` handlers; a `Local` is both.
type Requests = Local<Rc<Cell<u64>>>;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    phaseloop::block_on(async {
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let here = listener.local_addr()?;
        println!("listening on http://{here}/");
        let server = server(listener).shutdown_timeout(Duration::from_secs(10));
        match address {
            Some(_) => {
                server
                    .with_graceful_shutdown(async { _ = ctrl_c().await })
                    .await
            }
            None => server.with_graceful_shutdown(ask_all(here)).await,
        }
    })
}

pub(crate) fn server(listener: TcpListener) -> Serve<TcpListener> {
    let requests = Requests::new(Rc::new(Cell::new(0)));
    let router = Router::new()
        .route("/", get(|| async { "hello from axum\n" }))
        .route("/add/{a}/{b}", get(add))
        .route("/requests", get(count))
        .with_state(requests);
    serve(listener, router).on_error(|error| eprintln!("{error}"))
}

async fn add(Path((a, b)): Path<(i64, i64)>) -> String {
    format!("{}\n", a + b)
}

async fn count(State(requests): State<Requests>) -> String {
    Local::new(time::sleep(Duration::from_millis(1))).await;
    requests.set(requests.get() + 1);
    format!("{} requests\n", requests.get())
}

async fn ask_all(address: SocketAddr) {
    for path in ["/add/20/22", "/requests", "/requests", "/"] {
        let answer = ask(address, path).await.expect("the server answers");
        println!("{path}: {}", answer.lines().last().unwrap_or("nothing"));
    }
}

async fn ask(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut client = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await?;
    Ok(answer)
}
