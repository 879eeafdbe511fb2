//! 743–746: errors without a listener, rejections with no errors, late ends, removed listeners.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, Event, EventEmitter, REMOVE_LISTENER};
use phaseloop_node::http::{self, Agent, ClientRequest, RequestOptions};
use phaseloop_node::stream::{
    CLOSE, Duplex, FINISH, PREFINISH, Readable, Transform, UNPIPE, Writable,
};
use phaseloop_node::{Emitter, Error, Promise, Reason, process, set_immediate, throw, try_call};

use crate::support::{log, say, says};

super::ports! {
    Virtual "743-unheard-stream-errors" => unheard_stream_errors,
    Virtual "744-rejections-of-no-errors" => rejections_of_no_errors,
    Real "745-request-ends-behind-its-close" => request_ends_behind_its_close,
    Virtual "746-remove-all-listeners" => remove_all_listeners,
}

/// A step, which gets those behind it.
struct Step(Box<dyn FnOnce(VecDeque<Self>)>);

/// What a stream says of its end.
type State = Box<dyn Fn() -> (bool, Option<Error>)>;

fn step<E: Emitter + Clone + 'static>(
    name: &'static str,
    make: impl FnOnce() -> (E, State) + 'static,
) -> Step {
    Step(Box::new(move |rest| {
        log(name);
        let (stream, state) = make();
        stream.on(CLOSE, move |()| log(format!("{name} close")));
        let after = move || {
            let (destroyed, errored) = state();
            let errored = errored.map_or("null".to_owned(), |error| error.to_string());
            log(format!("{name} {destroyed} {errored}"));
            drop(stream);
            next_step(rest);
        };
        set_immediate(|| drop(set_immediate(after)));
    }))
}

fn next_step(mut steps: VecDeque<Step>) {
    if let Some(Step(step)) = steps.pop_front() {
        step(steps);
    }
}

type Bytes = Vec<u8>;

fn readable(stream: Readable<Bytes>) -> (Readable<Bytes>, State) {
    let this = stream.clone();
    (stream, Box::new(move || (this.destroyed(), this.errored())))
}

fn writable(stream: Writable<Bytes>) -> (Writable<Bytes>, State) {
    let this = stream.clone();
    (stream, Box::new(move || (this.destroyed(), this.errored())))
}

fn destroyed(stream: Readable<Bytes>, message: &'static str) -> (Readable<Bytes>, State) {
    stream.destroy(Some(Error::new(message)));
    readable(stream)
}

fn endless() -> Readable<Bytes> {
    Readable::bytes().build()
}

fn tells(what: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
    move |result| log(format!("{what} {}", result.unwrap_err()))
}

async fn unheard_stream_errors() {
    process::on_uncaught_exception(|e, _| log(format!("uncaught {e}")));
    next_step(VecDeque::from([
        step("readable", || destroyed(endless(), "r")),
        step("without", || {
            let stream = endless();
            stream.destroy(None);
            readable(stream)
        }),
        step("read", || {
            let stream = Readable::bytes()
                .read(|this: &Readable<Bytes>, _| this.destroy(Some(Error::new("in read"))))
                .build();
            stream.resume();
            readable(stream)
        }),
        step("listener", || {
            let stream = endless();
            stream.on(ERROR, |_| {
                log("heard");
                throw("mine")
            });
            stream.on(ERROR, says("never"));
            destroyed(stream, "r")
        }),
        step("monitor", || {
            let stream = endless();
            stream.on(ERROR.monitor(), |e| log(format!("monitor {e}")));
            destroyed(stream, "m")
        }),
        step("writable", || {
            let stream = Writable::bytes(|_: Bytes, done| done.fail(Error::new("w"))).build();
            stream.on(FINISH, says("finish"));
            stream.write_with("a", tells("first"));
            stream.write_with("b", tells("second"));
            writable(stream)
        }),
        step("kept", || {
            let stream = Writable::bytes(|_: Bytes, done| done.fail(Error::new("k")))
                .auto_destroy(false)
                .build();
            stream.write_with("a", tells("first"));
            writable(stream)
        }),
        step("duplex", || {
            let sink = Writable::bytes(|_: Bytes, done| done.ok());
            let stream = Duplex::new(Readable::<Bytes>::bytes(), sink);
            stream.destroy(Some(Error::new("d")));
            let this = stream.clone();
            let state: State =
                Box::new(move || (this.readable().destroyed(), this.readable().errored()));
            (stream, state)
        }),
        step("transform", || {
            let stream: Transform<Bytes, Bytes> =
                Transform::bytes(|_: Bytes, out| out.fail(Error::new("t"))).build();
            stream.writable().write("a");
            let this = stream.clone();
            let state: State =
                Box::new(move || (this.readable().destroyed(), this.readable().errored()));
            (stream.duplex().clone(), state)
        }),
        step("piped", || {
            let (source, sink) = (
                endless(),
                Writable::bytes(|_: Bytes, done| done.ok()).build(),
            );
            sink.on(UNPIPE, says("unpipe"));
            source.on(CLOSE, says("source close"));
            source.pipe(&sink);
            sink.destroy(Some(Error::new("p")));
            writable(sink)
        }),
        step("heard", || {
            let stream = endless();
            stream.on(ERROR, |e| log(format!("heard {e}")));
            destroyed(stream, "h")
        }),
    ]));
}

/// Logs a text of several lines, as the lines that it prints.
fn log_lines(text: &str) {
    text.split('\n').for_each(log);
}

