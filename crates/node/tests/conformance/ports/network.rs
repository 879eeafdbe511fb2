//! 860–863, 911, 912: options of sockets, servers and datagram sockets.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use phaseloop_node::dgram::{self, SocketOptions};
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{self, RequestOptions};
#[cfg(target_os = "linux")]
use phaseloop_node::net::KeepAliveOptions;
use phaseloop_node::net::{
    self, BlockList, CONNECT, ConnectOptions, DROP, LISTENING, ListenOptions, LookedUp, Lookup,
    Server, Socket, TIMEOUT,
};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::{
    AbortController, Emitter, Error, Promise, catch, next_tick, process, set_timeout, sleep,
};

use crate::support::{log, says, text};

super::ports! {
    Real "860-net-options" => net_options,
    Real "861-net-drop" => net_drop,
    Real "862-block-list" => block_list,
    #[cfg(target_os = "linux")]
    Real "863-dgram-options" => dgram_options,
    #[cfg(target_os = "linux")]
    Real "911-net-keep-alive" => net_keep_alive,
    Real "912-socket-timeouts" => socket_timeouts,
}

async fn listening(server: &Server, address: (&str, u16), options: ListenOptions) -> u16 {
    let listens = once(server, LISTENING);
    server.listen_with_options(address, options);
    listens.await.unwrap();
    server.address().unwrap().port()
}

fn error_of(socket: &Socket) -> Promise<Error> {
    Promise::new(|deferred| {
        socket.once(ERROR, move |error: &Error| deferred.resolve(error.clone()));
    })
}

async fn net_options() {
    let fresh = Socket::new();
    let state = |socket: &Socket| format!("{} {}", socket.ready_state(), socket.pending());
    log(format!("fresh {} {}", state(&fresh), fresh.connecting()));
    let accepted: Rc<RefCell<Option<Socket>>> = Rc::default();
    let known = accepted.clone();
    let server = net::create_server(move |s| {
        known.replace(Some(s.clone()));
        log(format!("paused {}", s.readable().is_paused()));
        s.on_data(|d| log(format!("data {}", text(d))));
        let socket = s.clone();
        set_timeout(50, move || {
            log("resume");
            socket.resume();
        });
        s.on_this(END, |s, ()| log(format!("server end {}", s.ready_state())));
    });
    server.set_pause_on_connect(true);
    server.set_no_delay(true);
    server.set_keep_alive(true, 1000);
    let options = ListenOptions {
        backlog: 7,
        ..Default::default()
    };
    let port = listening(&server, ("127.0.0.1", 0), options).await;
    let looked: Rc<RefCell<Vec<String>>> = Rc::default();
    let names = looked.clone();
    let lookup = move |host: &str, done: LookedUp| {
        names.borrow_mut().push(host.to_owned());
        next_tick(move || done(Ok(vec![Ipv4Addr::LOCALHOST.into()])));
    };
    let options = ConnectOptions {
        lookup: Some(Rc::new(lookup)),
        local_address: Some([127, 0, 0, 2].into()),
        ..Default::default()
    };
    let c = Socket::new();
    c.connect_with_options(("made.up", port), options);
    log(format!("connecting {}", state(&c)));
    once(&c, CONNECT).await.unwrap();
    let local = c.local_address().unwrap().ip();
    log(format!(
        "open {} {local} {}",
        state(&c),
        looked.take().join(",")
    ));
    c.set_keep_alive(true, 2000).set_no_delay(true);
    log("true true");
    c.end("hello");
    log(format!("ended {}", c.ready_state()));
    once(&c, CLOSE).await.unwrap();
    let other = accepted.take().unwrap();
    log(format!(
        "closed {} {}",
        c.ready_state(),
        other.ready_state()
    ));
    let refused = Socket::new();
    let lookup = |_: &str, done: LookedUp| {
        next_tick(move || done(Err(Error::with_code("EMINE", "no such name"))));
    };
    let lookup: Option<Lookup> = Some(Rc::new(lookup));
    refused.connect_with_options(
        ("made.up", port),
        ConnectOptions {
            lookup,
            ..Default::default()
        },
    );
    let error = error_of(&refused).await.unwrap();
    log(format!(
        "lookup {} {}",
        error.code().unwrap(),
        error.message()
    ));
    let bad = Socket::new();
    let local_address = Some([192, 0, 2, 1].into());
    let options = ConnectOptions {
        local_address,
        ..Default::default()
    };
    bad.connect_with_options(("127.0.0.1", port), options);
    let error = error_of(&bad).await.unwrap();
    log(format!(
        "{} {} {}",
        error.code().unwrap(),
        error.syscall().unwrap(),
        error.message()
    ));
    let closed = once(&server, CLOSE);
    server.close();
    closed.await.unwrap();
    listen_options().await;
}

