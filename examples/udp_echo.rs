//! A UDP echo server that receives and sends in batches, and a client for it.
//!
//! ```text
//! cargo run --release --example udp_echo
//! ```

use std::io;

use phaseloop::net::{Batch, UdpSocket};
use phaseloop::spawn;

fn main() -> io::Result<()> {
    phaseloop::block_on(async {
        let server = UdpSocket::bind("127.0.0.1:0").await?;
        let address = server.local_addr()?;
        let echo = spawn(echo(server));

        let client = UdpSocket::bind("127.0.0.1:0").await?;
        client.connect(address).await?;
        for number in 0..5 {
            client.send(format!("datagram {number}").as_bytes()).await?;
        }
        let mut buffer = [0; 64];
        for _ in 0..5 {
            let length = client.recv(&mut buffer).await?;
            println!("came back: {}", String::from_utf8_lossy(&buffer[..length]));
        }
        echo.abort();
        Ok(())
    })
}

async fn echo(socket: UdpSocket) -> io::Result<()> {
    let mut batch = Batch::new(32, 1500);
    loop {
        socket.recv_batch(&mut batch).await?;
        // Each datagram has the address of its sender: the batch can be sent back unchanged.
        while let Err(error) = socket.send_batch(&mut batch).await {
            eprintln!("could not answer {:?}: {error}", batch.failed());
        }
    }
}
