//! C35: what reports and trees say of locks and channels.

use std::cell::RefCell;
use std::rc::Rc;

use crate::util::sites::without_columns;
use crate::util::trace::paused;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use phaseloop::sync::{Mutex, Notify, Semaphore, mpsc, oneshot, watch};
use phaseloop::{EventLoop, LoopHandle, block_on, phase, spawn, task};

fn report() -> String {
    without_columns(&LoopHandle::current().report().to_string(), file!())
}

#[track_caller]
fn named<F: Future<Output = ()> + 'static>(name: &str, future: F) {
    task::Builder::new().name(name).spawn(future).detach();
}

/// The line of the report about the task with this name, behind its line.
fn line_of(report: &str, name: &str) -> String {
    let line = report
        .lines()
        .find(|line| line.contains(&format!("{name:?} (#")) && line.starts_with("  task"));
    let line = line.unwrap_or_else(|| panic!("no task {name}: {report}"));
    line.split_once("): ").unwrap().1.to_owned()
}

#[test]
fn c35_a_report_names_locks_their_holders_and_all_lines() {
    block_on(async {
        let first = line!();
        let audit = Rc::new(Mutex::new(()).named("audit"));
        let slots = Rc::new(Semaphore::new(4));
        let (lock, all) = (audit.clone(), slots.clone());
        named("holder", async move {
            let _guard = lock.lock().await;
            let _permits = all.acquire(4).await.unwrap();
            std::future::pending::<()>().await;
        });
        let lock = audit.clone();
        named("waits", async move {
            drop(lock.lock().await);
        });
        let all = slots.clone();
        named("wants", async move {
            drop(all.acquire(2).await);
        });
        phase::check().await;
        let report = report();
        assert_eq!(
            line_of(&report, "waits"),
            format!(
                "waits for mutex \"audit\" (#{}) at #{}, taken at #{} by task 1 \"holder\"",
                first + 1,
                first + 11,
                first + 5
            )
        );
        assert_eq!(
            line_of(&report, "wants"),
            format!(
                "waits for semaphore (#{}) at #{}: 0 of 4 free, wants 2, last taken at #{} by task 1 \"holder\"",
                first + 2,
                first + 15,
                first + 6
            )
        );
        assert!(line_of(&report, "holder").starts_with("waits for something else"));
    });
}

#[test]
fn c35_a_report_names_channels_and_their_other_ends() {
    block_on(async {
        let first = line!();
        let (jobs, mut queue) = mpsc::channel(1);
        let jobs = jobs.named("jobs");
        let (word, receives) = oneshot::channel::<()>();
        named("worker", async move {
            queue.recv().await;
            let _ = receives.named("word").await;
        });
        named("sender", async move {
            for _ in 0..3 {
                jobs.send(1).await.unwrap();
            }
        });
        let (values, mut idle) = mpsc::unbounded::<u32>();
        let (config, mut watched) = watch::channel(0);
        let bell = Notify::new();
        named("idle", async move {
            idle.recv().await;
        });
        named("watches", async move {
            watched.changed().await.unwrap();
        });
        named("listens", async move {
            bell.notified().await;
        });
        phase::check().await;
        let report = report();
        assert_eq!(
            line_of(&report, "worker"),
            format!("waits for oneshot channel \"word\" (#{})", first + 3)
        );
        assert_eq!(
            line_of(&report, "sender"),
            format!(
                "waits for full channel \"jobs\" (#{}) at #{}: 1 of 1, last received by task 1 \"worker\" (#{})",
                first + 1,
                first + 10,
                first + 4
            )
        );
        assert_eq!(
            line_of(&report, "idle"),
            format!(
                "waits for empty channel (#{}) at #{}: 1 sender",
                first + 13,
                first + 17
            )
        );
        assert_eq!(
            line_of(&report, "watches"),
            format!(
                "waits for a change of watch (#{}) at #{}: 1 sender",
                first + 14,
                first + 20
            )
        );
        assert_eq!(
            line_of(&report, "listens"),
            format!("waits for notify (#{}) at #{}", first + 15, first + 23)
        );
        assert!(!report.contains("something else"), "{report}");
        drop((word, values, config));
    });
}

