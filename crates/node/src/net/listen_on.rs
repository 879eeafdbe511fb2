//! What a server listens on.

use super::address::Address;

/// What a server listens on: an [`Address`], or with the feature `cluster` the part of a loop of a
/// listener that all loops of a cluster serve.
///
/// Every value that is an [`Address`] converts.
///
/// # Examples
///
/// A server on each loop, and one listener for all, with the feature `cluster`:
///
/// ```ignore
/// #[phaseloop::main(loops = "cores")]
/// async fn main() -> std::io::Result<()> {
///     let listeners = cluster::listen("0.0.0.0:8080").await?;
///     let servers = cluster::current().each(move |index| {
///         let server = net::create_server(move |socket| socket.end(format!("loop {index}")));
///         server.listen(listeners.here());
///         async move {
///             cluster::stopping().cancelled().await;
///             server.close();
///         }
///     });
///     ctrl_c().await?;
///     println!("{}", cluster::current().shutdown(Duration::from_secs(10)).await);
///     for server in servers.await {
///         server?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct ListenOn {
    pub(super) target: Target,
}

#[derive(Debug)]
pub(super) enum Target {
    Address(Address),
    #[cfg(feature = "cluster")]
    Loop(phaseloop::cluster::Listener),
}

impl<A: Into<Address>> From<A> for ListenOn {
    fn from(address: A) -> Self {
        let target = Target::Address(address.into());
        Self { target }
    }
}

#[cfg(feature = "cluster")]
impl From<phaseloop::cluster::Listener> for ListenOn {
    fn from(listener: phaseloop::cluster::Listener) -> Self {
        let target = Target::Loop(listener);
        Self { target }
    }
}
