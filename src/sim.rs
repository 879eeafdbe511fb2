//! A network in memory, for tests: hosts, links, partitions and crashes.
//!
//! On a [shuffled](crate::shuffle) loop, and on one that is built with
//! [`Builder::network`](crate::Builder::network), `connect` and `bind` of [`net`](crate::net) reach
//! sockets of the same loop and no others. They are the types of `net`, so hyper, axum and user
//! code run unchanged. A program that knows nothing of hosts has 127.0.0.1 to itself, without
//! latency.
//!
//! ```
//! use std::time::Duration;
//! use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
//! use phaseloop::net::{TcpListener, TcpStream};
//! use phaseloop::{shuffle, sim::Network};
//!
//! fn main() {
//!     shuffle::explore(20, || async {
//!         let network = Network::current();
//!         network.host("db", [10, 0, 0, 2]).run(|| async {
//!             let listener = TcpListener::bind("0.0.0.0:5432").await.unwrap();
//!             let (mut stream, _) = listener.accept().await.unwrap();
//!             stream.write_all(b"hello").await.unwrap();
//!         });
//!         let web = network.host("web", [10, 0, 0, 1]).run(|| async {
//!             let mut stream = loop {
//!                 // The server may start later.
//!                 match TcpStream::connect("db:5432").await {
//!                     Ok(stream) => break stream,
//!                     Err(_) => phaseloop::time::sleep(Duration::from_millis(10)).await,
//!                 }
//!             };
//!             let mut text = String::new();
//!             stream.read_to_string(&mut text).await.unwrap();
//!             text
//!         });
//!         assert_eq!(web.await.unwrap(), "hello");
//!     });
//! }
//! ```
//!
//! # Sockets
//!
//! - Bytes arrive in order, and are at most a window of 64 KiB ahead of the reader. Then writes
//!   wait.
//! - Each direction ends by itself, after its bytes.
//! - A reset comes by `reset`, by a close with unread bytes, and by a write to a peer that is gone.
//!   Reads return what has arrived, then fail once, then find the end. A write fails once as a read
//!   does, then with `BrokenPipe`.
//! - A connect is refused if no listener has the address, or if its backlog is full.
//! - Port 0 counts up from 40,000. A port that is taken is `AddrInUse`.
//! - Options are stored and returned.
//! - Datagrams are whole, or cut by a short buffer. 64 KiB of them wait, further ones are dropped.
//!   Datagrams of two senders have no order.
//! - Multicast, broadcast and urgent data do not exist, and there is no descriptor: `get_ref` and
//!   `into_std` panic.
//!
//! Sockets of the kernel stay possible: `from_std`, and all of Unix sockets, pipes and files.
//!
//! # Hosts
//!
//! A task belongs to the host of its spawner, and a socket to the host of the task that made it.
//! Without a host, that is `localhost`, which others reach at 192.0.2.1. A host is reached at its
//! address and, within itself, at 127.0.0.1. Names of hosts resolve in
//! [`lookup_host`](crate::net::lookup_host) and in `connect` without the thread pool.
//!
//! Between two hosts a [`Link`] delays packets by 0 to 5 ms unless set otherwise, and may lose or
//! reorder datagrams. On a shuffled loop the answers to
//! [`Kind::Net`](crate::shuffle::Kind::Net) and [`Kind::Loss`](crate::shuffle::Kind::Loss) decide,
//! otherwise [`Settings::seed`].

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::clock::nanoseconds;
use crate::event_loop::current::use_contexts;
use crate::executor::join::JoinHandle;
use crate::frame::Frame;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::ways_to_wait::shuffled::network::{network, with_wire};
use crate::wire::{HostId, HostTag, host_key};
pub use crate::wire::{Link, Settings};

/// The network in memory of the running loop. Clones refer to one network.
///
/// # Examples
///
/// A partition of the network:
///
/// ```
/// use std::time::Duration;
/// use phaseloop::net::{TcpListener, TcpStream};
/// use phaseloop::sim::{Network, Settings};
/// use phaseloop::time::{sleep, timeout};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = phaseloop::Builder::new().network(Settings::default()).build()?;
///     event_loop.block_on(async {
///         let network = Network::current();
///         let server = network.host("server", [10, 0, 0, 1]);
///         let serving = server.run(|| async {
///             let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///             loop {
///                 drop(listener.accept().await);
///             }
///         });
///         network.partition("localhost", "server");
///         let wait = Duration::from_secs(1);
///         assert!(timeout(wait, TcpStream::connect("server:80")).await.is_err());
///         network.heal("localhost", "server");
///         assert!(timeout(wait, TcpStream::connect("server:80")).await.unwrap().is_ok());
///         drop(serving);
///         Ok(())
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Network {
    handle: LoopHandle,
}

