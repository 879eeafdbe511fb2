//! Several loops: what a message costs, what two loops can do, and how connections are balanced.
//!
//! ```text
//! cargo run --release --manifest-path benches/Cargo.toml --no-default-features --features cluster --example cluster -- time
//! … -- balance        # 20 seeds, each policy
//! … -- count          # instructions a message, system calls a connection; valgrind and strace
//! … -- rtt 1000       # so many round trips; likewise `batch`, `flood`, `spawn`, `accepted`, `handed`
//! ```
//!
//! Capacity is operations by second of CPU time of the busiest server thread, so that the client and
//! other processes of the machine are not in it. A round counts for it in which every server thread
//! was busy for 95 % of the time; without such a round none is printed. All ratios are of one run.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use phaseloop::cluster::{self, Balance, Listeners, Sharded};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::TcpStream;
use phaseloop::{spawn, time};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let mode = arguments.next().unwrap_or_else(|| "time".to_owned());
    let count = arguments.next().and_then(|it| it.parse().ok());
    match mode.as_str() {
        "time" => compare_servers(count.unwrap_or(5)),
        "balance" => compare_policies(count.unwrap_or(20)),
        "rtt" => messages(count.unwrap_or(1_000), 1),
        "batch" => messages(count.unwrap_or(1_000), 64),
        "flood" => flood(count.unwrap_or(100_000)),
        "spawn" => spawns(count.unwrap_or(1_000)),
        "accepted" => connections(count.unwrap_or(100), false),
        "handed" => connections(count.unwrap_or(100), true),
        "count" => count_all(),
        other => eprintln!("no mode {other}: time, balance, count, or what is counted"),
    }
}

