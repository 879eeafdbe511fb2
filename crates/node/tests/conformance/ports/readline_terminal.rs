//! 915, 916: readline of a terminal.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::readline::{self, CLOSE, Direction, HISTORY, LINE, PAUSE, SIGINT, SIGTSTP};
use phaseloop_node::stream::{Readable, Writable};
use phaseloop_node::{Emitter, sleep};

use crate::support::{log, says};

super::ports! {
    Virtual "915-readline-terminal" => terminal,
    Virtual "916-readline-wide" => wide,
}

/// A stream that keeps what is written, and what it has kept.
fn screen() -> (Writable<Vec<u8>>, Rc<RefCell<String>>) {
    let written: Rc<RefCell<String>> = Rc::default();
    let writes = written.clone();
    let output = Writable::bytes(move |chunk: Vec<u8>, done| {
        writes
            .borrow_mut()
            .push_str(&String::from_utf8_lossy(&chunk));
        done.ok();
    });
    (output.build(), written)
}

/// The text that was written since the last call, as `JSON.stringify` shows it.
fn shown(written: &RefCell<String>) -> String {
    format!("\"{}\"", escaped(&written.take()))
}

fn escaped(text: &str) -> String {
    let text = text.replace('\x1b', "\\u001b").replace('\t', "\\t");
    text.replace('\r', "\\r").replace('\n', "\\n")
}

async fn terminal() {
    let (output, written) = screen();
    let input = Readable::<Vec<u8>>::bytes().build();
    let rl = readline::create_interface(&input)
        .output(&output)
        .terminal()
        .history(["old", "older"], 4)
        .completer(|line| {
            let words = ["status", "start", "stop"].iter();
            let found = words.filter(|word| word.starts_with(line));
            (found.map(ToString::to_string).collect(), line.to_owned())
        });
    rl.on(LINE, |line| log(format!("line \"{line}\"")));
    rl.on(HISTORY, |history| {
        log(format!("history {}", history.join(",")))
    });
    rl.on(SIGINT, says("SIGINT"));
    rl.on(CLOSE, says("close"));
    log(format!("begin {}", shown(&written)));
    rl.prompt();
    log(format!("prompt {}", shown(&written)));
    for (name, bytes) in [
        ("text", "abc"),
        ("left", "\x1b[D"),
        ("insert", "X"),
        ("home", "\x1b[H"),
        ("right", "\x1b[C"),
        ("delete", "\x1b[3~"),
        ("end", "\x1b[F"),
        ("backspace", "\x7f"),
        ("enter", "\r"),
        ("up", "\x1b[A"),
        ("up", "\x1b[A"),
        ("up", "\x1b[A"),
        ("up", "\x1b[A"),
        ("down", "\x1b[B"),
        ("enter", "\n"),
        ("ctrl-a", "hello world\x01"),
        ("ctrl-k", "\x0b"),
        ("text", "one two"),
        ("ctrl-w", "\x17"),
        ("ctrl-b", "\x02"),
        ("ctrl-d", "\x04"),
        ("ctrl-u", "\x15"),
        ("prefix", "ol"),
        ("up", "\x1b[A"),
        ("up", "\x1b[A"),
        ("down", "\x1b[B"),
        ("down", "\x1b[B"),
        ("ctrl-e ctrl-u", "\x05\x15"),
        ("split", "ä"),
        ("alt-left", "bc de\x1bb"),
        ("alt-right", "\x1bf"),
        ("ctrl-h", "\x08"),
        ("blank", "\x05\x15   \r"),
        ("two lines", "p\rq\r"),
        ("tab", "st\t"),
        ("tab", "at\t"),
        ("ctrl-l", "\x0c"),
        ("ctrl-c", "\x03"),
        ("unknown", "\x1b[5;9~\x1b[Z"),
        ("ctrl-u", "\x05\x15"),
        ("ctrl-d", "\x04"),
    ] {
        input.push(bytes.as_bytes().to_vec());
        sleep(2).await.unwrap();
        let drawn = shown(&written);
        log(format!("{name} {drawn} \"{}\" {}", rl.line(), rl.cursor()));
    }
    let more = readline::cursor_to(&output, 3, None);
    log(format!("cursorTo {more}{}", shown(&written)));
    readline::cursor_to(&output, 3, Some(4));
    readline::move_cursor(&output, 1, -2);
    readline::move_cursor(&output, -1, 2);
    readline::move_cursor(&output, 0, 0);
    log(format!("move {}", shown(&written)));
    readline::clear_line(&output, Direction::Left);
    readline::clear_line(&output, Direction::Right);
    readline::clear_line(&output, Direction::Both);
    readline::clear_screen_down(&output);
    log(format!("clear {}", shown(&written)));
    let input = Readable::<Vec<u8>>::bytes().build();
    let plain = readline::create_interface(&input)
        .output(&output)
        .terminal();
    plain.on(CLOSE, move |()| {
        log(format!("plain close {}", shown(&written)))
    });
    plain.on(PAUSE, says("plain pause"));
    input.push(b"x\x03".to_vec());
}

