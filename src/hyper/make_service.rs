//! Services that are made for each connection.

use std::error::Error;
use std::future::{Future, Ready, poll_fn, ready};
use std::io;
use std::marker::PhantomData;
use std::pin::Pin;

use super::listener::{Addressed, Listener};
use super::service::{Hyper, IntoService, Tower};

/// Marks services of tower that make services of the kind `Kind`, in [`MakeService`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Make<Kind>(PhantomData<Kind>);

/// What [`serve`](super::serve) gets a service from, for each connection: a service, which is
/// cloned, or a service of tower that makes one from the [address](Addressed) of the peer, such as
/// axum's `into_make_service` and `into_make_service_with_connect_info`.
///
/// `Kind` says which of them it is; the compiler finds it.
///
/// # Examples
///
/// ```ignore
/// async fn whoami(ConnectInfo(peer): ConnectInfo<SocketAddr>) -> String {
///     peer.to_string()
/// }
///
/// let router = Router::new().route("/", get(whoami));
/// let listener = TcpListener::bind("127.0.0.1:8080").await?;
/// serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await
/// ```
pub trait MakeService<L: Listener, Kind>: 'static {
    /// The kind of the service.
    type Kind: 'static;
    /// The service of a connection.
    type Service: IntoService<Self::Kind>;
    /// The future of [`make`](Self::make).
    type Making: Future<Output = io::Result<Self::Service>> + 'static;

    /// Makes the service of a connection that was accepted. The task of the connection awaits it.
    fn make(&self, listener: &L, accepted: &L::Accepted) -> Self::Making;
}

impl<L: Listener, S: IntoService<Hyper> + Clone> MakeService<L, Hyper> for S {
    type Kind = Hyper;
    type Service = S;
    type Making = Ready<io::Result<S>>;

    fn make(&self, _: &L, _: &L::Accepted) -> Self::Making {
        ready(Ok(self.clone()))
    }
}

impl<L: Listener, S: IntoService<Tower> + Clone> MakeService<L, Tower> for S {
    type Kind = Tower;
    type Service = S;
    type Making = Ready<io::Result<S>>;

    fn make(&self, _: &L, _: &L::Accepted) -> Self::Making {
        ready(Ok(self.clone()))
    }
}

/// The service is asked for readiness first. Its error closes the connection, as one of the
/// handshake does.
impl<L, M, Kind> MakeService<L, Make<Kind>> for M
where
    L: Addressed,
    M: tower_service::Service<L::Address> + Clone + 'static,
    M::Response: IntoService<Kind>,
    M::Error: Into<Box<dyn Error + Send + Sync>>,
    M::Future: 'static,
    Kind: 'static,
{
    type Kind = Kind;
    type Service = M::Response;
    type Making = Pin<Box<dyn Future<Output = io::Result<M::Response>>>>;

    fn make(&self, listener: &L, accepted: &L::Accepted) -> Self::Making {
        let (mut make, address) = (self.clone(), listener.address(accepted));
        Box::pin(async move {
            let ready = poll_fn(|cx| make.poll_ready(cx)).await;
            ready.map_err(io::Error::other)?;
            make.call(address).await.map_err(io::Error::other)
        })
    }
}
