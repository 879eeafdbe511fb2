//! 580–582: where the faults of requests are, how many header lines are kept, and answers that
//! end when they cannot leave.

use phaseloop_node::http::{self, Agent, CLIENT_ERROR, RequestOptions, Server, ServerResponse};
use phaseloop_node::stream::{CLOSE, END, FINISH, PREFINISH};
use phaseloop_node::{Emitter, Error, events::ERROR, set_immediate};

use crate::http_peers::{FREE, raw, show};
use crate::support::{log, say};

super::ports! {
    Virtual "580-http-fault-positions" => fault_positions,
    Virtual "581-http-many-headers" => many_headers,
    Virtual "582-http-ends-without-a-way" => ends_without_a_way,
}

fn head(text: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{text}")
}

fn chunk(text: &str) -> String {
    head(&format!("Transfer-Encoding: chunked\r\n\r\n{text}"))
}

fn lines_too_long() -> Vec<(&'static str, String)> {
    let long = "x".repeat(100);
    vec![
        ("url", format!("GET /{long} HTTP/1.1\r\n")),
        ("url without version", format!("GET /{long}\r\n")),
        ("url with host", format!("GET http://{long}/a HTTP/1.1\r\n")),
        ("url bad", format!("GET /{long}\x01 HTTP/1.1\r\n")),
        ("url open", format!("GET /{long}")),
        ("name", head(&format!("{long}: a\r\n\r\n"))),
        ("name bad", head(&format!("{long}\x01: a\r\n\r\n"))),
        ("name blank", head(&format!("{long} : a\r\n\r\n"))),
        ("name open", head(&long)),
        ("value", head(&format!("a: {long}\r\n\r\n"))),
        (
            "value blanks",
            head(&format!("a: b{}\r\n\r\n", " ".repeat(100))),
        ),
        ("value bad", head(&format!("a: {long}\x01b\r\n\r\n"))),
        ("value lf", head(&format!("a: {long}\n\r\n"))),
        ("value open", head(&format!("a: {long}"))),
        ("many values", head(&"ab: cd\r\n".repeat(30))),
    ]
}

fn framings_too_long() -> Vec<(&'static str, String)> {
    let (long, zeros) = ("x".repeat(100), "0".repeat(100));
    let extension = "x".repeat(17_000);
    vec![
        (
            "length",
            head(&format!("Content-Length: {zeros}3\r\n\r\nabc")),
        ),
        (
            "length bad",
            head(&format!("Content-Length: {zeros}x\r\n\r\n")),
        ),
        (
            "length too large",
            head("Content-Length: 18446744073709551616\r\n\r\n"),
        ),
        (
            "coding",
            head(&format!("Transfer-Encoding: {long}, chunked\r\n\r\n")),
        ),
        (
            "coding bad",
            head(&format!("Transfer-Encoding: {long}\x01\r\n\r\n")),
        ),
        ("size too large", chunk("10000000000000000\r\n")),
        ("extension name", chunk(&format!("3;{extension}=a\r\n"))),
        ("extension value", chunk(&format!("3;a={extension};b\r\n"))),
        (
            "extension quoted",
            chunk(&format!("3;a=\"{extension}\";b\r\n")),
        ),
        ("extension bad", chunk(&format!("3;{extension} \r\n"))),
        ("extension lf", chunk(&format!("3;{extension}\n"))),
        ("extension open", chunk(&format!("3;{extension}"))),
        ("trailer", chunk(&format!("0\r\na: {long}\r\n\r\n"))),
    ]
}

async fn fault_positions() {
    let server = Server::builder().max_header_size(100).build().unwrap();
    server.on_request(|req, res| {
        req.on(ERROR, |_| ());
        req.resume();
        let res = res.clone();
        req.on(END, move |()| res.end(()));
    });
    server.on(CLIENT_ERROR, |failed| {
        let (code, at) = (failed.error.code().unwrap(), failed.bytes_parsed);
        log(format!("{code} {at} {}", failed.raw_packet.len()));
        failed.socket.end(match code {
            "HPE_HEADER_OVERFLOW" => "large",
            _ => "bad",
        });
    });
    let mut cases = [lines_too_long(), framings_too_long()].concat();
    cases.reverse();
    server.listen_this(FREE, |server| next_fault(server.clone(), cases));
}

