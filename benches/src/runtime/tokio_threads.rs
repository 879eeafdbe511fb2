//! tokio on all cores. Its tasks must be `Send`, which the traits do not ask for, so its servers stand here.

use std::io;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::nonblocking_listener;
use crate::meter::{Meter, Reading};
use crate::workload::http::hello;
use crate::workload::sockets::{BUFFER, announced_listener};

pub(crate) fn tcp_echo(connections: u64) -> Reading {
    serve(connections, |mut stream| async move {
        let mut buffer = vec![0; BUFFER];
        while super::tokio::echo(&mut stream, &mut buffer).await? > 0 {}
        Ok(())
    })
}

pub(crate) fn http(connections: u64) -> Reading {
    serve(connections, |stream| async move {
        let io = hyper_util::rt::TokioIo::new(stream);
        let service = service_fn(hello);
        let served = http1::Builder::new().serve_connection(io, service).await;
        served.map_err(io::Error::other)
    })
}

fn serve<F>(connections: u64, connection: impl Fn(TcpStream) -> F) -> Reading
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = announced_listener();
    Runtime::new().expect("tokio starts").block_on(async {
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

pub(crate) fn blocking(in_flight: u64, n: u64) -> Reading {
    Runtime::new().expect("tokio starts").block_on(async {
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

pub(crate) fn spawn_join(n: u64) -> Reading {
    Runtime::new().expect("tokio starts").block_on(async {
        let main = tokio::spawn(async move {
            let meter = Meter::start();
            for _ in 0..n {
                let _ = tokio::spawn(async {}).await;
            }
            meter.stop()
        });
        main.await.expect("it does not panic")
    })
}
