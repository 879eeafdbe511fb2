//! The messages of other threads: wakes, calls and completions of jobs, then the sends to async
//! handles.
// Marks: not inlined, so that one copy of the dispatch serves all messages.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::Io;
use crate::event_loop::core::Core;
use crate::executor::message::Message;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Mode, Origin};

/// The number of wakes and calls of other threads that one poll phase delivers. The limit keeps a
/// flood of messages from starving the timers. A turn in between is cheap: it costs less than one
/// of so many woken tasks. Completions of jobs do not count.
// Rule R278.
const CALLS_PER_POLL: usize = 128;

/// The messages that are taken from the inbox and not delivered.
// Rule C12: each message moves at most once between the two.
#[derive(Default)]
pub(super) struct Taken {
    /// The last batch, its next message last.
    batch: RefCell<Vec<Message>>,
    /// The wakes and calls of earlier batches that were over the limit.
    late: RefCell<VecDeque<Message>>,
}

impl Taken {
    pub(super) fn is_empty(&self) -> bool {
        self.batch.borrow().is_empty() && self.late.borrow().is_empty()
    }

    /// Returns the next message that this poll phase delivers, after so many wakes and calls.
    fn next(&self, calls: usize) -> Option<Message> {
        // Beyond the limit only jobs arrive: they are as many as the loop has started, and other
        // threads cannot make them more.
        if calls < CALLS_PER_POLL {
            let late = self.late.borrow_mut().pop_front();
            return late.or_else(|| self.batch.borrow_mut().pop());
        }
        let mut batch = self.batch.borrow_mut();
        loop {
            let message = batch.pop()?;
            if matches!(message, Message::JobEnded(_)) {
                return Some(message);
            }
            self.late.borrow_mut().push_back(message);
        }
    }
}

impl Io {
    /// Returns whether another thread has sent a message. A send to an async handle is none.
    pub(in crate::event_loop) fn has_messages(&self) -> bool {
        let inbox = &self.shared.inbox;
        inbox.is_pending() && (inbox.has_items() || !self.taken.is_empty())
    }

    /// Takes the messages that are taken from the inbox and not delivered, in their order.
    pub(in crate::event_loop) fn take_messages(&self) -> Vec<Message> {
        let mut messages = Vec::from(self.taken.late.take());
        messages.extend(self.taken.batch.take().into_iter().rev());
        messages
    }

    /// Calls `f` with each task that another thread has woken. `f` runs no user code.
    pub(crate) fn each_woken(&self, mut f: impl FnMut(&Runnable)) {
        let mut look = |message: &Message| {
            if let Message::Wake(runnable) = message {
                f(runnable);
            }
        };
        self.taken.late.borrow().iter().for_each(&mut look);
        self.taken.batch.borrow().iter().for_each(&mut look);
        self.shared
            .inbox
            .look(|messages| messages.iter().for_each(look));
    }
}

impl Core {
    /// Delivers what other threads have sent: first the messages, then the async handles.
    // Rule R121.
    #[inline(never)]
    pub(super) fn run_messages(&self) {
        let (inbox, taken) = (&self.io.shared.inbox, &self.io.taken);
        {
            let mut batch = taken.batch.borrow_mut();
            if batch.is_empty() {
                inbox.take(&mut batch);
                self.counters.count_messages(batch.len());
                batch.reverse();
            } else {
                // A panic has left a part of the batch. The inbox is left to the next turn.
                inbox.signal();
            }
        }
        // The walk is taken before the messages run, so that a handle that a message creates is not
        // visited (R123).
        let mut walk = self.io.asyncs.walk();
        let mut calls = 0;
        while let Some(message) = taken.next(calls) {
            calls += usize::from(!matches!(message, Message::JobEnded(_)));
            self.dispatch_message(message);
        }
        if !taken.late.borrow().is_empty() {
            // Keeps the next turn from sleeping.
            inbox.signal();
        }
        while let Some(handle) = self.io.asyncs.next(&mut walk) {
            let mut again = true;
            while again {
                let origin = || handle.header.origin();
                self.dispatch(Phase::Poll, origin, || handle.callback.call());
                again = handle.again.take();
            }
        }
    }

    #[inline(never)]
    fn dispatch_message(&self, message: Message) {
        let origin = match &message {
            // Only a watched loop asks for the line, which is a virtual call.
            Message::JobEnded(job) if self.executor.probe.has(Mode::DISPATCH) => {
                Some(Origin::new(Keeper::Work, job.site()))
            }
            _ => None,
        };
        self.dispatch(
            Phase::Poll,
            || origin.unwrap_or_default(),
            || match message {
                Message::Wake(runnable) => self.executor.lanes.push_task(runnable),
                Message::Call(call) => call(),
                Message::JobEnded(job) => job.arrive(),
            },
        );
    }
}
