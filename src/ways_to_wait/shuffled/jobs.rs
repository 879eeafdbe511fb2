//! The jobs of the pool on a shuffled loop: they run on its thread, as if on another one.

use std::sync::Arc;

use super::{Held, Shuffled, take_over};
use crate::choices::{Kind, Who};
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::message::Message;
use crate::pool::Job;
use crate::raw::unwind::ignore_panic;

impl Shuffled {
    /// Takes what jobs have sent, and what a seed holds back: also wakes, without which the tasks
    /// could not be dropped.
    pub(super) fn take_ends(&self) -> Vec<Message> {
        let ends = self.ends.take();
        ends.into_iter().flat_map(|held| held.what).collect()
    }

    /// Runs the jobs of the pool that are due, each as on another thread, and holds what they send.
    pub(super) fn run_jobs(&self, core: &Core) {
        loop {
            self.fill_window(core);
            let moment = self.moment(core);
            let window = self.window.borrow();
            let is_over = |held: &&Held<_>| held.until.is_over(moment);
            let among: Vec<Who> = window.iter().filter(is_over).map(|held| held.who).collect();
            drop(window);
            if among.is_empty() {
                return;
            }
            let who = among[self.ask_next(Kind::Job, &among)];
            let mut window = self.window.borrow_mut();
            let place = window.iter().position(|held| held.who == who);
            let (class, job) = window.remove(place.expect("it is among them")).what;
            drop(window);
            let sent = run_job_outside(core, job);
            self.pool.ended(class);
            let until = self.ask_delay(Kind::JobEnd, Some(who), &"", self.moment(core));
            let held = Held {
                what: sent,
                who,
                until,
            };
            self.ends.borrow_mut().push(held);
        }
    }

    /// Takes jobs from the queue, as many as the pool has threads.
    pub(super) fn fill_window(&self, core: &Core) {
        while self.window.borrow().len() < self.pool.size() {
            let Some((class, job)) = self.pool.take() else {
                return;
            };
            let who = self.next_job_number();
            let until = self.ask_delay(Kind::JobRun, Some(who), &"", self.moment(core));
            let held = Held {
                what: (class, job),
                who,
                until,
            };
            self.window.borrow_mut().push(held);
        }
    }
}

/// Runs a job while this loop is not the current one, and returns the messages that it sends.
fn run_job_outside(core: &Core, job: Arc<dyn Job>) -> Vec<Message> {
    let inbox = &core.executor.shared.inbox;
    let was_pending = inbox.is_pending();
    let mut earlier = Vec::new();
    inbox.take(&mut earlier);
    // Jobs catch their own panics; a panic that escapes comes from a drop.
    current::apart(|| ignore_panic(|| job.run()));
    let mut sent = Vec::new();
    inbox.take(&mut sent);
    if !was_pending && !core.has_sent_asyncs() {
        // The messages are held, so nothing is pending.
        inbox.unpark();
    }
    send_again(core, earlier);
    sent
}

impl Shuffled {
    /// Sends the messages of the jobs whose ends are held no longer.
    pub(super) fn deliver_ends(&self, core: &Core) {
        let over = take_over(&self.ends, self.moment(core));
        for held in self.order(Kind::Arrival, over) {
            send_again(core, held.what);
        }
    }
}

pub(super) fn send_again(core: &Core, messages: Vec<Message>) {
    for message in messages {
        // The loop is running, so its inbox is open.
        let sent = core.executor.shared.inbox.push(message);
        debug_assert!(sent.is_ok(), "the inbox of a running loop is open");
    }
}
