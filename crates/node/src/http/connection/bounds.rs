//! What bounds a connection: when it is not read, and when it is given up.

use std::time::{Duration, Instant};

use super::Connection;
use crate::error::Error;
use phaseloop::LoopHandle;

/// The number of unanswered requests of one connection above which it is not read.
const MOST_UNANSWERED: usize = 1000;

impl Connection {
    /// Stops reading while the peer does not read the answers, or sends requests faster than they
    /// are answered.
    // H18.
    pub(super) fn pause_if_flooded(&self) {
        let writable = self.socket.writable();
        let is_flooded = writable.need_drain()
            || self.kept.get() >= writable.high_water_mark()
            || self.unanswered() >= MOST_UNANSWERED;
        if is_flooded {
            self.socket.hold_reads(true);
            self.socket.stop_reading();
            self.count_flood();
        }
    }

    /// Returns the number of requests that are not answered.
    fn unanswered(&self) -> usize {
        usize::from(self.current.borrow().is_some()) + self.waiting.borrow().len()
    }

    /// Notes since when too many requests are unanswered, without an answer in between.
    pub(super) fn count_flood(&self) {
        let is_flooded = self.unanswered() >= MOST_UNANSWERED;
        let now = is_flooded.then(|| LoopHandle::current().now());
        self.flooded.set(now);
    }

    /// Continues to read, once enough was answered.
    pub(super) fn drained(&self) {
        let is_below = self.kept.get() <= self.socket.writable().high_water_mark()
            && self.unanswered() < MOST_UNANSWERED;
        if is_below && self.socket.holds_reads() {
            self.socket.hold_reads(false);
            self.socket.read_on();
        }
        let current = self.current.borrow().clone();
        if let Some(response) = current {
            response.sending().socket_drained();
        }
    }

    pub(in crate::http) fn kept_bytes_changed(&self, added: usize, removed: usize) {
        self.kept
            .set((self.kept.get() + added).saturating_sub(removed));
        self.drained();
    }

    pub(in crate::http) fn destroy(&self) {
        self.socket.destroy(None);
    }

    /// Returns whether nothing of a request has come, and all answers were given.
    // H49, H50.
    pub(in crate::http) fn is_idle(&self) -> bool {
        let has_answered = match &*self.current.borrow() {
            Some(response) => response.ended(),
            None => true,
        };
        let is_fresh = || {
            let has_begun = self.message.borrow().is_some() || self.parser.borrow().is_some();
            self.request_count.get() == 0 && !has_begun
        };
        has_answered && (self.started.get().is_none() || is_fresh())
    }

    /// Answers a message that is not complete in time, and destroys a connection that has too many
    /// unanswered requests for as long as a message may take.
    // H37.
    pub(in crate::http) fn expire(&self, now: Instant, headers: Option<u32>, request: Option<u32>) {
        let is_over = |since: Instant, limit: Option<u32>| {
            let age = now.saturating_duration_since(since);
            limit.is_some_and(|limit| age > Duration::from_millis(u64::from(limit)))
        };
        if self
            .flooded
            .get()
            .is_some_and(|since| is_over(since, request))
        {
            // The connection is not read, so that its peer may be gone without a sign.
            return self.socket.destroy(None);
        }
        let Some(started) = self.started.get().filter(|_| !self.is_expired.get()) else {
            return;
        };
        let is_before_body = self.message.borrow().is_none();
        if is_before_body && is_over(started, headers) || is_over(started, request) {
            self.is_expired.set(true);
            let error = Error::with_code("ERR_HTTP_REQUEST_TIMEOUT", "Request timeout");
            self.failed(error, 0, Vec::new());
        }
    }
}
