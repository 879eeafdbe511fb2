//! An echo server with a graceful shutdown: after SIGINT or SIGTERM it stops accepting, gives open
//! connections a second to finish, and closes the rest.
//!
//! ```text
//! cargo run --release --example ctrl_c                      # a client of its own, then exits
//! cargo run --release --example ctrl_c -- 127.0.0.1:7000    # until ctrl-c
//! nc 127.0.0.1 7000
//! ```

#[cfg(unix)]
mod server {
    use std::io;
    use std::pin::pin;
    use std::time::Duration;

    use futures::FutureExt;
    use futures::future::{Either, select};
    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{TcpListener, TcpStream};
    use phaseloop::signal::{SignalKind, Signals};
    use phaseloop::task::JoinSet;
    use phaseloop::time::timeout;
    use phaseloop::{phase, spawn};
    use rustix::process::{Signal, getpid, kill_process};

    /// How long open connections may take to finish.
    const DRAIN: Duration = Duration::from_secs(1);

    pub(crate) async fn run(address: Option<String>) -> io::Result<()> {
        // From here on the signals do not terminate the program.
        let signals = Signals::new([SignalKind::INT, SignalKind::TERM])?;
        match address {
            Some(address) => serve(TcpListener::bind(address).await?, signals).await,
            None => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let user = spawn(user(TcpStream::connect(listener.local_addr()?).await?));
                serve(listener, signals).await?;
                user.await.expect("the user does not panic")
            }
        }
    }

    async fn serve(listener: TcpListener, mut signals: Signals) -> io::Result<()> {
        println!("listening on {}", listener.local_addr()?);
        let mut connections = JoinSet::new();
        loop {
            // Take the results of finished connections: the set keeps each until it is taken.
            while let Some(Some(_)) = connections.join_next().now_or_never() {}
            match select(pin!(listener.accept()), pin!(signals.recv())).await {
                Either::Left((Ok((stream, _)), _)) => drop(
                    connections.spawn(async move { phaseloop::io::copy(&stream, &stream).await }),
                ),
                Either::Left((Err(error), _)) => eprintln!("accept: {error}"),
                Either::Right((kind, _)) => {
                    println!("{}: no more connections", kind.expect("the loop runs"));
                    break;
                }
            }
        }
        drop(listener);
        // The listener is dropped: a second ctrl-c terminates the program at once.
        drop(signals);
        let drained = timeout(DRAIN, async {
            while connections.join_next().await.is_some() {}
        });
        match drained.await {
            Ok(()) => println!("all connections have finished"),
            Err(_) => println!("{} connections are closed", connections.len()),
        }
        Ok(())
    }

    /// Sends a line, raises SIGINT, and sends another: open connections are served to the end.
    async fn user(mut stream: TcpStream) -> io::Result<()> {
        let mut answer = [0; 5];
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut answer).await?;
        kill_process(getpid(), Signal::INT)?;
        phase::check().await;
        stream.write_all(b"still").await?;
        stream.read_exact(&mut answer).await?;
        println!("{} there", String::from_utf8_lossy(&answer));
        stream.close().await
    }
}

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    phaseloop::block_on(server::run(std::env::args().nth(1)))
}

#[cfg(not(unix))]
fn main() {
    println!("This platform has no signals.");
}
