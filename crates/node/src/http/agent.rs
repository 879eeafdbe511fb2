//! Agents: the pools of connections that requests share.
//!
//! ```text
//!   request ──┬── a free socket ─────────────> reused
//!             ├── below the limits ──────────> a new socket
//!             └── at the limits ── waits ──┬── a socket is freed
//!                                          └── a socket closes: a new one
//!   response read ── 'free' ──┬── a request waits ──> next request
//!                             ├── keep alive ──> free list ── idle, ended or failed ──> closed
//!                             └── otherwise ──> destroyed
//! ```
//
// H71 to H73.

mod pool;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use self::pool::Pool;
pub(super) use self::pool::Pooled;
use super::client::ClientRequest;
use crate::context::Node;
use crate::delay::Delay;
use crate::events::{Emitter, Event, EventEmitter};
use crate::net::{Address, Socket, SocketOptions};
use crate::site::Site;
#[cfg(feature = "tls")]
use crate::tls::{self, ClientContext};
use phaseloop::task::set_immediate;

/// A socket has no request any more. A waiting request may have it already. JavaScript: `'free'`.
pub const FREE: Event<Socket> = Event::new("free");

/// The largest number of free sockets of one origin by default.
const MAX_FREE_SOCKETS: usize = 256;

/// The time of inactivity after which the sockets of the global agent report a timeout, in
/// milliseconds.
const GLOBAL_TIMEOUT: u32 = 5000;

/// How long `fetch` keeps a free socket, in milliseconds.
#[cfg(feature = "fetch")]
const FETCH_TIMEOUT: u32 = 4000;

/// Which free socket a request gets. JavaScript: `{ scheduling }`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{Agent, Scheduling};
///
/// fn main() {
///     let agent = Agent::builder().keep_alive(true).scheduling(Scheduling::Fifo).build();
///     println!("{agent:?}");
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// The socket that was freed last: few sockets are busy, the others time out.
    #[default]
    Lifo,
    /// The socket that was freed first: all sockets are used in turn.
    Fifo,
}

/// How an agent connects a socket.
pub(super) type Connector = Rc<dyn Fn(&Address, Option<&str>, Site) -> Socket>;

#[derive(Clone)]
struct Options {
    keep_alive: bool,
    max_sockets: Option<usize>,
    max_total_sockets: Option<usize>,
    max_free_sockets: usize,
    scheduling: Scheduling,
    timeout: Option<Delay>,
    /// Whether a freed socket is used again a turn later only.
    rests: bool,
    protocol: &'static str,
    default_port: u16,
    connector: Connector,
}

/// Builds an [`Agent`]; see [`Agent::builder`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::Agent;
///
/// fn main() {
///     let agent = Agent::builder().keep_alive(true).max_sockets(4).build();
///     assert_eq!(agent.sockets(), 0);
/// }
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct AgentBuilder {
    options: Options,
}

impl AgentBuilder {
    /// Sets whether sockets stay open for later requests. The default is `false`. JavaScript: `{
    /// keepAlive }`.
    pub fn keep_alive(mut self, keep_alive: bool) -> Self {
        self.options.keep_alive = keep_alive;
        self
    }

    /// Sets the largest number of sockets to one origin; requests above it wait. JavaScript: `{
    /// maxSockets }`.
    pub fn max_sockets(mut self, max: usize) -> Self {
        self.options.max_sockets = Some(max);
        self
    }

    /// Sets the largest number of sockets to all origins together. JavaScript: `{ maxTotalSockets
    /// }`.
    pub fn max_total_sockets(mut self, max: usize) -> Self {
        self.options.max_total_sockets = Some(max);
        self
    }

    /// Sets the largest number of free sockets to one origin. The default is 256. JavaScript: `{
    /// maxFreeSockets }`.
    pub fn max_free_sockets(mut self, max: usize) -> Self {
        self.options.max_free_sockets = max;
        self
    }

