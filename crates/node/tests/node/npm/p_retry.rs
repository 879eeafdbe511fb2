//! A port of the package `p-retry` with its `is-network-error`: calls an async function until it
//! succeeds.

use std::fmt;
use std::rc::Rc;

use phaseloop_node::perf_hooks::performance;
use phaseloop_node::{
    AbortSignal, Error, Promise, Reason, catch, clear_timeout, set_timeout, try_call,
};

/// Ends the attempts. The promise is rejected with the inner error.
#[derive(Debug)]
pub(crate) struct AbortError(Reason);

impl AbortError {
    pub(crate) fn new(error: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self(Reason::new(error))
    }
}

impl fmt::Display for AbortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for AbortError {}

/// What the functions of the options get.
pub(crate) struct Failure {
    pub(crate) error: Reason,
    pub(crate) attempt_number: u32,
    pub(crate) retries_left: f64,
    pub(crate) retries_consumed: u32,
}

pub(crate) type Hook<T> = Box<dyn Fn(&Failure) -> Promise<T>>;

pub(crate) struct Options {
    pub(crate) retries: f64,
    pub(crate) factor: f64,
    pub(crate) min_timeout: f64,
    pub(crate) max_timeout: f64,
    pub(crate) max_retry_time: f64,
    /// Returns a number from 0 to 1: JavaScript's `randomize` takes `Math.random`.
    pub(crate) randomize: Option<fn() -> f64>,
    pub(crate) unref: bool,
    pub(crate) signal: Option<AbortSignal>,
    pub(crate) on_failed_attempt: Hook<()>,
    pub(crate) should_retry: Hook<bool>,
    pub(crate) should_consume_retry: Hook<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retries: 10.0,
            factor: 2.0,
            min_timeout: 1000.0,
            max_timeout: f64::INFINITY,
            max_retry_time: f64::INFINITY,
            randomize: None,
            unref: false,
            signal: None,
            on_failed_attempt: Box::new(|_| Promise::resolved(())),
            should_retry: Box::new(|_| Promise::resolved(true)),
            should_consume_retry: Box::new(|_| Promise::resolved(true)),
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        if self.retries < 0.0 {
            let text = "Expected `retries` to be a non-negative number.";
            return Err(Error::type_error(text));
        }
        if self.retries.is_nan() {
            let text = "Expected `retries` to be a valid number or Infinity, got NaN.";
            return Err(Error::type_error(text));
        }
        check_number("factor", self.factor, false)?;
        check_number("minTimeout", self.min_timeout, false)?;
        check_number("maxTimeout", self.max_timeout, true)?;
        check_number("maxRetryTime", self.max_retry_time, true)
    }

    fn throw_if_aborted(&self) -> Result<(), Error> {
        let signal = self.signal.as_ref();
        signal.map_or(Ok(()), AbortSignal::throw_if_aborted)
    }

    fn delay(&self, retries_consumed: u32) -> f64 {
        let random = self.randomize.map_or(1.0, |random| random() + 1.0);
        let factor = if self.factor > 0.0 { self.factor } else { 1.0 };
        let delay = random * self.min_timeout * factor.powi(retries_consumed as i32);
        delay.round().min(self.max_timeout)
    }

    fn remaining_time(&self, start: f64) -> f64 {
        self.max_retry_time - (performance::now() - start)
    }
}

fn check_number(name: &str, value: f64, allows_infinity: bool) -> Result<(), Error> {
    let problem = if value.is_nan() {
        let more = if allows_infinity { " or Infinity" } else { "" };
        format!("to be a number{more}.")
    } else if value.is_infinite() && !allows_infinity {
        "to be a finite number.".to_owned()
    } else if value < 0.0 {
        "to be ≥ 0.".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::type_error(format!("Expected `{name}` {problem}")))
}

