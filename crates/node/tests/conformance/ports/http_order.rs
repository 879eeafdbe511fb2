//! 302–306, 316–318, 320, 321, 323–325: the order of a server's calls.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{
    CHECK_CONTINUE, CHECK_EXPECTATION, IncomingMessage, REQUEST, SOCKET, Server, ServerResponse,
};
use phaseloop_node::net::{self, CONNECTION};
use phaseloop_node::stream::{CLOSE, DRAIN, END, FINISH, PREFINISH};
use phaseloop_node::{Emitter, Promise, next_tick, set_immediate, set_timeout};

use crate::http_peers::{FREE, MORE, latin1, raw, show};
use crate::support::{log, say, says};

super::ports! {
    Real "302-http-request-in-read-callback" => request_in_read_callback,
    Real "303-http-pipelined-no-drain" => pipelined_no_drain,
    Real "304-http-body-drains" => body_drains,
    Real "305-http-request-stream-order" => request_stream_order,
    Real "306-http-response-end-order" => response_end_order,
    Real "316-http-expect-continue" => expect_continue,
    Real "317-http-check-continue" => check_continue,
    Real "318-http-expectation" => expectation,
    Real "320-http-flush-and-chunks" => flush_and_chunks,
    Real "321-http-write-callbacks" => write_callbacks,
    Real "323-http-request-backpressure" => request_backpressure,
    Real "324-http-pipeline-order" => pipeline_order,
    Real "325-http-pipeline-close-cuts" => pipeline_close_cuts,
}

/// `http.createServer(handler)`, with a handler that knows the server.
pub(super) fn serve(
    handler: impl Fn(&Server, &IncomingMessage, &ServerResponse) + 'static,
) -> Server {
    let server = Server::new();
    server.on_this(REQUEST, move |server, exchange| {
        handler(server, &exchange.request, &exchange.response);
    });
    server
}

/// Listens on a free loopback port, then calls `go` with the server and the port.
pub(super) fn listen(server: &Server, go: impl FnOnce(&Server, u16) + 'static) {
    server.listen_this(FREE, |server| {
        go(server, server.address().expect("the server listens").port());
    });
}

pub(super) fn then(token: impl Into<String> + 'static) {
    Promise::resolved(()).then(move |()| log(token));
}

/// `GET path` with a host and more header lines.
pub(super) fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n{more}\r\n")
}

async fn request_in_read_callback() {
    let server = serve(|server, _, res| {
        log("request");
        next_tick(say("request.tick"));
        then("request.promise");
        let (server, res) = (server.clone(), res.clone());
        set_immediate(move || {
            log("request.immediate");
            res.end(());
            server.close();
        });
    });
    server.on(CONNECTION, |_| {
        log("connection");
        next_tick(say("connection.tick"));
        then("connection.promise");
    });
    listen(&server, |_, port| {
        raw(port, &get("/", "Connection: close\r\n"), |_| log("closed"));
    });
}

async fn pipelined_no_drain() {
    let server = serve(|_, req, res| {
        let url = req.url().to_owned();
        log(format!("request{url}"));
        let tick = url.clone();
        next_tick(move || log(format!("tick{tick}")));
        then(format!("promise{url}"));
        req.on(END, move |()| log(format!("end{url}")));
        req.resume();
        res.end(());
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = get("/1", "") + &get("/2", "") + &get("/3", "Connection: close\r\n");
        raw(port, &bytes, move |_| {
            log("closed");
            server.close();
        });
    });
}

