//! 802, 803: names made at run time, async listeners.

use phaseloop_node::events::{ERROR, Event, EventEmitter, NEW_LISTENER, REMOVE_LISTENER};
use phaseloop_node::{
    Emitter, Error, Promise, Reason, next_tick, process, queue_microtask, set_immediate,
};

use crate::support::log;

super::ports! {
    Virtual "802-events-by-names" => by_names,
    Virtual "803-events-capture-rejections" => capture_rejections,
}

async fn by_names() {
    const FIXED: Event<str> = Event::new("fixed");
    let e = EventEmitter::new();
    e.on(NEW_LISTENER, |name| log(format!("new {name}")));
    e.on(REMOVE_LISTENER, |name| log(format!("removed {name}")));
    for n in [1, 2] {
        let topic = format!("topic/{n}");
        e.on(topic.clone(), move |text: &str| {
            log(format!("{topic} {text}"))
        });
    }
    e.on(FIXED, |text| log(format!("fixed {text}")));
    e.once("topic/1", |text: &str| log(format!("once {text}")));
    log(e.event_names().join(","));
    let (one, three) = (format!("topic/{}", 1), String::from("topic/3"));
    let heard = [
        e.emit::<str, _>(one, "a"),
        e.emit::<str, _>(&three, "b"),
        e.emit::<str, _>("fix".to_owned() + "ed", "c"),
    ];
    log(heard.map(|heard| heard.to_string()).join(" "));
    let count = |topic: &str| e.listener_count::<str>(topic);
    log(format!("{} {}", count("topic/1"), count("topic/2")));
    e.once("topic/2", |text: &str| log(format!("late {text}")));
    let calls = e.listeners::<str>("topic/2");
    log(format!("listeners {}", calls.len()));
    calls[0]("called");
    log(format!("still {}", count("topic/2")));
    for call in e.raw_listeners::<str>("topic/2") {
        call("raw");
    }
    log(format!("left {}", count("topic/2")));
    e.remove_all::<str>("topic/2");
    log(e.event_names().join(","));
    e.emit::<str, _>("topic/1", "last");
}

async fn capture_rejections() {
    const WORK: Event<u32> = Event::new("work");
    process::on_unhandled_rejection(|reason| log(format!("unhandled {reason}")));
    let listen = |e: &EventEmitter, name: &'static str| {
        e.on_async(WORK, move |&n| async move {
            log(format!("{name} start {n}"));
            if n == 2 {
                return Err(Reason::from(Error::new(format!("{name} at once"))));
            }
            Promise::resolved(()).await?;
            log(format!("{name} later {n}"));
            match n {
                3 => Err(Reason::from(Error::new(format!("{name} later")))),
                _ => Ok(()),
            }
        });
    };
    let captures = EventEmitter::new();
    captures.capture_rejections(true);
    captures.on(ERROR, |e| {
        log(format!("error {e}"));
        next_tick(|| log("tick"));
    });
    listen(&captures, "captures");
    let plain = EventEmitter::new();
    plain.on(ERROR, |e| log(format!("never {e}")));
    listen(&plain, "plain");
    for n in [1, 2, 3] {
        let (captures, plain) = (captures.clone(), plain.clone());
        set_immediate(move || {
            captures.emit(WORK, n);
            plain.emit(WORK, n);
            next_tick(move || log(format!("own tick {n}")));
            queue_microtask(move || log(format!("own microtask {n}")));
        });
    }
}
