//! 400–419: the order of callbacks and the words of errors, where a port is likely to differ.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::dgram;
use phaseloop_node::events::{ERROR, Event, EventEmitter};
#[cfg(target_os = "linux")]
use phaseloop_node::fs::{self, OPEN, READY};
use phaseloop_node::net::{self, CONNECT, LISTENING};
use phaseloop_node::process::{self, Warning};
use phaseloop_node::stream::{
    CLOSE, DRAIN, Duplex, END, FINISH, FinishedOptions, NoChunk, Readable, Writable, finished_with,
};
use phaseloop_node::timers::promises as sleeps;
use phaseloop_node::worker_threads::{EXIT, MessagePort, ONLINE, Worker};
use phaseloop_node::{
    AbortController, AbortSignal, AggregateError, Emitter, Error, Promise, Reason, any, call,
    call_returning, next_tick, queue_microtask, set_immediate, set_timeout, thenable, throw,
};

#[cfg(target_os = "linux")]
use crate::support::scratch;
use crate::support::{log, say, says, socket_path};

super::ports! {
    Virtual "400-exit-microtasks" => exit_microtasks,
    Virtual "401-then-thenable" => then_thenable,
    Real "402-unheard-error" => unheard_error,
    Virtual "403-finished-one-side" => finished_one_side,
    Real "404-worker-terminated-early" => worker_terminated_early,
    Real "405-dgram-send-order" => dgram_send_order,
    Real "406-dgram-burst" => dgram_burst,
    Real "407-dgram-unbound" => dgram_unbound,
    Real "408-words" => words,
    // Linux alone has a device that is always full.
    #[cfg(target_os = "linux")]
    Real "409-file-writes-queue-up" => file_writes_queue_up,
    // A named pipe cannot be closed in one direction.
    #[cfg(unix)]
    Real "410-socket-writes-queue-up" => socket_writes_queue_up,
    Real "411-closed-before-connected" => closed_before_connected,
    #[cfg(unix)]
    Real "412-throwing-listeners" => throwing_listeners,
}

/// The error of this crate that a reason is.
fn error_of(reason: &Reason) -> &Error {
    let error = reason.error().and_then(|error| error.downcast_ref());
    error.expect("it is one of this crate")
}

fn then(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

async fn exit_microtasks() {
    process::on_exit(|code| {
        log(format!("exit1-{code}"));
        next_tick(say("tick"));
        set_immediate(say("immediate"));
        queue_microtask(say("micro"));
        Promise::resolved(()).then(|()| {
            log("then");
            next_tick(say("tick2"));
            queue_microtask(|| {
                log("micro2");
                throw("late")
            });
            queue_microtask(say("micro3"));
        });
    });
    process::on_exit(|_| log("exit2"));
    process::on_uncaught_exception(|error, _| log(format!("uncaught-{error}")));
    process::on_unhandled_rejection(|reason| log(format!("unhandled-{reason}")));
    process::on_exit(|_| drop(Promise::<()>::rejected(Error::new("rejected"))));
    set_timeout(1, say("timeout"));
}

async fn then_thenable() {
    let start = || Promise::resolved(());
    let resolving = || thenable(|deferred| deferred.resolve(()));
    let log_then = |promise: Promise<()>, token: &'static str| {
        promise.then(move |()| log(token));
    };
    log_then(start().then(|()| ()), "value");
    log_then(start().and_then(move |()| resolving()), "thenable");
    log_then(start().and_then(move |()| start()), "promise");
    log_then(call_returning(async move { resolving() }), "async-thenable");
    log_then(call_returning(async move { start() }), "async-promise");
    let resolved = Promise::new(|deferred| deferred.adopt(resolving()));
    log_then(resolved, "resolve-thenable");
    log_then(resolving().into_promise(), "Promise.resolve-thenable");
    call(async move {
        resolving().await.expect("it is resolved");
        log("await-thenable");
    });
    let nested = move |()| thenable(move |deferred| deferred.adopt(resolving()));
    log_then(start().and_then(nested), "nested");
    let throwing = |()| thenable(|_| throw("thrown"));
    start()
        .and_then(throwing)
        .catch(|reason| log(reason.to_string()));
    let resolves_first = |()| {
        thenable(|deferred| {
            deferred.resolve(());
            throw("ignored")
        })
    };
    log_then(start().and_then(resolves_first), "resolved-first");
    let own: Rc<RefCell<Option<Promise<()>>>> = Rc::default();
    let this = own.clone();
    let promise = start().and_then(move |()| this.take().expect("it was put there"));
    own.replace(Some(promise.clone()));
    promise.catch(|reason| {
        let error = error_of(&reason);
        log(format!("{}: {}", error.name(), error.message()));
    });
    let mut counted = start();
    for n in 1..=8 {
        counted = counted.then(move |()| log(format!("m{n}")));
    }
}

