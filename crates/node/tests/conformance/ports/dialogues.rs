//! 468–472, 479: readline in use.

use std::cell::RefCell;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
#[cfg(unix)]
use phaseloop_node::child_process::spawn;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::fs::{ReadStreamOptions, create_read_stream_with};
use phaseloop_node::net;
use phaseloop_node::readline::{CLOSE, Interface, LINE, PAUSE, RESUME, create_interface, promises};
use phaseloop_node::stream::{Readable, Transform};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::timers::promises::sleep;
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, all, call, catch, next_tick, set_immediate,
    set_timeout,
};

use crate::support::{log, say, says, scratch};

super::ports! {
    Virtual "468-readline-prompt" => prompt,
    Virtual "469-readline-ends" => ends,
    Virtual "470-readline-crlf-delay" => crlf_delay,
    Virtual "471-readline-loop" => loops,
    #[cfg(unix)]
    Real "472-readline-sources" => sources,
    Virtual "479-questions" => questions,
}

type Bytes = Transform<Vec<u8>, Vec<u8>>;

/// `new PassThrough()`.
fn pass_through() -> Bytes {
    Transform::bytes(|chunk: Vec<u8>, out| out.ok_with(chunk)).build()
}

fn of(input: &Bytes) -> Interface {
    create_interface(input.readable())
}

fn chain(name: &'static str, links: u32) {
    let mut p = Promise::resolved(());
    for i in 1..=links {
        p = p.then(move |()| log(format!("{name}{i}")));
    }
}

/// A stream that logs what is written to it.
fn output() -> Bytes {
    let output = pass_through();
    let written = output.readable();
    written.on_data(|d| log(format!("out-{:?}", String::from_utf8_lossy(d))));
    output
}

async fn prompt() {
    let input = pass_through();
    let rl = of(&input).output(output().writable());
    rl.set_prompt("$ ");
    for event in [PAUSE, RESUME, CLOSE] {
        rl.on(event, move |()| log(event.name()));
    }
    rl.on_this(LINE, |rl, l| {
        log(format!("line-{l}"));
        if l == "quit" {
            rl.close();
        } else if let Err(e) = catch(|| rl.prompt()) {
            log(e.code().unwrap_or_default());
        }
    });
    rl.prompt();
    log(format!("prompt-{}", rl.get_prompt()));
    rl.set_prompt("# ");
    rl.write("typed\nhalf");
    rl.pause();
    log("paused");
    input.writable().write(" and half\n");
    set_timeout(10, move || {
        log("later");
        rl.prompt();
        set_timeout(10, move || {
            let this = rl.clone();
            rl.question("q? ", move |a| {
                log(format!("answer-{a}-{}", this.get_prompt()));
            })
            .unwrap();
            log(format!("asked-{}", rl.get_prompt()));
            rl.question("r? ", |_| log("never")).unwrap();
            input.writable().write("yes\nquit\nrest\n");
            log("written");
            set_timeout(10, move || {
                input.writable().write("gone\n");
                log(format!("flowing-{}", input.readable().flowing().unwrap()));
            });
        });
    });
}

fn watch(name: &'static str, rl: Interface) -> Interface {
    for event in [PAUSE, CLOSE] {
        rl.on(event, move |()| log(format!("{name}.{}", event.name())));
    }
    rl.on(LINE, move |l| log(format!("{name}-{l:?}")));
    rl
}

fn items<const N: usize>(chunks: [&str; N]) -> Interface {
    create_interface(&Readable::from_iter(
        chunks.map(|text| text.as_bytes().to_vec()),
    ))
}

