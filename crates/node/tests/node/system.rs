//! What a program has of its system: files as streams, standard streams, signals, programs that are
//! run to their end, errors in Node's words. Traces and texts are those that Node prints for the
//! same programs.

use crate::run_to_end;
use crate::util::child::in_child;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use futures::StreamExt;
#[cfg(unix)]
use phaseloop::signal::SignalKind;
#[cfg(unix)]
use phaseloop_node::child_process::{EXIT, Exit, exec, exec_file, spawn};
use phaseloop_node::events::{self, ERROR, Event};
use phaseloop_node::fs::{OPEN, READY, ReadStreamOptions, WriteStreamOptions};
use phaseloop_node::net::{CONNECTION, LISTENING};
use phaseloop_node::stream::{CLOSE, END, FINISH, Readable, Writable, finished};
use phaseloop_node::{
    Emitter, Error, Promise, catch, dgram, dns, fs, net, next_tick, process, run, set_immediate,
    set_timeout,
};

/// Labels in the order in which they were logged.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn say(&self, what: impl ToString) {
        self.0.borrow_mut().push(what.to_string());
    }

    fn later(&self, what: &'static str) -> impl Fn() + Clone + 'static {
        let log = self.clone();
        move || log.say(what)
    }

    /// Logs these events by their names, with a prefix.
    fn listen(&self, emitter: &impl Emitter, prefix: &str, events: &[Event<()>]) {
        for event in events {
            let (log, name) = (self.clone(), format!("{prefix}{}", event.name()));
            emitter.on(*event, move |()| log.say(&name));
        }
    }

    fn take(&self) -> String {
        self.0.take().join(" ")
    }
}

/// A path of this test's own; what is there is removed.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("phaseloop-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// Runs a program and returns its trace.
fn trace(main: impl FnOnce(Log)) -> String {
    let log = Log::default();
    let said = log.clone();
    assert_eq!(run(async move { main(said) }).code(), 0);
    log.take()
}

