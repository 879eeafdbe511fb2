//! Threads wake, clone and drop the wakers of many tasks while the loop runs them, and go on after
//! it is gone.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use phaseloop::{EventLoop, LoopHandle, RunMode};

const THREADS: usize = 3;
const TASKS: usize = 40;
const ROUNDS: usize = 6;
/// How often tasks are polled in a round, at least. However slow the machine is, this many come.
const POLLS: usize = 50 * TASKS;
/// Reached only if wakes are lost.
const HANGS: Duration = Duration::from_secs(120);

/// What the loop and the threads share.
#[derive(Default)]
struct Storm {
    /// One place a task; the task puts a waker there at every poll.
    wakers: Vec<Mutex<Vec<Waker>>>,
    polls: AtomicUsize,
    over: AtomicBool,
}

/// Has to be dropped, once, where it was made. Not `Send`, as most futures here.
struct Local {
    home: ThreadId,
    alive: Rc<Cell<isize>>,
}

impl Local {
    fn new(alive: &Rc<Cell<isize>>) -> Self {
        alive.set(alive.get() + 1);
        Self {
            home: thread::current().id(),
            alive: alive.clone(),
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if thread::current().id() != self.home {
            // A panic would be lost with its thread.
            std::process::abort();
        }
        self.alive.set(self.alive.get() - 1);
    }
}

/// Gives a waker away at every poll, and ends, with something to drop, after some of them.
struct Leaf {
    storm: Arc<Storm>,
    index: usize,
    polls_left: usize,
    local: Option<Local>,
}

impl Future for Leaf {
    type Output = Option<Local>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert_eq!(self.local.as_ref().unwrap().home, thread::current().id());
        let waker = cx.waker().clone();
        assert!(waker.will_wake(cx.waker()));
        self.storm.polls.fetch_add(1, Ordering::Relaxed);
        self.storm.wakers[self.index].lock().unwrap().push(waker);
        if self.polls_left == 0 {
            return Poll::Ready(self.local.take());
        }
        self.polls_left -= 1;
        Poll::Pending
    }
}

/// One thread of the storm. All kinds of use, by a cheap generator of numbers. A waker that is
/// taken from its place is woken, so that its task goes on.
fn blow(storm: &Storm, mut seed: u64) {
    let mut kept: Vec<Waker> = Vec::new();
    while !storm.over.load(Ordering::Relaxed) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (seed >> 33) as usize;
        let taken = {
            let mut place = storm.wakers[random % TASKS].lock().unwrap();
            match random % 7 {
                // Leaves one there, so that others use it at the same time.
                0 | 1 => place.last().cloned(),
                _ => place.pop(),
            }
        };
        let Some(waker) = taken else {
            thread::yield_now();
            continue;
        };
        match random % 5 {
            0 => waker.wake(),
            1 => waker.wake_by_ref(),
            2 => {
                let clone = waker.clone();
                waker.wake();
                drop(clone);
            }
            3 => {
                waker.wake_by_ref();
                kept.push(waker);
            }
            _ => {
                if let Some(kept) = kept.pop() {
                    kept.wake();
                }
                let clone = waker.clone();
                drop(waker);
                clone.wake();
            }
        }
        kept.truncate(64);
    }
    // The loop is gone by now: the last references go on this thread.
    for waker in kept {
        waker.wake();
    }
}

/// Spawns a task that is replaced by another one when it ends.
fn spawn_leaf(handle: &LoopHandle, storm: &Arc<Storm>, index: usize, alive: &Rc<Cell<isize>>) {
    let leaf = Leaf {
        storm: storm.clone(),
        index,
        // At least one, so that the lane comes to an end.
        polls_left: 1 + index % 5,
        local: Some(Local::new(alive)),
    };
    let (handle, storm, alive) = (handle.clone(), storm.clone(), alive.clone());
    let task = handle.spawn(leaf);
    match index % 4 {
        // Detached; the output is dropped by the loop.
        0 => drop(task),
        // Aborted while others wake it.
        1 => {
            let abort = task.abort_handle();
            drop(handle.spawn(async move { drop(task.await) }));
            abort.abort();
        }
        _ => {
            let own = handle.clone();
            drop(handle.spawn(async move {
                drop(task.await.unwrap());
                spawn_leaf(&own, &storm, index, &alive);
            }));
        }
    }
}

#[test]
fn wakes_from_everywhere_run_every_task_at_home_and_lose_none() {
    for round in 0..ROUNDS {
        let storm = Arc::new(Storm {
            wakers: (0..TASKS).map(|_| Mutex::default()).collect(),
            ..Storm::default()
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let storm = storm.clone();
                thread::spawn(move || blow(&storm, (round * THREADS + thread) as u64))
            })
            .collect();

        let alive = Rc::<Cell<isize>>::default();
        let mut event_loop = EventLoop::new().unwrap();
        let handle = event_loop.handle();
        for index in 0..TASKS {
            spawn_leaf(&handle, &storm, index, &alive);
        }
        let start = Instant::now();
        while storm.polls.load(Ordering::Relaxed) < POLLS {
            assert!(
                start.elapsed() < HANGS,
                "tasks wait although they were woken"
            );
            event_loop.run(RunMode::NoWait).unwrap();
        }
        // A wake that was lost would leave this one waiting for ever.
        let flag = Arc::new(AtomicBool::new(false));
        let setter = {
            let (storm, flag) = (storm.clone(), flag.clone());
            thread::spawn(move || {
                flag.store(true, Ordering::Release);
                while let Some(waker) = storm.wakers[0].lock().unwrap().pop() {
                    waker.wake();
                }
            })
        };
        event_loop.block_on(poll_fn(|cx| {
            if flag.load(Ordering::Acquire) {
                return Poll::Ready(());
            }
            storm.wakers[0].lock().unwrap().push(cx.waker().clone());
            if flag.load(Ordering::Acquire) {
                return Poll::Ready(());
            }
            Poll::Pending
        }));

        // The loop goes under full wind.
        drop(event_loop);
        assert_eq!(alive.get(), 0, "futures and outputs left");
        thread::sleep(Duration::from_millis(5));
        storm.over.store(true, Ordering::Relaxed);
        setter.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        for place in &storm.wakers {
            place
                .lock()
                .unwrap()
                .drain(..)
                .for_each(|waker| waker.wake_by_ref());
        }
    }
}
