//! 110–116: event emitters, aborts.

use phaseloop_node::events::{
    self, ERROR, Emitter, Event, EventEmitter, ListenerId, NEW_LISTENER, REMOVE_LISTENER,
};
use phaseloop_node::{
    AbortController, Error, Promise, call, catch, next_tick, set_immediate, throw,
};

use std::cell::Cell;
use std::rc::Rc;

use crate::support::{log, say, says};

super::ports! {
    Virtual "110-emitter-order" => emitter_order,
    Virtual "111-emitter-snapshot" => emitter_snapshot,
    Virtual "112-emitter-error" => emitter_error,
    Virtual "113-emitter-meta-events" => emitter_meta_events,
    Virtual "114-events-once" => events_once,
    Virtual "115-events-once-error" => events_once_error,
    Virtual "116-abort-is-synchronous" => abort_is_synchronous,
}

const X: Event<()> = Event::new("x");
const Y: Event<()> = Event::new("y");

async fn emitter_order() {
    let e = EventEmitter::new();
    e.on(X, says("a"));
    e.once_this(X, |e, ()| {
        log(format!("once-{}", e.listener_count(X)));
        e.emit(X, ());
    });
    e.prepend(X, says("first"));
    e.prepend_once(X, says("first-once"));
    log(format!("before-{}", e.listener_count(X)));
    log(format!("ret-{}", e.emit(X, ())));
    log(format!("none-{}", e.emit(Y, ())));
}

async fn emitter_snapshot() {
    let e = EventEmitter::new();
    let c: Rc<Cell<Option<ListenerId>>> = Rc::default();
    let remove = c.clone();
    e.on_this(X, move |e, ()| {
        log("a");
        e.off(remove.get().unwrap());
        e.on(X, says("added"));
    });
    e.on(X, says("b"));
    c.set(Some(e.on(X, says("c"))));
    e.emit(X, ());
    log("--");
    e.remove_all(X);
    log(e.emit(X, ()).to_string());
}

async fn emitter_error() {
    let e = EventEmitter::new();
    let emit = |message: &'static str| {
        if let Err(x) = e.try_emit(ERROR, Error::new(message)) {
            log(format!("thrown-{}", x.message()));
        }
    };
    emit("boom");
    e.on(ERROR.monitor(), |x| log(format!("monitor-{x}")));
    emit("two");
    e.on(ERROR, |x| log(format!("heard-{x}")));
    emit("three");
    e.on(X, |()| {
        log("l1");
        throw("in-listener");
    });
    e.on(X, says("not-reached"));
    if let Err(thrown) = catch(|| e.emit(X, ())) {
        log(format!("thrown-{thrown}"));
    }
}

async fn emitter_meta_events() {
    let e = EventEmitter::new();
    e.on_this(NEW_LISTENER, |e, name| {
        let count = match name {
            "x" => e.listener_count(X),
            _ => e.listener_count(REMOVE_LISTENER),
        };
        log(format!("new-{name}-{count}"));
    });
    e.on_this(REMOVE_LISTENER, |e, name| {
        log(format!("removed-{name}-{}", e.listener_count(X)));
    });
    let f = e.on(X, says("f"));
    e.once(X, says("g"));
    e.emit(X, ());
    e.off(f);
}

async fn events_once() {
    const X: Event<u32> = Event::new("x");
    let e = EventEmitter::new();
    let awaited = events::once(&e, X);
    call(async move { log(format!("once-{}", awaited.await.unwrap())) });
    e.on(X, says("listener"));
    set_immediate(move || {
        next_tick(say("tick"));
        e.emit(X, 7);
        log("emitted");
        let mut c = Promise::resolved(());
        for token in ["c1", "c2", "c3", "c4"] {
            c = c.then(move |()| log(token));
        }
    });
}

async fn events_once_error() {
    let e = EventEmitter::new();
    let x = events::once(&e, X);
    call(async move {
        if let Err(x) = x.await {
            log(format!("rejected-{x}"));
        }
    });
    let error = events::once(&e, ERROR);
    call(async move { log(format!("resolved-{}", error.await.unwrap())) });
    set_immediate(move || {
        e.emit(ERROR, Error::new("bad"));
        log("emitted");
    });
}

async fn abort_is_synchronous() {
    let ac = AbortController::new();
    let signal = ac.signal();
    signal.on_abort(|| {
        log("a");
        next_tick(say("tick"));
    });
    signal.on_abort(say("b"));
    signal.on_abort(say("c"));
    log(format!("before-{}", signal.aborted()));
    ac.abort();
    log(format!("after-{}", signal.aborted()));
    ac.abort();
}
