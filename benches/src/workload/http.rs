//! hyper's HTTP/1 server, the same on each runtime.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};

use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::Http;

pub(crate) const BODY: &[u8] = b"Hello, world!\n";

/// What does a small GET cost, on each of so many connections that stay open?
pub(crate) fn http<R: Http>(rt: R, connections: u64) -> Reading {
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let stream = rt.accept(&listener).await.expect("clients connect");
            tasks.push(rt.spawn(async move {
                let service = service_fn(hello);
                let io = rt.hyper_io(stream);
                http1::Builder::new().serve_connection(io, service).await
            }));
        }
        let meter = Meter::start();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

pub(crate) async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(BODY))))
}
