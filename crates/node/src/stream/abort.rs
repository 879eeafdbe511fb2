//! Streams that a signal destroys.

use std::rc::Rc;

use super::finished::{AnyStream, EndOfStream, Sides};
use crate::abort::AbortSignal;
use crate::error::Error;

/// Destroys `stream` with an `AbortError` when `signal` is aborted; at once if it was aborted
/// before. The error counts as handled: the stream needs no listener for it. JavaScript:
/// `stream.addAbortSignal(signal, stream)`, the option `{ signal }` of a stream.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortController, Exit, run, stream::{Readable, add_abort_signal}};
/// use phaseloop::stream::StreamExt;
///
/// fn main() -> Exit<()> {
///     run(async {
///         let controller = AbortController::new();
///         let endless = Readable::from_iter(0..);
///         add_abort_signal(&controller.signal(), &endless);
///         let mut chunks = endless.chunks();
///         assert_eq!(chunks.next().await.unwrap().unwrap(), 0);
///         controller.abort();
///         assert_eq!(chunks.next().await.unwrap().unwrap_err().name(), "AbortError");
///     })
/// }
/// ```
pub fn add_abort_signal(signal: &AbortSignal, stream: &impl AnyStream) {
    let base = stream.base();
    if let Some(reason) = signal.reason() {
        return base.destroy(Some(Error::aborted_by(reason)));
    }
    let (weak, known) = (Rc::downgrade(base), signal.downgrade());
    // The signal holds what it may abort, as in JavaScript, until the stream has ended.
    let held = base.hold();
    let listener = signal.on_abort(move || {
        let _held = &held;
        let reason = known.upgrade().and_then(|signal| signal.reason());
        if let (Some(base), Some(reason)) = (weak.upgrade(), reason) {
            base.destroy(Some(Error::aborted_by(reason)));
        }
    });
    let known = signal.downgrade();
    let over = move |_: Result<(), Error>| {
        if let Some(signal) = known.upgrade() {
            signal.off(listener);
        }
    };
    EndOfStream::new(base, Sides::of(base), true, Box::new(over)).keep();
}
