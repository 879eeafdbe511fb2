//! Node's `util`, as far as Rust has a use for it.
//!
//! ```
//! use phaseloop_node::{Error, Exit, run, set_timeout, stream::Writable, util::promisify};
//!
//! fn double(n: i32, callback: impl FnOnce(Result<i32, Error>) + 'static) {
//!     set_timeout(1, move || callback(Ok(n * 2)));
//! }
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         assert_eq!(promisify(|done| double(21, done)).await.unwrap(), 42);
//!         let sink = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
//!         promisify(|done| sink.write_with("text", done)).await.unwrap();
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `util.promisify(f)` | [`promisify`] |
//! | `util.callbackify(f)` | [`callbackify`] |
//! | `util.aborted(signal, resource)` | [`aborted`] |
//! | `util.debuglog(section)` | [`debuglog`] |
//! | `util.deprecate(f, text, code)` | [`deprecate`] |

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::abort::AbortSignal;
use super::context::Node;
use super::process::Warning;
use super::promise::{Deferred, Promise};
use super::reason::Reason;
use phaseloop::extension::stderr;
use phaseloop::task::next_tick;

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
/// use phaseloop_node::{Error, Exit, run, set_timeout, stream::Writable, util::promisify};
///
/// fn double(n: i32, callback: impl FnOnce(Result<i32, Error>) + 'static) {
///     set_timeout(1, move || callback(Ok(n * 2)));
/// }
///
/// fn main() -> Exit<()> {
///     run(async {
///         assert_eq!(promisify(|done| double(21, done)).await.unwrap(), 42);
///         let sink = Writable::bytes(|_: Vec<u8>, done| done.ok()).build();
///         promisify(|done| sink.write_with("text", done)).await.unwrap();
///     })
/// }
/// ```
// H123.
pub fn promisify<T, E, R>(f: impl FnOnce(Callback<T, E>) -> R) -> Promise<T>
where
    T: Clone + 'static,
    E: Into<Box<dyn std::error::Error>> + 'static,
{
    Promise::new(|deferred: Deferred<T>| {
        let callback = move |result: Result<T, E>| deferred.settle(result.map_err(Reason::new));
        drop(f(Box::new(callback)));
    })
}

/// The callback that [`promisify`] passes: it gets the result, at most once.
pub type Callback<T, E> = Box<dyn FnOnce(Result<T, E>)>;

/// Calls `callback` with the result of a promise, on a tick of its own: an error that it throws is
/// an uncaught exception, and rejects nothing. JavaScript: `util.callbackify(f)(.., callback)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, try_call, util::callbackify};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let parsed = try_call(async { "42".parse::<i32>() });
///         callbackify(&parsed, |result| assert_eq!(result.unwrap(), 42));
///     })
/// }
/// ```
// N155.
pub fn callbackify<T: Clone + 'static>(
    promise: &Promise<T>,
    callback: impl FnOnce(Result<T, Reason>) + 'static,
) {
    promise.then_result(move |result| next_tick(move || callback(result)));
}

/// Returns a promise that is fulfilled when the signal is aborted, while `resource` lives. The
/// promise holds the resource weakly, and is pending forever once the resource is dropped.
/// JavaScript: `util.aborted(signal, resource)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
/// use phaseloop_node::{AbortController, Exit, run, util::aborted};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let (controller, cache) = (AbortController::new(), Rc::new("a cache"));
///         let promise = aborted(&controller.signal(), &cache);
///         controller.abort();
///         promise.await.unwrap();
///     })
/// }
/// ```
// N155.
#[must_use]
pub fn aborted<T: ?Sized + 'static>(signal: &AbortSignal, resource: &Rc<T>) -> Promise<()> {
    let aborted = Deferred::new();
    let promise = aborted.promise();
    if signal.aborted() {
        aborted.resolve(());
        return promise;
    }
    let resource = Rc::downgrade(resource);
    signal.on_abort(move || {
        if resource.strong_count() > 0 {
            aborted.resolve(());
        }
    });
    promise
}

/// Returns a function that calls `f`, and emits a `DeprecationWarning` at its first call. Of the
/// functions with one code, the first call of any warns. JavaScript: `util.deprecate(f, text,
/// code)`.
///
/// # Panics
///
/// The function panics when no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run, util::deprecate};
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::on_warning(|warning| assert_eq!(warning.code(), Some("APP01")));
///         let add = deprecate(|(a, b)| a + b, "add() is deprecated, write +", "APP01");
///         assert_eq!(add((1, 2)), 3);
///     })
/// }
/// ```
// N155.
pub fn deprecate<A, R>(
    f: impl Fn(A) -> R,
    text: &'static str,
    code: impl Into<Option<&'static str>>,
) -> impl Fn(A) -> R {
    let (code, warned) = (code.into(), Cell::new(false));
    move |argument| {
        if !warned.replace(true) {
            let is_new = code.is_none_or(|code| Node::current().process.deprecates(code));
            let warning = Warning::new("DeprecationWarning", text);
            match code {
                _ if !is_new => {}
                Some(code) => warning.with_code(code).emit(),
                None => warning.emit(),
            }
        }
        f(argument)
    }
}

/// Returns the log of a section of the program. It prints to standard error if the variable
/// `NODE_DEBUG` names the section: names with commas between them, in any case, with `*` for any
/// text. JavaScript: `util.debuglog(section)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::util::debuglog;
///
/// fn main() {
///     let log = debuglog("cache");
///     // With NODE_DEBUG=cache: "CACHE 4711: 3 entries".
///     log.print(format_args!("{} entries", 3));
/// }
/// ```
#[must_use]
pub fn debuglog(section: &str) -> DebugLog {
    let wanted = std::env::var("NODE_DEBUG").unwrap_or_default();
    let section = section.to_uppercase();
    let mut names = wanted.split(',').map(|name| name.trim().to_uppercase());
    let enabled = names.any(|name| !name.is_empty() && matches(&name, &section));
    DebugLog { section, enabled }
}

/// A log of [`debuglog`].
#[derive(Clone, Debug)]
pub struct DebugLog {
    section: String,
    enabled: bool,
}

impl DebugLog {
    /// Returns whether the log prints. JavaScript: `log.enabled`.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Prints a line with the section and the id of the process, if the log is enabled.
    /// JavaScript: `log(text)`.
    pub fn print(&self, text: fmt::Arguments<'_>) {
        if self.enabled {
            let (section, id) = (&self.section, std::process::id());
            stderr::print(format_args!("{section} {id}: {text}"));
        }
    }
}

/// Returns whether a text is what a pattern with `*` describes.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text) in [
            ("NET", "NET"),
            ("*", "NET"),
            ("HTTP*", "HTTP"),
            ("*A*B", "XAYB"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("NET", "NETS"), ("HTTP*", "HTT"), ("*A", "AB"), ("", "A")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
