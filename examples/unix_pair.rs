//! Unix sockets: a pair, and an open listener that is passed from one end to the other.
//!
//! ```text
//! cargo run --release --example unix_pair
//! ```

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    use std::net;
    use std::os::fd::AsFd;

    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{TcpListener, TcpStream, UnixStream};

    phaseloop::block_on(async {
        let (parent, worker) = UnixStream::pair()?;
        println!("the peer is {:?}", parent.peer_credentials()?);

        // The parent opens a listener and passes it on.
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        parent
            .send_with(b"serve this", &[listener.get_ref().as_fd()])
            .await?;
        drop(listener);

        // The worker, which could be another process, receives the listener and serves.
        let serving = phaseloop::spawn(async move {
            let (mut order, mut descriptors) = ([0; 32], Vec::new());
            let length = worker.recv_with(&mut order, &mut descriptors).await?;
            println!(
                "the worker received {:?}",
                String::from_utf8_lossy(&order[..length])
            );
            let descriptor = descriptors.pop().expect("a listener came along");
            let listener = TcpListener::from_std(net::TcpListener::from(descriptor))?;
            let (mut stream, _) = listener.accept().await?;
            stream.write_all(b"served by the worker").await
        });

        let mut client = TcpStream::connect(address).await?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await?;
        println!("the client was {answer}");
        serving.await.expect("the worker does not panic")
    })
}

#[cfg(not(unix))]
fn main() {
    println!("This platform has no Unix sockets.");
}
