//! 420–459: what stands next to the rest of Node's surface: encodings, file options, programs with
//! options, operators.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::StreamExt;
#[cfg(unix)]
use phaseloop::signal::SignalKind;
#[cfg(unix)]
use phaseloop_node::child_process::{
    ChildProcess, ExecError, ExecOptions, exec, exec_file, exec_file_with, exec_with, promises,
};
use phaseloop_node::dgram;
use phaseloop_node::events::{ERROR, Event, EventEmitter, on_with_signal, once_with_signal};
use phaseloop_node::net::{self, SocketOptions};
use phaseloop_node::stream::{CLOSE, DRAIN, END, READABLE, Readable, Transform};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::{
    AbortController, Deferred, Emitter, Error, Promise, Reason, next_tick, process, set_immediate,
    set_timeout, throw,
};

use crate::support::{log, say, says};

super::ports! {
    Virtual "420-set-encoding" => set_encoding,
    Virtual "421-set-encoding-late" => set_encoding_late,
    Virtual "422-set-encoding-hex" => set_encoding_hex,
    #[cfg(unix)]
    Real "440-exec-options" => exec_options,
    Virtual "441-stream-operators" => stream_operators,
    #[cfg(unix)]
    Virtual "442-process-once" => process_once,
    Virtual "443-events-signal" => events_signal,
    Real "450-net-options" => net_options,
    Real "452-dgram-connect" => dgram_connect,
    Virtual "451-one-sided-object-mode" => one_sided_object_mode,
}

async fn set_encoding() {
    let r = Readable::bytes().build();
    r.set_encoding(Encoding::Utf8);
    log(format!("encoding-{}", r.encoding().unwrap()));
    r.on_text(|d| {
        log(format!("data-{d}"));
        let token = format!("tick-{d}");
        next_tick(move || log(token));
    });
    r.on(END, says("end"));
    r.on(CLOSE, says("close"));
    set_immediate(move || {
        r.push(vec![0x61, 0xe2]);
        log("pushed");
        r.push(vec![0x82]);
        r.push(vec![0xac, 0x62]);
        next_tick(say("tick"));
        set_immediate(move || {
            r.push(vec![0xf0, 0x9f]);
            r.push_end();
            log("ended");
        });
    });
}

async fn set_encoding_late() {
    let r = Readable::bytes().high_water_mark(8).build();
    let kept = |r: &Readable<Vec<u8>>| log(format!("kept-{}", r.length()));
    log(r.push("€uro ".into()).to_string());
    kept(&r);
    r.set_encoding(Encoding::Utf8);
    kept(&r);
    log(r.push("😀".into()).to_string());
    kept(&r);
    let read = r.read_size(2).unwrap();
    log(format!("read-{}", String::from_utf8(read).unwrap()));
    kept(&r);
    let this = r.clone();
    r.on(READABLE, move |()| {
        log("readable");
        while let Some(d) = this.read_text() {
            log(format!("chunk-{d}"));
        }
    });
    r.on(END, says("end"));
    r.push(vec![0xc3]);
    set_immediate(move || {
        kept(&r);
        r.push(vec![0xa9]);
        r.push_end();
    });
}

async fn set_encoding_hex() {
    for name in ["hex", "base64", "base64url", "latin1", "ascii", "utf16le"] {
        let r = Readable::bytes().build();
        r.set_encoding(name.parse().unwrap());
        r.on_text(move |d| log(format!("{name}-{d}")));
        r.on(END, move |()| log(format!("{name}-end")));
        let chunks: [&[u8]; 6] = [
            &[0xff, 0xfb],
            &[0x41],
            &[0x04],
            &[0x3d, 0xd8],
            &[0x00, 0xde],
            &[0x42],
        ];
        for chunk in chunks {
            r.push(chunk.to_vec());
        }
        r.push_end();
    }
    let error = "utf7".parse::<Encoding>().unwrap_err();
    log(format!("{}-{}", error.code().unwrap(), error.message()));
}

#[cfg(unix)]
type Ended = Box<dyn FnOnce(Option<ExecError>, String, String)>;