async fn listen_options() {
    let controller = AbortController::new();
    let signal = Some(controller.signal());
    let aborted = Server::new();
    aborted.on(CLOSE, says("aborted close"));
    listening(
        &aborted,
        ("127.0.0.1", 0),
        ListenOptions {
            signal: signal.clone(),
            ..Default::default()
        },
    )
    .await;
    controller.abort();
    log(format!("listening {}", aborted.is_listening()));
    sleep(20).await.unwrap();
    let before = Server::new();
    before.on(CLOSE, says("before close"));
    before.on(LISTENING, says("before listening"));
    before.listen_with_options(
        ("127.0.0.1", 0),
        ListenOptions {
            signal,
            ..Default::default()
        },
    );
    sleep(20).await.unwrap();
    let six = Server::new();
    let port = listening(
        &six,
        ("::", 0),
        ListenOptions {
            ipv6_only: true,
            ..Default::default()
        },
    )
    .await;
    let four = Server::new();
    listening(&four, ("0.0.0.0", port), ListenOptions::default()).await;
    log("both");
    six.close();
    four.close();
}

async fn net_drop() {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let server = net::create_server(move |s| {
        counted.set(counted.get() + 1);
        s.resume();
    });
    server.set_max_connections(Some(2));
    let port = Rc::new(Cell::new(0));
    let own = port.clone();
    server.on(DROP, move |dropped| {
        let (local, remote) = (dropped.local.unwrap(), dropped.remote.unwrap());
        let is_own = local.port() == own.get();
        log(format!(
            "drop {} {is_own} {} {}",
            local.ip(),
            remote.ip(),
            remote.port() > 0
        ));
    });
    port.set(listening(&server, ("127.0.0.1", 0), ListenOptions::default()).await);
    let address: SocketAddr = ([127, 0, 0, 1], port.get()).into();
    let open = async || {
        let c = net::connect(address);
        c.resume();
        c.on(ERROR, |_| ());
        c.on(CLOSE, says("closed"));
        sleep(60).await.unwrap();
        c
    };
    let show = || log(format!("count {}", count.get()));
    let a = open().await;
    let b = open().await;
    open().await;
    show();
    a.destroy(None);
    sleep(60).await.unwrap();
    let d = open().await;
    show();
    b.destroy(None);
    d.destroy(None);
    sleep(60).await.unwrap();
    server.set_max_connections(Some(0));
    open().await;
    show();
    server.close();
    let list = BlockList::new();
    list.add_address(Ipv4Addr::LOCALHOST.into());
    let guarded = net::create_server(|_| log("never"));
    guarded.set_block_list(&list);
    guarded.on(DROP, |_| log("blocked drop"));
    let port = listening(&guarded, ("127.0.0.1", 0), ListenOptions::default()).await;
    let c = net::connect(("127.0.0.1", port));
    c.resume();
    let closed = Promise::new(|deferred| {
        c.on(ERROR, |_| ());
        c.once(CLOSE, move |()| deferred.resolve(()));
    });
    closed.await.unwrap();
    guarded.close();
    let out = Socket::new();
    out.on(ERROR, |e: &Error| {
        log(format!("{} {}", e.code().unwrap(), e.message()))
    });
    let block_list = Some(list);
    out.connect_with_options(
        ("127.0.0.1", 1),
        ConnectOptions {
            block_list,
            ..Default::default()
        },
    );
}

async fn block_list() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let list = BlockList::new();
    list.add_address(ip("123.123.123.123"));
    list.add_range(ip("10.0.0.1"), ip("10.0.0.10")).unwrap();
    list.add_subnet(ip("8592:757c:efae:4e45::"), 64).unwrap();
    list.add_subnet(ip("192.168.0.0"), 16).unwrap();
    list.add_address(ip("::1"));
    for text in [
        "123.123.123.123",
        "123.123.123.124",
        "10.0.0.3",
        "10.0.0.10",
        "10.0.0.11",
        "10.0.0.0",
        "222.111.111.222",
        "::ffff:7b7b:7b7b",
        "::ffff:123.123.123.123",
        "8592:757c:efae:4e45::7",
        "8592:757c:efae:4e46::7",
        "192.168.255.1",
        "192.169.0.1",
        "::1",
        "::2",
    ] {
        log(format!("{text} {}", list.check(ip(text))));
    }
    log(list.rules().join("|"));
    for refused in [
        list.add_range(ip("10.0.0.2"), ip("10.0.0.1")),
        list.add_subnet(ip("10.0.0.0"), 33),
        list.add_subnet(ip("::"), 129),
    ] {
        let error = refused.unwrap_err();
        log(format!("{} {}", error.name(), error.code().unwrap()));
    }
}

