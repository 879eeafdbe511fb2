//! A server that is replaced while it serves: a new process takes over the listener, and no request
//! fails.
//!
//! ```text
//! cargo run --release --example hot_restart           # 5 restarts under load
//! cargo run --release --example hot_restart -- 100
//! ```
//!
//! The first process starts the servers and is the load: clients that connect anew for each
//! request. At a restart it starts a new server, asks the old one for its listener, and passes it
//! on over the channels. All three have the one socket of the kernel, whose queue is never closed,
//! so no connection is refused. Once the new server accepts, the old one gets the order to stop: it
//! completes what it has accepted, and exits.

#[cfg(unix)]
mod restart {
    use std::cell::Cell;
    use std::io;
    use std::net::{self, SocketAddr};
    use std::os::fd::{AsFd, OwnedFd};
    use std::rc::Rc;
    use std::time::Duration;

    use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{TcpListener, TcpStream};
    use phaseloop::process::{Channel, Child, Command};
    use phaseloop::task::{CancellationToken, JoinSet};
    use phaseloop::time::sleep;
    use phaseloop::{JoinHandle, spawn};

    /// The clients that send requests at a time.
    const CLIENTS: usize = 8;

    // What the processes tell each other.
    const SERVE: &[u8] = b"serve with this listener";
    const PASS_ON: &[u8] = b"send me the listener";
    const STOP: &[u8] = b"complete what you have, and exit";
    const DONE: &[u8] = b"done";

    /// A server process: does what the channel asks for.
    pub(crate) async fn serve(channel: Channel) -> io::Result<()> {
        let mut accepting = None;
        let stop = CancellationToken::new();
        while let Some(mut message) = channel.recv().await? {
            match (
                message.bytes.as_slice(),
                message.descriptors.pop(),
                &accepting,
            ) {
                (SERVE, Some(listener), None) => {
                    let listener = TcpListener::from_std(net::TcpListener::from(listener))?;
                    let listener = Rc::new(listener);
                    let task = spawn(accept(listener.clone(), stop.clone()));
                    accepting = Some((listener, task));
                    channel.send(DONE).await?;
                }
                (PASS_ON, None, Some((listener, _))) => {
                    let socket = listener.get_ref().as_fd();
                    channel.send_with(DONE, &[socket]).await?;
                }
                (STOP, ..) => {
                    stop.cancel();
                    break;
                }
                (other, ..) => {
                    let text = format!("unexpected: {}", String::from_utf8_lossy(other));
                    return Err(io::Error::other(text));
                }
            }
        }
        match accepting {
            Some((_, task)) => Ok(task.await??),
            None => Ok(()),
        }
    }

    /// Accepts until it is to stop, and waits for the connections that it has.
    async fn accept(listener: Rc<TcpListener>, stop: CancellationToken) -> io::Result<()> {
        let mut connections = JoinSet::new();
        while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
            let (stream, _) = accepted?;
            connections.spawn(answer(stream));
        }
        while let Some(answered) = connections.join_next().await {
            answered??;
        }
        Ok(())
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
        let first = net::TcpListener::bind("127.0.0.1:0")?;
        let address = first.local_addr()?;
        let mut server = start(OwnedFd::from(first)).await?;
        let load = Rc::new(Load::default());
        let clients: Vec<JoinHandle<()>> = (0..CLIENTS)
            .map(|_| spawn(ask_again_and_again(address, load.clone())))
            .collect();
        for _ in 0..restarts {
            sleep(Duration::from_millis(20)).await;
            let old = channel_of(&server)?;
            let listener = ask(old, PASS_ON).await?;
            let listener = listener.ok_or_else(|| io::Error::other("no listener came along"))?;
            let new = start(listener).await?;
            old.send(STOP).await?;
            let status = server.wait().await?;
            if !status.success() {
                return Err(io::Error::other(format!("the old server failed: {status}")));
            }
            server = new;
        }
        load.is_over.set(true);
        for client in clients {
            client.await?;
        }
        channel_of(&server)?.send(STOP).await?;
        server.wait().await?;
        let (answered, failed) = (load.answered.get(), load.failed.get());
        println!("{restarts} restarts, {answered} requests answered, {failed} failed");
        match failed {
            0 => Ok(()),
            _ => Err(io::Error::other("a restart has cut requests")),
        }
    }

    /// Starts a server process, and returns when it accepts.
    async fn start(listener: OwnedFd) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        let server = command.channel(true).kill_on_drop(true).spawn()?;
        let channel = channel_of(&server)?;
        channel.send_with(SERVE, &[listener.as_fd()]).await?;
        answer_of(channel).await?;
        Ok(server)
    }

    fn channel_of(server: &Child) -> io::Result<&Channel> {
        let channel = server.channel.as_ref();
        channel.ok_or_else(|| io::Error::other("a server has a channel"))
    }

    async fn ask(channel: &Channel, question: &[u8]) -> io::Result<Option<OwnedFd>> {
        channel.send(question).await?;
        answer_of(channel).await
    }

    async fn answer_of(channel: &Channel) -> io::Result<Option<OwnedFd>> {
        match channel.recv().await? {
            Some(mut message) if message.bytes == DONE => Ok(message.descriptors.pop()),
            _ => Err(io::Error::other("the server has gone")),
        }
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
