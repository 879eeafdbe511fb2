//! Terminals on real pseudo-terminals, R208–R214: what is one, its modes and their way back, its
//! size.
#![cfg(all(target_os = "linux", feature = "tty"))]

use crate::util::child::in_child;
use crate::util::pty::open_pty;
use crate::util::screen::read_until;
use crate::util::strace::{can_trace, log_of};
use crate::util::terminal::start_in;
use crate::util::trace::{finish, paused, turn};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use phaseloop::io::StdioKind;
use phaseloop::signal::{SignalKind, Signals};
use phaseloop::tty::{self, Mode, Tty};
use phaseloop::{Handle, block_on, spawn};
use rustix::fs::OFlags;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, Termios, Winsize, tcgetattr, tcsetattr,
};
use tokio_test::assert_pending;

/// Starts the test named `test` once more in a process whose terminal this is, where it runs `body`
/// and does not return.
fn child(test: &str, terminal: OwnedFd, body: impl FnOnce()) -> Child {
    start_in(test, terminal, Stdio::null(), body)
}

fn check(child: Child) {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

/// What of the settings the modes are about.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    input: InputModes,
    output: OutputModes,
    local: LocalModes,
}

fn settings(terminal: impl AsFd) -> Found {
    let Termios {
        input_modes: input,
        output_modes: output,
        local_modes: local,
        ..
    } = tcgetattr(terminal).unwrap();
    Found {
        input,
        output,
        local,
    }
}

fn is_nonblocking(descriptor: impl AsFd) -> bool {
    let flags = rustix::fs::fcntl_getfl(descriptor).unwrap();
    flags.contains(OFlags::NONBLOCK)
}

fn resize(controller: &File, columns: u16, rows: u16) {
    let size = Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(controller, size).unwrap();
}

#[test]
fn r208_libuv_tty_file() {
    block_on(async {
        let files = ["/proc/self/exe", "/", "/dev/null", "/dev/random"];
        let mut descriptors: Vec<OwnedFd> = files
            .iter()
            .map(|path| File::open(path).unwrap().into())
            .collect();
        let (socket, _other) = UnixStream::pair().unwrap();
        descriptors.push(socket.into());
        for descriptor in descriptors {
            let error = Tty::from_fd(&descriptor).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{descriptor:?}");
        }
    });
}

#[test]
fn r209_libuv_tty_pty() {
    let (controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        let other_side = Tty::from_fd(&controller).unwrap();
        for both in [&tty, &other_side] {
            assert_eq!(StdioKind::of(both), StdioKind::Terminal);
            both.set_mode(Mode::Raw).unwrap();
            both.set_mode(Mode::Normal).unwrap();
        }
        // Non-blocking by itself: the descriptor it was made from is not.
        assert!(is_nonblocking(&tty) && !is_nonblocking(&terminal));
        assert!(!is_nonblocking(&controller), "nor the other side");
        (&other_side).write_all(b"typed\n").await.unwrap();
        let mut buffer = [0; 64];
        let count = (&tty).read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"typed\n");
        (&tty).write_all(b"printed\n").await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"printed\r\n") {
            let count = (&other_side).read(&mut buffer).await.unwrap();
            text.extend_from_slice(&buffer[..count]);
        }
        tty.close_now().await;
    });
}

/// More than the terminal passes on at once, and its writer goes: everything arrives, then the end.
#[test]
fn libuv_tty_pty_partial() {
    let (controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        drop(terminal);
        tty.set_mode(Mode::Io).unwrap();
        let reader = spawn(async move {
            let controller = Tty::from_fd(&controller).unwrap();
            let mut total = 0;
            let mut buffer = [0; 4096];
            loop {
                match (&controller).read(&mut buffer).await {
                    Ok(0) => return total,
                    Ok(count) => total += count,
                    // Linux reports this way that no process has the terminal open any more.
                    Err(error) => {
                        assert_eq!(error.raw_os_error(), Some(5));
                        return total;
                    }
                }
            }
        });
        (&tty).write_all(&[b'a'; 100_000]).await.unwrap();
        drop(tty);
        assert_eq!(reader.await.unwrap(), 100_000);
    });
}

