//! The task of loop 0 that accepts and hands over.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Handed, Hub, Stage, Target};
use crate::cluster::balance::{Balancer, Load};
use crate::cluster::channel::TrySendError;
use crate::net::{Detached, TcpListener};
use crate::runtime::loop_handle::LoopHandle;
use crate::sys;

/// How many connections a turn accepts, at most.
const A_TURN: usize = 16;

/// Notes the end of the acceptor, also of one that is dropped with its loop.
pub(super) struct EndGuard(pub(super) Arc<Hub>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.change(|state| state.is_accepting = false);
        self.0.close();
    }
}

/// Accepts until the listener is to be closed.
pub(super) async fn run(listener: Detached<TcpListener>, hub: &Arc<Hub>) {
    let mut acceptor = Acceptor {
        hub,
        targets: Vec::new(),
        balancer: Balancer::new(hub.balance, hub.cluster.len()),
    };
    let listener = match listener.attach() {
        Ok(listener) => listener,
        Err(error) => return acceptor.fail(&error).await,
    };
    while let Some(handed) = acceptor.next(&listener).await {
        if let Err(error) = &handed {
            if sys::socket::is_of_listener(error) {
                return acceptor.fail(error).await;
            }
        }
        acceptor.give(handed);
        // The next wait is for the next turn.
        for _ in 1..A_TURN {
            if !acceptor.has_room() {
                break;
            }
            // An error that stays is met again in the next turn.
            let Ok(accepted) = listener.accept_ready(hub.site) else {
                break;
            };
            acceptor.give(Ok(accepted));
        }
    }
    acceptor.drain(listener).await;
}

struct Acceptor<'a> {
    hub: &'a Arc<Hub>,
    targets: Vec<Target>,
    balancer: Balancer,
}

impl Acceptor<'_> {
    /// Waits for a connection, and for a loop that has room for it; or until the listener is to be
    /// closed.
    async fn next(&mut self, listener: &TcpListener) -> Option<Handed> {
        let mut accept = pin!(listener.accept_detached_at(self.hub.site));
        poll_fn(|cx| {
            let (stage, returned) = self.hub.poll_changes(&mut self.targets, cx);
            if stage != Stage::Open {
                return Poll::Ready(None);
            }
            if let Some(returned) = returned {
                return Poll::Ready(Some(returned));
            }
            if !self.poll_room(cx) {
                return Poll::Pending;
            }
            Pin::new(&mut accept).as_mut().poll(cx).map(Some)
        })
        .await
    }

    fn has_room(&self) -> bool {
        self.targets.iter().any(|target| target.sender.has_room())
    }

    /// Returns whether a loop has room. If not, the task is woken when one has.
    fn poll_room(&mut self, cx: &Context<'_>) -> bool {
        if self.has_room() {
            return true;
        }
        let mut has_room = false;
        for target in &mut self.targets {
            has_room |= target.sender.wait_for_room(&mut target.wait, cx.waker());
        }
        has_room
    }

    /// Gives a connection to the loop that the policy chooses. If none has room, it waits.
    fn give(&mut self, mut handed: Handed) {
        let now = LoopHandle::current().now();
        loop {
            let loads = self.loads();
            let Some(chosen) = self.balancer.choose(now, &loads) else {
                self.hub.change(|state| state.returned.push_back(handed));
                return;
            };
            let is_chosen = |target: &Target| target.index == chosen && target.sender.has_room();
            let Some(place) = self.targets.iter().position(is_chosen) else {
                // It was full when it was looked at.
                continue;
            };
            // Several listeners of one loop take turns.
            let target = self.targets.remove(place);
            let sent = target.sender.try_send(handed);
            self.targets.push(target);
            handed = match sent {
                Ok(()) => return,
                Err(TrySendError::Full(handed)) => handed,
                Err(TrySendError::Closed(handed)) => {
                    self.targets.pop();
                    handed
                }
            };
        }
    }

    /// Returns what is known of each loop, by index.
    fn loads(&self) -> Vec<Load> {
        let cluster = &self.hub.cluster;
        let of_loop = |index| {
            let remote = cluster.remote(index);
            let targets = self.targets.iter().filter(|target| target.index == index);
            let on_their_way: usize = targets.clone().map(|target| target.sender.len()).sum();
            Load {
                connections: remote.open_connections() + on_their_way,
                utilization: remote.utilization(),
                has_room: targets.into_iter().any(|target| target.sender.has_room()),
            }
        };
        (0..cluster.len()).map(of_loop).collect()
    }

    /// Hands over what is in the kernel's queue, and closes the listener.
    // C18 (1): also what no event has reported yet.
    async fn drain(&mut self, listener: TcpListener) {
        let last = listener.into_last();
        while self.wait_for_room().await {
            match last.accept() {
                Some(accepted) => self.give(Ok(accepted)),
                None if last.hold_back().await => {}
                None => return,
            }
        }
    }

    /// Waits until a loop has room. Hands over what came back. Returns `false` if no listener waits
    /// for connections any more.
    async fn wait_for_room(&mut self) -> bool {
        poll_fn(|cx| {
            loop {
                let (stage, returned) = self.hub.poll_changes(&mut self.targets, cx);
                if stage == Stage::Closed || self.targets.is_empty() {
                    return Poll::Ready(false);
                }
                let Some(returned) = returned else { break };
                self.give(returned);
            }
            if self.poll_room(cx) {
                Poll::Ready(true)
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Reports an error that ends the listener to each loop.
    async fn fail(&mut self, error: &io::Error) {
        // A loop that has not taken its part yet gets the error with it.
        poll_fn(|cx| {
            let (stage, _) = self.hub.poll_changes(&mut self.targets, cx);
            if stage == Stage::Open && self.targets.is_empty() {
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        for target in &self.targets {
            let error = match error.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(error.kind(), error.to_string()),
            };
            // A full channel has a loop behind it that accepts slowly: its end is the closed one.
            let _ = target.sender.try_send(Err(error));
        }
    }
}
