//! Server-sent events on Node's `http`: a clock that every client follows, and that resumes after
//! the last event that a client has seen.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example sse                      # follows itself, then exits
//! cargo run --release --package phaseloop-node --example sse -- 127.0.0.1:8080    # serves until ctrl-c
//! curl -N http://127.0.0.1:8080/events
//! ```

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop::stream::StreamExt as _;
use phaseloop_node::events::once;
use phaseloop_node::http::{
    self, IncomingMessage, RESPONSE, RequestOptions, Server, ServerResponse,
};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::{Emitter, Error, Exit, run, set_interval, try_call};

/// The events so far, and the clients that wait for the next one.
#[derive(Default)]
struct Channel {
    events: RefCell<Vec<String>>,
    clients: RefCell<Vec<ServerResponse>>,
}

impl Channel {
    /// Sends an event to all clients. A client that does not read is dropped.
    fn publish(&self, data: String) {
        let mut events = self.events.borrow_mut();
        events.push(data);
        let event = event(events.len(), &events[events.len() - 1]);
        let slow: Vec<_> = {
            let clients = self.clients.borrow();
            clients
                .iter()
                .filter(|client| !client.write(event.clone()))
                .cloned()
                .collect()
        };
        for client in slow {
            client.destroy(None);
        }
    }

    /// Sends a new client the events that it has missed, and keeps it for the next.
    fn subscribe(self: &Rc<Self>, req: &IncomingMessage, res: &ServerResponse) {
        let headers = [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-cache"),
        ];
        res.write_head(200, headers);
        res.flush_headers();
        let last = req.headers().get("last-event-id");
        let last = last.and_then(|id| id.parse().ok()).unwrap_or(0);
        for (n, data) in self.events.borrow().iter().enumerate().skip(last) {
            res.write(event(n + 1, data));
        }
        self.clients.borrow_mut().push(res.clone());
        let channel = self.clone();
        res.on_this(CLOSE, move |gone, ()| {
            let mut clients = channel.clients.borrow_mut();
            clients.retain(|client| client.writable().id() != gone.writable().id());
        });
    }
}

fn event(id: usize, data: &str) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

fn main() -> Exit<()> {
    let address = std::env::args().nth(1);
    run(async move {
        let channel = Rc::new(Channel::default());
        let clock = channel.clone();
        let ticks = Cell::new(0);
        let timer = set_interval(20, move |_| {
            ticks.set(ticks.get() + 1);
            clock.publish(format!("tick {}", ticks.get()));
        });
        let server = http::create_server(move |req, res| match req.url() {
            "/events" => channel.subscribe(req, res),
            _ => {
                res.set_status(404);
                res.end(());
            }
        });
        // The clock stops with the server.
        server.on(CLOSE, move |()| drop(timer.close().clone()));
        let is_demo = address.is_none();
        let address = address.as_deref().unwrap_or("127.0.0.1:0");
        let address: SocketAddr = address.parse().expect("an IP address and a port");
        server.listen_this(address, move |server| {
            println!("listening on http://{}/events", server.address().unwrap());
            if is_demo {
                try_call(demo(server.clone()));
            }
        });
    })
}

/// Follows three events, goes away, and comes back for the next three.
async fn demo(server: Server) -> Result<(), Error> {
    let mut last = "0".to_owned();
    for visit in 1..=2 {
        let options = RequestOptions::new(server.address().expect("it listens")).path("/events");
        let request = http::get(options.header("Last-Event-ID", &*last));
        let response = once(&request, RESPONSE).await?;
        let kind = response.headers().get("content-type").unwrap_or_default();
        println!("visit {visit}: {kind}, after event {last}");
        let mut chunks = response.readable().chunks();
        let (mut text, mut seen) = (String::new(), 0);
        while let Some(chunk) = chunks.next().await.filter(|_| seen < 3) {
            text += &String::from_utf8_lossy(&chunk?);
            while let Some((event, rest)) = text.split_once("\n\n") {
                println!("{}", event.replace('\n', ", "));
                let id = event.lines().find_map(|line| line.strip_prefix("id: "));
                last = id.unwrap_or_default().to_owned();
                seen += 1;
                text = rest.to_owned();
            }
        }
        // Dropping the chunks before their end closes the connection: the server forgets the
        // client.
    }
    server.close_all_connections();
    server.close();
    Ok(())
}
