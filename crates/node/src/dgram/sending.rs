//! The sends of a datagram socket.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use super::{Bound, Sent, Socket};
use crate::abort::AbortSignal;
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use phaseloop::extension::cancelled;
use phaseloop::net::UdpSocket;
use phaseloop::phase;
use phaseloop::task::next_tick;

impl Socket {
    pub(super) fn send_now(&self, bytes: Vec<u8>, to: SocketAddr, callback: Option<Sent>) {
        let bound = self.inner.bound.borrow();
        let bound = bound.as_ref().map(Bound::to_send);
        let Some((socket, closing)) = bound else {
            // The socket was closed before this tick.
            return;
        };
        let sent = if self.inner.waiting.get() > 0 {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            self.try_send(&socket, &bytes, to)
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.send_when_writable(socket, closing, bytes, to, callback);
            }
            sent => {
                if let Some(callback) = callback {
                    let sent = sent.map_err(|error| Error::of_address(error, "send", to));
                    next_tick(move || callback(sent));
                }
            }
        }
    }

    /// Sends without waiting. A connected socket sends without an address: some platforms reject an
    /// address on a connected socket (`EISCONN`).
    fn try_send(&self, socket: &UdpSocket, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        if self.inner.peer.get().is_some() {
            socket.try_send(bytes)
        } else {
            socket.try_send_to(bytes, to)
        }
    }

    /// Sends in the poll phase in which the socket is writable, after the sends that already wait.
    /// A close cancels them, as libuv does.
    fn send_when_writable(
        &self,
        socket: Rc<UdpSocket>,
        closing: AbortSignal,
        bytes: Vec<u8>,
        to: SocketAddr,
        callback: Option<Sent>,
    ) {
        let this = self.clone();
        self.inner.waiting.set(self.inner.waiting.get() + 1);
        in_callbacks(async move {
            let is_connected = this.inner.peer.get().is_some();
            // The future owns the socket, so that the close drops it.
            let send = async move {
                if is_connected {
                    socket.send(&bytes).await
                } else {
                    socket.send_to(&bytes, to).await
                }
            };
            let sent = until_closed(&closing, send).await;
            this.inner.waiting.set(this.inner.waiting.get() - 1);
            if let Some(callback) = callback {
                callback(sent.map_err(|error| Error::of_address(error, "send", to)));
            }
        });
    }
}

/// Waits for a send. The close drops it inside the call, and is reported in the closing phase.
async fn until_closed(
    closing: &AbortSignal,
    send: impl Future<Output = io::Result<usize>>,
) -> io::Result<usize> {
    match closing.guard(send).await {
        Ok(sent) => sent,
        Err(_) => {
            phase::closing().await;
            Err(cancelled())
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;
    use std::future::pending;
    use std::rc::Rc;

    use super::until_closed;
    use crate::abort::AbortController;
    use crate::callback_futures::in_callbacks;
    use phaseloop::extension::cancelled;
    use phaseloop::phase;

    // No kernel with a local peer makes a send wait, so that the send is one that never ends.
    #[test]
    fn a_send_that_waits_is_dropped_inside_the_close_and_reported_after_it() {
        crate::run(async {
            let (controller, socket) = (AbortController::new(), Rc::new(()));
            let (closing, owned) = (controller.signal(), socket.clone());
            let error = Rc::new(Cell::new(None));
            let reported = error.clone();
            in_callbacks(async move {
                let send = async move {
                    let _owned = owned;
                    pending().await
                };
                let sent = until_closed(&closing, send).await;
                reported.set(sent.unwrap_err().raw_os_error());
            });
            phase::check().await;
            assert_eq!(Rc::strong_count(&socket), 2);
            controller.abort();
            assert_eq!(Rc::strong_count(&socket), 1);
            assert_eq!(error.get(), None);
            phase::closing().await;
            phase::check().await;
            assert_eq!(error.get(), cancelled().raw_os_error());
        });
    }
}
