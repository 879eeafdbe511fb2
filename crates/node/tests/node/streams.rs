//! Streams, N140–N145, against Node: each trace is what the same program prints there.

use crate::util::trace::{Trace, paused};
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::StreamExt;
use futures::io::{AsyncRead, AsyncWrite};
use phaseloop_node::events::{ERROR, Event, WeakThis};
use phaseloop_node::stream::{
    AnyStream, CLOSE, DRAIN, Duplex, END, FINISH, PAUSE, PIPE, READABLE, RESUME, Readable,
    Transform, UNPIPE, Writable, finished, pipeline,
};
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, call, next_tick, process, run_on, set_immediate,
    set_timeout,
};

/// Runs a program on the paused clock and returns what it logs.
fn traced(main: impl FnOnce(&Trace)) -> String {
    let (mut event_loop, _, trace) = paused();
    let log = trace.clone();
    let exit = run_on(&mut event_loop, async move { main(&log) });
    assert_eq!(exit.code(), 0);
    trace.take()
}

/// A result as the programs print it.
fn text(result: &Result<(), Error>) -> String {
    result
        .as_ref()
        .map_or_else(error_text, |()| "ok".to_owned())
}

fn error_text(error: &Error) -> String {
    match error.code() {
        Some(code) if code.starts_with("ERR_STREAM") => code.to_owned(),
        _ => error.to_string(),
    }
}

/// What logs `label` and a result.
fn reports(trace: &Trace, label: impl ToString) -> impl FnOnce(Result<(), Error>) + 'static {
    let (trace, label) = (trace.clone(), label.to_string());
    move |result| trace.log(format_args!("{label}-{}", text(&result)))
}

/// What logs `label`.
fn says(trace: &Trace, label: impl ToString) -> impl FnOnce(Result<(), Error>) + 'static {
    let (trace, label) = (trace.clone(), label.to_string());
    move |_| trace.log(label)
}

/// Logs events of a stream by their names.
fn events(trace: &Trace, stream: &impl AnyStream, prefix: &'static str, names: &[&str]) {
    fn log<A: 'static>(
        trace: &Trace,
        stream: &impl AnyStream,
        prefix: &'static str,
        event: Event<A>,
    ) {
        let trace = trace.clone();
        let name = event.name();
        stream.on(event, move |_| trace.log(format_args!("{prefix}{name}")));
    }
    for name in names {
        match *name {
            "error" => {
                let trace = trace.clone();
                stream.on(ERROR, move |error| {
                    trace.log(format_args!("{prefix}error-{}", error_text(error)));
                });
            }
            "pipe" => log(trace, stream, prefix, PIPE),
            "unpipe" => log(trace, stream, prefix, UNPIPE),
            _ => {
                let event = [END, CLOSE, FINISH, DRAIN, PAUSE, RESUME, READABLE]
                    .into_iter()
                    .find(|event| event.name() == *name);
                log(trace, stream, prefix, event.unwrap());
            }
        }
    }
}

/// A sink that logs, and is done at once.
fn sink(trace: &Trace, prefix: &'static str) -> Writable<u32> {
    let trace = trace.clone();
    Writable::objects(move |chunk, done| {
        trace.log(format_args!("{prefix}{chunk}"));
        done.ok();
    })
    .build()
}

/// A sink that logs, and is done in the check phase; its second chunk fails if it is to.
fn slow_sink(trace: &Trace, mark: usize, fails: bool) -> Writable<u32> {
    let trace = trace.clone();
    Writable::objects(move |chunk, done| {
        trace.log(format_args!("w{chunk}"));
        set_immediate(move || {
            if fails && chunk == 2 {
                done.fail(Error::new("bad"));
            } else {
                done.ok();
            }
        });
    })
    .high_water_mark(mark)
    .build()
}

/// A source that is pushed into from outside.
fn source() -> Readable<u32> {
    Readable::objects().build()
}

fn push_all(readable: &Readable<u32>, chunks: impl IntoIterator<Item = u32>) {
    for chunk in chunks {
        readable.push(chunk);
    }
}

/// Logs chunks with a prefix.
fn data(trace: &Trace, readable: &Readable<u32>) {
    let trace = trace.clone();
    readable.on_data(move |chunk| trace.log(format_args!("d{chunk}")));
}

/// `Promise.resolve().then(..)`, several links that log.
fn chain(trace: &Trace, prefix: &'static str, links: u32) {
    let mut promise = Promise::resolved(());
    for link in 1..=links {
        let trace = trace.clone();
        promise = promise.then(move |()| trace.log(format_args!("{prefix}{link}")));
    }
}

// Readable streams.

#[test]
fn n140_a_flow_stops_and_goes_on() {
    let trace = traced(|trace| {
        let readable = source();
        events(trace, &readable, "", &["pause", "resume", "end", "close"]);
        let (log, this) = (trace.clone(), readable.clone());
        readable.on_data(move |&chunk| {
            log.log(format_args!("d{chunk}"));
            if chunk == 2 {
                this.pause();
                let (log, this) = (log.clone(), this.clone());
                set_immediate(move || {
                    log.log("imm");
                    this.resume();
                    log.log("resumed");
                });
            }
        });
        push_all(&readable, 1..=3);
        readable.push_end();
    });
    assert_eq!(trace, "resume d1 d2 pause imm resumed resume d3 end close");
}

