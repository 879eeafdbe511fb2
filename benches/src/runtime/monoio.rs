//! monoio, on io_uring where the kernel has it and on epoll elsewhere.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::replace;
use std::net;
use std::task::Poll;
use std::time::{Duration, Instant};

use monoio::io::{AsyncReadRent, AsyncReadRentExt, AsyncWriteRentExt};
use monoio::net::udp::UdpSocket;
use monoio::net::{TcpListener, TcpStream};
use monoio::{FusionDriver, RuntimeBuilder};

use super::{Runtime, Sockets, nonblocking_datagrams, nonblocking_listener};
use crate::workload::sockets::DATAGRAM;

#[derive(Clone, Copy)]
pub(crate) struct Monoio;

impl Runtime for Monoio {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let builder = RuntimeBuilder::<FusionDriver>::new().enable_timer();
        let mut runtime = builder.build().expect("monoio starts");
        runtime.block_on(async { monoio::spawn(main).await })
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        monoio::spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(monoio::spawn(task));
    }

    /// It has none of its own.
    fn yield_now(self) -> impl Future {
        let mut has_yielded = false;
        poll_fn(move |cx| {
            if replace(&mut has_yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        monoio::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        monoio::time::sleep_until(monoio::time::Instant::from_std(deadline))
    }
}

impl Sockets for Monoio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;

    fn listener(self, bound: net::TcpListener) -> TcpListener {
        TcpListener::from_std(nonblocking_listener(bound)).expect("it is a listener")
    }

    async fn accept(self, listener: &TcpListener) -> io::Result<TcpStream> {
        Ok(listener.accept().await?.0)
    }

    async fn echo(self, mut stream: TcpStream, buffer: usize) -> io::Result<()> {
        let mut buffer = vec![0; buffer];
        loop {
            // A read fills the vector's capacity and makes it as long as what came.
            let (read, bytes) = stream.read(buffer).await;
            if read? == 0 {
                return Ok(());
            }
            let (written, bytes) = stream.write_all(bytes).await;
            written?;
            buffer = bytes;
        }
    }

    async fn first_byte(self, stream: &mut TcpStream) -> io::Result<()> {
        stream.read_exact(Box::new([0_u8])).await.0.map(|_| ())
    }

    fn datagrams(self, bound: net::UdpSocket) -> UdpSocket {
        UdpSocket::from_std(nonblocking_datagrams(bound)).expect("it is a socket")
    }

    async fn echo_datagrams(self, socket: UdpSocket) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM];
        loop {
            let (received, bytes) = socket.recv_from(buffer).await;
            let (n, from) = received?;
            if n == 0 {
                return Ok(());
            }
            let (sent, bytes) = socket.send_to(bytes, from).await;
            sent?;
            buffer = bytes;
        }
    }
}
