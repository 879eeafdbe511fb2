//! The ecosystem at once, on one loop and one thread, each peer in a task of its own that shares an
//! `Rc` with the others.
//!
//! ```text
//! cargo run --manifest-path examples/island/Cargo.toml --bin together
//! ```
//!
//! | file | peers |
//! |---|---|
//! | `servers.rs` | `axum::serve` with a graceful shutdown, asked by reqwest; axum with an `Rc` as state over TLS, asked by hyper-util's client; axum's WebSockets; gRPC by tonic |
//! | `databases.rs` | PostgreSQL, Redis, SQLite by sqlx |
//! | `middleware.rs` | tower's layers, a `LocalSet` |
//!
//! The parts for PostgreSQL and Redis need the servers, and say so if there are none.

mod databases;
mod middleware;
mod servers;

#[path = "../../../../../tests/ecosystem/tests/all/certificates.rs"]
mod certificates;
#[path = "../../../../../tests/ecosystem/tests/all/servers.rs"]
mod processes;

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;

use phaseloop::spawn;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// The number of times that each part repeats its work.
const ROUNDS: usize = 20;

#[phaseloop::main(tokio)]
async fn main() -> Outcome {
    // Not `Send`: every part counts in it, from a task of the loop.
    let done = Rc::new(Cell::new(0));
    let server = servers::AxumServe::start().await?;
    let parts = [
        start("reqwest", &done, servers::reqwest(server.address)),
        start("axum, TLS, hyper-util", &done, servers::https()),
        start("WebSocket", &done, servers::websocket()),
        start("gRPC", &done, servers::grpc()),
        start("PostgreSQL", &done, databases::postgres()),
        start("Redis", &done, databases::redis()),
        start("sqlx", &done, databases::sqlx()),
        start("tower", &done, middleware::tower()),
        start("LocalSet", &done, middleware::local_set()),
    ];
    let expected = parts.len();
    for part in parts {
        part.await??;
    }
    assert_eq!(done.get(), expected);
    server.stop().await?;
    println!("axum::serve: stopped");
    Ok(())
}

fn start(
    name: &'static str,
    done: &Rc<Cell<usize>>,
    part: impl Future<Output = Outcome> + 'static,
) -> phaseloop::JoinHandle<Outcome> {
    let done = done.clone();
    spawn(async move {
        part.await?;
        done.set(done.get() + 1);
        println!("{name}: done");
        Ok(())
    })
}