    /// Sets which free socket a request gets. JavaScript: `{ scheduling }`.
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.options.scheduling = scheduling;
        self
    }

    /// Sets the time of inactivity after which a socket reports a timeout. A free socket is closed
    /// then. Zero, and what is no time, sets none. JavaScript: `{ timeout }`.
    pub fn timeout(mut self, timeout: impl Into<Delay>) -> Self {
        self.options.timeout = timeout.into().as_idle_time("timeout").ok().flatten();
        self
    }

    /// Uses a freed socket again a turn later at the earliest, when it is known whether the peer
    /// has closed it with its response.
    #[cfg(feature = "fetch")]
    fn rests(mut self) -> Self {
        self.options.rests = true;
        self
    }

    /// Creates the agent.
    #[must_use]
    pub fn build(self) -> Agent {
        let inner = Rc::new(Inner {
            options: self.options,
            emitter: EventEmitter::of_class("Agent"),
            pool: Pool::default(),
            total: Cell::new(0),
            is_known: Cell::new(false),
        });
        Agent { inner }
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("keep_alive", &self.options.keep_alive)
            .field("max_sockets", &self.options.max_sockets)
            .finish_non_exhaustive()
    }
}

/// A pool of connections. A clone is a handle to the same pool. JavaScript: `http.Agent`.
///
/// Sockets are pooled by host and port, or by the path of a local socket. A free socket does not
/// keep the loop alive, and leaves the pool silently when the peer closes it. Every socket that
/// loses its request is reported by [`FREE`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::{self, Agent, RequestOptions};
/// use phaseloop_node::{Emitter, Exit, run, stream::END};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let agent = Agent::builder().keep_alive(true).build();
///         let server = http::create_server(|_, response| response.end("hello"));
///         server.listen_this(("127.0.0.1", 0), move |server| {
///             let options = RequestOptions::new(server.address().unwrap()).agent(&agent);
///             let request = http::get(options);
///             let (server, agent) = (server.clone(), agent.clone());
///             request.on_response(move |response| {
///                 response.resume();
///                 response.on(END, move |()| {
///                     agent.destroy();
///                     server.close();
///                 });
///             });
///         });
///     })
/// }
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Rc<Inner>,
}

struct Inner {
    options: Options,
    emitter: EventEmitter,
    pool: Pool,
    /// The number of open sockets.
    total: Cell<usize>,
    /// Whether the loop knows the agent.
    is_known: Cell<bool>,
}

/// Returns the agent of the running loop, which requests use by default. It keeps sockets alive.
/// JavaScript: `http.globalAgent`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, http, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         assert_eq!(http::global_agent().free_sockets(), 0);
///     })
/// }
/// ```
#[must_use]
pub fn global_agent() -> Agent {
    agent_of_loop(Use::Requests, || {
        Agent::builder().keep_alive(true).timeout(GLOBAL_TIMEOUT)
    })
}

/// Returns the agent of the running loop for `fetch` of URLs with this scheme. `None` if the scheme
/// is not supported.
#[cfg(feature = "fetch")]
pub(crate) fn fetch_agent(scheme: &str) -> Option<Agent> {
    let kept = |builder: AgentBuilder| builder.keep_alive(true).timeout(FETCH_TIMEOUT).rests();
    match scheme {
        "http" => Some(agent_of_loop(Use::Fetch, || kept(Agent::builder()))),
        #[cfg(feature = "tls")]
        "https" => {
            let make = || kept(secure_agent(&ClientContext::new().for_http()));
            Some(agent_of_loop(Use::SecureFetch, make))
        }
        _ => None,
    }
}

/// Returns a builder for an agent whose sockets are encrypted.
#[cfg(feature = "tls")]
pub(crate) fn secure_agent(context: &ClientContext) -> AgentBuilder {
    let context = context.clone();
    let connector: Connector = Rc::new(move |address, server_name, site| {
        let socket = Socket::unheld(SocketOptions::default());
        socket.set_no_delay(true);
        tls::connect_socket(&socket, address.clone(), server_name, &context, site);
        socket
    });
    Agent::builder_with(connector, "https:", 443)
}

/// Returns the agent of the running loop for requests over TLS.
#[cfg(feature = "tls")]
pub(crate) fn secure_global_agent() -> Agent {
    agent_of_loop(Use::SecureRequests, || {
        let builder = secure_agent(&ClientContext::new().for_http());
        builder.keep_alive(true).timeout(GLOBAL_TIMEOUT)
    })
}

