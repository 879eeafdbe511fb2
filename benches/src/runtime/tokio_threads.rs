//! tokio on all cores. Its tasks must be `Send`, which the traits do not ask for, so its workloads
//! stand here.

mod fairness;

use std::io;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::{nonblocking_datagrams, nonblocking_listener};
use crate::catalogue::Kind;
use crate::client::PROBES;
use crate::meter::{Meter, Reading};
use crate::workload::http::hello;
use crate::workload::pool::SmallFiles;
use crate::workload::sockets::{BUFFER, announced_datagrams, announced_listener, buffer_length};
use crate::workload::timers::Deadlines;

/// `None` if the workload is not written for it.
pub(crate) fn run(kind: Kind, n: u64, slowdown: u32) -> Option<Reading> {
    Some(match kind {
        Kind::SpawnJoin => spawn_join(n),
        Kind::SpawnJoinMany { at_once } => spawn_join_many(at_once, n),
        Kind::Yield => yield_now(n),
        Kind::TimerFire { live } => timer_fire(live, n, slowdown),
        Kind::TcpEcho {
            connections,
            bytes,
            buffer,
        } => tcp_echo(connections, buffer_length(buffer, bytes)),
        Kind::TcpRate { connections, .. } => tcp_echo(connections, BUFFER),
        Kind::UdpEcho { .. } => udp_echo(),
        Kind::Http { connections } => http(connections),
        Kind::HttpWrk { connections } => http(connections + PROBES),
        Kind::Blocking { in_flight } => blocking(in_flight, n),
        Kind::ReadFiles { in_flight } => read_files(in_flight, n),
        Kind::StartStop => start_stop(n),
        Kind::ColdStart => start_stop(1),
        Kind::Idle => idle(n),
        Kind::IdleTask => idle_task(n),
        Kind::IdleConnection => idle_connection(n),
        Kind::Alone => fairness::alone(n),
        Kind::Hog => fairness::hog(n),
        Kind::WakeStorm => fairness::wake_storm(n),
        Kind::CompletionStorm => fairness::completion_storm(n),
        Kind::AcceptFlood => fairness::accept_flood(n),
        _ => return None,
    })
}

/// Runs a spawned task to its end.
fn on_threads<T: Send + 'static>(main: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = Runtime::new().expect("tokio starts");
    let ended = runtime.block_on(async { tokio::spawn(main).await });
    ended.expect("it does not panic")
}

fn spawn_join(n: u64) -> Reading {
    on_threads(async move {
        let meter = Meter::start();
        for _ in 0..n {
            let _ = tokio::spawn(async {}).await;
        }
        meter.stop()
    })
}

fn spawn_join_many(at_once: u64, n: u64) -> Reading {
    on_threads(async move {
        let mut tasks = Vec::with_capacity(at_once as usize);
        let meter = Meter::start();
        for _ in 0..n / at_once {
            tasks.extend((0..at_once).map(|_| tokio::spawn(async {})));
            for task in tasks.drain(..) {
                let _ = task.await;
            }
        }
        meter.stop()
    })
}

fn yield_now(n: u64) -> Reading {
    on_threads(async move {
        let meter = Meter::start();
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
        meter.stop()
    })
}

fn timer_fire(live: u64, n: u64, slowdown: u32) -> Reading {
    on_threads(async move {
        let mut deadlines = Deadlines::new(live, slowdown);
        let meter = Meter::start();
        for _ in 0..n / live {
            let mut tasks = JoinSet::new();
            for deadline in deadlines.batch() {
                tasks.spawn(tokio::time::sleep_until(deadline.into()));
            }
            tasks.join_all().await;
        }
        meter.stop()
    })
}

pub(crate) fn tcp_echo(connections: u64, buffer: usize) -> Reading {
    serve(connections, move |stream| {
        super::tokio::echo(stream, buffer)
    })
}

fn http(connections: u64) -> Reading {
    serve(connections, |stream| async move {
        let io = hyper_util::rt::TokioIo::new(stream);
        let service = service_fn(hello);
        let served = http1::Builder::new().serve_connection(io, service).await;
        served.map_err(io::Error::other)
    })
}

fn serve<F>(connections: u64, connection: impl Fn(TcpStream) -> F + Send + 'static) -> Reading
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = announced_listener();
    on_threads(async move {
        let listener = TcpListener::from_std(nonblocking_listener(listener)).expect("it is one");
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            let (stream, _) = listener.accept().await.expect("clients connect");
            tasks.spawn(connection(stream));
        }
        let meter = Meter::start();
        while tasks.join_next().await.is_some() {}
        meter.stop()
    })
}

fn udp_echo() -> Reading {
    let socket = nonblocking_datagrams(announced_datagrams());
    on_threads(async move {
        let socket = UdpSocket::from_std(socket).expect("it is a socket");
        let meter = Meter::start();
        let echoed = super::tokio::echo_datagrams(socket).await;
        echoed.expect("the socket stays open");
        meter.stop()
    })
}

fn blocking(in_flight: u64, n: u64) -> Reading {
    on_threads(async move {
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for _ in 0..in_flight {
            tasks.spawn(async move {
                for _ in 0..n / in_flight {
                    let _ = tokio::task::spawn_blocking(|| ()).await;
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        meter.stop()
    })
}

fn read_files(in_flight: u64, n: u64) -> Reading {
    let files = SmallFiles::create(n);
    let shares = files.shares(in_flight, n);
    on_threads(async move {
        let meter = Meter::start();
        let mut tasks = JoinSet::new();
        for share in shares {
            tasks.spawn(async move {
                for path in share {
                    let bytes = tokio::fs::read(path).await.expect("it was written");
                    assert_eq!(bytes.len(), SmallFiles::SIZE);
                }
            });
        }
        tasks.join_all().await;
        meter.stop()
    })
}

fn start_stop(n: u64) -> Reading {
    let meter = Meter::start();
    for _ in 0..n {
        on_threads(async {
            let _ = tokio::spawn(async {}).await;
        });
    }
    meter.stop()
}

fn idle(milliseconds: u64) -> Reading {
    on_threads(async move {
        for _ in 0..crate::workload::process::IDLE_TASKS {
            tokio::spawn(tokio::time::sleep(Duration::from_secs(3600)));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let meter = Meter::start();
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        meter.stop()
    })
}

fn idle_task(n: u64) -> Reading {
    on_threads(async move {
        let meter = Meter::start();
        for _ in 0..n {
            tokio::spawn(std::future::pending::<()>());
        }
        // All have been polled by now.
        tokio::time::sleep(Duration::from_millis(100)).await;
        meter.stop()
    })
}

fn idle_connection(n: u64) -> Reading {
    let listener = announced_listener();
    on_threads(async move {
        let listener = TcpListener::from_std(nonblocking_listener(listener)).expect("it is one");
        let meter = Meter::start();
        for _ in 0..n {
            let (mut stream, _) = listener.accept().await.expect("clients connect");
            tokio::spawn(async move {
                // Whatever comes, the connection ends with it.
                let _ = stream.read_exact(&mut [0]).await;
            });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        meter.stop()
    })
}
