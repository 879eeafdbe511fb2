//! Name lookup: Node's `dns`.
//!
//! | JavaScript | here |
//! |---|---|
//! | `dns.lookup(name, callback)` | [`lookup`], [`lookup_all`]: as the system does it |
//! | `dns.resolve4(name, callback)`, … | [`resolve4`], …: questions to name servers |
//! | `dns.reverse(ip, callback)` | [`reverse`] |
//! | `new dns.promises.Resolver()` | [`Resolver`], whose methods return promises |
//!
//! Left out: `dns.setServers` for the whole program (a [`Resolver`] has its own servers), names
//! beyond ASCII, TTLs, `resolveAny` and `resolveTlsa`.
//!
//! ```
//! use phaseloop_node::{Exit, dns, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         dns::lookup("localhost", |result| println!("{result:?}"));
//!     })
//! }
//! ```

mod query;
mod records;
mod resolver;
mod wire;

use std::net::IpAddr;

pub use self::records::{CaaRecord, MxRecord, NaptrRecord, SoaRecord, SrvRecord};
pub use self::resolver::{
    Resolver, resolve_caa, resolve_cname, resolve_mx, resolve_naptr, resolve_ns, resolve_ptr,
    resolve_soa, resolve_srv, resolve_txt, resolve4, resolve6, reverse,
};
use super::callback_futures::in_callbacks_as;
use super::error::Error;
use phaseloop::net::lookup_host;
use phaseloop::task::next_tick;

/// Looks up a name and calls back with its first address.
///
/// If `host` is an IP address, the callback runs in a tick. Otherwise a pool job does the lookup
/// and the callback runs in the poll phase. The error has the code `ENOTFOUND` if the name is
/// unknown, and `EAI_AGAIN` if no name server answered.
///
/// In plain Rust: [`lookup_host`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, dns, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         dns::lookup("127.0.0.1", |address| assert!(address.unwrap().is_loopback()));
///     })
/// }
/// ```
#[track_caller]
pub fn lookup(host: &str, callback: impl FnOnce(Result<IpAddr, Error>) + 'static) {
    lookup_all(host, |addresses| {
        callback(addresses.and_then(|addresses| {
            let first = addresses.first().copied();
            first.ok_or_else(|| Error::with_code("ENOTFOUND", "the name has no address"))
        }));
    });
}

/// Looks up a name and calls back with all its addresses; otherwise like [`lookup`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, dns, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         dns::lookup_all("::1", |addresses| assert_eq!(addresses.unwrap().len(), 1));
///     })
/// }
/// ```
#[track_caller]
pub fn lookup_all(host: &str, callback: impl FnOnce(Result<Vec<IpAddr>, Error>) + 'static) {
    if let Ok(address) = host.parse() {
        return next_tick(move || callback(Ok(vec![address])));
    }
    let host = host.to_owned();
    in_callbacks_as("GETADDRINFOREQWRAP", async move {
        let found = lookup_host((host.as_str(), 0)).await;
        let addresses = found.map(|found| found.iter().map(|address| address.ip()).collect());
        callback(addresses.map_err(|error| Error::of_lookup(error, &host)));
    });
}