#[test]
fn n141_bytes_are_read_in_the_sizes_asked_for() {
    let trace = traced(|trace| {
        let readable = Readable::<String>::bytes().build();
        readable.push("cd".to_owned());
        readable.unshift("ab".to_owned());
        readable.push("ef".to_owned());
        let (log, this) = (trace.clone(), readable.clone());
        readable.on(READABLE, move |()| {
            log.log("readable");
            while let Some(chunk) = this.read_size(3) {
                log.log(format_args!("c{chunk}"));
            }
        });
        events(trace, &readable, "", &["end", "close"]);
        set_immediate(move || {
            readable.push("gh".to_owned());
            set_immediate(move || readable.push_end());
        });
    });
    assert_eq!(trace, "readable cabc cdef readable readable cgh end close");
}

#[test]
fn n141_asking_for_more_than_the_mark_raises_it() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let readable = Readable::<String>::bytes()
            .high_water_mark(4)
            .read(move |_, size| log.log(format_args!("read{size}")))
            .build();
        let (log, this) = (trace.clone(), readable.clone());
        readable.on(READABLE, move |()| {
            log.log(format_args!("readable{}", this.length()))
        });
        events(trace, &readable, "", &["end", "close"]);
        let pushed = ["abc", "def"].map(|chunk| readable.push(chunk.to_owned()));
        trace.log(format_args!("{}{}", pushed[0], pushed[1]));
        let show = |chunk: Option<String>| chunk.unwrap_or_else(|| "null".to_owned());
        let (log, this) = (trace.clone(), readable.clone());
        next_tick(move || {
            log.log(format_args!("n2 {}", show(this.read_size(2))));
            log.log(format_args!("n9 {}", show(this.read_size(9))));
            log.log(format_args!("hwm{}", this.high_water_mark()));
        });
        let log = trace.clone();
        set_immediate(move || {
            log.log(format_args!("push {}", readable.push("gh".to_owned())));
            readable.push_end();
            log.log(format_args!("n9 {}", show(readable.read_size(9))));
        });
    });
    assert_eq!(
        trace,
        "truefalse readable6 n2 ab read16 n9 null hwm16 push true readable6 n9 cdefgh readable0 end close"
    );
}

#[test]
fn n141_a_listener_for_readable_stops_the_flow_until_it_goes() {
    let trace = traced(|trace| {
        let readable = source();
        data(trace, &readable);
        let id = Rc::new(Cell::new(None));
        let (log, this, own) = (trace.clone(), readable.clone(), id.clone());
        id.set(Some(readable.on(READABLE, move |()| {
            log.log("readable");
            while let Some(chunk) = this.read() {
                log.log(format_args!("r{chunk}"));
            }
            this.off(own.get().unwrap());
        })));
        events(trace, &readable, "", &["end", "close"]);
        readable.push(1);
        set_immediate(move || {
            readable.push(2);
            set_immediate(move || {
                readable.push(3);
                readable.push_end();
            });
        });
    });
    assert_eq!(trace, "readable d1 r1 d2 d3 end close");
}

#[test]
fn n141_readable_can_be_heard_once_at_a_time() {
    fn receive(trace: &Trace, readable: &Readable<String>, turn: u32) {
        let (log, this) = (trace.clone(), readable.clone());
        readable.once(READABLE, move |()| {
            let chunk = this.read().unwrap_or_else(|| "null".to_owned());
            log.log(format_args!("readable{turn} {chunk}"));
            if turn < 3 {
                receive(&log, &this, turn + 1);
            }
        });
    }
    let trace = traced(|trace| {
        let readable = Readable::<String>::bytes().build();
        events(trace, &readable, "", &["end", "close"]);
        receive(trace, &readable, 1);
        readable.push("a".to_owned());
        set_immediate(move || {
            readable.push("b".to_owned());
            set_immediate(move || readable.push_end());
        });
    });
    assert_eq!(trace, "readable1 a readable2 b readable3 null end close");
}

#[test]
fn a_mark_of_zero_reads_on_demand() {
    let trace = traced(|trace| {
        let (log, next) = (trace.clone(), Cell::new(0));
        let readable = Readable::objects()
            .high_water_mark(0)
            .read(move |readable: &Readable<u32>, _| {
                log.log("read");
                let chunk = next.get();
                next.set(chunk + 1);
                if chunk < 3 {
                    let readable = readable.clone();
                    next_tick(move || push_all(&readable, [chunk]));
                } else {
                    readable.push_end();
                }
            })
            .build();
        events(trace, &readable, "", &["end", "close", "resume"]);
        data(trace, &readable);
    });
    assert_eq!(trace, "read resume d0 read d1 read d2 read end close");
}

#[test]
fn n141_an_empty_chunk_that_is_put_back_is_none() {
    let said = traced(|trace| {
        let (stream, data) = (Readable::<String>::bytes().build(), trace.clone());
        stream.on_data(move |text| data.log(text.len()));
        stream.unshift(String::new());
        stream.push("ab".to_owned());
        stream.push_end();
    });
    assert_eq!(said, "2");
}

#[test]
fn a_push_after_the_end_is_an_error() {
    let trace = traced(|trace| {
        let readable = source();
        events(trace, &readable, "", &["end", "close", "error", "readable"]);
        readable.push(1);
        readable.push_end();
        readable.push(2);
        trace.log("sync");
    });
    assert_eq!(trace, "sync error-ERR_STREAM_PUSH_AFTER_EOF close");
}

#[test]
fn a_read_that_panics_destroys_the_stream() {
    let trace = traced(|trace| {
        let readable = Readable::<u32>::objects()
            .read(|_, _| phaseloop_node::throw("in read"))
            .build();
        events(trace, &readable, "", &["end", "close", "error"]);
        readable.resume();
    });
    assert_eq!(trace, "error-in read close");
}

