//! What an echo costs in system calls: one read and one write on either side, and no wait without
//! an event.
//!
//! The test runs itself under `strace`; where there is none, it says so and passes.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::child::in_child;
use crate::util::strace::{can_trace, log_of};
use crate::util::tcp::{expect_success, pair, run};
use std::collections::BTreeMap;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::spawn;

const ROUNDS: usize = 1000;

/// Calls that are none of the echo's: setting up, the test harness. A round more or less would
/// show.
const SLACK: usize = 100;

fn echo() {
    run(async {
        let (mut client, mut server) = pair().await;
        let echo = spawn(async move {
            let mut buffer = [0; 64];
            loop {
                match server.read(&mut buffer).await.unwrap() {
                    0 => return,
                    count => server.write_all(&buffer[..count]).await.unwrap(),
                }
            }
        });
        let mut buffer = [0; 64];
        for _ in 0..ROUNDS {
            client.write_all(b"ping").await.unwrap();
            assert_eq!(client.read(&mut buffer).await.unwrap(), 4);
        }
        drop(client);
        echo.await.unwrap();
    });
}

#[test]
fn an_echo_is_one_read_and_one_write() {
    let test = "an_echo_is_one_read_and_one_write";
    if !can_trace() {
        return;
    }
    let output = log_of(test);
    let wrapper = ["strace", "-f", "-c", "-o", output.to_str().unwrap()];
    let Some(child) = in_child(&wrapper, test, echo) else {
        return;
    };
    expect_success(Some(child));
    let report = std::fs::read_to_string(&output).unwrap();
    std::fs::remove_file(&output).unwrap();
    // The columns: share, seconds, microseconds a call, calls, errors if any, name.
    let calls: BTreeMap<&str, usize> = report
        .lines()
        .filter_map(|line| {
            let columns: Vec<_> = line.split_whitespace().collect();
            Some((*columns.last()?, columns.get(3)?.parse().ok()?))
        })
        .collect();
    let sum = |names: &[&str]| {
        names
            .iter()
            .filter_map(|name| calls.get(name))
            .sum::<usize>()
    };
    // A round is an echo: both ends read and write once.
    let both = 2 * ROUNDS..2 * ROUNDS + SLACK;
    let reads = sum(&["read", "readv", "recv", "recvfrom", "recvmsg"]);
    assert!(both.contains(&reads), "{reads} reads\n{report}");
    let writes = sum(&["write", "writev", "send", "sendto", "sendmsg"]);
    assert!(both.contains(&writes), "{writes} writes\n{report}");
    let waits = sum(&["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
    assert!(waits < 2 * ROUNDS + SLACK, "{waits} waits\n{report}");
    let registrations = sum(&["epoll_ctl"]);
    assert!(
        registrations < SLACK,
        "{registrations} registrations\n{report}"
    );
}
