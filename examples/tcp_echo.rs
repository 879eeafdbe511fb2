//! A TCP echo server, and a client for it.
//!
//! ```text
//! cargo run --release --example tcp_echo                      # a client of its own, then exits
//! cargo run --release --example tcp_echo -- 127.0.0.1:7000    # until ctrl-c
//! nc 127.0.0.1 7000
//! ```

use std::io;

use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::spawn;

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    phaseloop::block_on(async {
        let Some(address) = address else {
            return demo().await;
        };
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        serve(listener).await
    })
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => spawn(async move {
                match phaseloop::io::copy(&stream, &stream).await {
                    Ok(bytes) => println!("{peer}: echoed {bytes} bytes"),
                    Err(error) => eprintln!("{peer}: {error}"),
                }
            })
            .detach(),
            // No descriptor is left, or the connection was reset: the listener stays usable.
            Err(error) => eprintln!("accept: {error}"),
        }
    }
}

async fn demo() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = spawn(serve(listener));
    for text in ["hello", "phase", "loop"] {
        let mut client = TcpStream::connect(address).await?;
        client.write_all(text.as_bytes()).await?;
        client.close().await?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await?;
        println!("sent {text:?}, got {answer:?}");
    }
    server.abort();
    Ok(())
}