#[test]
fn n144_a_destroy_inside_the_flow_waits_for_its_function() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let readable = Readable::objects()
            .destroy(move |error, done| {
                log.log("_destroy");
                set_immediate(move || {
                    log.log("closed");
                    done.pass(error);
                });
            })
            .build();
        events(trace, &readable, "", &["end", "close", "error"]);
        let (log, this) = (trace.clone(), readable.clone());
        readable.on_data(move |&chunk: &u32| {
            log.log(format_args!("d{chunk}"));
            if chunk == 2 {
                this.destroy(Some(Error::new("x")));
            }
        });
        push_all(&readable, 1..=3);
        readable.push_end();
    });
    assert_eq!(trace, "d1 d2 _destroy d3 closed error-x close");
}

#[test]
fn without_auto_destroy_errors_are_emitted_at_once_and_nothing_closes() {
    let trace = traced(|trace| {
        let readable = Readable::objects().auto_destroy(false).build();
        events(trace, &readable, "r.", &["end", "close", "error"]);
        data(trace, &readable);
        readable.push(1);
        readable.push_end();
        readable.push(2);
        let writable = Writable::objects(|_: u32, done| done.fail(Error::new("bad")))
            .auto_destroy(false)
            .build();
        events(trace, &writable, "w.", &["finish", "close", "error"]);
        writable.write_with(1, reports(trace, "cb"));
        trace.log("sync");
    });
    assert_eq!(
        trace,
        "r.error-ERR_STREAM_PUSH_AFTER_EOF sync cb-bad w.error-bad"
    );
}

// Writable streams.

#[test]
fn n142_a_write_that_fails_at_once() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let writable = Writable::objects(move |chunk: u32, done| {
            log.log(format_args!("w{chunk}"));
            match chunk {
                2 => done.fail(Error::new("bad")),
                _ => done.ok(),
            }
        })
        .build();
        events(trace, &writable, "", &["finish", "close", "error", "drain"]);
        for chunk in 1..=3 {
            writable.write_with(chunk, reports(trace, format_args!("cb{chunk}")));
        }
        writable.end_with((), reports(trace, "end"));
        trace.log("sync");
    });
    assert_eq!(
        trace,
        "w1 w2 sync cb1-ok cb2-bad cb3-bad end-bad error-bad close"
    );
}

#[test]
fn n142_a_write_that_fails_later() {
    let trace = traced(|trace| {
        let writable = slow_sink(trace, 16, true);
        events(trace, &writable, "", &["finish", "close", "error", "drain"]);
        for chunk in 1..=4 {
            writable.write_with(chunk, reports(trace, format_args!("cb{chunk}")));
        }
        writable.end_with((), reports(trace, "end"));
    });
    assert_eq!(
        trace,
        "w1 w2 cb1-ok cb2-bad cb3-bad cb4-bad end-bad error-bad close"
    );
}

#[test]
fn a_write_after_the_end_is_an_error() {
    let trace = traced(|trace| {
        let writable = sink(trace, "w");
        events(trace, &writable, "", &["finish", "close", "error"]);
        writable.end_with(1, says(trace, "ended"));
        trace.log(writable.write_with(2, reports(trace, "cb2")));
        writable.end_with((), reports(trace, "end2"));
        let log = trace.clone();
        set_immediate(move || {
            log.log("imm");
            writable.write_with(3, reports(&log, "cb3"));
            writable.end_with((), reports(&log, "end3"));
        });
    });
    assert_eq!(
        trace,
        "w1 false ended cb2-ERR_STREAM_WRITE_AFTER_END error-ERR_STREAM_WRITE_AFTER_END close \
         end2-ERR_STREAM_DESTROYED imm cb3-ERR_STREAM_WRITE_AFTER_END end3-ERR_STREAM_DESTROYED"
    );
}

#[test]
fn n142_corked_chunks_are_written_together() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let writable = Writable::objects(|_: u32, _| unreachable!("several wait"))
            .write_all(move |chunks, done| {
                let chunks: String = chunks.iter().map(u32::to_string).collect();
                log.log(format_args!("v{chunks}"));
                set_immediate(move || done.ok());
            })
            .build();
        events(trace, &writable, "", &["finish", "close", "drain"]);
        writable.cork();
        writable.write_with(1, says(trace, "cb1"));
        writable.write_with(2, says(trace, "cb2"));
        trace.log("corked");
        writable.cork();
        writable.uncork();
        trace.log("still");
        writable.uncork();
        trace.log("uncorked");
        writable.write_with(3, says(trace, "cb3"));
        writable.write_with(4, says(trace, "cb4"));
        writable.end_with((), says(trace, "end"));
    });
    assert_eq!(
        trace,
        "corked still v12 uncorked v34 cb1 cb2 cb3 cb4 end finish close"
    );
}

#[test]
fn n142_a_write_inside_the_function_write_comes_next() {
    let trace = traced(|trace| {
        let (log, this) = (trace.clone(), Rc::new(Cell::new(None::<Writable<u32>>)));
        let own = this.clone();
        let writable = Writable::objects(move |chunk, done| {
            log.log(format_args!("w{chunk}"));
            if let Some(writable) = own.take() {
                writable.write_with(9, says(&log, "cb9"));
            }
            done.ok();
        })
        .build();
        this.set(Some(writable.clone()));
        events(trace, &writable, "", &["finish", "close"]);
        writable.write_with(1, says(trace, "cb1"));
        writable.write_with(2, says(trace, "cb2"));
        writable.end(());
        trace.log("sync");
    });
    assert_eq!(trace, "w1 w9 w2 sync cb9 cb1 cb2 finish close");
}

