//! What `p_retry.mjs` does, with the port.

use phaseloop_node::timers::promises::set_timeout as sleep;
use phaseloop_node::{
    AbortController, Error, Promise, Reason, queue_microtask, set_timeout, throw, try_call,
};

use super::p_retry::{AbortError, Hook, Options, make_retriable, p_retry};
use super::{Log, prints};

fn report<T: Clone + std::fmt::Display + 'static>(log: &Log, promise: &Promise<T>) -> Promise<()> {
    let log = log.clone();
    promise.then_result(move |result| match result {
        Ok(value) => log.stamp(format_args!("value {value}")),
        Err(error) => log.stamp(format_args!("{}: {error}", error.name())),
    })
}

/// Fails until the given attempt.
fn until(log: &Log, last: u32) -> impl Fn(u32) -> Promise<u32> + use<> {
    let log = log.clone();
    move |attempt| {
        let log = log.clone();
        try_call(async move {
            log.stamp(format_args!("attempt {attempt}"));
            match attempt < last {
                true => Err(Error::new(format!("no {attempt}"))),
                false => Ok(attempt),
            }
        })
    }
}

fn on_failed_attempt(log: &Log) -> Hook<()> {
    let log = log.clone();
    Box::new(move |failure| {
        let left = match failure.retries_left {
            f64::INFINITY => "Infinity".to_owned(),
            left => left.to_string(),
        };
        let (error, number) = (&failure.error, failure.attempt_number);
        let consumed = failure.retries_consumed;
        log.log(format_args!("failed {error}: {number} {left} {consumed}"));
        Promise::resolved(())
    })
}

/// The options of most parts.
fn logged(log: &Log, min_timeout: f64) -> Options {
    Options {
        min_timeout,
        on_failed_attempt: on_failed_attempt(log),
        ..Options::default()
    }
}

fn ladder(log: &Log, step: u32, steps: u32) {
    let log = log.clone();
    queue_microtask(move || {
        log.log(format_args!("tick {step}"));
        if step < steps {
            ladder(&log, step + 1, steps);
        }
    });
}

#[test]
fn the_port_of_p_retry_prints_what_the_package_prints() {
    prints(include_str!("p_retry.expected"), |log| async move {
        delays(&log).await.unwrap();
        microtasks(&log).await.unwrap();
        errors(&log).await.unwrap();
        functions(&log).await.unwrap();
        signal(&log).await.unwrap();
        options(&log).await.unwrap();
    });
}

async fn delays(log: &Log) -> Result<(), Reason> {
    log.part("delays");
    report(log, &p_retry(until(log, 4), logged(log, 100.0))).await?;
    log.part("no retries left");
    let options = Options {
        retries: 2.0,
        ..logged(log, 100.0)
    };
    report(log, &p_retry(until(log, 9), options)).await?;
    log.part("factor");
    let options = Options {
        min_timeout: 100.0,
        factor: 3.0,
        max_timeout: 300.0,
        ..Options::default()
    };
    report(log, &p_retry(until(log, 5), options)).await?;
    log.part("no factor");
    let options = Options {
        factor: 0.0,
        retries: f64::INFINITY,
        ..logged(log, 100.0)
    };
    report(log, &p_retry(until(log, 3), options)).await?;
    log.part("time for retries");
    let options = Options {
        min_timeout: 100.0,
        max_retry_time: 230.0,
        ..Options::default()
    };
    let slow = {
        let log = log.clone();
        move |attempt| {
            let log = log.clone();
            try_call(async move {
                log.stamp(format_args!("attempt {attempt}"));
                sleep(50, ()).await?;
                Err::<u32, Reason>(Error::new(format!("no {attempt}")).into())
            })
        }
    };
    report(log, &p_retry(slow, options)).await
}

async fn microtasks(log: &Log) -> Result<(), Reason> {
    log.part("microtasks");
    let ended = report(log, &p_retry(until(log, 3), logged(log, 0.0)));
    ladder(log, 1, 20);
    ended.await?;
    sleep(10, ()).await
}

async fn errors(log: &Log) -> Result<(), Reason> {
    log.part("errors");
    let stop = |_| -> Promise<u32> { throw(AbortError::new("stop")) };
    report(log, &p_retry(stop, logged(log, 1000.0))).await?;
    let inner = || AbortError::new(Error::range_error("inner"));
    let inner = move |_| try_call(async move { Err::<u32, _>(inner()) });
    report(log, &p_retry(inner, logged(log, 1000.0))).await?;
    let fault = |_| -> Promise<u32> { throw(Error::type_error("a fault of the program")) };
    report(log, &p_retry(fault, logged(log, 1000.0))).await?;
    log.part("network errors");
    let network = |attempt| match attempt {
        3 => Promise::resolved(attempt),
        _ => throw(Error::type_error("fetch failed")),
    };
    report(log, &p_retry(network, logged(log, 50.0))).await
}

async fn functions(log: &Log) -> Result<(), Reason> {
    log.part("functions of the options");
    let options = Options {
        min_timeout: 50.0,
        on_failed_attempt: Box::new(|_| throw("enough")),
        ..Options::default()
    };
    report(log, &p_retry(until(log, 9), options)).await?;
    let options = Options {
        min_timeout: 50.0,
        should_retry: Box::new(|failure| Promise::resolved(failure.attempt_number < 2)),
        ..Options::default()
    };
    report(log, &p_retry(until(log, 9), options)).await?;
    log.part("retries that do not count");
    let options = Options {
        retries: 1.0,
        should_consume_retry: Box::new(|failure| {
            Promise::resolved(failure.attempt_number % 2 == 0)
        }),
        ..logged(log, 100.0)
    };
    report(log, &p_retry(until(log, 5), options)).await
}

async fn signal(log: &Log) -> Result<(), Reason> {
    log.part("signal");
    let controller = AbortController::new();
    let signal = controller.signal();
    set_timeout(150, move || controller.abort_with(Error::new("aborted")));
    let options = Options {
        signal: Some(signal.clone()),
        ..logged(log, 100.0)
    };
    report(log, &p_retry(until(log, 9), options)).await?;
    let options = Options {
        signal: Some(signal),
        ..Options::default()
    };
    report(log, &p_retry(until(log, 1), options)).await
}

async fn options(log: &Log) -> Result<(), Reason> {
    log.part("options");
    let all = Options::default;
    let wrong = [
        Options {
            retries: -1.0,
            ..all()
        },
        Options {
            retries: f64::NAN,
            ..all()
        },
        Options {
            factor: -1.0,
            ..all()
        },
        Options {
            min_timeout: f64::INFINITY,
            ..all()
        },
    ];
    for options in wrong {
        report(log, &p_retry(until(log, 1), options)).await?;
    }
    let options = Options {
        retries: 1.0,
        min_timeout: 50.0,
        ..all()
    };
    let logged = log.clone();
    let compare = move |(a, b): (i32, i32)| {
        let log = logged.clone();
        try_call(async move {
            log.stamp(format_args!("called {a} {b}"));
            if a == b { Ok(a) } else { Err("differ") }
        })
    };
    let twice = make_retriable(compare, options);
    report(log, &twice((1, 1))).await?;
    report(log, &twice((1, 2))).await
}
