//! A time limit for the answers of a service, on the clock of the loop.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::local::Local;
use crate::time::{Sleep, sleep};

/// A layer of tower that answers in place of a service that takes too long, as that of tower-http
/// does. Its time is that of the loop: it needs no tokio runtime, and tests may pause it.
///
/// The time runs from the call to the head of the answer; the body has no limit. A request that is
/// out of time is dropped, and is answered with an empty body.
///
/// The layer passes the bounds of axum: its future is `Send` if that of the service is.
///
/// # Panics
///
/// A call of the service panics when no loop runs on this thread.
///
/// # Examples
///
/// ```ignore
/// use phaseloop::hyper::TimeoutLayer;
///
/// let limit = Duration::from_secs(10);
/// let router: Router = Router::new()
///     .route("/slow", get(pending::<()>)) // 408 after ten seconds
///     .layer(TimeoutLayer::new(limit));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer {
    limit: Duration,
    status: StatusCode,
}

impl TimeoutLayer {
    /// Creates a layer that answers with 408 (Request Timeout) after `limit`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self::with_status_code(StatusCode::REQUEST_TIMEOUT, limit)
    }

    /// Creates a layer that answers with `status` after `limit`, such as 504 (Gateway Timeout).
    #[must_use]
    pub fn with_status_code(status: StatusCode, limit: Duration) -> Self {
        Self { limit, status }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;

    fn layer(&self, service: S) -> Timeout<S> {
        Timeout {
            service,
            layer: *self,
        }
    }
}

/// The service of a [`TimeoutLayer`].
#[derive(Clone, Copy, Debug)]
pub struct Timeout<S> {
    service: S,
    layer: TimeoutLayer,
}

impl<S, Body, Answer> Service<Request<Body>> for Timeout<S>
where
    S: Service<Request<Body>, Response = Response<Answer>>,
    Answer: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = TimeoutFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        TimeoutFuture {
            sleep: Local::new(sleep(self.layer.limit)),
            status: self.layer.status,
            answer: self.service.call(request),
        }
    }
}

pin_project! {
    /// The future of a [`Timeout`].
    #[derive(Debug)]
    pub struct TimeoutFuture<F> {
        #[pin]
        answer: F,
        // Frameworks ask for `Send`.
        sleep: Local<Sleep>,
        status: StatusCode,
    }
}

impl<F, Answer, E> Future for TimeoutFuture<F>
where
    F: Future<Output = Result<Response<Answer>, E>>,
    Answer: Default,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Poll::Ready(answer) = this.answer.poll(cx) {
            return Poll::Ready(answer);
        }
        this.sleep.as_pin_mut().poll(cx).map(|()| {
            let mut late = Response::new(Answer::default());
            *late.status_mut() = *this.status;
            Ok(late)
        })
    }
}
