//! hyper's HTTP/1 server, the same on each runtime.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use futures::stream;
use http_body_util::{Full, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};

use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::Http;

pub(crate) const BODY: &[u8] = b"Hello, world!";

/// The parts of a long answer, and its length: one mebibyte.
pub(crate) const CHUNK: &[u8] = &[b'x'; 64 * 1024];
pub(crate) const CHUNKS: usize = 16;
pub(crate) const LONG: usize = CHUNKS * CHUNK.len();

/// What does a small GET cost, on each of so many connections that stay open?
pub(crate) fn http<R: Http>(rt: R, connections: u64) -> Reading {
    serve(rt, connections, hello)
}

/// What does a megabyte cost that is streamed?
pub(crate) fn http_body<R: Http>(rt: R, connections: u64) -> Reading {
    serve(rt, connections, long)
}

fn serve<R, S, F, B>(rt: R, connections: u64, answer: S) -> Reading
where
    R: Http,
    S: Fn(Request<Incoming>) -> F + Copy + 'static,
    F: Future<Output = Result<Response<B>, Infallible>>,
    B: Body<Data = Bytes, Error = Infallible> + 'static,
{
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let stream = rt.accept(&listener).await.expect("clients connect");
            tasks.push(rt.spawn(async move {
                let service = service_fn(answer);
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

async fn long(
    _: Request<Incoming>,
) -> Result<Response<impl Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let chunk = || Ok(Frame::data(Bytes::from_static(CHUNK)));
    let chunks = stream::iter((0..CHUNKS).map(move |_| chunk()));
    let mut response = Response::new(StreamBody::new(chunks));
    let length = HeaderValue::from(LONG);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    Ok(response)
}

/// How much memory does a connection take that has had its answer?
pub(crate) fn idle_http<R: Http>(rt: R, n: u64) -> Reading {
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let answered = Rc::new(Cell::new(0));
        let meter = Meter::start();
        for _ in 0..n {
            let stream = rt.accept(&listener).await.expect("clients connect");
            let answered = answered.clone();
            rt.detach(async move {
                let service = service_fn(|request| {
                    answered.set(answered.get() + 1);
                    hello(request)
                });
                let io = rt.hyper_io(stream);
                let _ = http1::Builder::new().serve_connection(io, service).await;
            });
        }
        while answered.get() < n {
            rt.sleep(Duration::from_millis(1)).await;
        }
        rt.sleep(Duration::from_millis(20)).await;
        meter.stop()
    })
}
