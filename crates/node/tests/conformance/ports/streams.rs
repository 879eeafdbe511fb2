//! 140–147: streams.

use futures::StreamExt;
use phaseloop_node::events::ERROR;
use phaseloop_node::stream::{
    CLOSE, DRAIN, END, FINISH, PIPE, READABLE, Readable, Transform, UNPIPE, Writable, pipeline,
};
use phaseloop_node::{Emitter, Error, Promise, call, next_tick, set_immediate};

use crate::support::{done, log, say, says};

super::ports! {
    Virtual "140-readable-flow" => readable_flow,
    Virtual "141-readable-event" => readable_event,
    Virtual "142-writable-finish" => writable_finish,
    Virtual "143-writable-async-sink" => writable_async_sink,
    Virtual "144-destroy-with-error" => destroy_with_error,
    Virtual "145-pipe-to-writable" => pipe_to_writable,
    Virtual "146-pipeline-callback" => pipeline_callback,
    Virtual "147-stream-async-iterator" => stream_async_iterator,
}

async fn readable_flow() {
    let r = Readable::<String>::bytes().build();
    r.push("a".to_owned());
    r.push("b".to_owned());
    r.push_end();
    r.on_data(|d| {
        log(format!("data-{d}"));
        let d = d.clone();
        next_tick(move || log(format!("tick-{d}")));
    });
    r.on(END, |()| {
        log("end");
        next_tick(say("end.tick"));
    });
    r.on(CLOSE, says("close"));
    next_tick(say("tick"));
    Promise::resolved(()).then(|()| log("promise"));
    set_immediate(say("immediate"));
    log("sync");
}

async fn readable_event() {
    let r = Readable::<String>::bytes().build();
    r.on_this(READABLE, |r, ()| {
        log("readable");
        while let Some(c) = r.read() {
            log(format!("chunk-{c}"));
        }
    });
    r.on(END, says("end"));
    r.on(CLOSE, says("close"));
    r.push("a".to_owned());
    r.push("b".to_owned());
    set_immediate(move || {
        log("immediate");
        r.push("c".to_owned());
        r.push_end();
    });
}

async fn writable_finish() {
    let w = Writable::bytes(|c: String, cb| {
        log(format!("write-{c}"));
        cb.ok();
    })
    .end(|cb| {
        log("final");
        cb.ok();
    })
    .build();
    w.on(FINISH, says("finish"));
    w.on(CLOSE, says("close"));
    w.write_with("a", done("cb-a"));
    w.write_with("b", done("cb-b"));
    w.end_with("c", done("end-cb"));
    next_tick(say("tick"));
    Promise::resolved(()).then(|()| log("promise"));
    log("sync");
}

async fn writable_async_sink() {
    let w = Writable::bytes(|c: String, cb| {
        log(format!("write-{c}"));
        set_immediate(move || {
            log(format!("done-{c}"));
            cb.ok();
        });
    })
    .high_water_mark(2)
    .build();
    w.on(DRAIN, says("drain"));
    w.on(FINISH, says("finish"));
    w.on(CLOSE, says("close"));
    log(w.write_with("a", done("cb-a")).to_string());
    log(w.write_with("b", done("cb-b")).to_string());
    set_immediate(move || {
        set_immediate(move || {
            set_immediate(move || w.end_with((), done("end-cb")));
        });
    });
}

async fn destroy_with_error() {
    let w = Writable::bytes(|_: String, cb| cb.ok())
        .destroy(|error, cb| {
            log("_destroy");
            cb.pass(error);
        })
        .build();
    w.on(ERROR, |e| {
        log(format!("error-{e}"));
        next_tick(say("error.tick"));
    });
    w.on(CLOSE, says("close"));
    next_tick(say("tick1"));
    w.destroy(Some(Error::new("x")));
    next_tick(say("tick2"));
    Promise::resolved(()).then(|()| log("promise"));
    log(format!("destroyed-{}", w.destroyed()));
}

async fn pipe_to_writable() {
    let r = Readable::from_iter(["a", "b"]);
    let w = Writable::objects(|c, cb| {
        log(format!("sink-{c}"));
        cb.ok();
    })
    .build();
    r.on(END, says("end"));
    r.on(CLOSE, says("r-close"));
    w.on(PIPE, says("pipe"));
    w.on(UNPIPE, says("unpipe"));
    w.on(FINISH, says("finish"));
    w.on(CLOSE, says("w-close"));
    r.pipe(&w);
    log("sync");
}

async fn pipeline_callback() {
    let t = Transform::objects(|c: &str, out| {
        log(format!("t-{c}"));
        out.ok_with(c.to_uppercase());
    })
    .flush(|out| {
        log("flush");
        out.ok();
    })
    .build();
    let w = Writable::objects(|c: String, cb| {
        log(format!("w-{c}"));
        cb.ok();
    })
    .build();
    w.on(FINISH, says("finish"));
    w.on(CLOSE, says("close"));
    let row = pipeline(&Readable::from_iter(["a", "b"])).through(&t);
    row.into(&w).then(|result| {
        let result = result.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
        log(format!("pipeline-{result}"));
    });
    log("sync");
}

async fn stream_async_iterator() {
    let r = Readable::<u32>::objects().build();
    r.on(END, says("end"));
    r.on(CLOSE, says("close"));
    let mut chunks = r.chunks();
    call(async move {
        while let Some(Ok(c)) = chunks.next().await {
            log(format!("chunk-{c}"));
        }
        log("loop-done");
    });
    r.push(1);
    set_immediate(move || {
        log("immediate");
        r.push(2);
        r.push(3);
        set_immediate(move || r.push_end());
    });
}