async fn body_drains() {
    let server = serve(|_, req, res| {
        let url = req.url().to_owned();
        log(format!("request{url}"));
        let tick = url.clone();
        next_tick(move || log(format!("tick{tick}")));
        then(format!("promise{url}"));
        req.on_data_this(|req, d| {
            let url = req.url().to_owned();
            log(format!("data{url}-{}", latin1(d)));
            next_tick(move || log(format!("data.tick{url}")));
        });
        let res = res.clone();
        req.on_this(END, move |req, ()| {
            log(format!("end{}-{}", req.url(), req.complete()));
            res.end(());
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = "POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                     1\r\na\r\n2\r\nbc\r\n0\r\n\r\n\
                     POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"
            .to_owned()
            + &get("/3", "Connection: close\r\n");
        raw(port, &bytes, move |_| {
            log("closed");
            server.close();
        });
    });
}

async fn request_stream_order() {
    let server = serve(|_, req, res| {
        log(format!("request complete-{}", req.complete()));
        req.on_data_this(|req, d| log(format!("data-{} complete-{}", latin1(d), req.complete())));
        let answer = res.clone();
        req.on_this(END, move |req, ()| {
            log(format!(
                "end complete-{} aborted-{}",
                req.complete(),
                req.aborted()
            ));
            next_tick(say("end.tick"));
            then("end.promise");
            let res = answer.clone();
            set_immediate(move || {
                log("end.immediate");
                res.end("x");
            });
        });
        req.on_this(CLOSE, |req, ()| {
            log(format!("req.close destroyed-{}", req.destroyed()))
        });
        res.on(CLOSE, says("res.close"));
        next_tick(say("request.tick"));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes =
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd";
        raw(port, bytes, move |_| {
            log("closed");
            server.close();
        });
    });
}

async fn response_end_order() {
    let server = serve(|_, req, res| {
        req.on(CLOSE, says("req.close"));
        req.on(END, says("req.end"));
        res.on(PREFINISH, says("prefinish"));
        res.on(FINISH, |()| {
            log("finish");
            next_tick(say("finish.tick"));
            then("finish.promise");
        });
        res.on_this(CLOSE, |res, ()| {
            log(format!("close finished-{}", res.finished()))
        });
        next_tick(say("tick.before"));
        then("promise.before");
        set_immediate(say("immediate"));
        res.end_with("x", |_| log("end.callback"));
        let (ended, sent) = (res.ended(), res.headers_sent());
        log(format!(
            "after-end ended-{ended} sent-{sent} socket-{}",
            res.socket().is_some()
        ));
        next_tick(say("tick.after"));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let c = raw(port, &get("/", ""), move |_| {
            log("closed");
            server.close();
        });
        c.once_this(MORE, |c, _| {
            let c = c.clone();
            set_immediate(move || {
                set_immediate(move || c.end(()));
            });
        });
    });
}

async fn expect_continue() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        log("request");
        req.on_data(|d| log(format!("data-{}", latin1(d))));
        let res = res.clone();
        req.on(END, move |()| {
            log("end");
            res.end("done");
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-Continue\r\n\
                     Connection: close\r\n\r\n";
        let c = raw(port, bytes, move |text| {
            log(show(text));
            server.close();
        });
        c.once_this(MORE, |c, text| {
            log(show(text));
            c.write("body");
        });
    });
}

async fn check_continue() {
    let server = serve(|_, _, _| log("never"));
    server.on(CHECK_CONTINUE, |exchange| {
        let (req, res) = (&exchange.request, &exchange.response);
        res.send_date(false);
        log(format!("checkContinue{}", req.url()));
        if req.url() == "/no" {
            res.write_head(413, ());
            return res.end("no");
        }
        res.write_continue_with(|_| log("continue.callback"));
        log(format!("sent-{}", res.headers_sent()));
        req.on_data(|d| log(format!("data-{}", latin1(d))));
        let res = res.clone();
        req.on(END, move |()| res.end("yes"));
    });
    let head = |path| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    listen(&server, move |server, port| {
        let server = server.clone();
        let c = raw(port, &head("/yes"), move |text| {
            log(show(text));
            raw(port, &head("/no"), move |text| {
                log(show(text));
                server.close();
            });
        });
        c.once_this(MORE, |c, _| {
            c.write("body");
            c.once_this(MORE, |c, _| c.end(()));
        });
    });
}

async fn expectation() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        log(format!("request-{}", req.http_version()));
        res.end("r");
    });
    let bytes = get("/", "Expect: meat\r\nConnection: close\r\n");
    listen(&server, move |server, port| {
        let server = server.clone();
        let again = bytes.clone();
        raw(port, &bytes, move |text| {
            log(show(text));
            server.on(CHECK_EXPECTATION, |exchange| {
                exchange.response.send_date(false);
                let expect = exchange.request.headers().get("expect");
                log(format!("check-{}", expect.unwrap_or("undefined")));
                exchange.response.end("c");
            });
            raw(port, &again.clone(), move |text| {
                log(show(text));
                raw(port, &again.replacen("1.1", "1.0", 1), move |text| {
                    log(show(text));
                    server.close();
                });
            });
        });
    });
}

/// The steps of a response, and what the peer has of it.
#[derive(Default)]
struct Steps {
    text: RefCell<String>,
    seen: Cell<usize>,
    next: Cell<usize>,
}

fn run_step(steps: Rc<Steps>, res: ServerResponse) {
    match steps.next.replace(steps.next.get() + 1) {
        0 => _ = res.write_head(200, [("A", "1")]),
        1 => res.flush_headers(),
        2 => {
            res.write("one");
            res.write("two");
        }
        3 => {
            res.write("three");
        }
        4 => res.end(()),
        _ => return,
    }
    set_timeout(60, move || {
        let seen = steps.seen.replace(steps.text.borrow().len());
        log(format!("+{}", show(&steps.text.borrow()[seen..])));
        run_step(steps, res);
    });
}

