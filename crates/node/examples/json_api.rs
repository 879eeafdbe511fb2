//! A JSON API with routes on Node's `http`: notes that are created, listed, read and deleted.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example json_api                      # asks itself, then exits
//! cargo run --release --package phaseloop-node --example json_api -- 127.0.0.1:8080    # serves until ctrl-c
//! curl -d '{"text":"milk"}' http://127.0.0.1:8080/notes
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop::stream::StreamExt as _;
use phaseloop_node::events::once;
use phaseloop_node::http::{self, IncomingMessage, RESPONSE, RequestOptions, Server};
use phaseloop_node::{Error, Exit, call, run, try_call};
use serde_json::{Value, json};

/// The longest body that a client may send.
const MAX_BODY: usize = 64 * 1024;

#[derive(Default)]
struct Notes {
    last: u64,
    by_id: BTreeMap<u64, Value>,
}

/// A status and the body of an answer.
type Answer = (u16, Value);

fn main() -> Exit<()> {
    let address = std::env::args().nth(1);
    run(async move {
        let notes = Rc::new(RefCell::new(Notes::default()));
        let server = http::create_server(move |req, res| {
            let (notes, req, res) = (notes.clone(), req.clone(), res.clone());
            call(async move {
                let (status, body) = route(&notes, &req).await.unwrap_or_else(|error| error);
                res.set_status(status);
                res.set_header("Content-Type", "application/json");
                res.end(format!("{body}\n"));
            });
        });
        let is_demo = address.is_none();
        let address = address.as_deref().unwrap_or("127.0.0.1:0");
        let address: SocketAddr = address.parse().expect("an IP address and a port");
        server.listen_this(address, move |server| {
            println!("listening on http://{}/notes", server.address().unwrap());
            if is_demo {
                try_call(demo(server.clone()));
            }
        });
    })
}

async fn route(notes: &RefCell<Notes>, req: &IncomingMessage) -> Result<Answer, Answer> {
    let path = req.url().split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (req.method(), &*parts) {
        ("GET", ["notes"]) => Ok((200, json!(notes.borrow().by_id))),
        ("POST", ["notes"]) => {
            let note = body(req).await?;
            let mut notes = notes.borrow_mut();
            notes.last += 1;
            let id = notes.last;
            notes.by_id.insert(id, note);
            Ok((201, json!({ "id": id })))
        }
        ("GET", ["notes", id]) => {
            let id = number(id)?;
            let note = notes.borrow().by_id.get(&id).cloned();
            Ok((200, note.ok_or_else(|| error(404, "no such note"))?))
        }
        ("DELETE", ["notes", id]) => {
            let note = notes.borrow_mut().by_id.remove(&number(id)?);
            Ok((200, note.ok_or_else(|| error(404, "no such note"))?))
        }
        (_, ["notes"] | ["notes", _]) => Err(error(405, "no such method")),
        _ => Err(error(404, "no such route")),
    }
}

fn error(status: u16, text: &str) -> Answer {
    (status, json!({ "error": text }))
}

fn number(id: &str) -> Result<u64, Answer> {
    id.parse().map_err(|_| error(400, "an id is a number"))
}

/// Reads the body of a request. A longer body than [`MAX_BODY`] is refused before it is read.
async fn body(req: &IncomingMessage) -> Result<Value, Answer> {
    let mut bytes = Vec::new();
    let mut chunks = req.readable().chunks();
    while let Some(chunk) = chunks.next().await {
        bytes.extend(chunk.map_err(|_| error(400, "the body is cut"))?);
        if bytes.len() > MAX_BODY {
            return Err(error(413, "the body is too long"));
        }
    }
    serde_json::from_slice(&bytes).map_err(|fault| error(400, &fault.to_string()))
}

async fn demo(server: Server) -> Result<(), Error> {
    let requests = [
        ("POST", "/notes", r#"{"text":"milk"}"#),
        ("POST", "/notes", r#"{"text":"bread"}"#),
        ("POST", "/notes", "not JSON"),
        ("GET", "/notes", ""),
        ("DELETE", "/notes/1", ""),
        ("GET", "/notes/1", ""),
        ("PATCH", "/notes/2", ""),
        ("GET", "/elsewhere", ""),
    ];
    for (method, path, body) in requests {
        let options = RequestOptions::new(server.address().expect("it listens"));
        let request = http::try_request(options.method(method).path(path))?;
        let response = once(&request, RESPONSE);
        request.end(body);
        let response = response.await?;
        let text = response.readable().to_array().await?.concat();
        let status = response.status_code().expect("an answer has a status");
        print!(
            "{method} {path}: {status} {}",
            String::from_utf8_lossy(&text)
        );
    }
    server.close();
    Ok(())
}
