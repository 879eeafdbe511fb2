//! How a listener of any family accepts: at most one connection a turn, with a rest after errors
//! that stay.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use crate::event_loop::api::handle::Handle;
use crate::io::{AsSource, Source};
use crate::phase;
use crate::site::Site;
use crate::sys;
use crate::time::sleep_at;

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
}

impl Accepted {
    #[allow(dead_code, reason = "called by the layer for Node only")]
    pub(super) fn is_resting(&self) -> bool {
        self.rest_until.get().is_some()
    }
}

/// Accepts a connection of whatever kind of listener: at most one a turn, and none while the
/// listener rests.
pub(super) async fn accept_one<L: AsSource, C>(
    listener: &Source<L>,
    last: &Accepted,
    site: Site,
    accept: impl Fn(&L) -> io::Result<C>,
) -> io::Result<C> {
    let handle = listener.event_loop();
    let accepted = loop {
        rest(listener, last, site).await;
        if last.turn.get() == Some(handle.turns()) {
            phase::poll().await;
        }
        listener.readable().await?;
        // Of several who wait, the first may have had this turn's, or may have met an error that
        // stays.
        if last.turn.get() == Some(handle.turns()) || last.rest_until.get().is_some() {
            continue;
        }
        match listener.try_read_with(&accept) {
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
            if would_fail_again(listener, error, failures, &accept) {
                last.rest_until.set(Some(handle.now() + REST));
            }
        }
    }
    accepted
}

/// Waits until the listener has rested. A future that is given up meanwhile leaves the rest to the
/// next one.
async fn rest<L: AsSource>(listener: &Source<L>, last: &Accepted, site: Site) {
    while let Some(until) = last.rest_until.get() {
        let now = listener.event_loop().now();
        if until <= now {
            last.rest_until.set(None);
            return;
        }
        let sleep = sleep_at(until - now, site);
        // A listener that does not keep the loop alive does not do so by resting.
        if listener.has_ref() {
            sleep.await;
        } else {
            sleep.unref().await;
        }
    }
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
