//! Values on every loop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use phaseloop::cluster::{self, Builder, Sharded};

use crate::util::panics::panic_of;

type Log = Arc<Mutex<Vec<(&'static str, ThreadId)>>>;

/// Notes on which thread it is made and dropped.
struct Noted {
    log: Log,
    _local: Rc<()>,
}

impl Noted {
    fn new(log: &Log) -> Self {
        log.lock().unwrap().push(("made", thread::current().id()));
        Self {
            log: log.clone(),
            _local: Rc::new(()),
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut log = self.log.lock().unwrap();
        log.push(("dropped", thread::current().id()));
    }
}

/// The threads that have done it, sorted.
fn threads(log: &Log, what: &str) -> Vec<String> {
    let log = log.lock().unwrap();
    let noted = log.iter().filter(|(one, _)| *one == what);
    let mut threads: Vec<_> = noted.map(|(_, thread)| format!("{thread:?}")).collect();
    threads.sort();
    threads
}

// C6: made and dropped on its loop, with the last clone.
#[test]
fn values_are_dropped_on_their_loops_with_the_last_clone() {
    let log = Log::default();
    let of_values = log.clone();
    Builder::new()
        .loops(3)
        .block_on(async move {
            let log = of_values.clone();
            let values = Sharded::new(async move |_| Noted::new(&log)).await.unwrap();
            let clone = values.clone();
            drop(values);
            assert!(threads(&of_values, "dropped").is_empty());
            // The last clone is dropped on a thread without a loop.
            thread::spawn(move || drop(clone)).join().unwrap();
            while threads(&of_values, "dropped").len() < 3 {
                phaseloop::task::yield_now().await;
            }
        })
        .unwrap();
    assert_eq!(threads(&log, "made"), threads(&log, "dropped"));
}

// C6: at the latest when the loop ends, behind its tasks.
#[test]
fn values_are_dropped_at_the_end_behind_the_tasks() {
    let log = Log::default();
    let of_values = log.clone();
    let outlives = Builder::new().loops(3).block_on(async move {
        let log = of_values.clone();
        let values = Sharded::new(async move |_| Noted::new(&log)).await.unwrap();
        let tasks = values.clone();
        let begun = cluster::current().each(move |_| {
            let (value, values) = (tasks.here(), tasks.clone());
            async move {
                let task = async move {
                    struct OnDrop(
                        Rc<Noted>,
                        #[expect(dead_code, reason = "kept")] Sharded<Noted>,
                    );
                    impl Drop for OnDrop {
                        fn drop(&mut self) {
                            let log = &self.0.log;
                            log.lock().unwrap().push(("task", thread::current().id()));
                        }
                    }
                    let _kept = OnDrop(value, values);
                    std::future::pending::<()>().await;
                };
                phaseloop::spawn(task).detach();
            }
        });
        begun.await;
        phaseloop::task::yield_now().await;
        values
    });
    assert_eq!(threads(&log, "made"), threads(&log, "dropped"));
    assert_eq!(threads(&log, "task").len(), 3);
    let text = panic_of(|| _ = phaseloop::block_on(async { outlives.unwrap().here() }));
    assert!(text.contains("another cluster"), "{text}");
}

// C6: `here` and `on`, with values that are not `Send`.
#[test]
fn a_value_is_used_on_its_loop() {
    Builder::new()
        .loops(3)
        .block_on(async {
            let counts = Sharded::new(async |index| Rc::new(Cell::new(index * 100)))
                .await
                .unwrap();
            for index in [2, 1, 2] {
                let added = counts.on(index, async |count| {
                    phaseloop::task::yield_now().await;
                    count.set(count.get() + 1);
                    (cluster::index(), count.get())
                });
                let (ran_on, _) = added.unwrap().await.unwrap();
                assert_eq!(ran_on, index);
            }
            assert_eq!(counts.here().get(), 0);
            let all = counts.clone();
            let seen = cluster::current().each(move |_| {
                let value = all.here().get();
                async move { value }
            });
            let seen: Vec<_> = seen.await.into_iter().map(Result::unwrap).collect();
            assert_eq!(seen, [0, 101, 202]);
        })
        .unwrap();
}

// A fixed hash: the same in every run.
#[cfg(target_endian = "little")]
#[test]
fn keys_belong_to_the_same_loop_in_every_run() {
    Builder::new()
        .loops(4)
        .block_on(async {
            let map = Sharded::new(async |_| RefCell::new(())).await.unwrap();
            let indices: Vec<_> = (0..8u32).map(|key| map.index_of(&key)).collect();
            assert_eq!(indices, EXPECTED, "they are part of what programs rely on");
            let mut spread = [0; 4];
            for key in 0..4000 {
                spread[map.index_of(&format!("key {key}"))] += 1;
            }
            assert!(
                spread.iter().all(|count| (800..1200).contains(count)),
                "{spread:?}"
            );
        })
        .unwrap();
}

#[cfg(target_endian = "little")]
const EXPECTED: [usize; 8] = [2, 3, 3, 1, 3, 1, 1, 0];

// A panic of `make` is the error, and the values that were made are dropped.
#[test]
fn a_panic_of_make_drops_the_other_values() {
    let log = Log::default();
    let of_values = log.clone();
    Builder::new()
        .loops(3)
        .block_on(async move {
            let made = Sharded::new(async move |index| {
                assert_ne!(index, 1, "no value here");
                Noted::new(&of_values)
            });
            assert!(made.await.unwrap_err().is_panic());
        })
        .unwrap();
    assert_eq!(threads(&log, "made").len(), 2);
    assert_eq!(threads(&log, "made"), threads(&log, "dropped"));
}
