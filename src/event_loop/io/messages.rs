//! The messages of other threads: wakes, calls and completions of jobs, then the sends to async
//! handles.

use super::Io;
use super::asyncs::Walk;
use crate::event_loop::core::Core;
use crate::executor::message::Message;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::Origin;

/// The number of wakes and calls of other threads that one poll phase delivers. The limit keeps a
/// flood of messages from starving the timers. A turn in between is cheap: it costs less than one
/// of so many woken tasks. Completions of jobs do not count.
// Rule R278.
const CALLS_PER_POLL: usize = 128;

impl Io {
    /// Returns whether another thread has sent a message. A send to an async handle is none.
    pub(in crate::event_loop) fn has_messages(&self) -> bool {
        let inbox = &self.shared.inbox;
        inbox.is_pending() && (inbox.has_items() || !self.messages.borrow().is_empty())
    }

    /// Takes the messages that are taken from the inbox and not delivered, in their order.
    pub(in crate::event_loop) fn take_messages(&self) -> Vec<Message> {
        let mut messages = self.messages.take();
        messages.reverse();
        messages
    }

    /// Calls `f` with each task that another thread has woken. `f` runs no user code.
    pub(in crate::event_loop) fn each_woken(&self, mut f: impl FnMut(&Runnable)) {
        let mut look = |messages: &[Message]| {
            for message in messages {
                if let Message::Wake(runnable) = message {
                    f(runnable);
                }
            }
        };
        look(&self.messages.borrow());
        self.shared.inbox.look(look);
    }
}

impl Core {
    /// Delivers what other threads have sent: first the messages, then the async handles.
    /// Returns `false` if nothing was sent.
    // Rule R121.
    #[inline(always)]
    pub(super) fn run_messages(&self) -> bool {
        // Messages that were taken and not delivered keep the inbox pending.
        let is_pending = self.io.shared.inbox.unpark();
        if is_pending {
            self.run_pending_messages();
        }
        is_pending
    }

    #[inline(never)]
    fn run_pending_messages(&self) {
        let inbox = &self.io.shared.inbox;
        if self.io.messages.borrow().is_empty() {
            let mut messages = self.io.messages.borrow_mut();
            inbox.take(&mut messages);
            self.counters.count_messages(messages.len());
            messages.reverse();
        } else {
            // What is in the inbox is left to the next turn.
            inbox.signal();
        }
        // The walk is taken before the messages run, so that a handle that a message creates is not
        // visited (R123).
        let walk = self.io.asyncs.walk();
        let mut calls = 0;
        while calls < CALLS_PER_POLL {
            let Some(message) = self.io.messages.borrow_mut().pop() else {
                break;
            };
            calls += usize::from(!message.is_end_of_job());
            self.dispatch_message(message);
        }
        if !self.io.messages.borrow().is_empty() {
            self.run_ends_of_jobs();
        }
        self.run_asyncs(walk);
    }

    /// Delivers the completions of jobs among the remaining messages. The other messages wait for
    /// the next turn.
    #[cold]
    fn run_ends_of_jobs(&self) {
        let left = self.io.messages.take().into_iter();
        let (ends, calls): (Vec<_>, Vec<_>) = left.partition(Message::is_end_of_job);
        let count = ends.len();
        self.io
            .messages
            .borrow_mut()
            .extend(calls.into_iter().chain(ends));
        for _ in 0..count {
            let end = self.io.messages.borrow_mut().pop();
            if let Some(end) = end {
                self.dispatch_message(end);
            }
        }
        if !self.io.messages.borrow().is_empty() {
            // Keeps the next turn from sleeping.
            self.io.shared.inbox.signal();
        }
    }

    fn run_asyncs(&self, mut walk: Walk) {
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
            Message::JobEnded(job) if !self.modes().is_plain() => {
                Origin::new(Keeper::Work, job.site())
            }
            _ => Origin::default(),
        };
        self.dispatch(
            Phase::Poll,
            || origin,
            || match message {
                Message::Wake(runnable) => self.executor.push_task(runnable),
                Message::WakeMainFuture => self.push_main_future(),
                Message::Call(call) => call(),
                Message::JobEnded(job) => job.arrive(),
            },
        );
    }
}
