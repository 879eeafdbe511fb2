//! 077–084 and 103: names, servers, sockets.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop::node::events::ERROR;
use phaseloop::node::net::{self, CONNECT, READY, Server, Socket};
use phaseloop::node::stream::{CLOSE, END};
use phaseloop::node::{Emitter, Promise, dns, next_tick, set_immediate, set_timeout};

use crate::support::{block, log, say, scratch};

super::ports! {
    Virtual "077-dns-literal-is-tick" => dns_literal_is_tick,
    Real "078-net-listening-is-tick" => net_listening_is_tick,
    Real "079-net-conversation" => net_conversation,
    Real "080-socket-destroy-closes-after-check" => socket_destroy_closes_after_check,
    Real "081-close-callbacks-reverse-order" => close_callbacks_reverse_order,
    Real "082-server-close-event" => server_close_event,
    Virtual "083-socket-never-connected" => socket_never_connected,
    Real "084-connect-error" => connect_error,
    Real "103-write-callbacks" => write_callbacks,
}

fn then(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

/// A client that ignores what it hears.
fn ignoring_client(name: &str) {
    let client = net::connect(scratch(name));
    client.on(ERROR, |_| ());
    client.resume();
}

async fn dns_literal_is_tick() {
    dns::lookup("127.0.0.1", |address| log(address.unwrap().to_string()));
    next_tick(say("tick"));
    then("promise");
    set_immediate(say("immediate"));
}

async fn net_listening_is_tick() {
    let s = Server::new();
    let this = s.clone();
    s.listen_with(scratch("s"), move || {
        log("listening");
        this.close_with(|| log("closed"));
        next_tick(say("tick2"));
    });
    next_tick(say("tick"));
    then("promise");
    set_immediate(say("immediate"));
    log("sync");
}

async fn net_conversation() {
    let server = net::create_server(|c| {
        let this = c.clone();
        c.on_data(move |d| this.end_chunk(d.to_ascii_uppercase()));
    });
    let this = server.clone();
    server.listen_with(scratch("s"), move || {
        let c = net::connect(scratch("s"));
        let writes = c.clone();
        c.on(CONNECT, move |()| {
            log("connect");
            writes.write_with("hi", |_| log("written"));
            log("after-write");
        });
        c.on(READY, |()| log("ready"));
        c.on_data(|d| log(format!("data-{}", String::from_utf8_lossy(d))));
        c.on(END, |()| {
            log("end");
            next_tick(say("end.tick"));
        });
        let (closed, server) = (c.clone(), this.clone());
        c.on(CLOSE, move |()| {
            log(format!("close-{}", closed.had_error()));
            server.close_with(|| log("server-closed"));
        });
    });
}

async fn socket_destroy_closes_after_check() {
    let server = Server::new();
    let this = server.clone();
    server.on(net::CONNECTION, move |c| {
        this.close();
        c.on(CLOSE, |()| {
            log("close");
            next_tick(say("close.tick"));
            set_immediate(say("close.immediate"));
        });
        c.destroy(None);
        next_tick(say("tick"));
        then("promise");
        set_timeout(1, || log("timeout"));
        set_immediate(|| {
            log("immediate");
            block(20);
        });
    });
    server.listen_with(scratch("s"), || ignoring_client("s"));
}

async fn close_callbacks_reverse_order() {
    let all: Rc<RefCell<Vec<Socket>>> = Rc::default();
    let server = Server::new();
    let this = server.clone();
    server.on(net::CONNECTION, move |c| {
        all.borrow_mut().push(c.clone());
        if all.borrow().len() < 3 {
            return;
        }
        this.close();
        let all = all.take();
        for (i, s) in all.iter().enumerate() {
            s.on(CLOSE, move |()| {
                log(format!("close{i}"));
                next_tick(move || log(format!("tick{i}")));
            });
        }
        for s in &all {
            s.destroy(None);
        }
    });
    server.listen_with(scratch("s"), || (0..3).for_each(|_| ignoring_client("s")));
}

async fn server_close_event() {
    let idle = Server::new();
    let this = idle.clone();
    idle.listen_with(scratch("a"), move || {
        this.close_with(|| log("idle-closed"));
        next_tick(say("tick"));
        log("sync");
    });
    let busy = Server::new();
    let this = busy.clone();
    busy.on(net::CONNECTION, move |c| {
        this.close_with(|| log("busy-closed"));
        c.on(CLOSE, |()| log("socket-closed"));
        let c = c.clone();
        set_immediate(move || {
            log("destroy");
            c.destroy(None);
            next_tick(say("after-destroy"));
        });
    });
    busy.listen_with(scratch("b"), || ignoring_client("b"));
}

async fn socket_never_connected() {
    let s = Socket::new();
    s.on(CLOSE, |()| log("close"));
    next_tick(say("tick1"));
    s.destroy(None);
    next_tick(say("tick2"));
    then("promise");
}

async fn connect_error() {
    let c = net::connect(scratch("nobody-listens"));
    c.on(ERROR, |e| {
        log(e.code().unwrap());
        next_tick(say("error.tick"));
    });
    let this = c.clone();
    c.on(CLOSE, move |()| log(format!("close-{}", this.had_error())));
    next_tick(say("tick"));
    then("promise");
    log("sync");
}

async fn write_callbacks() {
    let server = net::create_server(|s| {
        s.on_data(|_| ());
        let this = s.clone();
        s.on(END, move |()| this.end_chunk("bye"));
    });
    let this = server.clone();
    server.listen_with(scratch("s"), move || {
        let c = net::connect(scratch("s"));
        let writes = c.clone();
        c.on(CONNECT, move |()| {
            next_tick(say("tick1"));
            writes.write_with("a", |_| log("cb-a"));
            writes.write_with("b", |_| log("cb-b"));
            next_tick(say("tick2"));
            then("promise");
            let writable = writes.writable();
            writable.end_chunk_with(b"c".to_vec(), |_| log("end-cb"));
            log("sync");
        });
        c.on_data(|d| log(format!("data-{}", String::from_utf8_lossy(d))));
        let server = this.clone();
        c.on(CLOSE, move |()| {
            log("close");
            server.close();
        });
    });
}
