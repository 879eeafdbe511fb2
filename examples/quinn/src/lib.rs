//! QUIC on a loop: [`OnLoop`] is the runtime of a [`quinn::Endpoint`].
//!
//! quinn asks for `Send` everywhere, and nothing here leaves the thread of the loop: [`Local`] is
//! the whole answer. The socket is quinn's own; a [`Source`] waits for it. quinn's calls segment by
//! the kernel (GSO and GRO), and carry the marks of congestion, which a `net::Batch` does not: so they
//! are used here, and a protocol without such marks has `Batch::push_segments`.
//!
//! An endpoint and its connections belong to the thread of the loop. On another thread they panic.

use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use phaseloop::io::Source;
use phaseloop::time::{self, Sleep};
use phaseloop::{Local, LoopHandle};
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

/// The running loop as quinn's runtime. Its time is that of the loop, which tests may pause.
#[derive(Debug)]
pub struct OnLoop;

impl Runtime for OnLoop {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(Timer(Local::new(time::sleep_until(deadline))))
    }

    #[track_caller]
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        phaseloop::spawn(future).detach();
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        let source = Source::new(&LoopHandle::current(), socket)?;
        Ok(Arc::new(Socket(Local::new(Rc::new(Inner {
            source,
            state,
        })))))
    }

    fn now(&self) -> Instant {
        time::now().into_std()
    }
}

#[derive(Debug)]
struct Timer(Local<Sleep>);

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.0.as_pin_mut().get_mut().reset(deadline);
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_pin_mut().poll(cx)
    }
}

/// Its pollers share it.
#[derive(Debug)]
struct Socket(Local<Rc<Inner>>);

#[derive(Debug)]
struct Inner {
    source: Source<UdpSocket>,
    state: UdpSocketState,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let poller = Poller {
            socket: Rc::clone(&self.0),
            waiting: None,
        };
        Box::pin(WhenWritable(Local::new(poller)))
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let Inner { source, state } = &**self.0;
        // An attempt that would block clears the readiness; a poller waits for it.
        let attempt = source.poll_write_with(&mut Context::from_waker(Waker::noop()), |socket| {
            state.send(socket.into(), transmit)
        });
        match attempt {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let Inner { source, state } = &**self.0;
        source.poll_read_with(cx, |socket| state.recv(socket.into(), buffers, meta))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.source.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.state.may_fragment()
    }
}

#[derive(Debug)]
struct WhenWritable(Local<Poller>);

struct Poller {
    socket: Rc<Inner>,
    /// A wait that has begun. Any number of tasks may wait for one source.
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>>>>>,
}

impl std::fmt::Debug for Poller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Poller").field(&self.socket).finish()
    }
}

impl UdpPoller for WhenWritable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poller { socket, waiting } = self.0.as_pin_mut().get_mut();
        let wait = waiting.get_or_insert_with(|| {
            let socket = socket.clone();
            Box::pin(async move { socket.source.writable().await })
        });
        let polled = wait.as_mut().poll(cx);
        if polled.is_ready() {
            *waiting = None;
        }
        polled
    }
}
