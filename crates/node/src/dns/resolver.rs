//! The resolver: Node's `dns.promises.Resolver`, and functions with callbacks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::query::{Code, Settings, server, system_servers};
use super::records::{
    CaaRecord, Cname, HostByAddr, MxRecord, NaptrRecord, Ns, Ptr, Record, SoaRecord, SrvRecord, Txt,
};
use crate::callback_futures::in_callbacks_as;
use crate::error::Error;
use crate::promise::{Deferred, Promise};
use phaseloop::spawn_blocking;

/// Asks name servers for records. JavaScript: `new dns.promises.Resolver({ timeout, tries })`.
///
/// The servers are those of `/etc/resolv.conf`, or 127.0.0.1. A question goes to one server after
/// the other, four rounds long; the wait for an answer is two seconds, and doubles with each round.
/// An answer that was cut is asked for again by TCP. Datagrams that are no answer to the question
/// are ignored. Names are ASCII.
///
/// # Errors
///
/// The promises are rejected with Node's codes: `ENOTFOUND` for a name that does not exist,
/// `ENODATA` for one without such records, `ETIMEOUT`, `ECONNREFUSED`, `ESERVFAIL`, `EREFUSED`,
/// `ENOTIMP`, `EFORMERR`, `EBADRESP` for an answer that is not well-formed, `EBADNAME`.
///
/// # Panics
///
/// Questions panic when no loop runs on this thread.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, dns::Resolver, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut resolver = Resolver::new();
///         resolver.set_servers(["9.9.9.9"]).unwrap();
///         for mx in resolver.resolve_mx("example.org").await.unwrap() {
///             println!("{} {}", mx.priority, mx.exchange);
///         }
///     })
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    settings: Settings,
}

impl Resolver {
    /// Creates a resolver with the name servers of the system.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the wait for the first answer, and the number of rounds, which is at least one.
    /// JavaScript: `{ timeout, tries }`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration, tries: u32) -> Self {
        (self.settings.wait, self.settings.rounds) = (timeout, tries);
        self
    }

    /// Returns the name servers; those of the port 53 without it. JavaScript:
    /// `resolver.getServers()`.
    ///
    /// Without [`set_servers`](Self::set_servers), the call reads `/etc/resolv.conf` and blocks.
    /// Questions read it in the pool.
    #[must_use]
    pub fn get_servers(&self) -> Vec<String> {
        let text = |server: &SocketAddr| match server.port() {
            53 => server.ip().to_string(),
            _ => server.to_string(),
        };
        match &self.settings.servers {
            Some(servers) => servers.iter().map(text).collect(),
            None => system_servers().iter().map(text).collect(),
        }
    }

    /// Sets the name servers: IP addresses, perhaps with a port. JavaScript:
    /// `resolver.setServers(servers)`.
    ///
    /// # Errors
    ///
    /// `ERR_INVALID_IP_ADDRESS` for what is none. The servers stay as they are then.
    pub fn set_servers<S: AsRef<str>>(
        &mut self,
        servers: impl IntoIterator<Item = S>,
    ) -> Result<(), Error> {
        let known = |text: S| {
            let text = text.as_ref();
            let invalid = || {
                let message = format!("Invalid IP address: {text}");
                Error::type_error(message).coded("ERR_INVALID_IP_ADDRESS")
            };
            server(text).ok_or_else(invalid)
        };
        let servers = servers.into_iter().map(known).collect::<Result<_, _>>()?;
        self.settings.servers = Some(servers);
        Ok(())
    }

    /// Asks, and calls back in the poll phase.
    #[track_caller]
    fn ask<R: Record, T: 'static>(
        &self,
        name: &str,
        convert: fn(Vec<R>) -> T,
        callback: impl FnOnce(Result<T, Error>) + 'static,
    ) {
        let (settings, name) = (self.settings.clone(), name.to_owned());
        in_callbacks_as("QUERYWRAP", async move {
            let found = settings.resolve::<R>(&name).await;
            let found = found.map_err(|code| failed(R::CALL, code, &name));
            callback(found.map(convert));
        });
    }

    /// Returns the names of an address: those of the system's hosts, or PTR records. JavaScript:
    /// `resolver.reverse(ip)`.
    #[track_caller]
    pub fn reverse(&self, ip: IpAddr) -> Promise<Vec<String>> {
        let (settings, deferred) = (self.settings.clone(), Deferred::new());
        let promise = deferred.promise();
        in_callbacks_as("QUERYWRAP", async move {
            deferred.settle(names_of(&settings, ip).await.map_err(Into::into));
        });
        promise
    }
}

/// Returns the names of an address. The file of hosts goes first.
async fn names_of(settings: &Settings, ip: IpAddr) -> Result<Vec<String>, Error> {
    let read = move || {
        hosts(
            &std::fs::read_to_string("/etc/hosts").unwrap_or_default(),
            ip,
        )
    };
    let known = spawn_blocking(read).await.unwrap_or_default();
    if !known.is_empty() {
        return Ok(known);
    }
    let found = settings.resolve::<HostByAddr>(&reversed(ip)).await;
    found.map(texts).map_err(|code| {
        // No name is a name that is not found.
        let code = if code == "ENODATA" { "ENOTFOUND" } else { code };
        Error::with_code(code, format!("{} {code} {ip}", HostByAddr::CALL))
    })
}

