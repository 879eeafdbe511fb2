//! How a listener of any family accepts: at most one connection a turn, with a rest after errors
//! that stay.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use crate::io::{AsSource, Readiness, Source};
use crate::phase::{self, PhaseFuture};
use crate::runtime::handle::Handle;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::time::Sleep;

/// The default backlog: connections that may wait for `accept`.
pub(super) const BACKLOG: u32 = 1024;

/// How long a listener rests after an error that the next attempt would meet again.
const REST: Duration = Duration::from_millis(10);

/// How many connections in a row may fail by themselves before the listener rests as well.
const FAILURES_IN_A_ROW: u32 = 16;

/// What a listener remembers of its last accepts.
#[derive(Default)]
pub(super) struct Accepted {
    /// The turn of the last one.
    turn: Cell<Option<u64>>,
    /// How many of them failed since one succeeded.
    failures: Cell<u32>,
    /// When the next attempt may be made, in the loop's time.
    rest_until: Cell<Option<Instant>>,
    /// The pause of who polls without a future.
    polled: Cell<Pause>,
}

impl Accepted {
    pub(super) fn is_resting(&self) -> bool {
        self.rest_until.get().is_some()
    }

    /// Returns whether the turn that runs has had its connection.
    fn is_of_this_turn(&self, handle: &LoopHandle) -> bool {
        self.turn.get() == Some(handle.turns())
    }
}

/// A listener of whatever kind.
pub(super) trait Accepts: Handle {
    type Socket: AsSource;
    /// What the socket accepts.
    type Raw;
    /// What it becomes on the loop.
    type Connection;

    fn parts(&self) -> (&Source<Self::Socket>, &Accepted);

    fn accept_raw(socket: &Self::Socket) -> io::Result<Self::Raw>;

    /// Puts a connection on the loop, on behalf of the caller at `site`.
    fn open(&self, raw: Self::Raw, site: Site) -> io::Result<Self::Connection>;
}

/// What an accept waits for before it tries: at most one a turn, and none while the listener rests.
#[derive(Default)]
enum Pause {
    #[default]
    Over,
    Turn(PhaseFuture),
    /// Boxed, since it is rare.
    Rest(Box<Sleep>),
}

impl Pause {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Over => return Poll::Ready(()),
            Self::Turn(turn) => ready!(Pin::new(turn).poll(cx)),
            Self::Rest(sleep) => ready!(Pin::new(&mut **sleep).poll(cx)),
        }
        *self = Self::Over;
        Poll::Ready(())
    }
}

/// Accepts a connection.
///
/// # Cancel safety
///
/// Dropping the future loses no connection, and leaves a rest to the next one.
pub(super) struct Accept<'a, L: Accepts> {
    pub(super) listener: &'a L,
    readiness: Readiness<'a, L::Socket>,
    pause: Pause,
    site: Site,
}

impl<'a, L: Accepts> Accept<'a, L> {
    pub(super) fn new(listener: &'a L, site: Site) -> Self {
        Self {
            listener,
            readiness: listener.parts().0.readable(),
            pause: Pause::Over,
            site,
        }
    }

    /// Polls for a connection that is not put on the loop.
    pub(super) fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<L::Raw>> {
        let readiness = &mut self.readiness;
        poll_with(self.listener, &mut self.pause, self.site, cx, |cx| {
            Pin::new(&mut *readiness).poll(cx)
        })
    }

    pub(super) fn site(&self) -> Site {
        self.site
    }
}

/// No part is ever pinned.
impl<L: Accepts> Unpin for Accept<'_, L> {}

impl<L: Accepts> Future for Accept<'_, L> {
    type Output = io::Result<L::Connection>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let raw = ready!(this.poll_raw(cx));
        Poll::Ready(raw.and_then(|raw| this.listener.open(raw, this.site)))
    }
}

/// Accepts a connection for a caller that keeps no future: the source keeps its waker.
pub(super) fn poll_accept<L: Accepts>(
    listener: &L,
    site: Site,
    cx: &mut Context<'_>,
) -> Poll<io::Result<L::Connection>> {
    let (source, last) = listener.parts();
    // Taken out: a waker that is cloned or dropped may run user code, which may poll as well.
    let mut pause = last.polled.take();
    let result = poll_with(listener, &mut pause, site, cx, |cx| {
        source.poll_readable(cx)
    });
    last.polled.set(pause);
    result.map(|raw| raw.and_then(|raw| listener.open(raw, site)))
}

fn poll_with<L: Accepts>(
    listener: &L,
    pause: &mut Pause,
    site: Site,
    cx: &mut Context<'_>,
    mut poll_readable: impl FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
) -> Poll<io::Result<L::Raw>> {
    let handle = listener.event_loop();
    let (source, last) = listener.parts();
    let accepted = loop {
        ready!(pause.poll(cx));
        if let Some(until) = last.rest_until.get() {
            match until.checked_duration_since(handle.now()) {
                Some(left) if !left.is_zero() => {
                    let sleep = Sleep::after(left, site);
                    // A listener that does not keep the loop alive does not do so by resting.
                    let sleep = if source.has_ref() {
                        sleep
                    } else {
                        sleep.unref()
                    };
                    *pause = Pause::Rest(Box::new(sleep));
                    continue;
                }
                _ => last.rest_until.set(None),
            }
        }
        // Of several who wait, the first may have had this turn's.
        if last.is_of_this_turn(&handle) {
            *pause = Pause::Turn(phase::poll());
            continue;
        }
        ready!(poll_readable(cx))?;
        match source.try_read_with(L::accept_raw) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            accepted => break accepted,
        }
    };
    last.turn.set(Some(handle.turns()));
    match &accepted {
        Ok(_) => {
            last.failures.set(0);
            // There may have been no number for it when it was to be taken back.
            sys::socket::keep_reserve();
        }
        Err(error) => {
            let failures = last.failures.get() + 1;
            last.failures.set(failures);
            if would_fail_again(source, error, failures, L::accept_raw) {
                last.rest_until.set(Some(handle.now() + REST));
            }
        }
    }
    Poll::Ready(accepted)
}

/// Deals with an error: whether the next attempt would meet it, too. Turns the waiting connections
/// away if there is no descriptor for them.
fn would_fail_again<L: AsSource, C>(
    listener: &Source<L>,
    error: &io::Error,
    failures: u32,
    accept: impl Fn(&L) -> io::Result<C>,
) -> bool {
    if sys::socket::is_of_one_connection(error) {
        return failures >= FAILURES_IN_A_ROW;
    }
    if !sys::socket::is_out_of_descriptors(error) {
        return true;
    }
    let all_turned_away = sys::socket::with_spare(|| {
        loop {
            match listener.try_read_with(&accept) {
                Ok(connection) => drop(connection),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    });
    all_turned_away != Some(true)
}
