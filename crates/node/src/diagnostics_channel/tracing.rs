//! Five channels that follow an operation from its start to its end.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::{Channel, Subscription, channel};
use crate::error::Error;
use crate::promise::{Promise, catch};
use crate::reason::Reason;

/// The message of a [`TracingChannel`]: what the program passes, and what has become of the
/// operation so far.
pub struct Traced<C> {
    context: C,
    result: OnceCell<Box<dyn Any>>,
    error: OnceCell<Reason>,
}

impl<C> Traced<C> {
    fn new(context: C) -> Self {
        Self {
            context,
            result: OnceCell::new(),
            error: OnceCell::new(),
        }
    }

    /// Returns what the program has passed.
    pub fn context(&self) -> &C {
        &self.context
    }

    /// Returns the result, if it is there and has this type. The call of
    /// [`trace_promise`](TracingChannel::trace_promise) results in the promise's value.
    #[must_use]
    pub fn result<T: 'static>(&self) -> Option<&T> {
        self.result.get()?.downcast_ref()
    }

    /// Returns the error, if the operation has failed.
    #[must_use]
    pub fn error(&self) -> Option<&Reason> {
        self.error.get()
    }

    fn set_result<T: Clone + 'static>(&self, result: &T) {
        // An operation has one result.
        let _ = self.result.set(Box::new(result.clone()));
    }

    fn set_error(&self, reason: &Reason) {
        let _ = self.error.set(reason.clone());
    }
}

impl<C: fmt::Debug> fmt::Debug for Traced<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced")
            .field("context", &self.context)
            .field("has_result", &self.result.get().is_some())
            .field("error", &self.error.get())
            .finish()
    }
}

/// The stages of an operation, each of which has a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The call begins: `tracing:NAME:start`.
    Start,
    /// The call has returned: `tracing:NAME:end`.
    End,
    /// The promise is settled, or the callback is due: `tracing:NAME:asyncStart`.
    AsyncStart,
    /// The callback has returned: `tracing:NAME:asyncEnd`.
    AsyncEnd,
    /// The operation has failed: `tracing:NAME:error`.
    Error,
}

impl Stage {
    const ALL: [Self; 5] = [
        Self::Start,
        Self::End,
        Self::AsyncStart,
        Self::AsyncEnd,
        Self::Error,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::AsyncStart => "asyncStart",
            Self::AsyncEnd => "asyncEnd",
            Self::Error => "error",
        }
    }
}

/// Follows operations, whose context has the type `C`. Clones, and those of the same name, have
/// the same channels. JavaScript: `diagnostics_channel.TracingChannel`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, diagnostics_channel::{Stage, tracing_channel}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let queries = tracing_channel::<String>("my-database:query");
///         queries.subscribe(|stage, traced| {
///             if stage == Stage::End {
///                 println!("{}: {:?} rows", traced.context(), traced.result::<usize>());
///             }
///         });
///         let rows = queries.trace_sync(|| 3_usize, "select 1".to_owned());
///         assert_eq!(rows, 3);
///     })
/// }
/// ```
pub struct TracingChannel<C: 'static> {
    channels: Rc<[Channel<Traced<C>>; 5]>,
}

/// Identifies a subscriber of a [`TracingChannel`].
#[derive(Clone, Copy, Debug)]
pub struct TracingSubscription([Subscription; 5]);

/// Returns the channels of a name: `tracing:NAME:start` and its neighbours. JavaScript:
/// `diagnostics_channel.tracingChannel(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
#[track_caller]
pub fn tracing_channel<C: 'static>(name: &str) -> TracingChannel<C> {
    let of = |stage: Stage| channel(format!("tracing:{name}:{}", stage.name()));
    TracingChannel {
        channels: Rc::new(Stage::ALL.map(of)),
    }
}