async fn ends() {
    let a = pass_through();
    let rl = watch("a", of(&a));
    rl.question("? ", |l| log(format!("never-{l}"))).unwrap();
    a.writable().end("half");
    watch("b", items([]));
    watch("c", items(["x\n", "\n", "y\r"]));
    set_timeout(10, || {
        let ac = AbortController::new();
        watch("d", of(&pass_through()).signal(&ac.signal()));
        log("abort");
        ac.abort();
        log("aborted");
        watch("e", of(&pass_through()).signal(&ac.signal()));
        next_tick(say("tick"));
    });
    set_timeout(100, || {
        let input = pass_through();
        let f = watch("f", of(&input));
        f.on(ERROR, |e| log(format!("f.{e}")));
        input.writable().write("before\n");
        input.readable().destroy(Some(Error::new("torn")));
        set_immediate(move || {
            log(format!("closed-{}", f.is_closed()));
            shared_input();
        });
    });
}

fn shared_input() {
    let g = pass_through();
    let (one, two) = (watch("one", of(&g)), watch("two", of(&g)));
    g.writable().write("both\n");
    one.close();
    g.readable().resume();
    g.writable().write("second\n");
    set_immediate(move || {
        two.close();
        two.close();
        log("end");
    });
}

async fn crlf_delay() {
    async fn lines(name: &str, delay: Option<Duration>, wait: u32) {
        let input = pass_through();
        let seen: Rc<RefCell<Vec<String>>> = Rc::default();
        let mut rl = of(&input);
        if let Some(delay) = delay {
            rl = rl.crlf_delay(delay);
        }
        let lines = seen.clone();
        rl.on(LINE, move |l| lines.borrow_mut().push(l.to_owned()));
        let close = once(&rl, CLOSE);
        input.writable().write("a\r");
        set_timeout(wait, move || input.writable().end("\nb\n\r\nc\r\rd"));
        close.await.unwrap();
        log(format!("{name}{:?}", seen.borrow()).replace(", ", ","));
    }
    let millis = Duration::from_millis;
    lines("default-", None, 30).await;
    lines("late-", None, 200).await;
    lines("least-", Some(millis(1)), 50).await;
    lines("long-", Some(millis(400)), 200).await;
    lines("infinite-", Some(Duration::MAX), 200).await;
}

async fn loops() {
    call(async {
        let a = pass_through();
        let rl = of(&a);
        rl.on(CLOSE, says("close"));
        set_immediate(move || {
            a.writable().write("1\n2\n3\n");
        });
        let mut lines = rl.lines();
        while let Some(l) = lines.next().await {
            let l = l.unwrap();
            log(format!("a-{l}"));
            if l == "2" {
                rl.close();
            }
        }
        log("done");
        let b = pass_through();
        let failing = of(&b);
        set_immediate(move || {
            b.writable().write("1\n2\n");
            b.readable().destroy(Some(Error::new("torn")));
        });
        let mut lines = failing.lines();
        while let Some(l) = lines.next().await {
            match l {
                Ok(l) => {
                    log(format!("b-{l}"));
                    Promise::resolved(()).await.unwrap();
                }
                Err(e) => log(e.to_string()),
            }
        }
        slow_loop().await;
        let d = pass_through();
        let two = of(&d);
        set_immediate(move || {
            d.writable().write("x\ny\nz\n");
        });
        let mut lines = two.lines();
        log(format!("d-{}", lines.next().await.unwrap().unwrap()));
        drop(lines);
        log(format!("listeners-{}", two.listener_count(LINE)));
        let mut lines = two.lines();
        while let Some(l) = lines.next().await {
            log(format!("again-{}", l.unwrap()));
        }
        log(format!("over-{}", two.is_closed()));
    });
}

async fn slow_loop() {
    let c = pass_through();
    let slow = of(&c);
    slow.on(LINE, |l| log(format!("line-{l}")));
    set_immediate(move || {
        c.writable().write("1\n2\n");
        set_timeout(5, move || c.writable().end("3"));
    });
    let mut lines = slow.lines();
    while let Some(l) = lines.next().await {
        log(format!("slow-{}", l.unwrap()));
        sleep(10).await.unwrap();
        log("slept");
    }
}