/// A mode, two lengths, the operations of one unit of length, and the goal.
type Counted = (&'static str, u64, u64, u64, f64);

const COUNTED: [Counted; 4] = [
    ("rtt", 1_000, 3_000, 1, 1_450.0),
    ("batch", 300, 1_300, 64, 215.0),
    ("flood", 50_000, 150_000, 1, 165.0),
    ("spawn", 500, 1_500, 1, 2_500.0),
];

/// Counts what an operation costs, as the difference of two lengths.
fn count_all() {
    println!("load {}", load());
    for (mode, short, long, unit, goal) in COUNTED {
        let count = |n| {
            under(
                &[
                    "valgrind",
                    "--tool=callgrind",
                    "--callgrind-out-file=/dev/null",
                ],
                mode,
                n,
            )
        };
        let each = (count(long) - count(short)) / ((long - short) * unit) as f64;
        println!("  {mode:9} {each:7.0} instructions, goal {goal}");
    }
    let [accepted, handed] = ["accepted", "handed"].map(|mode| {
        let count = |n| under(&["strace", "-f", "-c"], mode, n);
        (count(600) - count(100)) / 500.0
    });
    println!("  accepted  {accepted:7.2} system calls a connection, of both ends");
    let more = handed - accepted;
    println!("  handed    {handed:7.2}, {more:.2} more, goal 1");
}

/// Runs this program under a tool, and returns the total that the tool prints.
fn under(tool: &[&str], mode: &str, n: u64) -> f64 {
    let mut command = std::process::Command::new(tool[0]);
    command.args(&tool[1..]);
    command.arg(std::env::current_exe().expect("it has a path"));
    command.args([mode, &n.to_string()]);
    let output = command.output().expect("the tool is installed");
    let text = String::from_utf8_lossy(&output.stderr);
    let total = text
        .lines()
        .find_map(|line| match line.split_once("Collected :") {
            Some((_, total)) => total.trim().parse().ok(),
            // % time, seconds, usecs/call, calls, errors (or nothing)
            None if line.ends_with(" total") => line.split_whitespace().nth(3)?.parse().ok(),
            None => None,
        });
    total.expect("the tool prints a total")
}

/// Spawns a task on another loop and awaits it, so many times.
fn spawns(count: u64) {
    let run = cluster::Builder::new().loops(2).block_on(async move {
        for number in 0..count {
            let there = cluster::current()
                .remote(1)
                .spawn(move || async move { number });
            let number_of_there = there.expect("loop 1 runs").await;
            assert_eq!(number_of_there.expect("it does not panic"), number);
        }
    });
    run.expect("two loops");
}

/// Accepts connections one after the other and closes them: on the loop that accepts, or on the other
/// loop of two, to which they are handed over.
fn connections(count: u64, is_handed: bool) {
    let client = move |address| {
        for _ in 0..count {
            let mut stream = std::net::TcpStream::connect(address).expect("it listens");
            let end = std::io::Read::read(&mut stream, &mut [0]);
            assert_eq!(end.expect("it is closed in order"), 0);
        }
    };
    let run = cluster::Builder::new().loops(2).block_on(async move {
        if !is_handed {
            let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0").await;
            let listener = listener.expect("a port is free");
            let address = listener.local_addr().expect("it is bound");
            let client = thread::spawn(move || client(address));
            for _ in 0..count {
                drop(listener.accept().await.expect("a connection"));
            }
            return client.join().expect("the client does not panic");
        }
        let listeners = cluster::listen("127.0.0.1:0").await;
        let listeners = listeners.expect("a port is free");
        let address = listeners.local_addr();
        let client = thread::spawn(move || client(address));
        let other = cluster::current().remote(1).spawn(move || async move {
            let listener = listeners.here();
            for _ in 0..count {
                drop(listener.accept().await.expect("a connection"));
            }
        });
        other.expect("loop 1 runs").await.expect("no panic");
        client.join().expect("the client does not panic");
    });
    run.expect("two loops");
}

/// Sends `size` messages to another loop and awaits one answer, `rounds` times.
fn messages(rounds: u64, size: u64) {
    let run = cluster::Builder::new().loops(2).block_on(async move {
        let (to, mut from) = cluster::channel(256);
        let (back, mut answers) = cluster::channel(256);
        let other = cluster::current().remote(1).spawn(move || async move {
            while let Some(message) = from.recv().await {
                if message % size == 0 {
                    back.send(message).await.expect("loop 0 receives");
                }
            }
        });
        for _ in 0..rounds {
            for message in 1..=size {
                to.send(message).await.expect("loop 1 receives");
            }
            answers.recv().await.expect("loop 1 answers");
        }
        drop(to);
        other
            .expect("loop 1 runs")
            .await
            .expect("it does not panic");
    });
    run.expect("two loops");
}

/// Sends messages as fast as they are taken.
fn flood(count: u64) {
    let run = cluster::Builder::new().loops(2).block_on(async move {
        let (to, mut from) = cluster::channel(256);
        let other = cluster::current().remote(1).spawn(move || async move {
            let mut sum = 0;
            while let Some(message) = from.recv().await {
                sum += message;
            }
            sum
        });
        for message in 0..count {
            to.send(message).await.expect("loop 1 receives");
        }
        drop(to);
        let sum = other
            .expect("loop 1 runs")
            .await
            .expect("it does not panic");
        assert_eq!(sum, count * (count - 1) / 2);
    });
    run.expect("two loops");
}

/// Uses the processor for about so many microseconds.
fn work(micros: u32) {
    static PER_MICRO: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let per_micro = *PER_MICRO.get_or_init(|| {
        // The best of several, since other processes take the processor away.
        let best = (0..50).map(|_| {
            let begun = Instant::now();
            spin(20_000);
            begun.elapsed().as_nanos().max(1)
        });
        (20_000 * 1_000 / best.min().expect("fifty")) as u32
    });
    spin(micros * per_micro);
}

fn spin(rounds: u32) {
    for round in 0..rounds {
        std::hint::black_box(round);
    }
}

/// What a server does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Echo,
    Http,
    HttpWithWork,
}

impl Load {
    fn micros(self) -> u32 {
        if self == Self::HttpWithWork { 40 } else { 0 }
    }
}

#[derive(Clone, Copy, Debug)]
enum Server {
    Loops(usize, Balance),
    Tokio(usize),
}

const CONNECTIONS: usize = 64;
const ROUND: Duration = Duration::from_millis(700);
const ASK: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";

/// What one round has measured.
struct Measured {
    operations: u64,
    /// CPU time of each server thread, in seconds.
    threads: Vec<f64>,
}

impl Measured {
    fn capacity(&self) -> f64 {
        self.operations as f64 / self.threads.iter().copied().fold(1e-9, f64::max)
    }

    fn cost(&self) -> f64 {
        self.threads.iter().sum::<f64>() / self.operations.max(1) as f64
    }

