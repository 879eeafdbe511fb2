//! Waits to the nanosecond: never early, one wait a turn, and waits in milliseconds where the
//! kernel or a filter of system calls refuses `epoll_pwait2`.
//!
//! The tests run themselves under `strace`; where there is none, they say so and pass.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::child::in_child;
use crate::util::strace::{can_trace, log_of};
use crate::util::trace::turn;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use phaseloop::time::sleep;
use phaseloop::{EventLoop, block_on};
use rustix::event::{PollFd, PollFlags, poll};

const SLEEPS: usize = 100;

/// One wait for a sleep, and a few at the begin and the end of the loop. On a busy machine a sleep
/// may be due before its wait.
const EXPECTED: RangeInclusive<usize> = SLEEPS / 2..=SLEEPS + 10;

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
    waits_of_body(test, fault, sleep_often)
}

/// Does what [`waits_of`] does, for another body.
#[track_caller]
fn waits_of_body(test: &str, fault: Option<&str>, body: fn()) -> Option<Vec<String>> {
    if !can_trace() {
        return None;
    }
    let log = log_of(test);
    let fault = fault.map(|fault| format!("inject=epoll_pwait2:{fault}"));
    let mut wrapper = vec!["strace", "-f", "-q", "-o", log.to_str().unwrap()];
    wrapper.extend(["-e", "trace=/epoll_p?wait.*,timerfd_settime"]);
    wrapper.extend(fault.iter().flat_map(|fault| ["-e", fault]));
    let mut child = in_child(&wrapper, test, body)?;
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
    assert!(EXPECTED.contains(&count), "{count}: {waits:#?}");
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
    assert!(EXPECTED.contains(&waits.len()), "{waits:#?}");
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

const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Milliseconds in 32 bits end after 25 days.
#[test]
fn a_wait_of_a_month_needs_no_precise_wait() {
    let test = "a_wait_of_a_month_needs_no_precise_wait";
    let waits = waits_of_body(test, Some("error=ENOSYS"), || {
        block_on(async {
            let (sender, receiver) = futures::channel::oneshot::channel();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                sender.send(7).unwrap();
            });
            let received = phaseloop::time::timeout(MONTH, receiver).await;
            assert_eq!(received.unwrap().unwrap(), 7);
            thread.join().unwrap();
        });
        // A turn with a limit, without a timer.
        let mut event_loop = EventLoop::new().unwrap();
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = other.local_addr().unwrap();
        let task = event_loop.handle().spawn(async move {
            let socket = phaseloop::net::UdpSocket::bind("127.0.0.1:0")
                .await
                .unwrap();
            socket.send_to(b"question", to).await.unwrap();
            socket.recv(&mut [0; 8]).await.unwrap()
        });
        let thread = std::thread::spawn(move || {
            let from = other.recv_from(&mut [0; 8]).unwrap().1;
            std::thread::sleep(Duration::from_millis(50));
            other.send_to(b"answer", from).unwrap();
        });
        while !task.is_finished() {
            event_loop.turn(Some(MONTH)).unwrap();
        }
        thread.join().unwrap();
    });
    let Some(waits) = waits else {
        return;
    };
    let is_refused = |wait: &&String| wait.contains("(INJECTED)");
    assert_eq!(waits.iter().filter(is_refused).count(), 1, "{waits:#?}");
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
