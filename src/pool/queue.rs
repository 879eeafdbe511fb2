//! The pool's queue: first in, first out, with classes that may hold a limited number of threads.
//!
//! Jobs of a limited class wait in a lane of their own and take turns with the others through a *token* in the common
//! queue: whoever reaches the token takes one job of that lane and, if more wait there, puts the token at the end again
//! (R276). A token that is reached while its class holds all the threads it may goes away; a thread that ends a job of the
//! class brings it back.

use std::collections::VecDeque;
use std::time::Instant;

use async_task::Runnable;

use super::{Class, PoolBuilder};

/// One job; running it once, or finding it cancelled, is up to `async-task`.
pub(crate) struct Job {
    pub(crate) runnable: Runnable,
    pub(crate) class: Class,
    pub(crate) submitted: Instant,
}

enum Entry {
    Job(Job),
    /// The turn of a limited class.
    Token(usize),
}

#[derive(Default)]
struct Lane {
    /// How many threads the class may hold; `None`: all of them, its jobs stand in the common queue.
    limit: Option<usize>,
    waiting: VecDeque<Job>,
    running: usize,
    has_token: bool,
}

pub(crate) struct Queue {
    common: VecDeque<Entry>,
    lanes: [Lane; Class::COUNT],
}

impl Queue {
    pub(crate) fn new(builder: &PoolBuilder) -> Self {
        Self {
            common: VecDeque::new(),
            lanes: std::array::from_fn(|class| Lane {
                limit: builder.limit_of(class),
                ..Lane::default()
            }),
        }
    }

    /// `true`: there is something more for a thread to do.
    pub(crate) fn push(&mut self, job: Job) -> bool {
        let class = job.class.index();
        let lane = &mut self.lanes[class];
        if lane.limit.is_none() {
            self.common.push_back(Entry::Job(job));
            return true;
        }
        lane.waiting.push_back(job);
        self.offer_token(class)
    }

    /// The next job a thread may take, and whether that has given another thread something to do: the next one of a
    /// limited class, for which nobody was notified when it was pushed.
    pub(crate) fn pop(&mut self) -> Option<(Job, bool)> {
        loop {
            match self.common.pop_front()? {
                Entry::Job(job) => return Some((job, false)),
                Entry::Token(class) => {
                    let lane = &mut self.lanes[class];
                    lane.has_token = false;
                    if !lane.is_full() {
                        if let Some(job) = lane.waiting.pop_front() {
                            lane.running += 1;
                            return Some((job, self.offer_token(class)));
                        }
                    }
                }
            }
        }
    }

    /// A job of this class has ended.
    pub(crate) fn ended(&mut self, class: Class) {
        let lane = &mut self.lanes[class.index()];
        if lane.limit.is_some() {
            lane.running -= 1;
            self.offer_token(class.index());
        }
    }

    /// Gives a limited class a turn, if it has a job, may hold another thread and has none yet.
    fn offer_token(&mut self, class: usize) -> bool {
        let lane = &mut self.lanes[class];
        let offer = !lane.has_token && !lane.is_full() && !lane.waiting.is_empty();
        if offer {
            lane.has_token = true;
            self.common.push_back(Entry::Token(class));
        }
        offer
    }
}

impl Lane {
    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.running >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Job, PoolBuilder, Queue};
    use std::time::Instant;

    use Class::{Cpu, Dns};

    fn queue(threads: usize, jobs: &[Class]) -> Queue {
        let mut queue = Queue::new(&PoolBuilder::new().threads(threads));
        push(&mut queue, jobs);
        queue
    }

    fn push(queue: &mut Queue, jobs: &[Class]) {
        for &class in jobs {
            let (runnable, task) = async_task::spawn(async {}, |_| ());
            task.detach();
            queue.push(Job {
                runnable,
                class,
                submitted: Instant::now(),
            });
        }
    }

    /// Pops everything a thread may take and says of which class it was.
    fn pop_all(queue: &mut Queue) -> Vec<Class> {
        std::iter::from_fn(|| queue.pop())
            .map(|(job, _)| job.class)
            .collect()
    }

    #[test]
    fn r276_limited_and_other_jobs_take_turns() {
        // The token stands where the first lookup was, then behind what was queued by the time it is taken.
        let mut waiting = queue(8, &[Dns, Dns, Dns, Cpu, Cpu, Cpu]);
        let (first, is_more) = waiting.pop().unwrap();
        assert!(first.class == Dns && is_more, "another lookup has its turn");
        let (second, is_more) = waiting.pop().unwrap();
        assert!(second.class == Cpu && !is_more);
        push(&mut waiting, &[Cpu]);
        assert_eq!(pop_all(&mut waiting), [Cpu, Cpu, Dns, Cpu, Dns]);
    }

    #[test]
    fn r275_a_full_class_waits_until_one_of_its_jobs_has_ended() {
        let mut queue = queue(4, &[Dns, Dns, Dns, Dns]);
        assert_eq!(pop_all(&mut queue), [Dns, Dns]);
        push(&mut queue, &[Cpu]);
        assert_eq!(pop_all(&mut queue), [Cpu], "others are not held up");
        queue.ended(Dns);
        assert_eq!(pop_all(&mut queue), [Dns]);
        queue.ended(Dns);
        queue.ended(Dns);
        assert_eq!(pop_all(&mut queue), [Dns]);
    }
}
