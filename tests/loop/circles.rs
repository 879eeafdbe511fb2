//! C36: tasks that wait for each other in a circle, in reports, errors and time-outs.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use crate::util::polls::poll_once;
use crate::util::sites::without_columns;
use phaseloop::sync::{Mutex, mpsc};
use phaseloop::task::yield_microtask;
use phaseloop::time::timeout;
use phaseloop::{LoopHandle, block_on, phase, spawn, task};

fn report() -> String {
    without_columns(&LoopHandle::current().report().to_string(), file!())
}

fn circles(report: &str) -> Vec<String> {
    let lines = report.lines().filter(|line| line.starts_with("A circle"));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn named(name: &str, future: impl Future<Output = ()> + 'static) -> phaseloop::JoinHandle<()> {
    task::Builder::new().name(name).spawn(future)
}

type Locks = Vec<Rc<Mutex<()>>>;

/// Tasks of which each takes its lock, and then the next one.
fn dining(names: &[&'static str]) -> Locks {
    let locks: Locks = names
        .iter()
        .map(|name| Rc::new(Mutex::new(()).named(name)))
        .collect();
    for (number, name) in names.iter().enumerate() {
        let own = locks[number].clone();
        let next = locks[(number + 1) % locks.len()].clone();
        named(name, async move {
            let _own = own.lock().await;
            yield_microtask().await;
            let _next = next.lock().await;
        })
        .detach();
    }
    locks
}

#[test]
fn c36_two_tasks_and_two_locks_are_a_circle_with_all_lines() {
    block_on(async {
        let first = line!();
        let accounts = Rc::new(Mutex::new(()).named("accounts"));
        let audit = Rc::new(Mutex::new(()).named("audit"));
        let (one, two) = (accounts.clone(), audit.clone());
        named("transfer", async move {
            let _accounts = one.lock().await;
            yield_microtask().await;
            let _audit = two.lock().await;
        })
        .detach();
        named("audit", async move {
            let _audit = audit.lock().await;
            yield_microtask().await;
            let _accounts = accounts.lock().await;
        })
        .detach();
        phase::check().await;
        let report = report();
        let expected = format!(
            "A circle of waits, which nothing ends: task 1 \"transfer\" waits for mutex \"audit\" (#{}) at #{}, \
             taken at #{} by task 2 \"audit\", which waits for mutex \"accounts\" (#{}) at #{}, \
             taken at #{} by task 1 \"transfer\"",
            first + 2,
            first + 7,
            first + 11,
            first + 1,
            first + 13,
            first + 5
        );
        assert_eq!(circles(&report), [expected]);
        assert!(report.starts_with("A circle of waits"), "{report}");
    });
}

#[test]
fn c36_three_locks_are_one_circle() {
    block_on(async {
        let _locks = dining(&["a", "b", "c"]);
        phase::check().await;
        let circles = circles(&report());
        assert_eq!(circles.len(), 1, "{circles:?}");
        for name in ["a", "b", "c"] {
            let lock = format!("mutex {name:?}");
            assert_eq!(circles[0].matches(&lock).count(), 1, "{circles:?}");
        }
    });
}

#[test]
fn c36_two_circles_have_a_line_each_and_those_behind_have_none() {
    block_on(async {
        let locks = dining(&["a", "b"]);
        let _others = dining(&["c", "d", "e"]);
        let behind = locks[0].clone();
        let behind = named("behind", async move { drop(behind.lock().await) });
        named("further", async move { behind.await.unwrap() }).detach();
        phase::check().await;
        let circles = circles(&report());
        assert_eq!(circles.len(), 2, "{circles:?}");
        assert!(!circles.concat().contains("behind"), "{circles:?}");
    });
}

#[test]
fn c36_a_join_is_a_part_of_a_circle() {
    block_on(async {
        let lock = Rc::new(Mutex::new(()));
        let held = lock.clone();
        named("parent", async move {
            let _guard = held.lock().await;
            let child = named("child", async move { drop(lock.lock().await) });
            child.await.unwrap();
        })
        .detach();
        phase::check().await;
        let circles = circles(&report());
        assert_eq!(circles.len(), 1);
        let text = &circles[0];
        assert!(
            text.contains("\"parent\" waits for task 2 \"child\" (#"),
            "{text}"
        );
        assert!(text.contains("which waits for mutex"), "{text}");
        assert!(text.ends_with("by task 1 \"parent\""), "{text}");
    });
}

#[test]
fn c36_a_lock_that_is_taken_twice_is_a_circle_of_one() {
    block_on(async {
        let lock = Mutex::new(());
        named("twice", async move {
            let _first = lock.lock().await;
            let _second = lock.lock().await;
        })
        .detach();
        phase::check().await;
        let circles = circles(&report());
        assert_eq!(circles.len(), 1);
        assert!(
            circles[0].contains("task 1 \"twice\" waits for mutex"),
            "{circles:?}"
        );
        assert!(circles[0].ends_with("by task 1 \"twice\""), "{circles:?}");
    });
}

/// A future that has the guard and is not polled cannot be helped, but named.
#[test]
fn c36_an_unpolled_future_with_the_guard_is_a_circle_of_one() {
    block_on(async {
        let lock = Rc::new(Mutex::new(()));
        named("futurelock", async move {
            let mut first = Box::pin(async {
                let _guard = lock.lock().await;
                yield_microtask().await;
            });
            assert!(poll_once(&mut first).await.is_pending());
            drop(lock.lock().await);
        })
        .detach();
        phase::check().await;
        let circles = circles(&report());
        assert_eq!(circles.len(), 1, "{}", report());
        assert!(
            circles[0].ends_with("by task 1 \"futurelock\""),
            "{circles:?}"
        );
    });
}

#[test]
fn c36_what_can_end_is_no_circle() {
    block_on(async {
        let locks = dining(&["a"]);
        // A circle with a time-out.
        let (one, two) = (Rc::new(Mutex::new(())), Rc::new(Mutex::new(())));
        for (own, next) in [(one.clone(), two.clone()), (two, one)] {
            named("patient", async move {
                let _own = own.lock().await;
                yield_microtask().await;
                let _next = timeout(Duration::from_secs(3600), next.lock()).await;
            })
            .detach();
        }
        // A channel beside the lock.
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        let lock = locks[0].clone();
        named("channel", async move {
            let _guard = lock.lock().await;
            futures::future::select(pin!(lock.lock()), pin!(receiver.recv())).await;
        })
        .detach();
        phase::check().await;
        // The task `a` asks for its own lock: that is a circle, and the only one.
        let circles = circles(&report());
        assert_eq!(circles.len(), 1, "{circles:?}");
        assert!(circles[0].contains("\"a\""), "{circles:?}");
        drop(sender);
    });
}

#[test]
fn c36_the_error_of_a_deadlock_has_the_circle() {
    let error = phaseloop::run(async {
        let lock = Mutex::new(()).named("own");
        let _first = lock.lock().await;
        let _second = lock.lock().await;
    });
    let text = error.unwrap_err().to_string();
    let expected = "A circle of waits, which nothing ends: the main future waits for mutex \"own\"";
    assert!(text.contains(expected), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn c36_a_dead_end_of_an_exploration_has_the_circle() {
    let found = phaseloop::shuffle::Explore::new()
        .seeds(50)
        .try_run(|| async {
            let _locks = dining(&["a", "b"]);
            for _ in 0..3 {
                phase::check().await;
            }
            std::future::pending::<()>().await;
        });
    let message = found.unwrap_err().message;
    assert!(
        message.contains("A circle of waits, which nothing ends: task"),
        "{message}"
    );
}

/// Its time is proportional to the number of tasks: the text of each is made once.
#[test]
fn c36_ten_thousand_tasks_behind_one_lock_are_one_line() {
    block_on(async {
        let lock = Rc::new(Mutex::new(()));
        let _guard = lock.lock().await;
        for _ in 0..10_000 {
            let lock = lock.clone();
            spawn(async move { drop(lock.lock().await) }).detach();
        }
        phase::check().await;
        let report = report();
        assert!(report.contains("10000 × task spawned at #"), "{report}");
        assert!(report.lines().count() < 10, "{report}");
        assert_eq!(circles(&report), [""; 0]);
    });
}
