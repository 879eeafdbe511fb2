//! Services of hyper and tower, and what counts their requests.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Request, Response, service::Service};
use pin_project_lite::pin_project;

use super::link::{self, Link};

type BoxError = Box<dyn Error + Send + Sync>;

/// Marks services of hyper in [`IntoService`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Hyper {}

/// Marks services of tower in [`IntoService`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Tower {}

/// What [`serve`](super::serve) serves: a service of hyper, such as
/// [`service_fn`](hyper::service::service_fn), or a service of tower, such as an `axum::Router`.
///
/// Neither the service nor its futures nor the bodies of its answers need be `Send`. `Kind` says
/// which of the two it is; the compiler finds it.
///
/// The service takes requests with the body [`Incoming`]. Errors of the service close the
/// connection; see [`on_error`](super::Serve::on_error).
pub trait IntoService<Kind>: 'static {
    /// The body of the answers.
    type Body: Body<Error: Into<BoxError>> + 'static;
    /// The service for hyper.
    type Service: Service<
            Request<Incoming>,
            Response = Response<Self::Body>,
            Error: Into<BoxError>,
            Future: 'static,
        > + 'static;

    /// Converts the service.
    fn into_service(self) -> Self::Service;
}

impl<S, B> IntoService<Hyper> for S
where
    S: Service<Request<Incoming>, Response = Response<B>> + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    type Body = B;
    type Service = S;

    fn into_service(self) -> S {
        self
    }
}

impl<S, B> IntoService<Tower> for S
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    S::Future: 'static,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    type Body = B;
    type Service = TowerService<S>;

    fn into_service(self) -> TowerService<S> {
        TowerService(self)
    }
}

/// A service of tower as one of hyper. Each request gets a clone of its own, which is asked for
/// readiness first.
#[derive(Clone, Debug)]
pub struct TowerService<S>(S);

impl<S: tower_service::Service<Request<Incoming>> + Clone> Service<Request<Incoming>>
    for TowerService<S>
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Call<S>;

    #[inline]
    fn call(&self, request: Request<Incoming>) -> Call<S> {
        Call::Readying {
            service: self.0.clone(),
            request: Some(request),
        }
    }
}

pin_project! {
    /// The future of a [`TowerService`].
    #[project = Calling]
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Call<S: tower_service::Service<Request<Incoming>>> {
        /// The service is not ready yet.
        #[doc(hidden)]
        Readying { service: S, request: Option<Request<Incoming>> },
        /// The service answers.
        #[doc(hidden)]
        Answering { #[pin] answer: S::Future },
    }
}

impl<S: tower_service::Service<Request<Incoming>>> Future for Call<S> {
    type Output = Result<S::Response, S::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.as_mut().project() {
                Calling::Answering { answer } => return answer.poll(cx),
                Calling::Readying { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    let request = request.take().expect("a service that failed is not polled");
                    let answer = service.call(request);
                    self.set(Self::Answering { answer });
                }
            }
        }
    }
}

/// A service that reports the start and the end of each request to the connection.
pub(super) struct Counted<S> {
    service: S,
    link: Rc<Link>,
}

impl<S> Counted<S> {
    pub(super) fn new(service: S, link: Rc<Link>) -> Self {
        Self { service, link }
    }
}

impl<S, B> Service<Request<Incoming>> for Counted<S>
where
    S: Service<Request<Incoming>, Response = Response<B>>,
{
    type Response = Response<CountedBody<B>>;
    type Error = S::Error;
    type Future = CountedFuture<S::Future>;

    #[inline]
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        CountedFuture {
            request: Some(self.link.begin()),
            answer: self.service.call(request),
        }
    }
}

pin_project! {
    /// The future of a [`Counted`] service.
    pub(super) struct CountedFuture<F> {
        #[pin]
        answer: F,
        request: Option<link::Request>,
    }
}

impl<F, B, E> Future for CountedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<CountedBody<B>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.answer.poll(cx))?;
        let request = this.request.take();
        Poll::Ready(Ok(answer.map(|body| CountedBody { body, request })))
    }
}

pin_project! {
    /// The body of an answer, which ends its request when it is dropped.
    pub(super) struct CountedBody<B> {
        #[pin]
        body: B,
        request: Option<link::Request>,
    }
}

impl<B: Body> Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