#[cfg(unix)]
async fn sources() {
    let path = scratch("lines");
    fs::write(&path, "one\r\ntwo\n\nlast").unwrap();
    let options = ReadStreamOptions {
        high_water_mark: 4,
        ..ReadStreamOptions::default()
    };
    let file = create_interface(&create_read_stream_with(path, options)).crlf_delay(Duration::MAX);
    let mut lines = file.lines();
    while let Some(l) = lines.next().await {
        log(format!("file-{:?}", l.unwrap()));
    }
    log("file.closed");
    let server = net::create_server(|s| {
        let rl = create_interface(s.readable()).output(s.writable());
        let s = s.clone();
        rl.on_this(LINE, move |rl, l| {
            log(format!("got-{l}"));
            let s = s.clone();
            if l == "bye" {
                return s.end("bye\n");
            }
            let query = format!("you said {l}; why?\n");
            let answer = move |a| {
                s.write(format!("because {a}\n"));
            };
            rl.question(&query, answer).unwrap();
        });
        rl.on(CLOSE, says("server.close"));
    });
    server.listen(("127.0.0.1", 0));
    once(&server, net::LISTENING).await.unwrap();
    let c = net::connect(server.address().unwrap());
    let mut answers = create_interface(c.readable()).lines();
    c.write("hello\n");
    while let Some(l) = answers.next().await {
        let l = l.unwrap();
        log(format!("answer-{l}"));
        if l.ends_with("why?") {
            c.write("so\n");
        }
        if l.starts_with("because") {
            c.write("bye\n");
        }
    }
    let close = once(&server, CLOSE);
    server.close();
    close.await.unwrap();
    let child = spawn("printf", ["a\\nb\\nc"]);
    let mut lines = create_interface(child.stdout().unwrap()).lines();
    while let Some(l) = lines.next().await {
        log(format!("child-{}", l.unwrap()));
    }
    let text = pass_through();
    text.readable().set_encoding(Encoding::Utf8);
    let rl = of(&text);
    rl.on(LINE, |l| log(format!("text-{l}")));
    let bytes = "naïve\n".as_bytes();
    text.writable().write(&bytes[..3]);
    text.writable().end(&bytes[3..]);
}

async fn questions() {
    call(async {
        let input = pass_through();
        let rl = of(&input).output(output().writable());
        rl.on(LINE, |l| log(format!("line-{l}")));
        let send = {
            let input = input.clone();
            move |text: &'static str| {
                let input = input.clone();
                move || {
                    input.writable().write(text);
                }
            }
        };
        let ann = send("ann\n");
        set_immediate(move || {
            ann();
            log("sent");
            chain("c", 3);
        });
        let name = promises::question(&rl, "name? ").await.unwrap();
        log(format!("name-{name}"));
        set_immediate(send("42\nextra\n"));
        let age = all([promises::question(&rl, "age? ")]).await.unwrap();
        log(format!("age-{}", age[0]));
        let ac = AbortController::new();
        let signal = ac.signal();
        let late = send("late\n");
        set_immediate(move || {
            ac.abort_with(Error::new("why"));
            log("aborted");
            late();
            chain("d", 4);
        });
        let e = promises::question_with_signal(&rl, "still? ", &signal).await;
        let e = Error::from(e.unwrap_err());
        let cause = std::error::Error::source(&e).unwrap();
        log(format!("{}-{}-{cause}", e.name(), e.code().unwrap()));
        let e = promises::question_with_signal(&rl, "never", &signal).await;
        log(format!("before-{}", e.unwrap_err().name()));
        promises::question(&rl, "open? ").then_result(|_| log("never"));
        rl.close();
        let closed = promises::question(&rl, "closed");
        let failed = closed.then_result(|e| {
            let e = e.unwrap_err();
            log(format!("{}-{}-{e}", e.name(), e.code().unwrap()));
        });
        failed.await.unwrap();
        log(format!("end-{}", rl.is_closed()));
    });
}