#[test]
fn r210_what_the_modes_change() {
    let (_controller, terminal) = open_pty();
    let normal = settings(&terminal);
    assert!(
        normal
            .local
            .contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    );
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        assert_eq!(tty.mode(), Mode::Normal);
        let keys = LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        let lines = InputModes::ICRNL | InputModes::IXON | InputModes::BRKINT;

        tty.set_mode(Mode::Raw).unwrap();
        let raw = settings(&terminal);
        assert!(!raw.local.intersects(keys | LocalModes::ISIG));
        assert!(!raw.input.intersects(lines));
        assert!(raw.output.contains(OutputModes::OPOST | OutputModes::ONLCR));

        tty.set_mode(Mode::Cbreak).unwrap();
        let cbreak = settings(&terminal);
        assert!(!cbreak.local.intersects(keys) && cbreak.local.contains(LocalModes::ISIG));
        assert!(cbreak.output.contains(OutputModes::OPOST));

        tty.set_mode(Mode::Io).unwrap();
        let io = settings(&terminal);
        assert!(!io.local.intersects(keys | LocalModes::ISIG));
        assert!(!io.output.contains(OutputModes::OPOST));
        assert_eq!(tty.mode(), Mode::Io);

        tty.set_mode(Mode::Normal).unwrap();
        assert_eq!(settings(&terminal), normal);
    });
}

/// Other code changes the mode in between. The second call does nothing, so the change stays.
#[test]
fn r210_the_same_mode_again_is_not_set() {
    let (_controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        tty.set_mode(Mode::Raw).unwrap();
        let mut changed = tcgetattr(&terminal).unwrap();
        changed.local_modes |= LocalModes::ECHO;
        tcsetattr(&terminal, OptionalActions::Now, &changed).unwrap();
        tty.set_mode(Mode::Raw).unwrap();
        assert!(settings(&terminal).local.contains(LocalModes::ECHO));
        tty.set_mode(Mode::Cbreak).unwrap();
        assert!(!settings(&terminal).local.contains(LocalModes::ECHO));
    });
}

#[test]
fn keys_come_one_by_one_and_are_not_echoed() {
    let (controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        let mut buffer = [0; 16];
        (&controller).write_all(b"a").unwrap();
        // The end of the line has not come.
        assert_pending!(tokio_test::task::spawn((&tty).read(&mut buffer)).poll());
        tty.set_mode(Mode::Raw).unwrap();
        for key in [&b"a"[..], b"\x03", b"\x1b[A", b"\r"] {
            if key != b"a" {
                (&controller).write_all(key).unwrap();
            }
            let count = (&tty).read(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..count], key);
        }
        (&tty).write_all(b"end\n").await.unwrap();
        // The first key was echoed before the mode changed; nothing else was.
        assert_eq!(read_until(&controller, "end\r\n"), "aend\r\n");
    });
}

#[test]
fn r212_the_settings_come_back_with_drop_close_and_panic() {
    let (_controller, terminal) = open_pty();
    let normal = settings(&terminal);
    block_on(async {
        let raw = || {
            let tty = Tty::from_fd(&terminal).unwrap();
            tty.set_mode(Mode::Raw).unwrap();
            assert_ne!(settings(&terminal), normal);
            tty
        };
        drop(raw());
        assert_eq!(settings(&terminal), normal);
        let close = raw().close_now();
        assert_eq!(settings(&terminal), normal, "at once");
        close.await;
        let tty = raw();
        let task = spawn(async move {
            let _tty = tty;
            std::panic::resume_unwind(Box::new("the task panics"));
        });
        assert!(task.await.is_err());
        assert_eq!(settings(&terminal), normal);
        // One that goes with its loop.
        let tty = raw();
        drop(spawn(async move {
            let _tty = tty;
            std::future::pending::<()>().await;
        }));
    });
    assert_eq!(settings(&terminal), normal);
}

