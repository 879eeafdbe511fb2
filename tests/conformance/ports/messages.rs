//! 130–135: message ports, workers.

use std::cell::Cell;
use std::rc::Rc;

use phaseloop::node::worker_threads::{CLOSE, EXIT, MessageChannel, MessagePort, ONLINE, Worker};
use phaseloop::node::{Emitter, Promise, next_tick, set_immediate, set_timeout};

use crate::support::{block, fs_op, log, say};

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
    let this = port2.clone();
    port2.on_message(move |&m| {
        log(format!("m{m}"));
        next_tick(move || log(format!("tick{m}")));
        Promise::resolved(()).then(move |()| log(format!("promise{m}")));
        if m == 3 {
            this.close();
        }
    });
    port1.post_message(1);
    port1.post_message(2);
    port1.post_message(3);
    next_tick(say("tick"));
    set_timeout(300, || log("timeout"));
}

async fn message_before_immediate() {
    let MessageChannel { port1, port2, .. } = MessageChannel::<&str>::new();
    let this = port2.clone();
    port2.on_message(move |&m| {
        log(m);
        if m == "m3" {
            this.close();
        }
    });
    let timer = move || {
        log("timer");
        let port = port1.clone();
        set_immediate(move || {
            log("immediate");
            set_immediate(say("immediate2"));
            port.post_message("m2");
            port.post_message("m3");
        });
        port1.post_message("m1");
    };
    set_timeout(1, timer);
    block(20);
}

async fn port_close() {
    let MessageChannel { port1, port2, .. } = MessageChannel::<u32>::new();
    port2.on_message(|m| log(format!("m{m}")));
    port1.on(CLOSE, |()| log("close1"));
    port2.on(CLOSE, |()| log("close2"));
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
    w.on(ONLINE, |()| log("online"));
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
    let this = a.port2.clone();
    a.port2.on_message(move |&m| {
        log(format!("a{m}"));
        next_tick(move || log(format!("ak{m}")));
        close_after_two(&this, m);
    });
    let this = b.port2.clone();
    b.port2.on_message(move |&m| {
        log(format!("b{m}"));
        close_after_two(&this, m);
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
    let (this, other) = (port2.clone(), port1.clone());
    port2.on_message(move |_| {
        n.set(n.get() + 1);
        if n.get() == 1 {
            let n_then = n.clone();
            set_immediate(move || log(format!("immediate-after-{}", n_then.get())));
        }
        if n.get() < 50 {
            other.post_message(0);
        } else {
            log("last");
            this.close();
        }
    });
    port1.post_message(0);
}
