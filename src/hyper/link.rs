//! What a server knows of one of its connections: what the peer has to do next, and since when.
//!
//! ```text
//!   Opening ── first byte ──> Head ── head complete ──> Busy ── last answer done ──> Idle ─┐
//!                              └──────────────── first byte of the next request ───────────┘
//! ```
//!
//! Nothing here is timed with every request: a request sets some cells, and a timer of the
//! connection looks at them when the shortest limit has passed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use super::serve_error::ServeError;
use crate::clock::{NEVER, nanoseconds};
use crate::runtime::loop_handle::LoopHandle;

const MILLISECOND: u64 = 1_000_000;

/// How long a peer may take, in nanoseconds; [`NEVER`] is no limit.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    header: u64,
    idle: u64,
    write: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = |count| nanoseconds(Duration::from_secs(count));
        Self {
            header: seconds(30),
            idle: seconds(75),
            write: seconds(30),
        }
    }
}

impl Limits {
    pub(super) fn set_header(&mut self, limit: Option<Duration>) {
        self.header = limit.map_or(NEVER, nanoseconds);
    }

    pub(super) fn set_idle(&mut self, limit: Option<Duration>) {
        self.idle = limit.map_or(NEVER, nanoseconds);
    }

    pub(super) fn set_write(&mut self, limit: Option<Duration>) {
        self.write = limit.map_or(NEVER, nanoseconds);
    }

    /// Returns how long a check that found nothing due is good for. Not less than a millisecond: a
    /// limit of zero must not have the loop check without a pause.
    fn shortest(&self) -> u64 {
        self.header.min(self.idle).min(self.write).max(MILLISECOND)
    }
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// The handshake, or the first byte.
    Opening,
    /// The rest of a request's head.
    Head,
    /// The next request.
    Idle,
    /// The service, or the end of its answers.
    Busy,
    /// The end of the connection, which was requested.
    Closing,
}

/// What the server asks of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Serving,
    /// Answer what is under way, then close.
    Draining,
    /// Close, because the time for draining is over.
    OutOfTime,
    /// Close, because the server was dropped.
    Abandoned,
}

/// Why a limit ends a connection.
pub(super) enum Due {
    /// There was no request for too long: the connection is closed as if by a shutdown.
    Idle,
    Fault(ServeError),
}

/// The state of a connection, which its I/O, its service and its server share.
pub(super) struct Link {
    handle: LoopHandle,
    limits: Limits,
    awaits: Cell<Awaits>,
    /// Since when.
    since: Cell<u64>,
    /// Since when a write waits for the peer, or [`NEVER`].
    write_waits_since: Cell<u64>,
    /// The requests that are under way: until the service has answered, and the body of the answer
    /// was dropped.
    requests: Cell<usize>,
    /// HTTP/2 has frames that belong to no request, so its bytes do not begin one.
    is_http2: Cell<bool>,
    stage: Cell<Stage>,
    /// The task of the connection.
    waker: RefCell<Option<Waker>>,
}

impl Link {
    pub(super) fn new(handle: LoopHandle, limits: Limits) -> Rc<Self> {
        let since = Cell::new(handle.core().executor.clock.now());
        Rc::new(Self {
            handle,
            limits,
            awaits: Cell::new(Awaits::Opening),
            since,
            write_waits_since: Cell::new(NEVER),
            requests: Cell::new(0),
            is_http2: Cell::new(false),
            stage: Cell::new(Stage::Serving),
            waker: RefCell::new(None),
        })
    }

    pub(super) fn handle(&self) -> &LoopHandle {
        &self.handle
    }

    /// Returns the loop's cached time.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.handle.core().executor.clock.now()
    }

    fn set(&self, awaits: Awaits) {
        self.awaits.set(awaits);
        self.since.set(self.now());
    }

    /// Bytes have come.
    #[inline]
    pub(super) fn has_read(&self) {
        match self.awaits.get() {
            Awaits::Opening => self.awaits.set(Awaits::Head),
            Awaits::Idle if !self.is_http2.get() => self.set(Awaits::Head),
            _ => {}
        }
    }

    /// The peer has taken bytes.
    #[inline]
    pub(super) fn has_written(&self) {
        self.write_waits_since.set(NEVER);
    }

    /// The peer takes no bytes.
    pub(super) fn write_waits(&self) {
        if self.write_waits_since.get() == NEVER {
            self.write_waits_since.set(self.now());
        }
    }

    /// From here on the connection speaks HTTP/2.
    pub(super) fn is_http2(&self) {
        self.is_http2.set(true);
        self.set(Awaits::Idle);
    }

    /// A request has come.
    #[inline]
    pub(super) fn begin(self: &Rc<Self>) -> Request {
        self.requests.set(self.requests.get() + 1);
        self.awaits.set(Awaits::Busy);
        Request(self.clone())
    }

    /// Returns whether a part of a request has come, but not yet its whole head.
    pub(super) fn is_within_head(&self) -> bool {
        self.awaits.get() == Awaits::Head
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage.get()
    }

    /// Asks the connection to close.
    pub(super) fn set_stage(&self, stage: Stage) {
        self.stage.set(stage);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Remembers the task of the connection.
    #[inline]
    pub(super) fn keep_waker(&self, waker: &Waker) {
        let mut kept = self.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }

    /// Returns when to look next, or which limit has passed.
    pub(super) fn next_check(&self) -> Result<u64, Due> {
        let now = self.now();
        let write = self.write_waits_since.get();
        let write = write.saturating_add(self.limits.write);
        if write <= now {
            return Err(Due::Fault(ServeError::WriteTimeout));
        }
        let (limit, due) = match self.awaits.get() {
            Awaits::Opening | Awaits::Head => {
                let fault = Due::Fault(ServeError::HeaderTimeout);
                (self.limits.header, fault)
            }
            Awaits::Idle => (self.limits.idle, Due::Idle),
            Awaits::Closing => (self.limits.header, Due::Idle),
            Awaits::Busy => (NEVER, Due::Idle),
        };
        let deadline = self.since.get().saturating_add(limit);
        if deadline <= now {
            return Err(due);
        }
        // What begins to wait after this check has its whole limit still to go.
        let unknown = now.saturating_add(self.limits.shortest());
        Ok(deadline.min(write).min(unknown))
    }

    /// The end of the connection was requested. Its peer may take part in it for as
    /// long as for a head.
    pub(super) fn is_closing(&self) {
        if self.requests.get() == 0 {
            self.set(Awaits::Closing);
        }
    }
}

/// A request that is under way.
pub(super) struct Request(Rc<Link>);

impl Drop for Request {
    #[inline]
    fn drop(&mut self) {
        let link = &self.0;
        link.requests.set(link.requests.get() - 1);
        if link.requests.get() == 0 {
            link.set(Awaits::Idle);
        }
    }
}