#[test]
fn the_last_of_several_brings_the_settings_back() {
    let (_controller, terminal) = open_pty();
    let normal = settings(&terminal);
    block_on(async {
        let one = Tty::from_fd(&terminal).unwrap();
        let other = Tty::from_fd(&terminal).unwrap();
        one.set_mode(Mode::Raw).unwrap();
        let raw = settings(&terminal);
        other.set_mode(Mode::Raw).unwrap();
        drop(one);
        assert_eq!(settings(&terminal), raw);
        other.set_mode(Mode::Normal).unwrap();
        assert_eq!(settings(&terminal), normal, "and not what it found itself");
    });
}

/// In a process of its own: all terminals are brought back.
#[test]
fn r211_reset_mode_brings_all_terminals_back() {
    let (_controller, terminal) = open_pty();
    let test = "r211_reset_mode_brings_all_terminals_back";
    check(child(test, terminal, || {
        let (_controller, second) = open_pty();
        let terminals = [
            std::io::stdin().as_fd().try_clone_to_owned().unwrap(),
            second,
        ];
        let normal = terminals.each_ref().map(settings);
        block_on(async {
            let ttys = terminals.each_ref().map(|one| Tty::from_fd(one).unwrap());
            for tty in &ttys {
                tty.set_mode(Mode::Raw).unwrap();
            }
            tty::reset_mode().unwrap();
            assert_eq!(terminals.each_ref().map(settings), normal);
            tty::reset_mode().unwrap();
            // They are still in charge.
            ttys[0].set_mode(Mode::Io).unwrap();
            assert_ne!(settings(&terminals[0]), normal[0]);
        });
        assert_eq!(terminals.each_ref().map(settings), normal);
    }));
}

#[test]
fn r211_an_exit_brings_the_settings_back() {
    let (controller, terminal) = open_pty();
    let normal = settings(&terminal);
    let shared = terminal.try_clone().unwrap();
    let test = "r211_an_exit_brings_the_settings_back";
    let child = child(test, terminal, || {
        block_on(async {
            let tty = Tty::from_fd(std::io::stdin()).unwrap();
            tty.set_mode(Mode::Raw).unwrap();
            (&tty).write_all(b"raw\n").await.unwrap();
            let mut go = [0];
            (&tty).read_exact(&mut go).await.unwrap();
            // No drop will be run.
            std::process::exit(0);
        });
    });
    read_until(&controller, "raw\r\n");
    assert_ne!(settings(&shared), normal);
    (&controller).write_all(b"x").unwrap();
    check(child);
    assert_eq!(settings(&shared), normal);
}

/// The terminal belongs to another group of processes when the process exits: that must not stop
/// it.
#[test]
fn r211_an_exit_in_the_background_brings_the_settings_back() {
    let (controller, terminal) = open_pty();
    let normal = settings(&terminal);
    let shared = terminal.try_clone().unwrap();
    let test = "r211_an_exit_in_the_background_brings_the_settings_back";
    let child = child(test, terminal, || {
        use std::os::unix::process::CommandExt;
        block_on(async {
            let tty = Tty::from_fd(std::io::stdin()).unwrap();
            tty.set_mode(Mode::Raw).unwrap();
            let mut other = Command::new("cat");
            let other = other.stdin(Stdio::piped()).process_group(0).spawn();
            let group = rustix::process::Pid::from_child(&other.unwrap());
            rustix::termios::tcsetpgrp(&tty, group).unwrap();
            std::process::exit(0);
        });
    });
    check(child);
    assert_eq!(settings(&shared), normal);
    drop(controller);
}

/// Seen by `strace`, since a pseudo-terminal has nothing to drain; where there is none, the test
/// says so and passes.
#[test]
fn r213_a_change_of_mode_does_not_wait_for_output() {
    let test = "r213_a_change_of_mode_does_not_wait_for_output";
    if !can_trace() {
        return;
    }
    let output = log_of(test);
    let wrapper = [
        "strace",
        "-f",
        "-e",
        "ioctl",
        "-o",
        output.to_str().unwrap(),
    ];
    let child = in_child(&wrapper, test, || {
        let (_controller, terminal) = open_pty();
        block_on(async {
            let tty = Tty::from_fd(&terminal).unwrap();
            tty.set_mode(Mode::Raw).unwrap();
            tty.set_mode(Mode::Normal).unwrap();
        });
    });
    let Some(child) = child else { return };
    check(child);
    let calls = std::fs::read_to_string(&output).unwrap();
    std::fs::remove_file(output).unwrap();
    let count = |name| calls.matches(name).count();
    assert_eq!(count("TCSETS2,") + count("TCSETS,"), 2, "{calls}");
    assert_eq!(count("TCSETSW") + count("TCSETSF"), 0, "{calls}");
}

