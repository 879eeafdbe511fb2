//! Lines of a stream, H110–H114: what the recorded programs 374–377 do not show.

use crate::run_on_to_end;
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write as _;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use phaseloop::Builder;
use phaseloop_node::readline::{self, CLOSE, LINE, PAUSE, RESUME, create_interface, promises};
use phaseloop_node::stream::{Readable, Transform, Writable};
use phaseloop_node::{
    AbortController, AbortSignal, Emitter, Error, events::ERROR, next_tick, process, run, run_on,
    set_immediate, set_timeout,
};

use crate::util::child::in_child;

type Bytes = Transform<Vec<u8>, Vec<u8>>;

fn pass_through() -> Bytes {
    Transform::bytes(|chunk: Vec<u8>, out| out.ok_with(chunk)).build()
}

#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn say(&self, what: impl ToString) {
        self.0.borrow_mut().push(what.to_string());
    }

    fn listener<A: ?Sized>(&self, what: &'static str) -> impl Fn(&A) + 'static {
        let log = self.clone();
        move |_| log.say(what)
    }

    /// Logs the events of an interface.
    fn watch(&self, rl: &readline::Interface) {
        let log = self.clone();
        rl.on(LINE, move |line| log.say(format!("{line:?}")));
        rl.on(PAUSE, self.listener("pause"));
        rl.on(RESUME, self.listener("resume"));
        rl.on(CLOSE, self.listener("close"));
    }

    /// A stream that logs what is written to it.
    fn output(&self) -> Writable<Vec<u8>> {
        let log = self.clone();
        Writable::bytes(move |chunk: Vec<u8>, done| {
            log.say(format!("out:{:?}", String::from_utf8_lossy(&chunk)));
            done.ok();
        })
        .build()
    }
}

/// Runs a program on the virtual clock and returns what it has logged.
fn trace<F: Future<Output = ()> + 'static>(body: impl FnOnce(Log) -> F) -> String {
    let log = Log::default();
    let mut event_loop = Builder::new().start_paused(true).build().unwrap();
    let exit = run_on(&mut event_loop, body(log.clone()));
    assert_eq!(exit.code(), 0);
    log.0.take().join(" ")
}

#[test]
fn h111_the_cuts_between_chunks_do_not_change_the_lines() {
    let text = "a\r\nb\rc\n\n\r\r\né€😀\r\nlast".as_bytes();
    let lines = |chunks: Vec<Vec<u8>>| {
        trace(|log| async move {
            let input = Readable::from_iter(chunks);
            let rl = create_interface(&input).crlf_delay(Duration::MAX);
            log.watch(&rl);
        })
    };
    let whole = r#""a" "b" "c" "" "" "" "é€😀" "last" pause close"#;
    assert_eq!(lines(vec![text.to_vec()]), whole);
    assert_eq!(lines(text.iter().map(|byte| vec![*byte]).collect()), whole);
    for cut in 1..text.len() {
        let (first, second) = text.split_at(cut);
        assert_eq!(lines(vec![first.to_vec(), second.to_vec()]), whole, "{cut}");
    }
}