#[test]
fn n142_a_write_inside_the_function_write_may_follow_its_report() {
    let trace = traced(|trace| {
        let (log, this) = (trace.clone(), Rc::new(Cell::new(None::<Writable<u32>>)));
        let own = this.clone();
        let writable = Writable::objects(move |chunk, done| {
            log.log(format_args!("w{chunk}"));
            done.ok();
            if let Some(writable) = own.take() {
                writable.write_with(9, says(&log, "cb9"));
            }
        })
        .build();
        this.set(Some(writable.clone()));
        events(trace, &writable, "", &["finish", "close"]);
        writable.write_with(1, says(trace, "cb1"));
        writable.write_with(2, says(trace, "cb2"));
        writable.end(());
        trace.log("sync");
    });
    assert_eq!(trace, "w1 w9 w2 sync cb1 cb9 cb2 finish close");
}

#[test]
fn n142_a_final_function_that_fails() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let writable = Writable::objects(|_: u32, done| done.ok())
            .end(move |done| {
                log.log("final");
                done.fail(Error::new("bad"));
            })
            .build();
        events(trace, &writable, "", &["finish", "close", "error"]);
        writable.write_with(1, says(trace, "cb1"));
        writable.end_with((), reports(trace, "end"));
        trace.log("sync");
    });
    assert_eq!(trace, "final sync cb1 error-bad close end-bad");
}

#[test]
fn n144_a_destroyed_sink_fails_what_waits_when_it_is_done_with_what_it_writes() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let writable = Writable::objects(move |chunk: u32, done| {
            log.log(format_args!("w{chunk}"));
            let log = log.clone();
            set_immediate(move || {
                log.log(format_args!("d{chunk}"));
                done.ok();
            });
        })
        .build();
        events(trace, &writable, "", &["finish", "close", "error", "drain"]);
        for chunk in 1..=3 {
            writable.write_with(chunk, reports(trace, format_args!("cb{chunk}")));
        }
        writable.end_with((), reports(trace, "end"));
        writable.destroy(None);
        trace.log("sync");
    });
    assert_eq!(
        trace,
        "w1 sync close d1 cb1-ok cb2-ERR_STREAM_DESTROYED cb3-ERR_STREAM_DESTROYED end-ERR_STREAM_DESTROYED"
    );
}

// Construction.

#[test]
fn nothing_is_read_or_written_before_the_construction() {
    let trace = traced(|trace| {
        let [construct, read, write, end, destroy] = [(); 5].map(|()| trace.clone());
        let readable = Readable::<u32>::objects().read(move |readable, _| {
            read.log("read");
            readable.push_end();
        });
        let writable = Writable::objects(move |chunk: u32, done| {
            write.log(format_args!("w{chunk}"));
            done.ok();
        })
        .construct(move |done| {
            construct.log("construct");
            set_immediate(move || {
                construct.log("constructed");
                done.ok();
            });
        })
        .end(move |done| {
            end.log("final");
            done.ok();
        })
        .destroy(move |error, done| {
            destroy.log("_destroy");
            done.pass(error);
        });
        let duplex = Duplex::new(readable, writable);
        events(trace, &duplex, "", &["finish", "close", "end", "error"]);
        duplex.writable().write_with(1, says(trace, "cb1"));
        duplex.writable().end(());
        duplex.readable().resume();
        trace.log("sync");
    });
    assert_eq!(
        trace,
        "sync construct constructed w1 final read cb1 finish end _destroy close"
    );
}

#[test]
fn a_destroy_waits_for_the_construction() {
    let trace = traced(|trace| {
        let [construct, destroy] = [trace.clone(), trace.clone()];
        let writable = Writable::bytes(|_: String, done| done.ok())
            .construct(move |done| {
                construct.log("construct");
                set_immediate(move || {
                    construct.log("constructed");
                    done.ok();
                });
            })
            .destroy(move |error, done| {
                destroy.log("_destroy");
                done.pass(error);
            })
            .build();
        events(trace, &writable, "", &["finish", "close", "error"]);
        writable.write_with("a".to_owned(), reports(trace, "cb"));
        writable.destroy(Some(Error::new("x")));
        trace.log("sync");
    });
    assert_eq!(
        trace,
        "sync construct cb-x constructed _destroy error-x close"
    );
}

// Two sides.

#[test]
fn a_side_s_end_ends_the_other_if_it_may_not_stay_open() {
    let trace = traced(|trace| {
        let log = trace.clone();
        let writable = Writable::objects(|_: u32, done| done.ok()).end(move |done| {
            log.log("final");
            done.ok();
        });
        let duplex = Duplex::new_not_half_open(Readable::<u32>::objects(), writable);
        events(trace, &duplex, "", &["end", "close", "finish"]);
        duplex.readable().resume();
        duplex.readable().push_end();
        next_tick(trace.call("tick"));
    });
    assert_eq!(trace, "tick end final finish close");
}

#[test]
fn a_transform_waits_while_nobody_reads() {
    let trace = traced(|trace| {
        let (log, flush) = (trace.clone(), trace.clone());
        let transform = Transform::objects(move |chunk: u32, out| {
            log.log(format_args!("t{chunk}"));
            out.ok_with(chunk * 10);
        })
        .high_water_mark(2)
        .flush(move |out| {
            flush.log("flush");
            out.ok_with(99);
        })
        .build();
        events(trace, &transform, "", &["finish", "close", "end", "drain"]);
        for chunk in 1..=6 {
            let room = transform
                .writable()
                .write_with(chunk, says(trace, format_args!("cb{chunk}")));
            trace.log(format_args!("{chunk}={room}"));
        }
        transform.writable().end_with((), says(trace, "endcb"));
        let log = trace.clone();
        set_immediate(move || {
            log.log("imm");
            data(&log, transform.readable());
        });
    });
    assert_eq!(
        trace,
        "t1 1=true t2 2=true 3=false 4=false 5=false 6=false cb1 imm t3 t4 t5 t6 cb2 flush d10 d20 d30 d40 d50 d60 \
         d99 cb3 cb4 cb5 cb6 endcb finish end close"
    );
}

