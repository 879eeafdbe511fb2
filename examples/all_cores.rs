//! An echo server on all cores: loop 0 accepts, and hands the connections over in turn.
//!
//! ```text
//! cargo run --features cluster --example all_cores
//! ```
//!
//! It serves 64 connections of its own and prints how many of them each loop has served.

use std::cell::Cell;
use std::io;

use phaseloop::cluster::{self, Receiver, Sharded};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt, copy};
use phaseloop::net::{Detached, TcpListener, TcpStream};
use phaseloop::spawn;

const CONNECTIONS: usize = 64;

#[phaseloop::main(loops = "cores")]
async fn main() -> io::Result<()> {
    let cluster = cluster::current();
    let served = Sharded::new(async |_| Cell::new(0)).await?;
    // A channel of connections to each loop.
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..cluster.len()).map(|_| cluster::channel(128)).unzip();
    let mut servers = Vec::new();
    for (index, receiver) in receivers.into_iter().enumerate() {
        let served = served.clone();
        let server = cluster
            .remote(index)
            .spawn(move || serve(receiver, served))
            .map_err(io::Error::other)?;
        servers.push(server);
    }

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let clients = spawn(async move {
        for n in 0..CONNECTIONS {
            let text = format!("message {n}");
            let mut client = TcpStream::connect(address).await?;
            client.write_all(text.as_bytes()).await?;
            client.close().await?;
            let mut answer = String::new();
            client.read_to_string(&mut answer).await?;
            assert_eq!(answer, text);
        }
        io::Result::Ok(())
    });
    for n in 0..CONNECTIONS {
        let (connection, _peer) = listener.accept_detached().await?;
        let sender = &senders[n % senders.len()];
        sender.send(connection).await.map_err(io::Error::other)?;
    }
    clients.await??;
    // The loops end when they have served what was sent.
    drop(senders);
    for (index, server) in servers.into_iter().enumerate() {
        println!("loop {index} has served {} connections", server.await?);
    }
    Ok(())
}

/// Serves the connections that are sent to this loop. Returns how many there were.
async fn serve(mut connections: Receiver<Detached<TcpStream>>, served: Sharded<Cell<u32>>) -> u32 {
    let served = served.here();
    let mut tasks = Vec::new();
    while let Some(connection) = connections.recv().await {
        let served = served.clone();
        tasks.push(spawn(async move {
            let stream = connection.attach()?;
            copy(&stream, &mut &stream).await?;
            served.set(served.get() + 1);
            io::Result::Ok(())
        }));
    }
    for task in tasks {
        if let Ok(Err(error)) = task.await {
            eprintln!("a connection has failed: {error}");
        }
    }
    served.get()
}
