//! phaseloop.

use std::future::Future;
use std::io;
use std::net;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket};

use super::{Http, Pool, Runtime, Sockets};

/// `phaseloop::block_on`; with a budget, a loop whose lanes let the phases go on after so many entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Phaseloop {
    pub(crate) lane_budget: Option<NonZeroU64>,
}

impl Runtime for Phaseloop {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let main = async { phaseloop::spawn(main).await.expect("it does not panic") };
        let Some(entries) = self.lane_budget else {
            return phaseloop::block_on(main);
        };
        let event_loop = phaseloop::Builder::new().lane_budget(entries).build();
        event_loop.expect("the loop starts").block_on(main)
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        phaseloop::spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(phaseloop::spawn(task));
    }

    fn yield_now(self) -> impl Future {
        phaseloop::task::yield_now()
    }

    fn yield_to_all(self) -> impl Future {
        phaseloop::task::yield_now_immediate()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        phaseloop::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        phaseloop::time::sleep_until(deadline)
    }
}

impl Sockets for Phaseloop {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;

    fn listener(self, bound: net::TcpListener) -> TcpListener {
        TcpListener::from_std(bound).expect("it is a listener")
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
        UdpSocket::from_std(bound).expect("it is a socket")
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

impl Http for Phaseloop {
    fn hyper_io(
        self,
        stream: TcpStream,
    ) -> impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static {
        phaseloop::hyper::HyperIo::new(stream)
    }
}

impl Pool for Phaseloop {
    fn blocking(self, job: impl FnOnce() + Send + 'static) -> impl Future + 'static {
        phaseloop::spawn_blocking(job)
    }

    async fn read_file(self, path: PathBuf) -> io::Result<Vec<u8>> {
        phaseloop::fs::read(path).await
    }
}