#[test]
fn a_transform_that_fails() {
    let trace = traced(|trace| {
        let transform = failing_transform(trace);
        events(trace, &transform, "", &["finish", "close", "end", "error"]);
        data(trace, transform.readable());
        for chunk in 1..=3 {
            transform
                .writable()
                .write_with(chunk, reports(trace, format_args!("cb{chunk}")));
        }
    });
    assert_eq!(trace, "t1 d1 t2 cb1-ok cb2-bad cb3-bad error-bad close");
}

/// Passes everything but 2, which fails.
fn failing_transform(trace: &Trace) -> Transform<u32, u32> {
    let log = trace.clone();
    Transform::objects(move |chunk: u32, out| {
        log.log(format_args!("t{chunk}"));
        match chunk {
            2 => out.fail(Error::new("bad")),
            _ => out.ok_with(chunk),
        }
    })
    .build()
}

// Pipes.

#[test]
fn a_pipe_stops_while_its_sink_is_full() {
    let trace = traced(|trace| {
        let (log, next) = (trace.clone(), Cell::new(0));
        let readable = Readable::objects()
            .high_water_mark(2)
            .read(move |readable, _| {
                log.log("read");
                if next.get() < 5 {
                    readable.push(next.replace(next.get() + 1));
                } else {
                    readable.push_end();
                }
            })
            .build();
        let log = trace.clone();
        let writable = Writable::objects(move |chunk: u32, done| {
            log.log(format_args!("w{chunk}"));
            let log = log.clone();
            set_immediate(move || {
                log.log(format_args!("d{chunk}"));
                done.ok();
            });
        })
        .high_water_mark(2)
        .build();
        events(trace, &readable, "r.", &["end", "close", "pause", "resume"]);
        let names = ["drain", "finish", "close", "pipe", "unpipe"];
        events(trace, &writable, "w.", &names);
        readable.pipe(&writable);
    });
    assert_eq!(
        trace,
        "w.pipe read r.resume read w0 read r.pause read d0 w1 d1 w.drain r.resume read w2 read r.pause d2 w3 d3 \
         w.drain r.resume w4 r.end r.close d4 w.finish w.unpipe w.close"
    );
}

#[test]
fn two_pipes_go_as_fast_as_the_slower_one() {
    let trace = traced(|trace| {
        let readable = Readable::from_iter([1, 2, 3]);
        let sink = |prefix: &'static str, slow: bool| {
            let log = trace.clone();
            let writable = Writable::objects(move |chunk: u32, done| {
                log.log(format_args!("{prefix}{chunk}"));
                if slow {
                    set_immediate(move || done.ok());
                } else {
                    done.ok();
                }
            })
            .high_water_mark(1)
            .build();
            readable.pipe(&writable);
            writable
        };
        let names = ["drain", "finish", "close"];
        events(trace, &sink("a", false), "a.", &names);
        events(trace, &sink("b", true), "b.", &names);
        events(trace, &readable, "r.", &["end", "close"]);
    });
    assert_eq!(
        trace,
        "a1 b1 b.drain a2 b2 b.drain a3 b3 r.end a.finish a.close r.close b.finish b.close"
    );
}

#[test]
fn a_pipe_lets_go_of_a_sink_that_fails() {
    let trace = traced(|trace| {
        let (readable, writable) = (source(), slow_sink(trace, 16, true));
        events(trace, &readable, "r.", &["end", "close", "pause", "resume"]);
        events(
            trace,
            &writable,
            "w.",
            &["close", "error", "finish", "unpipe"],
        );
        readable.pipe(&writable);
        push_all(&readable, 1..=3);
    });
    assert_eq!(trace, "r.resume w1 w2 r.pause w.unpipe w.error-bad w.close");
}

// Pipelines.

#[test]
fn n143_a_pipeline_fails_as_a_whole() {
    let trace = traced(|trace| {
        let readable = Readable::from_iter([1, 2, 3]);
        let (transform, writable) = (failing_transform(trace), sink(trace, "w"));
        events(trace, &readable, "r.", &["end", "close", "error"]);
        events(
            trace,
            &transform,
            "t.",
            &["close", "error", "end", "finish"],
        );
        events(trace, &writable, "w.", &["close", "error", "finish"]);
        let row = pipeline(&readable).through(&transform).into(&writable);
        row.then(reports(trace, "pipeline"));
    });
    assert_eq!(
        trace,
        "t1 w1 t2 t.error-bad t.close w.error-bad w.close r.error-bad r.close pipeline-bad"
    );
}

#[test]
fn n143_a_pipeline_whose_sink_closes_too_early() {
    let trace = traced(|trace| {
        let (readable, writable) = (source(), sink(trace, "w"));
        events(trace, &readable, "r.", &["end", "close", "error"]);
        events(trace, &writable, "w.", &["close", "error", "finish"]);
        let row = pipeline(&readable).into(&writable);
        row.then(reports(trace, "pipeline"));
        readable.push(1);
        let log = trace.clone();
        set_immediate(move || {
            log.log("imm");
            writable.destroy(None);
        });
    });
    assert_eq!(
        trace,
        "w1 imm w.close r.error-ERR_STREAM_PREMATURE_CLOSE r.close pipeline-ERR_STREAM_PREMATURE_CLOSE"
    );
}