impl Network {
    /// Returns the network of the running loop.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread, or the loop has no network in memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("db", [10, 0, 0, 2]);
    ///         assert_eq!(host.name(), "db");
    ///         assert_eq!(host.address(), std::net::IpAddr::from([10, 0, 0, 2]));
    ///         let answer = host.run(|| async { 42 });
    ///         assert_eq!(answer.await.unwrap(), 42);
    ///     });
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn current() -> Self {
        let handle = LoopHandle::current();
        assert!(
            network(handle.core()).is_some(),
            "the loop has no network in memory: build it with `Builder::network` or `Builder::shuffle`, or run the test \
             with `shuffle::explore`"
        );
        Self { handle }
    }

    /// Adds a host, with the address that other hosts reach it at.
    ///
    /// # Panics
    ///
    /// If there is a host with this name or this address, or if the address is a loopback,
    /// unspecified or multicast one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("db", [10, 0, 0, 2]);
    ///         assert_eq!(host.name(), "db");
    ///         assert_eq!(host.address(), std::net::IpAddr::from([10, 0, 0, 2]));
    ///         let answer = host.run(|| async { 42 });
    ///         assert_eq!(answer.await.unwrap(), 42);
    ///     });
    /// }
    /// ```
    #[track_caller]
    pub fn host(&self, name: &str, address: impl Into<IpAddr>) -> Host {
        let (core, address) = (self.handle.core(), address.into());
        match with_wire(core, |wire| wire.add_host(name, address)) {
            Ok(id) => Host {
                network: self.clone(),
                id,
            },
            Err(why) => panic!("the host {name:?} cannot be added: {why}"),
        }
    }

    /// Sets the link between two hosts, in both directions. Packets that are in flight keep their
    /// time of arrival.
    ///
    /// # Panics
    ///
    /// If a name is that of no host.
    #[track_caller]
    pub fn link(&self, one: &str, other: &str, link: Link) {
        let (one, other) = (self.find(one), self.find(other));
        let core = self.handle.core();
        with_wire(core, |wire| wire.set_link(one, other, link));
    }

    /// Cuts the link between two hosts: connections stall, connects get no answer, and datagrams
    /// are lost, until [`heal`](Self::heal).
    ///
    /// # Panics
    ///
    /// If a name is that of no host.
    #[track_caller]
    pub fn partition(&self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        let core = self.handle.core();
        with_wire(core, |wire| wire.partition(one, other));
    }

    /// Ends a [`partition`](Self::partition): what connections have sent meanwhile is on its way.
    ///
    /// # Panics
    ///
    /// If a name is that of no host.
    #[track_caller]
    pub fn heal(&self, one: &str, other: &str) {
        let (one, other) = (self.find(one), self.find(other));
        with_wire(self.handle.core(), |wire| wire.heal(one, other));
    }