/// Logs what a call returns in Node, or its error.
#[cfg(target_os = "linux")]
fn tried(name: &str, returned: &str, f: impl FnOnce()) {
    match catch(f) {
        Ok(()) => log(format!("{name} {returned}")),
        Err(reason) => {
            let error = reason.downcast_ref::<Error>().unwrap();
            let syscall = error.syscall().unwrap_or("undefined");
            log(format!(
                "{name} {} {} {syscall}",
                error.name(),
                error.code().unwrap()
            ));
        }
    }
}

#[cfg(target_os = "linux")]
async fn dgram_options() {
    let fresh = dgram::Socket::new();
    tried("fresh ttl", "", || fresh.set_ttl(3));
    tried("fresh broadcast", "", || fresh.set_broadcast(true));
    tried("fresh loop", "", || fresh.set_multicast_loopback(true));
    fresh.close();
    let (group, own) = ([224, 0, 0, 114].into(), Ipv4Addr::LOCALHOST);
    tried("closed join", "", || {
        fresh.add_membership(group, dgram::Interface::Any)
    });
    let options = SocketOptions {
        reuse_addr: true,
        recv_buffer_size: Some(20_000),
        send_buffer_size: Some(30_000),
        ..Default::default()
    };
    let s = dgram::Socket::with_options(options);
    s.bind_this("0.0.0.0:0".parse().unwrap(), move |s| {
        tried("ttl", "3", || s.set_ttl(3));
        tried("ttl 0", "", || s.set_ttl(0));
        tried("ttl 300", "", || s.set_ttl(300));
        tried("multicast ttl", "7", || s.set_multicast_ttl(7));
        tried("multicast ttl 300", "", || s.set_multicast_ttl(300));
        tried("broadcast", "undefined", || s.set_broadcast(true));
        tried("loop", "true", || s.set_multicast_loopback(true));
        tried("interface", "undefined", || s.set_multicast_interface(own));
        tried("join", "undefined", || s.add_membership(group, own));
        tried("join again", "", || s.add_membership(group, own));
        tried("join no group", "", || {
            s.add_membership([10, 0, 0, 1].into(), own)
        });
        tried("leave", "undefined", || s.drop_membership(group, own));
        tried("leave again", "", || s.drop_membership(group, own));
        let one = [232, 1, 1, 1].into();
        tried("source", "undefined", || {
            s.add_source_specific_membership(own, one, own)
        });
        tried("source leave", "undefined", || {
            s.drop_source_specific_membership(own, one, own)
        });
        let are = |name: &str, receive: usize, send: usize| {
            let receives = s.get_recv_buffer_size() >= receive;
            log(format!(
                "{name} {receives} {}",
                s.get_send_buffer_size() >= send
            ));
        };
        are("buffers", 20_000, 30_000);
        s.set_recv_buffer_size(50_000);
        s.set_send_buffer_size(60_000);
        are("larger", 50_000, 60_000);
        let shared = SocketOptions {
            reuse_addr: true,
            ..Default::default()
        };
        let (second, port, s) = (
            dgram::Socket::with_options(shared),
            s.address().unwrap().port(),
            s.clone(),
        );
        second.bind_this(([0, 0, 0, 0], port).into(), move |second| {
            log("shared");
            second.close();
            s.add_membership(group, own);
            s.on_message_this(|s, m| {
                log(format!("message {} {}", text(&m.bytes), m.from.ip()));
                s.close();
            });
            s.send(b"hello", (group, port).into());
        });
    });
    let controller = AbortController::new();
    let signal = Some(controller.signal());
    let aborted = dgram::Socket::with_options(SocketOptions {
        signal,
        ..Default::default()
    });
    aborted.on(CLOSE, says("aborted close"));
    aborted.bind_with("127.0.0.1:0".parse().unwrap(), move || {
        controller.abort();
        log("aborted");
    });
}

/// Returns the seconds until the first probe of an idle connection, from the table of the system.
#[cfg(target_os = "linux")]
fn probe(socket: &Socket) -> String {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ends = |field: &str, address: Option<SocketAddr>| {
        field.ends_with(&format!(":{:04X}", address.unwrap().port()))
    };
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if ends(fields[1], socket.local_address()) && ends(fields[2], socket.remote_address()) {
            let (kind, ticks) = fields[5].split_once(':').unwrap();
            let ticks = u64::from_str_radix(ticks, 16).unwrap();
            return match kind {
                "02" => (ticks.div_ceil(10_000) * 100).to_string(),
                _ => "none".to_owned(),
            };
        }
    }
    panic!("the table has no line for {socket:?}");
}

