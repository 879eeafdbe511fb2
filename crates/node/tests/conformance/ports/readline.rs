//! 374–377: readline.

use std::time::Duration;

use futures::StreamExt as _;
use phaseloop_node::readline::{self, CLOSE, Interface, LINE, PAUSE, create_interface};
use phaseloop_node::stream::{END, Readable, Transform};
use phaseloop_node::{
    AbortController, Emitter, Promise, call, next_tick, set_immediate, set_timeout,
};

use crate::support::{log, say, says};

super::ports! {
    Virtual "374-readline-lines" => readline_lines,
    Virtual "375-readline-split-bytes" => split_bytes,
    Virtual "376-readline-iterator" => iterator,
    Virtual "377-readline-question" => question,
}

type Bytes = Transform<Vec<u8>, Vec<u8>>;

/// `new PassThrough()`.
fn pass_through() -> Bytes {
    Transform::bytes(|chunk: Vec<u8>, out| out.ok_with(chunk)).build()
}

fn of(input: &Bytes) -> Interface {
    create_interface(input.readable())
}

/// `JSON.stringify` of a text without special characters.
fn quoted(line: &str) -> String {
    format!("\"{line}\"")
}

async fn readline_lines() {
    let input = pass_through();
    let rl = of(&input).crlf_delay(Duration::MAX);
    rl.on(LINE, |l| {
        let l = quoted(l);
        log(format!("line-{l}"));
        next_tick(move || log(format!("tick-{l}")));
    });
    rl.on(PAUSE, says("pause"));
    rl.on(CLOSE, |()| {
        log("close");
        next_tick(say("close.tick"));
    });
    input.on(END, says("input.end"));
    log("made");
    input.writable().write("one\ntwo\r\nth");
    next_tick(say("tick"));
    set_timeout(50, move || {
        log("more");
        input.writable().write("ree\r");
        input.writable().write("\n\né");
        set_timeout(50, move || {
            input.writable().write("a\rb\n");
            input.writable().end("last");
            log("ended");
        });
    });
}

async fn split_bytes() {
    let euro = "x€y\n".as_bytes();
    let parts = [&euro[..2], &euro[2..3], &euro[3..]].map(<[u8]>::to_vec);
    let one = create_interface(&Readable::from_iter(parts));
    one.on(LINE, |l| log(format!("line {}", l == "x€y")));
    one.on(CLOSE, |()| {
        log("close");
        let input = pass_through();
        let two = of(&input);
        two.on_this(LINE, |two, l| {
            log(format!("two-{l}"));
            if l == "b" {
                two.close();
                log("closed");
            }
        });
        two.on(CLOSE, says("two.close"));
        input.writable().write("a\nb\nc\n");
        set_timeout(50, move || {
            let flowing = input.readable().flowing();
            log(format!("flowing-{}", flowing.unwrap()));
            let three = create_interface(&Readable::from_iter([Vec::new()]));
            three.on(LINE, |l| log(format!("never-{l}")));
            three.on(CLOSE, says("three.close"));
        });
    });
}

async fn iterator() {
    call(async {
        let input = pass_through();
        let rl = of(&input);
        rl.on(CLOSE, says("close"));
        input.writable().write("lost\n");
        set_immediate(move || {
            log("write");
            input.writable().write("a\nb\n");
            next_tick(say("tick"));
            let mut p = Promise::resolved(());
            for i in 1..=5 {
                p = p.then(move |()| log(format!("c{i}")));
            }
            set_timeout(50, move || {
                log("more");
                input.writable().end("c\nd");
            });
        });
        let mut lines = rl.lines();
        while let Some(l) = lines.next().await {
            let l = l.unwrap();
            log(format!("line-{l}"));
            next_tick(move || log(format!("tick-{l}")));
        }
        log("done");
        let second = pass_through();
        let rl2 = of(&second);
        rl2.on(CLOSE, says("close2"));
        set_immediate(move || {
            second.writable().write("x\ny\nz\n");
        });
        let mut lines = rl2.lines();
        while let Some(l) = lines.next().await {
            let l = l.unwrap();
            log(format!("line-{l}"));
            if l == "y" {
                break;
            }
        }
        drop(lines);
        log("left");
    });
}

async fn question() {
    let (input, output) = (pass_through(), pass_through());
    output.readable().on_data(|d| {
        let d = String::from_utf8_lossy(d);
        if !d.trim().is_empty() {
            log(format!("out-{d}"));
        }
    });
    let rl = of(&input).output(output.writable());
    rl.on(LINE, |l| log(format!("line-{l}")));
    let asked = rl.clone();
    rl.question("name? ", move |a| {
        log(format!("answer-{a}"));
        set_timeout(50, move || drop(call(promised(asked, output))));
    })
    .unwrap();
    input.writable().write("ann\nnext\n");
    log("asked");
}

async fn promised(rl: Interface, output: Bytes) {
    rl.close();
    let input = pass_through();
    let p = of(&input).output(output.writable());
    set_timeout(50, move || {
        input.writable().write("42\nmore\n");
    });
    p.on(LINE, |l| log(format!("p.line-{l}")));
    let n = readline::promises::question(&p, "n? ").await.unwrap();
    log(format!("promise-{n}"));
    let c = AbortController::new();
    let signal = c.signal();
    set_timeout(30, move || c.abort());
    let again = readline::promises::question_with_signal(&p, "again? ", &signal);
    let failed = again.then_result(|n| log(n.unwrap_err().name()));
    failed.await.unwrap();
    p.close();
    let closed = readline::promises::question(&p, "closed? ");
    let failed = closed.then_result(|n| log(n.unwrap_err().code().unwrap()));
    failed.await.unwrap();
    if let Err(e) = rl.question("x", |_| ()) {
        log(e.code().unwrap());
    }
}
