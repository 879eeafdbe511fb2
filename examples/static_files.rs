//! A static file server without a library for HTTP: the kernel sends the files, without a copy.
//!
//! ```text
//! cargo run --release --example static_files                                # serves its own source, then exits
//! cargo run --release --example static_files -- 127.0.0.1:8080 /srv/files   # until ctrl-c
//! curl -r 0-99 http://127.0.0.1:8080/some/file
//! ```

use std::io;
use std::net::{SocketAddr, TcpStream as StdStream};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use phaseloop::fs::File;
use phaseloop::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{spawn, spawn_blocking};

/// A request may not be longer.
const LONGEST_HEAD: u64 = 8 * 1024;

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let (address, root) = (args.next(), args.next());
    let is_demo = address.is_none();
    let address = address.unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let root: Rc<Path> = Path::new(root.as_deref().unwrap_or("examples")).into();
    phaseloop::block_on(async move {
        let listener = TcpListener::bind(address).await?;
        println!("listening on http://{}/", listener.local_addr()?);
        let demo = is_demo.then(|| listener.local_addr()).transpose()?;
        let server = spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await?;
                let root = root.clone();
                spawn(async move {
                    if let Err(error) = serve(stream, &root).await {
                        eprintln!("{peer}: {error}");
                    }
                })
                .detach();
            }
        });
        match demo {
            Some(address) => spawn_blocking(move || demonstrate(address)).await.unwrap(),
            None => server.await.unwrap(),
        }
    })
}

/// Answers the requests of a connection, one after the other.
async fn serve(stream: TcpStream, root: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(&stream);
    while let Some(request) = read_request(&mut reader).await? {
        answer(&stream, root, &request).await?;
    }
    Ok(())
}

/// What a request asks for.
struct Request {
    method: String,
    path: String,
    range: Option<String>,
}

/// Reads the head of a request; `None` at the end of the connection.
async fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    use phaseloop::io::AsyncReadExt;
    let mut lines = reader.take(LONGEST_HEAD).lines();
    let mut next = async || {
        phaseloop::stream::StreamExt::next(&mut lines)
            .await
            .transpose()
    };
    let Some(first) = next().await? else {
        return Ok(None);
    };
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut range = None;
    loop {
        // A head that is too long or cut off has no empty line.
        let line = next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            break;
        }
        let field = line.split_once(':');
        if let Some((_, value)) = field.filter(|(name, _)| name.eq_ignore_ascii_case("range")) {
            range = Some(value.trim().to_owned());
        }
    }
    Ok(Some(Request {
        method,
        path,
        range,
    }))
}

async fn answer(mut stream: &TcpStream, root: &Path, request: &Request) -> io::Result<()> {
    let mut refuse = async |status: &str| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await
    };
    if !matches!(&*request.method, "GET" | "HEAD") {
        return refuse("405 Method Not Allowed").await;
    }
    let path = path_of(root, &request.path);
    let opened = match path {
        Some(path) => File::open(path).await.ok(),
        None => None,
    };
    let Some(file) = opened else {
        return refuse("404 Not Found").await;
    };
    let metadata = file.metadata().await?;
    if !metadata.is_file() {
        return refuse("404 Not Found").await;
    }
    let size = metadata.len();
    let (status, range) = match &request.range {
        None => ("200 OK".to_owned(), 0..size),
        Some(range) => match parse_range(range, size) {
            Some(range) => {
                let (start, last) = (range.start, range.end - 1);
                let field = format!("Content-Range: bytes {start}-{last}/{size}");
                (format!("206 Partial Content\r\n{field}"), range)
            }
            None => return refuse("416 Range Not Satisfiable").await,
        },
    };
    let length = range.end - range.start;
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    if request.method == "GET" && stream.send_file(&file, range).await? < length {
        // The file was cut meanwhile, and the client waits for the rest: end the connection.
        return Err(io::ErrorKind::UnexpectedEof.into());
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

/// Parses `bytes=first-last`, `bytes=first-` and `bytes=-count`.
fn parse_range(range: &str, size: u64) -> Option<std::ops::Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", count) => size.saturating_sub(count.parse().ok()?)..size,
        (first, "") => first.parse().ok()?..size,
        (first, last) => first.parse().ok()?..last.parse::<u64>().ok()?.saturating_add(1).min(size),
    };
    (!range.is_empty()).then_some(range)
}

/// A client that prints the first line of each answer, and its length.
fn demonstrate(address: SocketAddr) -> io::Result<()> {
    use std::io::{Read, Write};
    let requests = [
        ("/static_files.rs", ""),
        ("/static_files.rs", "Range: bytes=4-17\r\n"),
        ("/missing", ""),
        ("/../Cargo.toml", ""),
    ];
    for (path, fields) in requests {
        let mut stream = StdStream::connect(address)?;
        write!(stream, "GET {path} HTTP/1.1\r\n{fields}\r\n")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.lines().next().unwrap_or_default();
        println!("{path}: {status}, {} bytes", body.len());
    }
    Ok(())
}
