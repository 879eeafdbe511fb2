//! tokio on one thread.

use std::future::Future;
use std::io;
use std::net;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::LocalSet;

use super::{
    Http, Pool, Primitives, Runtime, Sockets, nonblocking_datagrams, nonblocking_listener,
};
use crate::workload::sockets::DATAGRAM;

/// tokio's current-thread runtime; its tasks that are not `Send` live in a `LocalSet` or in a
/// `LocalRuntime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokio {
    LocalSet,
    LocalRuntime,
}

impl Runtime for Tokio {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let main = async {
            let main = tokio::task::spawn_local(main);
            main.await.expect("it does not panic")
        };
        let mut builder = Builder::new_current_thread();
        builder.enable_all();
        match self {
            Self::LocalSet => {
                let runtime = builder.build().expect("tokio starts");
                LocalSet::new().block_on(&runtime, main)
            }
            Self::LocalRuntime => {
                let runtime = builder.build_local(LocalOptions::default());
                runtime.expect("tokio starts").block_on(main)
            }
        }
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        tokio::task::spawn_local(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(tokio::task::spawn_local(task));
    }

    fn yield_now(self) -> impl Future {
        tokio::task::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        tokio::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        tokio::time::sleep_until(deadline.into())
    }
}

impl Sockets for Tokio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;

    fn listener(self, bound: net::TcpListener) -> TcpListener {
        TcpListener::from_std(nonblocking_listener(bound)).expect("it is a listener")
    }

    async fn accept(self, listener: &TcpListener) -> io::Result<TcpStream> {
        Ok(listener.accept().await?.0)
    }

    fn echo(
        self,
        stream: TcpStream,
        buffer: usize,
    ) -> impl Future<Output = io::Result<()>> + 'static {
        echo(stream, buffer)
    }

    async fn first_byte(self, stream: &mut TcpStream) -> io::Result<()> {
        stream.read_exact(&mut [0]).await?;
        Ok(())
    }

    fn datagrams(self, bound: net::UdpSocket) -> UdpSocket {
        UdpSocket::from_std(nonblocking_datagrams(bound)).expect("it is a socket")
    }

    fn echo_datagrams(self, socket: UdpSocket) -> impl Future<Output = io::Result<()>> {
        echo_datagrams(socket)
    }
}

pub(super) async fn echo(mut stream: TcpStream, buffer: usize) -> io::Result<()> {
    let mut buffer = vec![0; buffer];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
    }
}

pub(super) async fn echo_datagrams(socket: UdpSocket) -> io::Result<()> {
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let (n, from) = socket.recv_from(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        socket.send_to(&buffer[..n], from).await?;
    }
}

impl Http for Tokio {
    fn hyper_io(
        self,
        stream: TcpStream,
    ) -> impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static {
        hyper_util::rt::TokioIo::new(stream)
    }
}

impl Pool for Tokio {
    fn blocking(self, job: impl FnOnce() + Send + 'static) -> impl Future + 'static {
        tokio::task::spawn_blocking(job)
    }

    async fn read_file(self, path: PathBuf) -> io::Result<Vec<u8>> {
        tokio::fs::read(path).await
    }

    async fn read_through(self, path: PathBuf, at_once: usize) -> io::Result<u64> {
        let mut file = tokio::fs::File::open(path).await?;
        let mut buffer = vec![0; at_once];
        let mut total = 0;
        loop {
            let n = file.read(&mut buffer).await?;
            if n == 0 {
                return Ok(total);
            }
            total += n as u64;
        }
    }
}

impl Primitives for Tokio {
    type Mutex = tokio::sync::Mutex<u64>;
    type Sender = tokio::sync::mpsc::Sender<u64>;
    type Receiver = tokio::sync::mpsc::Receiver<u64>;

    fn mutex(self) -> Self::Mutex {
        tokio::sync::Mutex::new(0)
    }

    async fn with_lock(self, mutex: &Self::Mutex, f: impl FnOnce(&mut u64)) {
        f(&mut *mutex.lock().await);
    }

    async fn hold_lock<F: Future>(self, mutex: &Self::Mutex, f: impl FnOnce() -> F) {
        let _guard = mutex.lock().await;
        f().await;
    }

    fn channel(self, capacity: usize) -> (Self::Sender, Self::Receiver) {
        tokio::sync::mpsc::channel(capacity)
    }

    async fn send(sender: &Self::Sender, message: u64) {
        sender.send(message).await.expect("the receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }

    async fn through_oneshot(self, message: u64) -> u64 {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.detach(async move { sender.send(message).expect("the receiver is there") });
        receiver.await.expect("the task sends it")
    }

    async fn join3<F: Future<Output = ()>>(self, first: F, second: F, third: F) {
        tokio::join!(first, second, third);
    }

    async fn select3(
        self,
        first: impl Future<Output = ()>,
        second: impl Future<Output = ()>,
        third: impl Future<Output = ()>,
    ) {
        tokio::select! {
            biased;
            () = first => {}
            () = second => {}
            () = third => {}
        }
    }
}
