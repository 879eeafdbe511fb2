//! Listeners of a cluster: loop 0 accepts, and hands the connections over.
//!
//! ```text
//!   accept, on loop 0 ── a balancer chooses ──> a channel ──> Listener::accept, on its loop
//! ```
// Rules C14, C17.

mod acceptor;

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::balance::Balance;
use super::channel::{Sender, channel};
use super::listener::Listener;
use super::{Cluster, Member, current, lock};
use crate::net::{Detached, TcpListener, TcpStream, ToAddresses};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// How many connections wait for a loop to accept them, at most.
const QUEUE: usize = 128;

/// The backlog of the kernel, unless another is chosen.
const BACKLOG: u32 = 1024;

/// A connection on its way, or an error of `accept`.
pub(super) type Handed = io::Result<(Detached<TcpStream>, SocketAddr)>;

/// Listens for connections that all loops of the cluster serve.
///
/// The returned [`Listen`] binds when it is awaited; its methods set options. Each loop takes its
/// part of the connections by [`Listeners::here`].
///
/// # Errors
///
/// The errors of [`TcpListener::bind`]; [`Unsupported`](io::ErrorKind::Unsupported) for
/// [`Balance::ReusePort`] on a platform whose kernel does not spread connections.
///
/// # Cancel safety
///
/// A future that is dropped before it completes has bound no socket.
///
/// # Panics
///
/// When the future is awaited and no loop runs on this thread.
///
/// # Examples
///
/// An echo server on two loops, and its end:
///
/// ```
/// use std::time::Duration;
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt, copy};
/// use phaseloop::{cluster, net::TcpStream, spawn};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let listeners = cluster::listen("127.0.0.1:0").await?;
///         let address = listeners.local_addr();
///         let servers = cluster::current().each(move |_| {
///             let listener = listeners.here();
///             async move {
///                 let serve = async {
///                     while let Ok((stream, _)) = listener.accept().await {
///                         spawn(async move { copy(&stream, &mut &stream).await }).detach();
///                     }
///                 };
///                 cluster::stopping().run_until_cancelled(serve).await;
///             }
///         });
///         let mut client = TcpStream::connect(address).await?;
///         client.write_all(b"to whichever loop").await?;
///         client.close().await?;
///         let mut answer = String::new();
///         client.read_to_string(&mut answer).await?;
///         assert_eq!(answer, "to whichever loop");
///         let stopped = cluster::current().shutdown(Duration::from_secs(10)).await;
///         assert!(stopped.is_clean(), "{stopped}");
///         for server in servers.await {
///             server?;
///         }
///         Ok(())
///     })?
/// }
/// ```
#[track_caller]
pub fn listen<A: ToAddresses>(target: A) -> Listen<A> {
    Listen {
        target,
        balance: Balance::default(),
        backlog: BACKLOG,
        site: Location::caller(),
    }
}

/// The options of [`listen`], which binds when it is awaited.
///
/// # Examples
///
/// ```
/// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
///         let listeners = listen.await.unwrap();
///         let address = listeners.local_addr();
///         let servers = cluster::current().each(move |_| {
///             let listener = listeners.here(); // on each loop its own
///             async move { listener.accept().await.unwrap().1 }
///         });
///         let clients = spawn(async move {
///             let one = TcpStream::connect(address).await.unwrap();
///             (one, TcpStream::connect(address).await.unwrap())
///         });
///         assert_eq!(servers.await.len(), 2);
///         clients.await.unwrap();
///     })?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it does nothing unless awaited"]
pub struct Listen<A> {
    target: A,
    balance: Balance,
    backlog: u32,
    site: Site,
}

impl<A: ToAddresses> Listen<A> {
    /// Sets how connections are spread over the loops; [`Balance::LeastLag`] by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
    ///         let listeners = listen.await.unwrap();
    ///         let address = listeners.local_addr();
    ///         let servers = cluster::current().each(move |_| {
    ///             let listener = listeners.here(); // on each loop its own
    ///             async move { listener.accept().await.unwrap().1 }
    ///         });
    ///         let clients = spawn(async move {
    ///             let one = TcpStream::connect(address).await.unwrap();
    ///             (one, TcpStream::connect(address).await.unwrap())
    ///         });
    ///         assert_eq!(servers.await.len(), 2);
    ///         clients.await.unwrap();
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    pub fn balance(mut self, balance: Balance) -> Self {
        self.balance = balance;
        self
    }

    /// Sets how many connections may wait in the kernel's queue, which may limit it further; 1024
    /// by default.
    pub fn backlog(mut self, backlog: u32) -> Self {
        self.backlog = backlog;
        self
    }
}

