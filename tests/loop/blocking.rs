//! The thread pool, R270–R284: jobs run and end in order, their ends come in the poll phase, an
//! abort takes out what no thread has begun, and slow jobs leave room for others.
//!
//! Most tests have a pool of their own, whose threads are held by jobs that wait at a gate. A job
//! that has started shows that the one before it on that thread has ended.
//!
//! Ours differs in R272 (the threads have our name and the default stack size of the OS), in R281
//! (an abort takes effect in the microtask lane) and in R284 (the process does not wait for jobs
//! when it exits). R271, R275 and R276 are also tested beside the pool's code.

use crate::util::child::in_child;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, ZERO, finish, ms, turn};
use std::cell::Cell;
use std::collections::HashSet;
use std::future::pending;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use phaseloop::phase::{Check, Prepare};
use phaseloop::pool::{Class, Pool, PoolBuilder};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    Builder, EventLoop, JoinHandle, Keeper, LoopHandle, spawn, spawn_blocking, spawn_blocking_as,
};

/// Nothing here takes that long, unless it hangs.
const LONG: Duration = Duration::from_secs(60);

/// A loop with a pool of its own, on a paused clock.
fn with_pool(builder: PoolBuilder) -> (EventLoop, LoopHandle, Trace, Pool) {
    let pool = builder.build();
    let event_loop = Builder::new().start_paused(true).pool(pool.clone());
    let event_loop = event_loop.build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace, pool)
}

fn with_threads(threads: usize) -> (EventLoop, LoopHandle, Trace, Pool) {
    with_pool(PoolBuilder::new().threads(threads))
}

/// Holds a thread of the pool; lets it go when opened or dropped.
struct Gate {
    started: Receiver<()>,
    open: Option<Sender<()>>,
}

impl Gate {
    /// The gate, and what a job does at it.
    fn new() -> (Self, impl FnOnce() + Send + 'static) {
        let (starts, started) = channel();
        let (open, opened) = channel::<()>();
        let wait = move || {
            // Errors: the gate was dropped.
            let _ = starts.send(());
            let _ = opened.recv();
        };
        let gate = Self {
            started,
            open: Some(open),
        };
        (gate, wait)
    }

    /// Waits until a thread is held.
    #[track_caller]
    fn wait(self) -> Self {
        self.started.recv_timeout(LONG).expect("the job starts");
        self
    }

    fn open(&mut self) {
        self.open = None;
    }
}

/// Holds one thread of the running loop's pool.
#[track_caller]
fn hold() -> (Gate, JoinHandle<()>) {
    let (gate, wait) = Gate::new();
    let job = spawn_blocking(wait);
    (gate.wait(), job)
}

/// Returns when everything that was queued before has been taken, and has ended if there is one
/// thread only.
#[track_caller]
fn flush() {
    let (gate, wait) = Gate::new();
    drop(spawn_blocking(wait));
    gate.wait();
}

/// Sends its label when it is dropped.
struct OnDrop(Sender<&'static str>, &'static str);

