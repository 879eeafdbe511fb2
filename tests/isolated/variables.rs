//! The variables `PHASELOOP_WATCHDOG`, `PHASELOOP_REPORT` and `PHASELOOP_DEBUG`, each in a process
//! of its own that knows nothing of them.

use std::time::Duration;

use crate::util::child::in_child;
use crate::util::gate::{block_until_let_go, read_and_let_go};
#[cfg(unix)]
use crate::util::raise::raise;
use phaseloop::context::Variable;
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::stream::StreamExt;
use phaseloop::time::{Timer, sleep};
use phaseloop::{Builder, LoopHandle, next_tick, set_immediate, spawn, spawn_blocking};
#[cfg(unix)]
use phaseloop::{
    process::Command,
    signal::{SignalKind, Signals},
};

const MS: Duration = Duration::from_millis(1);

/// What the test named `test` prints on standard error with this variable, in a process of its own.
#[track_caller]
fn printed(variable: &str, test: &str, body: impl FnOnce()) -> Option<String> {
    let child = in_child(&["env", variable], test, body)?;
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    Some(text)
}

/// A sleep, a timer and a task.
fn program() {
    phaseloop::block_on(async {
        let timer = Timer::new(&LoopHandle::current());
        timer.start(MS, Duration::ZERO, |_| ()).unwrap();
        let task = spawn(async { sleep(10 * MS).await });
        task.await.unwrap();
    });
}

#[test]
fn the_debug_log_has_lines_of_the_chosen_area_only() {
    let test = "the_debug_log_has_lines_of_the_chosen_area_only";
    let Some(text) = printed("PHASELOOP_DEBUG=timers", test, program) else {
        return;
    };
    let lines: Vec<_> = text.lines().collect();
    let are_timers = lines
        .iter()
        .all(|line| line.starts_with("PHASELOOP TIMERS "));
    assert!(are_timers && !lines.is_empty(), "{text}");
    let count = |parts: [&str; 2]| {
        let has = |line: &&&str| parts.iter().all(|part| line.contains(part));
        lines.iter().filter(has).count()
    };
    for kind in [
        ": sleep (tests/isolated/variables.rs:",
        ": timer (tests/isolated/variables.rs:",
    ] {
        assert_eq!(count([kind, ") armed, due in "]), 1, "{kind} in:\n{text}");
        assert_eq!(count([kind, ") fires, "]), 1, "{kind} in:\n{text}");
    }
}

