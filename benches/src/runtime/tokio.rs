//! tokio on one thread.

use std::future::Future;
use std::io;
use std::net;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{JoinHandle, LocalSet};

use super::{
    Http, Pages, Pool, Primitives, Runtime, Sockets, nonblocking_datagrams, nonblocking_listener,
    page_of,
};
use crate::workload::sockets::DATAGRAM;

/// Tasks are spawned by `tokio::spawn`, as in a server.
pub(crate) const CURRENT_THREAD: u8 = 0;
/// Tasks are spawned by `spawn_local` in a `LocalSet`.
pub(crate) const LOCAL_SET: u8 = 1;
/// Tasks are spawned by `spawn_local` in a `LocalRuntime`.
pub(crate) const LOCAL_RUNTIME: u8 = 2;

/// tokio's current-thread runtime, with tasks of this kind. The kind is a part of the type, so that
/// no call has to look for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokio<const KIND: u8>;

/// A future or its output, of a runtime with one thread. `tokio::spawn` asks for `Send`, since it
/// serves both runtimes; the workloads, which all runtimes share, do not promise it.
struct OneThread<T>(T);

// SAFETY: it is made and used only in `Tokio`, whose runtime polls and drops its tasks on the thread
// of its `block_on`, and whose join handles stay in tasks of that runtime: nothing is sent.
unsafe impl<T> Send for OneThread<T> {}

impl<F: Future> Future for OneThread<F> {
    type Output = OneThread<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the field is pinned with the whole, and never moved out of it.
        let inner = unsafe { self.map_unchecked_mut(|whole| &mut whole.0) };
        inner.poll(cx).map(OneThread)
    }
}

fn spawn<const KIND: u8, F: Future + 'static>(task: F) -> JoinHandle<OneThread<F::Output>> {
    match KIND {
        CURRENT_THREAD => tokio::spawn(OneThread(task)),
        _ => tokio::task::spawn_local(OneThread(task)),
    }
}

impl<const KIND: u8> Runtime for Tokio<KIND> {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let main = async {
            let ended = spawn::<KIND, _>(main).await;
            ended.expect("it does not panic").0
        };
        let mut builder = Builder::new_current_thread();
        builder.enable_all();
        match KIND {
            LOCAL_SET => {
                let runtime = builder.build().expect("tokio starts");
                LocalSet::new().block_on(&runtime, main)
            }
            LOCAL_RUNTIME => {
                let runtime = builder.build_local(LocalOptions::default());
                runtime.expect("tokio starts").block_on(main)
            }
            _ => builder.build().expect("tokio starts").block_on(main),
        }
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        spawn::<KIND, _>(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(spawn::<KIND, _>(task));
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

impl<const KIND: u8> Sockets for Tokio<KIND> {
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

impl<const KIND: u8> Http for Tokio<KIND> {
    fn hyper_io(
        self,
        stream: TcpStream,
    ) -> impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static {
        hyper_util::rt::TokioIo::new(stream)
    }
}

impl<const KIND: u8> Pool for Tokio<KIND> {
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

/// `tokio::fs` has no read at an offset, and a seek would be a second job.
impl<const KIND: u8> Pages for Tokio<KIND> {
    type File = Arc<std::fs::File>;

    async fn open_pages(self, path: PathBuf) -> io::Result<Self::File> {
        let file = tokio::fs::File::open(path).await?;
        Ok(Arc::new(file.into_std().await))
    }

    async fn read_page(self, file: &Self::File, page: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let file = file.clone();
        let read = tokio::task::spawn_blocking(move || page_of(&file, page, offset));
        read.await.expect("a read does not panic")
    }
}

impl<const KIND: u8> Primitives for Tokio<KIND> {
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
