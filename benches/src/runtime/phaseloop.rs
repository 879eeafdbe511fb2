//! phaseloop.

use std::future::Future;
use std::io;
use std::net;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket};
use phaseloop::observe::Recorder;

use super::{Http, Pages, Pool, Primitives, Runtime, Sockets};
use crate::workload::sockets::DATAGRAM;

/// After so many entries the lanes of a loop with a budget let the phases go on.
const BUDGET: NonZeroU64 = NonZeroU64::new(256).unwrap();

/// A busy period that is longer than this would be described. Under callgrind all are long.
const SLOW: Duration = Duration::from_secs(3600);

/// The loop that a workload runs on. Every task of a workload carries this value, so it is small.
#[derive(Clone, Copy, Default)]
pub(crate) enum Phaseloop {
    /// `phaseloop::block_on`.
    #[default]
    Plain,
    /// A loop whose lanes have a budget.
    WithBudget,
    /// A loop with a recorder.
    Recorded,
}

impl Runtime for Phaseloop {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let main = async { phaseloop::spawn(main).await.expect("it does not panic") };
        let builder = phaseloop::Builder::new();
        let builder = match self {
            Self::Plain => return phaseloop::block_on(main),
            Self::WithBudget => builder.lane_budget(BUDGET),
            Self::Recorded => builder.record(Recorder::new().slow(SLOW)),
        };
        builder.build().expect("the loop starts").block_on(main)
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        phaseloop::spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(phaseloop::spawn(task));
    }

    fn yield_now(self) -> impl Future {
        phaseloop::task::yield_microtask()
    }

    fn yield_to_all(self) -> impl Future {
        phaseloop::task::yield_now()
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
        UdpSocket::from_std(bound).expect("it is a socket")
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

    async fn read_through(self, path: PathBuf, at_once: usize) -> io::Result<u64> {
        let mut file = phaseloop::fs::File::open(path).await?;
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

impl Pages for Phaseloop {
    type File = phaseloop::fs::File;

    async fn open_pages(self, path: PathBuf) -> io::Result<Self::File> {
        phaseloop::fs::File::open(path).await
    }

    async fn read_page(
        self,
        file: &Self::File,
        mut page: Vec<u8>,
        offset: u64,
    ) -> io::Result<Vec<u8>> {
        file.read_exact_at(&mut page, offset).await?;
        Ok(page)
    }
}

impl Primitives for Phaseloop {
    type Mutex = phaseloop::sync::Mutex<u64>;
    type Sender = phaseloop::sync::mpsc::Sender<u64>;
    type Receiver = phaseloop::sync::mpsc::Receiver<u64>;

    fn mutex(self) -> Self::Mutex {
        phaseloop::sync::Mutex::new(0)
    }

    async fn with_lock(self, mutex: &Self::Mutex, f: impl FnOnce(&mut u64)) {
        f(&mut *mutex.lock().await);
    }

    async fn hold_lock<F: Future>(self, mutex: &Self::Mutex, f: impl FnOnce() -> F) {
        let _guard = mutex.lock().await;
        f().await;
    }

    fn channel(self, capacity: usize) -> (Self::Sender, Self::Receiver) {
        phaseloop::sync::mpsc::channel(capacity)
    }

    async fn send(sender: &Self::Sender, message: u64) {
        sender.send(message).await.expect("the receiver is there");
    }

    async fn recv(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }

    async fn through_oneshot(self, message: u64) -> u64 {
        let (sender, receiver) = phaseloop::sync::oneshot::channel();
        self.detach(async move { sender.send(message).expect("the receiver is there") });
        receiver.await.expect("the task sends it")
    }

    async fn join3<F: Future<Output = ()>>(self, first: F, second: F, third: F) {
        phaseloop::join!(first, second, third);
    }

    async fn select3(
        self,
        first: impl Future<Output = ()>,
        second: impl Future<Output = ()>,
        third: impl Future<Output = ()>,
    ) {
        phaseloop::select! {
            biased;
            () = first => {}
            () = second => {}
            () = third => {}
        }
    }
}
