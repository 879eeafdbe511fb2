//! System calls of children that fail: an interrupted `wait4` is not the end of a child, and a
//! start that fails says what has failed.
//!
//! Some tests run themselves under `strace`; where there is none, they say so and pass.
#![cfg(all(
    target_os = "linux",
    not(phaseloop_portable_poller),
    feature = "process"
))]

use crate::util::child::in_child;
use crate::util::faults::with_faults;
use std::fs::File;
use std::io::ErrorKind;
use std::process::Stdio;
use std::thread;

use phaseloop::process::Command;
use phaseloop::{OsError, block_on, os_error};

#[test]
fn a_wait_that_is_interrupted_is_made_again() {
    let test = "a_wait_that_is_interrupted_is_made_again";
    with_faults(test, &["wait4:error=EINTR:when=1+2"], || {
        block_on(async {
            for code in [0, 3] {
                let mut command = Command::new("sh");
                let status = command.args(["-c", &format!("exit {code}")]).status();
                assert_eq!(status.await.unwrap().code(), Some(code));
            }
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            assert!(child.try_wait().unwrap().is_none());
            child.start_kill().unwrap();
            assert!(!child.wait().await.unwrap().success());
        });
    });
}

/// The first call of each thread is left alone: the test itself runs on a thread.
#[test]
fn a_start_without_a_process_says_what_failed_and_what_to_do() {
    let test = "a_start_without_a_process_says_what_failed_and_what_to_do";
    // The thread is started first. With glibc that is `clone3`, and so is the start of a process. With
    // musl both are `clone`. A child that has to change its signals is started by the call of `fork`:
    // `clone` with glibc, `fork` with musl on x86.
    let fault = if cfg!(target_env = "musl") {
        "clone:error=EAGAIN:when=2+ fork:error=EAGAIN"
    } else {
        "clone3:error=EAGAIN:when=2+ clone:error=EAGAIN"
    };
    with_faults(test, &[fault], || {
        thread::spawn(|| ()).join().unwrap();
        block_on(async {
            let error = Command::new("true").spawn().unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("spawn \"true\": "), "{text}");
            assert!(text.contains("RLIMIT_NPROC"), "{text}");
            assert_eq!(os_error(&error), Some(11), "EAGAIN");
            assert_eq!(OsError::of(&error).unwrap().operation(), "spawn");
        });
    });
}

/// The first registrations are those of the loop itself.
#[test]
fn a_pipe_that_cannot_be_registered_is_named_and_the_child_is_killed() {
    let test = "a_pipe_that_cannot_be_registered_is_named_and_the_child_is_killed";
    with_faults(test, &["epoll_ctl:error=ENOSPC:when=5+"], || {
        block_on(async {
            let mut command = Command::new("sleep");
            command.arg("60").stdout(Stdio::piped());
            let error = command.spawn().unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with("spawn \"sleep\": its stdout could not"),
                "{text}"
            );
            assert!(text.contains("No space left"), "{text}");
        });
    });
}

#[test]
fn a_number_beyond_the_limit_is_named() {
    let test = "a_number_beyond_the_limit_is_named";
    let child = in_child(
        &["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"],
        test,
        || {
            block_on(async {
                let mut command = Command::new("true");
                command.fd(64, File::open("/dev/null").unwrap());
                let error = command.spawn().unwrap_err();
                let text = error.to_string();
                assert!(text.contains("the number 64"), "{text}");
                assert!(
                    text.contains("RLIMIT_NOFILE") && text.contains("63 is the highest"),
                    "{text}"
                );
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                command = Command::new("true");
                command.fd(63, File::open("/dev/null").unwrap());
                assert!(command.status().await.unwrap().success());
            });
        },
    );
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
}
