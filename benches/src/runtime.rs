//! The runtimes that are compared, each behind the few calls that the workloads make.
//!
//! The question for these files: is every runtime used as its own documentation shows it? Nothing
//! is added around a call but the trait, which is gone after inlining.

use std::future::Future;
use std::io;
use std::net;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[cfg(feature = "compio")]
pub(crate) mod compio;
#[cfg(feature = "monoio")]
pub(crate) mod monoio;
pub(crate) mod phaseloop;
#[cfg(feature = "smol")]
pub(crate) mod smol;
pub(crate) mod tokio;
pub(crate) mod tokio_threads;

/// One runtime on one thread, with futures that need not be `Send`.
pub(crate) trait Runtime: Copy + 'static {
    /// Runs a spawned task to its end.
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T;
    /// Spawns a task; the returned future waits for it.
    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static;
    /// Spawns a detached task.
    fn detach(self, task: impl Future<Output = ()> + 'static);
    /// The runtime's own way to let other tasks run.
    fn yield_now(self) -> impl Future;
    /// The runtime's own way to let other tasks, timers and I/O run.
    fn yield_to_all(self) -> impl Future {
        self.yield_now()
    }
    fn sleep(self, duration: Duration) -> impl Future + 'static;
    fn sleep_until(self, deadline: Instant) -> impl Future + 'static;
}

/// A runtime with sockets.
pub(crate) trait Sockets: Runtime {
    type Listener: 'static;
    type Stream: 'static;
    type Datagrams: 'static;

    fn listener(self, bound: net::TcpListener) -> Self::Listener;
    fn accept(self, listener: &Self::Listener) -> impl Future<Output = io::Result<Self::Stream>>;
    /// Writes back what comes, until the stream's end, through a buffer of that length: the loop that a program has, with the
    /// runtime's own calls. A trait with a read and a write would put a future of ours around each
    /// of theirs.
    fn echo(
        self,
        stream: Self::Stream,
        buffer: usize,
    ) -> impl Future<Output = io::Result<()>> + 'static;
    /// Reads one byte. By another call than the echo's: what is called from one place only is
    /// compiled into that place.
    fn first_byte(self, stream: &mut Self::Stream) -> impl Future<Output = io::Result<()>>;

    fn datagrams(self, bound: net::UdpSocket) -> Self::Datagrams;
    /// Sends back what comes, until a datagram is empty.
    fn echo_datagrams(self, socket: Self::Datagrams) -> impl Future<Output = io::Result<()>>;
}

/// A runtime that hyper runs on.
pub(crate) trait Http: Sockets {
    fn hyper_io(
        self,
        stream: Self::Stream,
    ) -> impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static;
}

/// A runtime with a thread pool, and files on it.
pub(crate) trait Pool: Runtime {
    /// Runs a job on the pool; the returned future waits for it.
    fn blocking(self, job: impl FnOnce() + Send + 'static) -> impl Future + 'static;
    fn read_file(self, path: PathBuf) -> impl Future<Output = io::Result<Vec<u8>>> + 'static;
    /// Opens a file and reads it through, so many bytes at a time. How many there were.
    fn read_through(self, path: PathBuf, at_once: usize) -> impl Future<Output = io::Result<u64>>;
}

/// A runtime that reads files at an offset.
pub(crate) trait Pages: Runtime {
    type File: 'static;

    fn open_pages(self, path: PathBuf) -> impl Future<Output = io::Result<Self::File>>;
    /// Fills a page, which comes back.
    fn read_page(
        self,
        file: &Self::File,
        page: Vec<u8>,
        offset: u64,
    ) -> impl Future<Output = io::Result<Vec<u8>>>;
}

/// A runtime with locks, channels and macros for its tasks.
pub(crate) trait Primitives: Runtime {
    type Mutex: 'static;
    type Sender: 'static;
    type Receiver: 'static;

    fn mutex(self) -> Self::Mutex;
    /// Takes the lock for a call.
    async fn with_lock(self, mutex: &Self::Mutex, f: impl FnOnce(&mut u64));
    /// Takes the lock until the future ends.
    async fn hold_lock<F: Future>(self, mutex: &Self::Mutex, f: impl FnOnce() -> F);

    fn channel(self, capacity: usize) -> (Self::Sender, Self::Receiver);
    async fn send(sender: &Self::Sender, message: u64);
    async fn recv(receiver: &mut Self::Receiver) -> Option<u64>;
    /// Spawns a task that sends the message through a channel for one value, and waits for it.
    async fn through_oneshot(self, message: u64) -> u64;

    async fn join3<F: Future<Output = ()>>(self, first: F, second: F, third: F);
    /// The first of three, which are polled in this order.
    async fn select3(
        self,
        first: impl Future<Output = ()>,
        second: impl Future<Output = ()>,
        third: impl Future<Output = ()>,
    );
}

/// What a job does for runtimes whose files have no read at an offset.
fn page_of(file: &std::fs::File, mut page: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
    std::os::unix::fs::FileExt::read_exact_at(file, &mut page, offset)?;
    Ok(page)
}

/// The std socket is made non-blocking: what all `from_std` ask for.
fn nonblocking_listener(listener: net::TcpListener) -> net::TcpListener {
    listener.set_nonblocking(true).expect("a listener can be");
    listener
}

fn nonblocking_datagrams(socket: net::UdpSocket) -> net::UdpSocket {
    socket.set_nonblocking(true).expect("a socket can be");
    socket
}
