//! The lists of an agent, and a socket in them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::{Agent, Scheduling};
use crate::callback_futures::run_as_callback;
use crate::delay::Delay;
use crate::events::{ERROR, Emitter as _, ListenerId};
use crate::http::client::ClientRequest;
use crate::net::{Consumer, Socket, TIMEOUT};
use crate::stream::CLOSE;

/// How much earlier than the peer a free socket is closed, in milliseconds.
const HINT_MARGIN: u64 = 1000;

/// A socket of an agent.
pub(in crate::http) struct Pooled {
    socket: Socket,
    agent: Agent,
    /// The name of the origin.
    name: String,
    /// The request that uses the socket, or used it last.
    request: RefCell<Option<ClientRequest>>,
    listeners: RefCell<Vec<ListenerId>>,
    /// Receives the errors of a free socket.
    on_error: Cell<Option<ListenerId>>,
}

impl Pooled {
    pub(super) fn new(socket: Socket, agent: Agent, name: String) -> Rc<Self> {
        Rc::new(Self {
            socket,
            agent,
            name,
            request: RefCell::default(),
            listeners: RefCell::default(),
            on_error: Cell::new(None),
        })
    }

    pub(in crate::http) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::http) fn request(&self) -> Option<ClientRequest> {
        self.request.borrow().clone()
    }

    pub(in crate::http) fn set_request(&self, request: Option<&ClientRequest>) {
        let before = self.request.replace(request.cloned());
        drop(before);
    }

    /// Reports that the request does not use the socket any more.
    pub(in crate::http) fn free(self: &Rc<Self>) {
        if !self.listeners.borrow().is_empty() {
            self.agent.free(self);
        }
    }

    /// Listens to the socket for the agent.
    pub(super) fn listen(self: &Rc<Self>) {
        let (closed, timed_out) = (self.clone(), self.clone());
        let listeners = vec![
            self.socket
                .on(CLOSE, move |()| closed.agent.forget(&closed)),
            self.socket.on(TIMEOUT, move |()| {
                if timed_out.agent.inner.pool.is_free(&timed_out) {
                    timed_out.socket.destroy(None);
                }
            }),
        ];
        self.listeners.replace(listeners);
    }

    /// Takes the socket out of the pool: it leaves HTTP.
    pub(in crate::http) fn leave(self: &Rc<Self>) {
        let listeners = self.listeners.take();
        if listeners.is_empty() {
            return;
        }
        self.agent.forget(self);
        for listener in listeners {
            self.socket.off(listener);
        }
    }

    /// Prepares a socket for the free list. Returns whether it may be kept: the peer may close it
    /// too soon.
    pub(super) fn keep_alive(&self, timeout: Option<Delay>) -> bool {
        self.socket.unref();
        let hint = self.request().and_then(|request| request.keep_alive_hint());
        let left = hint.map(|seconds| seconds.saturating_mul(1000).saturating_sub(HINT_MARGIN));
        if left == Some(0) {
            return false;
        }
        let timeout = timeout.map(|timeout| match left {
            Some(left) if left < timeout.as_millis().into() => Delay::from(left),
            _ => timeout,
        });
        self.socket.limit_idle_time(timeout);
        true
    }

    /// Drops a free socket that fails.
    pub(super) fn listen_for_errors(self: &Rc<Self>) {
        let pooled = self.clone();
        let listener = self.socket.once(ERROR, move |_| {
            pooled.on_error.set(None);
            pooled.socket.destroy(None);
            pooled.leave();
        });
        self.on_error.set(Some(listener));
    }

    /// Passes what the socket reads to the request.
    pub(in crate::http) fn start_reading(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.socket.consumed_by(this);
        self.socket.read_on();
    }

    /// Prepares a free socket for its next request.
    pub(super) fn reuse(&self) {
        if let Some(listener) = self.on_error.take() {
            self.socket.off(listener);
        }
        self.socket.ref_();
    }
}

impl Consumer for Pooled {
    fn read(self: Rc<Self>, bytes: &[u8]) {
        if let Some(request) = self.request() {
            run_as_callback(|| request.socket_read(bytes));
        }
    }
}

type Sockets = RefCell<HashMap<String, VecDeque<Rc<Pooled>>>>;

/// The sockets and the waiting requests of an agent, by the names of their origins.
#[derive(Default)]
pub(super) struct Pool {
    busy: Sockets,
    free: Sockets,
    /// In the order in which the origins have begun to wait.
    waiting: RefCell<Vec<(String, VecDeque<ClientRequest>)>>,
}

