//! What a failed exploration says.

use std::num::NonZeroU64;
use std::time::Duration;

use phaseloop::shuffle::{self, Explore, Strategy};
use phaseloop::task::yield_microtask;
use phaseloop::time::{sleep, timeout};
use phaseloop::{next_tick, spawn, spawn_blocking};

use crate::util::panics::panic_of;

/// A job that is expected within 5 ms.
async fn impatient() {
    let job = timeout(Duration::from_millis(5), spawn_blocking(|| ())).await;
    assert!(job.is_ok(), "the job is late");
}

#[test]
fn a_failure_is_reported_with_its_seed_and_the_answers_that_it_needs() {
    let found = Explore::new().seeds(200).try_run(impatient).unwrap_err();
    assert_eq!(found.shrunk.len(), 1, "{found}");
    let text = found.to_string();
    let seed = found.seed.unwrap();
    let decision = found.shrunk[0];
    for part in [
        format!("the schedule of seed {seed} fails: the job is late"),
        "minimized to 1 decision of ".to_owned(),
        format!("replay with PHASELOOP_SEED={seed}"),
        format!("replay the minimized schedule with PHASELOOP_SCHEDULE=\"{decision}\""),
        "the schedule from its first unusual decision on".to_owned(),
        "reports.rs".to_owned(),
    ] {
        assert!(text.contains(&part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn the_answers_of_a_report_fail_again() {
    let found = Explore::new().seeds(200).try_run(impatient).unwrap_err();
    let decisions = found.shrunk[0].to_string();
    let text = panic_of(|| shuffle::run(&decisions, impatient));
    assert!(text.contains("the job is late"), "{text}");
    // An answer to a question that is never asked changes nothing.
    shuffle::run("delay source99 0 =1", impatient);
}

#[test]
fn explore_panics_with_the_report() {
    let text = panic_of(|| shuffle::explore(200, impatient));
    assert!(text.contains("PHASELOOP_SCHEDULE="), "{text}");
}

#[test]
fn a_program_that_waits_for_ever_is_a_dead_end() {
    let found = Explore::new().seeds(1).try_run(std::future::pending::<()>);
    let found = found.unwrap_err();
    assert_eq!(found.seed, None, "the usual run fails");
    assert!(
        found
            .message
            .contains("nothing is left that could wake the program"),
        "{found}"
    );
}

#[test]
fn a_wait_for_a_peer_outside_is_a_dead_end_after_the_stall() {
    let explore = Explore::new().seeds(1).stall(Duration::from_millis(50));
    let found = explore.try_run(|| async {
        let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap();
        let _ = listener.accept().await;
    });
    let found = found.unwrap_err();
    assert!(
        found
            .message
            .contains("nothing is left that could wake the program"),
        "{found}"
    );
}

#[test]
fn a_program_that_turns_for_ever_is_stopped() {
    let found = Explore::new().seeds(1).max_turns(500).try_run(|| async {
        loop {
            phaseloop::phase::check().await;
        }
    });
    let found = found.unwrap_err();
    assert!(found.message.contains("500 turns"), "{found}");
}

#[test]
fn a_drain_that_never_ends_is_stopped() {
    let explore = Explore::new()
        .seeds(1)
        .max_drain(NonZeroU64::new(500).unwrap());
    let found = explore.clone().try_run(|| async {
        loop {
            yield_microtask().await;
        }
    });
    let found = found.unwrap_err();
    assert!(
        found.message.contains("500 ticks and microtasks"),
        "{found}"
    );
    let ticks = explore.clone().try_run(|| async {
        fn again() {
            next_tick(again);
        }
        again();
        std::future::pending().await
    });
    let ticks = ticks.unwrap_err();
    assert!(
        ticks.message.contains("500 ticks and microtasks"),
        "{ticks}"
    );
    // The entries of two drains are not added up.
    let many = explore.try_run(|| async {
        for _ in 0..3 {
            for _ in 0..400 {
                yield_microtask().await;
            }
            phaseloop::phase::check().await;
        }
    });
    many.unwrap();
}

#[test]
fn a_panic_of_a_detached_task_fails_the_run() {
    let found = Explore::new().seeds(1).try_run(|| async {
        spawn(async { panic!("detached") }).detach();
        sleep(Duration::from_millis(1)).await;
    });
    assert!(found.unwrap_err().message.starts_with("detached"));
}

#[test]
fn deviations_find_the_fewest_answers_first() {
    let strategy = Strategy::Deviate {
        depth: 2,
        limit: 10_000,
    };
    let found = Explore::new()
        .strategy(strategy)
        .try_run(impatient)
        .unwrap_err();
    assert_eq!(found.unusual.len(), 1, "{found}");
    assert_eq!(found.seed, None);
    let mild = || async {
        spawn_blocking(|| ()).await.unwrap();
    };
    let explored = Explore::new().strategy(strategy).try_run(mild).unwrap();
    assert!(explored.runs > 10, "{explored:?}");
}

#[test]
fn a_bad_list_of_answers_says_how_to_write_one() {
    let text = panic_of(|| shuffle::run("late: 5", || async {}));
    assert!(text.contains("a decision is written as"), "{text}");
}