impl<C: 'static> TracingChannel<C> {
    /// Returns the channel of a stage. JavaScript: `tracing.start` and its neighbours.
    #[must_use]
    pub fn channel(&self, stage: Stage) -> &Channel<Traced<C>> {
        &self.channels[stage as usize]
    }

    /// Returns whether one of the channels has a subscriber. JavaScript: `tracing.hasSubscribers`.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        self.channels.iter().any(Channel::has_subscribers)
    }

    /// Adds a subscriber to all stages. JavaScript: `tracing.subscribe({ start, end, … })`; for one
    /// stage subscribe to its [`channel`](Self::channel).
    pub fn subscribe(&self, f: impl Fn(Stage, &Traced<C>) + 'static) -> TracingSubscription {
        let f = Rc::new(f);
        TracingSubscription(Stage::ALL.map(|stage| {
            let f = f.clone();
            self.channel(stage)
                .subscribe(move |traced, _| f(stage, traced))
        }))
    }

    /// Removes a subscriber of all stages. Returns `false` if it was removed before. JavaScript:
    /// `tracing.unsubscribe(handlers)`.
    pub fn unsubscribe(&self, subscription: TracingSubscription) -> bool {
        let all = self.channels.iter().zip(subscription.0);
        all.fold(true, |done, (channel, id)| channel.unsubscribe(id) && done)
    }

    /// Calls `f`, and publishes its start, its error, and its end. JavaScript:
    /// `tracing.traceSync(f, context)`.
    ///
    /// # Panics
    ///
    /// With the error or the panic of `f`.
    pub fn trace_sync<T: Clone + 'static>(&self, f: impl FnOnce() -> T, context: C) -> T {
        if !self.has_subscribers() {
            return f();
        }
        let traced = Traced::new(context);
        let result = self.within(&traced, || {
            let result = catch(f);
            match &result {
                Ok(value) => traced.set_result(value),
                Err(reason) => self.fail(&traced, reason),
            }
            result
        });
        result.unwrap_or_else(|reason| reason.raise())
    }

    /// Calls `f`, which returns a promise, and publishes the start and the end of the call, and how
    /// the promise is settled. Returns a promise with the same result, one microtask later.
    /// JavaScript: `tracing.tracePromise(f, context)`.
    ///
    /// # Errors
    ///
    /// The reason of the promise.
    ///
    /// # Panics
    ///
    /// With the error or the panic of `f`.
    pub fn trace_promise<T: Clone + 'static>(
        &self,
        f: impl FnOnce() -> Promise<T>,
        context: C,
    ) -> Promise<T> {
        if !self.has_subscribers() {
            return f();
        }
        let traced = Rc::new(Traced::new(context));
        let (this, later) = (self.clone(), traced.clone());
        let promise = self.within(&traced, || match catch(f) {
            Ok(promise) => Ok(promise.then_result(move |result| {
                match &result {
                    Ok(value) => later.set_result(value),
                    Err(reason) => this.fail(&later, reason),
                }
                this.go_on(&later, || ());
                result.unwrap_or_else(|reason| reason.raise())
            })),
            Err(reason) => {
                self.fail(&traced, &reason);
                Err(reason)
            }
        });
        promise.unwrap_or_else(|reason| reason.raise())
    }

    /// Calls `f` with a callback in the place of `callback`, and publishes the start and the end of
    /// both calls. JavaScript: `tracing.traceCallback(f, position, context, thisArg, ...args)`.
    ///
    /// # Panics
    ///
    /// With the error or the panic of `f`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, diagnostics_channel::tracing_channel, fs, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let reads = tracing_channel("reads");
    ///         reads.subscribe(|stage, traced| println!("{stage:?} of {}", traced.context()));
    ///         reads.trace_callback(
    ///             |done| fs::read_file("Cargo.toml", done),
    ///             "Cargo.toml",
    ///             |bytes: Result<Vec<u8>, _>| assert!(!bytes.unwrap().is_empty()),
    ///         );
    ///     })
    /// }
    /// ```
    pub fn trace_callback<T: Clone + 'static, R>(
        &self,
        f: impl FnOnce(Box<dyn FnOnce(Result<T, Error>)>) -> R,
        context: C,
        callback: impl FnOnce(Result<T, Error>) + 'static,
    ) -> R {
        if !self.has_subscribers() {
            return f(Box::new(callback));
        }
        let traced = Rc::new(Traced::new(context));
        let (this, later) = (self.clone(), traced.clone());
        let wrapped = Box::new(move |result: Result<T, Error>| {
            match &result {
                Ok(value) => later.set_result(value),
                Err(error) => this.fail(&later, &error.clone().into()),
            }
            this.go_on(&later, || callback(result));
        });
        let returned = self.within(&traced, || {
            let returned = catch(|| f(wrapped));
            if let Err(reason) = &returned {
                self.fail(&traced, reason);
            }
            returned
        });
        returned.unwrap_or_else(|reason| reason.raise())
    }

    fn fail(&self, traced: &Traced<C>, reason: &Reason) {
        traced.set_error(reason);
        self.channel(Stage::Error).publish(traced);
    }

    /// Calls `f` between 'start' and 'end'.
    fn within<R>(&self, traced: &Traced<C>, f: impl FnOnce() -> R) -> R {
        self.between(Stage::Start, Stage::End, traced, f)
    }

    /// Calls `f` between 'asyncStart' and 'asyncEnd'.
    fn go_on<R>(&self, traced: &Traced<C>, f: impl FnOnce() -> R) -> R {
        self.between(Stage::AsyncStart, Stage::AsyncEnd, traced, f)
    }

    fn between<R>(&self, start: Stage, end: Stage, traced: &Traced<C>, f: impl FnOnce() -> R) -> R {
        /// Publishes the end, also if the function panics.
        struct End<'a, C: 'static>(&'a Channel<Traced<C>>, &'a Traced<C>);
        impl<C> Drop for End<'_, C> {
            fn drop(&mut self) {
                self.0.publish(self.1);
            }
        }
        let (start, end) = (self.channel(start), self.channel(end));
        if !start.has_subscribers() && !end.has_subscribers() {
            return f();
        }
        start.run_stores(traced, || {
            let _end = End(end, traced);
            f()
        })
    }
}

impl<C: 'static> Clone for TracingChannel<C> {
    fn clone(&self) -> Self {
        Self {
            channels: self.channels.clone(),
        }
    }
}

impl<C: 'static> fmt::Debug for TracingChannel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TracingChannel")
            .field(self.channel(Stage::Start))
            .finish()
    }
}
