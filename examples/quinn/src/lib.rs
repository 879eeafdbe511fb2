//! QUIC on a loop: [`OnLoop`] is the runtime of a [`quinn::Endpoint`].
//!
//! quinn asks for `Send` everywhere, and nothing here leaves the thread of the loop: [`Local`] is
//! the whole answer. Datagrams pass through a [`Batch`]: the kernel cuts and joins them (GSO and
//! GRO), and they carry marks of congestion and local addresses. Where the platform has none of
//! that, they are sent and received one by one, and quinn does without.
//!
//! A batch has buffers of its own, so each byte is copied once in each direction, which quinn's
//! own sockets avoid.
//!
//! An endpoint and its connections belong to the thread of the loop. On another thread they panic.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use phaseloop::Local;
use phaseloop::net::{Batch, UdpSocket};
use phaseloop::time::{self, Sleep};
use quinn::udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};

/// The most datagrams that the kernel cuts from one, or joins to one.
const SEGMENTS: usize = 64;
/// The most bytes of a datagram, or of those that are joined to one.
const BYTES: usize = 65_535;

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

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let socket = UdpSocket::from_std(socket)?;
        // quinn works without the marks and the addresses, so their absence is no error.
        let _ = socket.set_recv_tos(true);
        let _ = socket.set_recv_local_ip(true);
        let inner = Inner {
            may_fragment: socket.set_dont_fragment(true).is_err(),
            segments: if socket.set_gro(true).is_ok() {
                SEGMENTS
            } else {
                1
            },
            incoming: RefCell::new(Batch::new(BATCH_SIZE, BYTES)),
            outgoing: RefCell::new(Batch::new(1, BYTES)),
            socket,
        };
        Ok(Arc::new(Socket(Local::new(Rc::new(inner)))))
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
    socket: UdpSocket,
    may_fragment: bool,
    segments: usize,
    /// It has no more room than quinn has for one call.
    incoming: RefCell<Batch>,
    outgoing: RefCell<Batch>,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        let poller = Poller {
            socket: Rc::clone(&self.0),
            waiting: None,
        };
        Box::pin(WhenWritable(Local::new(poller)))
    }

    /// A datagram that cannot be sent is lost, as one that a router drops: quinn would end the
    /// connection for any error but `WouldBlock`. After that, quinn sends the same again.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut batch = self.0.outgoing.borrow_mut();
        batch.clear();
        let (bytes, to) = (transmit.contents, transmit.destination);
        match transmit.segment_size {
            Some(size) => batch.push_segments(bytes, size, to)?,
            None => batch.push(bytes, to)?,
        }
        if let Some(mut datagram) = batch.last_mut() {
            if let Some(mark) = transmit.ecn {
                datagram.set_tos(mark as u8);
            }
            datagram.set_local_ip(transmit.src_ip);
        }
        match self.0.socket.try_send_batch(&mut batch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut batch = self.0.incoming.borrow_mut();
        ready!(self.0.socket.poll_recv_batch(cx, &mut batch))?;
        let mut rooms = buffers.iter_mut().zip(meta);
        let mut count = 0;
        for datagram in &*batch {
            let Some((from, (buffer, meta))) = datagram.address().zip(rooms.next()) else {
                continue;
            };
            let bytes = datagram.bytes();
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
            *meta = RecvMeta {
                addr: from,
                len,
                stride: datagram.segment_size(),
                ecn: datagram.tos().and_then(EcnCodepoint::from_bits),
                dst_ip: datagram.local_ip(),
            };
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.segments
    }

    fn max_receive_segments(&self) -> usize {
        self.0.segments
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment
    }
}

#[derive(Debug)]
struct WhenWritable(Local<Poller>);

struct Poller {
    socket: Rc<Inner>,
    /// A wait that has begun. Any number of tasks may wait for one socket.
    waiting: Option<Pin<Box<dyn Future<Output = io::Result<()>>>>>,
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Poller").field(&self.socket).finish()
    }
}

impl UdpPoller for WhenWritable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poller { socket, waiting } = self.0.as_pin_mut().get_mut();
        let wait = waiting.get_or_insert_with(|| {
            let socket = socket.clone();
            Box::pin(async move { socket.socket.writable().await })
        });
        let polled = wait.as_mut().poll(cx);
        if polled.is_ready() {
            *waiting = None;
        }
        polled
    }
}
