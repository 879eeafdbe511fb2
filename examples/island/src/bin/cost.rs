//! What the tokio runtime inside the loop costs: CPU time of this process for one operation, alone
//! and together, interleaved in one run.
//!
//! ```text
//! cargo run --release --manifest-path examples/island/Cargo.toml --no-default-features --bin cost
//! ```
//!
//! An echo of 64 bytes goes to another process and back. With `--smoke` everything runs once, to
//! see that it works.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const SIZE: usize = 64;

/// How much is measured.
#[derive(Clone, Copy)]
struct Amount {
    rounds: usize,
    echoes: u32,
    spawns: u32,
    turns: u32,
    sleeps: u32,
}

const FULL: Amount = Amount {
    rounds: 41,
    echoes: 1_000,
    spawns: 5_000,
    turns: 5_000,
    sleeps: 100,
};

const SMOKE: Amount = Amount {
    rounds: 1,
    echoes: 50,
    spawns: 50,
    turns: 200,
    sleeps: 3,
};

/// Microseconds of an operation in each round, alone and on a loop with tokio.
struct Pair {
    name: &'static str,
    limit: &'static str,
    alone: Vec<f64>,
    together: Vec<f64>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let amount = match arguments.next().as_deref() {
        Some("peer") => return echo_peer(),
        Some("--smoke") => SMOKE,
        None => FULL,
        Some(other) => panic!("unknown argument {other}"),
    };
    let this = std::env::current_exe().expect("the program has a path");
    let mut peer = Command::new(this)
        .arg("peer")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the peer starts");
    let mut line = String::new();
    let mut said = BufReader::new(peer.stdout.take().expect("piped"));
    said.read_line(&mut line).expect("the peer says its port");
    let address = line.trim().parse().expect("an address");
    let pairs = measure(amount, address);
    drop(peer.stdin.take());
    peer.wait().expect("the peer ends");
    print(&pairs);
}

fn measure(amount: Amount, peer: SocketAddr) -> Vec<Pair> {
    let Amount {
        echoes,
        spawns,
        turns,
        sleeps,
        ..
    } = amount;
    let mut pairs = [
        ("echo on a socket of tokio", "<= 1.05"),
        ("echo on a socket of the loop", "<= 1.15"),
        ("tokio::spawn and await", "<= 3 us"),
        ("phaseloop::spawn and await", ""),
        ("turn of a loop that never sleeps", ""),
        ("sleep of 1 ms, wall time", "<= 1.0"),
    ]
    .map(|(name, limit)| Pair {
        name,
        limit,
        alone: Vec::new(),
        together: Vec::new(),
    });
    for round in 0..amount.rounds {
        // Each goes first in every other round.
        let is_swapped = round % 2 == 1;
        pairs[0].add(
            is_swapped,
            || cpu(echoes, || on_tokio(tokio_echo(peer, echoes))),
            || cpu(echoes, || on_island(tokio_echo(peer, echoes))),
        );
        pairs[1].add(
            is_swapped,
            || cpu(echoes, || phaseloop::block_on(loop_echo(peer, echoes))),
            || cpu(echoes, || on_island(loop_echo(peer, echoes))),
        );
        pairs[2].add(
            is_swapped,
            || cpu(spawns, || on_tokio(tokio_spawn(spawns))),
            || cpu(spawns, || on_island(tokio_spawn(spawns))),
        );
        pairs[3].add(
            is_swapped,
            || cpu(spawns, || phaseloop::block_on(loop_spawn(spawns))),
            || cpu(spawns, || on_island(loop_spawn(spawns))),
        );
        pairs[4].add(
            is_swapped,
            || cpu(turns, || phaseloop::block_on(immediates(turns))),
            || cpu(turns, || on_island(immediates(turns))),
        );
        pairs[5].add(
            is_swapped,
            || wall(sleeps, || phaseloop::block_on(loop_sleeps(sleeps))),
            || wall(sleeps, || on_island(loop_sleeps(sleeps))),
        );
    }
    Vec::from(pairs)
}

fn on_tokio<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("tokio starts");
    runtime.block_on(future)
}

fn on_island<F: Future>(future: F) -> F::Output {
    phaseloop::tokio::block_on(future)
}

async fn tokio_echo(peer: SocketAddr, count: u32) {
    let stream = tokio::net::TcpStream::connect(peer).await;
    let stream = stream.expect("connects");
    stream.set_nodelay(true).expect("a socket");
    echo(stream, count).await;
}

async fn loop_echo(peer: SocketAddr, count: u32) {
    let stream = phaseloop::net::TcpStream::connect(peer).await;
    let stream = stream.expect("connects");
    stream.set_nodelay(true).expect("a socket");
    echo(stream, count).await;
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin, count: u32) {
    let mut buffer = [7; SIZE];
    for _ in 0..count {
        stream.write_all(&buffer).await.expect("writes");
        stream.read_exact(&mut buffer).await.expect("reads");
    }
}

async fn tokio_spawn(count: u32) {
    for n in 0..count {
        let answer = tokio::spawn(async move { n }).await;
        assert_eq!(answer.expect("no panic"), n);
    }
}

async fn loop_spawn(count: u32) {
    for n in 0..count {
        let answer = phaseloop::spawn(async move { n }).await;
        assert_eq!(answer.expect("no panic"), n);
    }
}

async fn immediates(count: u32) {
    for _ in 0..count {
        phaseloop::phase::check().await;
    }
}

async fn loop_sleeps(count: u32) {
    for _ in 0..count {
        phaseloop::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The CPU time of this process for one of `count` operations, in microseconds.
fn cpu(count: u32, run: impl FnOnce()) -> f64 {
    let before = cpu_time();
    run();
    (cpu_time() - before).as_secs_f64() * 1e6 / f64::from(count)
}

fn wall(count: u32, run: impl FnOnce()) -> f64 {
    let before = Instant::now();
    run();
    before.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid during the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "this clock exists");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Pair {
    fn add(&mut self, is_swapped: bool, alone: impl Fn() -> f64, together: impl Fn() -> f64) {
        if is_swapped {
            self.together.push(together());
            self.alone.push(alone());
        } else {
            self.alone.push(alone());
            self.together.push(together());
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn print(pairs: &[Pair]) {
    println!("microseconds an operation: the median of the rounds, and the best of them");
    println!(
        "{:34} {:>17} {:>17} {:>15}  goal",
        "", "alone", "with", "ratio"
    );
    for pair in pairs {
        let (alone, with) = (median(&pair.alone), median(&pair.together));
        let (best_alone, best_with) = (best(&pair.alone), best(&pair.together));
        println!(
            "{:34} {alone:8.2} {best_alone:8.2} {with:8.2} {best_with:8.2} {:7.2} {:7.2}  {}",
            pair.name,
            with / alone,
            best_with / best_alone,
            pair.limit
        );
    }
}

/// Sends back what it receives, one thread a connection, until its standard input ends.
fn echo_peer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    println!("{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                stream.set_nodelay(true).expect("a socket");
                let mut buffer = [0; SIZE];
                while stream.read_exact(&mut buffer).is_ok() {
                    if stream.write_all(&buffer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    let ended = std::io::stdin().read_to_end(&mut Vec::new());
    ended.expect("a pipe");
}
