//! Open loop: messages leave at fixed times, and each latency counts from the time at which its
//! message should have left. So a server that stops for a while is charged for every message of
//! that while, not for one.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{read_some, write_all};
use crate::latency::Latencies;
use crate::peer::epoll::Epoll;

struct Connection {
    stream: TcpStream,
    received: usize,
    /// When the messages under way should have left.
    due: VecDeque<Instant>,
}

pub(super) fn run(
    streams: Vec<TcpStream>,
    bytes: usize,
    per_second: u64,
    n: u64,
) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let mut connections = Vec::new();
    for (key, stream) in streams.into_iter().enumerate() {
        stream.set_nonblocking(true)?;
        epoll.watch(&stream, key as u64)?;
        connections.push(Connection {
            stream,
            received: 0,
            due: VecDeque::new(),
        });
    }
    let message = vec![b'x'; bytes];
    let mut buffer = vec![0; 64 * 1024];
    let mut latencies = Latencies::new();
    let interval = Duration::from_nanos(1_000_000_000 / per_second);
    let start = Instant::now() + Duration::from_millis(20);
    let mut sent = 0;
    while latencies.count() < n {
        while sent < n {
            let due = start + interval * sent as u32;
            if Instant::now() < due {
                break;
            }
            // A prime stride, so that neighbours in time are no neighbours in the server's tables.
            let key = (sent * 7919) as usize % connections.len();
            let connection = &mut connections[key];
            connection.due.push_back(due);
            write_all(&connection.stream, &message)?;
            sent += 1;
        }
        // The client has a core of its own: it never sleeps.
        for key in epoll.wait(0)? {
            let connection = &mut connections[key as usize];
            connection.received += read_some(&connection.stream, &mut buffer)?;
            let now = Instant::now();
            while connection.received >= bytes {
                connection.received -= bytes;
                let due = connection.due.pop_front();
                let due = due.ok_or_else(|| io::Error::other("an answer without a question"))?;
                latencies.record(now - due);
            }
        }
    }
    println!("wall {}", start.elapsed().as_nanos());
    latencies.print();
    Ok(())
}
