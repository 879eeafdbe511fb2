//! Echoes beside tasks that keep the thread busy and give way: how many of 6,000 are answered in
//! three seconds, on tokio's `current_thread` runtime and on a loop, in one run.
//!
//! ```text
//! cargo run --release --manifest-path examples/island/Cargo.toml --no-default-features --bin giving_way
//! ```
//!
//! A client on another thread sends a byte, and the next one when the first has come back. With
//! `--smoke` it sends few, to see that it works.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What a task computes before it gives way.
const BURN: Duration = Duration::from_micros(200);

#[derive(Clone, Copy)]
struct Amount {
    echoes: u32,
    time: Duration,
}

/// How a task gives way.
#[derive(Clone, Copy)]
enum Way {
    Yield,
    /// The hop to the back of the lane: what `yield_now` of a loop was before it let a turn pass.
    Hop,
    /// `wake_by_ref(); Pending`, as futures of other crates do.
    Wake,
}

fn main() {
    let amount = match std::env::args().nth(1).as_deref() {
        None => Amount {
            echoes: 6_000,
            time: Duration::from_secs(3),
        },
        Some("--smoke") => Amount {
            echoes: 20,
            time: Duration::from_millis(300),
        },
        Some(other) => panic!("unknown argument {other}"),
    };
    println!("| beside | tokio | phaseloop | with tokio inside |");
    println!("|---|---|---|---|");
    for (name, tasks, burn, way) in [
        ("nothing", 0, BURN, Way::Yield),
        ("2 tasks: 200 µs, `yield_now`", 2, BURN, Way::Yield),
        ("2 tasks: 200 µs, `yield_microtask`", 2, BURN, Way::Hop),
        ("2 tasks: 200 µs, `wake_by_ref`", 2, BURN, Way::Wake),
        ("1 task: `wake_by_ref`", 1, Duration::ZERO, Way::Wake),
        ("2 tasks: `wake_by_ref`", 2, Duration::ZERO, Way::Wake),
        ("100 tasks: `wake_by_ref`", 100, Duration::ZERO, Way::Wake),
    ] {
        let on_tokio = match way {
            Way::Hop => "–".into(),
            _ => on_tokio(amount, tasks, burn, way).to_string(),
        };
        let on_loop = on_loop(phaseloop::Builder::new(), amount, tasks, burn, way);
        let together = on_loop_with(amount, tasks, burn, way);
        println!("| {name} | {on_tokio} | {on_loop} | {together} |");
    }
}

/// Asks the echo server until all echoes are answered or the time is over. Returns their number.
fn ask(server: SocketAddr, amount: Amount) -> u32 {
    let end = Instant::now() + amount.time;
    let mut stream = TcpStream::connect(server).expect("the kernel accepts for the server");
    stream.set_nodelay(true).expect("a TCP option");
    for answered in 0..amount.echoes {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return answered;
        }
        stream.set_read_timeout(Some(left)).expect("not zero");
        stream.write_all(b"x").expect("the server lives");
        match stream.read_exact(&mut [0]) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return answered,
            Err(error) => panic!("{error}"),
        }
    }
    amount.echoes
}

/// Starts a client; returns the listener for its server, and the client's thread.
fn client(amount: Amount) -> (TcpListener, std::thread::JoinHandle<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.set_nonblocking(true).expect("a socket option");
    let address = listener.local_addr().expect("it is bound");
    (listener, std::thread::spawn(move || ask(address, amount)))
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).await.is_ok() && stream.write_all(&byte).await.is_ok() {}
}

fn burn(duration: Duration) {
    let start = Instant::now();
    while !duration.is_zero() && start.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// Wakes itself at each poll, while it goes on.
async fn wake_always(duration: Duration, goes_on: impl Fn() -> bool) {
    poll_fn(move |cx| {
        burn(duration);
        if !goes_on() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn on_tokio(amount: Amount, tasks: usize, duration: Duration, way: Way) -> u32 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (listener, client) = client(amount);
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let is_over = Rc::new(Cell::new(false));
        for _ in 0..tasks {
            let is_over = is_over.clone();
            let goes_on = move || !is_over.get();
            tokio::task::spawn_local(async move {
                match way {
                    Way::Wake => wake_always(duration, goes_on).await,
                    Way::Yield | Way::Hop => {
                        while goes_on() {
                            burn(duration);
                            tokio::task::yield_now().await;
                        }
                    }
                }
            });
        }
        tokio::task::spawn_local(async move {
            let (stream, _) = listener.accept().await.expect("a client");
            echo(stream).await;
        });
        // Asked in another thread: a client that waits for the server ends by its own clock.
        let ended = tokio::task::spawn_blocking(move || client.join());
        let answered = ended.await.expect("not cancelled").expect("no panic");
        is_over.set(true);
        answered
    })
}

fn on_loop_with(amount: Amount, tasks: usize, duration: Duration, way: Way) -> u32 {
    on_loop(
        phaseloop::Builder::new().tokio(),
        amount,
        tasks,
        duration,
        way,
    )
}

fn on_loop(
    builder: phaseloop::Builder,
    amount: Amount,
    tasks: usize,
    duration: Duration,
    way: Way,
) -> u32 {
    let (listener, client) = client(amount);
    let over_in_time = Instant::now() + amount.time + Duration::from_millis(100);
    let event_loop = builder.build().expect("a loop");
    event_loop.block_on(async move {
        let listener = phaseloop::net::TcpListener::from_std(listener).expect("a listener");
        let is_over = Rc::new(Cell::new(false));
        for _ in 0..tasks {
            let is_over = is_over.clone();
            // A task that starves the loop must end by itself.
            let goes_on = move || !is_over.get() && Instant::now() < over_in_time;
            phaseloop::spawn(async move {
                match way {
                    Way::Wake => wake_always(duration, goes_on).await,
                    Way::Yield => {
                        while goes_on() {
                            burn(duration);
                            phaseloop::task::yield_now().await;
                        }
                    }
                    Way::Hop => {
                        while goes_on() {
                            burn(duration);
                            phaseloop::task::yield_microtask().await;
                        }
                    }
                }
            })
            .detach();
        }
        phaseloop::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a client");
            echo(stream).await;
        })
        .detach();
        let ended = phaseloop::spawn_blocking(move || client.join());
        let answered = ended.await.expect("not cancelled").expect("no panic");
        is_over.set(true);
        answered
    })
}
