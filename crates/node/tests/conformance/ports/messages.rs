//! 130–135: message ports, workers.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop_node::worker_threads::{CLOSE, EXIT, MessageChannel, MessagePort, ONLINE, Worker};
use phaseloop_node::{Emitter, Promise, next_tick, set_immediate, set_timeout};

use crate::support::{block, fs_op, log, say, says};

super::ports! {
    Virtual "130-message-channel" => message_channel,
    Virtual "131-message-before-immediate" => message_before_immediate,
    Virtual "132-port-close" => port_close,
    Real "133-worker-order" => worker_order,
    Virtual "134-ports-in-creation-order" => ports_in_creation_order,
    Virtual "135-port-never-starves" => port_never_starves,
}

async fn message_channel() {
    let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
    port2.on_message_this(|port, &m| {
        log(format!("m{m}"));
        next_tick(move || log(format!("tick{m}")));
        Promise::resolved(()).then(move |()| log(format!("promise{m}")));
        if m == 3 {
            port.close();
        }
    });
    port1.post_message(1);
    port1.post_message(2);
    port1.post_message(3);
    next_tick(say("tick"));
    set_timeout(300, say("timeout"));
}

async fn message_before_immediate() {
    let MessageChannel { port1, port2, .. } = MessageChannel::<&str>::new();
    port2.on_message_this(|port, &m| {
        log(m);
        if m == "m3" {
            port.close();
        }
    });
    set_timeout(1, move || {
        log("timer");
        let port = port1.clone();
        set_immediate(move || {
            log("immediate");
            set_immediate(say("immediate2"));
            port.post_message("m2");
            port.post_message("m3");
        });
        port1.post_message("m1");
    });
    block(20);
}

async fn port_close() {
    let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
    port2.on_message(|m| log(format!("m{m}")));
    port1.on(CLOSE, says("close1"));
    port2.on(CLOSE, says("close2"));
    port1.post_message(1);
    port1.post_message(2);
    set_immediate(move || {
        log("closing");
        port1.close();
        next_tick(say("tick"));
        set_immediate(say("immediate"));
    });
}

async fn worker_order() {
    let w = Worker::<(), &str>::new(|parent_port| async move {
        parent_port.post_message("a");
        parent_port.post_message("b");
    });
    let w = w.unwrap();
    w.on(ONLINE, says("online"));
    w.on_message(|&m| {
        log(format!("message-{m}"));
        next_tick(move || log(format!("tick-{m}")));
    });
    w.on(EXIT, |c| log(format!("exit-{c}")));
}

async fn ports_in_creation_order() {
    let [a, b] = [(); 2].map(|()| MessageChannel::<u32>::new());
    let close_after_two = |port: &MessagePort<u32>, m: u32| {
        if m == 2 {
            port.close();
        }
    };
    a.port2.on_message_this(move |port, &m| {
        log(format!("a{m}"));
        next_tick(move || log(format!("ak{m}")));
        close_after_two(port, m);
    });
    b.port2.on_message_this(move |port, &m| {
        log(format!("b{m}"));
        close_after_two(port, m);
    });
    b.port1.post_message(1);
    a.port1.post_message(1);
    b.port1.post_message(2);
    a.port1.post_message(2);
    fs_op(say("fs"));
    set_immediate(say("immediate"));
}

async fn port_never_starves() {
    let n = Rc::new(Cell::new(0));
    let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
    let other = port1.clone();
    port2.on_message_this(move |port, _| {
        n.set(n.get() + 1);
        if n.get() == 1 {
            let n_then = n.clone();
            set_immediate(move || log(format!("immediate-after-{}", n_then.get())));
        }
        if n.get() < 50 {
            other.post_message(0);
        } else {
            log("last");
            port.close();
        }
    });
    port1.post_message(0);
}
