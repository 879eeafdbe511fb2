//! 750–754: what Node 26 does otherwise than the versions before it.

use futures::StreamExt as _;
use phaseloop_node::http;
use phaseloop_node::stream::{CLOSE, END, FINISH, PAUSE, READABLE, RESUME, Readable};
use phaseloop_node::string_decoder::Encoding;
use phaseloop_node::{Emitter, Error, Promise, call, next_tick, set_immediate, set_timeout};

use crate::http_peers::{FREE, raw, show};
use crate::support::{block, log, say, says};

super::ports! {
    Virtual "750-iterate-microtasks" => iterate_microtasks,
    Virtual "751-eof-unheard" => eof_unheard,
    Virtual "752-destroyed-streams-do-not-pause" => destroyed_streams_do_not_pause,
    Virtual "753-timers-due-in-a-drain" => timers_due_in_a_drain,
    Virtual "754-http-gathered-chunks" => http_gathered_chunks,
}

fn count(name: &'static str, links: u32) {
    let mut p = Promise::resolved(());
    for i in 1..=links {
        p = p.then(move |()| log(format!("{name}{i}")));
    }
}

async fn iterate_microtasks() {
    let r = Readable::<u32>::objects().build();
    r.push(1);
    r.push(2);
    let of = r.clone();
    call(async move {
        count("a", 5);
        let mut chunks = of.chunks();
        while let Some(Ok(chunk)) = chunks.next().await {
            log(format!("chunk-{chunk}"));
            let of = of.clone();
            match chunk {
                2 => drop(set_immediate(move || {
                    log("push");
                    of.push(3);
                    count("b", 4);
                })),
                3 => {
                    count("c", 3);
                    of.push_end();
                }
                _ => {}
            }
        }
        log("over");
    });
    r.on(END, says("end"));
    r.on(CLOSE, says("close"));
}

async fn eof_unheard() {
    let r = Readable::<Vec<u8>>::bytes()
        .read(|r, _| r.push_end())
        .build();
    r.on(END, says("end"));
    r.read_size(0);
    next_tick(move || {
        next_tick(move || {
            log("listens");
            r.on_this(READABLE, |r, ()| {
                log(format!("readable-{}", shown(r.read())));
            });
            next_tick(say("tick"));
        });
    });
}

fn shown(bytes: Option<Vec<u8>>) -> String {
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    text.unwrap_or("null".to_owned())
}

async fn destroyed_streams_do_not_pause() {
    let r = Readable::<Vec<u8>>::bytes().build();
    for event in [PAUSE, RESUME, CLOSE] {
        r.on(event, move |()| log(event.name()));
    }
    r.destroy(None);
    r.pause();
    r.resume();
    let flowing = r.flowing().map_or("null", |_| "some");
    log(format!("flowing-{flowing} paused-{}", r.is_paused()));
    let b = Readable::<Vec<u8>>::bytes().build();
    b.push(b"ab".to_vec());
    b.push(b"cde".to_vec());
    log(format!("bytes-{}-{}", shown(b.read()), b.length()));
    b.push(b"f".to_vec());
    let four = shown(b.read_size(4));
    log(format!("bytes-{four}-{}", shown(b.read())));
    let t = Readable::<Vec<u8>>::bytes().build();
    t.set_encoding(Encoding::Utf8);
    t.push(b"ab".to_vec());
    t.push(b"cde".to_vec());
    log(format!("text-{}-{}", shown(t.read()), t.length()));
}

async fn timers_due_in_a_drain() {
    set_timeout(1, || {
        log("t1");
        set_timeout(1, say("t2"));
        next_tick(|| {
            log("tick");
            block(20);
            set_timeout(1, say("t3"));
            block(20);
        });
        set_immediate(|| {
            log("immediate");
            set_immediate(say("immediate2"));
        });
        block(20);
    });
    set_timeout(2, say("t4"));
    block(30);
}

async fn http_gathered_chunks() {
    fn told(name: &'static str) -> impl FnOnce(Result<(), Error>) + 'static {
        move |result| {
            let code = result
                .err()
                .map(|e| e.code().unwrap_or_default().to_owned());
            log(format!("{name} {}", code.as_deref().unwrap_or("ok")));
        }
    }
    let server = http::create_server(|_, res| {
        let res = res.clone();
        res.send_date(false);
        res.write_with("a", told("a"));
        let (has, corked) = (res.length() > 0, res.corked());
        log(format!("length-{has} corked-{corked}"));
        res.write_with("", told("empty"));
        res.write_with("bc", told("bc"));
        res.on(FINISH, says("finish"));
        set_timeout(50, move || {
            res.cork();
            res.write_with("d", told("d"));
            res.cork();
            res.write_with("e", told("e"));
            res.uncork();
            log(format!("corked-{}", res.corked()));
            set_timeout(50, move || {
                res.uncork();
                res.cork();
                res.write_with("f", told("f"));
                res.end_with("g", told("g"));
                log("ended");
            });
        });
    });
    server.listen_this(FREE, |server| {
        let (port, server) = (server.address().unwrap().port(), server.clone());
        let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        raw(port, request, move |t| {
            log(show(t));
            server.close();
        });
    });
}
