//! Addresses and names.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::idna;
use crate::blocking::Work;
use crate::event_loop::ledger::jobs::Purpose;
use crate::pool::Class;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
#[cfg(feature = "test-util")]
use crate::ways_to_wait::shuffled::network::network;

/// A target to bind or connect to: addresses, or a name with a port.
///
/// Addresses, also in text form, are used directly. A name is resolved on the thread pool, in its
/// slow lane.
///
/// | type | example |
/// |---|---|
/// | [`SocketAddr`] and its kinds, `&[SocketAddr]` | `SocketAddr::from(([127, 0, 0, 1], 80))` |
/// | `(IpAddr, u16)`, `(Ipv4Addr, u16)`, `(Ipv6Addr, u16)` | `(Ipv4Addr::LOCALHOST, 80)` |
/// | `&str`, `String` | `"127.0.0.1:80"`, `"localhost:80"` |
/// | `(&str, u16)`, `(String, u16)` | `("localhost", 80)` |
///
/// # Examples
///
/// ```
/// use std::net::Ipv4Addr;
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
///     TcpStream::connect(listener.local_addr()?).await?;
///     Ok(())
/// }
/// ```
pub trait ToAddresses: Resolve {}

impl<T: Resolve> ToAddresses for T {}

mod private {
    #[expect(
        unnameable_types,
        reason = "keeps `ToAddresses` from being implemented elsewhere"
    )]
    pub trait Resolve {
        fn to_target(&self) -> Target;
    }

    /// A target before name resolution.
    #[derive(Debug)]
    #[expect(
        unnameable_types,
        reason = "an internal of the sealed trait `ToAddresses`"
    )]
    pub enum Target {
        Known(Vec<std::net::SocketAddr>),
        /// A host name and a port.
        Name(String, u16),
        /// Neither an address nor a name with a port.
        Malformed(String),
    }
}

use private::{Resolve, Target};

impl Resolve for SocketAddr {
    fn to_target(&self) -> Target {
        Target::Known(vec![*self])
    }
}

impl Resolve for SocketAddrV4 {
    fn to_target(&self) -> Target {
        Target::Known(vec![(*self).into()])
    }
}

impl Resolve for SocketAddrV6 {
    fn to_target(&self) -> Target {
        Target::Known(vec![(*self).into()])
    }
}

impl Resolve for [SocketAddr] {
    fn to_target(&self) -> Target {
        Target::Known(self.to_vec())
    }
}

impl Resolve for (IpAddr, u16) {
    fn to_target(&self) -> Target {
        Target::Known(vec![(*self).into()])
    }
}

impl Resolve for (Ipv4Addr, u16) {
    fn to_target(&self) -> Target {
        Target::Known(vec![(*self).into()])
    }
}

impl Resolve for (Ipv6Addr, u16) {
    fn to_target(&self) -> Target {
        Target::Known(vec![(*self).into()])
    }
}

impl Resolve for (&str, u16) {
    fn to_target(&self) -> Target {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(address) => Target::Known(vec![(address, port).into()]),
            Err(_) => Target::Name(host.to_owned(), port),
        }
    }
}

impl Resolve for (String, u16) {
    fn to_target(&self) -> Target {
        (self.0.as_str(), self.1).to_target()
    }
}

impl Resolve for str {
    #[inline]
    fn to_target(&self) -> Target {
        if let Ok(address) = self.parse::<SocketAddr>() {
            return Target::Known(vec![address]);
        }
        match self.rsplit_once(':') {
            Some((host, port)) => match port.parse() {
                Ok(port) => (host, port).to_target(),
                Err(_) => Target::Malformed(self.to_owned()),
            },
            None => Target::Malformed(self.to_owned()),
        }
    }
}

impl Resolve for String {
    #[inline]
    fn to_target(&self) -> Target {
        self.as_str().to_target()
    }
}

impl<T: Resolve + ?Sized> Resolve for &T {
    fn to_target(&self) -> Target {
        (**self).to_target()
    }
}

/// The future of the addresses of a target, of which there is at least one.
///
/// It is a type of its own in place of an async block, which would keep room for the target beside
/// the lookup.
pub(super) struct Resolving<T> {
    state: State<T>,
    /// The function that needs a loop, not only for a name.
    function: Option<&'static str>,
    /// The line that asked for it.
    pub(super) site: Site,
}

enum State<T> {
    Target(T),
    /// Boxed, since few targets are names.
    Lookup(Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>),
    Over,
}

impl<T: ToAddresses> Resolving<T> {
    pub(super) fn new(target: T, site: Site) -> Self {
        Self {
            state: State::Target(target),
            function: None,
            site,
        }
    }

    /// Resolves the target of a function that needs a loop, on behalf of the caller at `site`.
    pub(super) fn of(function: &'static str, target: T, site: Site) -> Self {
        Self {
            function: Some(function),
            ..Self::new(target, site)
        }
    }
}

/// No part is ever pinned.
impl<T> Unpin for Resolving<T> {}

impl<T: ToAddresses> Future for Resolving<T> {
    type Output = io::Result<Vec<SocketAddr>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let addresses = loop {
            match &mut this.state {
                State::Target(target) => {
                    if let Some(function) = this.function {
                        LoopHandle::current_for(function, Some(this.site));
                    }
                    match target.to_target() {
                        Target::Known(addresses) => break Ok(addresses),
                        Target::Name(host, port) => {
                            let lookup = lookup(host, port, this.site);
                            this.state = State::Lookup(Box::pin(lookup));
                        }
                        Target::Malformed(text) => break Err(malformed(&text)),
                    }
                }
                State::Lookup(lookup) => break ready!(lookup.as_mut().poll(cx)),
                State::Over => panic!("the addresses of a target were polled after their end"),
            }
        };
        this.state = State::Over;
        Poll::Ready(addresses.and_then(check_not_empty))
    }
}

