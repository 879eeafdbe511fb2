//! The server of the example `axum` under load: many connections that stay open, and `curl`.
#![cfg(unix)]

#[allow(dead_code, reason = "its `main` is not called here")]
#[path = "../../examples/axum.rs"]
mod example;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use phaseloop::net::TcpListener;
use phaseloop::{block_on, spawn, spawn_blocking};

const THREADS: usize = 2;
const CONNECTIONS: usize = 32;
const REQUESTS: usize = 50;

/// Runs `client` on the pool while the server of the example serves it.
fn with_server<T: Send + 'static>(client: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(example::server(listener));
        let answer = spawn_blocking(move || client(address)).await.unwrap();
        server.abort();
        answer
    })
}

/// All connections of a thread ask, then all are answered, again and again: each answer is the one
/// to its request.
#[test]
fn every_request_of_a_load_is_answered() {
    let answered = with_server(|address| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| std::thread::spawn(move || load(address, thread)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(answered, THREADS * CONNECTIONS * REQUESTS);
}

fn load(address: SocketAddr, thread: usize) -> usize {
    let mut connections: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let stream = TcpStream::connect(address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            BufReader::new(stream)
        })
        .collect();
    let mut answered = 0;
    for round in 0..REQUESTS {
        for (number, connection) in connections.iter_mut().enumerate() {
            let request = format!(
                "GET /add/{number}/{} HTTP/1.1\r\nHost: here\r\n\r\n",
                round + thread
            );
            connection.get_mut().write_all(request.as_bytes()).unwrap();
        }
        for (number, connection) in connections.iter_mut().enumerate() {
            assert_eq!(body(connection), format!("{}\n", number + round + thread));
            answered += 1;
        }
    }
    answered
}

/// Reads one answer off a connection that stays open.
fn body(connection: &mut impl BufRead) -> String {
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert_ne!(connection.read_line(&mut line).unwrap(), 0, "closed early");
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn curl_is_answered() {
    let answer = with_server(|address| {
        let url = |path: &str| format!("http://{address}{path}");
        Command::new("curl")
            .args(["-s", "--noproxy", "*", "--max-time", "30"])
            .args([url("/add/20/22"), url("/requests"), url("/")])
            .output()
    });
    match answer {
        Ok(answer) => {
            let text = String::from_utf8(answer.stdout).unwrap();
            assert_eq!(text, "42\n1 requests\nhello from axum\n");
        }
        Err(error) => eprintln!("skipped: no curl here: {error}"),
    }
}
