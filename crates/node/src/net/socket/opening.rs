//! How a socket is connected.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::poll_immediate;

use crate::error::Error;
use crate::net::address::Address;
use crate::net::block_list::BlockList;
use crate::net::connection::Connection;
use crate::net::local;
use crate::net::options::{ConnectOptions, LookedUp};
use crate::site::Site;
use phaseloop::net::{TcpSocket, TcpStream, lookup_host};
use phaseloop::phase;
use phaseloop::task::next_tick;

/// Opens a connection. `lookups` is for [`tick`].
pub(crate) async fn open(
    address: Address,
    site: Site,
    lookups: Rc<Cell<u32>>,
) -> Result<Box<dyn Connection>, Error> {
    let (host, port) = match address {
        Address::Socket(address) => return open_address(address, site, &lookups).await,
        Address::Host(host, port) => match host.parse::<IpAddr>() {
            Ok(ip) => return open_address((ip, port).into(), site, &lookups).await,
            Err(_) => (host, port),
        },
        Address::Port(port) => ("localhost".to_owned(), port),
        Address::Path(path) => {
            let connected = local::connect(&path, site).await;
            return connected.map_err(|error| match error.kind() {
                // The path is too long for the call.
                io::ErrorKind::InvalidInput => Error::of_connect_call(error, None),
                _ => Error::of_connect(error),
            });
        }
    };
    let addresses = lookup_host((host.as_str(), port)).await;
    let addresses = addresses.map_err(|error| Error::of_lookup(error, &host))?;
    open_one_of(&addresses, site).await
}

/// Connects to an address. Its lookup takes a tick, as in Node.
async fn open_address(
    address: SocketAddr,
    site: Site,
    lookups: &Rc<Cell<u32>>,
) -> Result<Box<dyn Connection>, Error> {
    let is_second = lookups.get() > 0;
    tick(lookups).await;
    if is_second {
        // In Node, the lookup of a connect that was stopped connects the socket all the same.
        return Err(already());
    }
    connected(TcpStream::connect_at(address, site), any_port(address)).await
}

/// Opens a connection with options.
pub(super) async fn open_with(
    address: Address,
    options: ConnectOptions,
    site: Site,
    lookups: Rc<Cell<u32>>,
) -> Result<Box<dyn Connection>, Error> {
    let (host, port) = match address {
        Address::Path(_) => return open(address, site, lookups).await,
        Address::Socket(address) => {
            tick(&lookups).await;
            return open_from(&[address], &options, site).await;
        }
        Address::Host(host, port) => (host, port),
        Address::Port(port) => ("localhost".to_owned(), port),
    };
    if let Ok(ip) = host.parse::<IpAddr>() {
        tick(&lookups).await;
        return open_from(&[(ip, port).into()], &options, site).await;
    }
    let addresses = match &options.lookup {
        Some(lookup) => looked_up(|done| lookup(&host, done)).await?,
        None => {
            let found = lookup_host((host.as_str(), port)).await;
            let found = found.map_err(|error| Error::of_lookup(error, &host))?;
            found.iter().map(SocketAddr::ip).collect()
        }
    };
    let addresses: Vec<_> = addresses.into_iter().map(|ip| (ip, port).into()).collect();
    if addresses.is_empty() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        return Err(Error::of_lookup(missing, &host));
    }
    open_from(&addresses, &options, site).await
}

/// Waits for the answer of a lookup.
async fn looked_up(lookup: impl FnOnce(LookedUp)) -> Result<Vec<IpAddr>, Error> {
    type Answer = (
        Cell<Option<Result<Vec<IpAddr>, Error>>>,
        Cell<Option<Waker>>,
    );
    let state: Rc<Answer> = Rc::default();
    let answer = state.clone();
    lookup(Box::new(move |result| {
        answer.0.set(Some(result));
        if let Some(waker) = answer.1.take() {
            waker.wake();
        }
    }));
    poll_fn(|cx| match state.0.take() {
        Some(result) => Poll::Ready(result),
        None => {
            state.1.set(Some(cx.waker().clone()));
            Poll::Pending
        }
    })
    .await
}

/// Connects to the first address that accepts, from the local address of the options.
async fn open_from(
    addresses: &[SocketAddr],
    options: &ConnectOptions,
    site: Site,
) -> Result<Box<dyn Connection>, Error> {
    let mut errors = Vec::new();
    for &address in addresses {
        let is_blocked = |list: &BlockList| list.check(address.ip());
        if options.block_list.as_ref().is_some_and(is_blocked) {
            let text = format!("IP({}) is blocked by net.BlockList", address.ip());
            errors.push(Error::with_code("ERR_IP_BLOCKED", text));
            continue;
        }
        match open_one_from(address, options, site).await {
            Ok(connection) => return Ok(connection),
            Err(error) => errors.push(error),
        }
    }
    Err(Error::aggregate(errors))
}

