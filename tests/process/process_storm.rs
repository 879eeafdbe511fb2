//! Many children at once, few descriptors: each end is seen once, nothing stays behind. Each test
//! has a process of its own.
#![cfg(all(target_os = "linux", feature = "process"))]

use crate::util::child::in_child;
use crate::util::trace::ms;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use futures::future::join_all;
use phaseloop::process::{Command, Stdio};
use phaseloop::signal::SignalKind;
use phaseloop::time::sleep;
use phaseloop::{LoopHandle, block_on};
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

/// The numbers that are open, but that of the listing itself.
fn open_descriptors() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all: BTreeSet<_> = names.collect();
    let is_open = |name: &String| std::fs::read_link(format!("/proc/self/fd/{name}")).is_ok();
    all.into_iter().filter(is_open).collect()
}

/// How many children this process has, zombies included.
fn children() -> usize {
    let own = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    let lists =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists.map(|list| list.split_whitespace().count()).sum()
}

fn limit_descriptors(count: u64) {
    let limit = Rlimit {
        current: Some(count),
        maximum: Some(count),
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Runs the test in a process of its own, and checks that nothing is left of it there.
fn alone(test: &str, body: impl FnOnce()) {
    let child = in_child(&[], test, || {
        // Whatever opens once and for all does so now.
        block_on(async { Command::new("true").status().await }).unwrap();
        let before = open_descriptors();
        body();
        // The thread that waits for dropped children closes its descriptors after their end.
        let ended = Instant::now();
        while open_descriptors() != before && ended.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(ms(1));
        }
        assert_eq!(open_descriptors(), before, "a descriptor was left open");
        assert_eq!(children(), 0, "a child was left");
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
}

/// All of them run at the same time: they wait for the end of one pipe.
#[test]
fn a_thousand_children_at_once_with_few_descriptors() {
    alone("a_thousand_children_at_once_with_few_descriptors", || {
        const CHILDREN: usize = 1000;
        limit_descriptors(64);
        block_on(async {
            let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
            let gate = File::from(reader);
            let waits: Vec<_> = (0..CHILDREN)
                .map(|index| {
                    let script = format!("read line; exit {}", index % 251);
                    let mut command = Command::new("sh");
                    let stdin = gate.try_clone().unwrap();
                    let child = command.args(["-c", &script]).stdin(stdin).spawn();
                    let mut child = child.unwrap();
                    async move { (index, child.wait().await.unwrap().code()) }
                })
                .collect();
            assert_eq!(children(), CHILDREN);
            drop(writer);
            for (index, code) in join_all(waits).await {
                assert_eq!(code, Some((index % 251) as i32));
            }
            assert_eq!(children(), 0);
            assert_eq!(LoopHandle::current().handles().len(), 0);
        });
    });
}

#[test]
fn hundreds_of_dropped_children_are_waited_for() {
    alone("hundreds_of_dropped_children_are_waited_for", || {
        limit_descriptors(128);
        block_on(async {
            for index in 0..300 {
                let mut command = Command::new("sleep");
                let child = command
                    .arg("1000")
                    .kill_on_drop(index % 2 == 0)
                    .spawn()
                    .unwrap();
                child.signal(SignalKind::TERM).unwrap();
            }
            while children() > 0 {
                sleep(ms(1)).await;
            }
        });
        // And without a loop.
        block_on(async {
            for _ in 0..50 {
                drop(Command::new("sleep").arg("0.01").spawn().unwrap());
            }
        });
        while children() > 0 {
            std::thread::sleep(ms(1));
        }
    });
}

#[test]
fn streams_kills_and_failures_leave_no_descriptor_behind() {
    alone(
        "streams_kills_and_failures_leave_no_descriptor_behind",
        || {
            limit_descriptors(128);
            block_on(async {
                let outputs = (0..20).map(|index| async move {
                    let script = format!("head -c {} /dev/zero; echo x >&2", index * 10_000);
                    Command::new("sh")
                        .args(["-c", &script])
                        .output()
                        .await
                        .unwrap()
                });
                for (index, output) in join_all(outputs).await.into_iter().enumerate() {
                    assert_eq!(output.stdout.len(), index * 10_000);
                    assert_eq!(output.stderr, b"x\n");
                }
                for _ in 0..50 {
                    let mut command = Command::new("cat");
                    command
                        .stdin(Stdio::piped())
                        .stdout(Stdio::piped())
                        .stderr(Stdio::piped());
                    let mut child = command.spawn().unwrap();
                    child.start_kill().unwrap();
                    assert_eq!(child.wait().await.unwrap().signal(), Some(9));
                    let mut command = Command::new("/no/such");
                    command.stdin(Stdio::piped()).stdout(Stdio::piped());
                    command.fd(7, File::open("/dev/null").unwrap());
                    assert!(command.spawn().is_err());
                    assert!(
                        Command::new("/no/such")
                            .stdout(Stdio::piped())
                            .spawn()
                            .is_err()
                    );
                }
            });
        },
    );
}

/// Out of descriptors, a start fails and nothing comes of it; with one to spare, it works again.
#[test]
fn a_start_without_descriptors_fails_whole() {
    alone("a_start_without_descriptors_fails_whole", || {
        limit_descriptors(40);
        block_on(async {
            let mut held = Vec::new();
            while let Ok(file) = File::open("/dev/null") {
                held.push(file);
            }
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            // Every number of free descriptors, up to enough of them.
            let mut starts = 0;
            for _ in 0..12 {
                match command.spawn() {
                    Ok(mut child) => {
                        starts += 1;
                        assert!(child.wait().await.unwrap().success());
                    }
                    Err(error) => assert_eq!(starts, 0, "{error}"),
                }
                assert_eq!(LoopHandle::current().handles().len(), 0);
                held.pop();
            }
            assert!(starts > 0);
        });
    });
}