/// What an agent of a loop is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Requests,
    #[cfg(feature = "fetch")]
    Fetch,
    #[cfg(feature = "tls")]
    SecureRequests,
    #[cfg(all(feature = "fetch", feature = "tls"))]
    SecureFetch,
}

/// The agents of a loop, once they were used.
#[derive(Default)]
pub(super) struct LoopAgents {
    own: RefCell<Vec<(Use, Agent)>>,
    /// All agents with sockets of the loop.
    all: RefCell<Vec<Weak<Inner>>>,
}

impl LoopAgents {
    /// Drops all sockets: an agent and its sockets hold each other.
    pub(super) fn shut_down(&self) {
        let (own, all) = (self.own.take(), self.all.take());
        for agent in all.iter().filter_map(Weak::upgrade) {
            agent.pool.clear();
            agent.is_known.set(false);
        }
        drop(own);
    }

    fn insert(&self, agent: &Rc<Inner>) {
        let mut all = self.all.borrow_mut();
        if all.len() == all.capacity() {
            all.retain(|agent| agent.strong_count() > 0);
            // The list doubles, so that the next search for dropped agents is far away.
            let more = all.len().max(8);
            all.reserve(more);
        }
        all.push(Rc::downgrade(agent));
    }
}

fn agent_of_loop(of: Use, make: impl FnOnce() -> AgentBuilder) -> Agent {
    let node = Node::current();
    let agents = &node.http.agents.own;
    let known = agents
        .borrow()
        .iter()
        .find(|(known, _)| *known == of)
        .cloned();
    if let Some((_, agent)) = known {
        return agent;
    }
    let agent = make().build();
    agents.borrow_mut().push((of, agent.clone()));
    agent
}

impl Agent {
    /// Creates an agent that closes each socket after its response, unless a request waits for it.
    /// JavaScript: `new http.Agent()`.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder for an agent.
    pub fn builder() -> AgentBuilder {
        let connector: Connector = Rc::new(|address, _, site| {
            let socket = Socket::unheld(SocketOptions::default());
            socket.set_no_delay(true);
            socket.connect_at(address.clone(), site);
            socket
        });
        Self::builder_with(connector, "http:", 80)
    }

    fn builder_with(
        connector: Connector,
        protocol: &'static str,
        default_port: u16,
    ) -> AgentBuilder {
        let options = Options {
            keep_alive: false,
            max_sockets: None,
            max_total_sockets: None,
            max_free_sockets: MAX_FREE_SOCKETS,
            scheduling: Scheduling::default(),
            timeout: None,
            rests: false,
            protocol,
            default_port,
            connector,
        };
        AgentBuilder { options }
    }

    /// Creates an agent for one request, which says `Connection: close`. JavaScript: `{ agent:
    /// false }`.
    #[must_use]
    pub fn none() -> Self {
        Self::new()
    }

