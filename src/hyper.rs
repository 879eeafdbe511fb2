//! HTTP on the loop: servers and clients of hyper, tower and axum. Behind the feature `hyper`.
//!
//! | item | is |
//! |---|---|
//! | [`serve`] | a server for HTTP/1 and HTTP/2: `serve(listener, router).await` |
//! | [`Connector`] | connections for hyper-util's client; feature `hyper-client` |
//! | [`TimeoutLayer`] | a layer of tower that limits the time of answers |
//! | [`TlsStream`] | TLS for servers and clients; feature `tls` |
//! | [`HyperIo`], [`HyperExecutor`], [`HyperTimer`] | hyper's own traits, for use with hyper |
//!
//! Services need not be `Send`: tasks of the loop serve the connections, so shared state may be an
//! `Rc`. axum asks for `Send` handlers and state; there [`Local`](crate::Local) wraps what lives on
//! the loop, `State(Local<Rc<..>>)` and `Local::new(sleep(..)).await`.
//!
//! # Examples
//!
//! After `cargo add hyper`:
//!
//! ```no_run
//! use std::{cell::Cell, convert::Infallible, rc::Rc};
//! use hyper::{Response, service::service_fn};
//! use phaseloop::{hyper::serve, net::TcpListener, signal::ctrl_c};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let requests = Rc::new(Cell::new(0));
//!     let service = service_fn(move |_| {
//!         requests.set(requests.get() + 1);
//!         let text = format!("request {}\n", requests.get());
//!         async move { Ok::<_, Infallible>(Response::new(text)) }
//!     });
//!     let listener = TcpListener::bind("127.0.0.1:8080").await?;
//!     serve(listener, service)
//!         .with_graceful_shutdown(async { _ = ctrl_c().await })
//!         .await
//! }
//! ```
//!
//! # Time limits of handlers
//!
//! [`TimeoutLayer`] limits the time of a service on the loop's clock. The time-outs of tower and
//! tower-http need a tokio runtime; [`serve`] lists the layers that do. A limit inside a handler is
//! `Local::new(timeout(limit, work)).await`, with [`time::timeout`](crate::time::timeout).

mod connection;
#[cfg(feature = "hyper-client")]
mod connector;
mod io;
mod link;
mod listener;
mod make_service;
mod runtime;
mod serve;
mod serve_error;
mod service;
mod timeout;
#[cfg(feature = "tls")]
mod tls;
#[cfg(unix)]
mod unix;

#[cfg(feature = "hyper-client")]
pub use connector::{ClientConnection, Connector};
pub use io::HyperIo;
pub use listener::{Addressed, Listener, WithHandshake};
pub use make_service::{Make, MakeService};
pub use runtime::{HyperExecutor, HyperTimer};
pub use serve::{Serve, serve, serve_with};
pub use serve_error::ServeError;
pub use service::{Call, Hyper, IntoService, Tower, TowerService};
pub use timeout::{Timeout, TimeoutFuture, TimeoutLayer};
#[cfg(feature = "tls")]
pub use tls::TlsStream;
