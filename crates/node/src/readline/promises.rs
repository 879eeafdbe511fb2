//! Questions whose answers are promises: Node's `readline/promises`.
//!
//! ```
//! use phaseloop_node::{Exit, readline, run, stream::Readable};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let input = Readable::from_iter([b"Ada\n".to_vec()]); // `process::stdin()` in a program
//!         let rl = readline::create_interface(&input);
//!         let name = readline::promises::question(&rl, "who? ").await.unwrap();
//!         assert_eq!(name, "Ada");
//!     })
//! }
//! ```

use std::rc::Rc;

use super::{Abort, Interface, cancel};
use crate::abort::AbortSignal;
use crate::error::Error;
use crate::promise::{Deferred, Promise};

/// Asks a question, as [`Interface::question`] does, and returns the promise of the answer.
/// JavaScript: `await rl.question(query)` of `readline/promises`.
///
/// As in Node, the promise stays pending if another question is open, and if the interface is
/// closed before the answer. A program that waits for it then ends with the status 13, unless
/// something else keeps its loop alive; a listener for [`CLOSE`](super::CLOSE) receives the end of
/// the input.
///
/// # Errors
///
/// The promise is rejected with `ERR_USE_AFTER_CLOSE` if the interface is closed.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, readline, run, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let rl = readline::create_interface(&Readable::from_iter([b"42\n".to_vec()]));
///         let answer = readline::promises::question(&rl, "how many? ").await.unwrap();
///         assert_eq!(answer, "42");
///     })
/// }
/// ```
// H114.
pub fn question(interface: &Interface, query: &str) -> Promise<String> {
    let answer = Deferred::new();
    let answered = answer.clone();
    let asked = interface.question(query, move |line| answered.resolve(line));
    if let Err(error) = asked {
        answer.reject(error);
    }
    answer.promise()
}

/// Asks a question that `signal` cancels; see [`question`]. The interface then emits the next line
/// as usual, and writes a line end. JavaScript: `await rl.question(query, { signal })`.
///
/// # Errors
///
/// The promise is rejected with an `AbortError` when the signal is aborted, and as [`question`]
/// describes.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AbortSignal, Exit, readline, run, set_timeout, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let rl = readline::create_interface(&Readable::bytes().build());
///         let signal = AbortSignal::timeout(5);
///         set_timeout(50, || ()); // a signal does not keep the loop alive
///         let answer = readline::promises::question_with_signal(&rl, "still there? ", &signal);
///         assert_eq!(answer.await.unwrap_err().name(), "AbortError");
///     })
/// }
/// ```
pub fn question_with_signal(
    interface: &Interface,
    query: &str,
    signal: &AbortSignal,
) -> Promise<String> {
    if let Some(reason) = signal.reason() {
        return Promise::rejected(Error::aborted_by(reason));
    }
    let answer = Deferred::new();
    let (answered, aborted) = (answer.clone(), answer.clone());
    let (weak, known) = (Rc::downgrade(&interface.inner), signal.downgrade());
    let listener = signal.on_abort(move || {
        cancel(&weak);
        if let Some(reason) = known.upgrade().and_then(|signal| signal.reason()) {
            aborted.reject(Error::aborted_by(reason));
        }
    });
    let kept = answer.clone();
    let abort = Abort {
        signal: signal.clone(),
        listener,
        // Beside the one of the listener and this one.
        is_awaited: Box::new(move || kept.is_awaited(2)),
    };
    let callback = Box::new(move |line| answered.resolve(line));
    if let Err(error) = interface.inner.ask(query, callback, Some(abort)) {
        answer.reject(error);
    }
    answer.promise()
}
