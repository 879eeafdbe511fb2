//! Connecting: one attempt, and one after the other.
//!
//! The futures are types of their own in place of async blocks, which would keep room for what they
//! were given beside what became of it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

use socket2::Socket;

use super::stream::TcpStream;
use crate::error::OsError;
use crate::net::address::{Resolving, ToAddresses};
use crate::net::transport::Transport;
use crate::phase::{self, PhaseFuture};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// Connects to the first address of a target that accepts.
pub(super) enum Connect<T> {
    Resolving(Resolving<T>),
    Trying {
        attempt: Attempt,
        rest: vec::IntoIter<SocketAddr>,
        site: Site,
    },
}

impl<T: ToAddresses> Connect<T> {
    pub(super) fn new(target: T, site: Site) -> Self {
        Self::Resolving(Resolving::of("net::TcpStream::connect", target, site))
    }
}

/// No part is ever pinned.
impl<T> Unpin for Connect<T> {}

impl<T: ToAddresses> Future for Connect<T> {
    type Output = io::Result<TcpStream>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let this = self.get_mut();
        loop {
            match this {
                Self::Resolving(addresses) => {
                    let site = addresses.site;
                    let mut rest = ready!(Pin::new(addresses).poll(cx))?.into_iter();
                    let first = rest.next().expect("there is at least one address");
                    let attempt = Attempt::at(first, site);
                    *this = Self::Trying {
                        attempt,
                        rest,
                        site,
                    };
                }
                Self::Trying {
                    attempt,
                    rest,
                    site,
                } => match ready!(Pin::new(&mut *attempt).poll(cx)) {
                    Ok(stream) => return Poll::Ready(Ok(stream)),
                    Err(error) => match rest.next() {
                        Some(address) => *attempt = Attempt::at(address, site),
                        None => return Poll::Ready(Err(error)),
                    },
                },
            }
        }
    }
}

/// Connects a socket to an address, which an error names.
pub(super) struct Attempt {
    address: SocketAddr,
    state: State,
}

enum State {
    New(Transport<Socket>, Site),
    Connecting(TcpStream),
    Failed(io::Error),
    /// An error that is known at once is deferred to the pending phase, as if it had come from the
    /// peer.
    Refused(PhaseFuture, io::Error),
    Over,
}

impl Attempt {
    /// Connects a socket when the attempt is first polled.
    pub(super) fn new(socket: Transport<Socket>, address: SocketAddr, site: Site) -> Self {
        let state = State::New(socket, site);
        Self { address, state }
    }

    /// Connects a new socket.
    fn at(address: SocketAddr, site: Site) -> Self {
        let handle = LoopHandle::current();
        match Transport::tcp(Some(&handle), address.is_ipv6()) {
            Ok(socket) => Self::new(socket, address, site),
            Err(error) => Self {
                address,
                state: State::Failed(error),
            },
        }
    }

    /// Starts to connect. `Ok` is a stream that is connected already.
    fn start(&self, socket: Transport<Socket>, site: Site) -> Result<TcpStream, State> {
        let handle = LoopHandle::current_for("net::TcpSocket::connect", Some(site));
        let is_connected = match socket.connect(self.address) {
            Ok(is_connected) => is_connected,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(State::Refused(phase::pending(), error));
            }
            Err(error) => return Err(State::Failed(error)),
        };
        let stream = TcpStream::of_connect(&handle, socket, is_connected, site);
        let stream = stream.map_err(State::Failed)?;
        if is_connected {
            return Ok(stream);
        }
        stream.source().note_connect(self.address);
        Err(State::Connecting(stream))
    }

    fn poll_plainly(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::New(socket, site) => match self.start(socket, site) {
                    Ok(stream) => return Poll::Ready(Ok(stream)),
                    Err(state) => self.state = state,
                },
                State::Connecting(stream) => {
                    // No other code has the stream, so the slot of the `poll_*` functions is free.
                    let Poll::Ready(result) = stream.source().poll_writable(cx) else {
                        self.state = State::Connecting(stream);
                        return Poll::Pending;
                    };
                    stream.source().end_connect();
                    return Poll::Ready(match result.and_then(|()| stream.take_error()) {
                        Ok(None) => Ok(stream),
                        Ok(Some(error)) | Err(error) => Err(error),
                    });
                }
                State::Failed(error) => return Poll::Ready(Err(error)),
                State::Refused(mut phase, error) => {
                    if Pin::new(&mut phase).poll(cx).is_pending() {
                        self.state = State::Refused(phase, error);
                        return Poll::Pending;
                    }
                    return Poll::Ready(Err(error));
                }
                State::Over => panic!("a connect was polled after its end"),
            }
        }
    }
}

impl Future for Attempt {
    type Output = io::Result<TcpStream>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let address = self.address;
        let connected = self.poll_plainly(cx);
        connected.map_err(|error| OsError::wrap(error, "connect", address))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let State::Connecting(stream) = &self.state {
            stream.source().end_connect();
        }
    }
}