/// N142: written before it is open, the file has it all; `open` and `ready` come together, `close`
/// after the file is closed.
#[test]
fn n142_a_write_stream_opens_writes_finishes_and_closes() {
    let path = scratch("write-stream");
    let file = path.clone();
    let seen = trace(move |log| {
        let w = fs::create_write_stream(&file);
        log.listen(&w, "", &[OPEN, READY, FINISH, CLOSE]);
        let said = log.clone();
        w.write_with(b"hello ".to_vec(), move |_| said.say("cb1"));
        let said = log.clone();
        w.end_with(b"world".to_vec(), move |_| said.say("end-cb"));
        next_tick(log.later("tick"));
    });
    assert_eq!(seen, "tick open ready cb1 end-cb finish close");
    assert_eq!(std::fs::read(&path).unwrap(), b"hello world");
    let append = WriteStreamOptions {
        flags: "a".into(),
        ..Default::default()
    };
    run_to_end(async {
        let w = fs::create_write_stream_with(&path, append);
        w.end(b"!".to_vec());
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"hello world!");
    std::fs::remove_file(&path).unwrap();
}

/// N140, N90: each chunk of a file is a callback with its drain.
#[test]
fn n140_a_read_stream_reads_its_part_chunk_by_chunk() {
    let path = scratch("read-stream");
    std::fs::write(&path, "hello world").unwrap();
    let file = path.clone();
    let seen = trace(move |log| {
        let part = ReadStreamOptions {
            start: 2,
            end: 8,
            high_water_mark: 4,
            ..Default::default()
        };
        let r = fs::create_read_stream_with(&file, part);
        log.listen(&r, "", &[OPEN, READY, END, CLOSE]);
        r.on_data(move |bytes| {
            log.say(String::from_utf8_lossy(bytes).trim());
            next_tick(log.later("tick"));
            let said = log.clone();
            Promise::resolved(()).then(move |()| said.say("micro"));
        });
    });
    assert_eq!(seen, "open ready llo tick micro wor tick end micro close");
    std::fs::remove_file(&path).unwrap();
}

/// N142, N140: flags, start, end and high-water mark, and what is counted meanwhile.
#[test]
fn n142_file_streams_have_the_options_of_nodes_and_count_their_bytes() {
    let path = scratch("stream-options");
    std::fs::write(&path, "0123456789").unwrap();
    let file = path.clone();
    let seen = trace(move |log| {
        let options = WriteStreamOptions {
            flags: "r+".into(),
            start: 3,
            ..Default::default()
        };
        let w = fs::create_write_stream_with(&file, options);
        log.say(format!("{}-{}", w.high_water_mark(), w.bytes_written()));
        log.say(format!("{}-{}", w.write("ab"), w.bytes_written()));
        w.write("cd");
        let (said, this) = (log.clone(), w.clone());
        w.on(OPEN, move |()| {
            said.say(format!("open-{}", this.bytes_written()))
        });
        let (said, this) = (log.clone(), w.clone());
        w.end_with("e", move |_| {
            said.say(format!("ended-{}", this.bytes_written()))
        });
        w.on(CLOSE, move |()| {
            log.say(std::fs::read_to_string(&file).unwrap());
            let part = ReadStreamOptions {
                start: 2,
                end: 8,
                high_water_mark: 3,
                ..Default::default()
            };
            let r = fs::create_read_stream_with(&file, part);
            let (said, this) = (log.clone(), r.clone());
            r.on_data(move |bytes| {
                let text = String::from_utf8_lossy(bytes);
                said.say(format!("{text}-{}", this.bytes_read()));
            });
            let (said, this) = (log.clone(), r.clone());
            r.on(END, move |()| {
                said.say(format!("end-{}", this.bytes_read()))
            });
        });
    });
    assert_eq!(
        seen,
        "65536-0 true-0 open-0 ended-5 012abcde89 2ab-3 cde-6 8-7 end-7"
    );
    std::fs::remove_file(&path).unwrap();
}

/// N142, N144: an exclusive flag, a low mark, an appending start, a file that is made to be read.
#[test]
fn n142_the_flags_of_file_streams_are_those_of_open() {
    let (path, made) = (scratch("stream-flags"), scratch("stream-made"));
    std::fs::write(&path, "text").unwrap();
    let (file, new) = (path.clone(), made.clone());
    let seen = trace(move |log| {
        let exclusive = WriteStreamOptions {
            flags: "wx".into(),
            high_water_mark: 2,
            ..Default::default()
        };
        let x = fs::create_write_stream_with(&file, exclusive);
        log.say(format!("{}-{}", x.write("a"), x.write("b")));
        let (said, this) = (log.clone(), x.clone());
        x.on(ERROR, move |error| {
            let fields = (error.code(), error.syscall(), this.bytes_written());
            said.say(format!("{fields:?}"));
        });
        x.once(CLOSE, move |()| {
            // The kernel appends, wherever the write was to go.
            let append = WriteStreamOptions {
                flags: "a".into(),
                start: 1,
                flush: true,
                ..Default::default()
            };
            fs::create_write_stream_with(&file, append).end("ZZ");
            let makes = ReadStreamOptions {
                flags: "w+".into(),
                ..Default::default()
            };
            let r = fs::create_read_stream_with(&new, makes);
            r.resume();
            let directory = fs::create_read_stream(std::env::temp_dir());
            directory.on(ERROR, move |error| log.say(error.message()));
            directory.resume();
        });
    });
    // Windows refuses to open a directory as a file.
    let failed = if cfg!(unix) {
        "read".to_owned()
    } else {
        format!("open '{}'", std::env::temp_dir().display())
    };
    assert_eq!(
        seen,
        format!(
            "true-false (Some(\"EEXIST\"), Some(\"open\"), 0) EISDIR: illegal operation on a directory, {failed}"
        )
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"textZZ");
    assert_eq!(std::fs::read(&made).unwrap(), b"");
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&made).unwrap();
}

#[test]
fn n140_a_read_stream_that_begins_behind_its_end_is_refused() {
    let thrown = catch(|| {
        let options = ReadStreamOptions {
            start: 2,
            end: 1,
            ..Default::default()
        };
        drop(fs::create_read_stream_with("any", options));
    });
    let error = thrown.unwrap_err();
    let text =
        "The value of \"start\" is out of range. It must be <= \"end\" (here: 1). Received 2";
    assert_eq!(
        (error.name(), error.code()),
        ("RangeError", Some("ERR_OUT_OF_RANGE"))
    );
    assert_eq!(error.to_string(), text);
}

#[test]
fn n090_rm_of_a_directory_names_its_call_and_its_path() {
    let path = scratch("rm-directory");
    std::fs::create_dir_all(&path).unwrap();
    let file = path.clone();
    run_to_end(async move {
        let refused = fs::promises::rm(&file, fs::RmOptions::default()).await;
        let reason = refused.unwrap_err();
        let error: &Error = reason.downcast_ref().unwrap();
        let names = (error.name(), error.code(), error.syscall());
        assert_eq!(names, ("SystemError", Some("ERR_FS_EISDIR"), Some("rm")));
        assert_eq!(error.path(), Some(&*file));
    });
    std::fs::remove_dir(&path).unwrap();
}

