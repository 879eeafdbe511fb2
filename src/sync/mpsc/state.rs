//! What the ends of a channel share.
// Marks: a send or receive that need not wait makes no call (rows `mpsc_burst/64`,
// `mpsc_ping_pong`).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::event_loop::current;
use crate::executor::primitives::{Described, LastUse, Primitive, TaskKey};
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::sync::identity::Identity;
use crate::sync::one_waiter::OneWaiter;
use crate::sync::permits::{Lot, Permits};
use crate::sync::wait_queue::WaitQueue;

/// The messages and the state, which reports reach without the type of the messages.
pub(super) struct Shared<T> {
    pub(super) state: Rc<State>,
    /// Borrowed only to add or to take a message, which runs no user code.
    messages: RefCell<VecDeque<T>>,
}

pub(super) struct State {
    identity: Identity,
    /// `None` for a channel without a limit.
    capacity: Option<usize>,
    /// The free places. Without a limit they are not used, but for the close.
    room: Permits,
    senders: Cell<usize>,
    /// The receiver takes no more messages than there are.
    is_closed: Cell<bool>,
    /// The number of messages.
    len: Cell<usize>,
    /// The places of messages whose receipt panicked: they were free already.
    freed: Cell<usize>,
    receiver: OneWaiter,
    /// The senders that wait for the end of the receiver.
    closing: WaitQueue,
    last_sender: Cell<TaskKey>,
    last_receiver: Cell<TaskKey>,
}

impl<T> Shared<T> {
    pub(super) fn new(capacity: Option<usize>, site: Site) -> Rc<Self> {
        let state = State {
            identity: Identity::new(site),
            capacity,
            room: Permits::new(capacity.unwrap_or(0)),
            senders: Cell::new(1),
            is_closed: Cell::new(false),
            len: Cell::new(0),
            freed: Cell::new(0),
            receiver: OneWaiter::default(),
            closing: WaitQueue::default(),
            last_sender: Cell::new(TaskKey::NONE),
            last_receiver: Cell::new(TaskKey::NONE),
        };
        Rc::new(Self {
            state: Rc::new(state),
            messages: RefCell::default(),
        })
    }

    /// Adds a message, for which there is room.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver panics. The message is in the channel then.
    #[inline(always)]
    pub(super) fn push(&self, message: T) {
        self.messages.borrow_mut().push_back(message);
        let state = &*self.state;
        state.len.set(state.len.get() + 1);
        state.last_sender.set(current::task_key());
        state.receiver.wake();
    }

    /// Takes the next message. The first sender that waits gets its place.
    ///
    /// # Panics
    ///
    /// If the waker of a sender panics. The message stays in the channel then.
    #[inline(always)]
    pub(super) fn pop(&self) -> Option<T> {
        let message = self.messages.borrow_mut().pop_front()?;
        let state = &*self.state;
        state.len.set(state.len.get() - 1);
        state.last_receiver.set(current::task_key());
        if state.capacity.is_none() {
            return Some(message);
        }
        if state.freed.get() > 0 {
            state.freed.set(state.freed.get() - 1);
            return Some(message);
        }
        let mut unpopped = Unpopped {
            shared: self,
            message: Some(message),
        };
        state.room.release(1);
        unpopped.message.take()
    }

    /// Takes the next message, or waits for it. Returns `None` if no message will come.
    #[inline(always)]
    pub(super) fn poll_pop(&self, site: Option<Site>, cx: &Context<'_>) -> Poll<Option<T>> {
        if let Some(message) = self.pop() {
            return Poll::Ready(Some(message));
        }
        let state = &self.state;
        if !state.receiver.has(cx.waker()) {
            state.receiver.set_waker(cx.waker());
            // That was user code, which may have sent.
            if let Some(message) = self.pop() {
                return Poll::Ready(Some(message));
            }
        }
        if state.is_ended() {
            return Poll::Ready(None);
        }
        state.receiver.wait_again(site, &state.identity, state);
        Poll::Pending
    }

    /// Drops the messages, whose drops may use the channel.
    pub(super) fn clear(&self) {
        let mut drops = Steps::default();
        loop {
            let messages = self.messages.take();
            if messages.is_empty() {
                break;
            }
            self.state.len.set(0);
            drops.drop_each(messages);
        }
        let waker = self.state.receiver.clear();
        drops.run(|| drop(waker));
        drops.end();
    }
}

/// A message on its way out. A panic puts it back: the receiver has not got it.
struct Unpopped<'a, T> {
    shared: &'a Shared<T>,
    message: Option<T>,
}

impl<T> Drop for Unpopped<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let state = &*self.shared.state;
            self.shared.messages.borrow_mut().push_front(message);
            state.len.set(state.len.get() + 1);
            // Its place was released, and may have a new owner.
            state.freed.set(state.freed.get() + 1);
        }
    }
}

impl State {
    pub(super) fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        self.len.get()
    }

    pub(super) fn senders(&self) -> usize {
        self.senders.get()
    }

    /// Returns whether the receiver takes no further messages.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Returns whether no message comes behind those that are in the channel.
    #[inline]
    pub(super) fn is_ended(&self) -> bool {
        self.is_closed.get() || self.senders.get() == 0
    }

    pub(super) fn receiver(&self) -> &OneWaiter {
        &self.receiver
    }

    pub(super) fn closing(&self) -> &WaitQueue {
        &self.closing
    }

    pub(super) fn add_sender(&self) {
        self.senders.set(self.senders.get() + 1);
    }

    /// Removes a sender. The last one wakes the receiver.
    ///
    /// # Panics
    ///
    /// If the waker of the receiver panics.
    pub(super) fn remove_sender(&self) {
        let left = self.senders.get() - 1;
        self.senders.set(left);
        if left == 0 {
            self.receiver.wake();
        }
    }

    /// Refuses further messages. Senders that wait get an error.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    pub(super) fn close(&self) {
        if self.is_closed.replace(true) {
            return;
        }
        let mut wakes = Steps::default();
        wakes.run(|| self.room.close());
        wakes.run(|| self.closing.wake_all());
        wakes.end();
    }
}

impl Lot for State {
    const NOTES_TAKER: bool = false;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.room
    }

    #[inline]
    fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl Primitive for State {
    #[inline]
    fn describe(&self, found: &mut Vec<Described>) {
        let last = |verb, task| LastUse {
            verb,
            site: None,
            task,
        };
        if let Some(receiver) = self.receiver.described() {
            let senders = self.senders.get();
            let plural = if senders == 1 { "" } else { "s" };
            found.push(Described {
                state: format!("{senders} sender{plural}"),
                last: Some(last("last sent", self.last_sender.get())),
                ..self.identity.described("empty channel", vec![receiver])
            });
        }
        let senders = self.room.described(false);
        if !senders.is_empty() {
            let capacity = self.capacity.unwrap_or_default();
            found.push(Described {
                state: format!("{} of {capacity}", self.len.get()),
                last: Some(last("last received", self.last_receiver.get())),
                ..self.identity.described("full channel", senders)
            });
        }
        let closing = self.closing.described();
        if !closing.is_empty() {
            found.push(self.identity.described("the end of channel", closing));
        }
    }
}
