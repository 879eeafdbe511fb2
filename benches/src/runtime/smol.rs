//! smol.

use std::future::Future;
use std::io;
use std::net;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use async_io::Async;
use async_net::{TcpListener, TcpStream, UdpSocket};
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::{Http, Pool, Runtime, Sockets};

/// A `LocalExecutor` under `async_io::block_on`, which is `smol::block_on`.
#[derive(Clone, Copy)]
pub(crate) struct Smol(&'static LocalExecutor<'static>);

impl Smol {
    pub(crate) fn new() -> Self {
        Self(Box::leak(Box::default()))
    }
}

impl Runtime for Smol {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        async_io::block_on(self.0.run(self.0.spawn(main)))
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        self.0.spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn(task).detach();
    }

    fn yield_now(self) -> impl Future {
        futures_lite::future::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        async_io::Timer::after(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        async_io::Timer::at(deadline)
    }
}

impl Sockets for Smol {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;

    fn listener(self, bound: net::TcpListener) -> TcpListener {
        Async::new(bound).expect("it is a listener").into()
    }

    async fn accept(self, listener: &TcpListener) -> io::Result<TcpStream> {
        Ok(listener.accept().await?.0)
    }

    async fn echo(self, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let n = stream.read(buffer).await?;
        stream.write_all(&buffer[..n]).await?;
        Ok(n)
    }

    async fn first_byte(self, stream: &mut TcpStream) -> io::Result<usize> {
        stream.read(&mut [0]).await
    }

    fn datagrams(self, bound: net::UdpSocket) -> UdpSocket {
        Async::new(bound).expect("it is a socket").into()
    }

    async fn echo_datagram(
        self,
        socket: &mut UdpSocket,
        buffer: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let (n, from) = socket.recv_from(buffer).await?;
        socket.send_to(&buffer[..n], from).await
    }
}

impl Http for Smol {
    fn hyper_io(
        self,
        stream: TcpStream,
    ) -> impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static {
        smol_hyper::rt::FuturesIo::new(stream)
    }
}

impl Pool for Smol {
    fn blocking(self, job: impl FnOnce() + Send + 'static) -> impl Future + 'static {
        blocking::unblock(job)
    }

    async fn read_file(self, path: PathBuf) -> io::Result<Vec<u8>> {
        async_fs::read(path).await
    }
}
