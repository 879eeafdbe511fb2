//! One address, several processes, as in Node's cluster: the parent accepts, and passes each
//! connection to the next worker over its channel. A worker exits when its channel is closed.
//!
//! ```text
//! cargo run --release --example cluster                      # clients of its own, then exits
//! cargo run --release --example cluster -- 127.0.0.1:7000    # until ctrl-c
//! nc 127.0.0.1 7000
//! ```

#[cfg(unix)]
mod cluster {
    use std::io;
    use std::net;
    use std::os::fd::AsFd;

    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{TcpListener, TcpStream};
    use phaseloop::process::{Channel, Child, Command};
    use phaseloop::signal::ctrl_c;
    use phaseloop::spawn;

    const WORKERS: usize = 3;

    /// A worker: serves the connections that it receives over the channel.
    pub(crate) async fn work(channel: Channel) -> io::Result<()> {
        while let Some(mut message) = channel.recv().await? {
            let descriptor = message.descriptors.pop().expect("a connection came along");
            let stream = TcpStream::from_std(net::TcpStream::from(descriptor))?;
            spawn(serve(stream)).detach();
        }
        Ok(())
    }

    async fn serve(mut stream: TcpStream) -> io::Result<()> {
        let text = format!("process {} speaking\n", std::process::id());
        stream.write_all(text.as_bytes()).await
    }

    /// The parent: starts the workers, accepts, passes the connections on.
    pub(crate) async fn lead(address: Option<String>) -> io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.channel(true).kill_on_drop(true);
        let workers: Vec<Child> = (0..WORKERS)
            .map(|_| command.spawn())
            .collect::<io::Result<_>>()?;
        let channels: Vec<_> = workers.iter().filter_map(|w| w.channel.as_ref()).collect();

        let is_demo = address.is_none();
        let address = address.unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        let users = is_demo.then(|| spawn(clients(listener.local_addr())));
        let accept = async {
            for channel in channels.iter().cycle() {
                let (stream, _) = listener.accept().await?;
                let descriptor = stream.get_ref().as_fd();
                channel.send_with(b"serve this", &[descriptor]).await?;
            }
            io::Result::Ok(())
        };
        let stop = async {
            match users {
                Some(users) => users.await.expect("the clients do not panic"),
                None => ctrl_c().await,
            }
        };
        match futures::future::select(Box::pin(accept), Box::pin(stop)).await {
            futures::future::Either::Left((result, _)) => result?,
            futures::future::Either::Right((result, _)) => result?,
        }

        for mut worker in workers {
            drop(worker.channel.take());
            println!("process {}: {}", worker.id(), worker.wait().await?);
        }
        Ok(())
    }

    async fn clients(address: io::Result<net::SocketAddr>) -> io::Result<()> {
        let address = address?;
        for _ in 0..2 * WORKERS {
            let mut client = TcpStream::connect(address).await?;
            let mut answer = String::new();
            client.read_to_string(&mut answer).await?;
            print!("{answer}");
        }
        Ok(())
    }
}

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    use phaseloop::process::Channel;

    phaseloop::block_on(async {
        match Channel::from_env()? {
            Some(channel) => cluster::work(channel).await,
            None => cluster::lead(std::env::args().nth(1)).await,
        }
    })
}

#[cfg(not(unix))]
fn main() {
    println!("Child processes are supported on Unix only.");
}
