//! A file server on Node's `http`: ranges, conditional requests, and backpressure. A file of any
//! size needs a few chunks of memory, however slowly its client reads.
//!
//! ```text
//! cargo run --release --package phaseloop-node --example file_server              # serves its own source, then exits
//! cargo run --release --package phaseloop-node --example file_server -- 127.0.0.1:8080 /srv/files    # until ctrl-c
//! curl -r 0-99 http://127.0.0.1:8080/some/file
//! ```

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use phaseloop_node::events::once;
use phaseloop_node::fs::{self, ReadStreamOptions};
use phaseloop_node::http::{
    self, IncomingMessage, RESPONSE, RequestOptions, Server, ServerResponse,
};
use phaseloop_node::stream::pipeline;
use phaseloop_node::{Error, Exit, call, run, try_call};

fn main() -> Exit<()> {
    let mut args = std::env::args().skip(1);
    let (address, root) = (args.next(), args.next());
    run(async move {
        let root: Rc<Path> = Path::new(root.as_deref().unwrap_or("examples")).into();
        let server = http::create_server(move |req, res| {
            call(serve(root.clone(), req.clone(), res.clone()));
        });
        let is_demo = address.is_none();
        let address = address.as_deref().unwrap_or("127.0.0.1:0");
        let address: SocketAddr = address.parse().expect("an IP address and a port");
        server.listen_this(address, move |server| {
            println!("listening on http://{}/", server.address().unwrap());
            if is_demo {
                try_call(demo(server.clone()));
            }
        });
    })
}

async fn serve(root: Rc<Path>, req: IncomingMessage, res: ServerResponse) {
    if let Err(status) = try_serve(&root, &req, &res).await {
        res.set_status(status);
        res.end(format!("{status}\n"));
    }
}

/// Answers a request, or returns the status of the refusal.
async fn try_serve(root: &Path, req: &IncomingMessage, res: &ServerResponse) -> Result<(), u16> {
    if !matches!(req.method(), "GET" | "HEAD") {
        res.set_header("Allow", "GET, HEAD");
        return Err(405);
    }
    let path = path_of(root, req.url()).ok_or(404_u16)?;
    let file = fs::promises::stat(path.clone())
        .await
        .map_err(|_| 404_u16)?;
    if !file.is_file() {
        return Err(404);
    }
    let size = file.size();
    res.set_header("Accept-Ranges", "bytes");
    let (start, end) = match req.headers().get("range") {
        None => (0, size),
        Some(range) => {
            let Some((start, end)) = parse_range(range, size) else {
                res.set_header("Content-Range", format!("bytes */{size}"));
                return Err(416);
            };
            res.set_status(206);
            let last = end - 1;
            let range = format!("bytes {start}-{last}/{size}");
            res.set_header("Content-Range", range);
            (start, end)
        }
    };
    res.set_header("Content-Length", end - start);
    if req.method() == "HEAD" || start == end {
        res.end(());
        return Ok(());
    }
    let options = ReadStreamOptions {
        start,
        end: end - 1,
        ..ReadStreamOptions::default()
    };
    let bytes = fs::create_read_stream_with(path, options);
    // The pipeline reads the file as fast as the client takes it. A client that goes away destroys
    // the file's stream.
    if let Err(error) = pipeline(&bytes).into(res.writable()).await {
        eprintln!("{}: {error}", req.url());
    }
    Ok(())
}

/// Returns the file that a URL names. `None` if it would lie outside `root`.
fn path_of(root: &Path, url: &str) -> Option<PathBuf> {
    let path = url.split('?').next()?.trim_start_matches('/');
    let relative = Path::new(path);
    let is_inside = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (is_inside && !path.contains(['%', '\\'])).then(|| root.join(relative))
}

/// Parses `bytes=first-last`, `bytes=first-` and `bytes=-count` to a start and an end.
fn parse_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = match (first, last) {
        ("", count) => (size.saturating_sub(count.parse().ok()?), size),
        (first, "") => (first.parse().ok()?, size),
        (first, last) => (
            first.parse().ok()?,
            last.parse::<u64>().ok()?.saturating_add(1).min(size),
        ),
    };
    (start < end).then_some((start, end))
}

async fn demo(server: Server) -> Result<(), Error> {
    let requests = [
        ("/file_server.rs", None),
        ("/file_server.rs", Some("bytes=4-17")),
        ("/file_server.rs", Some("bytes=-2")),
        ("/file_server.rs", Some("bytes=1000000-")),
        ("/missing", None),
        ("/../Cargo.toml", None),
    ];
    for (path, range) in requests {
        let mut options = RequestOptions::new(server.address().expect("it listens")).path(path);
        if let Some(range) = range {
            options = options.header("Range", range);
        }
        let response = once(&http::get(options), RESPONSE).await?;
        let bytes = response.readable().to_array().await?.concat();
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(14)]).into_owned();
        let status = response.status_code().expect("an answer has a status");
        let range = range.unwrap_or("all");
        println!("{path} {range}: {status}, {} bytes, {start:?}", bytes.len());
    }
    server.close();
    Ok(())
}