async fn wide() {
    let (output, written) = screen();
    let input = Readable::<Vec<u8>>::bytes().build();
    let rl = readline::create_interface(&input)
        .output(&output)
        .terminal()
        .columns(20)
        .completer(|line| {
            let words = ["status", "start", "漢字", "stop"].iter();
            let found = words.filter(|word| word.starts_with(line));
            (found.map(ToString::to_string).collect(), line.to_owned())
        });
    rl.set_prompt("\x1b[1mask\x1b[0m> ");
    rl.on(LINE, |line| log(format!("line \"{line}\"")));
    rl.on(SIGTSTP, says("SIGTSTP"));
    rl.on(CLOSE, says("close"));
    rl.prompt();
    log(format!("prompt {}", shown(&written)));
    for (name, bytes) in [
        ("full", "0123456789abcd"),
        ("wraps", "e"),
        ("next", "fgh"),
        ("home", "\x01"),
        ("inside", "X"),
        ("right", "\x1b[C"),
        ("end", "\x05"),
        ("backspace", "\x7f\x7f\x7f\x7f"),
        ("prompt at the start", ""),
        ("end", "\x05"),
        ("prompt", ""),
        ("left", "\x1b[D\x1b[D"),
        ("kill", "\x0b"),
        ("undo", "\x1f"),
        ("undo", "\x1f\x1f"),
        ("redo", "\x1e"),
        ("redo", "\x1e\x1e\x1e"),
        ("undo all", &"\x1f".repeat(40)),
        ("nothing", "\x1f"),
        ("redo", "\x1e"),
        ("enter", "\r"),
        ("nothing", "\x1f"),
        ("wide", "漢字"),
        ("left", "\x1b[D"),
        ("mark", "e\u{301}"),
        ("left", "\x1b[D"),
        ("delete", "\x1b[3~"),
        ("emoji", "\x05😀"),
        ("backspace", "\x7f"),
        ("wide at the edge", "\x1512345678901234漢x"),
        ("left", "\x1b[D\x1b[D"),
        ("word", "\x17"),
        ("undo", "\x1f"),
        ("clear", "\x0c"),
        ("enter", "\r"),
        ("up", "\x1b[A"),
        ("kill", "\x15"),
        ("up", "\x1b[A"),
        ("undo", "\x1f"),
        ("undo", "\x1f"),
        ("ctrl-u", "\x05\x15"),
        ("tab", "\t"),
        ("tab", "\t"),
        ("tab", "s\t\t"),
        ("undo", "\x1f"),
        ("ctrl-z", "\x1a"),
        ("ctrl-u", "\x05\x15"),
        ("long", &"a".repeat(50)),
        ("home", "\x01"),
        ("word right", "\x1bf"),
        ("middle", &"\x1b[D".repeat(30)),
        ("enter", "\r"),
        ("ctrl-d", "\x04"),
    ] {
        match name {
            "prompt at the start" => rl.prompt(),
            "prompt" => rl.prompt_preserving_cursor(),
            _ => _ = input.push(bytes.as_bytes().to_vec()),
        }
        sleep(2).await.unwrap();
        let (name, drawn) = (name.split(" at the start").next().unwrap(), shown(&written));
        let line = escaped(&rl.line());
        log(format!("{name} {drawn} \"{line}\" {}", rl.cursor()));
    }
}
