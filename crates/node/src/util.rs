//! Node's `util`, as far as Rust has a use for it.

use super::promise::{Deferred, Promise};
use super::reason::Reason;

/// Calls `f` with a callback, and returns the promise that the callback settles. JavaScript:
/// `util.promisify(f)(..)`.
///
/// `f` runs inside the call. An `Err` given to the callback rejects the promise, and so does a
/// panic of `f`. Most functions of this crate have a promise form already: [`fs::promises`],
/// [`timers::promises`], [`readline::promises`]. This function is for the others and for the
/// functions of a program.
///
/// [`fs::promises`]: super::fs::promises
/// [`timers::promises`]: super::timers::promises
/// [`readline::promises`]: super::readline::promises
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, run, set_timeout, stream::Writable, util::promisify};
///
/// fn double(n: i32, callback: impl FnOnce(Result<i32, Error>) + 'static) {
///     set_timeout(1, move || callback(Ok(n * 2)));
/// }
///
/// run(async {
///     assert_eq!(promisify(|done| double(21, done)).await.unwrap(), 42);
///     let sink = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
///     promisify(|done| sink.write_with("text", done)).await.unwrap();
/// });
/// ```
// H123.
pub fn promisify<T, E, R>(f: impl FnOnce(Callback<T, E>) -> R) -> Promise<T>
where
    T: Clone + 'static,
    E: Into<Reason> + 'static,
{
    Promise::new(|deferred: Deferred<T>| {
        let callback = move |result: Result<T, E>| deferred.settle(result.map_err(Into::into));
        drop(f(Box::new(callback)));
    })
}

/// The callback that [`promisify`] passes: it gets the result, at most once.
pub type Callback<T, E> = Box<dyn FnOnce(Result<T, E>)>;
