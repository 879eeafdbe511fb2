//! The pool's queue: first in, first out, with classes that may hold a limited number of threads.
//!
//! Jobs of a limited class wait in a line of their own and take turns with the others through a
//! *token* in the common queue. A thread that reaches the token takes one job of that line and, if
//! more wait there, puts the token at the end again. A token that is reached while its class is at
//! its limit is removed; the thread that finishes a job of the class adds it again.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Class, Job, PoolBuilder};

/// A job in the queue. A cancelled job is taken like any other, and returns at once.
pub(super) struct Queued {
    pub(super) job: Arc<dyn Job>,
    pub(super) class: Class,
    /// The time of submission in nanoseconds.
    pub(super) submitted: u64,
}

enum Entry {
    Job(Queued),
    /// The token of a limited class.
    Token(usize),
}

#[derive(Default)]
struct Line {
    /// The most threads of the class. `None`: all of them, and its jobs stand in the common queue.
    limit: Option<usize>,
    waiting: VecDeque<Queued>,
    running: usize,
    has_token: bool,
}

pub(super) struct Queue {
    common: VecDeque<Entry>,
    lines: [Line; Class::COUNT],
}

impl Queue {
    pub(super) fn new(builder: &PoolBuilder) -> Self {
        Self {
            common: VecDeque::new(),
            lines: std::array::from_fn(|class| Line {
                limit: builder.limit_of(class),
                ..Line::default()
            }),
        }
    }

    /// Whether no job can be taken. Jobs of a class at its limit do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.common.is_empty()
    }

    pub(super) fn push(&mut self, job: Queued) {
        let class = job.class as usize;
        let line = &mut self.lines[class];
        if line.limit.is_none() {
            self.common.push_back(Entry::Job(job));
        } else {
            line.waiting.push_back(job);
            self.offer_token(class);
        }
    }

    /// Takes the next job.
    pub(super) fn pop(&mut self) -> Option<Queued> {
        loop {
            match self.common.pop_front()? {
                Entry::Job(job) => return Some(job),
                Entry::Token(class) => {
                    let line = &mut self.lines[class];
                    line.has_token = false;
                    if !line.is_full() {
                        if let Some(job) = line.waiting.pop_front() {
                            line.running += 1;
                            self.offer_token(class);
                            return Some(job);
                        }
                    }
                }
            }
        }
    }

    /// Records that a job of this class has finished.
    pub(super) fn ended(&mut self, class: Class) {
        let line = &mut self.lines[class as usize];
        if line.limit.is_some() {
            line.running -= 1;
            self.offer_token(class as usize);
        }
    }

    /// Adds the token of a class that has a job, is below its limit and has no token yet.
    fn offer_token(&mut self, class: usize) {
        let line = &mut self.lines[class];
        if !line.has_token && !line.is_full() && !line.waiting.is_empty() {
            line.has_token = true;
            self.common.push_back(Entry::Token(class));
        }
    }
}

impl Line {
    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.running >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Job, PoolBuilder, Queue, Queued};
    use std::sync::Arc;

    use Class::{Cpu, Dns};

    struct Nothing;

    impl Job for Nothing {
        fn run(self: Arc<Self>) {}
        fn arrive(self: Arc<Self>) {}
    }

    fn queue(threads: usize, jobs: &[Class]) -> Queue {
        let mut queue = Queue::new(&PoolBuilder::new().threads(threads));
        push(&mut queue, jobs);
        queue
    }

    fn push(queue: &mut Queue, jobs: &[Class]) {
        for &class in jobs {
            queue.push(Queued {
                job: Arc::new(Nothing),
                class,
                submitted: 0,
            });
        }
    }

    /// Pops everything a thread may take and says of which class it was.
    fn pop_all(queue: &mut Queue) -> Vec<Class> {
        std::iter::from_fn(|| queue.pop())
            .map(|job| job.class)
            .collect()
    }

    #[test]
    fn r276_limited_and_other_jobs_take_turns() {
        // The token stands where the first lookup was, then behind what was queued by the time it
        // is taken.
        let mut waiting = queue(8, &[Dns, Dns, Dns, Cpu, Cpu, Cpu]);
        assert_eq!(waiting.pop().unwrap().class, Dns);
        assert_eq!(waiting.pop().unwrap().class, Cpu);
        push(&mut waiting, &[Cpu]);
        assert_eq!(pop_all(&mut waiting), [Cpu, Cpu, Dns, Cpu, Dns]);
    }

    #[test]
    fn r275_a_full_class_waits_until_one_of_its_jobs_has_ended() {
        let mut queue = queue(4, &[Dns, Dns, Dns, Dns]);
        assert_eq!(pop_all(&mut queue), [Dns, Dns]);
        assert!(queue.is_empty(), "there is nothing to look for");
        push(&mut queue, &[Cpu]);
        assert_eq!(pop_all(&mut queue), [Cpu], "others are not held up");
        queue.ended(Dns);
        assert_eq!(pop_all(&mut queue), [Dns]);
        queue.ended(Dns);
        queue.ended(Dns);
        assert_eq!(pop_all(&mut queue), [Dns]);
    }
}
