//! `#[phaseloop::main]` and `#[phaseloop::test]`: what they run, options, results, and the time
//! limit of a test.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::time::sleep;
use phaseloop::{LoopHandle, spawn};

use crate::util::child::in_child;
use crate::util::panics::panic_of;

#[phaseloop::test]
async fn a_test_runs_on_a_loop_and_may_use_rc() {
    let seen = Rc::new(Cell::new(false));
    let setter = seen.clone();
    spawn(async move { setter.set(true) }).await.unwrap();
    assert!(seen.get());
}

#[phaseloop::test(start_paused = true, timeout = "30s")]
async fn a_paused_test_does_not_wait() {
    let start = phaseloop::time::now();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(phaseloop::time::now() - start, Duration::from_secs(3600));
}

#[phaseloop::test]
async fn a_test_may_return_a_result() -> io::Result<()> {
    let file = std::fs::metadata("Cargo.toml")?;
    assert!(file.is_file());
    Ok(())
}

#[phaseloop::test(seeds = 20)]
async fn a_test_runs_under_seeds() -> io::Result<()> {
    let text = phaseloop::fs::read("Cargo.toml").await?;
    assert!(text.starts_with(b"[package]"));
    Ok(())
}

#[phaseloop::test(seeds = 500)]
#[should_panic(expected = "PHASELOOP_SCHEDULE=")]
async fn a_test_under_seeds_fails_with_the_answers_that_it_needs() {
    let job = phaseloop::spawn_blocking(|| ());
    let job = phaseloop::time::timeout(Duration::from_millis(5), job).await;
    assert!(job.is_ok());
}

#[phaseloop::test(seeds = 3)]
#[ignore = "called by the next test"]
async fn returns_an_error() -> io::Result<()> {
    Err(io::ErrorKind::NotFound.into())
}

#[test]
fn an_error_of_a_test_under_seeds_fails_it() {
    let text = panic_of(returns_an_error);
    assert!(text.contains("the test returned an error"), "{text}");
}

#[phaseloop::test]
#[should_panic(expected = "as expected")]
async fn a_test_may_be_expected_to_panic() {
    sleep(Duration::ZERO).await;
    panic!("as expected");
}

#[phaseloop::test(lane_budget = 7.try_into().unwrap(),)]
async fn every_option_of_the_builder_is_one_of_the_attribute() {
    for _ in 0..20 {
        phaseloop::queue_microtask(|| ());
    }
    phaseloop::phase::check().await;
    assert!(LoopHandle::current().budget_hits() > 0);
}

/// Not a test: its name shadows nothing, and it runs as a `main` function would.
#[phaseloop::main]
async fn entry() -> Result<u8, Box<dyn std::error::Error>> {
    let number = "7".parse::<u8>()?;
    sleep(Duration::ZERO).await;
    Ok(number)
}

#[phaseloop::main(run, crate = phaseloop)]
async fn entry_that_leaves_work() -> Rc<Cell<u8>> {
    let left = Rc::new(Cell::new(0));
    let counter = left.clone();
    spawn(async move {
        sleep(Duration::from_millis(5)).await;
        counter.set(1);
    })
    .detach();
    left
}

#[phaseloop::main(run)]
async fn entry_that_never_ends() {
    std::future::pending().await
}

#[test]
fn a_main_function_returns_its_output() {
    assert_eq!(entry().unwrap(), 7);
}

#[test]
fn with_run_the_loop_goes_on_until_nothing_keeps_it_alive() {
    assert_eq!(entry_that_leaves_work().get(), 1);
}

#[test]
fn with_run_a_loop_that_runs_dry_says_so() {
    let text = panic_of(entry_that_never_ends);
    assert!(text.contains("deadlock: nothing left"), "{text}");
}

#[phaseloop::test(start_paused = true, timeout = "50ms")]
#[should_panic(expected = "the test has not completed within 50ms")]
async fn a_test_that_hangs_fails_after_its_time() {
    std::future::pending().await
}

#[test]
fn the_failure_of_a_test_that_hangs_is_the_report_of_its_loop() {
    let text = panic_of(|| {
        phaseloop::attributes::test(
            phaseloop::Builder::new(),
            Some(Duration::from_millis(20)),
            async {
                let task = phaseloop::task::Builder::new().name("stuck");
                task.spawn(std::future::pending::<()>()).await.unwrap();
            },
        );
    });
    assert!(text.contains("\"stuck\""), "{text}");
}

/// A report takes long on a busy machine: the panic hook resolves a backtrace. The other tests of
/// the binary go on.
#[test]
fn a_report_that_takes_long_does_not_end_the_process() {
    let name = "a_report_that_takes_long_does_not_end_the_process";
    let child = in_child(&[], name, || {
        std::panic::set_hook(Box::new(|_| std::thread::sleep(Duration::from_secs(3))));
        let text = panic_of(|| {
            let limit = Some(Duration::from_millis(1));
            let builder = phaseloop::Builder::new();
            phaseloop::attributes::test(builder, limit, std::future::pending::<()>());
        });
        assert!(text.contains("has not completed within 1ms"), "{text}");
        eprintln!("the process goes on");
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", output.status);
        assert!(text.contains("the process goes on"), "{text}");
    }
}
