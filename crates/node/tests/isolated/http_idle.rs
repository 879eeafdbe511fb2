//! A server of `node::http` in a process of its own, with as many idle connections as the limit on
//! descriptors allows.
#![cfg(target_os = "linux")]

use crate::util::child::in_child;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Child;

use phaseloop_node::{http, run};

/// Kills a server when the test is over, also when it fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Serves until it is killed, and prints its address.
fn serve_for_ever() {
    run(async {
        let server = http::create_server(|req, res| res.end(req.url()));
        server.set_keep_alive_timeout(3_600_000);
        server.listen_this(("127.0.0.1", 0), |server| {
            eprintln!("{}", server.address().unwrap());
        });
    });
}

/// The resident memory of a process, in bytes.
fn resident(process: &Child) -> usize {
    let pages = std::fs::read_to_string(format!("/proc/{}/statm", process.id())).unwrap();
    let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

/// Sends a request and reads the answer up to the end of its body, which is `path`.
fn exchange(peer: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    peer.write_all(request.as_bytes()).unwrap();
    let (mut answer, mut bytes) = (Vec::new(), [0; 1024]);
    while !answer.ends_with(path.as_bytes()) {
        let size = peer.read(&mut bytes).unwrap();
        assert!(size > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..size]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
}

/// As many as 10,000, if each process may have so many descriptors.
#[test]
fn ten_thousand_idle_connections_take_little_memory_and_delay_no_other() {
    let test = "ten_thousand_idle_connections_take_little_memory_and_delay_no_other";
    let Some(mut server) = in_child(&[], test, serve_for_ever) else {
        return;
    };
    let mut address = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut address).unwrap();
    let server = Killed(server);
    let address: SocketAddr = address.trim().parse().unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.map_or(usize::MAX, |limit| limit as usize);
    let count = 10_000.min(limit.saturating_sub(300));
    exchange(&mut TcpStream::connect(address).unwrap(), "/first");
    let before = resident(&server.0);
    let peers: Vec<_> = (0..count)
        .map(|_| {
            let mut peer = TcpStream::connect(address).unwrap();
            exchange(&mut peer, "/idle");
            peer
        })
        .collect();
    let each = (resident(&server.0) - before) / count;
    assert!(each < 16 << 10, "{each} bytes for each of {count}");
    println!("{each} bytes for each of {count} idle connections");
    exchange(&mut TcpStream::connect(address).unwrap(), "/last");
    // The oldest connection is still served.
    exchange(&mut { peers }[0], "/again");
}
