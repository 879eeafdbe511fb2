//! Sixty tasks of both worlds on one loop: sockets, timers, pool jobs and spawns of phaseloop and of
//! tokio, each waiting for the other.
//!
//! ```text
//! cargo run --release --manifest-path examples/island/Cargo.toml --no-default-features --bin soak -- 120
//! ```
//!
//! The argument is the number of seconds; two without one. It fails if a task makes no progress.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use phaseloop::Local;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The number of tasks of each kind.
const TASKS: usize = 6;

/// The longest time that a task may go without progress.
const STALL: Duration = Duration::from_secs(20);

/// The progress of one task.
#[derive(Clone)]
struct Progress {
    kind: &'static str,
    rounds: Rc<Cell<u64>>,
}

impl Progress {
    fn step(&self) {
        self.rounds.set(self.rounds.get() + 1);
    }
}

fn main() {
    let seconds = std::env::args().nth(1);
    let seconds = seconds.map_or(2, |text| text.parse().expect("a number of seconds"));
    phaseloop::tokio::block_on(soak(Duration::from_secs(seconds)));
}

async fn soak(duration: Duration) {
    let (ours, theirs) = (serve_loop().await, serve_tokio().await);
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        start(&mut tasks, "loop socket to tokio server", |p| {
            echo_loop(p, theirs)
        });
        start(&mut tasks, "tokio socket to loop server", |p| {
            echo_tokio(p, ours)
        });
        start(&mut tasks, "loop socket to loop server", |p| {
            echo_loop(p, ours)
        });
        start(&mut tasks, "tokio socket in a tokio task", |p| {
            echo_spawned(p, theirs)
        });
        start(&mut tasks, "sleeps of both", sleeps);
        start(&mut tasks, "loop sleep in a tokio task", sleep_spawned);
        start(&mut tasks, "jobs of both pools", jobs);
        start(&mut tasks, "spawns of both", spawns);
        start(&mut tasks, "immediates between spawns", immediates);
        start(&mut tasks, "wakes from threads", threads);
    }
    println!("{} tasks for {duration:?}", tasks.len());
    let (start, mut seen) = (Instant::now(), vec![0; tasks.len()]);
    let mut progressed = vec![start; tasks.len()];
    while start.elapsed() < duration {
        phaseloop::time::sleep(Duration::from_millis(200)).await;
        for (place, progress) in tasks.iter().enumerate() {
            let rounds = progress.rounds.get();
            if rounds > seen[place] {
                (seen[place], progressed[place]) = (rounds, Instant::now());
            }
            let stalled = progressed[place].elapsed();
            let report = || phaseloop::LoopHandle::current().report();
            assert!(stalled < STALL, "{} stalls\n{}", progress.kind, report());
        }
    }
    for kind in 0..tasks.len() / TASKS {
        let of_kind = tasks.iter().skip(kind).step_by(tasks.len() / TASKS);
        let rounds: Vec<_> = of_kind.clone().map(|task| task.rounds.get()).collect();
        println!("{:30} {rounds:?}", tasks[kind].kind);
        assert!(rounds.iter().all(|rounds| *rounds > 0), "no progress");
    }
}

fn start<F: Future<Output = ()> + 'static>(
    tasks: &mut Vec<Progress>,
    kind: &'static str,
    task: impl FnOnce(Progress) -> F,
) {
    let progress = Progress {
        kind,
        rounds: Rc::default(),
    };
    phaseloop::spawn(task(progress.clone())).detach();
    tasks.push(progress);
}

async fn serve_loop() -> SocketAddr {
    let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port is free");
    let address = listener.local_addr().expect("bound");
    let accept = async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("accepts");
            let serve = async move {
                let mut buffer = [0; 32];
                while stream.read_exact(&mut buffer).await.is_ok() {
                    stream.write_all(&buffer).await.expect("writes");
                }
            };
            phaseloop::spawn(serve).detach();
        }
    };
    phaseloop::spawn(accept).detach();
    address
}

async fn serve_tokio() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port is free");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("accepts");
            tokio::spawn(async move {
                let mut buffer = [0; 32];
                while stream.read_exact(&mut buffer).await.is_ok() {
                    stream.write_all(&buffer).await.expect("writes");
                }
            });
        }
    });
    address
}

async fn echo_loop(progress: Progress, peer: SocketAddr) {
    let mut stream = phaseloop::net::TcpStream::connect(peer)
        .await
        .expect("connects");
    let mut buffer = [1; 32];
    loop {
        stream.write_all(&buffer).await.expect("writes");
        stream.read_exact(&mut buffer).await.expect("reads");
        progress.step();
    }
}

async fn echo_tokio(progress: Progress, peer: SocketAddr) {
    let mut stream = tokio::net::TcpStream::connect(peer)
        .await
        .expect("connects");
    let mut buffer = [2; 32];
    loop {
        stream.write_all(&buffer).await.expect("writes");
        stream.read_exact(&mut buffer).await.expect("reads");
        progress.step();
    }
}

async fn echo_spawned(progress: Progress, peer: SocketAddr) {
    loop {
        let echo = tokio::spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(peer)
                .await
                .expect("connects");
            let mut buffer = [3; 32];
            for _ in 0..20 {
                stream.write_all(&buffer).await.expect("writes");
                stream.read_exact(&mut buffer).await.expect("reads");
            }
        });
        echo.await.expect("no panic");
        progress.step();
    }
}

async fn sleeps(progress: Progress) {
    loop {
        phaseloop::time::sleep(Duration::from_millis(1)).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let never = std::future::pending::<()>();
        let late = tokio::time::timeout(Duration::from_millis(1), never).await;
        assert!(late.is_err());
        progress.step();
    }
}

async fn sleep_spawned(progress: Progress) {
    loop {
        let inner = tokio::spawn(async {
            tokio::task::yield_now().await;
            Local::new(phaseloop::time::sleep(Duration::from_millis(1))).await;
        });
        inner.await.expect("no panic");
        progress.step();
    }
}

async fn jobs(progress: Progress) {
    loop {
        let ours = phaseloop::spawn_blocking(|| 20).await.expect("no panic");
        let theirs = tokio::task::spawn_blocking(|| 22).await.expect("no panic");
        assert_eq!(ours + theirs, 42);
        progress.step();
    }
}

async fn spawns(progress: Progress) {
    loop {
        let ours = phaseloop::spawn(async { tokio::spawn(async { 20 }).await });
        assert_eq!(ours.await.expect("no panic").expect("no panic"), 20);
        let theirs = tokio::spawn(async { Local::new(phaseloop::spawn(async { 22 })).await });
        assert_eq!(theirs.await.expect("no panic").expect("no panic"), 22);
        phaseloop::time::sleep(Duration::from_micros(100)).await;
        progress.step();
    }
}

async fn immediates(progress: Progress) {
    loop {
        for _ in 0..3 {
            phaseloop::phase::check().await;
        }
        tokio::spawn(async {}).await.expect("no panic");
        phaseloop::time::sleep(Duration::from_micros(100)).await;
        progress.step();
    }
}

async fn threads(progress: Progress) {
    loop {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let job = phaseloop::spawn_blocking(move || sender.send(7).is_ok());
        assert_eq!(receiver.await, Ok(7));
        assert!(job.await.expect("no panic"));
        phaseloop::time::sleep(Duration::from_micros(100)).await;
        progress.step();
    }
}
