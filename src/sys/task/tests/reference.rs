//! The cell beside `async-task`, whose tasks it replaces: the same future under the same random orders must be polled,
//! woken, dropped and delivered at the same points.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::{Meta, Output, TaskRef, World};

/// What happens to a task, one after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Runs what has waited longest.
    Run,
    /// Calls one of the wakers that the future has kept.
    Wake(usize),
    DropWaker(usize),
    /// Polls the handle.
    Join,
    Abort,
    /// Lets the handle go; the task goes on.
    Detach,
}

/// Keeps a clone of its waker at every poll and returns after some of them.
struct Recorder {
    polls_left: usize,
    log: Log,
    wakers: Rc<RefCell<Vec<Waker>>>,
    /// One more, never called: `async-task` drops a task that nobody can wake or await, ours stays until its loop goes.
    spare: Rc<RefCell<Option<Waker>>>,
}

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn add(&self, what: &'static str) {
        self.0.borrow_mut().push(what);
    }
}

impl Future for Recorder {
    type Output = &'static str;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.log.add("poll");
        self.wakers.borrow_mut().push(cx.waker().clone());
        self.spare.replace(Some(cx.waker().clone()));
        if self.polls_left == 0 {
            return Poll::Ready("output");
        }
        self.polls_left -= 1;
        Poll::Pending
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.log.add("drop");
    }
}

/// A task of either kind.
trait Subject {
    fn queued(&self) -> usize;
    fn run(&mut self);
    /// `None`: there is no handle any more. `Ready(None)`: the task was aborted.
    fn join(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<&'static str>>>;
    fn abort(&mut self);
    fn detach(&mut self);
}

struct Ours {
    world: Arc<World>,
    task: TaskRef<Meta>,
    output: Option<Output<&'static str, Meta>>,
}

impl Subject for Ours {
    fn queued(&self) -> usize {
        self.world.queued()
    }

    fn run(&mut self) {
        self.world.pop().run();
    }

    fn join(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<&'static str>>> {
        let polled = self.output.as_mut()?.poll(cx);
        if polled.is_ready() {
            self.output = None;
        }
        Some(polled.map(|output| output.and_then(Result::ok)))
    }

    fn abort(&mut self) {
        self.task.abort();
    }

    fn detach(&mut self) {
        self.output = None;
    }
}

type Queue = Arc<Mutex<Vec<async_task::Runnable>>>;

struct Theirs {
    queue: Queue,
    task: Option<async_task::FallibleTask<&'static str>>,
    /// An abort takes the task; the future of the cancellation has the rest.
    aborted: Option<Pin<Box<dyn Future<Output = Option<&'static str>>>>>,
}

impl Subject for Theirs {
    fn queued(&self) -> usize {
        self.queue.lock().unwrap().len()
    }

    fn run(&mut self) {
        let runnable = self.queue.lock().unwrap().remove(0);
        runnable.run();
    }

    fn join(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<&'static str>>> {
        let polled = match (&mut self.aborted, &mut self.task) {
            (Some(aborted), _) => aborted.as_mut().poll(cx),
            (None, Some(task)) => Pin::new(task).poll(cx),
            (None, None) => return None,
        };
        if polled.is_ready() {
            (self.aborted, self.task) = (None, None);
        }
        Some(polled)
    }

    fn abort(&mut self) {
        if let Some(task) = self.task.take() {
            let mut cancelled = Box::pin(task.cancel());
            // The request goes out with the first poll.
            let polled = cancelled
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            match polled {
                Poll::Pending => self.aborted = Some(cancelled),
                Poll::Ready(output) => self.aborted = Some(Box::pin(async move { output })),
            }
        }
    }

