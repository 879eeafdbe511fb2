//! What the crate prints on its own account ends no program whose standard error cannot be written.

use std::time::Duration;

use phaseloop::signal::SignalKind;
use phaseloop::time::sleep;
use phaseloop::{Builder, UnhandledPanic, phase, spawn};

use crate::util::raise::raise;
use crate::util::stderr::{
    Program, assert_each_prints, run_with_full_file, run_with_full_pipe, run_without_reader,
};

/// Everything of the crate that prints.
const PROGRAMS: &[Program] = &[
    ("environment", "PHASELOOP_SLOW=soon", plain),
    ("trace", "PHASELOOP_TRACE=/nowhere/trace.json", plain),
    ("recorder", "PHASELOOP_SLOW=0", plain),
    ("debug log", "PHASELOOP_DEBUG=*", plain),
    ("watchdog", "PHASELOOP_WATCHDOG=1ms", blocked),
    ("report", "PHASELOOP_REPORT=USR1", reported),
    (
        "report file",
        "PHASELOOP_REPORT=USR1:/nowhere/file",
        reported,
    ),
    ("report_on", "NOTHING=1", reported_by_builder),
    ("unhandled panic", "NOTHING=1", unhandled_panic),
    ("shuffle", "PHASELOOP_SHUFFLE=7", shuffled),
];

fn plain() {
    phaseloop::block_on(async {
        spawn(sleep(Duration::from_millis(1))).await.unwrap();
    });
}

/// Blocks its loop until the watchdog has seen it.
fn blocked() {
    phaseloop::block_on(async {
        std::thread::sleep(Duration::from_millis(200));
        phase::check().await;
    });
}

fn reported() {
    phaseloop::block_on(async {
        raise(SignalKind::USR1);
        sleep(Duration::from_millis(20)).await;
    });
}

fn reported_by_builder() {
    let builder = Builder::new().report_on(SignalKind::USR1);
    builder.build().unwrap().block_on(async {
        raise(SignalKind::USR1);
        sleep(Duration::from_millis(20)).await;
    });
}

fn unhandled_panic() {
    let builder = Builder::new().unhandled_panic(UnhandledPanic::Report);
    builder.build().unwrap().block_on(async {
        spawn(async { panic!("no task awaits it") }).detach();
        phase::check().await;
    });
}

fn shuffled() {
    let event_loop = Builder::new().start_paused(true).build().unwrap();
    event_loop.block_on(async { sleep(Duration::from_millis(1)).await });
}

#[test]
fn a_full_standard_error_ends_no_program() {
    run_with_full_file(PROGRAMS, "a_full_standard_error_ends_no_program");
}

#[test]
fn a_standard_error_without_a_reader_ends_no_program() {
    run_without_reader(
        PROGRAMS,
        "a_standard_error_without_a_reader_ends_no_program",
    );
}

#[test]
fn a_full_pipe_that_does_not_block_ends_no_program() {
    run_with_full_pipe(PROGRAMS, "a_full_pipe_that_does_not_block_ends_no_program");
}

/// The programs above print.
#[test]
fn each_of_the_programs_prints() {
    assert_each_prints(PROGRAMS, "each_of_the_programs_prints");
}