/// Logs how a program ends, in JSON.
#[cfg(unix)]
async fn run(start: impl FnOnce(Ended) -> ChildProcess) {
    let ended = Deferred::new();
    let promise = ended.promise();
    start(Box::new(move |error, stdout, stderr| {
        let text = |text: &str| serde_json::to_string(text).unwrap();
        let null = || "null".to_owned();
        let mut fields = vec![null(); 6];
        if let Some(error) = error {
            let has_code = error.code().is_some();
            let exit_code = error.exit_code().map_or_else(null, |code| code.to_string());
            fields = vec![
                text(error.name()),
                error.code().map_or(exit_code, text),
                if has_code {
                    null()
                } else {
                    error.killed().to_string()
                },
                error
                    .signal()
                    .map_or_else(null, |signal| text(signal.name().unwrap())),
                text(error.cmd()),
                text(error.message()),
            ];
        }
        fields.extend([text(&stdout), text(&stderr)]);
        log(fields.join(" "));
        ended.resolve(());
    }));
    promise.await.unwrap();
}

#[cfg(unix)]
async fn exec_options() {
    let plain = ExecOptions::default;
    run(|cb| exec("echo out; echo err >&2; exit 3", cb)).await;
    run(|cb| exec("exit 4", cb)).await;
    run(|cb| exec("kill -9 $$", cb)).await;
    let late = ExecOptions {
        timeout: Some(50.into()),
        ..plain()
    };
    run(|cb| exec_with("sleep 60", late.clone(), cb)).await;
    let hard = ExecOptions {
        kill_signal: SignalKind::KILL,
        ..late
    };
    run(|cb| exec_with("sleep 60", hard, cb)).await;
    let little = ExecOptions {
        max_buffer: 4,
        ..plain()
    };
    run(|cb| exec_with("echo 123456789; exec sleep 60", little.clone(), cb)).await;
    run(|cb| exec_with("echo 123456789 >&2; exec sleep 60", little, cb)).await;
    let env = |value: &str| Some(vec![("A".into(), value.into())]);
    let there = ExecOptions {
        cwd: Some("/".into()),
        env: env("b"),
        ..plain()
    };
    run(|cb| exec_with("pwd; echo \"$A-$HOME\"", there, cb)).await;
    for encoding in [Encoding::Latin1, Encoding::Hex] {
        let options = ExecOptions {
            encoding,
            ..plain()
        };
        run(|cb| exec_with(r#"printf "\351""#, options, cb)).await;
    }
    run(|cb| exec_file("no-such-program", ["a", "b"], cb)).await;
    run(|cb| exec_file("sh", ["-c", "exit 2"], cb)).await;
    let shell = ExecOptions {
        shell: Some("/bin/sh".into()),
        env: env("b c"),
        ..plain()
    };
    run(|cb| exec_file_with("echo", ["$A"], shell, cb)).await;
    let nowhere = ExecOptions {
        cwd: Some("/no/such/directory".into()),
        ..plain()
    };
    run(|cb| exec_with("true", nowhere, cb)).await;
    let aborted = AbortController::new();
    aborted.abort();
    let options = ExecOptions {
        signal: Some(aborted.signal()),
        ..plain()
    };
    run(|cb| exec_with("sleep 60", options, cb)).await;
    let controller = AbortController::new();
    let options = ExecOptions {
        signal: Some(controller.signal()),
        ..plain()
    };
    set_immediate(move || controller.abort());
    run(|cb| exec_with("sleep 60", options, cb)).await;
    run(|cb| {
        let child = exec("exec sleep 60", cb);
        let before = child.killed();
        let was_sent = child.kill(SignalKind::INT);
        log(format!("kill {before} {was_sent} {}", child.killed()));
        child
    })
    .await;
    let output = promises::exec("echo hi", plain()).await.unwrap();
    log(serde_json::to_string(&[output.stdout, output.stderr]).unwrap());
    let failed = promises::exec_file("sh", ["-c", "echo out; exit 5"], plain()).await;
    let reason = failed.unwrap_err();
    let error: &ExecError = reason.error().unwrap().downcast_ref().unwrap();
    log(format!(
        "{} {:?} {:?}",
        error.exit_code().unwrap(),
        error.stdout(),
        error.stderr()
    ));
}

fn joined<T: ToString>(items: &[T]) -> String {
    let items: Vec<_> = items.iter().map(T::to_string).collect();
    items.join(",")
}

fn failed(name: &str, reason: &Reason) {
    log(format!("{name}-Error-{reason}"));
}

async fn stream_operators() {
    let numbers = || Readable::from_iter(1..=5);
    let say_all = |name: &str, items: Vec<i32>| log(format!("{name}-{}", joined(&items)));
    say_all("map", numbers().map(|n| n * 2).to_array().await.unwrap());
    let tripled = numbers().map_async(|n| async move {
        Promise::resolved(()).await.unwrap();
        Ok(n * 3)
    });
    say_all("async", tripled.to_array().await.unwrap());
    say_all(
        "filter",
        numbers().filter(|n| n % 2 == 1).to_array().await.unwrap(),
    );
    say_all(
        "flat",
        numbers()
            .flat_map(|n| [n, n * 10])
            .to_array()
            .await
            .unwrap(),
    );
    say_all("take", numbers().take(2).to_array().await.unwrap());
    log(format!(
        "none-{}",
        numbers().take(0).to_array().await.unwrap().len()
    ));
    say_all("drop", numbers().drop(3).to_array().await.unwrap());
    let chain = numbers().filter(|n| *n > 1).map(|n| n + 1).take(2);
    say_all("chain", chain.to_array().await.unwrap());
    let sum = numbers().reduce(100, |sum, n| sum + n).await.unwrap();
    log(format!("reduce-{sum}"));
    numbers()
        .for_each(|n| log(format!("each-{n}")))
        .await
        .unwrap();
    let r = numbers();
    r.on(CLOSE, says("closed"));
    log(format!(
        "find-{}",
        r.find(|n| *n > 2).await.unwrap().unwrap()
    ));
    let none = numbers().find(|n| *n > 9).await.unwrap();
    log(format!(
        "find-{}",
        none.map_or("undefined".to_owned(), |n| n.to_string())
    ));
    let some = [4, 5].map(|limit| numbers().some(move |n| *n > limit));
    log(format!(
        "some-{}-{}",
        (&some[0]).await.unwrap(),
        (&some[1]).await.unwrap()
    ));
    let every = [0, 1].map(|limit| numbers().every(move |n| *n > limit));
    log(format!(
        "every-{}-{}",
        (&every[0]).await.unwrap(),
        (&every[1]).await.unwrap()
    ));
    let three = numbers().map(|n| {
        if n == 3 {
            throw(Error::new("three"))
        } else {
            n
        }
    });
    failed("map", &three.to_array().await.unwrap_err());
    let seen: Rc<RefCell<Vec<i32>>> = Rc::default();
    let see = seen.clone();
    let two = numbers().for_each(move |n| {
        see.borrow_mut().push(n);
        if n == 2 {
            throw(Error::new("two"));
        }
    });
    failed("each", &two.await.unwrap_err());
    log(format!("seen-{}", joined(&seen.borrow())));
    let broken = Readable::<i32>::objects()
        .read(|this, _| this.destroy(Some(Error::new("broken"))))
        .build();
    failed("source", &broken.map(|n| n).to_array().await.unwrap_err());
    let lines = numbers().map(|n| format!("line {n}"));
    lines.on_data(|line| log(line.as_str()));
    lines.on(END, says("end"));
    lines.on(CLOSE, says("close"));
}

#[cfg(unix)]
async fn process_once() {
    process::once_before_exit(|code| {
        log(format!("once.beforeExit-{code}"));
        set_immediate(say("revived"));
    });
    let turns = Cell::new(0);
    process::on_before_exit(move |_| {
        log("beforeExit");
        if turns.replace(turns.get() + 1) == 0 {
            set_immediate(say("again"));
        }
    });
    process::once_exit(|code| log(format!("once.exit-{code}")));
    process::once_warning(|w| log(format!("warning-{}", w.text())));
    process::emit_warning("Warning", "one");
    set_immediate(|| process::emit_warning("Warning", "two"));
    process::on_uncaught_exception_monitor(|error, origin| {
        log(format!("monitor-{error}-{origin}"))
    });
    process::once_uncaught_exception(|error, origin| {
        log(format!("caught-{error}-{origin}"));
        process::once_uncaught_exception(|error, _| log(format!("caught second-{error}")));
    });
    set_immediate(|| throw(Error::new("thrown")));
    set_immediate(|| drop(Promise::<()>::rejected(Error::new("rejected"))));
    let listener = process::once_signal(SignalKind::USR2, |_| log("signal")).unwrap();
    log("listeners-1");
    assert!(listener.remove() && !listener.remove());
}

async fn events_signal() {
    const X: Event<i32> = Event::new("x");
    let e = EventEmitter::new();
    let emitter = e.clone();
    let counts = move |name: &str| {
        let (x, error) = (emitter.listener_count(X), emitter.listener_count(ERROR));
        log(format!("{name}-{x}-{error}"));
    };
    let said = |name: &str, error: Error| {
        let cause = std::error::Error::source(&error).unwrap();
        let code = error.code().unwrap();
        log(format!("{name}-{}-{code}-{error}-{cause}", error.name()));
    };
    let c = AbortController::new();
    let waiting = once_with_signal(&e, X, &c.signal());
    counts("waiting");
    let count = counts.clone();
    set_immediate(move || {
        c.abort();
        count("aborted");
        next_tick(say("tick"));
        let micro = |n: i32| move |()| log(format!("micro {n}"));
        Promise::resolved(())
            .then(micro(1))
            .then(micro(2))
            .then(micro(3));
    });
    said("once", waiting.await.unwrap_err());
    let aborted = AbortController::new();
    aborted.abort();
    let before = once_with_signal(&e, X, &aborted.signal());
    counts("before");
    let micro = |n: i32| move |()| log(format!("micro {n}"));
    Promise::resolved(()).then(micro(1)).then(micro(2));
    said("before", before.await.unwrap_err());
    let kept = AbortController::new();
    let soon = once_with_signal(&e, X, &kept.signal());
    e.emit(X, 7);
    log(format!("value-{}", soon.await.unwrap()));
    kept.abort();
    let d = AbortController::new();
    let mut events = on_with_signal(&e, X, &d.signal());
    let emits = e.clone();
    set_immediate(move || {
        emits.emit(X, 1);
        emits.emit(X, 2);
        d.abort();
        emits.emit(X, 3);
    });
    while let Some(n) = events.next().await {
        match n {
            Ok(n) => log(format!("event-{n}")),
            Err(error) => said("on", error),
        }
    }
    drop(events);
    counts("over");
}

async fn net_options() {
    let over: Rc<RefCell<Vec<String>>> = Rc::default();
    let closed = over.clone();
    let options = SocketOptions {
        allow_half_open: true,
        high_water_mark: Some(4096),
    };
    let own: Rc<RefCell<Option<net::Server>>> = Rc::default();
    let this = own.clone();
    let server = net::create_server_with(options, move |s| {
        let marks = [
            s.readable().high_water_mark(),
            s.writable().high_water_mark(),
        ];
        log(format!(
            "marks-{}-{}-{}",
            marks[0],
            marks[1],
            s.allow_half_open()
        ));
        let server = this.borrow().clone().unwrap();
        server.get_connections(|n| log(format!("connections-null-{}", n.unwrap())));
        log("connection");
        let all: Rc<RefCell<String>> = Rc::default();
        let seen = all.clone();
        s.on_text(move |d| seen.borrow_mut().push_str(d));
        let socket = s.clone();
        s.on(END, move |()| {
            log(format!("server.end-{}", all.borrow()));
            let socket = socket.clone();
            set_immediate(move || {
                log(format!(
                    "server.writable-{}",
                    socket.writable().is_writable()
                ));
                socket.end("late");
            });
        });
        let (socket, closed) = (s.clone(), closed.clone());
        s.on(CLOSE, move |()| {
            let counts = format!("server-{}-{}", socket.bytes_read(), socket.bytes_written());
            closed.borrow_mut().push(counts);
        });
    });
    own.replace(Some(server.clone()));
    let listening = server.clone();
    server.listen_with(("127.0.0.1", 0), move || {
        let c = net::connect(listening.address().unwrap());
        log(format!("queued-{}", c.bytes_written()));
        c.write("hello");
        log(format!("queued-{}", c.bytes_written()));
        c.end(" world");
        log(format!("queued-{}", c.bytes_written()));
        let this = c.clone();
        c.on_text(move |d| log(format!("client.data-{d}-{}", this.bytes_read())));
        c.on(END, |()| log("client.end"));
        let (this, server, over, own) = (c.clone(), listening.clone(), over.clone(), own.clone());
        c.on(CLOSE, move |()| {
            let counts = format!("client-{}-{}", this.bytes_read(), this.bytes_written());
            over.borrow_mut().push(counts);
            own.take();
            let over = over.clone();
            server.close_with(move || keep_nothing_alive(over.clone()));
        });
    });
}

fn keep_nothing_alive(over: Rc<RefCell<Vec<String>>>) {
    let quiet = net::create_server(|s| {
        s.unref();
        log("second");
        s.on_data(|_| log("never"));
    });
    quiet.unref();
    let listening = quiet.clone();
    quiet.listen_with(("127.0.0.1", 0), move || {
        let c = net::connect(listening.address().unwrap());
        let (client, server, over) = (c.clone(), listening.clone(), over.clone());
        set_timeout(50, move || c.unref());
        process::on_exit(move |_| {
            let mut over = over.take();
            over.sort();
            over.into_iter().for_each(log);
            log(format!(
                "exit-{}-{}",
                client.destroyed(),
                server.is_listening()
            ));
        });
    });
}

async fn one_sided_object_mode() {
    let lines = Transform::bytes_to_objects(|chunk: String, out| {
        for line in chunk.split(',') {
            out.push(line.to_owned());
        }
        out.ok();
    })
    .readable_high_water_mark(3)
    .writable_high_water_mark(5)
    .build();
    let (readable, writable) = (lines.readable().clone(), lines.writable().clone());
    log(format!(
        "marks-{}-{}",
        readable.high_water_mark(),
        writable.high_water_mark()
    ));
    for text in ["a,b", "c,d", "e,f"] {
        let goes_on = writable.write(text);
        log(format!(
            "write-{goes_on}-{}-{}",
            writable.length(),
            readable.length()
        ));
    }
    readable.on_data(|line| log(format!("line-{line}")));
    lines.on(DRAIN, |()| log("drain"));
    lines.on(END, |()| log("end"));
    writable.end(());
    let bytes = Transform::objects_to_bytes(|n: usize, out| out.ok_with(vec![b'x'; n])).build();
    let (readable, writable) = (bytes.readable().clone(), bytes.writable().clone());
    log(format!(
        "marks-{}-{}",
        readable.high_water_mark(),
        writable.high_water_mark()
    ));
    writable.write(3_usize);
    writable.write(4_usize);
    log(format!("kept-{}", readable.length()));
    set_immediate(move || log(format!("read-{}", readable.read_text().unwrap())));
}

async fn dgram_connect() {
    fn said(f: impl FnOnce() + 'static) {
        let caught = phaseloop_node::catch(f).unwrap_err();
        let error: &Error = caught.error().unwrap().downcast_ref().unwrap();
        log(format!("{}-{error}", error.code().unwrap()));
    }
    let (server, client) = (dgram::Socket::new(), dgram::Socket::new());
    let (this, other) = (server.clone(), client.clone());
    server.on_message(move |m| {
        let text = String::from_utf8(m.bytes.clone()).unwrap();
        log(format!("message-{text}"));
        if text == "one two" {
            other.send_to_peer(b"three");
        } else {
            this.close();
            other.close();
        }
    });
    let bound = server.clone();
    server.bind_with("127.0.0.1:0".parse().unwrap(), move || {
        let to = bound.address().unwrap();
        let c = client.clone();
        said(move || assert!(c.remote_address().is_ipv4()));
        client.connect(to);
        let c = client.clone();
        said(move || c.connect(to));
        let this = client.clone();
        client.on(dgram::CONNECT, move |()| {
            log(format!("connect-{}", this.remote_address() == to));
            let c = this.clone();
            said(move || c.send(b"x", to));
            this.send_to_peer(&[&b"one "[..], b"two"].concat());
        });
    });
}