fn malformed(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{text:?} is not an address: expected `host:port`, as in \"127.0.0.1:80\""),
    )
}

fn check_not_empty(addresses: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no address to use: the list is empty",
        ));
    }
    Ok(addresses)
}

/// Tries the addresses of a target in order and returns the first success, or the error of the last
/// address.
pub(super) struct FirstOf<T, F> {
    addresses: Resolving<T>,
    attempt: F,
}

impl<T, F> FirstOf<T, F> {
    /// `attempt` gets the site of `addresses` as well, and its error names the address.
    pub(super) fn new(addresses: Resolving<T>, attempt: F) -> Self {
        Self { addresses, attempt }
    }
}

impl<T, F> Unpin for FirstOf<T, F> {}

impl<T, F, R> Future for FirstOf<T, F>
where
    T: ToAddresses,
    F: Fn(SocketAddr, Site) -> io::Result<R>,
{
    type Output = io::Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let addresses = ready!(Pin::new(&mut self.addresses).poll(cx))?;
        let mut last = None;
        for address in addresses {
            match (self.attempt)(address, self.addresses.site) {
                Ok(made) => return Poll::Ready(Ok(made)),
                Err(error) => last = Some(error),
            }
        }
        Poll::Ready(Err(last.expect("there is at least one address")))
    }
}

async fn lookup(host: String, port: u16, site: Site) -> io::Result<Vec<SocketAddr>> {
    let question = check_host(&host)?;
    let handle = LoopHandle::current_for("net::lookup_host", Some(site));
    #[cfg(feature = "test-util")]
    if let Some(wire) = network(handle.core()) {
        // A host of the network in memory needs no resolver.
        if let Some(addresses) = wire.borrow().lookup(&question) {
            let with_port = |address| SocketAddr::new(address, port);
            return Ok(addresses.into_iter().map(with_port).collect());
        }
    }
    let purpose = Purpose::new(Class::Dns, "lookup_host");
    let work = Work::submit(&handle, purpose, move || {
        (question.as_str(), port)
            .to_socket_addrs()
            .map(Vec::from_iter)
    });
    let answer = match work {
        Ok(work) => work.await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| io::Error::new(error.kind(), format!("looking up {host:?}: {error}")))
}

/// Converts a name for the resolver. An invalid name is refused before a job is queued.
#[inline]
fn check_host(host: &str) -> io::Result<String> {
    match idna::to_ascii(host) {
        Some(name) if !name.is_empty() && !name.contains('\0') => Ok(name.into_owned()),
        _ => {
            let most = idna::LONGEST_HOST;
            let text = format!(
                "{host:?} is not a host name: 1 to {most} bytes in ASCII, none of them zero"
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// Resolves a name to its addresses, each with the given port, in the order of the resolver.
///
/// The lookup runs on the thread pool, in the slow lane; its result is delivered in the poll phase.
/// An address is returned unchanged, without a job. A name with characters outside ASCII is
/// converted to its ASCII form, as libuv does: `bücher.example` becomes `xn--bcher-kva.example`.
/// The name is not normalised: write it in lower case and in composed form.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is neither an address nor a name
/// with a port, and for a name of more than 255 bytes in ASCII form; otherwise the error of
/// `getaddrinfo`, with the name.
///
/// # Cancel safety
///
/// Dropping the future removes the lookup from the pool's queue if no thread has started it.
///
/// # Panics
///
/// When a name is looked up and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let addresses = phaseloop::net::lookup_host("localhost:80").await?;
///     assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "getaddrinfo")]
#[doc(alias = "uv_getaddrinfo")]
pub fn lookup_host(host: impl ToAddresses) -> impl Future<Output = io::Result<Vec<SocketAddr>>> {
    Resolving::new(host, Location::caller())
}

/// Resolves an address to a host name and a service name.
///
/// An address without a name is returned in text form, as `getnameinfo` does. The lookup runs on
/// the thread pool, like [`lookup_host`].
///
/// # Errors
///
/// The error of `getnameinfo`, with the address.
///
/// # Cancel safety
///
/// Dropping the future removes the lookup from the pool's queue if no thread has started it.
///
/// # Panics
///
/// When the future is awaited and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::net::lookup_addr;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (host, service) = lookup_addr(([127, 0, 0, 1], 80).into()).await?;
///     println!("{host} {service}"); // such as "localhost http"
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "getnameinfo")]
#[doc(alias = "uv_getnameinfo")]
pub fn lookup_addr(address: SocketAddr) -> impl Future<Output = io::Result<(String, String)>> {
    name_of(address, Location::caller())
}

async fn name_of(address: SocketAddr, site: Site) -> io::Result<(String, String)> {
    let handle = LoopHandle::current_for("net::lookup_addr", Some(site));
    #[cfg(feature = "test-util")]
    if let Some(wire) = network(handle.core()) {
        if let Some(name) = wire.borrow().name_of(address.ip()) {
            return Ok((name, address.port().to_string()));
        }
    }
    let purpose = Purpose::new(Class::Dns, "lookup_addr");
    let work = Work::submit(&handle, purpose, move || sys::names::name_of(&address));
    let answer = match work {
        Ok(work) => work.await,
        Err(error) => Err(error),
    };
    answer.map_err(|error| io::Error::new(error.kind(), format!("looking up {address}: {error}")))
}
