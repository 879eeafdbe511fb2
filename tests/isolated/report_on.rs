//! A report on a signal. Each test runs in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use crate::util::child::in_child;
#[cfg(unix)]
use crate::util::raise::raise;
use phaseloop::Builder;
use phaseloop::net::TcpListener;
#[cfg(unix)]
use phaseloop::signal::SignalKind;
use phaseloop::time::sleep;

/// The text that a test prints on standard error in a process of its own.
fn printed(test: &str, body: impl FnOnce()) -> Option<String> {
    let mut child = in_child(&[], test, body)?;
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    Some(text)
}

#[cfg(unix)]
#[test]
fn a_loop_that_waits_prints_its_report_and_its_metrics_on_the_signal() {
    let body = || {
        let event_loop = Builder::new().report_on(SignalKind::USR2).build().unwrap();
        event_loop.block_on(async {
            let handle = phaseloop::LoopHandle::current();
            assert_eq!(handle.handles(), [], "the listener is no handle");
            let _listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sleep(Duration::from_millis(1)).await;
            raise(SignalKind::USR2);
            sleep(Duration::from_millis(1)).await;
        });
        // The listener does not keep a loop alive.
        let again = phaseloop::run(async {});
        again.unwrap();
    };
    let test = "a_loop_that_waits_prints_its_report_and_its_metrics_on_the_signal";
    if let Some(text) = printed(test, body) {
        let parts = [
            "phaseloop: report of process ",
            " on SIGUSR2:",
            "What keeps the loop alive (",
            "TcpListener 127.0.0.1:",
            "utilization ",
        ];
        for part in parts {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        assert_eq!(text.matches("phaseloop: report").count(), 1, "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_that_cannot_be_caught_is_refused() {
    for signal in [SignalKind::KILL, SignalKind::STOP, SignalKind::SEGV] {
        let built = Builder::new().report_on(signal).build();
        let error = built.expect_err("it cannot be caught");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

/// The loop does not answer for more than a second: its watchdog does, although the limit of the
/// watchdog is far away.
#[cfg(unix)]
#[test]
fn the_watchdog_answers_for_a_loop_that_is_stuck() {
    use phaseloop::observe::{Stall, Watchdog};
    use std::sync::mpsc::channel;

    let body = || {
        let (send, reported) = channel();
        let watchdog = Watchdog::new(Duration::from_secs(4 * 3600)).then(move |stall: &Stall| {
            let _ = send.send(stall.clone());
        });
        let builder = Builder::new()
            .watchdog(watchdog)
            .report_on(SignalKind::USR1);
        let event_loop = builder.build().unwrap();
        event_loop.block_on(async {
            raise(SignalKind::USR1);
            let stall = reported.recv().unwrap();
            eprintln!("{stall}");
        });
    };
    let test = "the_watchdog_answers_for_a_loop_that_is_stuck";
    if let Some(text) = printed(test, body) {
        assert!(text.contains("so far: the main future ("), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_from_another_process_is_answered() {
    let body = || {
        let event_loop = Builder::new().report_on(SignalKind::USR1).build().unwrap();
        event_loop.block_on(async {
            eprintln!("ready");
            sleep(Duration::from_secs(3600)).await;
        });
    };
    let test = "a_signal_from_another_process_is_answered";
    let Some(mut child) = in_child(&[], test, body) else {
        return;
    };
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = |text: &str| {
        let found = lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("the child ended before {text:?}"))
    };
    next("ready");
    let pid = rustix::process::Pid::from_child(&child);
    for _ in 0..2 {
        rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
        next("What keeps the loop alive");
        next("sleep (tests/isolated/report_on.rs:");
        next("utilization");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
