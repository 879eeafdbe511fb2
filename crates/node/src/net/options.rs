//! The options of `connect` and `listen`.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use super::block_list::BlockList;
use crate::abort::AbortSignal;
use crate::error::Error;

/// What a lookup of a name calls with its addresses.
pub type LookedUp = Box<dyn FnOnce(Result<Vec<IpAddr>, Error>)>;

/// Looks up a name, and calls its second argument with the addresses.
pub type Lookup = Rc<dyn Fn(&str, LookedUp)>;

/// Options of [`Socket::connect_with_options`](super::Socket::connect_with_options). JavaScript:
/// `{ localAddress, localPort, lookup, blockList }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::net::ConnectOptions;
///
/// fn main() {
///     let options = ConnectOptions {
///         local_address: Some("127.0.0.1".parse().unwrap()),
///         ..ConnectOptions::default()
///     };
///     assert!(options.local_address.is_some());
/// }
/// ```
#[derive(Clone, Default)]
pub struct ConnectOptions {
    /// The address that the socket is bound to.
    pub local_address: Option<IpAddr>,
    /// The port that the socket is bound to.
    pub local_port: u16,
    /// Looks up a name, in place of the resolver of the system. An IP address needs no lookup.
    pub lookup: Option<Lookup>,
    /// Addresses that must not be connected to: the error is `ERR_IP_BLOCKED`.
    pub block_list: Option<BlockList>,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("local_address", &self.local_address)
            .field("local_port", &self.local_port)
            .finish_non_exhaustive()
    }
}

/// Options of [`Server::listen_with_options`](super::Server::listen_with_options). JavaScript: `{
/// backlog: 511, ipv6Only: false, reusePort: false, signal }`.
///
/// Node's `exclusive` is for processes that share a server; here each server has its own socket.
///
/// # Examples
///
/// ```
/// use phaseloop_node::net::ListenOptions;
///
/// fn main() {
///     assert_eq!(ListenOptions::default().backlog, 511);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// How many connections may wait to be accepted. The system may limit it further.
    pub backlog: u32,
    /// Whether the unspecified IPv6 address accepts no IPv4 connections.
    pub ipv6_only: bool,
    /// Whether several sockets may listen on the port; the system distributes the connections.
    pub reuse_port: bool,
    /// Closes the server when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: 511,
            ipv6_only: false,
            reuse_port: false,
            signal: None,
        }
    }
}