#[test]
fn n143_a_long_pipeline_with_a_slow_sink() {
    let trace = traced(|trace| {
        let readable = Readable::from_iter(["a", "b", "c"]);
        let [p, q] = [(); 2].map(|()| Transform::pass_through());
        let log = trace.clone();
        let writable = Writable::objects(move |chunk: &str, done| {
            log.log(format_args!("w{chunk}"));
            set_immediate(move || done.ok());
        })
        .high_water_mark(1)
        .build();
        events(trace, &readable, "r.", &["end", "close"]);
        events(trace, &p, "p.", &["finish", "end", "close"]);
        events(trace, &q, "q.", &["finish", "end", "close"]);
        events(trace, &writable, "w.", &["finish", "close", "drain"]);
        let row = pipeline(&readable).through(&p).through(&q);
        row.into(&writable).then(reports(trace, "pipeline"));
    });
    assert_eq!(
        trace,
        "wa r.end p.end p.finish q.finish p.close r.close w.drain wb w.drain wc q.end q.close w.finish w.close \
         pipeline-ok"
    );
}

#[test]
fn a_pipeline_can_be_aborted_and_awaited() {
    let trace = traced(|trace| {
        let (readable, writable) = (source(), sink(trace, "w"));
        let controller = AbortController::new();
        let row = pipeline(&readable)
            .into(&writable)
            .signal(&controller.signal());
        let log = trace.clone();
        call(async move { log.log(row.await.unwrap_err().name()) });
        readable.push(1);
        set_immediate(move || controller.abort());
    });
    assert_eq!(trace, "w1 AbortError");
}

#[test]
fn n143_finished_tells_ends_from_early_closes() {
    let trace = traced(|trace| {
        let readable = source();
        finished(&readable).then(reports(trace, "fin1"));
        events(trace, &readable, "r.", &["end", "close"]);
        readable.resume();
        readable.push_end();
        let writable = sink(trace, "w");
        finished(&writable).then(reports(trace, "fin2"));
        writable.destroy(None);
        let duplex = Duplex::new(
            Readable::<u32>::objects(),
            Writable::objects(|_: u32, done| done.ok()),
        );
        finished(&duplex).then(reports(trace, "fin3"));
        events(trace, &duplex, "d.", &["end", "close", "finish"]);
        duplex.writable().end(());
        duplex.readable().resume();
        let log = trace.clone();
        set_immediate(move || {
            log.log("imm");
            finished(&readable).then(reports(&log, "fin4"));
            finished(&writable).then(reports(&log, "fin5"));
            duplex.readable().push_end();
        });
    });
    assert_eq!(
        trace,
        "fin2-ERR_STREAM_PREMATURE_CLOSE d.finish r.end fin1-ok r.close imm fin4-ok fin5-ERR_STREAM_PREMATURE_CLOSE \
         d.end fin3-ok d.close"
    );
}

// Awaiting.

#[test]
fn n145_leaving_the_loop_destroys_the_stream() {
    let trace = traced(|trace| {
        let readable = Readable::from_iter([1, 2, 3, 4]);
        events(trace, &readable, "", &["end", "close", "error"]);
        let (log, mut chunks) = (trace.clone(), readable.chunks());
        call(async move {
            while let Some(Ok(chunk)) = chunks.next().await {
                log.log(format_args!("c{chunk}"));
                if chunk == 2 {
                    break;
                }
            }
            drop(chunks);
            log.log("left");
        });
    });
    assert_eq!(trace, "c1 c2 left error-The operation was aborted close");
}

#[test]
fn n145_an_error_comes_after_the_close() {
    let trace = traced(|trace| {
        let readable = source();
        events(trace, &readable, "", &["end", "close"]);
        let (log, mut chunks) = (trace.clone(), readable.chunks());
        call(async move {
            while let Some(chunk) = chunks.next().await {
                match chunk {
                    Ok(chunk) => log.log(format_args!("c{chunk}")),
                    Err(error) => log.log(format_args!("caught-{error}")),
                }
            }
        });
        readable.push(1);
        readable.push(2);
        let log = trace.clone();
        set_immediate(move || {
            log.log("imm");
            readable.destroy(Some(Error::new("x")));
        });
    });
    assert_eq!(trace, "c1 c2 imm close caught-x");
}

#[test]
fn n145_a_chunk_takes_one_microtask() {
    let trace = traced(|trace| {
        let readable = source();
        let (log, mut chunks) = (trace.clone(), readable.chunks());
        call(async move {
            while let Some(Ok(chunk)) = chunks.next().await {
                log.log(format_args!("c{chunk}"));
                chain(&log, "x", 4);
            }
            log.log("done");
        });
        let log = trace.clone();
        set_immediate(move || {
            readable.push(1);
            readable.push(2);
            chain(&log, "y", 5);
            set_immediate(move || {
                readable.push_end();
                chain(&log, "z", 5);
            });
        });
    });
    assert_eq!(
        trace,
        "y1 y2 c1 y3 x1 c2 y4 x2 x1 y5 x3 x2 x4 x3 x4 z1 z2 z3 z4 z5 done"
    );
}

// Adapters.

#[test]
fn a_stream_of_futures_becomes_a_readable_one() {
    let trace = traced(|trace| {
        let items = futures::stream::iter([Ok(1), Ok(2), Err(Error::new("bad")), Ok(3)]);
        let readable = Readable::from_stream(items);
        events(trace, &readable, "", &["end", "close", "error"]);
        data(trace, &readable);
    });
    assert_eq!(trace, "d1 d2 error-bad close");
}

