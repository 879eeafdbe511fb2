//! Futures that are given up.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls a future once, and drops it.
#[track_caller]
pub(crate) fn poll_and_drop<F: Future>(future: F) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(future).poll(&mut cx), Poll::Pending));
}
