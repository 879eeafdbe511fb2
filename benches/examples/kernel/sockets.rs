//! Echoes through the rings of monoio and compio, beside epoll.
//!
//! The server is a process of its own on the first core, its client another on the last, as in the
//! suite. The CPU time is that of all threads of the server, with the threads of the kernel that
//! work for its ring: they belong to the process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{ROUNDS, Rounds};

const BYTES: &str = "64";

/// What a message costs the server: CPU time in µs, and how often it went to sleep.
fn echo(runtime: &str, connections: &str, messages: u64) -> Option<[f64; 2]> {
    let this = std::env::current_exe().unwrap();
    let count = messages.to_string();
    let mut server = Command::new(&this)
        .args([
            "cell",
            &format!("tcp_echo/{connections}x{BYTES}"),
            runtime,
            &count,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = lines.next().and_then(Result::ok).unwrap_or_default();
    let Some(address) = line.strip_prefix("address ") else {
        // This runtime is not built in.
        let _ = server.wait();
        return None;
    };
    let client = Command::new(&this)
        .args(["cell", "load", address, "echo", connections, BYTES, &count])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(client.success());
    let (mut cpu, mut sleeps) = (f64::NAN, f64::NAN);
    for line in lines {
        match line.unwrap().split_once(' ') {
            Some(("cpu", nanos)) => cpu = nanos.parse::<f64>().unwrap() / 1e3,
            Some(("switches", count)) => sleeps = count.parse().unwrap(),
            _ => {}
        }
    }
    assert!(server.wait().unwrap().success());
    Some([cpu, sleeps].map(|figure| figure / messages as f64))
}

pub(crate) fn run(_: &Path) {
    for (connections, messages) in [("1", 20_000), ("50", 100_000), ("500", 100_000)] {
        let mut rounds = Rounds::new(["CPU of the server", "sleeps"]);
        for _ in 0..ROUNDS {
            for runtime in [EPOLL, "phaseloop", "tokio", "monoio", "compio"] {
                if let Some(figures) = echo(runtime, connections, messages) {
                    rounds.push(runtime, figures);
                }
            }
        }
        let title = format!("an echo of {BYTES} bytes, connections: {connections}; µs a message");
        rounds.print(&title, Some(EPOLL));
    }
}

const EPOLL: &str = "raw-epoll";
