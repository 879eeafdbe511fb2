//! The jobs of the pool on a shuffled loop: they run on its thread, as if on another one.

use std::sync::Arc;

use super::{Held, Shuffled, take_over};
use crate::choices::{Kind, Who};
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::message::Message;
use crate::pool::Job;
use crate::raw::unwind::quietly;

impl Shuffled {
    /// Takes what jobs have sent, and what a seed holds back: also wakes, without which the tasks
    /// could not be dropped.
    pub(super) fn take_ends(&self) -> Vec<Message> {
        let ends = self.ends.take();
        ends.into_iter().flat_map(|held| held.what).collect()
    }
}

impl Core {
    /// Runs the jobs of the pool that are due, each as on another thread, and holds what they send.
    pub(super) fn run_jobs_here(&self, shuffled: &Shuffled) {
        loop {
            self.fill_window(shuffled);
            let moment = self.moment(shuffled);
            let window = shuffled.window.borrow();
            let is_over = |held: &&Held<_>| held.until.is_over(moment);
            let among: Vec<Who> = window.iter().filter(is_over).map(|held| held.who).collect();
            drop(window);
            if among.is_empty() {
                return;
            }
            let who = among[shuffled.ask_next(Kind::Job, &among)];
            let mut window = shuffled.window.borrow_mut();
            let place = window.iter().position(|held| held.who == who);
            let (class, job) = window.remove(place.expect("it is among them")).what;
            drop(window);
            let sent = self.run_job_apart(job);
            shuffled.pool.ended(class);
            let until = shuffled.ask_delay(Kind::JobEnd, Some(who), &"", self.moment(shuffled));
            let held = Held {
                what: sent,
                who,
                until,
            };
            shuffled.ends.borrow_mut().push(held);
        }
    }

    /// Takes jobs from the queue, as many as the pool has threads.
    fn fill_window(&self, shuffled: &Shuffled) {
        while shuffled.window.borrow().len() < shuffled.pool.size() {
            let Some((class, job)) = shuffled.pool.take() else {
                return;
            };
            let who = shuffled.next_job_number();
            let until = shuffled.ask_delay(Kind::JobRun, Some(who), &"", self.moment(shuffled));
            let held = Held {
                what: (class, job),
                who,
                until,
            };
            shuffled.window.borrow_mut().push(held);
        }
    }

    /// Runs a job while this loop is not the current one, and returns the messages that it sends.
    fn run_job_apart(&self, job: Arc<dyn Job>) -> Vec<Message> {
        let inbox = &self.shared().inbox;
        let was_pending = inbox.is_pending();
        let mut earlier = Vec::new();
        inbox.take(&mut earlier);
        // Jobs catch their own panics; a panic that escapes comes from a drop.
        current::apart(|| quietly(|| job.run()));
        let mut sent = Vec::new();
        inbox.take(&mut sent);
        if !was_pending && !self.has_sent_asyncs() {
            // The messages are held, so nothing is pending.
            inbox.unpark();
        }
        self.send_again(earlier);
        sent
    }

    /// Sends the messages of the jobs whose ends are held no longer.
    pub(super) fn deliver_ends(&self, shuffled: &Shuffled) {
        let over = take_over(&shuffled.ends, self.moment(shuffled));
        for held in shuffled.order(Kind::Arrival, over) {
            self.send_again(held.what);
        }
    }

    pub(super) fn send_again(&self, messages: Vec<Message>) {
        for message in messages {
            // The loop is running, so its inbox is open.
            let sent = self.shared().inbox.push(message);
            debug_assert!(sent.is_ok(), "the inbox of a running loop is open");
        }
    }
}
