//! 077–084 and 103: names, servers, sockets.

use std::cell::RefCell;

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{self, READY, Server, Socket};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{Emitter, Promise, dns, next_tick, set_immediate, set_timeout};

use crate::support::{block, done, log, say, says, socket_path, text};

super::ports! {
    Virtual "077-dns-literal-is-tick" => dns_literal_is_tick,
    Real "078-net-listening-is-tick" => net_listening_is_tick,
    Real "079-net-conversation" => net_conversation,
    Real "080-socket-destroy-closes-after-check" => socket_destroy_closes_after_check,
    Real "081-close-callbacks-reverse-order" => close_callbacks_reverse_order,
    Real "082-server-close-event" => server_close_event,
    Virtual "083-socket-never-connected" => socket_never_connected,
    Real "084-connect-error" => connect_error,
    // A named pipe cannot be closed in one direction.
    #[cfg(unix)]
    Real "103-write-callbacks" => write_callbacks,
}

fn then(token: &'static str) {
    Promise::resolved(()).then(move |()| log(token));
}

/// A client that ignores received bytes.
fn ignoring_client(name: &str) {
    let client = net::connect(socket_path(name));
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
    Server::new().listen_this(socket_path("s"), |server| {
        log("listening");
        server.close_with(say("closed"));
        next_tick(say("tick2"));
    });
    next_tick(say("tick"));
    then("promise");
    set_immediate(say("immediate"));
    log("sync");
}

async fn net_conversation() {
    let server = net::create_server(|c| {
        c.on_data_this(|c, d| c.end(d.to_ascii_uppercase()));
    });
    server.listen_this(socket_path("s"), |server| {
        let c = net::connect_with(socket_path("s"), |c| {
            log("connect");
            c.write_with("hi", done("written"));
            log("after-write");
        });
        c.on(READY, says("ready"));
        c.on_data(|d| log(format!("data-{}", text(d))));
        c.on(END, |()| {
            log("end");
            next_tick(say("end.tick"));
        });
        let server = server.clone();
        c.on_this(CLOSE, move |c, ()| {
            log(format!("close-{}", c.had_error()));
            server.close_with(say("server-closed"));
        });
    });
}

async fn socket_destroy_closes_after_check() {
    let server = Server::new();
    server.on_this(net::CONNECTION, |server, c| {
        server.close();
        c.on(CLOSE, |()| {
            log("close");
            next_tick(say("close.tick"));
            set_immediate(say("close.immediate"));
        });
        c.destroy(None);
        next_tick(say("tick"));
        then("promise");
        set_timeout(1, say("timeout"));
        set_immediate(|| {
            log("immediate");
            block(20);
        });
    });
    server.listen_with(socket_path("s"), || ignoring_client("s"));
}

async fn close_callbacks_reverse_order() {
    let (server, all) = (Server::new(), RefCell::<Vec<Socket>>::default());
    server.on_this(net::CONNECTION, move |server, c| {
        all.borrow_mut().push(c.clone());
        if all.borrow().len() < 3 {
            return;
        }
        server.close();
        let all = all.take();
        for (i, s) in all.iter().enumerate() {
            s.on(CLOSE, move |()| {
                log(format!("close{i}"));
                next_tick(move || log(format!("tick{i}")));
            });
        }
        all.iter().for_each(|s| s.destroy(None));
    });
    server.listen_with(socket_path("s"), || {
        (0..3).for_each(|_| ignoring_client("s"))
    });
}

async fn server_close_event() {
    Server::new().listen_this(socket_path("a"), |idle| {
        idle.close_with(say("idle-closed"));
        next_tick(say("tick"));
        log("sync");
    });
    let busy = Server::new();
    busy.on_this(net::CONNECTION, |busy, c| {
        busy.close_with(say("busy-closed"));
        c.on(CLOSE, says("socket-closed"));
        let c = c.clone();
        set_immediate(move || {
            log("destroy");
            c.destroy(None);
            next_tick(say("after-destroy"));
        });
    });
    busy.listen_with(socket_path("b"), || ignoring_client("b"));
}

async fn socket_never_connected() {
    let s = Socket::new();
    s.on(CLOSE, says("close"));
    next_tick(say("tick1"));
    s.destroy(None);
    next_tick(say("tick2"));
    then("promise");
}

async fn connect_error() {
    let c = net::connect(socket_path("nobody-listens"));
    c.on(ERROR, |e| {
        log(e.code().unwrap());
        next_tick(say("error.tick"));
    });
    c.on_this(CLOSE, |c, ()| log(format!("close-{}", c.had_error())));
    next_tick(say("tick"));
    then("promise");
    log("sync");
}

#[cfg(unix)]
async fn write_callbacks() {
    let server = net::create_server(|s| {
        s.on_data(|_| ());
        s.on_this(END, |s, ()| s.end("bye"));
    });
    server.listen_this(socket_path("s"), |server| {
        let c = net::connect_with(socket_path("s"), |c| {
            next_tick(say("tick1"));
            c.write_with("a", done("cb-a"));
            c.write_with("b", done("cb-b"));
            next_tick(say("tick2"));
            then("promise");
            c.end_with("c", done("end-cb"));
            log("sync");
        });
        c.on_data(|d| log(format!("data-{}", text(d))));
        let server = server.clone();
        c.on(CLOSE, move |()| {
            log("close");
            server.close();
        });
    });
}