#[test]
fn r214_libuv_tty_size_of_the_window() {
    let (controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        for (columns, rows) in [(80, 25), (132, 50)] {
            resize(&controller, columns, rows);
            let size = tty.size().unwrap();
            assert_eq!((size.columns, size.rows), (columns, rows));
        }
    });
}

/// A process in the foreground of its terminal, whose window size changes.
#[test]
fn r214_changes_of_the_window() {
    let (mut controller, terminal) = open_pty();
    resize(&controller, 80, 25);
    let test = "r214_changes_of_the_window";
    let child = child(test, terminal, || {
        block_on(async {
            let mut tty = Tty::open().unwrap();
            let mut resizes = tty.resizes().unwrap();
            assert!(resizes.is_active());
            tty.write_all(b"listening\n").await.unwrap();
            let size = resizes.next().await.unwrap().unwrap();
            assert_eq!((size.columns, size.rows), (100, 30));
            // A signal without a change is none.
            let this = rustix::process::getpid();
            let signal = rustix::process::Signal::WINCH;
            rustix::process::kill_process(this, signal).unwrap();
            tty.write_all(b"seen\n").await.unwrap();
            let size = resizes.recv().await.unwrap().unwrap();
            assert_eq!(size, tty.size().unwrap());
            assert_eq!((size.columns, size.rows), (101, 30));
        });
    });
    read_until(&controller, "listening\r\n");
    resize(&controller, 100, 30);
    read_until(&controller, "seen\r\n");
    resize(&controller, 101, 30);
    controller.flush().unwrap();
    check(child);
}

/// Ctrl-c is a signal in one mode and a key in the other.
#[test]
fn r210_cbreak_keeps_the_signals() {
    let (controller, terminal) = open_pty();
    let test = "r210_cbreak_keeps_the_signals";
    let child = child(test, terminal, || {
        block_on(async {
            let mut tty = Tty::open().unwrap();
            let mut signals = Signals::new([SignalKind::INT]).unwrap();
            tty.set_mode(Mode::Cbreak).unwrap();
            tty.write_all(b"cbreak\n").await.unwrap();
            assert_eq!(signals.recv().await, Some(SignalKind::INT));
            tty.set_mode(Mode::Raw).unwrap();
            tty.write_all(b"raw\n").await.unwrap();
            let mut key = [0];
            tty.read_exact(&mut key).await.unwrap();
            assert_eq!(key, [3]);
            assert_eq!(signals.try_recv(), None);
        });
    });
    read_until(&controller, "cbreak\r\n");
    (&controller).write_all(b"\x03").unwrap();
    read_until(&controller, "raw\r\n");
    (&controller).write_all(b"\x03").unwrap();
    check(child);
}

#[test]
fn a_terminal_keeps_the_loop_alive_while_somebody_waits() {
    let (mut event_loop, handle, trace) = paused();
    let (mut controller, terminal) = open_pty();
    let tty = Rc::new(event_loop.enter(|| Tty::from_fd(&terminal).unwrap()));
    let task = {
        let (tty, trace) = (tty.clone(), trace.clone());
        handle.spawn(async move {
            let count = (&*tty).read(&mut [0; 16]).await.unwrap();
            trace.log(count);
        })
    };
    assert!(turn(&mut event_loop));
    tty.unref();
    assert!(!turn(&mut event_loop));
    tty.ref_();
    controller.write_all(b"four\n").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "5");
    drop(task);
    // What was typed was echoed.
    let mut echo = [0; 6];
    controller.read_exact(&mut echo).unwrap();
}