    #[track_caller]
    fn find(&self, name: &str) -> HostId {
        let host = with_wire(self.handle.core(), |wire| wire.host_by_name(name));
        match host {
            Some(host) => host,
            None => panic!("there is no host {name:?}"),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

/// A host of a [`Network`]. Clones refer to one host, which stays when they are dropped.
///
/// # Examples
///
/// A server crashes and comes back; its client notices:
///
/// ```
/// use std::time::Duration;
/// use phaseloop::io::AsyncReadExt;
/// use phaseloop::net::{TcpListener, TcpStream};
/// use phaseloop::{shuffle, sim::Network, time::sleep};
///
/// async fn serve() {
///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///     let _connection = listener.accept().await;
///     std::future::pending().await
/// }
///
/// fn main() {
///     shuffle::explore(20, || async {
///         let server = Network::current().host("server", [10, 0, 0, 1]);
///         server.run(serve).detach();
///         sleep(Duration::from_secs(1)).await;
///         let mut client = TcpStream::connect("server:80").await.unwrap();
///         server.crash();
///         assert!(client.read(&mut [0; 8]).await.is_err());
///         assert!(TcpStream::connect("server:80").await.is_err());
///         server.restart();
///         sleep(Duration::from_secs(1)).await;
///         assert!(TcpStream::connect("server:80").await.is_ok());
///     });
/// }
/// ```
#[derive(Clone)]
pub struct Host {
    network: Network,
    id: HostId,
}

impl Host {
    /// Runs a program on this host as a task. All that it spawns belongs to the host.
    ///
    /// [`restart`](Self::restart) calls `program` again. A crash cancels the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("db", [10, 0, 0, 2]);
    ///         assert_eq!(host.name(), "db");
    ///         assert_eq!(host.address(), std::net::IpAddr::from([10, 0, 0, 2]));
    ///         let answer = host.run(|| async { 42 });
    ///         assert_eq!(answer.await.unwrap(), 42);
    ///     });
    /// }
    /// ```
    #[track_caller]
    pub fn run<F>(&self, program: impl Fn() -> F + 'static) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let (program, site) = (Rc::new(program), Location::caller());
        let (again, this) = (program.clone(), self.clone());
        let restart = Rc::new(move || this.start(&*again, site).detach());
        let core = self.network.handle.core();
        with_wire(core, |wire| wire.add_program(self.id, restart));
        self.start(&*program, site)
    }

    fn start<F>(&self, program: &impl Fn() -> F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        use_contexts();
        let core = self.network.handle.core();
        let (tag, name) = with_wire(core, |wire| {
            (wire.tag(self.id), wire.host_name(self.id).into())
        });
        let frame = Frame::current().with(host_key(), Rc::new(tag));
        frame.run(|| core.executor.spawn(program(), site, Some(name)))
    }

    /// Crashes the host: its tasks are aborted, its sockets are closed, and the peers of its
    /// connections get a reset, as after the crash of a process.
    ///
    /// The sockets are gone before a task is dropped, so a destructor that writes gets an error. A
    /// task that crashes its own host ends at its next await. Timers, immediates and other
    /// callbacks are not tasks: those that are set already still run, and get errors from the
    /// network.
    pub fn crash(&self) {
        let core = self.network.handle.core();
        with_wire(core, |wire| wire.crash(self.id));
        let id = self.id;
        core.executor.abort_in_context(|frame| {
            let tag = frame.get(host_key()).and_then(|tag| tag.downcast().ok());
            tag.is_some_and(|tag: Rc<HostTag>| tag.host == id)
        });
    }

    /// Starts all programs of the host again, in the order in which [`run`](Self::run) was called.
    ///
    /// A panic of a program that was restarted counts as one of a task that is not awaited.
    pub fn restart(&self) {
        let core = self.network.handle.core();
        for program in with_wire(core, |wire| wire.programs(self.id)) {
            program();
        }
    }

    /// Sets how far the wall clock of the host, [`time::system_now`](crate::time::system_now), is
    /// ahead, in milliseconds. Timers are not affected.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network, time::system_now};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("late", [10, 0, 0, 2]);
    ///         host.clock_skew(-5000);
    ///         let there = host.run(|| async { system_now() }).await.unwrap();
    ///         assert!(there < system_now());
    ///     });
    /// }
    /// ```
    pub fn clock_skew(&self, milliseconds: i64) {
        let length = nanoseconds(Duration::from_millis(milliseconds.unsigned_abs()));
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let skew = length.saturating_mul(milliseconds.signum());
        let core = self.network.handle.core();
        with_wire(core, |wire| wire.set_skew(self.id, skew));
    }

    /// Returns the name of the host.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("db", [10, 0, 0, 2]);
    ///         assert_eq!(host.name(), "db");
    ///         assert_eq!(host.address(), std::net::IpAddr::from([10, 0, 0, 2]));
    ///         let answer = host.run(|| async { 42 });
    ///         assert_eq!(answer.await.unwrap(), 42);
    ///     });
    /// }
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        let core = self.network.handle.core();
        with_wire(core, |wire| wire.host_name(self.id).to_owned())
    }

    /// Returns the address of the host.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{shuffle, sim::Network};
    ///
    /// fn main() {
    ///     shuffle::explore(5, || async {
    ///         let host = Network::current().host("db", [10, 0, 0, 2]);
    ///         assert_eq!(host.name(), "db");
    ///         assert_eq!(host.address(), std::net::IpAddr::from([10, 0, 0, 2]));
    ///         let answer = host.run(|| async { 42 });
    ///         assert_eq!(answer.await.unwrap(), 42);
    ///     });
    /// }
    /// ```
    #[must_use]
    pub fn address(&self) -> IpAddr {
        let core = self.network.handle.core();
        with_wire(core, |wire| wire.host_address(self.id))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("name", &self.name())
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