fn is_network_error(error: &Reason) -> bool {
    let message = error.to_string();
    let starts = ["error sending request for url", "Failed to fetch ("];
    let texts = [
        "network error",
        "NetworkError when attempting to fetch resource.",
        "The Internet connection appears to be offline.",
        "Network request failed",
        "fetch failed",
        "terminated",
        " A network error occurred.",
        "Network connection lost",
        "Failed to fetch",
    ];
    let is_known = texts.contains(&&*message) || starts.iter().any(|s| message.starts_with(s));
    error.name() == "TypeError" && is_known
}

pub(crate) fn p_retry<T: Clone + 'static>(
    input: impl Fn(u32) -> Promise<T> + 'static,
    options: impl Into<Rc<Options>>,
) -> Promise<T> {
    let options = options.into();
    try_call(async move {
        options.check()?;
        options.throw_if_aborted()?;
        let start = performance::now();
        let (mut attempt_number, mut retries_consumed) = (0, 0);
        loop {
            attempt_number += 1;
            let error = match attempt(&input, attempt_number, &options).await {
                Ok(value) => return Ok::<T, Reason>(value),
                Err(error) => error,
            };
            let failure = Failure {
                retries_left: (options.retries - f64::from(retries_consumed)).max(0.0),
                error,
                attempt_number,
                retries_consumed,
            };
            let handled = try_call(handle_failure(failure, start, options.clone()));
            retries_consumed += u32::from(handled.await?);
        }
    })
}

async fn attempt<T: Clone + 'static>(
    input: &impl Fn(u32) -> Promise<T>,
    number: u32,
    options: &Options,
) -> Result<T, Reason> {
    options.throw_if_aborted()?;
    let value = catch(|| input(number))?.await?;
    options.throw_if_aborted()?;
    Ok(value)
}

/// Waits for the next attempt. Returns whether it counts as a retry.
async fn handle_failure(
    failure: Failure,
    start: f64,
    options: Rc<Options>,
) -> Result<bool, Reason> {
    if let Some(AbortError(inner)) = failure.error.downcast_ref() {
        return Err(inner.clone());
    }
    catch(|| (options.on_failed_attempt)(&failure))?.await?;
    if options.remaining_time(start) <= 0.0 {
        return Err(failure.error);
    }
    let is_consumed = catch(|| (options.should_consume_retry)(&failure))?.await?;
    let remaining = options.remaining_time(start);
    if remaining <= 0.0 || failure.retries_left <= 0.0 {
        return Err(failure.error);
    }
    let is_fault = failure.error.name() == "TypeError" && !is_network_error(&failure.error);
    if is_fault && is_consumed {
        return Err(failure.error);
    }
    if !is_fault && !catch(|| (options.should_retry)(&failure))?.await? {
        return Err(failure.error);
    }
    options.throw_if_aborted()?;
    if !is_consumed {
        return Ok(false);
    }
    let delay = options.delay(failure.retries_consumed).min(remaining);
    if delay > 0.0 {
        wait(delay, &options).await?;
    }
    options.throw_if_aborted()?;
    Ok(true)
}

async fn wait(delay: f64, options: &Options) -> Result<(), Reason> {
    let mut listener = None;
    let waited = Promise::new(|deferred| {
        let aborted = deferred.clone();
        let timer = set_timeout(delay, move || deferred.resolve(()));
        if options.unref {
            timer.unref();
        }
        if let Some(signal) = options.signal.clone() {
            let reason = signal.clone();
            let on_abort = move || {
                clear_timeout(&timer);
                aborted.reject(reason.reason().expect("it was aborted"));
            };
            listener = Some((signal.on_abort(on_abort), signal));
        }
    });
    let result = waited.await;
    if let Some((listener, signal)) = listener {
        signal.off(listener);
    }
    result
}

pub(crate) fn make_retriable<A: Clone + 'static, T: Clone + 'static>(
    function: impl Fn(A) -> Promise<T> + 'static,
    options: Options,
) -> impl Fn(A) -> Promise<T> {
    let (function, options) = (Rc::new(function), Rc::new(options));
    move |arguments| {
        let function = function.clone();
        p_retry(move |_| function(arguments.clone()), options.clone())
    }
}