#[test]
fn the_debug_log_of_all_areas_tells_of_tasks_and_waits() {
    let test = "the_debug_log_of_all_areas_tells_of_tasks_and_waits";
    let program = || {
        phaseloop::block_on(async {
            // On a busy machine a sleep may be over before the loop waits for it.
            let remote = LoopHandle::current().remote();
            while remote.utilization().idle.is_zero() {
                spawn(sleep(10 * MS)).await.unwrap();
            }
        });
    };
    if let Some(text) = printed("PHASELOOP_DEBUG=*", test, program) {
        let parts = [
            "PHASELOOP LOOP ",
            ": a turn begins",
            "PHASELOOP POLL ",
            ": the loop waits",
            " events after a wait of ",
            "PHASELOOP TASKS ",
            ") is spawned",
            ") is polled",
            ": task 1 is woken",
            ": task 1 has ended",
        ];
        for part in parts {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}

/// A program with something for each area.
#[cfg(unix)]
fn everything() {
    static REQUEST: Variable<u32> = Variable::new();
    phaseloop::block_on(async {
        next_tick(|| ());
        REQUEST.run(7, || {
            set_immediate(|| ());
            spawn(async { sleep(MS).await }).detach();
        });
        let (mut reader, mut writer) = phaseloop::io::pipe().unwrap();
        let reading = spawn(async move { reader.read(&mut [0; 8]).await.unwrap() });
        sleep(MS).await;
        writer.write_all(b"x").await.unwrap();
        assert_eq!(reading.await.unwrap(), 1);
        phaseloop::fs::metadata("Cargo.toml").await.unwrap();
        spawn_blocking(|| ()).await.unwrap();
        assert!(Command::new("true").status().await.unwrap().success());
        let mut signals = Signals::new([SignalKind::USR1]).unwrap();
        raise(SignalKind::USR1);
        signals.next().await.unwrap();
    });
}

/// The areas, each with what one of its lines reports and with the end of that line.
const AREAS: &[(&str, &str, &str)] = &[
    ("loop", ": queued entry", " runs in the check phase"),
    ("timers", ": sleep (tests/isolated/variables.rs:", " late"),
    ("poll", " events after a wait of ", "s"),
    ("io", ": pipe", ") is ready"),
    (
        "tasks",
        ": task 1 (tests/isolated/variables.rs:",
        ") is spawned",
    ),
    ("lanes", ": a tick (tests/isolated/variables.rs:", ") runs"),
    (
        "pool",
        ": spawn_blocking (tests/isolated/variables.rs:",
        ") is queued",
    ),
    (
        "signal",
        ": signal SIGUSR1 (tests/isolated/variables.rs:",
        ") is received",
    ),
    ("process", ": child ", " \"true\" has exited"),
    ("fs", ": metadata \"Cargo.toml\"", " is queued"),
    ("context", ": a value of type u32", " is set"),
    (
        "context",
        ": task 1 (tests/isolated/variables.rs:",
        ") is polled with 1 value",
    ),
    ("fs", ": metadata", " has ended"),
];

#[cfg(unix)]
#[test]
fn each_area_has_lines_of_its_own() {
    let test = "each_area_has_lines_of_its_own";
    for (area, begin, end) in AREAS {
        let Some(text) = printed(&format!("PHASELOOP_DEBUG={area}"), test, everything) else {
            return;
        };
        let prefix = format!("PHASELOOP {} ", area.to_uppercase());
        for line in text.lines() {
            assert!(line.starts_with(&prefix), "{area}: {line} in:\n{text}");
        }
        let is_it = |line: &str| line.contains(begin) && line.ends_with(end);
        assert!(
            text.lines().any(is_it),
            "{area}: {begin} … {end} in:\n{text}"
        );
    }
}

#[test]
fn unknown_areas_are_named_once() {
    let test = "unknown_areas_are_named_once";
    let body = || {
        program();
        program();
    };
    if let Some(text) = printed("PHASELOOP_DEBUG=clocks", test, body) {
        let expected =
            "phaseloop: PHASELOOP_DEBUG=clocks: no area is named clocks; the areas are loop timers";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// Blocks the loop until that is reported.
fn stuck() {
    phaseloop::block_on(async {
        block_until_let_go();
        sleep(MS).await;
    });
}

#[test]
fn a_watchdog_comes_from_the_environment() {
    let test = "a_watchdog_comes_from_the_environment";
    if let Some(child) = in_child(&["env", "PHASELOOP_WATCHDOG=10ms"], test, stuck) {
        let text = read_and_let_go(child, "so far");
        let reported = text.find("phaseloop: stall: ").expect(&text);
        assert!(
            text[reported..].contains("so far: the main future ("),
            "{text}"
        );
        assert!(text.contains("phaseloop: stall: over after "), "{text}");
        assert!(text.contains("What keeps the loop alive"), "{text}");
    }
}

/// Asks for a report.
#[cfg(unix)]
fn asked() {
    phaseloop::block_on(async {
        sleep(MS).await;
        raise(SignalKind::USR1);
        sleep(MS).await;
    });
}

#[cfg(unix)]
#[test]
fn a_report_on_a_signal_comes_from_the_environment() {
    let test = "a_report_on_a_signal_comes_from_the_environment";
    if let Some(text) = printed("PHASELOOP_REPORT=USR1", test, asked) {
        assert!(
            text.contains(" on SIGUSR1:\nWhat keeps the loop alive"),
            "{text}"
        );
        assert!(text.contains("utilization "), "{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_report_may_go_to_a_file() {
    let path = std::env::temp_dir().join("phaseloop-report-of-a-test");
    let variable = format!("PHASELOOP_REPORT=USR1:{}", path.display());
    let test = "a_report_may_go_to_a_file";
    let body = || {
        asked();
        asked();
    };
    if let Some(text) = printed(&variable, test, body) {
        assert_eq!(text, "", "nothing is printed");
        let report = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            report.matches("phaseloop: report of process ").count(),
            2,
            "{report}"
        );
        assert_eq!(report.matches("utilization ").count(), 2, "{report}");
    }
}

#[test]
fn a_loop_may_ignore_the_environment() {
    let test = "a_loop_may_ignore_the_environment";
    let body = || {
        let event_loop = Builder::new().ignore_environment().build().unwrap();
        event_loop.block_on(async { sleep(MS).await });
    };
    if let Some(text) = printed("PHASELOOP_DEBUG=*", test, body) {
        assert_eq!(text, "");
    }
}