    /// Returns the number of sockets with a request. JavaScript: `agent.sockets`, all lists
    /// together.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.inner.pool.busy()
    }

    /// Returns the number of free sockets. JavaScript: `agent.freeSockets`, all lists together.
    #[must_use]
    pub fn free_sockets(&self) -> usize {
        self.inner.pool.free()
    }

    /// Returns the number of requests that wait for a socket. JavaScript: `agent.requests`, all
    /// lists together.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.inner.pool.waiting()
    }

    /// Destroys all sockets. Their requests fail. JavaScript: `agent.destroy()`.
    pub fn destroy(&self) {
        for socket in self.inner.pool.all_sockets() {
            socket.destroy(None);
        }
    }

    pub(super) fn protocol(&self) -> &'static str {
        self.inner.options.protocol
    }

    pub(super) fn default_port(&self) -> u16 {
        self.inner.options.default_port
    }

    pub(super) fn timeout(&self) -> Option<Delay> {
        self.inner.options.timeout
    }

    /// Returns whether a request may leave its connection open.
    pub(super) fn may_keep_alive(&self) -> bool {
        self.inner.options.keep_alive || self.inner.options.max_sockets.is_some()
    }

    // Requests.

    /// Finds a socket for a request: a free one, a new one, or one that is freed later.
    pub(super) fn add_request(&self, request: &ClientRequest) {
        let (pool, options) = (&self.inner.pool, &self.inner.options);
        let name = request.pool_name();
        let reused = pool.take_free(name, options.scheduling);
        let count = pool.count_of(name);
        if let Some(pooled) = reused {
            pooled.reuse();
            request.set_reused();
            self.give(request, &pooled);
            pool.add_busy(&pooled);
        } else if options.max_sockets.is_none_or(|max| count < max) && self.is_below_total() {
            let pooled = self.connect(request);
            self.give(request, &pooled);
        } else {
            pool.add_waiting(request);
        }
    }

    fn is_below_total(&self) -> bool {
        let max = self.inner.options.max_total_sockets;
        max.is_none_or(|max| self.inner.total.get() < max)
    }

    /// Opens a socket for a request.
    fn connect(&self, request: &ClientRequest) -> Rc<Pooled> {
        if !self.inner.is_known.replace(true) {
            Node::current().http.agents.insert(&self.inner);
        }
        let target = request.target();
        let server_name = target.server_name.as_deref();
        let socket = (self.inner.options.connector)(&target.address, server_name, request.site());
        let timeout = self.timeout().or_else(|| request.timeout());
        if let Some(timeout) = timeout {
            socket.limit_idle_time(Some(timeout));
        }
        let pooled = Pooled::new(socket, self.clone(), request.pool_name().to_owned());
        self.inner.pool.add_busy(&pooled);
        self.inner.total.set(self.inner.total.get() + 1);
        pooled.listen();
        pooled
    }

    /// Gives a request its socket, on a tick.
    fn give(&self, request: &ClientRequest, pooled: &Rc<Pooled>) {
        request.on_socket(pooled);
        let millis = |timeout: Option<Delay>| timeout.map(Delay::as_millis);
        let asked = request.timeout();
        if let Some(timeout) = asked.filter(|_| millis(asked) != millis(self.timeout())) {
            pooled.socket().limit_idle_time(Some(timeout));
        }
    }

    // Sockets.

    /// Handles a socket that has lost its request.
    pub(super) fn free(&self, pooled: &Rc<Pooled>) {
        if !self.inner.options.rests {
            return self.release(pooled);
        }
        let (agent, pooled) = (self.clone(), pooled.clone());
        set_immediate(move || agent.release(&pooled));
    }

    fn release(&self, pooled: &Rc<Pooled>) {
        self.place(pooled);
        self.inner.emitter.emit(FREE, pooled.socket());
    }

    fn place(&self, pooled: &Rc<Pooled>) {
        let (pool, options) = (&self.inner.pool, &self.inner.options);
        if !pooled.socket().writable().is_writable() {
            return pooled.socket().destroy(None);
        }
        if let Some(request) = pool.take_waiting(pooled.name()) {
            return self.give(&request, pooled);
        }
        let request = pooled.request();
        let keeps = options.keep_alive && request.is_some_and(|request| request.keeps_alive());
        let (free, count) = (pool.free_of(pooled.name()), pool.count_of(pooled.name()));
        let total = self.inner.total.get();
        let fits = options.max_total_sockets.is_none_or(|max| total <= max)
            && options.max_sockets.is_none_or(|max| count <= max)
            && free < options.max_free_sockets;
        if !keeps || !fits || !pooled.keep_alive(options.timeout) {
            return pooled.socket().destroy(None);
        }
        pooled.set_request(None);
        self.remove_busy(pooled);
        pooled.listen_for_errors();
        pool.add_free(pooled);
    }

    /// Removes a socket that was closed, or that left HTTP.
    fn forget(&self, pooled: &Rc<Pooled>) {
        self.inner.total.set(self.inner.total.get() - 1);
        self.inner.pool.remove_free(pooled);
        self.remove_busy(pooled);
    }

    /// Removes a socket from the busy ones. A waiting request gets a new socket in its place.
    fn remove_busy(&self, pooled: &Rc<Pooled>) {
        self.inner.pool.remove_busy(pooled);
        if let Some(request) = self.inner.pool.next_waiting(pooled.name()) {
            let pooled = self.connect(&request);
            self.release(&pooled);
        }
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self::new()
    }
}

impl Emitter for Agent {
    fn emitter(&self) -> &EventEmitter {
        &self.inner.emitter
    }
}

crate::weak_this!(Agent { inner });

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("sockets", &self.sockets())
            .field("free_sockets", &self.free_sockets())
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}
