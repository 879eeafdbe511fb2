//! An application of axum: what runs on tokio and on phaseloop, byte for byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::get;
use tokio::sync::Notify;

use super::http::BODY;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct App {
    left: Arc<AtomicU64>,
    /// Notified when the last request has come. It needs no runtime.
    pub(crate) done: Arc<Notify>,
}

impl App {
    pub(crate) fn new(requests: u64) -> Self {
        Self {
            left: Arc::new(AtomicU64::new(requests)),
            done: Arc::default(),
        }
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/", get(hello))
            .route("/users/{id}", get(|| async { "one of them" }))
            .with_state(self)
    }
}

async fn hello(State(app): State<App>, headers: HeaderMap) -> &'static [u8] {
    assert!(!headers.is_empty(), "clients send their host");
    if app.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        app.done.notify_one();
    }
    BODY
}