async fn unheard_error() {
    const TEXT: Event<&str> = Event::error();
    let coded = Error::with_code("E_CODED", "coded");
    let emit = |error: &Error| {
        EventEmitter::new().emit(ERROR, error);
    };
    let same = coded.clone();
    process::on_uncaught_exception(move |uncaught, origin| {
        let error = error_of(uncaught);
        let (is_it, code) = (error.is(&same), error.code().unwrap_or("undefined"));
        let (name, message) = (error.name(), error.message());
        log(format!("uncaught {is_it} {name} {code} {message} {origin}"));
    });
    process::on_exit(|code| log(format!("exit-{code}")));
    let steps: VecDeque<Box<dyn FnOnce(Error)>> = VecDeque::from([
        Box::new(move |coded: Error| emit(&coded)) as Box<dyn FnOnce(Error)>,
        Box::new(|_| {
            EventEmitter::new().emit(TEXT, "text");
        }),
        Box::new(move |coded| {
            let emitter = EventEmitter::new();
            emitter.on(ERROR.monitor(), |error| log(format!("monitor {error}")));
            emitter.emit(ERROR, &coded);
        }),
        Box::new(|coded| {
            let destroy = move |readable: &Readable<u8>, _| readable.destroy(Some(coded.clone()));
            Readable::objects().read(destroy).build().resume();
        }),
        // It connects to a port that refuses, and goes on after the close.
        Box::new(|_| ()),
        Box::new(move |coded| {
            Promise::resolved(()).then(move |()| emit(&coded));
        }),
        Box::new(move |coded| {
            let same = coded.clone();
            Promise::<()>::new(move |_| emit(&coded))
                .catch(move |reason| log(format!("rejected {}", error_of(&reason).is(&same))));
        }),
    ]);
    fn next(mut steps: VecDeque<Box<dyn FnOnce(Error)>>, coded: Error) {
        let Some(step) = steps.pop_front() else {
            return;
        };
        set_immediate(move || {
            let (error, left) = (coded.clone(), steps.len());
            let go_on = move || next(steps, coded);
            if left == 2 {
                let go_on = Cell::new(Some(go_on));
                net::connect(("127.0.0.1", 1)).on(CLOSE, move |()| {
                    set_immediate(go_on.take().expect("it closes once"));
                });
            } else {
                set_immediate(go_on);
            }
            step(error);
        });
    }
    next(steps, coded);
}

async fn finished_one_side() {
    let duplex = |name: &'static str| {
        let sink = Writable::bytes(|_: Vec<u8>, done| done.ok());
        let duplex = Duplex::new(Readable::<()>::objects(), sink);
        for (event, token) in [(FINISH, "finish"), (END, "end"), (CLOSE, "close")] {
            duplex.on(event, move |()| log(format!("{name} {token}")));
        }
        duplex.on(ERROR, move |_| log(format!("{name} error")));
        duplex
    };
    let over = |name: &'static str| {
        move |result: Result<(), Error>| match result {
            Ok(()) => log(format!("{name} over")),
            Err(error) => {
                let why = error.code().unwrap_or(error.message());
                log(format!("{name} over {why}"));
            }
        }
    };
    let all = FinishedOptions::default();
    let written = FinishedOptions {
        readable: false,
        ..all
    };
    let read = FinishedOptions {
        writable: false,
        ..all
    };
    let d = duplex("a");
    finished_with(&d, written).then(over("a"));
    d.writable().end("x");
    next_tick(say("tick"));
    let d = duplex("b");
    finished_with(&d, read).then(over("b"));
    d.readable().push_end();
    d.readable().resume();
    let d = duplex("c");
    finished_with(&d, written).then(over("c"));
    d.destroy(None);
    let d = duplex("d");
    finished_with(&d, written).then(over("d"));
    d.destroy(Some(Error::new("boom")));
    let d = duplex("e");
    finished_with(
        &d,
        FinishedOptions {
            error: false,
            ..all
        },
    )
    .then(over("e"));
    d.destroy(Some(Error::new("boom")));
    let f = duplex("f");
    f.writable().end(());
    set_immediate(move || {
        finished_with(&f, written).then(over("f"));
        log("f asked");
    });
    let d = duplex("g");
    let neither = FinishedOptions {
        writable: false,
        ..written
    };
    finished_with(&d, neither).then(over("g"));
    d.writable().end(());
    d.readable().resume();
    d.readable().push_end();
    let w = Writable::objects(|(), done| done.ok()).build();
    finished_with(&w, written).then(over("w"));
    w.on(FINISH, says("w finish"));
    w.on(CLOSE, says("w close"));
    w.end(NoChunk);
}

