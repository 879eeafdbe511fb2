//! `phaseloop_node::http`, written as one writes it for Node: what `peers/node.mjs` does, call by
//! call.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use phaseloop_node::http::{IncomingMessage, Server, ServerResponse, create_server};
use phaseloop_node::net::CONNECTION;
use phaseloop_node::stream::{CLOSE, Readable};
use phaseloop_node::{Emitter, process, run, set_timeout};

use super::http::{BODY, CHUNK, CHUNKS, LONG};
use super::sockets::announce;
use crate::meter::{Meter, Reading};

const HOUR: Duration = Duration::from_secs(3600);

fn hello(_: &IncomingMessage, response: &ServerResponse) {
    let length = response.try_set_header("content-length", BODY.len());
    length.expect("it is a header");
    response.end(BODY);
}

/// A megabyte that is piped: the source waits while the socket is full.
fn long(_: &IncomingMessage, response: &ServerResponse) {
    let length = response.try_set_header("content-length", LONG);
    length.expect("it is a header");
    let mut left = CHUNKS;
    let source = Readable::bytes().read(move |source, _| {
        if left == 0 {
            return source.push_end();
        }
        left -= 1;
        source.push(CHUNK.to_vec());
    });
    source.build().pipe(response.writable());
}

/// What does a small GET cost, on each of so many connections that stay open?
pub(crate) fn http(connections: u64) -> Reading {
    serve(connections, hello)
}

/// What does a megabyte cost that is streamed?
pub(crate) fn http_body(connections: u64) -> Reading {
    serve(connections, long)
}

/// How much memory does a connection take that has had its answer?
pub(crate) fn idle_http(n: u64) -> Reading {
    let (reading, answered) = (Rc::new(RefCell::new(None)), Cell::new(0));
    let result = reading.clone();
    run(async move {
        let meter = Rc::new(Cell::new(Some(Meter::start())));
        let server = create_server(move |request, response| {
            hello(request, response);
            answered.set(answered.get() + 1);
            if answered.get() == n {
                let (meter, result) = (meter.take(), result.clone());
                set_timeout(20, move || {
                    result.replace(meter.map(Meter::stop));
                    process::exit(0);
                });
            }
        });
        listen(&server);
    });
    reading.take().expect("all were answered")
}

/// Ends when so many connections have come and gone.
fn serve(
    connections: u64,
    handler: impl Fn(&IncomingMessage, &ServerResponse) + 'static,
) -> Reading {
    let reading = Rc::new(RefCell::new(None));
    let result = reading.clone();
    run(async move {
        let server = create_server(handler);
        let counts = Rc::new((Cell::new(0), Cell::new(connections), Cell::new(None)));
        server.on(CONNECTION, move |socket| {
            counts.0.set(counts.0.get() + 1);
            if counts.0.get() == connections {
                counts.2.set(Some(Meter::start()));
            }
            let (counts, result) = (counts.clone(), result.clone());
            socket.on(CLOSE, move |_| {
                counts.1.set(counts.1.get() - 1);
                if counts.1.get() == 0 {
                    result.replace(counts.2.take().map(Meter::stop));
                    process::exit(0);
                }
            });
        });
        listen(&server);
    });
    reading.take().expect("all connections have come and gone")
}

fn listen(server: &Server) {
    server.set_keep_alive_timeout(HOUR);
    server.listen_this(("127.0.0.1", 0), |server| {
        announce(Ok(server.address().expect("it listens")));
    });
}
