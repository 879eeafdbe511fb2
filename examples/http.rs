//! A tiny HTTP server without a dependency, in the style of Node's first example: one callback per
//! request.
//!
//! ```text
//! cargo run --release --example http                      # sends itself a request, then exits
//! cargo run --release --example http -- 127.0.0.1:8080    # serves until ctrl-c
//! curl http://127.0.0.1:8080/
//! ```

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use phaseloop::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::spawn;

struct Request {
    method: String,
    path: String,
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    phaseloop::block_on(async {
        let requests = Rc::new(Cell::new(0));
        let handler = move |request: &Request| {
            requests.set(requests.get() + 1);
            format!(
                "{} {} is request {}\n",
                request.method,
                request.path,
                requests.get()
            )
        };
        let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let here = listener.local_addr()?;
        println!("listening on http://{here}/");
        let server = spawn(create_server(listener, handler));
        if address.is_some() {
            return server.await.expect("the server does not panic");
        }
        let mut client = TcpStream::connect(here).await?;
        client
            .write_all(b"GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await?;
        print!("{answer}");
        server.abort();
        Ok(())
    })
}

/// Serves each connection in a task of its own, until the listener fails.
async fn create_server(
    listener: TcpListener,
    handler: impl Fn(&Request) -> String + 'static,
) -> io::Result<()> {
    let handler = Rc::new(handler);
    loop {
        let (stream, _) = listener.accept().await?;
        let handler = handler.clone();
        spawn(async move { connection(&stream, &*handler).await }).detach();
    }
}

async fn connection(stream: &TcpStream, handler: &dyn Fn(&Request) -> String) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    let mut output = stream;
    loop {
        let Some((request, keep_alive)) = read_request(&mut input).await? else {
            return Ok(());
        };
        let body = handler(&request);
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            body.len()
        );
        output.write_all((head + &body).as_bytes()).await?;
        if !keep_alive {
            return output.close().await;
        }
    }
}

/// Reads the next request, and whether another one may follow; `None` at EOF. Requests with a body
/// are not supported.
async fn read_request(input: &mut BufReader<&TcpStream>) -> io::Result<Option<(Request, bool)>> {
    let mut line = String::new();
    if input.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a request line",
        ));
    };
    let request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
    };
    let mut keep_alive = version == "HTTP/1.1";
    loop {
        let mut header = String::new();
        if input.read_line(&mut header).await? == 0 || header.trim_end().is_empty() {
            return Ok(Some((request, keep_alive)));
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("connection:") {
            keep_alive = value.trim() == "keep-alive";
        }
    }
}
