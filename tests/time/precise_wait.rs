//! Waits to the nanosecond: never early, one wait a turn, and waits in milliseconds where the
//! kernel or a filter of system calls refuses `epoll_pwait2`.
//!
//! The tests run themselves under `strace`; where there is none, they say so and pass.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::child::in_child;
use crate::util::strace::{can_trace, log_of};
use crate::util::trace::turn;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use phaseloop::time::sleep;
use phaseloop::{EventLoop, block_on};
use rustix::event::{PollFd, PollFlags, poll};

const SLEEPS: usize = 100;

/// Waits that are none of the sleeps': the begin and the end of the loop.
const SLACK: usize = 10;

const TENTH: Duration = Duration::from_micros(100);

/// Sleeps one after the other. None may be early.
fn sleep_often() {
    block_on(async {
        for _ in 0..SLEEPS {
            let start = Instant::now();
            sleep(TENTH).await;
            assert!(start.elapsed() >= TENTH);
        }
    });
}

/// Drives a loop with one sleep by its descriptor alone, as a foreign loop does.
fn sleep_in_a_host() {
    let mut event_loop = EventLoop::new().unwrap();
    let backend = event_loop.backend().unwrap();
    let start = Instant::now();
    let task = event_loop.handle().spawn(async { sleep(TENTH).await });
    while !task.is_finished() {
        let mut fds = [PollFd::from_borrowed_fd(backend.as_fd(), PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        turn(&mut event_loop);
    }
    assert!(start.elapsed() >= TENTH);
}

/// Runs `sleep_often` under `strace`, with a fault of the precise wait if one is given, and returns
/// the waits. `None` in the traced process, and where nothing can be traced.
#[track_caller]
fn waits_of(test: &str, fault: Option<&str>) -> Option<Vec<String>> {
    if !can_trace() {
        return None;
    }
    let log = log_of(test);
    let fault = fault.map(|fault| format!("inject=epoll_pwait2:{fault}"));
    let mut wrapper = vec!["strace", "-f", "-q", "-o", log.to_str().unwrap()];
    wrapper.extend(["-e", "trace=/epoll_p?wait.*,timerfd_settime"]);
    wrapper.extend(fault.iter().flat_map(|fault| ["-e", fault]));
    let mut child = in_child(&wrapper, test, sleep_often)?;
    assert!(child.wait().unwrap().success());
    let report = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    let is_call = |line: &&str| line.contains("epoll_") || line.contains("timerfd_");
    Some(report.lines().filter(is_call).map(String::from).collect())
}

/// W1: a turn has one wait, also if it waits for less than a millisecond.
#[test]
fn a_short_sleep_is_one_wait() {
    let Some(waits) = waits_of("a_short_sleep_is_one_wait", None) else {
        return;
    };
    let count = waits.len();
    let expected = SLEEPS..SLEEPS + SLACK;
    assert!(expected.contains(&count), "{count}: {waits:#?}");
    let is_timer = |wait: &String| wait.contains("timerfd");
    assert!(!waits.iter().any(is_timer), "{waits:#?}");
}

/// The first refusal is remembered for the process: the call costs nothing from then on.
#[track_caller]
fn assert_waits_in_milliseconds(test: &str, error: &str) {
    let fault = format!("error={error}");
    let Some(waits) = waits_of(test, Some(&fault)) else {
        return;
    };
    let is_refused = |wait: &&String| wait.contains("(INJECTED)");
    assert_eq!(waits.iter().filter(is_refused).count(), 1, "{waits:#?}");
    let expected = SLEEPS + 1..SLEEPS + 1 + SLACK;
    assert!(expected.contains(&waits.len()), "{waits:#?}");
}

#[test]
fn a_kernel_without_precise_waits_makes_no_sleep_early() {
    let test = "a_kernel_without_precise_waits_makes_no_sleep_early";
    assert_waits_in_milliseconds(test, "ENOSYS");
}

#[test]
fn a_filter_that_refuses_precise_waits_makes_no_sleep_early() {
    let test = "a_filter_that_refuses_precise_waits_makes_no_sleep_early";
    assert_waits_in_milliseconds(test, "EPERM");
}

#[test]
fn a_signal_that_interrupts_a_precise_wait_makes_no_sleep_early() {
    let test = "a_signal_that_interrupts_a_precise_wait_makes_no_sleep_early";
    let Some(waits) = waits_of(test, Some("error=EINTR:when=1+2")) else {
        return;
    };
    assert!(
        waits.iter().any(|wait| wait.contains("EINTR")),
        "{waits:#?}"
    );
}

/// The timer of the descriptor is precise by itself, whatever the waits are.
#[test]
fn a_host_gets_a_precise_sleep_by_the_descriptor() {
    sleep_in_a_host();
}
