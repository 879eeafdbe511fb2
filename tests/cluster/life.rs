//! How a cluster starts and ends.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use phaseloop::cluster::{self, Builder};
use phaseloop::{LoopHandle, spawn};

use crate::util::panics::panic_of;

/// Counts the values that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

// C1, C4: what is left on the other loops is dropped before `block_on` returns.
#[test]
fn the_threads_are_joined_before_the_run_returns() {
    for loops in [1, 2, 8] {
        let alive = Arc::new(AtomicUsize::new(0));
        let count = alive.clone();
        let output = Builder::new().loops(loops).block_on(async move {
            let (ready, mut is_ready) = cluster::channel(loops);
            let each = cluster::current().each(move |_| {
                let (value, ready) = (Alive::new(&count), ready.clone());
                async move {
                    ready.send(()).await.unwrap();
                    std::future::pending::<()>().await;
                    drop(value);
                }
            });
            for _ in 0..loops {
                is_ready.recv().await.unwrap();
            }
            drop(each);
            loops
        });
        assert_eq!(output.unwrap(), loops);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{loops} loops");
    }
}

// C1: also by a panic of the main future.
#[test]
fn a_panic_of_main_joins_the_threads_and_propagates() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = alive.clone();
    let text = panic_of(move || {
        let _ = Builder::new().loops(3).block_on(async move {
            let ready =
                cluster::current().each(move |_| {
                    let value = Alive::new(&count);
                    async move {
                        spawn(async move { (std::future::pending::<()>().await, value) }).detach()
                    }
                });
            ready.await;
            panic!("main ends");
        });
    });
    assert_eq!(text, "main ends");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

// C2: loop 0 is the calling thread's, and main need not be `Send`.
#[test]
fn main_runs_on_the_calling_thread() {
    let here = thread::current().id();
    let local = Rc::new(Cell::new(0));
    let copy = local.clone();
    let threads = Builder::new().loops(3).block_on(async move {
        copy.set(1);
        assert_eq!(cluster::index(), 0);
        let each = cluster::current().each(|index| async move {
            assert_eq!(cluster::index(), index);
            assert_eq!(cluster::current().len(), 3);
            thread::current().id()
        });
        each.await
            .into_iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>()
    });
    let threads = threads.unwrap();
    assert_eq!(threads[0], here);
    assert!(threads[1] != here && threads[2] != here && threads[1] != threads[2]);
    assert_eq!(local.get(), 1);
}

// C2: a loop outside of a cluster is a cluster of one.
#[test]
fn a_loop_alone_is_a_cluster_of_one() {
    phaseloop::block_on(async {
        assert_eq!((cluster::index(), cluster::current().len()), (0, 1));
        let each = cluster::current().each(|index| async move { index + 1 });
        assert_eq!(each.await.pop().unwrap().unwrap(), 1);
    });
}

// C3: main is not polled if a loop cannot be built. The panic of a member at its start is one of
// the run (C19).
#[test]
fn a_member_that_panics_at_its_start_ends_the_cluster_before_main() {
    let is_polled = Rc::new(Cell::new(false));
    let polled = is_polled.clone();
    let text = panic_of(|| {
        let _ = Builder::new()
            .loops(3)
            .each_loop(|index, builder| {
                assert_ne!(index, 2, "no options for this one");
                builder
            })
            .block_on(async move { polled.set(true) });
    });
    assert!(text.contains("no options for this one"), "{text}");
    assert!(!is_polled.get());
}

// C5: roots are made and polled on their loop; after its end a root is cancelled.
#[test]
fn roots_need_not_be_send_and_end_with_the_cluster() {
    let cluster = Builder::new().loops(2).block_on(async {
        let each = cluster::current().each(|index| {
            let local = Rc::new(index);
            async move {
                phaseloop::task::yield_now().await;
                *local
            }
        });
        let outputs: Vec<_> = each.await.into_iter().map(Result::unwrap).collect();
        assert_eq!(outputs, [0, 1]);
        let panics = cluster::current().each(|index| async move {
            assert_ne!(index, 1, "a bug on loop 1");
        });
        let mut panics = panics.await;
        let error = panics.pop().unwrap().unwrap_err();
        assert!(error.is_panic(), "{error}");
        panics.pop().unwrap().unwrap();
        cluster::current()
    });
    let cluster = cluster.unwrap();
    assert!(cluster.remote(0).is_closed() && cluster.remote(1).is_closed());
    let after = phaseloop::block_on(cluster.each(|index| async move { index }));
    assert!(
        after
            .iter()
            .all(|output| output.as_ref().unwrap_err().is_cancelled())
    );
}

// C19: a panic that leaves the run of a member stops the cluster, and comes out of `block_on`.
#[test]
fn a_panic_of_a_callback_on_a_member_ends_the_cluster() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = alive.clone();
    let text = panic_of(move || {
        let _ = Builder::new().loops(3).block_on(async move {
            let value = Alive::new(&count);
            let cluster = cluster::current();
            cluster
                .remote(2)
                .call(|| panic!("a callback of loop 2"))
                .unwrap();
            std::future::pending::<()>().await;
            drop(value);
        });
    });
    assert_eq!(text, "a callback of loop 2");
    assert_eq!(alive.load(Ordering::SeqCst), 0, "main was dropped");
}

// C3: the options of each loop, with its index, on its thread.
#[test]
fn each_loop_gets_its_own_options() {
    let built = Arc::new(AtomicUsize::new(0));
    let count = built.clone();
    let output = Builder::new()
        .loops(4)
        .each_loop(move |index, builder| {
            count.fetch_add(1 << (8 * index), Ordering::SeqCst);
            builder
        })
        .block_on(async { LoopHandle::current().is_alive() });
    assert!(output.unwrap());
    assert_eq!(built.load(Ordering::SeqCst), 0x0101_0101);
}

#[test]
fn a_cluster_of_no_loops_is_refused() {
    let text = panic_of(|| _ = Builder::new().loops(0));
    assert!(text.contains("at least one loop"), "{text}");
}

// C20: more loops than processors cannot be pinned; as many can, each to its own.
#[cfg(target_os = "linux")]
#[test]
fn loops_are_pinned_to_processors_of_their_own() {
    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));
        line.unwrap().to_owned()
    }
    let before = allowed();
    let cores = thread::available_parallelism().unwrap().get().min(2);
    let places = Builder::new().loops(cores).pin(true).block_on(async {
        let each = cluster::current().each(|_| async { allowed() });
        each.await
            .into_iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>()
    });
    let places = places.unwrap();
    assert!(
        places.iter().all(|place| !place.contains([',', '-'])),
        "{places:?}"
    );
    let mut apart = places.clone();
    apart.dedup();
    assert_eq!(apart.len(), cores, "{places:?}");
    assert_eq!(
        allowed(),
        before,
        "the calling thread has its processors back"
    );
    let error = Builder::new().loops(5000).pin(true).block_on(async {});
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}

// Metrics of all loops, by index.
#[test]
fn metrics_are_those_of_each_loop() {
    let metrics = Builder::new().loops(2).block_on(async {
        let spawned = cluster::current().each(|index| async move {
            for _ in 0..index * 10 {
                spawn(async {}).await.unwrap();
            }
        });
        spawned.await;
        let metrics = cluster::current().metrics().await.into_iter();
        metrics.map(Result::unwrap).collect::<Vec<_>>()
    });
    let metrics = metrics.unwrap();
    assert_eq!(metrics.len(), 2);
    assert!(metrics[1].spawned >= metrics[0].spawned + 9, "{metrics:?}");
}
