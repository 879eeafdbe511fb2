//! Child processes: their exit, their end by force, errors of their start, their streams.

use std::io::ErrorKind;
use std::time::Duration;

use futures::future::{join_all, select};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::process::{self, Command, Stdio};
use phaseloop::signal::SignalKind;
use phaseloop::time::sleep;
use phaseloop::{EventLoop, Handle, LoopHandle, OsError, RunMode};

use crate::child::part;
use crate::run;

const PROBE: SignalKind = SignalKind::from_raw(0);

fn runs(id: u32) -> bool {
    process::kill(id as i32, PROBE).is_ok()
}

/// Waits until a process has exited, without the loop.
fn until_ended(id: u32) {
    for _ in 0..3000 {
        if !runs(id) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {id} runs on");
}

#[test]
fn a_child_tells_its_exit_code() {
    run(async {
        let status = part("exit 0").status().await.unwrap();
        assert!(status.success());
        let mut child = part("exit 7").spawn().unwrap();
        assert!(child.is_active());
        assert_eq!(child.wait().await.unwrap().code(), Some(7));
        assert!(!child.is_active());
        assert_eq!(child.wait().await.unwrap().code(), Some(7), "again");
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(7));
    });
}

#[test]
fn each_of_many_children_tells_its_own_code() {
    run(async {
        let children = (0..24).map(|code| part(&format!("exit {code}")).spawn().unwrap());
        let waits = children.map(|mut child| async move { child.wait().await });
        let codes = join_all(waits).await;
        let codes: Vec<_> = codes
            .into_iter()
            .map(|status| status.unwrap().code())
            .collect();
        assert_eq!(codes, (0..24).map(Some).collect::<Vec<_>>());
    });
}

/// R255: they are all reaped before the first is delivered, and delivered in the order of start.
#[test]
fn children_that_have_exited_together_are_delivered_in_the_order_of_their_start() {
    let mut event_loop = EventLoop::new().unwrap();
    let order = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let children: Vec<_> = event_loop.enter(|| {
        let names = ["first", "second", "third"];
        names
            .map(|name| (name, part("exit 0").spawn().unwrap()))
            .into()
    });
    // They wait in another order.
    for (name, child) in children.iter().rev() {
        let (order, exited, name) = (order.clone(), child.exited(), *name);
        drop(event_loop.handle().spawn(async move {
            exited.await.unwrap();
            order.borrow_mut().push(name);
        }));
    }
    for (_, child) in &children {
        until_ended(child.id());
    }
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(*order.borrow(), ["first", "second", "third"]);
}

#[test]
fn a_child_that_was_killed_has_exited_with_code_1() {
    run(async {
        for kind in [SignalKind::KILL, SignalKind::TERM, SignalKind::INT] {
            let mut child = part("sleep").spawn().unwrap();
            assert!(child.try_wait().unwrap().is_none());
            child.signal(PROBE).unwrap();
            let refused = child.signal(SignalKind::HUP).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
            let refused = child.signal(SignalKind::from_raw(99)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput);
            child.signal(kind).unwrap();
            assert_eq!(child.wait().await.unwrap().code(), Some(1), "{kind}");
            child.start_kill().unwrap();
            assert_eq!(child.signal(kind).unwrap_err().kind(), ErrorKind::NotFound);
        }
    });
}

#[test]
fn a_dropped_child_runs_on_unless_it_is_killed_on_drop() {
    run(async {
        let child = part("sleep").spawn().unwrap();
        let id = child.id();
        drop(child);
        assert!(runs(id));
        process::kill(id as i32, SignalKind::KILL).unwrap();
        until_ended(id);
        let child = part("sleep").kill_on_drop(true).spawn().unwrap();
        let id = child.id();
        drop(child);
        until_ended(id);
        let missing = process::kill(id as i32, SignalKind::KILL).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_child_keeps_the_loop_alive_unless_it_is_unref_d() {
    let mut event_loop = EventLoop::new().unwrap();
    let child = event_loop.enter(|| part("sleep").kill_on_drop(true).spawn().unwrap());
    child.unref();
    assert!(!event_loop.run(RunMode::Default).unwrap());
    child.ref_();
    child.start_kill().unwrap();
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert!(!child.is_active(), "its exit was delivered");
}

#[test]
fn a_start_that_fails_names_the_program_or_the_directory() {
    run(async {
        let error = Command::new(r"C:\no\such\program.exe").spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let detail = OsError::of(&error).unwrap();
        assert_eq!(detail.path(), Some(r"C:\no\such\program.exe".as_ref()));
        assert!(!detail.is_directory());
        let error = part("exit 0")
            .current_dir(r"C:\no\such")
            .spawn()
            .unwrap_err();
        assert!(OsError::of(&error).unwrap().is_directory(), "{error}");
        assert_eq!(LoopHandle::current().handles().len(), 0);
    });
}

#[test]
fn the_streams_of_a_child_are_pipes_on_the_loop() {
    run(async {
        let mut child = part("copy")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"hello")
            .await
            .unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(output.status.success());
        assert_eq!(output.stderr, b"hello");
        let output = part("fill 3").stdin(Stdio::null()).output().await.unwrap();
        assert_eq!(output.stderr, b"xxx");
        let output = part("copy").output().await.unwrap();
        assert_eq!(output.stderr, b"", "its input was null");
    });
}

#[test]
fn long_output_arrives_whole() {
    run(async {
        let output = part("fill 1000000").output().await.unwrap();
        assert_eq!(output.stderr.len(), 1_000_000);
        assert!(output.stderr.iter().all(|byte| *byte == b'x'));
    });
}

/// The standard library opens its ends for overlapped operations. Without that, the read would
/// block the loop.
#[test]
fn a_read_from_a_silent_child_does_not_block_the_loop() {
    run(async {
        let mut child = part("copy")
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let mut buffer = [0; 8];
        {
            let read = std::pin::pin!(stderr.read(&mut buffer));
            let pause = std::pin::pin!(sleep(Duration::from_millis(50)));
            let first = select(read, pause).await;
            assert!(matches!(first, futures::future::Either::Right(_)));
        }
        // The read that was given up loses nothing.
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"bytes")
            .await
            .unwrap();
        drop(child.stdin.take());
        let mut text = String::new();
        stderr.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "bytes");
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn bytes_that_were_written_arrive_although_the_writer_was_dropped() {
    run(async {
        for late in [0, 300] {
            let mut child = part(&format!("count {late}"))
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(&vec![7; 300_000]).await.unwrap();
            drop(stdin);
            let output = child.wait_with_output().await.unwrap();
            assert_eq!(String::from_utf8(output.stderr).unwrap(), "300000");
        }
    });
}

#[test]
fn a_write_to_a_child_that_has_exited_is_a_broken_pipe() {
    run(async {
        let mut child = part("exit 0").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        child.wait().await.unwrap();
        let error = async {
            loop {
                stdin.write_all(&[0; 1000]).await?;
                stdin.flush().await?;
            }
            #[allow(unreachable_code, reason = "it has a type")]
            std::io::Result::Ok(())
        };
        assert_eq!(error.await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}
