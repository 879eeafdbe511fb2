//! Closed loop: a connection sends again when its answer is back. Good for costs; its latencies
//! would flatter the server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::{read_some, write_all};
use crate::peer::epoll::Epoll;

/// What is sent, and how long the answer is.
pub(super) struct Exchange {
    request: Vec<u8>,
    answer: usize,
}

impl Exchange {
    pub(super) fn echo(bytes: usize) -> Self {
        Self {
            request: vec![b'x'; bytes],
            answer: bytes,
        }
    }

    /// Asks once to see how long an HTTP answer is.
    pub(super) fn learn(request: &[u8], mut stream: &TcpStream) -> io::Result<Self> {
        stream.write_all(request)?;
        let mut answer = Vec::new();
        loop {
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer)?;
            answer.extend_from_slice(&buffer[..n]);
            if let Some(length) = http_length(&answer) {
                return Ok(Self {
                    request: request.to_vec(),
                    answer: length,
                });
            }
            if n == 0 {
                return Err(io::Error::other("no whole HTTP answer"));
            }
        }
    }
}

/// The length of head and body, if all of it is there.
fn http_length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (&answer[..end], &answer[end + 4..]);
    let head = std::str::from_utf8(head).ok()?;
    let head_lower = head.to_ascii_lowercase();
    let (_, length) = head_lower.split_once("content-length:")?;
    let length: usize = length.lines().next()?.trim().parse().ok()?;
    (body.len() == length).then_some(head.len() + 4 + length)
}

struct Connection {
    stream: TcpStream,
    to_send: u64,
    received: usize,
}

pub(super) fn run(streams: Vec<TcpStream>, exchange: &Exchange, n: u64) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let mut buffer = vec![0; 256 * 1024];
    let each = n / streams.len() as u64;
    let mut open = streams.len();
    let mut connections = Vec::new();
    for (key, stream) in streams.into_iter().enumerate() {
        stream.set_nonblocking(true)?;
        epoll.watch(&stream, key as u64)?;
        connections.push(Connection {
            stream,
            to_send: each - 1,
            received: 0,
        });
    }
    let start = Instant::now();
    for connection in &connections {
        write_all(&connection.stream, &exchange.request)?;
    }
    while open > 0 {
        for key in epoll.wait(-1)? {
            let connection = &mut connections[key as usize];
            connection.received += read_some(&connection.stream, &mut buffer)?;
            if connection.received < exchange.answer {
                continue;
            }
            connection.received = 0;
            if connection.to_send == 0 {
                open -= 1;
                continue;
            }
            connection.to_send -= 1;
            write_all(&connection.stream, &exchange.request)?;
        }
    }
    println!("wall {}", start.elapsed().as_nanos());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::http_length;

    #[test]
    fn an_answer_has_a_length_when_all_of_it_is_there() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nDate: x\r\n\r\nabc";
        assert_eq!(http_length(whole), Some(whole.len()));
        assert_eq!(http_length(&whole[..whole.len() - 1]), None);
        assert_eq!(http_length(b"HTTP/1.1 200 OK\r\n"), None);
    }
}