fn next_fault(server: Server, mut cases: Vec<(&'static str, String)>) {
    let Some((name, text)) = cases.pop() else {
        return server.close_with(say("closed"));
    };
    log(name);
    raw(server.address().unwrap().port(), &text, move |answer| {
        log(show(answer));
        next_fault(server, cases);
    });
}

async fn many_headers() {
    let server = http::create_server(|req, res| {
        req.resume();
        let (this, res) = (req.clone(), res.clone());
        req.on(END, move |()| {
            let (headers, trailers) = (this.headers(), this.trailers());
            let last = headers.get("last").unwrap_or("undefined");
            log(format!(
                "{} {} {} {} {last}",
                this.raw_headers().len(),
                headers.iter().count(),
                this.raw_trailers().len(),
                trailers.iter().count()
            ));
            for i in 0..40 {
                res.set_header(format!("h{i}"), "v");
            }
            res.end(());
        });
    });
    let mut cases = vec![
        (1, 5),
        (3, 31),
        (3, 32),
        (31, 40),
        (32, 80),
        (40, 63),
        (62, 100),
        (1000, 1100),
        (0, 1100),
    ];
    cases.reverse();
    server.listen_this(FREE, |server| next_count(server.clone(), cases));
}

fn next_count(server: Server, mut cases: Vec<(usize, usize)>) {
    let Some((limit, count)) = cases.pop() else {
        return client(server);
    };
    server.set_max_headers_count(limit);
    let fields: String = (0..count - 4).map(|i| format!("a{i}: b\r\n")).collect();
    let text = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n{fields}\
         last: l\r\n\r\n0\r\n{fields}\r\n"
    );
    raw(server.address().unwrap().port(), &text, move |_| {
        next_count(server, cases);
    });
}

fn client(server: Server) {
    let options = RequestOptions::new(server.address().unwrap())
        .agent(&Agent::none())
        .max_headers_count(5);
    let req = http::get(options);
    req.on_response(|res| {
        let (raw, seen) = (res.raw_headers().len(), res.headers().iter().count());
        log(format!("client {raw} {seen}"));
        res.resume();
    });
    req.on(CLOSE, move |()| server.close_with(say("closed")));
}

fn state(res: &ServerResponse, what: &str) {
    let (sent, ended, destroyed) = (res.headers_sent(), res.ended(), res.destroyed());
    log(format!(
        "{what} sent-{sent} ended-{ended} destroyed-{destroyed}"
    ));
}

fn called(result: Result<(), Error>) {
    let error = result.err();
    let code = error.as_ref().and_then(Error::code);
    log(format!("callback {}", code.unwrap_or("ok")));
}

async fn ends_without_a_way() {
    let server = http::create_server(|req, res| {
        res.send_date(false);
        for event in [PREFINISH, FINISH, CLOSE] {
            res.on(event, move |()| log(event.name()));
        }
        res.on(ERROR, |e| log(format!("error {}", e.code().unwrap())));
        let (kind, last) = req.url()[1..].split_once('-').unwrap();
        if kind != "destroyed" {
            res.flush_headers();
        }
        match kind {
            "gone" => req.socket().destroy(None),
            "destroyed" => res.destroy(None),
            _ => {}
        }
        state(res, "before");
        match last {
            "piece" => res.end_with("ok", called),
            _ => res.end_with((), called),
        }
        state(res, "after");
        let res = res.clone();
        set_immediate(move || state(&res, "immediate"));
    });
    let mut cases = vec![
        ("HEAD", "/gone-piece"),
        ("HEAD", "/gone-none"),
        ("GET", "/gone-piece"),
        ("GET", "/gone-none"),
        ("HEAD", "/live-piece"),
        ("HEAD", "/live-none"),
        ("GET", "/destroyed-piece"),
        ("GET", "/destroyed-none"),
        ("HEAD", "/destroyed-none"),
    ];
    cases.reverse();
    server.listen_this(FREE, |server| next_end(server.clone(), cases));
}

fn next_end(server: Server, mut cases: Vec<(&'static str, &'static str)>) {
    let Some((method, path)) = cases.pop() else {
        return server.close_with(say("closed"));
    };
    log(format!("{method} {path}"));
    let text = format!("{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    raw(server.address().unwrap().port(), &text, move |answer| {
        log(show(answer));
        next_end(server, cases);
    });
}