/// A pipe has no offsets: it is streamed from where it is.
#[cfg(unix)]
#[test]
fn n140_a_pipe_is_read_as_a_file_stream() {
    let (read, mut write) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut write, b"through a pipe").unwrap();
    drop(write);
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&read));
    let seen = trace(move |log| {
        let r = fs::create_read_stream(path);
        r.on_data(move |bytes| log.say(String::from_utf8_lossy(bytes)));
    });
    assert_eq!(seen, "through a pipe");
}

#[test]
fn n144_a_read_stream_fails_or_is_destroyed_and_closes() {
    let path = scratch("destroyed-stream");
    std::fs::write(&path, "text").unwrap();
    let file = path.clone();
    let seen = trace(move |log| {
        let missing = fs::create_read_stream("no-such-file");
        let said = log.clone();
        missing.on(ERROR, move |error| said.say(error.message()));
        log.listen(&missing, "missing-", &[OPEN, CLOSE]);
        missing.on(CLOSE, move |()| {
            let r = fs::create_read_stream(&file);
            log.listen(&r, "", &[OPEN, READY, END, CLOSE]);
            r.destroy(None);
            log.say("destroyed");
        });
    });
    assert_eq!(
        seen,
        "ENOENT: no such file or directory, open 'no-such-file' missing-close destroyed open ready close"
    );
    std::fs::remove_file(&path).unwrap();
}

/// A pipe cannot be read at a position.
#[cfg(unix)]
#[test]
fn a_read_stream_reads_what_cannot_seek() {
    let path = scratch("fifo");
    // `rustix` cannot make one on macOS.
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let (fifo, log) = (path.clone(), Log::default());
    let writer = std::thread::spawn(move || std::fs::write(fifo, "through the pipe"));
    let (fifo, said) = (path.clone(), log.clone());
    let exit = run(async move {
        let r = fs::create_read_stream(fifo);
        r.on_data(move |bytes| said.say(String::from_utf8_lossy(bytes)));
    });
    assert_eq!(exit.code(), 0);
    writer.join().unwrap().unwrap();
    assert_eq!(log.take(), "through the pipe");
    std::fs::remove_file(&path).unwrap();
}

/// N101: one that is taken off in time is not called, and none keeps the loop alive.
#[cfg(unix)]
#[test]
fn n101_listeners_of_a_signal_come_and_go() {
    let seen = trace(|log| {
        let said = log.clone();
        let first = process::on_signal(SignalKind::USR2, move |_| said.say("never")).unwrap();
        let said = log.clone();
        process::on_signal(SignalKind::USR2, move |kind| said.say(kind)).unwrap();
        set_timeout(5, move || {
            signal_hook::low_level::raise(SignalKind::USR2.as_raw()).unwrap();
            assert!(first.remove() && !first.remove());
            set_immediate(log.later("immediate"));
        });
    });
    assert_eq!(seen, "SIGUSR2 immediate");
    let refused = run(async { process::on_signal(SignalKind::KILL, |_| ()).unwrap_err() });
    let refused = refused.into_output().unwrap();
    assert_eq!(refused.message(), "uv_signal_start EINVAL");
    assert_eq!(refused.syscall(), Some("uv_signal_start"));
}

/// Both listeners are called before a drain.
#[cfg(unix)]
#[test]
fn n101_a_signal_is_one_callback() {
    let seen = trace(|log| {
        for label in ["a", "b"] {
            let said = log.clone();
            process::on_signal(SignalKind::USR1, move |_| {
                said.say(label);
                next_tick(said.later("tick"));
            })
            .unwrap();
        }
        set_timeout(5, move || {
            signal_hook::low_level::raise(SignalKind::USR1.as_raw()).unwrap();
            set_immediate(log.later("immediate"));
        });
    });
    assert_eq!(seen, "a b tick tick immediate");
}

#[cfg(unix)]
#[test]
fn standard_output_is_written_at_once_and_calls_back_by_a_tick() {
    let seen = trace(|log| {
        let out = process::stdout();
        let said = log.clone();
        out.write_with(b"".to_vec(), move |result| said.say(result.is_ok()));
        next_tick(log.later("tick"));
        log.say("sync");
        assert!(process::stderr().write(Vec::new()));
        assert_eq!(process::stdout().length(), out.length(), "the same stream");
    });
    assert_eq!(seen, "sync true tick");
}