async fn worker_terminated_early() {
    type Greeter = Worker<u8, &'static str>;
    fn make(name: &'static str, next: fn()) -> Greeter {
        let main = |port: MessagePort<&'static str, u8>| async move { port.post_message("hi") };
        let worker = Worker::new(main).expect("there is a thread left");
        worker.on(ONLINE, move |()| log(format!("{name} online")));
        worker.on_message(move |_| log(format!("{name} message")));
        worker.on(ERROR, move |_| log(format!("{name} error")));
        worker.on(EXIT, move |code| {
            log(format!("{name} exit {code}"));
            next();
        });
        worker
    }
    fn now() {
        let worker = make("now", tick);
        worker.post_message(1);
        worker.terminate();
        worker.terminate();
    }
    fn tick() {
        let worker = make("tick", immediate);
        next_tick(move || drop(worker.terminate()));
    }
    fn immediate() {
        let worker = make("immediate", online);
        set_immediate(move || drop(worker.terminate()));
    }
    fn online() {
        let main = |port: MessagePort<(), ()>| async move {
            port.on_message(|()| ());
        };
        let worker = Worker::new(main).expect("there is a thread left");
        let this = worker.clone();
        worker.on(ONLINE, move |()| {
            log("online");
            this.terminate();
        });
        worker.on(EXIT, |code| {
            log(format!("exit {code}"));
            thrown();
        });
    }
    fn thrown() {
        let main = |_: MessagePort<(), ()>| async {
            throw(Error::with_code("E_WORKER", "thrown"));
        };
        let worker: Worker<(), ()> = Worker::new(main).expect("there is a thread left");
        worker.on(ONLINE, says("online"));
        worker.on(ERROR, |error| {
            let code = error.code().unwrap_or("undefined");
            log(format!("{} {code} {}", error.name(), error.message()));
        });
        worker.on(EXIT, |code| log(format!("exit {code}")));
    }
    now();
}