impl OnDrop {
    /// What a job must not come to that holds it.
    fn run(self) {
        self.0.send("ran").unwrap();
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

/// Logs the label when the job has ended.
fn log_end<T: 'static>(job: JoinHandle<T>, trace: &Trace, label: &'static str) {
    let log = trace.clone();
    drop(spawn(async move {
        match job.await {
            Ok(_) => log.log(label),
            Err(error) => log.log(format_args!("{label}:{error}")),
        }
    }));
}

// Running.

#[test]
fn libuv_threadpool_queue_work_simple() {
    let (event_loop, ..) = with_threads(2);
    let here = thread::current().id();
    let there: ThreadId = event_loop.block_on(async {
        let job = spawn_blocking(|| thread::current().id());
        job.await.unwrap()
    });
    assert_ne!(here, there);
}

/// In a process of its own: the pool of the process starts with the first job, all of it.
#[test]
fn r270_r272_the_pool_of_the_process_starts_with_the_first_job() {
    let test = "r270_r272_the_pool_of_the_process_starts_with_the_first_job";
    let child = in_child(&["env", "-u", "UV_THREADPOOL_SIZE"], test, || {
        let event_loop = EventLoop::new().unwrap();
        assert_eq!(Pool::global().stats().threads, 0);
        let name = event_loop.block_on(async {
            let job = spawn_blocking(|| thread::current().name().map(str::to_owned));
            assert_eq!(Pool::global().stats().threads, 4);
            job.await.unwrap()
        });
        assert_eq!(name.as_deref(), Some("phaseloop-worker"));
        let other = EventLoop::new().unwrap();
        other.block_on(async { spawn_blocking(|| ()).await.unwrap() });
        assert_eq!(Pool::global().stats().threads, 4, "one pool for all loops");
    });
    succeeded(child);
}

#[test]
fn r271_the_environment_sets_the_size() {
    let test = "r271_the_environment_sets_the_size";
    let child = in_child(&["env", "UV_THREADPOOL_SIZE=2"], test, || {
        let mut event_loop = EventLoop::new().unwrap();
        event_loop.enter(|| {
            let gates = [hold(), hold()];
            let (third, wait) = Gate::new();
            drop(spawn_blocking(wait));
            let stats = Pool::global().stats();
            assert_eq!((stats.threads, stats.started, stats.queued), (2, 2, 1));
            drop(gates);
            third.wait();
        });
        finish(&mut event_loop);
    });
    succeeded(child);
}

#[track_caller]
fn succeeded(child: Option<std::process::Child>) {
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

#[test]
fn r273_jobs_are_taken_in_the_order_of_submission() {
    let (mut event_loop, ..) = with_threads(1);
    let order: Arc<Mutex<Vec<u32>>> = Arc::default();
    event_loop.enter(|| {
        let (gate, _) = hold();
        for number in 0..100 {
            let order = order.clone();
            drop(spawn_blocking(move || order.lock().unwrap().push(number)));
        }
        drop(gate);
    });
    finish(&mut event_loop);
    assert!(order.lock().unwrap().iter().copied().eq(0..100));
}

#[test]
fn the_figures_of_a_pool() {
    let (event_loop, _, _, pool) = with_threads(2);
    assert_eq!(pool.stats(), phaseloop::pool::PoolStats::default());
    event_loop.enter(|| {
        let gates = [hold(), hold()];
        let (third, wait) = Gate::new();
        drop(spawn_blocking(wait));
        let stats = pool.stats();
        assert_eq!((stats.threads, stats.idle), (2, 0));
        assert_eq!((stats.started, stats.queued), (2, 1));
        drop(gates);
        let _third = third.wait();
        let stats = pool.stats();
        assert_eq!((stats.started, stats.queued), (3, 0));
        assert!(stats.longest_wait > ZERO && stats.total_wait >= stats.longest_wait);
    });
}

#[test]
fn the_threads_of_a_private_pool_end_with_it() {
    thread_local! {
        static GUARD: Cell<Option<OnDrop>> = const { Cell::new(None) };
    }
    let (event_loop, _, _, pool) = with_threads(1);
    let (sender, ended) = channel();
    event_loop.block_on(async {
        let job = spawn_blocking(|| GUARD.set(Some(OnDrop(sender, "thread"))));
        job.await.unwrap();
    });
    drop(event_loop);
    assert!(ended.try_recv().is_err(), "the pool is still there");
    drop(pool);
    assert_eq!(ended.recv_timeout(LONG), Ok("thread"));
}

/// No address space has room for such a stack.
#[cfg(unix)]
#[test]
fn without_a_single_thread_the_error_says_so() {
    // Half of an address space of 32 bits may be free.
    let too_large = usize::MAX / 4 * 3;
    let (event_loop, handle, _, pool) = with_pool(PoolBuilder::new().stack_size(too_large));
    let (sender, dropped) = channel();
    event_loop.block_on(async {
        let guard = OnDrop(sender, "unrun");
        let job = spawn_blocking(move || guard.run());
        assert_eq!(dropped.try_recv(), Ok("unrun"));
        let error = job.await.unwrap_err().to_string();
        assert!(
            error.contains("no thread could be started for the blocking pool"),
            "{error}"
        );
    });
    assert_eq!((pool.stats().threads, pool.stats().queued), (0, 0));
    assert_eq!(handle.keepers(), []);
}

#[test]
fn jobs_that_wait_keep_a_private_pool_going() {
    let (event_loop, _, _, pool) = with_threads(1);
    let (sender, ran) = channel();
    let (gate, _) = event_loop.enter(hold);
    // Not the loop's: those are cancelled with it.
    let mut other = Builder::new().pool(pool).build().unwrap();
    other.enter(|| drop(spawn_blocking(move || sender.send(()).unwrap())));
    drop((event_loop, gate));
    finish(&mut other);
    assert_eq!(ran.try_recv(), Ok(()));
}

// Slow jobs and others.

/// Two jobs of a class with a limit of two, queued before any thread is awake: both have to run at
/// once.
#[test]
fn r275_as_many_slow_jobs_as_may_run_at_once() {
    let (event_loop, ..) = with_threads(4);
    event_loop.block_on(async {
        for _ in 0..100 {
            let ((to_a, from_b), (to_b, from_a)) = (channel(), channel());
            let a = spawn_blocking_as(Class::Dns, move || {
                to_b.send(()).unwrap();
                from_b.recv_timeout(LONG)
            });
            let b = spawn_blocking_as(Class::Dns, move || {
                to_a.send(()).unwrap();
                from_a.recv_timeout(LONG)
            });
            assert_eq!((a.await.unwrap(), b.await.unwrap()), (Ok(()), Ok(())));
        }
    });
}

/// Counts those inside, and the most there ever were.
#[derive(Default)]
struct Count {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Count {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Spawns jobs that are counted while a gate holds them.
fn counted(class: Class, jobs: usize, count: &Arc<Count>) -> Vec<Gate> {
    let jobs = (0..jobs).map(|_| {
        let ((gate, wait), count) = (Gate::new(), count.clone());
        drop(spawn_blocking_as(class, move || {
            count.enter();
            wait();
            count.leave();
        }));
        gate
    });
    jobs.collect()
}

#[test]
fn r275_slow_jobs_hold_at_most_half_of_the_threads() {
    for (threads, half) in [(2, 1), (3, 2), (4, 2), (5, 3)] {
        let (mut event_loop, _, _, pool) = with_threads(threads);
        let (slow, others) = (Arc::<Count>::default(), Arc::<Count>::default());
        event_loop.enter(|| {
            let mut gates = counted(Class::Dns, threads, &slow).into_iter();
            let held: Vec<_> = gates.by_ref().take(half).map(Gate::wait).collect();
            // The rest of the threads is free for others.
            let free = threads - half;
            let free: Vec<_> = counted(Class::Cpu, free, &others)
                .into_iter()
                .map(Gate::wait)
                .collect();
            assert_eq!(slow.most.load(Ordering::SeqCst), half, "{threads}");
            // Now they would have room, and must not take it.
            drop(free);
            counted(Class::Cpu, threads - half, &others)
                .into_iter()
                .for_each(|gate| drop(gate.wait()));
            assert_eq!(pool.stats().queued, threads - half);
            drop((held, gates));
        });
        finish(&mut event_loop);
        assert_eq!(slow.most.load(Ordering::SeqCst), half, "{threads}");
    }
}

#[test]
fn r275_others_may_use_all_threads() {
    let (mut event_loop, ..) = with_threads(4);
    let count = Arc::default();
    event_loop.enter(|| {
        let gates = counted(Class::Fs, 4, &count).into_iter().map(Gate::wait);
        gates.collect::<Vec<_>>()
    });
    finish(&mut event_loop);
    assert_eq!(count.most.load(Ordering::SeqCst), 4);
}

/// Threads that sleep are woken one by one, each by the one before, and before that begins with its
/// job.
#[test]
fn a_burst_of_jobs_wakes_all_threads() {
    let (mut event_loop, _, _, pool) = with_threads(4);
    for _ in 0..50 {
        let count = Arc::<Count>::default();
        event_loop.enter(|| {
            let gates = counted(Class::Cpu, 4, &count);
            drop(gates.into_iter().map(Gate::wait).collect::<Vec<_>>());
        });
        finish(&mut event_loop);
        assert_eq!(count.most.load(Ordering::SeqCst), 4);
        while pool.stats().idle < 4 {
            thread::yield_now();
        }
    }
}

#[test]
fn r276_slow_jobs_and_others_take_turns() {
    let (mut event_loop, ..) = with_threads(2);
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    event_loop.enter(|| {
        let gates = [hold(), hold()];
        use Class::{Cpu, Dns};
        for (class, label) in [
            (Dns, "d1"),
            (Dns, "d2"),
            (Dns, "d3"),
            (Cpu, "c1"),
            (Cpu, "c2"),
        ] {
            let order = order.clone();
            drop(spawn_blocking_as(class, move || {
                order.lock().unwrap().push(label);
            }));
        }
        // One thread only: the order of taking is that of running.
        let [(one, _), (mut other, _)] = gates;
        drop(one);
        let (last, wait) = Gate::new();
        drop(spawn_blocking_as(Dns, wait));
        drop(last.wait());
        other.open();
    });
    finish(&mut event_loop);
    assert_eq!(*order.lock().unwrap(), ["d1", "c1", "c2", "d2", "d3"]);
}

#[test]
fn a_class_can_be_limited() {
    let builder = PoolBuilder::new().threads(3).limit(Class::Fs, 1);
    let (mut event_loop, ..) = with_pool(builder);
    let (files, others) = (Arc::<Count>::default(), Arc::<Count>::default());
    event_loop.enter(|| {
        let waiting = counted(Class::Fs, 3, &files);
        // While one of them holds its thread, the others are free.
        let gates = counted(Class::Cpu, 2, &others).into_iter().map(Gate::wait);
        drop(gates.collect::<Vec<_>>());
        drop(waiting);
    });
    finish(&mut event_loop);
    assert_eq!(files.most.load(Ordering::SeqCst), 1);
    assert_eq!(others.most.load(Ordering::SeqCst), 2);
}

/// One thread is half of one, rounded up: a lookup waits for the job before it, and no longer.
#[cfg(feature = "net")]
#[test]
fn with_one_thread_a_lookup_waits_for_the_job_before_it() {
    let (mut event_loop, _, trace, pool) = with_threads(1);
    let mut gate = event_loop.enter(|| {
        let (gate, job) = hold();
        log_end(job, &trace, "job");
        gate
    });
    let log = trace.clone();
    drop(event_loop.handle().spawn(async move {
        let found = phaseloop::net::lookup_host("localhost:80").await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()));
        log.log("lookup");
    }));
    turn(&mut event_loop);
    assert_eq!((trace.take().as_str(), pool.stats().queued), ("", 1));
    gate.open();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "job lookup");
}

// Ends.

#[test]
fn r277_an_end_comes_in_the_poll_phase_even_if_it_was_there_before() {
    let (mut event_loop, handle, trace, _) = with_threads(1);
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    event_loop.enter(|| {
        log_end(spawn_blocking(|| ()), &trace, "end");
        flush();
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare end check");
}

/// A begins, then B begins and ends on the other thread, then A ends. The loop has not polled
/// meanwhile.
#[test]
fn r277_ends_come_in_their_own_order() {
    for awaited in [false, true] {
        let (mut event_loop, _, trace, _) = with_threads(2);
        let mut gate = event_loop.enter(|| {
            let (gate, a) = hold();
            log_end(a, &trace, "a");
            gate
        });
        if awaited {
            turn(&mut event_loop);
        }
        event_loop.enter(|| {
            log_end(spawn_blocking(|| ()), &trace, "b");
            // B's thread is held by the next one now, so the one after comes to A's.
            let held = hold();
            gate.open();
            flush();
            drop(held);
        });
        finish(&mut event_loop);
        assert_eq!(trace.take(), "b a", "awaited before: {awaited}");
    }
}

#[test]
fn r278_one_poll_phase_delivers_what_has_ended_and_no_more() {
    let (mut event_loop, handle, trace, _) = with_threads(1);
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    event_loop.enter(|| {
        let (a, log) = (spawn_blocking(|| ()), trace.clone());
        drop(spawn(async move {
            a.await.unwrap();
            log.log("a");
            // Ends while the ends are being delivered.
            log_end(spawn_blocking(|| ()), &log, "late");
            flush();
        }));
        log_end(spawn_blocking(|| ()), &trace, "b");
        log_end(spawn_blocking(|| ()), &trace, "c");
        flush();
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "a b c check");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "late check");
}

#[test]
fn lanes_are_drained_after_each_end() {
    let (mut event_loop, _, trace, _) = with_threads(1);
    event_loop.enter(|| {
        for (end, tick) in [("a", "tick-a"), ("b", "tick-b")] {
            let (job, log) = (spawn_blocking(|| ()), trace.clone());
            drop(spawn(async move {
                job.await.unwrap();
                log.log(end);
                phaseloop::next_tick(log.call(tick));
            }));
        }
        flush();
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "a tick-a b tick-b");
}

#[test]
fn r279_a_job_keeps_the_loop_alive_though_nobody_awaits_it() {
    let (mut event_loop, handle, ..) = with_threads(1);
    let (sender, ended) = channel();
    let mut gate = event_loop.enter(|| {
        let (gate, wait) = Gate::new();
        drop(spawn_blocking(move || {
            wait();
            sender.send(()).unwrap();
        }));
        gate.wait()
    });
    assert!(turn(&mut event_loop));
    assert_eq!(handle.keepers(), [(Keeper::Work, 1)]);
    gate.open();
    finish(&mut event_loop);
    assert_eq!(ended.try_recv(), Ok(()));
    assert_eq!(handle.keepers(), []);
}

#[test]
fn a_panic_is_delivered() {
    let (event_loop, _, _, pool) = with_threads(1);
    let error = event_loop.block_on(async {
        let job = spawn_blocking(|| panic!("number {}", 7));
        let result: Result<(), _> = job.await;
        result.unwrap_err()
    });
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: number 7");
    let next = event_loop.block_on(async { spawn_blocking(|| 8).await.unwrap() });
    assert_eq!((next, pool.stats().threads), (8, 1), "the thread goes on");
}

#[test]
fn r283_an_end_may_submit_more() {
    let (event_loop, ..) = with_threads(2);
    let sum = event_loop.block_on(async {
        let mut sum = 0;
        for _ in 0..100 {
            sum = spawn_blocking(move || sum + 1).await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 100);
}

#[test]
fn r283_outside_a_loop_the_panic_says_what_to_call() {
    let message = panic_of(|| drop(spawn_blocking(|| ())));
    assert!(message.contains("phaseloop::block_on"), "{message}");
}

// Cancelling.

#[test]
fn r280_libuv_threadpool_cancel_work() {
    let (mut event_loop, _, trace, _) = with_threads(1);
    let (sender, dropped) = channel();
    let gate = event_loop.enter(|| {
        let (gate, held) = hold();
        log_end(held, &trace, "held");
        let guard = OnDrop(sender, "unrun");
        let log = trace.clone();
        drop(spawn(async move {
            let job = spawn_blocking(move || guard.run());
            phaseloop::task::yield_microtask().await;
            job.abort();
            log.log("aborted");
            let error = job.await.unwrap_err();
            assert!(error.is_cancelled());
            log.log("cancelled");
        }));
        gate
    });
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "aborted cancelled",
        "although no thread is free"
    );
    assert_eq!(dropped.try_recv(), Ok("unrun"));
    drop(gate);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "held");
}

#[test]
fn r281_r282_aborts_end_in_their_order_once_and_not_inside_the_call() {
    let (mut event_loop, _, trace, _) = with_threads(1);
    let _gate = event_loop.enter(|| {
        let (gate, held) = hold();
        let [a, b] = [(); 2].map(|()| spawn_blocking(|| ()));
        let aborts = [&b, &a, &b, &held].map(|job| job.abort_handle());
        for (job, label) in [(held, "held"), (a, "a"), (b, "b")] {
            log_end(job, &trace, label);
        }
        let log = trace.clone();
        drop(spawn(async move {
            aborts.iter().for_each(|abort| abort.abort());
            log.log("aborted");
        }));
        gate
    });
    finish(&mut event_loop);
    let error = "the task was aborted before it returned";
    let expected = ["b", "a", "held"].map(|label| format!("{label}:{error}"));
    assert_eq!(trace.take(), format!("aborted {}", expected.join(" ")));
}

#[test]
fn r280_libuv_threadpool_cancel_when_busy() {
    let (mut event_loop, _, trace, _) = with_threads(1);
    let (sender, messages) = channel();
    let (gate, wait) = Gate::new();
    let job = event_loop.enter(|| {
        spawn_blocking(move || {
            wait();
            sender.send("ran").unwrap();
            OnDrop(sender, "output dropped")
        })
    });
    let gate = gate.wait();
    job.abort();
    event_loop.enter(|| log_end(job, &trace, "job"));
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "job:the task was aborted before it returned",
        "its future was dropped"
    );
    assert!(messages.try_recv().is_err());
    drop(gate);
    let messages = [(); 2].map(|()| messages.recv_timeout(LONG).unwrap());
    assert_eq!(messages, ["ran", "output dropped"]);
}

#[cfg(feature = "net")]
#[test]
fn r280_libuv_threadpool_cancel_getaddrinfo_and_getnameinfo() {
    use phaseloop::net::{lookup_addr, lookup_host};
    let (mut event_loop, handle, _, pool) = with_threads(1);
    let (gate, held) = event_loop.enter(hold);
    let there = handle.spawn(async { drop(lookup_host("localhost:80").await) });
    let back = handle.spawn(async { drop(lookup_addr(([127, 0, 0, 1], 80).into()).await) });
    turn(&mut event_loop);
    assert_eq!(pool.stats().queued, 2);
    held.abort();
    there.abort();
    back.abort();
    finish(&mut event_loop);
    let ends = event_loop.block_on(async { [there.await, back.await] });
    assert!(ends.iter().all(|end| end.as_ref().is_err()));
    drop(gate);
}

#[test]
fn ten_thousand_queued_and_all_aborted() {
    let (mut event_loop, handle, _, pool) = with_threads(1);
    let (gate, held) = event_loop.enter(hold);
    let (sender, dropped) = channel();
    let ran = Arc::new(AtomicUsize::new(0));
    let jobs: Vec<_> = event_loop.enter(|| {
        let job = |_| {
            let (guard, ran) = (OnDrop(sender.clone(), "dropped"), ran.clone());
            spawn_blocking(move || {
                ran.fetch_add(1, Ordering::SeqCst);
                drop(guard);
            })
        };
        (0..10_000).map(job).collect()
    });
    drop(sender);
    assert_eq!(handle.keepers(), [(Keeper::Work, 10_001)]);
    jobs.iter().chain([&held]).for_each(JoinHandle::abort);
    finish(&mut event_loop);
    assert_eq!(handle.keepers(), []);
    assert!(jobs.iter().all(JoinHandle::is_finished));
    assert_eq!(
        dropped.try_iter().count(),
        10_000,
        "while no thread is free"
    );
    drop(gate);
    event_loop.block_on(async { spawn_blocking(|| ()).await.unwrap() });
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(pool.stats().queued, 0);
}

// The end of the loop, and of jobs that panic in a drop.

#[test]
fn a_loop_goes_with_jobs_in_flight() {
    let (event_loop, _, _, pool) = with_threads(1);
    let (sender, messages) = channel();
    let gate = event_loop.enter(|| {
        let (gate, wait) = Gate::new();
        let guard = OnDrop(sender.clone(), "output dropped");
        drop(spawn_blocking(move || {
            wait();
            guard
        }));
        let unrun = OnDrop(sender, "unrun");
        drop(spawn_blocking(move || unrun.run()));
        gate.wait()
    });
    drop(event_loop);
    assert_eq!(messages.try_recv(), Ok("unrun"), "what waits is cancelled");
    assert!(messages.try_recv().is_err(), "what runs is left alone");
    drop(gate);
    assert_eq!(messages.recv_timeout(LONG), Ok("output dropped"));
    assert_eq!(pool.stats().threads, 1);
}

/// Loops are dropped while their jobs run, without gates: at any moment of a job.
#[test]
fn loops_go_at_any_moment() {
    let pool = PoolBuilder::new().threads(2).build();
    let ended = Arc::new(AtomicUsize::new(0));
    struct Ended(Arc<AtomicUsize>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    for round in 0..100 {
        let mut event_loop = Builder::new().pool(pool.clone()).build().unwrap();
        event_loop.enter(|| {
            for _ in 0..10 {
                let guard = Ended(ended.clone());
                drop(spawn_blocking(move || guard));
            }
        });
        for _ in 0..round % 4 {
            turn(&mut event_loop);
        }
    }
    drop(pool);
    // Every closure or output is dropped once, whichever thread had it; the threads end when all of
    // it is done.
    let event_loop = EventLoop::new().unwrap();
    event_loop.block_on(async {
        while ended.load(Ordering::SeqCst) < 1000 {
            sleep(ms(1)).await;
        }
    });
    assert_eq!(ended.load(Ordering::SeqCst), 1000);
}

#[test]
fn a_loop_that_is_gone_takes_no_jobs() {
    struct Submit(Sender<&'static str>);
    impl Drop for Submit {
        fn drop(&mut self) {
            let guard = OnDrop(self.0.clone(), "unrun");
            drop(spawn_blocking(move || guard.run()));
            let _ = self.0.send("submitted");
        }
    }
    let (event_loop, handle, _, pool) = with_threads(1);
    let (sender, messages) = channel();
    let submit = Submit(sender);
    drop(handle.spawn(async move {
        pending::<()>().await;
        drop(submit);
    }));
    drop(event_loop);
    assert_eq!(messages.try_recv(), Ok("unrun"));
    assert_eq!(messages.try_recv(), Ok("submitted"));
    assert_eq!(pool.stats().threads, 0);
}

/// A job is dropped before it runs, or its output is dropped. A panic in that drop ends neither the
/// process nor the thread.
#[test]
fn a_panic_in_a_drop_stays_with_the_job() {
    let (mut event_loop, _, _, pool) = with_threads(1);
    event_loop.enter(|| {
        let (gate, wait) = Gate::new();
        let running = spawn_blocking(move || {
            wait();
            PanicOnDrop
        });
        let gate = gate.wait();
        let bomb = PanicOnDrop;
        let queued = spawn_blocking(move || drop(bomb));
        running.abort();
        queued.abort();
        gate
    });
    finish(&mut event_loop);
    // An output that has arrived is dropped with its task, before the task is polled.
    event_loop.enter(|| {
        let ended = spawn_blocking(|| PanicOnDrop);
        flush();
        ended.abort();
    });
    finish(&mut event_loop);
    let next = event_loop.block_on(async { spawn_blocking(|| 8).await.unwrap() });
    assert_eq!((next, pool.stats().threads), (8, 1));
}

#[test]
fn a_panic_in_the_drop_of_a_job_that_ran_is_its_panic() {
    let (event_loop, ..) = with_threads(1);
    let error = event_loop.block_on(async {
        let bomb = PanicOnDrop;
        spawn_blocking(move || drop(bomb)).await.unwrap_err()
    });
    assert_eq!(error.to_string(), "the task panicked: in a drop");
}

// Many loops, clocks, timers.

#[cfg(feature = "net")]
#[test]
fn libuv_threadpool_multiple_event_loops() {
    let work = || {
        let event_loop = EventLoop::new().unwrap();
        event_loop.block_on(async {
            let mut threads = HashSet::new();
            for _ in 0..20 {
                let jobs = [(); 4].map(|()| spawn_blocking(|| thread::current().id()));
                let found = phaseloop::net::lookup_host("localhost:80").await.unwrap();
                assert!(found.iter().all(|address| address.port() == 80));
                for job in jobs {
                    threads.insert(job.await.unwrap());
                }
            }
            threads
        })
    };
    let loops = [(); 8].map(|()| thread::spawn(work));
    let mut threads = HashSet::new();
    for thread in loops {
        threads.extend(thread.join().unwrap());
    }
    let size = Pool::global().stats().threads;
    assert!(
        (1..=size).contains(&threads.len()),
        "{} of {size}",
        threads.len()
    );
}

#[test]
fn the_virtual_clock_does_not_jump_past_work_in_flight() {
    let (mut event_loop, handle, trace, _) = with_threads(1);
    let timer = Timer::new(&handle);
    timer
        .start(ms(3_600_000), ZERO, trace.on_stamped("timer"))
        .unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        // Long enough for a clock that jumps to be caught at it.
        let job = spawn_blocking(|| thread::sleep(ms(20)));
        job.await.unwrap();
        log.stamp("job");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "job@0 timer@3600000");
}

#[test]
fn the_virtual_clock_goes_on_without_work_that_was_given_up() {
    let (mut event_loop, handle, trace, _) = with_threads(1);
    let (_gate, job) = event_loop.enter(hold);
    job.abort();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer@10");
}

/// Neither their number nor calls of other threads that came before put an end off.
#[test]
fn r278_all_that_have_ended_are_delivered_in_one_poll_phase() {
    let (mut event_loop, handle, _, _) = with_threads(1);
    let calls = Arc::new(AtomicUsize::new(0));
    for _ in 0..1000 {
        let calls = calls.clone();
        event_loop
            .remote()
            .call(move || {
                calls.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
    }
    let ends = Rc::new(Cell::new(0));
    let seen = Rc::new(Cell::new(None));
    event_loop.enter(|| {
        for _ in 0..5000 {
            let (job, ends) = (spawn_blocking(|| ()), ends.clone());
            drop(spawn(async move {
                job.await.unwrap();
                ends.set(ends.get() + 1);
            }));
        }
        flush();
    });
    let (timer, count, mark) = (Timer::new(&handle), ends.clone(), seen.clone());
    timer
        .start(ZERO, ZERO, move |_| mark.set(Some(count.get())))
        .unwrap();
    turn(&mut event_loop);
    assert_eq!(seen.get(), Some(5000));
    assert!(
        calls.load(Ordering::Relaxed) < 1000,
        "a flood of these is spread"
    );
    finish(&mut event_loop);
    assert_eq!(calls.load(Ordering::Relaxed), 1000);
}

/// The ends do not wait until the rest of an earlier flood has arrived (C12).
#[test]
fn c12_ends_that_come_behind_a_flood_are_delivered_in_the_next_poll_phase() {
    let (mut event_loop, _, _, _) = with_threads(1);
    let calls = Arc::new(Mutex::new(Vec::new()));
    for n in 0..1000 {
        let calls = calls.clone();
        let call = move || calls.lock().unwrap().push(n);
        event_loop.remote().call(call).unwrap();
    }
    turn(&mut event_loop);
    let before = calls.lock().unwrap().len();
    let ended = Rc::new(Cell::new(false));
    event_loop.enter(|| {
        let (job, ended) = (spawn_blocking(|| ()), ended.clone());
        drop(spawn(async move {
            job.await.unwrap();
            ended.set(true);
        }));
        flush();
    });
    turn(&mut event_loop);
    assert!(ended.get());
    let after = calls.lock().unwrap().len();
    assert!(before < after && after < 1000, "{before}, {after}");
    finish(&mut event_loop);
    assert!(calls.lock().unwrap().iter().copied().eq(0..1000));
}

/// Each end submits the next job, on the real clock, until a timer says stop.
#[test]
fn timers_are_not_starved_by_ends_that_submit_more() {
    let mut event_loop = EventLoop::new().unwrap();
    let stop = Rc::new(Cell::new(false));
    event_loop.enter(|| {
        for _ in 0..64 {
            let stop = stop.clone();
            drop(spawn(async move {
                while !stop.get() {
                    spawn_blocking(|| ()).await.unwrap();
                }
            }));
        }
    });
    let (timer, mark) = (Timer::new(&event_loop.handle()), stop.clone());
    timer.start(ms(5), ZERO, move |_| mark.set(true)).unwrap();
    finish(&mut event_loop);
    assert!(stop.get());
}

/// A payload whose drop panics with another such payload, for ever.
struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new(Self));
    }
}

#[test]
fn a_payload_whose_drop_panics_costs_no_thread_and_no_loop() {
    let (event_loop, _, _, pool) = with_threads(1);
    event_loop.block_on(async {
        for _ in 0..3 {
            // Its handle is gone: the payload is dropped by the task that awaits the job.
            spawn_blocking(|| std::panic::resume_unwind(Box::new(Endless))).detach();
            // Cancelled while it runs: the payload is dropped by the thread of the pool.
            let (started, has_started) = channel();
            let job = spawn_blocking(move || {
                started.send(()).unwrap();
                std::panic::resume_unwind(Box::new(Endless))
            });
            has_started.recv().unwrap();
            job.abort();
            // Its output is not awaited, and its drop panics.
            drop(spawn_blocking(|| Endless));
            assert_eq!(spawn_blocking(|| 5).await.unwrap(), 5);
        }
    });
    assert_eq!(pool.stats().threads, 1);
}