/// In a process of its own, which reads from a pipe.
#[cfg(unix)]
#[test]
fn standard_input_is_a_stream() {
    let name = "standard_input_is_a_stream";
    let piped = ["sh", "-c", r#"printf hello | "$0" "$@""#];
    let child = in_child(&piped, name, || {
        let exit = run(async {
            let mut chunks = process::stdin().chunks();
            let mut all = Vec::new();
            while let Some(chunk) = chunks.next().await {
                all.extend(chunk.unwrap());
            }
            assert_eq!(all, b"hello");
        });
        assert_eq!(exit.code(), 0);
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// N102: called when the child is closed.
#[cfg(unix)]
#[test]
fn n102_exec_calls_back_with_output_and_error() {
    let seen = trace(|log| {
        let said = log.clone();
        let child = exec("echo out; echo err >&2; exit 3", move |error, out, err| {
            let error = error.unwrap();
            said.say(format!("{:?} {out:?} {err:?}", error.message()));
        });
        let said = log.clone();
        child.on(EXIT, move |exit: &Exit| said.say(exit.code.unwrap()));
    });
    assert_eq!(
        seen,
        r#"3 "Command failed: echo out; echo err >&2; exit 3\nerr\n" "out\n" "err\n""#
    );
    let seen = trace(|log| {
        exec_file("echo", ["one", "two"], move |error, out, _| {
            log.say(format!("{} {out:?}", error.is_none()));
            exec_file("no-such-program", [], move |error, _, _| {
                let error = error.unwrap();
                log.say(error.message());
                assert_eq!(error.path(), Some("no-such-program".as_ref()));
                exec_file("sh", ["-c", "kill -9 $$"], move |error, _, _| {
                    log.say(error.unwrap().message().trim());
                });
            });
        });
    });
    assert_eq!(
        seen,
        "true \"one two\\n\" spawn no-such-program ENOENT Command failed: sh -c kill -9 $$"
    );
}

#[cfg(unix)]
#[test]
fn exec_ends_a_program_that_writes_too_much() {
    let seen = trace(|log| {
        exec("yes", move |error, out, _| {
            log.say(error.unwrap().message());
            log.say(out.len());
        });
    });
    assert_eq!(seen, "stdout maxBuffer length exceeded 1048576");
}

/// `events.once` and `events.on` of whatever emits.
#[cfg(unix)]
#[test]
fn n117_events_of_sockets_servers_and_children_are_awaited() {
    let exit = run(async {
        let server = net::Server::new();
        let listening = events::once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let mut connections = events::on(&server, CONNECTION);
        let client = net::connect(server.address().unwrap());
        let accepted = connections.next().await.unwrap().unwrap();
        accepted.end(());
        client.resume();
        events::once(&client, CLOSE).await.unwrap();
        server.close();
        let child = spawn("true", []);
        let exit = events::once(&child, EXIT).await.unwrap();
        assert_eq!(exit.code, Some(0));
        let readable = Readable::from_iter([1]);
        readable.resume();
        events::once(&readable, END).await.unwrap();
    });
    assert_eq!(exit.code(), 0);
}

/// Collects the messages of errors by label, in any order.
#[test]
fn errors_are_in_nodes_words() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (taken.local_addr().unwrap(), taken_udp.local_addr().unwrap());
    let log = Log::default();
    let said = log.clone();
    let exit = run(async move {
        let say = |label: &'static str| {
            let said = said.clone();
            move |error: &Error| {
                let code = error.code().unwrap_or("");
                let call = error.syscall().unwrap_or("");
                said.say(format!("{label}|{error}|{code}|{call}"));
            }
        };
        let file = |label| {
            let say = say(label);
            move |error: Error| say(&error)
        };
        let f = file("stat");
        fs::stat("nope", move |r| f(r.unwrap_err()));
        let f = file("write");
        fs::write_file("/nope/x", "a", move |r| f(r.unwrap_err()));
        let f = file("mkdir");
        fs::mkdir("src", move |r| f(r.unwrap_err()));
        let f = file("readdir");
        fs::readdir("nope", move |r| f(r.unwrap_err()));
        let f = file("unlink");
        fs::unlink("nope", move |r| f(r.unwrap_err()));
        let f = file("rename");
        fs::rename("nope", "b", move |r| f(r.unwrap_err()));
        let f = file("copy");
        fs::copy_file("nope", "b", move |r| f(r.unwrap_err()));
        let f = file("lookup");
        dns::lookup("nope.invalid", move |r| {
            let error = r.unwrap_err();
            // Without a name server the lookup fails with `EAI_AGAIN`.
            assert!(["ENOTFOUND", "EAI_AGAIN"].contains(&error.code().unwrap()));
            assert!(error.message().ends_with(" nope.invalid"), "{error}");
            let _ = f;
        });
        let refused = net::connect(("127.0.0.1", 1));
        refused.on(ERROR, say("connect"));
        #[cfg(unix)]
        net::connect(std::path::Path::new("/nope.sock")).on(ERROR, say("local"));
        let server = net::Server::new();
        server.on(ERROR, say("listen"));
        server.listen(tcp);
        #[cfg(unix)]
        {
            let server = net::Server::new();
            server.on(ERROR, say("listen local"));
            server.listen(std::path::Path::new("/nope/x.sock"));
        }
        let socket = dgram::Socket::new();
        socket.on(ERROR, say("bind"));
        socket.bind(udp);
        #[cfg(unix)]
        spawn("no-such-program", ["a"]).on(ERROR, say("spawn"));

        let sink = || Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
        let ended = sink();
        ended.on(ERROR, say("after end"));
        ended.end(());
        ended.write(Vec::new());
        let destroyed = sink();
        destroyed.destroy(None);
        let f = file("destroyed");
        destroyed.write_with(Vec::new(), move |r| f(r.unwrap_err()));
        let closed = sink();
        let f = file("premature");
        finished(&closed).then(move |r| f(r.unwrap_err()));
        closed.destroy(None);
        let pushed = Readable::<Vec<u8>>::bytes().read(|_, _| ()).build();
        pushed.on(ERROR, say("push"));
        pushed.push_end();
        pushed.push(Vec::from("x"));
    });
    assert_eq!(exit.code(), 0);
    let mut seen = log.0.take();
    seen.sort();
    let port = |address: std::net::SocketAddr| address.port();
    let mut expected = [
        "stat|ENOENT: no such file or directory, stat 'nope'|ENOENT|stat",
        "write|ENOENT: no such file or directory, open '/nope/x'|ENOENT|open",
        "mkdir|EEXIST: file already exists, mkdir 'src'|EEXIST|mkdir",
        "readdir|ENOENT: no such file or directory, scandir 'nope'|ENOENT|scandir",
        "unlink|ENOENT: no such file or directory, unlink 'nope'|ENOENT|unlink",
        "rename|ENOENT: no such file or directory, rename 'nope' -> 'b'|ENOENT|rename",
        "copy|ENOENT: no such file or directory, copyfile 'nope' -> 'b'|ENOENT|copyfile",
        "connect|connect ECONNREFUSED 127.0.0.1:1|ECONNREFUSED|connect",
        #[cfg(unix)]
        "local|connect ENOENT /nope.sock|ENOENT|connect",
        #[cfg(unix)]
        "listen local|listen EACCES: permission denied /nope/x.sock|EACCES|listen",
        #[cfg(unix)]
        "spawn|spawn no-such-program ENOENT|ENOENT|spawn no-such-program",
        "after end|write after end|ERR_STREAM_WRITE_AFTER_END|",
        "destroyed|Cannot call write after a stream was destroyed|ERR_STREAM_DESTROYED|",
        "premature|Premature close|ERR_STREAM_PREMATURE_CLOSE|",
        "push|stream.push() after EOF|ERR_STREAM_PUSH_AFTER_EOF|",
    ]
    .map(str::to_owned)
    .to_vec();
    expected.push(format!(
        "listen|listen EADDRINUSE: address already in use 127.0.0.1:{}|EADDRINUSE|listen",
        port(tcp)
    ));
    expected.push(format!(
        "bind|bind EADDRINUSE 127.0.0.1:{}|EADDRINUSE|bind",
        port(udp)
    ));
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn errors_keep_what_they_are_about() {
    let exit = run(async {
        let missing = fs::promises::rename("nope", "b").await.unwrap_err();
        let missing: &Error = missing.error().unwrap().downcast_ref().unwrap();
        assert_eq!(missing.path(), Some("nope".as_ref()));
        assert_eq!(missing.target(), Some("b".as_ref()));
        assert_eq!(missing.errno(), Some(-2));
        let refused = net::connect(("127.0.0.1", 1));
        let refused = events::once(&refused, CLOSE).await.unwrap_err();
        assert_eq!(refused.address(), Some("127.0.0.1:1".parse().unwrap()));
        assert_eq!(refused.path(), None);
    });
    assert_eq!(exit.code(), 0);
}

/// N102, N144: a listener that is added inside CLOSE is called for what is emitted later.
#[test]
fn listeners_that_are_added_inside_the_close_of_a_child_stay() {
    let text = trace(|log| {
        let child = spawn("true", []);
        let it = child.clone();
        child.on(phaseloop_node::child_process::CLOSE, move |_| {
            let received = log.clone();
            it.on(ERROR, move |error| received.say(error));
            let it = it.clone();
            set_immediate(move || {
                it.emit(ERROR, Error::new("later"));
            });
        });
    });
    assert_eq!(text.trim(), "later");
}