async fn flush_and_chunks() {
    let steps = Rc::<Steps>::default();
    let of_peer = steps.clone();
    let server = serve(move |_, _, res| {
        res.send_date(false);
        run_step(steps.clone(), res.clone());
    });
    listen(&server, move |server, port| {
        let server = server.clone();
        let c = raw(port, &get("/", "Connection: close\r\n"), move |_| {
            server.close()
        });
        c.on(MORE, move |text| {
            *of_peer.text.borrow_mut() = text.to_owned()
        });
    });
}

async fn write_callbacks() {
    let server = serve(|_, _, res| {
        res.on(FINISH, says("finish"));
        res.on(CLOSE, says("close"));
        res.on_this(DRAIN, |res, ()| {
            log(format!("drain need-{}", res.need_drain()))
        });
        log(format!("hwm-{}", res.high_water_mark()));
        log(format!("write1-{}", res.write_with("a", |_| log("cb1"))));
        let ends = res.clone();
        let room = res.write_with("b".repeat(20_000), move |_| {
            log("cb2");
            set_immediate(move || ends.end_with("c", |_| log("cb3")));
        });
        log(format!("write2-{room}"));
        let (need, corked) = (res.need_drain(), res.corked());
        log(format!(
            "need-{need} corked-{corked} length-{}",
            res.length() > 20_000
        ));
        let res = res.clone();
        next_tick(move || log(format!("tick corked-{}", res.corked())));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, &get("/", "Connection: close\r\n"), move |text| {
            log(format!("got-{}", text.len() > 20_000));
            server.close();
        });
    });
}

async fn request_backpressure() {
    const SIZE: usize = 24 << 20;
    let flushed = Rc::new(Cell::new(false));
    let seen = flushed.clone();
    let server = serve(move |_, req, res| {
        let (req, res, seen) = (req.clone(), res.clone(), seen.clone());
        set_timeout(200, move || {
            log(format!(
                "held-{}-{}",
                req.readable().length() < 1 << 20,
                seen.get()
            ));
            let total = Rc::new(Cell::new(0));
            let all = total.clone();
            req.on_data(move |d| total.set(total.get() + d.len()));
            req.on(END, move |()| {
                log(format!("total-{}", all.get() == SIZE));
                res.end("ok");
            });
        });
    });
    listen(&server, move |server, port| {
        let server = server.clone();
        let c = net::connect(("127.0.0.1", port));
        c.write(format!(
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n"
        ));
        c.write_with(vec![b'y'; SIZE], move |_| {
            flushed.set(true);
            log("flushed");
        });
        c.resume();
        c.on(CLOSE, move |()| {
            log("closed");
            server.close();
        });
    });
}

async fn pipeline_order() {
    let held = Rc::<RefCell<Vec<ServerResponse>>>::default();
    let server = serve(move |_, req, res| {
        res.send_date(false);
        let url = req.url().to_owned();
        log(format!("request{url} socket-{}", res.socket().is_some()));
        let [socket, finish, close] = [(); 3].map(|()| url.clone());
        res.on(SOCKET, move |_| log(format!("socket{socket}")));
        res.on(FINISH, move |()| log(format!("finish{finish}")));
        res.on(CLOSE, move |()| log(format!("close{close}")));
        held.borrow_mut().push(res.clone());
        if held.borrow().len() < 3 {
            return;
        }
        let held = held.take();
        set_immediate(move || {
            log("end3");
            held[2].end("three");
            log(format!("write2-{}", held[1].write("two")));
            held[1].end(());
            log(format!("length-{}", held[1].length() > 0));
            set_timeout(50, move || {
                log("end1");
                held[0].end("one");
            });
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes: String = ["/1", "/2", "/3"].map(|path| get(path, "")).concat();
        let c = raw(port, &bytes, move |text| {
            log(show(text));
            server.close();
        });
        c.on_this(MORE, |c, text| {
            if text.contains("three") {
                c.end(());
            }
        });
    });
}

async fn pipeline_close_cuts() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        let url = req.url().to_owned();
        log(format!("request{url}"));
        let [error, close, finish, closed] = [(); 4].map(|()| url.clone());
        req.on(ERROR, move |e| {
            log(format!("error{error}-{}", e.code().unwrap_or("none")))
        });
        req.on(CLOSE, move |()| log(format!("req.close{close}")));
        res.on(FINISH, move |()| log(format!("finish{finish}")));
        res.on(CLOSE, move |()| log(format!("res.close{closed}")));
        if url == "/own" {
            res.set_header("Connection", "close");
        }
        res.end(url);
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let bytes = get("/asked", "Connection: close\r\n") + &get("/behind1", "");
        raw(port, &bytes, move |text| {
            log(show(text));
            raw(
                port,
                &(get("/own", "") + &get("/behind2", "")),
                move |text| {
                    log(show(text));
                    server.close();
                },
            );
        });
    });
}
