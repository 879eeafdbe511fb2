//! A reverse proxy on Node's `http`: requests and answers are streamed both ways, and the
//! connections to the upstream are kept alive and shared.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example proxy    # an upstream and requests of its own, then exits
//! cargo run --release --package phaseloop-node --example proxy -- 127.0.0.1:8080 127.0.0.1:9000    # until ctrl-c
//! ```

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{
    self, Agent, IncomingMessage, RESPONSE, RequestOptions, Server, ServerResponse,
};
use phaseloop_node::stream::{CLOSE, pipeline};
use phaseloop_node::{Emitter, Error, Exit, net, run};

/// Headers that concern one connection, not the message.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn main() -> Exit<()> {
    let addresses = std::env::args().skip(1).map(|text| text.parse());
    let addresses: Result<Vec<SocketAddr>, _> = addresses.collect();
    let addresses = addresses.expect("IP addresses with ports");
    run(async move {
        match *addresses {
            [address, upstream] => println!("proxy on {:?}", proxy(upstream, address).address()),
            _ => demo().await.expect("the demo works"),
        }
    })
}

/// Starts a proxy for `upstream`.
fn proxy(upstream: SocketAddr, address: SocketAddr) -> Server {
    let agent = Agent::builder().keep_alive(true).max_sockets(8).build();
    let kept = agent.clone();
    let server = http::create_server(move |req, res| forward(&agent, upstream, req, res));
    // The kept connections do not outlive the proxy.
    server.on(CLOSE, move |()| kept.destroy());
    server.listen(address);
    server
}

fn forward(agent: &Agent, upstream: SocketAddr, req: &IncomingMessage, res: &ServerResponse) {
    let mut headers = end_to_end(req);
    if req.headers().contains("transfer-encoding") {
        // Said explicitly: a GET would have no framing of its own, and its body would be read as
        // the next request.
        headers.push(("Transfer-Encoding", "chunked"));
    }
    let client = req
        .socket()
        .remote_address()
        .map(|client| client.ip().to_string());
    headers.extend(client.iter().map(|client| ("X-Forwarded-For", &**client)));
    let options = RequestOptions::new(upstream)
        .method(req.method())
        .path(req.url())
        .raw_headers(headers)
        .agent(agent);
    let onward = match http::try_request(options) {
        Ok(onward) => onward,
        Err(error) => return refuse(res, 400, &error),
    };
    let answered = res.clone();
    onward.on_response(move |answer| {
        let status = answer.status_code().expect("an answer has a status");
        let head = answered.try_write_head(status, answer.status_message(), end_to_end(answer));
        match head {
            // Backpressure reaches the upstream: it is read as fast as the client takes the bytes.
            Ok(()) => pipeline(answer.readable())
                .into(answered.writable())
                .then(|_| ()),
            Err(error) => refuse(&answered, 502, &error),
        }
    });
    let failed = res.clone();
    onward.on(ERROR, move |error| refuse(&failed, 502, error));
    pipeline(req.readable())
        .into(onward.writable())
        .then(|_| ());
}

/// Returns the headers that are passed on.
fn end_to_end(message: &IncomingMessage) -> Vec<(&str, &str)> {
    let headers = message.raw_headers().iter();
    let headers = headers.map(|(name, value)| (&**name, &**value));
    let is_kept = |(name, _): &(&str, &str)| !HOP_BY_HOP.contains(&&*name.to_ascii_lowercase());
    headers.filter(is_kept).collect()
}

fn refuse(res: &ServerResponse, status: u16, error: &Error) {
    eprintln!("{status}: {error}");
    if res.headers_sent() {
        // The client has a part of the answer: it must see that the rest is missing.
        return res.destroy(None);
    }
    res.set_status(status);
    res.end(format!("{status}\n"));
}

/// Sends requests through a proxy to an upstream that counts its connections.
async fn demo() -> Result<(), Error> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let upstream = http::create_server(|req, res| {
        res.write(format!("{} {} with ", req.method(), req.url()));
        pipeline(req.readable()).into(res.writable()).then(|_| ());
    });
    let connections = Rc::new(Cell::new(0));
    let count = connections.clone();
    upstream.on(net::CONNECTION, move |_| count.set(count.get() + 1));
    upstream.listen(any);
    once(&upstream, net::LISTENING).await?;
    let proxy = proxy(upstream.address().expect("it listens"), any);
    once(&proxy, net::LISTENING).await?;

    for number in 1..=3 {
        let options = RequestOptions::new(proxy.address().expect("it listens"))
            .method("POST")
            .path(format!("/{number}"));
        let request = http::try_request(options)?;
        let response = once(&request, RESPONSE);
        request.end(format!("body {number}"));
        let body = response.await?.readable().to_array().await?.concat();
        println!("{}", String::from_utf8_lossy(&body));
    }
    println!(
        "3 requests, {} connection to the upstream",
        connections.get()
    );
    proxy.close();
    upstream.close();
    Ok(())
}
