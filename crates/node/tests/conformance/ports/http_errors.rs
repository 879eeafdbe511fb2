//! 334–337: bad input.

use phaseloop_node::events::ERROR;
use phaseloop_node::http::{ABORTED, CLIENT_ERROR, IncomingMessage};
use phaseloop_node::net::CONNECTION;
use phaseloop_node::stream::{CLOSE, END, FINISH};
use phaseloop_node::{Emitter, Error, Promise, next_tick};

use super::http_order::{listen, serve};
use crate::http_peers::{latin1, raw, show};
use crate::support::{log, say, says};

super::ports! {
    Real "334-http-bad-request" => bad_request,
    Real "335-http-client-error-event" => client_error_event,
    Real "336-http-client-error-reset" => client_error_reset,
    Real "337-http-bad-chunk" => bad_chunk,
}

pub(super) fn code(error: &Error) -> &str {
    error.code().unwrap_or("none")
}

async fn bad_request() {
    let server = serve(|_, _, _| log("never"));
    server.on(CONNECTION, |socket| {
        log("connection");
        socket.on(ERROR, |e| log(format!("socket.error-{}", code(e))));
        socket.on_this(CLOSE, |socket, ()| {
            log(format!("socket.close-{}", socket.had_error()))
        });
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, "HELLO THERE\r\n\r\n", move |text| {
            log(show(text));
            server.close();
        });
    });
}

async fn client_error_event() {
    let server = serve(|_, _, _| log("request"));
    server.on(CLIENT_ERROR, |failed| {
        let (error, socket) = (&failed.error, &failed.socket);
        let packet = show(&latin1(&failed.raw_packet));
        let writable = socket.writable().is_writable();
        log(format!(
            "clientError {} {} {packet} writable-{writable} destroyed-{}",
            code(error),
            failed.bytes_parsed,
            socket.destroyed()
        ));
        next_tick(say("tick"));
        Promise::resolved(()).then(|()| log("promise"));
        socket.end("HTTP/1.1 400 Mine\r\n\r\n");
    });
    listen(&server, |server, port| {
        let server = server.clone();
        raw(port, "GET / HTTP/1.1\r\nHost : h\r\n\r\n", move |text| {
            log(show(text));
            let bytes = "GET / HTTP/1.1\r\nHost: h\r\nBad\x01: x\r\n\r\n";
            raw(port, bytes, move |text| {
                log(show(text));
                server.close();
            });
        });
    });
}

/// Logs the end of a request: `complete` says whether it was whole.
fn log_close(req: &IncomingMessage) {
    req.on_this(CLOSE, |req, ()| {
        log(format!("req.close complete-{}", req.complete()))
    });
}

async fn client_error_reset() {
    let server = serve(|_, req, res| {
        log("request");
        req.on_data(|d| log(format!("data-{}", latin1(d))));
        req.on(ABORTED, says("aborted"));
        req.on(ERROR, |e| log(format!("error-{}", code(e))));
        req.on(END, says("end"));
        log_close(req);
        res.on(CLOSE, says("res.close"));
    });
    server.on(CONNECTION, |socket| {
        socket.on(ERROR, |e| log(format!("socket.error-{}", code(e))));
    });
    listen(&server, |server, port| {
        let server = server.clone();
        let first = raw(port, "GET / HTTP/1.1\r\nHos", move |text| {
            log(show(text));
            let bytes = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab";
            let second = raw(port, bytes, move |text| {
                log(show(text));
                let third = raw(port, "", move |text| {
                    log(show(text));
                    server.close();
                });
                third.end(());
            });
            second.end(());
        });
        first.end(());
    });
}

async fn bad_chunk() {
    let server = serve(|_, req, res| {
        res.send_date(false);
        log(format!("request{}", req.url()));
        req.on_data(|d| log(format!("data-{}", latin1(d))));
        req.on(ERROR, |e| log(format!("error-{}", code(e))));
        req.on(END, says("end"));
        log_close(req);
        res.on(FINISH, says("finish"));
        res.on(CLOSE, says("res.close"));
        if req.url() == "/early" {
            res.end("early");
        }
    });
    let post = |path, chunks| {
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
    };
    listen(&server, move |server, port| {
        let server = server.clone();
        raw(port, &post("/wait", "2\r\nab\r\nzz\r\n"), move |text| {
            log(show(text));
            raw(port, &post("/early", "2\r\nab\r\n-1\r\n"), move |text| {
                log(show(text));
                server.close();
            });
        });
    });
}
