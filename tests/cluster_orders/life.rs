//! How several loops of one thread begin and end, and what belongs to one of them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use phaseloop::cluster::{self, Sharded};
use phaseloop::shuffle::Explore;
use phaseloop::{Local, LoopHandle};

// C23: the loops are a cluster, whose loop 0 runs the program.
#[test]
fn the_program_runs_on_the_first_loop() {
    Explore::new().seeds(10).loops(4).run(|| async {
        assert_eq!((cluster::index(), cluster::current().len()), (0, 4));
        let indices = cluster::current()
            .each(|_| async { cluster::index() })
            .await;
        let indices: Vec<_> = indices.into_iter().map(Result::unwrap).collect();
        assert_eq!(indices, [0, 1, 2, 3]);
    });
}

// C23: a `Local` compares the loop beside the thread; its value is dropped on its loop.
#[test]
fn a_local_of_another_loop_cannot_be_used() {
    let found = Explore::new().seeds(5).loops(2).try_run(|| async {
        let local = Local::new(Rc::new(Cell::new(1)));
        let used = cluster::current().remote(1).spawn(move || async move {
            assert!(local.try_get().is_none());
            local.set(2);
        });
        std::panic::resume_unwind(used.unwrap().await.unwrap_err().into_panic());
    });
    let found = found.unwrap_err();
    assert!(
        found
            .message
            .contains("is used on another thread than its own"),
        "{found}"
    );
    assert!(found.message.contains("life.rs"), "{found}");

    struct DropsAt(Arc<AtomicUsize>);
    impl Drop for DropsAt {
        fn drop(&mut self) {
            self.0.store(cluster::index() + 1, Ordering::Relaxed);
        }
    }
    Explore::new().seeds(20).loops(2).run(|| async {
        let dropped_at = Arc::new(AtomicUsize::new(0));
        let local = Local::new(DropsAt(dropped_at.clone()));
        let taken = cluster::current()
            .remote(1)
            .spawn(move || async move { drop(local) });
        taken.unwrap().await.unwrap();
        phaseloop::phase::check().await;
        phaseloop::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(dropped_at.load(Ordering::Relaxed), 1, "on loop 0");
    });
}

// C23: a blocking wait would stop all loops.
#[test]
fn a_blocking_join_panics_with_its_line() {
    let found = Explore::new().seeds(5).loops(2).try_run(|| async {
        let other = cluster::current().remote(1).spawn(|| async { 1 });
        let _ = other.unwrap().join();
    });
    let found = found.unwrap_err();
    assert!(found.message.contains("would wait for ever"), "{found}");
    assert!(found.message.contains("life.rs"), "{found}");
}

// C23, C4, C6: when the program returns, the other loops end; each value is dropped on its loop.
#[test]
fn the_other_loops_end_with_the_program() {
    struct Noted(usize);
    impl Drop for Noted {
        fn drop(&mut self) {
            ENDS.with_borrow_mut(|ends| ends.push(self.0));
        }
    }
    thread_local! {
        static ENDS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }
    Explore::new().seeds(20).loops(3).run(|| {
        ENDS.take();
        async move {
            let values = Sharded::new(async |index| Noted(index)).await.unwrap();
            let hangs = cluster::current().each(|_| std::future::pending::<()>());
            drop(hangs);
            std::mem::forget(values);
            cluster::current().shutdown(Duration::ZERO).await;
            phaseloop::time::sleep(Duration::from_millis(1)).await;
            let mut ends = ENDS.with_borrow(Vec::clone);
            ends.sort_unstable();
            assert_eq!(ends, [1, 2], "each with its loop");
        }
    });
    assert_eq!(ENDS.take().last(), Some(&0));
}

// C23, C18: a shutdown under seeds: nothing is cut that ends in time, and a root that hangs is
// named at the limit, by the time of the paused clock.
#[test]
fn a_shutdown_waits_for_roots_and_names_those_that_hang() {
    Explore::new().seeds(100).loops(3).run(|| async {
        let roots = cluster::current().each(|index| async move {
            cluster::stopping().cancelled().await;
            phaseloop::time::sleep(Duration::from_millis(index as u64)).await;
            index
        });
        let stopped = cluster::current().shutdown(Duration::from_secs(1)).await;
        assert!(stopped.is_clean(), "{stopped}");
        let ended: Result<Vec<_>, _> = roots.await.into_iter().collect();
        assert_eq!(ended.unwrap(), [0, 1, 2]);
    });
    Explore::new().seeds(50).loops(2).run(|| async {
        let hangs = cluster::current()
            .remote(1)
            .spawn(std::future::pending::<()>);
        let stopped = cluster::current().shutdown(Duration::from_secs(1)).await;
        assert_eq!(stopped.left.len(), 1, "{stopped}");
        assert_eq!(stopped.left[0].index, 1);
        assert!(stopped.left[0].tasks[0].contains("life.rs"), "{stopped}");
        assert!(stopped.took >= Duration::from_secs(1), "{stopped}");
        assert!(hangs.unwrap().await.unwrap_err().is_cancelled());
        assert!(cluster::current().remote(1).is_closed());
    });
}

// C23: other threads are refused, as on one loop.
#[test]
fn other_threads_are_refused() {
    let found = Explore::new().seeds(1).loops(2).try_run(|| async {
        let remote = cluster::current().remote(1).clone();
        let thread = std::thread::spawn(move || remote.call(|| ()));
        thread.join().unwrap().unwrap();
        phaseloop::time::sleep(Duration::from_millis(1)).await;
    });
    let found = found.unwrap_err();
    assert!(
        found.message.contains("has sent something to the loop"),
        "{found}"
    );
}

// C23: jobs of the pool run on the thread, for each loop.
#[phaseloop::test(loops = 2, seeds = 50)]
async fn each_loop_has_jobs() {
    let sums = cluster::current().each(|index| async move {
        let jobs = [1, 2].map(|n| phaseloop::spawn_blocking(move || n * (index + 1)));
        let mut sum = 0;
        for job in jobs {
            sum += job.await.unwrap();
        }
        assert!(LoopHandle::try_current().is_some());
        sum
    });
    let sums: Result<Vec<_>, _> = sums.await.into_iter().collect();
    assert_eq!(sums.unwrap(), [3, 6]);
}
