//! hyper on the loop: its I/O, executor and timer traits. Behind the feature `hyper`.
//!
//! Services need not be `Send`: tasks of the loop serve the connections, so shared state may be an
//! `Rc`.
//!
//! # Examples
//!
//! ```no_run
//! use std::{cell::Cell, convert::Infallible, rc::Rc};
//! use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
//! use http_body_util::Full;
//! use phaseloop::{hyper::{HyperIo, HyperTimer}, net::TcpListener, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let requests = Rc::new(Cell::new(0));
//!     let listener = TcpListener::bind("127.0.0.1:8080").await?;
//!     loop {
//!         let (stream, _) = listener.accept().await?;
//!         let requests = requests.clone();
//!         let service = service_fn(move |_| {
//!             requests.set(requests.get() + 1);
//!             let text = format!("request {}\n", requests.get());
//!             async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text)))) }
//!         });
//!         spawn(async move {
//!             http1::Builder::new()
//!                 .timer(HyperTimer)
//!                 .serve_connection(HyperIo::new(stream), service)
//!                 .await
//!         }).detach();
//!     }
//! })
//! # }
//! ```

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures::io::{AsyncRead, AsyncWrite};
use hyper::rt::{self, ReadBufCursor};

use crate::raw::thread_bound::ThreadBound;
use crate::task;
use crate::time;

/// Implements hyper's I/O traits for a stream with the I/O traits of `futures`.
pub struct HyperIo<S> {
    stream: S,
    /// A buffer for reads: hyper lends uninitialised memory, and `AsyncRead` needs initialised
    /// memory.
    buffer: Box<[u8]>,
}

/// The size of hyper's first read.
const BUFFER: usize = 8 * 1024;

impl<S> HyperIo<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            buffer: vec![0; BUFFER].into_boxed_slice(),
        }
    }

    /// The stream.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Unwraps the stream.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> rt::Read for HyperIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let room = cursor.remaining().min(this.buffer.len());
        let buffer = &mut this.buffer[..room];
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        cursor.put_slice(&buffer[..read]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> rt::Write for HyperIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }
}

impl<S: fmt::Debug> fmt::Debug for HyperIo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperIo")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// Spawns hyper's futures on the running loop, `Send` or not.
///
/// # Panics
///
/// When hyper spawns a future and no loop runs on this thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperExecutor;

impl<F> rt::Executor<F> for HyperExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        drop(task::spawn(future));
    }
}

/// Runs hyper's timeouts in the timer heap of the loop.
///
/// Its sleeps are `Send`, as hyper requires, but can be polled on the loop's thread only.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperTimer;

impl rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(HyperSleep::new(time::sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(HyperSleep::new(time::sleep_until(deadline)))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        *sleep = self.sleep_until(deadline);
    }
}

struct HyperSleep {
    sleep: ThreadBound<time::Sleep>,
}

impl HyperSleep {
    fn new(sleep: time::Sleep) -> Self {
        Self {
            sleep: ThreadBound::new(sleep),
        }
    }
}

impl rt::Sleep for HyperSleep {}

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.sleep.get_mut() {
            Some(sleep) => Pin::new(sleep).poll(cx),
            // hyper polls it in tasks of the loop only, so this is the owner thread.
            None => Poll::Pending,
        }
    }
}