    fn detach(&mut self) {
        if let Some(task) = self.task.take() {
            task.detach();
        }
        self.aborted = None;
    }
}

/// Counts how often who awaits the task is woken.
#[derive(Default)]
struct Awaiter(AtomicUsize);

impl Wake for Awaiter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What was seen after each step. `async-task` tells who awaits it of an abort at once, ours when the future is gone; and it
/// wakes who has let the handle go.
fn trace(
    steps: &[Step],
    polls: usize,
    make: impl FnOnce(Recorder) -> Box<dyn Subject>,
) -> Vec<String> {
    let (log, spare) = (Log::default(), Rc::default());
    let wakers = Rc::<RefCell<Vec<Waker>>>::default();
    let mut subject = make(Recorder {
        polls_left: polls,
        log: log.clone(),
        wakers: wakers.clone(),
        spare: Rc::clone(&spare),
    });
    let awaiter = Arc::<Awaiter>::default();
    let waker = Waker::from(awaiter.clone());
    let take = |index: usize| {
        let mut wakers = wakers.borrow_mut();
        let count = wakers.len();
        (count > 0).then(|| wakers.remove(index % count))
    };
    let mut seen = Vec::new();
    let mut is_detached = false;
    for step in steps {
        let mut joined = None;
        match *step {
            Step::Run if subject.queued() > 0 => subject.run(),
            Step::Run => {}
            Step::Wake(index) => take(index).into_iter().for_each(Waker::wake),
            Step::DropWaker(index) => drop(take(index)),
            Step::Join => joined = subject.join(&mut Context::from_waker(&waker)),
            Step::Abort => subject.abort(),
            Step::Detach => {
                subject.detach();
                is_detached = true;
            }
        }
        let counts = !is_detached && !matches!(step, Step::Abort);
        let woken = counts.then(|| awaiter.0.load(Ordering::Relaxed));
        let what = std::mem::take(&mut *log.0.borrow_mut());
        let queued = subject.queued();
        seen.push(format!(
            "{step:?}: {what:?} {joined:?}, {queued} queued, {woken:?} wakes"
        ));
    }
    wakers.take();
    spare.take();
    seen
}

/// Numbers that look random and are the same every time.
struct Numbers(Cell<u64>);

impl Numbers {
    fn below(&self, limit: usize) -> usize {
        let mut number = self.0.get();
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        self.0.set(number);
        (number >> 33) as usize % limit
    }

    /// Aborts come last: until the task has run once more, the two differ in who sees an output that was there already.
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<_> = (0..self.below(14))
            .map(|_| match self.below(10) {
                0..=3 => Step::Run,
                4..=6 => Step::Wake(self.below(4)),
                7 => Step::DropWaker(self.below(4)),
                _ => Step::Join,
            })
            .collect();
        match self.below(3) {
            0 => steps.extend([Step::Detach, Step::Wake(0), Step::Run, Step::Run]),
            1 => steps.extend([Step::Run, Step::Join, Step::Abort, Step::Run, Step::Join]),
            _ => steps.extend([Step::Wake(0), Step::Run, Step::Join]),
        }
        steps
    }
}

#[test]
fn the_cell_does_what_async_task_does() {
    for seed in 1..=3000_u64 {
        let numbers = Numbers(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let (steps, polls) = (numbers.steps(), numbers.below(4));
        let world = World::new();
        let ours = trace(&steps, polls, |future| {
            let (task, output) = world.spawn(future);
            Box::new(Ours {
                world: world.clone(),
                task,
                output: Some(output),
            })
        });
        let queue = Queue::default();
        let theirs = trace(&steps, polls, |future| {
            let schedule = {
                let queue = queue.clone();
                move |runnable| queue.lock().unwrap().push(runnable)
            };
            let (runnable, task) = async_task::spawn_local(future, schedule);
            runnable.schedule();
            Box::new(Theirs {
                queue: queue.clone(),
                task: Some(task.fallible()),
                aborted: None,
            })
        });
        assert_eq!(ours, theirs, "seed {seed}, {polls} polls");
        world.queue.lock().unwrap().clear();
    }
}