#[test]
fn readers_and_writers_become_streams() {
    use futures::io::Cursor;
    let trace = traced(|trace| {
        let readable = Readable::from_reader(Cursor::new(b"hello".to_vec()));
        let writable = Writable::from_writer(Vec::new());
        events(trace, &readable, "r.", &["end", "close"]);
        events(trace, &writable, "w.", &["finish", "close"]);
        let log = trace.clone();
        readable.on_data(move |chunk| log.log(String::from_utf8_lossy(chunk)));
        let row = pipeline(&readable).into(&writable);
        row.then(reports(trace, "pipeline"));
    });
    assert_eq!(trace, "hello r.end w.finish r.close w.close pipeline-ok");
}

#[test]
fn streams_become_readers_and_writers() {
    use futures::{AsyncReadExt, AsyncWriteExt};
    phaseloop::block_on(async {
        let chunks = ["hello", ", ", "world"].map(|text| text.as_bytes().to_vec());
        let mut text = String::new();
        let mut reader = Readable::from_iter(chunks).into_reader();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello, world");

        let written = Rc::new(Cell::new(0));
        let count = written.clone();
        let slow = Writable::bytes(move |chunk: Vec<u8>, done| {
            let count = count.clone();
            set_immediate(move || {
                count.set(count.get() + chunk.len());
                done.ok();
            });
        })
        .high_water_mark(4)
        .build();
        let mut writer = slow.clone().into_writer();
        for _ in 0..10 {
            writer.write_all(b"abc").await.unwrap();
            assert!(slow.length() <= 6, "it waits while the stream is full");
        }
        writer.flush().await.unwrap();
        assert_eq!(written.get(), 30);
        writer.close().await.unwrap();
        assert!(slow.finished());
    });
}

