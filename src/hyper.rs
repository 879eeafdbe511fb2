//! hyper on the loop: its I/O, executor and timer traits. Behind the feature `hyper`.
//!
//! Services need not be `Send`: tasks of the loop serve the connections, so shared state may be an
//! `Rc`.
//!
//! # Examples
//!
//! ```no_run
//! use std::{cell::Cell, convert::Infallible, rc::Rc};
//! use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
//! use http_body_util::Full;
//! use phaseloop::{hyper::{HyperIo, HyperTimer}, net::TcpListener, spawn};
//!
//! # fn main() -> std::io::Result<()> {
//! phaseloop::block_on(async {
//!     let requests = Rc::new(Cell::new(0));
//!     let listener = TcpListener::bind("127.0.0.1:8080").await?;
//!     loop {
//!         let (stream, _) = listener.accept().await?;
//!         let requests = requests.clone();
//!         let service = service_fn(move |_| {
//!             requests.set(requests.get() + 1);
//!             let text = format!("request {}\n", requests.get());
//!             async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text)))) }
//!         });
//!         spawn(async move {
//!             http1::Builder::new()
//!                 .timer(HyperTimer)
//!                 .serve_connection(HyperIo::new(stream), service)
//!                 .await
//!         }).detach();
//!     }
//! })
//! # }
//! ```

mod io;
mod runtime;

pub use io::HyperIo;
pub use runtime::{HyperExecutor, HyperTimer};
