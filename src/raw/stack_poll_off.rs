//! Without the feature `stacks` no poll asks where a future waits; see `stack_poll.rs`.

use std::task::Context;

/// Calls `poll`.
#[inline]
pub(crate) fn poll_with<R>(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
    poll(cx)
}