#[test]
fn a_writer_reports_what_goes_wrong_with_its_stream() {
    use futures::AsyncWriteExt;
    phaseloop::block_on(async {
        let failing = Writable::bytes(|_: Vec<u8>, done| done.fail(Error::new("bad"))).build();
        let mut writer = failing.into_writer();
        writer.write_all(b"x").await.unwrap();
        assert_eq!(writer.flush().await.unwrap_err().to_string(), "bad");
        let gone = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
        let mut writer = gone.clone().into_writer();
        gone.destroy(None);
        let error = writer.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_socket_is_piped_into_another() {
    use futures::AsyncReadExt;
    use phaseloop::net::{TcpListener, TcpStream};
    phaseloop::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = bytes.clone();
        let source = Readable::from_reader(futures::io::Cursor::new(bytes));
        let sink = Writable::from_writer(client);
        let row = pipeline(&source).into(&sink);
        let mut received = Vec::new();
        let (sent, read) =
            futures::future::join(row, async { (&server).read_to_end(&mut received).await }).await;
        sent.unwrap();
        assert_eq!(read.unwrap(), expected.len());
        assert_eq!(received, expected);
    });
}

#[test]
fn a_stream_that_is_closed_lets_go_of_what_holds_it() {
    let held = Rc::new(());
    let keeper = held.clone();
    traced(move |_| {
        let readable = source();
        let this = readable.clone();
        readable.on(CLOSE, move |()| drop((this.clone(), keeper.clone())));
        readable.destroy(None);
    });
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_listener_that_is_given_its_stream_does_not_keep_it() {
    fn listen<S: Emitter + WeakThis>(stream: &S, held: &Rc<()>) {
        let (kept, once) = (held.clone(), held.clone());
        stream.on_this(CLOSE, move |_, ()| drop(kept.clone()));
        stream.once_this(CLOSE, move |_, ()| drop(once));
    }
    let held = Rc::new(());
    let (readable, writable) = (
        Readable::<u32>::objects(),
        Writable::objects(|_: u32, _| ()),
    );
    listen(&source(), &held);
    listen(&Writable::objects(|_: u32, _| ()).build(), &held);
    listen(&Duplex::new(readable, writable), &held);
    listen(&Transform::<u32, u32>::pass_through(), &held);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_stream_without_a_handle_calls_the_listeners_that_are_given_it() {
    let said = traced(|trace| {
        let (stream, data, end) = (source(), trace.clone(), trace.clone());
        stream.on_data_this(move |stream, n| data.log(format!("{n} of {}", stream.length())));
        stream.on_this(END, move |stream, ()| end.log(stream.ended()));
        push_all(&stream, [1, 2]);
        stream.push_end();
    });
    assert_eq!(said, "1 of 1 2 of 0 true");
}

#[test]
fn a_pipe_does_not_outlive_its_loop() {
    let held = Rc::new(());
    let (reads, writes) = (held.clone(), held.clone());
    traced(move |_| {
        let source = Readable::<Vec<u8>>::bytes().read(move |_, _| drop(reads.clone()));
        let sink = Writable::bytes(move |_: Vec<u8>, done| {
            drop(writes.clone());
            done.ok();
        });
        source.build().pipe(&sink.build());
    });
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_pipeline_lets_go_of_its_signal_when_it_has_ended() {
    let held = Rc::new(());
    let keeper = held.clone();
    phaseloop::block_on(async move {
        let controller = AbortController::new();
        controller.signal().on_abort(move || drop(keeper));
        let source = Readable::from_iter([1]);
        let sink = Writable::objects(|_: i32, done| done.ok()).build();
        let row = pipeline(&source).into(&sink);
        row.signal(&controller.signal()).await.unwrap();
    });
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_function_that_panics_in_a_write_is_called_again() {
    let trace = traced(|trace| {
        process::on_uncaught_exception(|_, _| ());
        let (log, written) = (trace.clone(), trace.clone());
        let kept = Rc::new(Cell::new(None));
        let keeper = kept.clone();
        let sink = Writable::bytes(move |chunk: Vec<u8>, done| {
            log.log(format_args!("write-{}", chunk[0]));
            match chunk[0] {
                1 => {
                    keeper.set(Some(done));
                    std::panic::resume_unwind(Box::new("hook"));
                }
                _ => done.ok(),
            }
        })
        .build();
        let this = sink.clone();
        set_immediate(move || {
            this.write(vec![1]);
        });
        set_timeout(5, move || {
            sink.write(vec![2]);
            kept.take().unwrap().ok();
            let written = written.clone();
            sink.write_with(vec![3], move |result| written.log(text(&result)));
        });
    });
    assert_eq!(trace, "write-1 write-2 write-3 ok");
}

/// Bytes between two streams; a write wakes the reader inside the call.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<(Vec<u8>, Option<Waker>)>>);

impl AsyncRead for Memory {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut memory = self.0.borrow_mut();
        if memory.0.is_empty() {
            memory.1 = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let size = memory.0.len();
        buffer[..size].copy_from_slice(&memory.0);
        memory.0.clear();
        Poll::Ready(Ok(size))
    }
}

impl AsyncWrite for Memory {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let waker = {
            let mut memory = self.0.borrow_mut();
            memory.0.extend_from_slice(bytes);
            memory.1.take()
        };
        waker.unwrap().wake();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_writer_may_be_destroyed_by_what_its_write_causes() {
    let memory = Memory::default();
    let held = memory.clone();
    let trace = traced(move |trace| {
        let source = Readable::from_reader(memory.clone());
        let sink = Writable::from_writer(memory);
        let (this, log) = (sink.clone(), trace.clone());
        let reads = source.clone();
        source.on_data(move |bytes| {
            log.log(format_args!("{bytes:?}").to_string().replace(' ', ""));
            this.destroy(None);
            reads.destroy(None);
        });
        let closed = trace.clone();
        sink.on(CLOSE, move |()| closed.log("closed"));
        set_immediate(move || {
            sink.write(vec![1, 2]);
        });
    });
    assert_eq!(trace, "[1,2] closed");
    assert_eq!(Rc::strong_count(&held.0), 1, "both were dropped");
}

/// Never gives anything, and says when it is dropped.
struct Silent(Rc<Cell<bool>>);

impl Drop for Silent {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

impl futures::Stream for Silent {
    type Item = Result<u32, Error>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

impl AsyncRead for Silent {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }
}

impl AsyncWrite for Silent {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// A generator is dropped some microtasks later: Node awaits its `return`.
#[test]
fn n144_a_destroyed_stream_drops_its_source() {
    let trace = traced(|trace| {
        let gone = [(); 3].map(|()| Rc::new(Cell::new(false)));
        let [items, reader, writer] = gone.clone().map(Silent);
        let items = Readable::from_stream(items);
        items.on_data(|_| ());
        let reader = Readable::from_reader(reader);
        reader.on_data(|_| ());
        let writer = Writable::from_writer(writer);
        writer.write_with(b"x".to_vec(), reports(trace, "written"));
        let log = trace.clone();
        set_immediate(move || {
            items.destroy(None);
            reader.destroy(None);
            writer.destroy(None);
            let [items_gone, reader_gone, writer_gone] = gone;
            for gone in [&items_gone, &reader_gone, &writer_gone] {
                log.log(gone.get());
            }
            // What has waited for the source holds the stream no longer.
            let later = log.clone();
            let kept = Rc::new(());
            let weak = Rc::downgrade(&kept);
            items.on(ERROR, move |_| drop(kept.clone()));
            drop(items);
            set_immediate(move || {
                later.log(items_gone.get());
                later.log(weak.upgrade().is_none());
            });
        });
    });
    assert_eq!(
        trace,
        "false true true written-ERR_STREAM_DESTROYED true true"
    );
}

/// The listeners of before may hold the stream, and are dropped. Those that are added inside 'close'
/// stay, and an error that is emitted then does not end the program.
#[test]
fn n144_a_closed_stream_drops_the_listeners_of_before_only() {
    let held = Rc::new(());
    let (seen, before) = (Rc::new(RefCell::new(Vec::new())), held.clone());
    let log = seen.clone();
    let exit = phaseloop_node::run(async move {
        let stream = Readable::<Vec<u8>>::bytes().build();
        let this = stream.clone();
        stream.on(ERROR, move |_| drop((this.clone(), before.clone())));
        let (this, late) = (stream.clone(), log.clone());
        stream.on(CLOSE, move |()| {
            let late = late.clone();
            this.on(LATE, move |n| late.borrow_mut().push(*n));
        });
        stream.destroy(None);
        phaseloop_node::sleep(1).await.unwrap();
        assert_eq!(Rc::strong_count(&held), 1, "the listener is dropped");
        assert!(!stream.emit(ERROR, Error::new("no listener is left")));
        assert!(stream.emit(LATE, 1));
        stream.destroy(None);
        assert!(stream.emit(LATE, 2));
    });
    assert_eq!((exit.code(), seen.take()), (0, vec![1, 2]));
}

const LATE: Event<u32> = Event::new("late");

/// A stream whose error is thrown emits no 'close', and is freed all the same.
#[test]
fn n144_a_stream_whose_error_is_thrown_is_freed() {
    let held = Rc::new(());
    let inside = held.clone();
    let exit = phaseloop_node::run(async move {
        process::on_uncaught_exception(|_, _| ());
        let stream = Readable::<Vec<u8>>::bytes().build();
        let this = stream.clone();
        stream.on(CLOSE, move |()| drop((this.clone(), inside.clone())));
        stream.destroy(Some(Error::new("thrown")));
    });
    assert_eq!((exit.code(), Rc::strong_count(&held)), (0, 1));
}
