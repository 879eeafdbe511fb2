//! The limit of the listeners of an event, and other options of few emitters.

use std::any::TypeId;
use std::cell::{Cell, RefCell};

use super::event::{Key, Name};
use super::{DEFAULT_MAX_LISTENERS, EventEmitter};
use crate::process;
use phaseloop::LoopHandle;
use phaseloop::extension::stderr;

/// The limit of the listeners of an event, and the events above it.
#[derive(Default)]
pub(super) struct Limits {
    pub(super) max_listeners: Cell<Option<usize>>,
    /// The events of which the emitter has warned.
    warned: RefCell<Vec<(Name, TypeId)>>,
    pub(super) captures_rejections: Cell<bool>,
}

impl Limits {
    /// Returns whether the emitter has warned of an event.
    fn knows(&self, key: Key<'_>) -> bool {
        let warned = self.warned.borrow();
        warned.iter().any(|known| is_it(known, key))
    }

    pub(super) fn forget(&self, key: Key<'_>) {
        self.warned.borrow_mut().retain(|known| !is_it(known, key));
    }
}

fn is_it((name, calls): &(Name, TypeId), key: Key<'_>) -> bool {
    key.is_named(name.as_str()) && key.calls == *calls
}

impl EventEmitter {
    /// Sets whether the error of an [async listener](super::Emitter::on_async) is emitted as
    /// [`ERROR`](super::ERROR), on a tick. The default is `false`: the error is an unhandled
    /// rejection. JavaScript: `new EventEmitter({ captureRejections: true })`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::events::{ERROR, Emitter, Event, EventEmitter};
    /// use phaseloop_node::{Exit, run};
    ///
    /// const WORK: Event<u32> = Event::new("work");
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let emitter = EventEmitter::new();
    ///         emitter.capture_rejections(true);
    ///         emitter.on(ERROR, |error| assert_eq!(error.to_string(), "no work"));
    ///         emitter.on_async(WORK, |_| async { Err::<(), _>("no work") });
    ///         emitter.emit(WORK, 1);
    ///     })
    /// }
    /// ```
    // N152.
    pub fn capture_rejections(&self, captures: bool) {
        let limits = self.inner.limits.get_or_init(Box::default);
        limits.captures_rejections.set(captures);
    }

    pub(super) fn captures_rejections(&self) -> bool {
        let limits = self.inner.limits.get();
        limits.is_some_and(|limits| limits.captures_rejections.get())
    }

    /// Returns the limit of listeners of an event, above which the emitter warns; 0 means no limit.
    /// JavaScript: `emitter.getMaxListeners()`.
    #[must_use]
    pub fn max_listeners(&self) -> usize {
        let limits = self.inner.limits.get();
        let limit = limits.and_then(|limits| limits.max_listeners.get());
        limit.unwrap_or(DEFAULT_MAX_LISTENERS)
    }

    /// Sets [`max_listeners`](Self::max_listeners). JavaScript: `emitter.setMaxListeners(n)`.
    pub fn set_max_listeners(&self, limit: usize) {
        let limits = self.inner.limits.get_or_init(Box::default);
        limits.max_listeners.set(Some(limit));
    }

    /// Warns that an event has more listeners than the limit, unless it was done before.
    pub(super) fn warn_once(&self, event: (Name, TypeId), count: usize) {
        let limits = self.inner.limits.get_or_init(Box::default);
        let key = Key {
            name: event.0.as_str(),
            calls: event.1,
        };
        if !limits.knows(key) {
            self.warn(key.name, count);
            limits.warned.borrow_mut().push(event);
        }
    }

    /// Warns that an event has more listeners than the limit.
    fn warn(&self, event: &str, count: usize) {
        let class = match self.inner.class.get() {
            "" => "EventEmitter",
            class => class,
        };
        let text = format!(
            "Possible EventEmitter memory leak detected. {count} {event} listeners added to [{class}]. MaxListeners is {}. \
             Use emitter.setMaxListeners() to increase limit",
            self.max_listeners()
        );
        if LoopHandle::try_current().is_some() {
            process::emit_warning("MaxListenersExceededWarning", text);
        } else {
            stderr::print(format_args!(
                "phaseloop: MaxListenersExceededWarning: {text}"
            ));
        }
    }
}