fn show(what: &'static str) -> impl Fn(&Reason, process::Origin) + 'static {
    move |e, origin| {
        let code = e.code().unwrap_or("null");
        log_lines(&format!("{what} {} {code} {e} {origin}", e.name()));
    }
}

async fn rejections_of_no_errors() {
    process::on_uncaught_exception_monitor(show("monitor"));
    process::on_uncaught_exception(show("uncaught"));
    let reject = |value: &'static str| Promise::<()>::rejected(Reason::value(value));
    reject("text");
    Promise::<()>::rejected(Reason::value(42));
    reject("null");
    reject("two\nlines \"quoted\"");
    Promise::<()>::rejected(Error::range_error("range"));
    drop(try_call(async { Err::<(), _>(Reason::value("thrown")) }));
    reject("caught").catch(|e| log(format!("caught {e}")));
    reject("passed on").finally(say("finally"));
    set_immediate(|| {
        process::once_unhandled_rejection(|reason| {
            log(format!(
                "unhandled {reason} {}",
                reason.code().unwrap_or("null")
            ));
        });
        Promise::<()>::rejected(Reason::value("heard"));
        set_immediate(|| {
            process::on_exit(|code| log(format!("exit {code}")));
            process::set_exit_code(0);
        });
    });
}

type Case = (
    &'static str,
    fn(RequestOptions) -> RequestOptions,
    fn(&ClientRequest),
);

async fn request_ends_behind_its_close() {
    let server = http::create_server(|_, res| {
        res.set_header("Connection", "close");
        res.end("hi");
    });
    let cases: [Case; 5] = [
        (
            "length",
            |options| options.method("POST").header("Content-Length", 0),
            |req| req.end(()),
        ),
        ("get", |options| options, |req| req.end(())),
        (
            "chunked",
            |options| options.method("POST"),
            |req| req.end(()),
        ),
        (
            "data",
            |options| options.method("POST").header("Content-Length", 4),
            |req| req.end("late"),
        ),
        (
            "twice",
            |options| options,
            |req| {
                req.end(());
                req.end(());
            },
        ),
    ];
    server.listen_this(("127.0.0.1", 0), move |server| {
        next_request(server.clone(), cases.into());
    });
}

fn next_request(server: http::Server, mut cases: VecDeque<Case>) {
    let Some((name, set, end)) = cases.pop_front() else {
        return inside(server);
    };
    let options = RequestOptions::new(server.address().unwrap()).agent(&Agent::none());
    let req = http::request(set(options));
    req.on_response(move |res| {
        res.resume();
        res.on(CLOSE, move |()| log(format!("{name} res.close")));
    });
    req.on(PREFINISH, move |()| log(format!("{name} prefinish")));
    req.on(FINISH, move |()| log(format!("{name} finish")));
    req.on(ERROR, move |e| {
        log(format!("{name} error {}", e.code().unwrap()));
    });
    req.once_this(CLOSE, move |req, ()| {
        log(format!("{name} close"));
        let req = req.clone();
        set_immediate(move || {
            end(&req);
            log(format!("{name} ended-{}", req.ended()));
            req.on(FINISH, move |()| log(format!("{name} late")));
            let after = || next_request(server, cases);
            set_immediate(|| drop(set_immediate(after)));
        });
    });
    req.flush_headers();
}

fn inside(server: http::Server) {
    let options = RequestOptions::new(server.address().unwrap()).agent(&Agent::none());
    let req = http::request(options);
    req.on_response(|res| {
        res.resume();
    });
    req.on(FINISH, move |()| {
        log("inside finish");
        let server = server.clone();
        set_immediate(move || server.close_with(say("closed")));
    });
    req.on_this(CLOSE, |req, ()| {
        log("inside close");
        req.end(());
        log("inside sync");
    });
    req.flush_headers();
}

const A: Event<()> = Event::new("a");
const B: Event<()> = Event::new("b");
const C: Event<()> = Event::new("c");

async fn remove_all_listeners() {
    let one = EventEmitter::new();
    one.on(ERROR.monitor(), |_| ());
    for name in ["b", "a", "2", "10", "1", "01", "a", "-1"] {
        one.on(Event::<()>::new(name), |()| ());
    }
    one.on(ERROR, |_| ());
    one.on(REMOVE_LISTENER, |name| log(format!("removed {name}")));
    one.once(C, |()| ());
    log(one.event_names().join(" "));
    one.remove_all_events();
    log(format!("left {}", one.event_names().len()));
    let two = EventEmitter::new();
    two.on(A, |()| ());
    two.on(B, |()| ());
    two.on_this(REMOVE_LISTENER, |two, name| {
        log(format!("removed {name}"));
        two.on(if name == "a" { C } else { B }, |()| ());
    });
    two.remove_all_events();
    log(format!("left {}", two.event_names().len()));
    let three = EventEmitter::new();
    let added = Rc::new(Cell::new(0));
    three.on(A, |()| ());
    three.on(A, |()| ());
    three.on_this(REMOVE_LISTENER, move |three, name| {
        log(format!("removed {name} {}", three.listener_count(A)));
        if added.replace(added.get() + 1) < 2 {
            three.on(A, |()| ());
        }
    });
    three.remove_all(A);
    log(format!("left {}", three.listener_count(A)));
    three.remove_all(REMOVE_LISTENER);
    log(format!("names {}", three.event_names().join(" ")));
}