/// The error of a question, in Node's words.
fn failed(call: &str, code: Code, name: &str) -> Error {
    let text = format!("{call} {code} {name}");
    Error::with_code(code, text.trim_end().to_owned())
}

/// Returns the names of an address in the text of a file of hosts.
fn hosts(text: &str, ip: IpAddr) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split('#').next());
    let mut names = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace();
        if words.next().and_then(|first| first.parse().ok()) == Some(ip) {
            names.extend(words.map(str::to_owned));
        }
    }
    names
}

/// Returns the name under which the names of an address are kept.
fn reversed(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(ip) => {
            let octets = ip.octets().into_iter().rev();
            let digits = octets.flat_map(|octet| [octet & 15, octet >> 4]);
            let digits: Vec<_> = digits.map(|digit| format!("{digit:x}")).collect();
            format!("{}.ip6.arpa", digits.join("."))
        }
    }
}

/// A record that is one text.
trait Text {
    fn into_text(self) -> String;
}

macro_rules! text {
    ($($Record:ident)*) => {
        $(impl Text for $Record {
            fn into_text(self) -> String {
                self.0
            }
        })*
    };
}

text!(Cname Ns Ptr HostByAddr);

fn texts<R: Text>(records: Vec<R>) -> Vec<String> {
    records.into_iter().map(R::into_text).collect()
}

fn same<R>(records: Vec<R>) -> Vec<R> {
    records
}

fn several(records: Vec<Txt>) -> Vec<Vec<String>> {
    records.into_iter().map(|record| record.0).collect()
}

fn first(records: Vec<SoaRecord>) -> SoaRecord {
    // A question without records has failed before.
    records.into_iter().next().expect("there is a record")
}

/// Defines the questions: as methods that return promises, and as functions that call back.
macro_rules! questions {
    ($($name:ident: $Record:ty => $Found:ty, $convert:expr, $what:literal, $javascript:literal;)*) => {
        impl Resolver {
            $(
                #[doc = concat!("Returns ", $what, " of a name. JavaScript: `resolver.", $javascript, "(name)`.")]
                #[track_caller]
                pub fn $name(&self, name: &str) -> Promise<$Found> {
                    let deferred = Deferred::new();
                    let promise = deferred.promise();
                    let convert: fn(Vec<$Record>) -> $Found = $convert;
                    self.ask(name, convert, move |found| {
                        deferred.settle(found.map_err(Into::into));
                    });
                    promise
                }
            )*
        }

        $(
            #[doc = concat!("Looks up ", $what, " of a name and calls back in the poll phase; see [`Resolver`]. JavaScript: `dns.", $javascript, "(name, callback)`.")]
            ///
            /// # Errors
            ///
            /// The callback gets those of [`Resolver`].
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            #[track_caller]
            pub fn $name(name: &str, callback: impl FnOnce(Result<$Found, Error>) + 'static) {
                let convert: fn(Vec<$Record>) -> $Found = $convert;
                Resolver::new().ask(name, convert, callback);
            }
        )*
    };
}

questions! {
    resolve4: Ipv4Addr => Vec<Ipv4Addr>, same, "the IPv4 addresses", "resolve4";
    resolve6: Ipv6Addr => Vec<Ipv6Addr>, same, "the IPv6 addresses", "resolve6";
    resolve_caa: CaaRecord => Vec<CaaRecord>, same, "who may issue certificates", "resolveCaa";
    resolve_cname: Cname => Vec<String>, texts, "the other names", "resolveCname";
    resolve_mx: MxRecord => Vec<MxRecord>, same, "the mail servers", "resolveMx";
    resolve_naptr: NaptrRecord => Vec<NaptrRecord>, same, "the rewrite rules", "resolveNaptr";
    resolve_ns: Ns => Vec<String>, texts, "the name servers", "resolveNs";
    resolve_ptr: Ptr => Vec<String>, texts, "the names it points to", "resolvePtr";
    resolve_soa: SoaRecord => SoaRecord, first, "the start of the zone", "resolveSoa";
    resolve_srv: SrvRecord => Vec<SrvRecord>, same, "the servers", "resolveSrv";
    resolve_txt: Txt => Vec<Vec<String>>, several, "the texts", "resolveTxt";
}

/// Looks up the names of an address and calls back; see [`Resolver::reverse`]. JavaScript:
/// `dns.reverse(ip, callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn reverse(ip: IpAddr, callback: impl FnOnce(Result<Vec<String>, Error>) + 'static) {
    in_callbacks_as("QUERYWRAP", async move {
        callback(names_of(&Settings::default(), ip).await);
    });
}

#[cfg(test)]
mod tests {
    use super::{hosts, reversed};

    #[test]
    fn n162_addresses_are_reversed_and_hosts_are_read() {
        assert_eq!(reversed("1.2.3.4".parse().unwrap()), "4.3.2.1.in-addr.arpa");
        let six = reversed("2001:db8::1".parse().unwrap());
        assert!(six.starts_with("1.0.0.0.") && six.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"));
        let text = "127.0.0.1 a b # c\n::1 d\n127.0.0.1 e\n";
        assert_eq!(hosts(text, "127.0.0.1".parse().unwrap()), ["a", "b", "e"]);
        assert!(hosts(text, "127.0.0.2".parse().unwrap()).is_empty());
    }
}
