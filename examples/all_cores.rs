//! An echo server on all cores, and a shutdown that cuts nothing.
//!
//! ```text
//! cargo run --features cluster --example all_cores
//! ```
//!
//! It serves 64 connections of its own, prints how many of them each loop has served, and shuts
//! down. `hyper::serve` takes the listener of a loop in the same way:
//! `serve(listeners.here(), service).with_graceful_shutdown(cluster::stopping().cancelled())`.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use phaseloop::cluster::{self, Listener, Sharded};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt, copy};
use phaseloop::net::TcpStream;
use phaseloop::spawn;

const CONNECTIONS: usize = 64;

#[phaseloop::main(loops = "cores")]
async fn main() -> io::Result<()> {
    let served = Sharded::new(async |_| Cell::new(0)).await?;
    let listeners = cluster::listen("127.0.0.1:0").await?;
    let address = listeners.local_addr();
    let of_loops = served.clone();
    let servers = cluster::current().each(move |_| serve(listeners.here(), of_loops.clone()));

    let clients: Vec<_> = (0..CONNECTIONS).map(|n| spawn(ask(address, n))).collect();
    for client in clients {
        client.await??;
    }
    println!(
        "{}",
        cluster::current().shutdown(Duration::from_secs(10)).await
    );
    for (index, server) in servers.await.into_iter().enumerate() {
        println!("loop {index} has served {} connections", server?);
    }
    Ok(())
}

/// Serves the connections of this loop until the cluster stops. Returns how many there were.
async fn serve(listener: Listener, served: Sharded<Cell<u32>>) -> u32 {
    let served = served.here();
    let accept = async {
        loop {
            let Ok((stream, _peer)) = listener.accept().await else {
                continue;
            };
            served.set(served.get() + 1);
            spawn(async move {
                if let Err(error) = copy(&stream, &mut &stream).await {
                    eprintln!("a connection has failed: {error}");
                }
            })
            .detach();
        }
    };
    cluster::stopping().run_until_cancelled(accept).await;
    served.get()
}

/// Sends a text, and expects it back.
async fn ask(address: SocketAddr, n: usize) -> io::Result<()> {
    let text = format!("message {n}");
    let mut client = TcpStream::connect(address).await?;
    client.write_all(text.as_bytes()).await?;
    client.close().await?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await?;
    assert_eq!(answer, text);
    Ok(())
}