    /// The share of the round in which the busiest thread had the processor.
    fn busiest(&self) -> f64 {
        let most = self.threads.iter().copied().fold(0.0, f64::max);
        most / ROUND.as_secs_f64()
    }

    /// The share of the round in which the least busy thread had the processor.
    fn least_busy(&self) -> f64 {
        let least = self.threads.iter().copied().fold(f64::MAX, f64::min);
        least / ROUND.as_secs_f64()
    }
}

/// The CPU time of a thread of this process, in seconds.
fn cpu_of(thread: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let text = text.unwrap_or_default();
    let nanos: f64 = text
        .split(' ')
        .next()
        .and_then(|it| it.parse().ok())
        .unwrap_or(0.0);
    nanos / 1e9
}

fn this_thread() -> i32 {
    // SAFETY: no argument, no pointer.
    unsafe { libc::gettid() }
}

fn compare_servers(rounds: u64) {
    let servers = [
        ("1 loop", Server::Loops(1, Balance::LeastLag)),
        ("2 loops, LeastLag", Server::Loops(2, Balance::LeastLag)),
        ("2 loops, RoundRobin", Server::Loops(2, Balance::RoundRobin)),
        ("2 loops, ReusePort", Server::Loops(2, Balance::ReusePort)),
        ("tokio, 2 workers", Server::Tokio(2)),
    ];
    work(1);
    println!(
        "medians of {rounds} rounds; against one loop in the same round; load {}",
        load()
    );
    for what in [Load::Echo, Load::Http, Load::HttpWithWork] {
        let mut all: Vec<Vec<[f64; 4]>> = vec![Vec::new(); servers.len()];
        // Of the rounds in which all threads, and that of one loop, had enough to do.
        let mut capacities: Vec<Vec<f64>> = vec![Vec::new(); servers.len()];
        for _ in 0..rounds {
            let (mut one, mut one_was_busy) = (None, true);
            for (place, (_, server)) in servers.iter().enumerate() {
                let measured = run_server(*server, what);
                let (capacity, cost) = (measured.capacity(), measured.cost());
                let (capacity_of_one, cost_of_one) = *one.get_or_insert((capacity, cost));
                let is_busy = measured.least_busy() >= 0.95;
                one_was_busy &= place > 0 || is_busy;
                if is_busy && one_was_busy {
                    capacities[place].push(capacity / capacity_of_one);
                }
                all[place].push([
                    measured.busiest(),
                    cost / cost_of_one,
                    cost * 1e6,
                    measured.least_busy(),
                ]);
            }
        }
        println!("\n{what:?}");
        for (((name, _), rounds), capacities) in servers.iter().zip(&all).zip(capacities) {
            let of_rounds = |figure: usize| rounds.iter().map(|round| round[figure]).collect();
            let capacity = match capacities.len() {
                0 => "no round counts for capacity".to_owned(),
                counted => format!("capacity {:.2} ({counted} rounds)", median(capacities)),
            };
            println!(
                "  {name:20} CPU an operation {:.2} ({:.2} µs), busy {:.2} to {:.2}, {capacity}",
                median(of_rounds(1)),
                median(of_rounds(2)),
                median(of_rounds(3)),
                median(of_rounds(0)),
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn run_server(server: Server, what: Load) -> Measured {
    let (started, address) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let serve = thread::spawn(move || match server {
        Server::Loops(loops, balance) => serve_on_loops(loops, balance, what, &started, stopped),
        Server::Tokio(workers) => serve_on_tokio(workers, what, &started, stopped),
    });
    let (address, threads): (SocketAddr, Vec<i32>) = address.recv().expect("the server starts");
    let operations = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let client = {
        let (operations, is_over) = (operations.clone(), is_over.clone());
        thread::spawn(move || clients(address, what, &operations, &is_over))
    };
    // The connections are made, and the first requests warm up.
    thread::sleep(Duration::from_millis(150));
    let before: Vec<_> = threads.iter().map(|thread| cpu_of(*thread)).collect();
    let done = operations.load(Ordering::Relaxed);
    thread::sleep(ROUND);
    let operations = operations.load(Ordering::Relaxed) - done;
    let after = threads.iter().map(|thread| cpu_of(*thread));
    let threads = after
        .zip(before)
        .map(|(after, before)| after - before)
        .collect();
    is_over.store(true, Ordering::Relaxed);
    client.join().expect("the clients do not panic");
    drop(stop);
    serve.join().expect("the server does not panic");
    Measured {
        operations,
        threads,
    }
}

/// Sends requests on all connections, each as soon as the last one is answered.
fn clients(
    address: SocketAddr,
    what: Load,
    operations: &Arc<AtomicU64>,
    is_over: &Arc<AtomicBool>,
) {
    phaseloop::block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address)
                .await
                .expect("the server listens");
            let _ = stream.set_nodelay(true);
            let (operations, is_over) = (operations.clone(), is_over.clone());
            tasks.push(spawn(async move {
                let ask = if what == Load::Echo {
                    &[7; 64][..]
                } else {
                    ASK
                };
                let mut buffer = [0; 512];
                let mut length = ask.len();
                let mut is_first = true;
                while !is_over.load(Ordering::Relaxed) {
                    stream.write_all(ask).await.expect("the server reads");
                    if is_first && what != Load::Echo {
                        // All answers are as long as the first.
                        length = stream.read(&mut buffer).await.expect("the server answers");
                        is_first = false;
                    } else {
                        let read = stream.read_exact(&mut buffer[..length]);
                        read.await.expect("the server answers");
                    }
                    operations.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for task in tasks {
            task.await.expect("a client does not panic");
        }
    });
}

type Started = mpsc::Sender<(SocketAddr, Vec<i32>)>;

fn serve_on_loops(
    loops: usize,
    balance: Balance,
    what: Load,
    started: &Started,
    stopped: mpsc::Receiver<()>,
) {
    let run = cluster::Builder::new().loops(loops).block_on(async move {
        let listeners = cluster::listen("127.0.0.1:0").balance(balance);
        let listeners = listeners.await.expect("a port is free");
        let threads = cluster::current().each(|_| async { this_thread() }).await;
        let threads = threads.into_iter().map(|thread| thread.expect("a thread"));
        let message = (listeners.local_addr(), threads.collect());
        let servers = cluster::current().each(move |_| serve_loop(listeners.clone(), what));
        started.send(message).expect("the main thread waits");
        let waits = phaseloop::spawn_blocking(move || stopped.recv().is_err());
        waits.await.expect("the wait does not panic");
        servers.abort();
    });
    run.expect("the loops start");
}

async fn serve_loop(listeners: Listeners, what: Load) {
    let listener = listeners.here();
    if what == Load::Echo {
        while let Ok((mut stream, _)) = listener.accept().await {
            spawn(async move {
                let mut buffer = [0; 64];
                while stream.read_exact(&mut buffer).await.is_ok() {
                    if stream.write_all(&buffer).await.is_err() {
                        return;
                    }
                }
            })
            .detach();
        }
        return;
    }
    let answer = move |_: Request<Incoming>| async move {
        work(what.micros());
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
    };
    let _ = phaseloop::hyper::serve(listener, service_fn(answer)).await;
}

fn serve_on_tokio(workers: usize, what: Load, started: &Started, stopped: mpsc::Receiver<()>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let threads = Arc::new(Mutex::new(Vec::new()));
    let noted = threads.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .on_thread_start(move || noted.lock().expect("no panic").push(this_thread()))
        .enable_all()
        .build()
        .expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            if what == Load::Echo {
                tokio::spawn(async move {
                    let mut buffer = [0; 64];
                    while stream.read_exact(&mut buffer).await.is_ok() {
                        if stream.write_all(&buffer).await.is_err() {
                            return;
                        }
                    }
                });
                continue;
            }
            let answer = move |_: Request<Incoming>| async move {
                work(what.micros());
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"hello"))))
            };
            let io = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(async move {
                let served = hyper::server::conn::http1::Builder::new();
                let _ = served.serve_connection(io, service_fn(answer)).await;
            });
        }
    });
    while threads.lock().expect("no panic").len() < workers {
        thread::sleep(Duration::from_millis(1));
    }
    let threads = threads.lock().expect("no panic").clone();
    started
        .send((address, threads))
        .expect("the main thread waits");
    let _ = stopped.recv();
    runtime.shutdown_background();
}

