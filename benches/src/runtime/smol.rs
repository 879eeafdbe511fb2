//! smol.

use std::future::Future;
use std::io;
use std::net;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;
use async_io::Async;
use async_net::{TcpListener, TcpStream, UdpSocket};
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::{Http, Pages, Pool, Runtime, Sockets, page_of};
use crate::workload::sockets::DATAGRAM;

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

    async fn echo(self, mut stream: TcpStream, buffer: usize) -> io::Result<()> {
        let mut buffer = vec![0; buffer];
        loop {
            let n = stream.read(&mut buffer).await?;
            if n == 0 {
                return Ok(());
            }
            stream.write_all(&buffer[..n]).await?;
        }
    }

    async fn first_byte(self, stream: &mut TcpStream) -> io::Result<()> {
        stream.read_exact(&mut [0]).await
    }

    fn datagrams(self, bound: net::UdpSocket) -> UdpSocket {
        Async::new(bound).expect("it is a socket").into()
    }

    async fn echo_datagrams(self, socket: UdpSocket) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM];
        loop {
            let (n, from) = socket.recv_from(&mut buffer).await?;
            if n == 0 {
                return Ok(());
            }
            socket.send_to(&buffer[..n], from).await?;
        }
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

    async fn read_through(self, path: PathBuf, at_once: usize) -> io::Result<u64> {
        let mut file = async_fs::File::open(path).await?;
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

/// `async_fs` has no read at an offset, and a seek would be a second job.
impl Pages for Smol {
    type File = Arc<std::fs::File>;

    async fn open_pages(self, path: PathBuf) -> io::Result<Self::File> {
        let file = blocking::unblock(|| std::fs::File::open(path)).await?;
        Ok(Arc::new(file))
    }

    async fn read_page(self, file: &Self::File, page: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let file = file.clone();
        blocking::unblock(move || page_of(&file, page, offset)).await
    }
}