impl<A: ToAddresses + 'static> IntoFuture for Listen<A> {
    type Output = io::Result<Listeners>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (cluster, site) = (current(), self.site);
            let count = match self.balance {
                Balance::ReusePort => cluster.len(),
                _ => 1,
            };
            let bound = TcpListener::bind_times(self.target, count, self.backlog, site).await?;
            let address = bound[0].local_addr()?;
            let mut bound = bound.into_iter().map(TcpListener::detach);
            let hub = Arc::new(Hub {
                cluster: cluster.clone(),
                address,
                balance: self.balance,
                site,
                state: Mutex::default(),
            });
            let accepted = match self.balance {
                Balance::ReusePort => {
                    lock(&hub.state).own = bound.map(Some).collect();
                    None
                }
                _ => bound.next(),
            };
            if let Some(listener) = accepted {
                hub.start(listener)?;
            }
            cluster.add_hub(&hub);
            Ok(Listeners {
                owner: Owner::new(hub),
            })
        })
    }
}

/// A listener for all loops of a cluster, made by [`listen`]; clones are of the same one.
///
/// The listener is closed when all `Listeners` and all [`Listener`]s are dropped, or by
/// [`Cluster::shutdown`].
///
/// # Examples
///
/// ```
/// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
///         let listeners = listen.await.unwrap();
///         let address = listeners.local_addr();
///         let servers = cluster::current().each(move |_| {
///             let listener = listeners.here(); // on each loop its own
///             async move { listener.accept().await.unwrap().1 }
///         });
///         let clients = spawn(async move {
///             let one = TcpStream::connect(address).await.unwrap();
///             (one, TcpStream::connect(address).await.unwrap())
///         });
///         assert_eq!(servers.await.len(), 2);
///         clients.await.unwrap();
///     })?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Listeners {
    owner: Owner,
}

impl Listeners {
    /// Returns the address that the listener is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.owner.hub.address
    }

    /// Returns the part of the running loop: the connections that this loop serves. A loop without
    /// one gets no connection, except by [`Balance::ReusePort`]: there the connections that the
    /// kernel has chosen for it wait.
    ///
    /// Once it is dropped, the connections that it has not accepted go to other loops. If a loop
    /// has several, they take turns.
    ///
    /// # Panics
    ///
    /// On a thread without a loop, and on a loop of another cluster. With [`Balance::ReusePort`] on
    /// a second call on one loop, or if the OS refuses to register the loop's listener.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{cluster::{self, Balance}, net::TcpStream, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     cluster::Builder::new().loops(2).block_on(async {
    ///         let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
    ///         let listeners = listen.await.unwrap();
    ///         let address = listeners.local_addr();
    ///         let servers = cluster::current().each(move |_| {
    ///             let listener = listeners.here(); // on each loop its own
    ///             async move { listener.accept().await.unwrap().1 }
    ///         });
    ///         let clients = spawn(async move {
    ///             let one = TcpStream::connect(address).await.unwrap();
    ///             (one, TcpStream::connect(address).await.unwrap())
    ///         });
    ///         assert_eq!(servers.await.len(), 2);
    ///         clients.await.unwrap();
    ///     })?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn here(&self) -> Listener {
        let member = Member::current();
        let hub = &self.owner.hub;
        assert!(
            member.cluster.is_same(&hub.cluster),
            "this loop is of another cluster than the `Listeners`"
        );
        if hub.balance == Balance::ReusePort {
            let mut state = lock(&hub.state);
            if state.stage != Stage::Open {
                drop(state);
                return Listener::at_rest(self.owner.clone());
            }
            let own = state.own.get_mut(member.index).and_then(Option::take);
            state.listening += usize::from(own.is_some());
            drop(state);
            let own = own.expect("a loop takes its listener once with `Balance::ReusePort`");
            let own = own.attach().expect("the loop registers its listener");
            return Listener::own(self.owner.clone(), own, &member);
        }
        let (sender, receiver) = channel(QUEUE);
        hub.change(|state| {
            state.listening += 1;
            state.joining.push(Target {
                index: member.index,
                sender,
                wait: None,
            });
            // The acceptor has ended: the channel is closed at once.
            if state.stage == Stage::Closed {
                state.joining.clear();
            }
        });
        Listener::handed(self.owner.clone(), receiver)
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners")
            .field("local", &self.local_addr())
            .field("balance", &self.owner.hub.balance)
            .finish_non_exhaustive()
    }
}

