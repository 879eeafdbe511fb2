//! compio, on io_uring where the kernel has it.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::replace;
use std::net;
use std::path::PathBuf;
use std::task::Poll;
use std::time::{Duration, Instant};

use compio::BufResult;
use compio::fs::File;
use compio::io::{AsyncRead, AsyncReadAt, AsyncReadExt, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream, UdpSocket};

use super::{Pages, Runtime, Sockets};
use crate::workload::sockets::DATAGRAM;

#[derive(Clone, Copy)]
pub(crate) struct Compio;

impl Runtime for Compio {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let runtime = compio::runtime::Runtime::new().expect("compio starts");
        runtime.block_on(async {
            let task = compio::runtime::spawn(main);
            task.await.unwrap_or_else(|_| panic!("the task ends"))
        })
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        compio::runtime::spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        compio::runtime::spawn(task).detach();
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
        compio::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        compio::time::sleep_until(deadline)
    }
}

impl Sockets for Compio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagrams = UdpSocket;

    fn listener(self, bound: net::TcpListener) -> TcpListener {
        TcpListener::from_std(bound).expect("it is a listener")
    }

    async fn accept(self, listener: &TcpListener) -> io::Result<TcpStream> {
        Ok(listener.accept().await?.0)
    }

    async fn echo(self, mut stream: TcpStream, buffer: usize) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(buffer);
        loop {
            let BufResult(read, bytes) = stream.read(buffer).await;
            if read? == 0 {
                return Ok(());
            }
            let BufResult(written, mut bytes) = stream.write_all(bytes).await;
            written?;
            bytes.clear();
            buffer = bytes;
        }
    }

    async fn first_byte(self, stream: &mut TcpStream) -> io::Result<()> {
        stream.read_exact([0_u8; 1]).await.0.map(drop)
    }

    fn datagrams(self, bound: net::UdpSocket) -> UdpSocket {
        UdpSocket::from_std(bound).expect("it is a socket")
    }

    async fn echo_datagrams(self, socket: UdpSocket) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(DATAGRAM);
        loop {
            let BufResult(received, bytes) = socket.recv_from(buffer).await;
            let (n, from) = received?;
            if n == 0 {
                return Ok(());
            }
            let BufResult(sent, mut bytes) = socket.send_to(bytes, from).await;
            sent?;
            bytes.clear();
            buffer = bytes;
        }
    }
}

impl Pages for Compio {
    type File = File;

    async fn open_pages(self, path: PathBuf) -> io::Result<File> {
        File::open(path).await
    }

    async fn read_page(self, file: &File, page: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let BufResult(read, page) = file.read_at(page, offset).await;
        assert_eq!(read?, page.len());
        Ok(page)
    }
}