/// The work of each loop, and its connections.
type Shares = [(u64, u64); 2];

fn compare_policies(seeds: u64) {
    work(1);
    println!(
        "{seeds} seeds, 2 loops, 64 connections; the busier loop by the mean; load {}",
        load()
    );
    for balance in [Balance::LeastLag, Balance::RoundRobin, Balance::ReusePort] {
        let mut works = Vec::new();
        let mut connections = Vec::new();
        for seed in 0..seeds {
            let shares = balanced(balance, seed);
            let ratio = |figure: fn(&(u64, u64)) -> u64| {
                let figures = [figure(&shares[0]) as f64, figure(&shares[1]) as f64];
                figures[0].max(figures[1]) / ((figures[0] + figures[1]) / 2.0).max(1e-9)
            };
            works.push(ratio(|share| share.0));
            connections.push(ratio(|share| share.1));
        }
        works.sort_by(f64::total_cmp);
        connections.sort_by(f64::total_cmp);
        println!(
            "  {balance:?}: work median {:.2}, worst {:.2}; connections worst {:.2}",
            works[works.len() / 2],
            works[works.len() - 1],
            connections[connections.len() - 1]
        );
    }
}

/// 64 connections arrive over half a second. One in eight costs 30 times as much, a third ends
/// early. Returns what each loop has done from the end of the arrivals on.
fn balanced(balance: Balance, seed: u64) -> Shares {
    let counts = cluster::Builder::new().loops(2).block_on(async move {
        let done = Sharded::new(async |_| (Cell::new(0), Cell::new(0)))
            .await
            .expect("two loops");
        let listeners = cluster::listen("127.0.0.1:0").balance(balance);
        let listeners = listeners.await.expect("a port is free");
        let address = listeners.local_addr();
        let of_loops = done.clone();
        let servers = cluster::current().each(move |_| {
            let (listener, done) = (listeners.here(), of_loops.here());
            async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    done.1.set(done.1.get() + 1);
                    let done = done.clone();
                    spawn(async move {
                        let mut cost = [0];
                        while stream.read_exact(&mut cost).await.is_ok() {
                            // Two loops have about as much work as time.
                            work(u32::from(cost[0]) * 60);
                            done.0.set(done.0.get() + u64::from(cost[0]));
                            if stream.write_all(&cost).await.is_err() {
                                return;
                            }
                        }
                    })
                    .detach();
                }
            }
        });
        let client = thread::spawn(move || arrive(address, seed));
        let waits = phaseloop::spawn_blocking(move || client.join().is_ok());
        let before = time::sleep(Duration::from_millis(600));
        before.await;
        let read = async || {
            let mut shares = [(0, 0); 2];
            for (index, share) in shares.iter_mut().enumerate() {
                let of_loop = done.on(index, async |done| (done.0.get(), done.1.get()));
                *share = of_loop.expect("it runs").await.expect("no panic");
            }
            shares
        };
        let first = read().await;
        time::sleep(Duration::from_millis(700)).await;
        let mut last: Shares = read().await;
        for (last, first) in last.iter_mut().zip(first) {
            last.0 -= first.0;
        }
        waits.await.expect("the clients end");
        servers.abort();
        last
    });
    counts.expect("two loops")
}

fn arrive(address: SocketAddr, seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    phaseloop::block_on(async move {
        let begun = Instant::now();
        let mut tasks = Vec::new();
        let heavy = Rc::new(Cell::new(0));
        for number in 0..64 {
            let mut stream = TcpStream::connect(address)
                .await
                .expect("the server listens");
            let cost = if random(8) == 0 { 30 } else { 1 };
            heavy.set(heavy.get() + u32::from(cost == 30));
            let life = if random(3) == 0 { 300 } else { 1_400 };
            tasks.push(spawn(async move {
                let end = begun + Duration::from_millis(life);
                while Instant::now() < end {
                    let mut answer = [0];
                    let sent = stream.write_all(&[cost]).await;
                    if sent.is_err() || stream.read_exact(&mut answer).await.is_err() {
                        return;
                    }
                    time::sleep(Duration::from_millis(4)).await;
                }
            }));
            let next = begun + Duration::from_millis(500 * (number + 1) / 64);
            time::sleep(next.saturating_duration_since(Instant::now())).await;
        }
        for task in tasks {
            let _ = task.await;
        }
    });
}
