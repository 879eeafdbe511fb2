//! A limit of the time that a promise may take.

use std::cell::OnceCell;
use std::rc::Rc;

use phaseloop_node::{Error, Promise, clear_timeout, set_timeout};

/// Rejects with a `TimeoutError` if the promise is not settled in time.
pub(super) fn p_timeout<T: Clone + 'static>(
    promise: &Promise<T>,
    ms: u64,
    message: String,
) -> Promise<T> {
    let timer = Rc::new(OnceCell::new());
    let wrapped = Promise::new(|deferred| {
        let first = deferred.clone();
        promise.then_result(move |result| match result {
            Ok(value) => first.resolve(value),
            Err(reason) => first.reject(reason),
        });
        let reject = move || deferred.reject(Error::named("TimeoutError", message));
        timer.get_or_init(|| set_timeout(ms, reject));
    });
    wrapped.finally(move || clear_timeout(timer.get().expect("it is set")))
}