#[test]
fn h111_a_line_feed_after_the_delay_ends_a_line_of_its_own() {
    let lines = |wait: u32, delay: Option<Duration>| {
        trace(|log| async move {
            let input = pass_through();
            let mut rl = create_interface(input.readable());
            if let Some(delay) = delay {
                rl = rl.crlf_delay(delay);
            }
            log.watch(&rl);
            input.writable().write("a\r");
            set_timeout(wait, move || input.writable().end("\nb\n"));
        })
    };
    let (one, two) = (r#""a" "b" pause close"#, r#""a" "" "b" pause close"#);
    assert_eq!(lines(50, None), one);
    assert_eq!(lines(150, None), two);
    assert_eq!(lines(50, Some(Duration::ZERO)), one, "the least is 100 ms");
    assert_eq!(lines(150, Some(Duration::from_millis(200))), one);
    assert_eq!(lines(1_000_000, Some(Duration::MAX)), one);
}

/// As in Node, the beginning of a character that EOF cuts off is dropped.
#[test]
fn h111_half_a_character_at_the_end_is_dropped() {
    let seen = trace(|log| async move {
        let rl = create_interface(&Readable::from_iter([b"a\nb\xe2\x82".to_vec()]));
        log.watch(&rl);
    });
    assert_eq!(seen, r#""a" "b" pause close"#);
}

#[test]
fn h112_pause_resume_and_close_are_emitted_once() {
    let seen = trace(|log| async move {
        let input = pass_through();
        let rl = create_interface(input.readable());
        log.watch(&rl);
        rl.resume();
        rl.pause();
        rl.pause();
        input.writable().write("kept\n");
        assert!(rl.is_paused() && !rl.is_closed());
        set_timeout(10, move || {
            log.say("later");
            rl.resume();
            rl.resume();
            next_tick(move || {
                rl.close();
                rl.close();
                assert!(rl.is_closed() && input.readable().is_paused());
                assert_eq!(input.listener_count(ERROR), 0, "the input is given up");
            });
        });
    });
    assert_eq!(seen, r#"pause later resume "kept" pause close"#);
}

#[test]
fn an_error_of_the_input_is_emitted_by_the_interface() {
    let seen = trace(|log| async move {
        let input = Readable::<Vec<u8>>::bytes().build();
        let rl = create_interface(&input);
        log.watch(&rl);
        let said = log.clone();
        rl.on(ERROR, move |error| said.say(error));
        let mut lines = rl.lines();
        input.destroy(Some(Error::new("torn")));
        assert_eq!(lines.next().await.unwrap().unwrap_err().to_string(), "torn");
        assert!(lines.next().await.is_none());
    });
    assert_eq!(seen, "torn");
}

#[test]
fn h114_a_second_question_repeats_the_first() {
    let seen = trace(|log| async move {
        let rl = create_interface(&Readable::bytes().build()).output(&log.output());
        log.watch(&rl);
        rl.set_prompt("$ ");
        let said = log.clone();
        rl.question("one? ", move |line| said.say(format!("answer:{line}")))
            .unwrap();
        rl.question("two? ", |_| unreachable!()).unwrap();
        assert_eq!(rl.get_prompt(), "one? ");
        rl.pause();
        rl.write("yes\nno\n");
        assert_eq!(rl.get_prompt(), "$ ");
        rl.prompt();
    });
    assert_eq!(
        seen,
        r#"out:"one? " out:"one? " pause resume answer:yes "no" out:"$ ""#
    );
}

#[test]
fn h114_text_without_a_line_end_is_no_answer() {
    let seen = trace(|log| async move {
        let rl = create_interface(&Readable::from_iter([b"half".to_vec()]));
        log.watch(&rl);
        rl.question("? ", |_| unreachable!()).unwrap();
    });
    assert_eq!(seen, r#""half" pause close"#);
}

#[test]
fn h114_a_signal_cancels_a_question() {
    let seen = trace(|log| async move {
        let rl = create_interface(&Readable::bytes().build()).output(&log.output());
        log.watch(&rl);
        let controller = AbortController::new();
        let signal = controller.signal();
        rl.question_with_signal("one? ", &signal, |_| unreachable!())
            .unwrap();
        controller.abort();
        rl.question_with_signal("never asked", &signal, |_| unreachable!())
            .unwrap();
        rl.write("line\n");
        let controller = AbortController::new();
        let signal = controller.signal();
        let said = log.clone();
        let answer = promises::question_with_signal(&rl, "two? ", &signal);
        rl.write("two\n");
        controller.abort();
        said.say(answer.await.unwrap());
        let late = promises::question_with_signal(&rl, "never asked", &signal);
        let error = late.await.unwrap_err();
        assert_eq!(
            (error.name(), error.code()),
            ("AbortError", Some("ABORT_ERR"))
        );
        rl.close();
        let signal = AbortController::new().signal();
        let refused = rl.question_with_signal("closed", &signal, |_| unreachable!());
        assert_eq!(refused.unwrap_err().code(), Some("ERR_USE_AFTER_CLOSE"));
        let refused = promises::question_with_signal(&rl, "closed", &signal);
        assert_eq!(
            refused.await.unwrap_err().code(),
            Some("ERR_USE_AFTER_CLOSE")
        );
    });
    assert_eq!(
        seen,
        r#"out:"one? " out:"\r\n" "line" out:"two? " two pause close"#
    );
}

#[test]
fn a_signal_closes_the_interface_at_once_or_by_a_tick() {
    let seen = trace(|log| async move {
        let controller = AbortController::new();
        let rl = create_interface(&Readable::bytes().build()).signal(&controller.signal());
        log.watch(&rl);
        log.say("abort");
        controller.abort();
        log.say("aborted");
        let aborted = AbortSignal::abort(Error::new("stop"));
        let rl = create_interface(&Readable::bytes().build()).signal(&aborted);
        log.watch(&rl);
        next_tick(move || log.say("tick"));
    });
    assert_eq!(seen, "abort pause close aborted pause close tick");
}

#[test]
fn h113_more_than_1024_waiting_lines_pause_the_input() {
    let seen = trace(|log| async move {
        let input = pass_through();
        let rl = create_interface(input.readable());
        rl.on(PAUSE, log.listener("pause"));
        rl.on(RESUME, log.listener("resume"));
        let mut lines = rl.lines();
        rl.write(&"x\n".repeat(1_024));
        log.say(rl.is_paused());
        rl.write("x\n");
        log.say(rl.is_paused());
        for _ in 0..1_024 {
            lines.next().await.unwrap().unwrap();
        }
        log.say("one is left");
        lines.next().await.unwrap().unwrap();
        log.say("none is left");
    });
    assert_eq!(seen, "false pause true one is left resume none is left");
}

#[test]
fn h113_the_streams_of_an_interface_share_their_lines() {
    let seen = trace(|log| async move {
        let rl = create_interface(&Readable::bytes().build());
        let mut lines = rl.lines();
        rl.write("a\nb\nc\n");
        log.say(lines.next().await.unwrap().unwrap());
        drop(lines);
        assert_eq!(rl.listener_count(LINE), 0);
        rl.write("lost\n");
        let mut rest = rl.lines();
        while let Some(line) = rest.next().await {
            log.say(line.unwrap());
        }
        log.say(rl.is_closed());
    });
    assert_eq!(seen, "a b c false");
}

#[test]
fn an_interface_is_freed_when_it_is_closed_or_its_loop_ends() {
    let kept = Rc::new(());
    let mut event_loop = Builder::new().start_paused(true).build().unwrap();
    let (closed, open) = (kept.clone(), kept.clone());
    let count = kept.clone();
    run_on_to_end(&mut event_loop, async move {
        let rl = create_interface(&Readable::bytes().build());
        let this = rl.clone();
        rl.on(LINE, move |_| drop((this.clone(), closed.clone())));
        rl.close();
        let rl = create_interface(&Readable::bytes().build());
        let this = rl.clone();
        rl.on(LINE, move |_| drop((this.clone(), open.clone())));
        set_immediate(move || assert_eq!(Rc::strong_count(&count), 3, "the open one, and this"));
    });
    drop(event_loop);
    assert_eq!(Rc::strong_count(&kept), 1);
}

/// Runs `test` in a process whose standard input is a pipe with the line `Ada`, which stays open.
fn with_open_input(test: &str, body: impl FnOnce()) {
    let script = r#"
        d=$(mktemp -d); mkfifo "$d/f"; exec 3<>"$d/f"; rm -r "$d"
        echo Ada >&3; exec "$0" "$@" <&3"#;
    let body = || {
        // A loop that does not end would never report the failure.
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(60));
            std::process::exit(9);
        });
        body();
    };
    if let Some(child) = in_child(&["sh", "-c", script], test, body) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_closed_interface_lets_the_program_end_while_standard_input_is_open() {
    let test = "a_closed_interface_lets_the_program_end_while_standard_input_is_open";
    with_open_input(test, || {
        let exit = run(async {
            let rl = create_interface(&process::stdin());
            assert_eq!(promises::question(&rl, "").await.unwrap(), "Ada");
            rl.close();
        });
        assert_eq!(exit.code(), 0);
    });
}

#[cfg(unix)]
#[test]
fn paused_standard_input_can_be_read_again() {
    let test = "paused_standard_input_can_be_read_again";
    with_open_input(test, || {
        let exit = run(async {
            let write = |text: &str| {
                let mut input = OpenOptions::new().write(true).open("/dev/fd/0");
                input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
            };
            let rl = create_interface(&process::stdin());
            assert_eq!(promises::question(&rl, "").await.unwrap(), "Ada");
            rl.close();
            set_timeout(20, move || write("chunk"));
            let mut chunks = process::stdin().chunks();
            assert_eq!(chunks.next().await.unwrap().unwrap(), b"chunk");
        });
        assert_eq!(exit.code(), 0);
    });
}