/// What the acceptor shares with the listeners.
pub(super) struct Hub {
    cluster: Cluster,
    pub(super) address: SocketAddr,
    balance: Balance,
    /// The line that called `listen`, which is that of the connections.
    site: Site,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// The listeners that the acceptor does not know yet.
    joining: Vec<Target>,
    /// The connections of listeners that are gone.
    returned: VecDeque<Handed>,
    /// The listeners of the loops that have not taken theirs, by index.
    own: Vec<Option<Detached<TcpListener>>>,
    /// The `Listeners` and the `Listener`s.
    owners: usize,
    /// The listeners that may still return a connection.
    listening: usize,
    /// Whether an acceptor runs.
    is_accepting: bool,
    /// The acceptor.
    acceptor: Option<Waker>,
    /// The shutdown, while it waits for the end of the hand-over.
    shutdown: Option<Waker>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// What is in the kernel's queue is handed over, and nothing else.
    Draining,
    Closed,
}

/// A listener as the acceptor knows it.
struct Target {
    index: usize,
    sender: Sender<Handed>,
    /// The number of the wait for room.
    wait: Option<u64>,
}

impl Hub {
    /// Changes the state, and wakes who waits for it.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let (acceptor, shutdown) = (state.acceptor.take(), state.shutdown.take());
        drop(state);
        for waker in [acceptor, shutdown].into_iter().flatten() {
            waker.wake();
        }
        result
    }

    /// Lets the acceptor hand over what is in the kernel's queue, and then close the listener.
    // C18 (1).
    pub(super) fn drain(&self) {
        let own = self.change(|state| {
            if state.stage == Stage::Open {
                state.stage = Stage::Draining;
            }
            std::mem::take(&mut state.own)
        });
        // These belong to loops that serve nothing.
        drop(own);
    }

    /// Ends the hand-over, whatever is left.
    pub(super) fn close(&self) {
        let dropped = self.change(|state| {
            state.stage = Stage::Closed;
            let joining = std::mem::take(&mut state.joining);
            let returned = std::mem::take(&mut state.returned);
            (joining, returned, std::mem::take(&mut state.own))
        });
        drop(dropped);
    }

    /// Waits until each listener has returned what was handed over.
    // C18 (2).
    pub(super) async fn drained(&self) {
        poll_fn(|cx| {
            let waker = cx.waker().clone();
            let mut state = lock(&self.state);
            if !state.is_accepting && state.listening == 0 {
                return Poll::Ready(());
            }
            state.shutdown = Some(waker);
            Poll::Pending
        })
        .await;
    }

    /// Notes that a listener returns no further connection.
    pub(super) fn end_of_listener(&self) {
        self.change(|state| state.listening -= 1);
    }

    /// Takes back the connections that a listener has not accepted.
    pub(super) fn take_back(&self, left: VecDeque<Handed>) {
        let dropped = self.change(|state| {
            if state.stage == Stage::Closed {
                return left;
            }
            state.returned.extend(left);
            VecDeque::new()
        });
        drop(dropped);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Keeps the listener open.
pub(super) struct Owner {
    pub(super) hub: Arc<Hub>,
}

impl Owner {
    fn new(hub: Arc<Hub>) -> Self {
        lock(&hub.state).owners += 1;
        Self { hub }
    }
}

impl Clone for Owner {
    fn clone(&self) -> Self {
        Self::new(self.hub.clone())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = lock(&self.hub.state);
        state.owners -= 1;
        let is_last = state.owners == 0;
        drop(state);
        if is_last {
            self.hub.close();
        }
    }
}

impl Hub {
    /// Starts the acceptor, on loop 0.
    fn start(self: &Arc<Self>, listener: Detached<TcpListener>) -> io::Result<()> {
        lock(&self.state).is_accepting = true;
        let hub = self.clone();
        let started = self.cluster.remote(0).call(move || {
            let core = LoopHandle::current().core().clone();
            let (site, guard) = (hub.site, acceptor::EndGuard(hub.clone()));
            let accept = async move {
                let _guard = guard;
                acceptor::run(listener, &hub).await;
            };
            let name = Some("cluster acceptor".into());
            core.executor.spawn(accept, site, name).detach();
        });
        started.map_err(io::Error::other)
    }

    /// Polls for what the acceptor does next, but for accepting: it has the stage, the new
    /// listeners, or a connection that came back.
    fn poll_changes(&self, targets: &mut Vec<Target>, cx: &Context<'_>) -> (Stage, Option<Handed>) {
        let waker = cx.waker().clone();
        let mut state = self.state();
        targets.append(&mut state.joining);
        targets.retain(|target| !target.sender.is_closed());
        let has_room = targets.iter().any(|target| target.sender.has_room());
        let returned = has_room.then(|| state.returned.pop_front()).flatten();
        let before = state.acceptor.replace(waker);
        let stage = state.stage;
        drop(state);
        drop(before);
        (stage, returned)
    }
}