impl Pool {
    pub(super) fn busy(&self) -> usize {
        self.busy.borrow().values().map(VecDeque::len).sum()
    }

    pub(super) fn free(&self) -> usize {
        self.free.borrow().values().map(VecDeque::len).sum()
    }

    pub(super) fn waiting(&self) -> usize {
        let waiting = self.waiting.borrow();
        waiting.iter().map(|(_, requests)| requests.len()).sum()
    }

    pub(super) fn all_sockets(&self) -> Vec<Socket> {
        let (free, busy) = (self.free.borrow(), self.busy.borrow());
        let all = free.values().chain(busy.values()).flatten();
        all.map(|pooled| pooled.socket.clone()).collect()
    }

    /// Drops all sockets and requests.
    pub(super) fn clear(&self) {
        let lists = (self.busy.take(), self.free.take(), self.waiting.take());
        for pooled in lists.0.values().chain(lists.1.values()).flatten() {
            pooled.set_request(None);
        }
        drop(lists);
    }

    // Sockets.

    pub(super) fn free_of(&self, name: &str) -> usize {
        count(&self.free, name)
    }

    /// The number of sockets of an origin, busy or free.
    pub(super) fn count_of(&self, name: &str) -> usize {
        count(&self.busy, name) + count(&self.free, name)
    }

    pub(super) fn take_free(&self, name: &str, scheduling: Scheduling) -> Option<Rc<Pooled>> {
        let mut free = self.free.borrow_mut();
        let list = free.get_mut(name)?;
        list.retain(|pooled| !pooled.socket.destroyed());
        let taken = match scheduling {
            Scheduling::Lifo => list.pop_back(),
            Scheduling::Fifo => list.pop_front(),
        };
        if list.is_empty() {
            free.remove(name);
        }
        taken
    }

    pub(super) fn is_free(&self, pooled: &Rc<Pooled>) -> bool {
        let free = self.free.borrow();
        let list = free.get(&pooled.name);
        list.is_some_and(|list| list.iter().any(|other| Rc::ptr_eq(other, pooled)))
    }

    pub(super) fn add_busy(&self, pooled: &Rc<Pooled>) {
        add(&self.busy, pooled);
    }

    pub(super) fn add_free(&self, pooled: &Rc<Pooled>) {
        add(&self.free, pooled);
    }

    pub(super) fn remove_busy(&self, pooled: &Rc<Pooled>) {
        remove(&self.busy, pooled);
    }

    pub(super) fn remove_free(&self, pooled: &Rc<Pooled>) {
        remove(&self.free, pooled);
    }

    // Waiting requests.

    pub(super) fn add_waiting(&self, request: &ClientRequest) {
        let name = request.pool_name();
        let mut waiting = self.waiting.borrow_mut();
        let place = waiting.iter().position(|(known, _)| known == name);
        let place = place.unwrap_or_else(|| {
            waiting.push((name.to_owned(), VecDeque::new()));
            waiting.len() - 1
        });
        waiting[place].1.push_back(request.clone());
    }

    pub(super) fn take_waiting(&self, name: &str) -> Option<ClientRequest> {
        let mut waiting = self.waiting.borrow_mut();
        let place = waiting.iter().position(|(known, _)| known == name)?;
        let taken = waiting[place].1.pop_front();
        if waiting[place].1.is_empty() {
            waiting.remove(place);
        }
        taken
    }

    /// Returns the request that gets a new socket in place of a lost one to `name`: a request to
    /// the same origin, or one to the origin that waits longest if it has no socket.
    pub(super) fn next_waiting(&self, name: &str) -> Option<ClientRequest> {
        let waiting = self.waiting.borrow();
        let same = waiting.iter().find(|(known, _)| known == name);
        let other = || {
            let first = waiting.first()?;
            (count(&self.busy, &first.0) == 0).then_some(first)
        };
        let (_, requests) = same.or_else(other)?;
        requests.front().cloned()
    }
}

fn count(sockets: &Sockets, name: &str) -> usize {
    sockets.borrow().get(name).map_or(0, VecDeque::len)
}

fn add(sockets: &Sockets, pooled: &Rc<Pooled>) {
    let mut sockets = sockets.borrow_mut();
    let list = sockets.entry(pooled.name.clone()).or_default();
    list.push_back(pooled.clone());
}

fn remove(sockets: &Sockets, pooled: &Rc<Pooled>) {
    let mut sockets = sockets.borrow_mut();
    let Some(list) = sockets.get_mut(&pooled.name) else {
        return;
    };
    list.retain(|other| !Rc::ptr_eq(other, pooled));
    if list.is_empty() {
        sockets.remove(&pooled.name);
    }
}
