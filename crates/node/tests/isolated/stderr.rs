//! What the crate prints on its own account ends no program whose standard error cannot be written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Termination;

use phaseloop::phase;
use phaseloop_node as node;
use phaseloop_node::events::Event;
use phaseloop_node::{EventEmitter, Promise, process};

use crate::util::stderr::{
    Program, assert_each_prints, run_with_full_file, run_with_full_pipe, run_without_reader,
};

/// Everything of the crate that prints.
const PROGRAMS: &[Program] = &[
    ("warning", "NOTHING=1", warning),
    ("listeners", "NOTHING=1", listeners_without_a_loop),
    ("exit", "NOTHING=1", exit_without_a_program),
    ("uncaught", "NOTHING=1", uncaught),
    ("rejection", "NOTHING=1", rejection),
    ("panicked rejection", "NOTHING=1", rejection_by_panic),
    ("unsettled", "NOTHING=1", unsettled),
];

fn warning() {
    let exit = node::run(async { process::emit_warning("Warning", "for nobody") });
    assert_eq!(exit.code(), 0);
}

fn listeners_without_a_loop() {
    const EVENT: Event<()> = Event::new("event");
    let emitter = EventEmitter::new();
    for _ in 0..20 {
        emitter.on(EVENT, |()| ());
    }
}

fn exit_without_a_program() {
    let run = || phaseloop::block_on(async { process::exit(3) });
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}

fn uncaught() {
    let exit = node::run(async {
        node::set_immediate(|| node::throw("thrown"));
    });
    assert_eq!(exit.code(), 1);
}

fn rejection() {
    let exit = node::run(async {
        drop(Promise::<()>::rejected(std::io::Error::other("rejected")));
    });
    assert_eq!(exit.code(), 1);
}

fn rejection_by_panic() {
    let exit = node::run(async {
        drop(node::call(async { panic!("a panic") }));
        phase::check().await;
    });
    assert_eq!(exit.code(), 1);
}

fn unsettled() {
    let exit = node::run(std::future::pending::<()>());
    assert_eq!(
        format!("{:?}", exit.report()),
        format!("{:?}", std::process::ExitCode::from(13))
    );
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
