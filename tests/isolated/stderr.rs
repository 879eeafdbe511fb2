//! What the crate prints on its own account ends no program whose standard error cannot be written.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Stdio, Termination};
use std::time::Duration;

use phaseloop::node::events::Event;
use phaseloop::node::{self, EventEmitter, Promise, process};
use phaseloop::signal::SignalKind;
use phaseloop::time::sleep;
use phaseloop::{Builder, UnhandledPanic, phase, spawn};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::raise;

use crate::util::child::in_child_with;

/// The variable by which the child knows its program.
const PROGRAM: &str = "PHASELOOP_TEST_PROGRAM";

/// A program by its name, with the variable that makes it print.
type Program = (&'static str, &'static str, fn());

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
    ("warning", "NOTHING=1", warning),
    ("listeners", "NOTHING=1", listeners_without_a_loop),
    ("exit", "NOTHING=1", exit_without_a_program),
    ("uncaught", "NOTHING=1", uncaught),
    ("rejection", "NOTHING=1", rejection),
    ("panicked rejection", "NOTHING=1", rejection_by_panic),
    ("unsettled", "NOTHING=1", unsettled),
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
        raise(SIGUSR1).unwrap();
        sleep(Duration::from_millis(20)).await;
    });
}

fn reported_by_builder() {
    let builder = Builder::new().report_on(SignalKind::USR1);
    builder.build().unwrap().block_on(async {
        raise(SIGUSR1).unwrap();
        sleep(Duration::from_millis(20)).await;
    });
}

fn unhandled_panic() {
    let builder = Builder::new().unhandled_panic(UnhandledPanic::Report);
    builder.build().unwrap().block_on(async {
        spawn(async { panic!("nobody awaits it") }).detach();
        phase::check().await;
    });
}

fn shuffled() {
    let event_loop = Builder::new().start_paused(true).build().unwrap();
    event_loop.block_on(async { sleep(Duration::from_millis(1)).await });
}

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

/// Runs each program with what `stderr` returns as its standard error.
#[track_caller]
fn runs_with(test: &str, stderr: impl Fn() -> Stdio) {
    if let Ok(name) = std::env::var(PROGRAM) {
        let program = PROGRAMS.iter().find(|program| program.0 == name);
        return program.unwrap().2();
    }
    for (name, variable, _) in PROGRAMS {
        let program = format!("{PROGRAM}={name}");
        let child = in_child_with(stderr(), &["env", &program, variable], test, || ());
        let status = child.unwrap().wait().unwrap();
        assert!(status.success(), "{name}: {status}");
    }
}

#[test]
fn a_full_standard_error_ends_no_program() {
    runs_with("a_full_standard_error_ends_no_program", || {
        let full = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty());
        full.unwrap().into()
    });
}

#[test]
fn a_standard_error_without_a_reader_ends_no_program() {
    runs_with("a_standard_error_without_a_reader_ends_no_program", || {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        drop(reader);
        writer.into()
    });
}

#[test]
fn a_full_pipe_that_does_not_block_ends_no_program() {
    let (_reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
    runs_with("a_full_pipe_that_does_not_block_ends_no_program", || {
        writer.try_clone().unwrap().into()
    });
}

/// The programs above print.
#[test]
fn each_of_the_programs_prints() {
    let test = "each_of_the_programs_prints";
    if let Ok(name) = std::env::var(PROGRAM) {
        let program = PROGRAMS.iter().find(|program| program.0 == name);
        return program.unwrap().2();
    }
    for (name, variable, _) in PROGRAMS {
        let program = format!("{PROGRAM}={name}");
        let wrapper = ["env", &program, variable];
        let child = in_child_with(Stdio::piped(), &wrapper, test, || ());
        let output = child.unwrap().wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let prints = ["phaseloop:", "PHASELOOP"];
        let is_printed = prints.iter().any(|part| text.contains(part));
        assert!(output.status.success() && is_printed, "{name}: {text}");
    }
}