/// The holder is known by what the loop polls, also inside a `FuturesUnordered`.
#[test]
fn c35_waits_inside_a_set_of_futures_are_those_of_the_task() {
    block_on(async {
        let lock = Rc::new(Mutex::new(()));
        let (held, waits) = (lock.clone(), lock.clone());
        named("holder", async move {
            let mut set: FuturesUnordered<_> = [async move {
                let _guard = held.lock().await;
                std::future::pending::<()>().await;
            }]
            .into_iter()
            .collect();
            set.next().await;
        });
        named("waits", async move {
            let mut set: FuturesUnordered<_> = [async move { drop(waits.lock().await) }]
                .into_iter()
                .collect();
            set.next().await;
        });
        phase::check().await;
        let report = report();
        let line = line_of(&report, "waits");
        assert!(line.ends_with("by task 1 \"holder\""), "{line}");
    });
}

#[test]
fn c35_a_guard_of_a_task_that_has_ended_keeps_its_line() {
    block_on(async {
        let lock = Rc::new(Mutex::new(()));
        let guard = spawn(lock.clone().lock_owned()).await.unwrap();
        let waits = lock.clone();
        named("waits", async move { drop(waits.lock().await) });
        phase::check().await;
        let line = line_of(&report(), "waits");
        assert!(line.contains("taken at #"), "{line}");
        assert!(line.ends_with("by task 1, which has ended"), "{line}");
        drop(guard);
    });
}

#[test]
fn c35_the_tree_puts_the_holder_below_the_lock() {
    let (event_loop, handle, _) = paused();
    let text = Rc::new(RefCell::new(String::new()));
    let asked = text.clone();
    let ask = handle.clone();
    handle.set_immediate(move || {
        *asked.borrow_mut() = without_columns(&ask.task_tree().to_string(), file!());
    });
    let first = line!() + 1;
    event_loop.block_on(async move {
        let lock = Rc::new(Mutex::new(()));
        let held = lock.clone();
        let holder = task::Builder::new().name("holder").spawn(async move {
            let _guard = held.lock().await;
            phaseloop::time::sleep(std::time::Duration::from_secs(1)).await;
        });
        task::yield_microtask().await;
        drop(lock.lock().await);
        holder.await.unwrap();
    });
    let expected = format!(
        "\
the main future (#{first})
└ mutex (#{}) at #{}, taken at #{} by task 1 \"holder\"
  └ task 1 \"holder\" (#{})
    └ sleep (#{}): due in 1s
",
        first + 1,
        first + 8,
        first + 4,
        first + 3,
        first + 5,
    );
    assert_eq!(*text.borrow(), expected);
}

/// A lock of another loop of the thread is not described with tasks of this one.
#[test]
fn c35_two_loops_distinguish_their_tasks() {
    let (one, two) = (EventLoop::new().unwrap(), EventLoop::new().unwrap());
    let lock = Rc::new(Mutex::new(()));
    let held = lock.clone();
    let holder = one.enter(|| {
        spawn(async move {
            let _guard = held.lock().await;
            std::future::pending::<()>().await;
        })
    });
    one.block_on(phase::check());
    let waits = lock.clone();
    two.block_on(async move {
        named("waits", async move { drop(waits.lock().await) });
        phase::check().await;
        let line = line_of(&report(), "waits");
        assert!(
            line.contains("taken at #") && !line.contains(" by "),
            "{line}"
        );
    });
    drop(holder);
}

/// The list of primitives is as long as there are live ones.
#[test]
fn c35_notes_of_dropped_primitives_do_not_pile_up() {
    block_on(async {
        let weak: Vec<_> = (0..2_000)
            .map(|_| {
                let marker = Rc::new(());
                let lock = Mutex::new(marker.clone());
                let _guard = lock.try_lock().unwrap();
                let mut waits = tokio_test::task::spawn(lock.lock());
                assert!(waits.poll().is_pending());
                Rc::downgrade(&marker)
            })
            .collect();
        assert!(weak.iter().all(|weak| weak.upgrade().is_none()));
        assert!(!report().contains("mutex"));
    });
}