#[cfg(target_os = "linux")]
async fn net_keep_alive() {
    let server = net::create_server(|s| s.resume());
    let port = listening(&server, ("127.0.0.1", 0), ListenOptions::default()).await;
    let options = |initial_delay: u32, interval: u32, count| KeepAliveOptions {
        enable: true,
        initial_delay: Some(initial_delay.into()),
        interval: Some(interval.into()),
        count,
    };
    let connected = async |before: &dyn Fn(&Socket)| {
        let s = Socket::new();
        before(&s);
        s.connect(("127.0.0.1", port));
        once(&s, CONNECT).await.unwrap();
        s
    };
    let s = connected(&|_| ()).await;
    let report = |token: &str, same: &Socket| log(format!("{token} {} true", probe(same)));
    let off = KeepAliveOptions::default();
    let on = KeepAliveOptions {
        enable: true,
        ..off
    };
    log(probe(&s));
    report("true", s.set_keep_alive_with(on));
    report(
        "true,300000,10000,9",
        s.set_keep_alive_with(options(300_000, 10_000, Some(9))),
    );
    report("true,400000", s.set_keep_alive(true, 400_000));
    report(
        "true,500000,500",
        s.set_keep_alive_with(options(500_000, 500, None)),
    );
    report(
        "true,600000,2000,0",
        s.set_keep_alive_with(options(600_000, 2000, Some(0))),
    );
    report("true,999", s.set_keep_alive(true, 999));
    report("true,40000000", s.set_keep_alive(true, 40_000_000));
    report("false", s.set_keep_alive_with(off));
    report("true,999", s.set_keep_alive(true, 999));
    report(
        "true,700000,3000",
        s.set_keep_alive_with(options(700_000, 3000, None)),
    );
    report(
        r#"{"enable":true,"initialDelay":800000,"interval":3000,"count":4}"#,
        s.set_keep_alive_with(options(800_000, 3000, Some(4))),
    );
    report(
        r#"{"enable":true,"initialDelay":900000}"#,
        s.set_keep_alive(true, 900_000),
    );
    report(
        r#"{"enable":false,"initialDelay":900000}"#,
        s.set_keep_alive(false, 900_000),
    );
    s.destroy(None);
    let before: [&dyn Fn(&Socket); 4] = [
        &|s| _ = s.set_keep_alive_with(options(300_000, 2000, Some(3))),
        &|s| _ = s.set_keep_alive(true, 300_000).set_keep_alive(true, 500),
        &|s| _ = s.set_keep_alive(true, 300_000).set_keep_alive_with(off),
        &|s| _ = s.set_keep_alive_with(options(300_000, 0, None)),
    ];
    for set in before {
        let s = connected(set).await;
        log(format!("before {}", probe(&s)));
        s.destroy(None);
    }
    server.close();
}

fn attempt(name: String, set: impl FnOnce()) {
    match catch(set) {
        Ok(()) => log(format!("{name} fine")),
        Err(reason) => {
            let error = Error::from(reason);
            let code = error.code().unwrap_or_default();
            log(format!(
                "{name} {} {code} {}",
                error.name(),
                error.message()
            ));
        }
    }
}

async fn socket_timeouts() {
    process::on_warning(|warning| {
        let text = warning.text().replace('\n', " / ");
        log(format!("{}: {text}", warning.name()));
    });
    let server = net::create_server(|socket| {
        socket.on_this(TIMEOUT, |socket, ()| {
            log("timeout");
            socket.set_timeout(0);
            socket.end("late");
        });
        socket.set_timeout(20);
    });
    server.listen_this(("127.0.0.1", 0), |server| {
        let idle = Socket::new();
        let delays = [
            ("0", 0.0),
            ("-1", -1.0),
            ("-0.5", -0.5),
            ("0.5", 0.5),
            ("NaN", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("2147483647", 2_147_483_647.0),
            ("2147483648", 2_147_483_648.0),
            ("1e+300", 1e300),
        ];
        for (name, delay) in delays {
            attempt(format!("socket {name}"), || idle.set_timeout(delay));
        }
        idle.set_timeout(0);
        idle.destroy(None);
        let address = server.address().unwrap();
        for (name, timeout) in [("-1", -1.0), ("NaN", f64::NAN)] {
            attempt(format!("request {name}"), || {
                drop(http::request(RequestOptions::new(address).timeout(timeout)));
            });
        }
        let client = net::connect(address);
        client.on(TIMEOUT, says("never"));
        client.set_timeout(5);
        client.set_timeout(0);
        client.on_data(|data| log(text(data)));
        let server = server.clone();
        client.on(CLOSE, move |()| {
            let request = http::request(RequestOptions::new(address));
            request.on(ERROR, |_| ());
            attempt("set -2".into(), || request.set_timeout(-2));
            attempt("set 0".into(), || request.set_timeout(0));
            request.destroy(None);
            server.close();
        });
    });
}
