//! Injected faults of system calls: the test runs itself under `strace`, which makes system calls
//! fail.

use std::process::Child;
use std::time::{Duration, Instant};

use super::child::in_child;
use super::strace::{can_trace, log_of};

/// Longer than any process here takes, however busy the machine is. It is reached only when a test
/// fails.
const HANGS: Duration = Duration::from_secs(120);

/// Runs `body` in a process of its own, in which system calls fail as `faults` say.
///
/// A fault is what `strace -e inject=` takes: `write:error=EINTR:when=1` is an interruption of the
/// first write of each thread, `accept4:error=EPERM` an error of every accept. Several calls are
/// named as in `wait4,waitid:error=EINTR`. A space separates alternatives, of which one has to be
/// injected. The test fails if a fault was not injected, if the process fails, or if it hangs.
///
/// `test` is the name of the calling test.
#[track_caller]
pub(crate) fn with_faults(test: &str, faults: &[&str], body: impl FnOnce()) {
    with_faults_of(&[], test, faults, body);
}

/// Does what [`with_faults`] does for those calls only that `filter` lets through: arguments of
/// `strace`.
#[track_caller]
pub(crate) fn with_faults_of(filter: &[&str], test: &str, faults: &[&str], body: impl FnOnce()) {
    if !can_trace() {
        return;
    }
    let log = log_of(test);
    let names = |fault: &str| {
        let names = fault.split(' ').map(|one| one.split(':').next().unwrap());
        names.collect::<Vec<_>>().join(",")
    };
    let calls: Vec<_> = faults.iter().map(|fault| names(fault)).collect();
    let trace = format!("trace={}", calls.join(","));
    let alternatives = faults.iter().flat_map(|fault| fault.split(' '));
    let injections: Vec<_> = alternatives.map(|one| format!("inject={one}")).collect();
    // In a group of its own, which is what `end_of` kills: `strace` alone would leave the process
    // behind.
    let mut wrapper = vec!["setsid", "strace", "-f", "-q", "--seccomp-bpf"];
    wrapper.extend(["-o", log.to_str().unwrap(), "-e", &trace]);
    for injection in &injections {
        wrapper.extend(["-e", injection]);
    }
    wrapper.extend(filter);
    let Some(child) = in_child(&wrapper, test, body) else {
        return;
    };
    end_of(child);
    let report = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    for names in calls {
        let was_injected = |line: &str| {
            let is_named = |name| line.contains(&format!("{name}("));
            names.split(',').any(is_named) && line.contains("(INJECTED)")
        };
        assert!(
            report.lines().any(was_injected),
            "no {names} failed\n{report}"
        );
    }
}

/// Waits for the end of the process, which has to be a success.
fn end_of(mut child: Child) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > HANGS {
            let group = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let hung = start.elapsed() > HANGS;
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!hung, "it hangs\n{stderr}");
    assert!(output.status.success(), "{stderr}");
}
