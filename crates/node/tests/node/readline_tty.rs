//! The line editor on a real pseudo-terminal.
#![cfg(all(target_os = "linux", feature = "tty"))]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;

use phaseloop::signal::SignalKind;
use phaseloop_node::readline::{self, CLOSE, Interface, LINE, SIGCONT, SIGINT};
use phaseloop_node::{Emitter, Exit, process, run, set_timeout};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::util::pty::open_pty;
use crate::util::screen::read_until;
use crate::util::terminal::start_in;

fn resize(controller: &File, columns: u16) {
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(controller, size).unwrap();
}

/// Whether keys arrive one by one, without an echo.
fn is_raw(terminal: impl AsFd) -> bool {
    let modes = tcgetattr(terminal).unwrap().local_modes;
    !modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO)
}

/// Starts the test once more in a terminal of 20 columns, where it runs `body`. Returns both sides.
#[track_caller]
fn start(test: &str, body: impl FnOnce()) -> (Child, File, OwnedFd) {
    let (controller, terminal) = open_pty();
    resize(&controller, 20);
    let copies = (terminal.try_clone().unwrap(), terminal.try_clone().unwrap());
    let child = start_in(test, copies.0, copies.1, body);
    (child, controller, terminal)
}

fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

fn editor() -> Interface {
    let rl = readline::create_interface(&process::stdin()).output(&process::stdout());
    rl.terminal()
}

fn program(main: impl FnOnce() + 'static) {
    let exit: Exit<()> = run(async move { main() });
    assert_eq!(exit.code(), 0);
}

#[test]
fn n163_a_line_editor_sets_the_mode_of_its_terminal_and_restores_it() {
    let test = "n163_a_line_editor_sets_the_mode_of_its_terminal_and_restores_it";
    let (child, mut controller, terminal) = start(test, || {
        program(|| {
            let rl = editor();
            rl.prompt();
            rl.on_this(LINE, |rl, line| {
                process::stdout().write(format!("<{line}>"));
                rl.close();
                process::stdout().write("closed");
            });
        });
    });
    assert!(!is_raw(&terminal));
    read_until(&controller, "> \x1b[3G");
    assert!(is_raw(&terminal), "the interface has set it");
    controller.write_all(b"12345678901234567").unwrap();
    read_until(&controller, "34567");
    // The next character fills the row: the cursor is in the next one.
    controller.write_all(b"8").unwrap();
    read_until(&controller, "> 123456789012345678 \x1b[1G");
    controller.write_all(b"\x7f").unwrap();
    read_until(
        &controller,
        "\x1b[1A\x1b[1G\x1b[0J> 12345678901234567\x1b[20G",
    );
    controller.write_all(b"\r").unwrap();
    read_until(&controller, "<12345678901234567>closed");
    finish(child);
    assert!(!is_raw(&terminal), "its close has restored it");
}

#[test]
fn n163_a_line_is_drawn_again_when_the_window_is_resized() {
    let test = "n163_a_line_is_drawn_again_when_the_window_is_resized";
    let (child, mut controller, terminal) = start(test, || {
        program(|| {
            let rl = editor();
            rl.prompt();
            rl.on_this(SIGINT, |rl, ()| rl.close());
            rl.on(CLOSE, |()| _ = process::stdout().write("closed"));
        });
    });
    read_until(&controller, "> \x1b[3G");
    controller.write_all(b"abcdefghij").unwrap();
    read_until(&controller, "abcdefghij");
    resize(&controller, 8);
    let drawn = read_until(&controller, "G");
    // The last row is the second: twelve characters in rows of eight.
    let drawn = if drawn.ends_with("1G") {
        drawn + &read_until(&controller, "G")
    } else {
        drawn
    };
    assert!(drawn.ends_with("> abcdefghij\x1b[5G"), "{drawn:?}");
    // In raw mode, Ctrl+C is a key.
    controller.write_all(b"\x03").unwrap();
    read_until(&controller, "closed");
    finish(child);
    assert!(!is_raw(&terminal));
}

#[test]
fn n163_ctrl_z_gives_the_terminal_back_until_the_process_goes_on() {
    let test = "n163_ctrl_z_gives_the_terminal_back_until_the_process_goes_on";
    let (child, mut controller, terminal) = start(test, || {
        program(|| {
            // The process is not stopped: it has no shell that would make it go on.
            let stopped = process::on_signal(SignalKind::TSTP, |_| {
                process::stdout().write(format!("stopped {};", std::process::id()));
            });
            let rl = editor();
            rl.on_this(SIGCONT, |rl, ()| {
                assert!(rl.is_paused());
                process::stdout().write("goes on");
                rl.prompt();
            });
            rl.on_this(LINE, move |rl, line| {
                assert_eq!(line, "ab");
                rl.close();
                stopped.as_ref().unwrap().remove();
                process::stdout().write("end");
            });
            rl.prompt();
            // Paused interfaces do not keep the loop alive.
            let alive = set_timeout(60_000, || ());
            rl.on(CLOSE, move |()| drop(alive.close().clone()));
        });
    });
    read_until(&controller, "> \x1b[3G");
    controller.write_all(b"ab\x1a").unwrap();
    let text = read_until(&controller, ";");
    assert!(!is_raw(&terminal), "the shell would have its mode");
    let process = text.rsplit(' ').next().unwrap().trim_end_matches(';');
    let process = Pid::from_raw(process.parse().unwrap()).unwrap();
    kill_process(process, Signal::CONT).unwrap();
    read_until(&controller, "> ab\x1b[3G\x1b[1G\x1b[0J> ab\x1b[3G");
    assert!(is_raw(&terminal));
    controller.write_all(b"\r").unwrap();
    read_until(&controller, "end");
    finish(child);
    assert!(!is_raw(&terminal));
}