async fn open_one_from(
    address: SocketAddr,
    options: &ConnectOptions,
    site: Site,
) -> Result<Box<dyn Connection>, Error> {
    if options.local_address.is_none() && options.local_port == 0 {
        return connected(TcpStream::connect_at(address, site), any_port(address)).await;
    }
    let socket = match address.is_ipv4() {
        true => TcpSocket::new_v4(),
        false => TcpSocket::new_v6(),
    };
    let socket = socket.map_err(Error::of_connect)?;
    let any = any_port(address).ip();
    let local = (options.local_address.unwrap_or(any), options.local_port).into();
    let bound = socket.bind(local);
    bound.map_err(|error| Error::of_address(error, "bind", local))?;
    let local = socket.local_addr().unwrap_or(local);
    connected(socket.connect(address), local).await
}

/// Returns the local address of a socket that is not bound to one.
fn any_port(peer: SocketAddr) -> SocketAddr {
    match peer.is_ipv4() {
        true => (Ipv4Addr::UNSPECIFIED, 0).into(),
        false => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Waits for a connection, which is used in the poll phase at the earliest. As in Node, an error of
/// the call itself is known at once.
async fn connected(
    connecting: impl Future<Output = io::Result<TcpStream>>,
    local: SocketAddr,
) -> Result<Box<dyn Connection>, Error> {
    let mut connecting = pin!(connecting);
    let stream = match poll_immediate(&mut connecting).await {
        Some(Ok(stream)) => {
            phase::poll().await;
            stream
        }
        Some(Err(error)) => return Err(Error::of_connect_call(error, Some(local))),
        None => connecting.await.map_err(Error::of_connect)?,
    };
    Ok(Box::new(stream))
}

/// The error of a connect of a socket that connects.
pub(super) fn already() -> Error {
    Error::with_code("EALREADY", "connect EALREADY")
}

/// Waits for the next tick. `lookups` counts those that have not come, also if the future is
/// dropped.
pub(super) async fn tick(lookups: &Rc<Cell<u32>>) {
    let state = Rc::new((Cell::new(false), Cell::new(None::<Waker>)));
    let (ticked, lookups) = (state.clone(), lookups.clone());
    lookups.set(lookups.get() + 1);
    next_tick(move || {
        lookups.set(lookups.get() - 1);
        ticked.0.set(true);
        if let Some(waker) = ticked.1.take() {
            waker.wake();
        }
    });
    poll_fn(|cx| {
        if state.0.get() {
            return Poll::Ready(());
        }
        state.1.set(Some(cx.waker().clone()));
        Poll::Pending
    })
    .await;
}

/// Runs a future whose result is used in the poll phase at the earliest.
pub(super) async fn deferred<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match poll_immediate(&mut future).await {
        Some(output) => {
            phase::poll().await;
            output
        }
        None => future.await,
    }
}

/// Connects to the first address that accepts.
async fn open_one_of(addresses: &[SocketAddr], site: Site) -> Result<Box<dyn Connection>, Error> {
    let mut errors = Vec::new();
    for &address in addresses {
        match connected(TcpStream::connect_at(address, site), any_port(address)).await {
            Ok(connection) => return Ok(connection),
            Err(error) => errors.push(error),
        }
    }
    Err(Error::aggregate(errors))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::panic::Location;

    use super::open_one_of;

    /// Returns two ports that refuse connections.
    fn refusing() -> [SocketAddr; 2] {
        let listen = |()| std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        [(); 2]
            .map(listen)
            .map(|listener| listener.local_addr().unwrap())
    }

    #[test]
    fn the_errors_of_several_addresses_are_one_aggregate_error() {
        phaseloop::block_on(async {
            let site = Location::caller();
            let addresses = refusing();
            let Err(error) = open_one_of(&addresses, site).await else {
                panic!("the port refuses connections");
            };
            let parts = (error.name(), error.code(), error.message());
            assert_eq!(parts, ("AggregateError", Some("ECONNREFUSED"), ""));
            assert_eq!(error.errno(), None);
            assert!(error.errors()[0].errno().is_some());
            let texts: Vec<_> = error.errors().iter().map(ToString::to_string).collect();
            let expected = addresses.map(|address| format!("connect ECONNREFUSED {address}"));
            assert_eq!(texts, expected);
            let Err(error) = open_one_of(&addresses[..1], site).await else {
                panic!("the port refuses connections");
            };
            assert_eq!((error.name(), error.message()), ("Error", &*expected[0]));
        });
    }
}
