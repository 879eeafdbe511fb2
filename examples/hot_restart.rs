//! A server that is replaced while it serves: a new process takes over the listener, and no request
//! fails.
//!
//! ```text
//! cargo run --release --example hot_restart           # 5 restarts under load
//! cargo run --release --example hot_restart -- 100
//! ```
//!
//! The first process starts the servers and is the load: clients that connect anew for each
//! request. At a restart it asks the old server for its listener, and passes it on to a new one. The
//! listener travels as a `Detached<TcpListener>` over the channels: the old server stops accepting,
//! detaches it, and sends it. The socket stays open all the time, so the connections of the
//! meantime wait in the kernel's queue, and none is refused. The old server completes what it has
//! accepted, and exits.

#[cfg(unix)]
mod restart {
    use std::cell::Cell;
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::AsFd;
    use std::rc::Rc;
    use std::time::Duration;

    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{Detached, TcpListener, TcpStream};
    use phaseloop::process::{Channel, Child, Command, Message};
    use phaseloop::task::{CancellationToken, JoinSet};
    use phaseloop::time::sleep;
    use phaseloop::{JoinHandle, spawn};

    /// The clients that send requests at a time.
    const CLIENTS: usize = 8;

    // The messages between the processes.
    const SERVE: &[u8] = b"serve with this listener";
    const READY: &[u8] = b"ready";
    const PASS_ON: &[u8] = b"send the listener, complete what you have, and exit";
    const PASSED: &[u8] = b"the listener";

    /// A server process: serves with the listener that it gets, until it has to pass it on.
    pub(crate) async fn serve(channel: Channel) -> io::Result<()> {
        let listener = listener_of(expect(&channel, SERVE).await?)?.attach()?;
        let stop = CancellationToken::new();
        let mut connections = JoinSet::new();
        channel.send(READY).await?;
        let accept = async {
            while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
                connections.spawn(answer(accepted?.0));
            }
            Ok::<_, io::Error>(())
        };
        let order = async {
            let order = expect(&channel, PASS_ON).await;
            stop.cancel();
            order
        };
        phaseloop::try_join!(accept, order)?;
        send_listener(&channel, PASSED, listener.detach()).await?;
        while let Some(answered) = connections.join_next().await {
            answered??;
        }
        Ok(())
    }

    /// Sends a listener to another process. The descriptor of this process is closed then.
    async fn send_listener(
        channel: &Channel,
        message: &[u8],
        listener: Detached<TcpListener>,
    ) -> io::Result<()> {
        channel.send_with(message, &[listener.as_fd()]).await
    }

    /// Returns the listener that came along with a message.
    fn listener_of(mut message: Message) -> io::Result<Detached<TcpListener>> {
        let descriptor = message.descriptors.pop();
        let descriptor = descriptor.ok_or_else(|| io::Error::other("no listener came along"))?;
        Detached::try_from(descriptor)
    }

    /// Receives a message that must be this one.
    async fn expect(channel: &Channel, expected: &[u8]) -> io::Result<Message> {
        match channel.recv().await? {
            Some(message) if message.bytes == expected => Ok(message),
            Some(message) => {
                let text = String::from_utf8_lossy(&message.bytes);
                Err(io::Error::other(format!("unexpected: {text}")))
            }
            None => Err(io::Error::other("the other process has gone")),
        }
    }

    /// Answers one request of a line.
    async fn answer(mut stream: TcpStream) -> io::Result<()> {
        let mut request = [0; 5];
        stream.read_exact(&mut request).await?;
        // What a request takes: some of them are under way when their server stops.
        sleep(Duration::from_millis(2)).await;
        let answer = format!("process {}\n", std::process::id());
        stream.write_all(answer.as_bytes()).await
    }

    /// The first process: starts the servers one after the other, under load.
    pub(crate) async fn lead(restarts: u32) -> io::Result<()> {
        let first = TcpListener::bind("127.0.0.1:0").await?;
        let address = first.local_addr()?;
        let mut server = start(first.detach()).await?;
        let load = Rc::new(Load::default());
        let clients: Vec<JoinHandle<()>> = (0..CLIENTS)
            .map(|_| spawn(ask_again_and_again(address, load.clone())))
            .collect();
        for _ in 0..restarts {
            sleep(Duration::from_millis(20)).await;
            let new = start(take_listener(&server).await?).await?;
            ended(&mut server).await?;
            server = new;
        }
        load.is_over.set(true);
        for client in clients {
            client.await?;
        }
        drop(take_listener(&server).await?);
        ended(&mut server).await?;
        let (answered, failed) = (load.answered.get(), load.failed.get());
        println!("{restarts} restarts, {answered} requests answered, {failed} failed");
        match failed {
            0 => Ok(()),
            _ => Err(io::Error::other("a restart has cut requests")),
        }
    }

    /// Starts a server process, and returns when it accepts.
    async fn start(listener: Detached<TcpListener>) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        let server = command.channel(true).kill_on_drop(true).spawn()?;
        let channel = channel_of(&server)?;
        send_listener(channel, SERVE, listener).await?;
        expect(channel, READY).await?;
        Ok(server)
    }

    /// Takes the listener of a server, which exits then.
    async fn take_listener(server: &Child) -> io::Result<Detached<TcpListener>> {
        let channel = channel_of(server)?;
        channel.send(PASS_ON).await?;
        listener_of(expect(channel, PASSED).await?)
    }

    async fn ended(server: &mut Child) -> io::Result<()> {
        let status = server.wait().await?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("a server has failed: {status}")))
    }

    fn channel_of(server: &Child) -> io::Result<&Channel> {
        let channel = server.channel.as_ref();
        channel.ok_or_else(|| io::Error::other("a server has a channel"))
    }

    /// What the clients have seen.
    #[derive(Default)]
    struct Load {
        answered: Cell<u64>,
        failed: Cell<u64>,
        is_over: Cell<bool>,
    }

    async fn ask_again_and_again(address: SocketAddr, load: Rc<Load>) {
        while !load.is_over.get() {
            let counter = match request(address).await {
                Ok(()) => &load.answered,
                Err(error) => {
                    eprintln!("a request has failed: {error}");
                    &load.failed
                }
            };
            counter.set(counter.get() + 1);
        }
    }

    /// Connects, sends a request, and reads the answer to its end.
    async fn request(address: SocketAddr) -> io::Result<()> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"who?\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        if answer.starts_with("process ") && answer.ends_with('\n') {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

#[cfg(unix)]
#[phaseloop::main]
async fn main() -> std::io::Result<()> {
    if let Some(channel) = phaseloop::process::Channel::from_env()? {
        return restart::serve(channel).await;
    }
    let restarts = std::env::args().nth(1).and_then(|count| count.parse().ok());
    restart::lead(restarts.unwrap_or(5)).await
}

#[cfg(not(unix))]
fn main() {
    println!("sockets are passed between processes on Unix only");
}
