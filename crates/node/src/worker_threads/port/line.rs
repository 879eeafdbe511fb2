//! The queues of a port, shared by both sides of a channel.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phaseloop::AsyncSender;

/// One direction of a channel: the queue of messages.
pub(super) struct Line<T> {
    state: Mutex<LineState<T>>,
}

struct LineState<T> {
    items: VecDeque<Item<T>>,
    /// Wakes the loop of the receiving port, while the port is on a loop.
    receiver: Option<AsyncSender>,
    /// Whether the receiving port is closed.
    closed: bool,
}

pub(super) enum Item<T> {
    Message(T),
    /// The other side is closed.
    Close,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        let state = LineState {
            items: VecDeque::new(),
            receiver: None,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

impl<T> Line<T> {
    fn lock(&self) -> MutexGuard<'_, LineState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, item: Item<T>) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return drop(item);
        }
        state.items.push_back(item);
        let receiver = state.receiver.clone();
        drop(state);
        if let Some(receiver) = receiver {
            // An error means that the receiving loop was dropped.
            let _ = receiver.send();
        }
    }

    /// Removes the next item. A port that is not receiving gets only the close of the other side.
    pub(super) fn pop(&self, receiving: bool) -> Option<Item<T>> {
        let mut state = self.lock();
        match state.items.front()? {
            Item::Message(_) if !receiving => None,
            _ => state.items.pop_front(),
        }
    }

    /// Returns the number of queued items.
    pub(super) fn len(&self) -> usize {
        self.lock().items.len()
    }

    /// Returns whether `pop` would return an item.
    pub(super) fn is_ready(&self, receiving: bool) -> bool {
        match self.lock().items.front() {
            Some(Item::Message(_)) => receiving,
            Some(Item::Close) => true,
            None => false,
        }
    }

    pub(super) fn set_receiver(&self, receiver: Option<AsyncSender>) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.receiver, receiver);
        drop(state);
        drop(before);
    }

    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = (
            std::mem::take(&mut state.items),
            std::mem::take(&mut state.receiver),
        );
        drop(state);
        drop(left);
    }
}

/// The queues of a port.
pub(super) struct Ends<S, R> {
    pub(super) incoming: Arc<Line<R>>,
    pub(super) outgoing: Arc<Line<S>>,
}

impl<S, R> Ends<S, R> {
    /// Closes this side. The other side receives the close after all earlier messages.
    pub(super) fn close(&self) {
        self.incoming.close();
        self.outgoing.push(Item::Close);
    }
}