fn loopback(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn port_of(socket: &dgram::Socket) -> u16 {
    socket.address().expect("it is bound").port()
}

async fn dgram_send_order() {
    process::on_uncaught_exception(|uncaught, _| {
        let error = error_of(uncaught);
        let code = error.code().unwrap_or("undefined");
        log(format!("{} {code} {}", error.name(), error.message()));
    });
    let s = dgram::Socket::new();
    s.on(LISTENING, says("listening"));
    s.on(ERROR, |error| log(format!("error {error}")));
    s.on(CLOSE, says("close"));
    let (left, this) = (Cell::new(3), s.clone());
    s.on_message(move |datagram| {
        log(format!(
            "message {}",
            String::from_utf8_lossy(&datagram.bytes)
        ));
        left.set(left.get() - 1);
        if left.get() == 0 {
            let this = this.clone();
            set_immediate(move || close(&this));
        }
    });
    let this = s.clone();
    s.bind_with(loopback(0), move || {
        log("bound");
        let to = loopback(port_of(&this));
        for name in ["a", "bb", "ccc"] {
            this.send_with(name.as_bytes(), to, move |sent| {
                let size = sent.expect("it was sent");
                log(format!("sent {name} null {size}"));
                next_tick(move || log(format!("tick of {name}")));
            });
        }
        this.send_with(&[b'x'; 70_000], to, |sent| {
            let error = sent.expect_err("it is too long");
            let (code, syscall) = (error.code(), error.syscall());
            log(format!("{} {}", code.unwrap(), syscall.unwrap()));
        });
        this.send(&[b'x'; 70_000], to);
        next_tick(say("tick"));
        then("promise");
        set_immediate(say("immediate"));
        log("end of bound");
    });
    set_immediate(move || s.bind(loopback(0)));

    fn close(s: &dgram::Socket) {
        let to = loopback(port_of(s));
        s.send_with(b"late", to, |_| log("never"));
        s.close_with(|| log("close callback"));
        log("closed");
        next_tick(say("tick"));
        let [sends, closes, binds] = [(); 3].map(|()| s.clone());
        set_immediate(move || sends.send_with(b"x", to, |_| log("never")));
        set_immediate(move || closes.close());
        set_immediate(move || binds.bind(loopback(0)));
        set_immediate(say("end"));
    }
}

async fn dgram_burst() {
    let (r, s) = (dgram::Socket::new(), dgram::Socket::new());
    process::on_uncaught_exception(|error, _| log(format!("uncaught {error}")));
    let (n, receiver, sender) = (Cell::new(0), r.clone(), s.clone());
    r.on_message(move |datagram| {
        log(format!("m{}", String::from_utf8_lossy(&datagram.bytes)));
        next_tick(say("tick"));
        then("promise");
        n.set(n.get() + 1);
        if n.get() == 70 {
            receiver.close();
            sender.close();
        }
        if n.get() == 5 {
            throw("fifth");
        }
    });
    fn immediate(left: u32) {
        log("immediate");
        if left > 1 {
            set_immediate(move || immediate(left - 1));
        }
    }
    let receiver = r.clone();
    r.bind_with(loopback(0), move || {
        let (receiver, sender) = (receiver.clone(), s.clone());
        s.bind_with(loopback(0), move || {
            let to = loopback(port_of(&receiver));
            for i in 0..70 {
                sender.send(i.to_string().as_bytes(), to);
            }
            set_immediate(|| immediate(5));
        });
    });
}

async fn dgram_unbound() {
    process::on_uncaught_exception(|error, _| {
        log(format!("uncaught {}", error.code().unwrap_or("undefined")));
    });
    fn make(name: &'static str) -> dgram::Socket {
        let socket = dgram::Socket::new();
        socket.on(LISTENING, move |()| log(format!("{name} listening")));
        socket.on(CLOSE, move |()| log(format!("{name} close")));
        socket
    }
    let to = loopback(9);
    let a = make("a");
    a.send_with(b"a", to, |sent| log(format!("a sent {}", sent.unwrap())));
    let this = a.clone();
    a.send_with(b"aa", to, move |sent| {
        log(format!("a sent {}", sent.unwrap()));
        this.close();
    });
    next_tick(say("tick"));
    then("promise");
    let b = make("b");
    b.send_with(b"b", to, |_| log("never"));
    b.close();
    log("b closes");
    let c = make("c");
    c.bind(loopback(0));
    c.close_with(|| log("c callback"));
    let d = make("d");
    d.close_with(|| log("d callback"));
    let e = make("e");
    e.send_with(b"e", to, |_| log("never"));
    e.close();
    e.send_with(b"e", to, |_| log("never"));
    set_immediate(move || {
        log("immediate");
        let taken = make("taken");
        let this = taken.clone();
        taken.bind_with(loopback(0), move || {
            let (f, taken) = (make("f"), this.clone());
            f.bind_with(loopback(port_of(&taken)), || log("never"));
            f.send_with(b"f", to, |_| log("never"));
            set_immediate(move || {
                log("f again");
                let this = f.clone();
                f.bind_with(loopback(0), move || {
                    log("f bound");
                    this.close();
                    taken.close();
                });
            });
        });
    });
}

async fn words() {
    const DATA: Event<()> = Event::new("data");
    const A: Event<()> = Event::new("a");
    const X: Event<()> = Event::new("x");
    let or_undefined = |text: Option<&str>| text.unwrap_or("undefined").to_owned();
    process::on_warning(move |warning| {
        let (code, detail) = (or_undefined(warning.code()), or_undefined(warning.detail()));
        log(format!(
            "{} | {} | {code} | {detail}",
            warning.name(),
            warning.text()
        ));
    });
    let e = EventEmitter::new();
    for _ in 0..12 {
        e.on(DATA, |()| ());
    }
    let mine = EventEmitter::of_class("Mine");
    mine.set_max_listeners(1);
    mine.on(ERROR.monitor(), |_| ());
    let second = mine.on(ERROR.monitor(), |_| ());
    mine.off(second);
    mine.on(ERROR.monitor(), |_| ());
    mine.on(A, |()| ());
    mine.prepend(A, |()| ());
    mine.once(A, |()| ());
    let (readable, socket, server) = (
        Readable::<Vec<u8>>::bytes().build(),
        net::Socket::new(),
        net::Server::new(),
    );
    for emitter in [readable.emitter(), socket.emitter(), server.emitter()] {
        emitter.set_max_listeners(1);
        emitter.on(X, |()| ());
        emitter.on(X, |()| ());
    }
    log(mine.event_names().join(" "));
    process::emit_warning("Warning", "plain");
    process::emit_warning("MyType", "typed");
    Warning::new("MyType", "coded").with_code("C001").emit();
    let detailed = Warning::new("MyType", "detailed").with_code("C002");
    detailed.with_detail("more").emit();
    let say = move |what: &str, error: &Error| {
        let code = or_undefined(error.code());
        log(format!(
            "{what} | {} | {} | {code}",
            error.name(),
            error.message()
        ));
    };
    let controller = AbortController::new();
    controller.abort();
    let reason = |signal: &AbortSignal| signal.reason().expect("it was aborted");
    say("abort", &reason(&controller.signal()));
    say("static", &reason(&controller.signal()));
    let timeout = AbortSignal::timeout(1);
    let this = timeout.clone();
    timeout.on_abort(move || say("timeout", &reason(&this)));
    set_timeout(100, || ());
    let options = sleeps::Options::new().signal(&controller.signal());
    sleeps::set_timeout_with(1, (), &options).catch(move |reason| {
        let error = error_of(&reason);
        say("sleep", error);
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
        say("cause", cause.expect("the reason of the abort"));
    });
    any([Promise::<()>::rejected(Error::new("a"))]).catch(|reason| {
        let error = reason.error().and_then(|error| error.downcast_ref());
        let error: &AggregateError = error.expect("all were rejected");
        log(format!("any | {} | {error} | undefined", error.name()));
        log(error.reasons().len().to_string());
    });
}

/// A callback that logs its name, then a tick and a promise of its own.
fn written(name: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
    move |result| {
        let why = result.err().map_or(String::new(), |error| {
            format!(" {}", error.code().unwrap_or("undefined"))
        });
        log(format!("written {name}{why}"));
        next_tick(move || log(format!("tick {name}")));
        Promise::resolved(()).then(move |()| log(format!("promise {name}")));
    }
}

#[cfg(target_os = "linux")]
async fn file_writes_queue_up() {
    fn events(name: &'static str, stream: &Writable<Vec<u8>>) {
        let named = [OPEN, READY, DRAIN, FINISH, CLOSE];
        for event in named {
            stream.on(event, move |()| log(format!("{name} {}", event.name())));
        }
        stream.on(ERROR, move |error| log(format!("{name} {error}")));
    }
    fn write_all(stream: &Writable<Vec<u8>>, names: &[&'static str]) {
        for name in names {
            stream.write_with(*name, written(name));
        }
    }
    fn aborted() {
        let v = fs::create_write_stream(scratch("file"));
        events("v", &v);
        let this = v.clone();
        v.on(READY, move |()| {
            write_all(&this, &["v1", "v2", "v3"]);
            this.destroy(None);
        });
        v.on(CLOSE, |()| drop(set_immediate(early)));
    }
    fn early() {
        let u = fs::create_write_stream(scratch("file"));
        events("u", &u);
        write_all(&u, &["u1", "u2"]);
        u.destroy(None);
        u.on(CLOSE, |()| drop(set_immediate(missing)));
    }
    fn missing() {
        let t = fs::create_write_stream("/nonexistent/file");
        write_all(&t, &["t1", "t2"]);
        events("t", &t);
        t.on(CLOSE, |()| drop(set_immediate(full)));
    }
    fn full() {
        let f = fs::create_write_stream("/dev/full");
        write_all(&f, &["f1", "f2"]);
        f.end_with((), written("end"));
        events("f", &f);
    }
    let w = fs::create_write_stream(scratch("file"));
    events("w", &w);
    let rooms = ["a", "b", "c"].map(|name| w.write_with(name, written(name)).to_string());
    log(rooms.join(" "));
    let this = w.clone();
    w.on(READY, move |()| {
        this.write_with("d", written("d"));
        this.write("e");
        this.cork();
        let last = this.clone();
        this.write_with("f", move |result| {
            written("f")(result);
            set_timeout(20, move || {
                write_all(&last, &["h", "i"]);
                last.end_with("j", written("end"));
            });
        });
        this.uncork();
        log(format!("length {}", this.length()));
    });
    w.on(CLOSE, |()| {
        log(std::fs::read_to_string(scratch("file")).expect("it was written"));
        aborted();
    });
}

#[cfg(unix)]
async fn socket_writes_queue_up() {
    let server = net::Server::new();
    let this = server.clone();
    server.on(net::CONNECTION, move |socket| {
        let got = Rc::new(RefCell::new(Vec::new()));
        let (all, server) = (got.clone(), this.clone());
        socket.on_data(move |bytes| got.borrow_mut().extend_from_slice(bytes));
        socket.on(END, move |()| {
            log(format!("got {}", String::from_utf8_lossy(&all.borrow())));
            server.close();
        });
    });
    server.listen_with(socket_path("s"), || {
        let c = net::connect(socket_path("s"));
        for name in ["a", "b", "c"] {
            c.write_with(name, written(name));
        }
        let this = c.clone();
        c.on(CONNECT, move |()| {
            let sink = this.writable().clone();
            log("connect");
            this.write_with("d", written("d"));
            this.write_with("e", written("e"));
            sink.cork();
            this.write_with("f", written("f"));
            this.write_with("g", written("g"));
            this.write("h");
            log(format!("corked {}", sink.length()));
            sink.uncork();
            log(format!("uncorked {}", sink.length()));
            let this = this.clone();
            set_immediate(move || {
                sink.cork();
                this.write_with("i", written("i"));
                sink.cork();
                this.write_with("j", written("j"));
                sink.uncork();
                log(format!("still {}", sink.length()));
                next_tick(move || {
                    sink.uncork();
                    log(format!("now {}", sink.length()));
                    sink.cork();
                    this.write_with("k", written("k"));
                    sink.end_with("l", written("end"));
                });
            });
        });
        for event in [net::READY, DRAIN, FINISH, CLOSE] {
            c.on(event, move |()| log(event.name()));
        }
    });
}

async fn closed_before_connected() {
    fn text(error: &Error) -> String {
        let text = format!("{} {error}", error.code().unwrap_or("undefined"));
        text.replace(&socket_path("none").display().to_string(), "/none")
    }
    fn told(name: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
        move |result| {
            let what = result.err().map_or("ok".to_owned(), |error| text(&error));
            log(format!("told {name} {what}"));
            next_tick(move || log(format!("tick {name}")));
        }
    }
    fn watch(name: &'static str, socket: net::Socket) -> net::Socket {
        for event in [CONNECT, net::READY, END, DRAIN, FINISH] {
            socket.on(event, move |()| log(format!("{name} {}", event.name())));
        }
        let this = socket.clone();
        socket.on(CLOSE, move |()| {
            log(format!("{name} close {}", this.had_error()));
            set_timeout(10, next);
        });
        socket.on(ERROR, move |error| {
            log(format!("{name} error {}", text(error)))
        });
        socket
    }
    fn connected(name: &'static str) -> net::Socket {
        watch(name, net::connect(socket_path("s")))
    }
    fn write(socket: &net::Socket, names: &[&'static str]) {
        for name in names {
            socket.write_with(*name, told(name));
        }
    }
    fn end(socket: &net::Socket) {
        socket.writable().end_with((), told("end"));
    }
    let steps: VecDeque<fn()> = VecDeque::from([
        (|| {
            let s = connected("write");
            write(&s, &["x", "y"]);
            s.destroy(None);
        }) as fn(),
        || {
            let s = connected("write-error");
            write(&s, &["x", "y"]);
            s.destroy(Some(Error::new("boom")));
        },
        || {
            let s = connected("end");
            end(&s);
            s.destroy(None);
        },
        || {
            let s = connected("end-chunk");
            s.writable().end_with("data", told("end"));
            s.destroy(None);
        },
        || {
            let s = connected("tick");
            write(&s, &["x"]);
            next_tick(move || s.destroy(None));
        },
        || {
            let s = net::connect(socket_path("s"));
            write(&s, &["x"]);
            watch("listens-later", s).destroy(None);
        },
        || {
            let s = watch("missing", net::connect(socket_path("none")));
            write(&s, &["x", "y"]);
            end(&s);
        },
        || {
            let s = watch("refused", net::connect(("127.0.0.1", 1)));
            write(&s, &["x"]);
            end(&s);
        },
        || {
            let s = connected("after");
            s.destroy(None);
            write(&s, &["x"]);
            end(&s);
        },
        || {
            let s = watch("never", net::Socket::new());
            write(&s, &["x"]);
            end(&s);
        },
        || {
            end(&watch("never-end", net::Socket::new()));
            set_timeout(10, next);
        },
        || {
            let s = connected("connected");
            let this = s.clone();
            s.on(CONNECT, move |()| {
                write(&this, &["x", "y"]);
                end(&this);
                this.destroy(None);
            });
        },
        || {
            let s = connected("connected-end");
            let this = s.clone();
            s.on(CONNECT, move |()| {
                end(&this);
                this.destroy(None);
            });
        },
    ]);
    STEPS.set(steps);
    let server = net::create_server(|socket| {
        socket.on(ERROR, |_| ());
        socket.resume();
    });
    SERVER.set(Some(server.clone()));
    server.listen_with(socket_path("s"), next);
}

thread_local! {
    /// What is left of `closed_before_connected`.
    static STEPS: RefCell<VecDeque<fn()>> = const { RefCell::new(VecDeque::new()) };
    static SERVER: RefCell<Option<net::Server>> = const { RefCell::new(None) };
}

fn next() {
    let step = STEPS.with_borrow_mut(VecDeque::pop_front);
    match (step, SERVER.take()) {
        (Some(step), server) => {
            SERVER.set(server);
            log("--");
            step();
        }
        (None, Some(server)) => server.close(),
        (None, None) => unreachable!("it is taken in the end"),
    }
}

#[cfg(unix)]
async fn throwing_listeners() {
    let [a, b] = [(); 2].map(|()| Rc::new(RefCell::new(None::<net::Socket>)));
    let get =
        |socket: &Rc<RefCell<Option<net::Socket>>>| socket.borrow().clone().expect("it was made");
    let first = b.clone();
    process::on_uncaught_exception(move |uncaught, _| {
        let text = uncaught.to_string();
        log(format!("uncaught {text}"));
        if text == "in connect" {
            let socket = get(&first);
            set_immediate(move || {
                socket.write("1");
            });
        }
    });
    let server = net::Server::new();
    let (count, this, others) = (Cell::new(0), server.clone(), (a.clone(), b.clone()));
    server.on(net::CONNECTION, move |socket| {
        count.set(count.get() + 1);
        log(format!("connection {}", count.get()));
        socket.on(ERROR, |_| ());
        let (a, b) = others.clone();
        socket.on_data(move |bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            log(format!("data {text}"));
            let late = text.clone();
            next_tick(move || log(format!("tick {late}")));
            let socket = get(&b);
            if text == "2" {
                set_immediate(move || socket.end("3"));
            } else if text == "1" {
                set_immediate(move || {
                    socket.write("2");
                });
                throw("in data");
            }
        });
        let server = this.clone();
        socket.on(END, move |()| {
            log("end");
            get(&a).destroy(None);
            server.close();
        });
        if count.get() == 1 {
            throw("in connection");
        }
    });
    server.on(CLOSE, says("closed"));
    server.listen_with(socket_path("s"), move || {
        let socket = net::connect(socket_path("s"));
        a.replace(Some(socket.clone()));
        let b = b.clone();
        socket.on(CONNECT, move |()| {
            log("a connect");
            let b = b.clone();
            set_immediate(move || {
                let socket = net::connect(socket_path("s"));
                b.replace(Some(socket.clone()));
                socket.on(CONNECT, |()| {
                    log("b connect");
                    throw("in connect");
                });
                socket.on(net::READY, says("never"));
            });
        });
    });
}
