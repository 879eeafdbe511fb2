//! A port of the package `p-queue` with its `p-timeout`: tasks that wait for their turn. Custom
//! queue classes are left out.

mod interval;
mod timeout;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use phaseloop_node::events::{Event, EventEmitter, ListenerId};
use phaseloop_node::perf_hooks::performance;
use phaseloop_node::{
    AbortListener, AbortSignal, Deferred, Emitter, Error, Promise, Reason, Timeout, all, call,
    call_returning, catch, queue_microtask, race, throw, try_call,
};

use self::timeout::p_timeout;

pub(crate) const ADD: Event<()> = Event::new("add");
pub(crate) const ACTIVE: Event<()> = Event::new("active");
pub(crate) const NEXT: Event<()> = Event::new("next");
pub(crate) const EMPTY: Event<()> = Event::new("empty");
pub(crate) const IDLE: Event<()> = Event::new("idle");
pub(crate) const PENDING_ZERO: Event<()> = Event::new("pendingZero");
pub(crate) const RATE_LIMIT: Event<()> = Event::new("rateLimit");
pub(crate) const RATE_LIMIT_CLEARED: Event<()> = Event::new("rateLimitCleared");
pub(crate) const COMPLETED: Event<dyn Any> = Event::new("completed");
/// Unlike Node's, it needs no listener: the package has an emitter of its own.
pub(crate) const ERROR: Event<Reason> = Event::new("error");

/// The options of a queue. `usize::MAX` is no limit.
pub(crate) struct Options {
    pub(crate) concurrency: usize,
    pub(crate) interval_cap: usize,
    pub(crate) interval: u64,
    pub(crate) carryover_interval_count: bool,
    pub(crate) strict: bool,
    pub(crate) auto_start: bool,
    pub(crate) timeout: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: usize::MAX,
            interval_cap: usize::MAX,
            interval: 0,
            carryover_interval_count: false,
            strict: false,
            auto_start: true,
            timeout: None,
        }
    }
}

#[derive(Default)]
pub(crate) struct AddOptions {
    pub(crate) id: Option<String>,
    pub(crate) priority: i64,
    pub(crate) timeout: Option<u64>,
    pub(crate) signal: Option<AbortSignal>,
}

#[derive(Clone)]
pub(crate) struct RunningTask {
    pub(crate) id: String,
    pub(crate) priority: i64,
    pub(crate) start_time: u64,
    pub(crate) timeout: Option<u64>,
}

impl RunningTask {
    pub(crate) fn timeout_remaining(&self) -> Option<u64> {
        let end = self.start_time + self.timeout?;
        Some(end.saturating_sub(date_now()))
    }
}

struct Entry {
    number: u64,
    id: String,
    priority: i64,
    run: Box<dyn FnOnce(Rc<PQueue>)>,
    /// What aborts the task while it waits.
    abort: Option<(AbortSignal, AbortListener)>,
}

impl Entry {
    fn stop_listening(&mut self) {
        if let Some((signal, listener)) = self.abort.take() {
            signal.off(listener);
        }
    }
}

pub(crate) struct PQueue {
    emitter: EventEmitter,
    options: Options,
    concurrency: Cell<usize>,
    is_paused: Cell<bool>,
    pending: Cell<usize>,
    /// In the order of their start.
    queue: RefCell<VecDeque<Entry>>,
    running: RefCell<BTreeMap<u64, RunningTask>>,
    next_number: Cell<u64>,
    next_id: Cell<u64>,
    interval_count: Cell<usize>,
    interval_end: Cell<Option<u64>>,
    interval_timer: RefCell<Option<Timeout>>,
    resume_timer: RefCell<Option<Timeout>>,
    strict_ticks: RefCell<VecDeque<u64>>,
    is_rate_limited: Cell<bool>,
    has_rate_update: Cell<bool>,
}

impl Emitter for PQueue {
    fn emitter(&self) -> &EventEmitter {
        &self.emitter
    }
}

fn date_now() -> u64 {
    performance::now() as u64
}

fn check_timeout(timeout: Option<u64>) -> Result<(), Error> {
    match timeout {
        Some(0) => Err(expected("timeout", "a positive finite number", 0)),
        _ => Ok(()),
    }
}

fn expected(name: &str, what: &str, value: usize) -> Error {
    Error::type_error(format!(
        "Expected `{name}` to be {what}, got `{value}` (number)"
    ))
}

fn change(cell: &Cell<usize>, by: isize) {
    cell.set(cell.get().saturating_add_signed(by));
}

impl PQueue {
    pub(crate) fn new(options: Options) -> Rc<Self> {
        if options.interval_cap == 0 {
            throw(expected("intervalCap", "a number from 1 and up", 0));
        }
        if options.strict && options.interval == 0 {
            throw(Error::type_error(
                "The `strict` option requires a non-zero `interval`",
            ));
        }
        if options.strict && options.interval_cap == usize::MAX {
            throw(Error::type_error(
                "The `strict` option requires a finite `intervalCap`",
            ));
        }
        check_concurrency(options.concurrency);
        check_timeout(options.timeout).unwrap_or_else(|error| throw(error));
        let queue = Rc::new(Self {
            emitter: EventEmitter::new(),
            concurrency: Cell::new(options.concurrency),
            is_paused: Cell::new(!options.auto_start),
            options,
            pending: Cell::new(0),
            queue: RefCell::default(),
            running: RefCell::default(),
            next_number: Cell::new(0),
            next_id: Cell::new(1),
            interval_count: Cell::new(0),
            interval_end: Cell::new(None),
            interval_timer: RefCell::default(),
            resume_timer: RefCell::default(),
            strict_ticks: RefCell::default(),
            is_rate_limited: Cell::new(false),
            has_rate_update: Cell::new(false),
        });
        if !queue.ignores_interval() {
            queue.on_this(ADD, |queue, ()| {
                if queue.size() > 0 {
                    queue.schedule_rate_update();
                }
            });
            queue.on_this(NEXT, |queue, ()| queue.schedule_rate_update());
        }
        queue
    }

    pub(crate) fn size(&self) -> usize {
        self.queue.borrow().len()
    }

    pub(crate) fn size_by(&self, priority: i64) -> usize {
        let queue = self.queue.borrow();
        queue.iter().filter(|e| e.priority == priority).count()
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.get()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.get()
    }

    pub(crate) fn is_rate_limited(&self) -> bool {
        self.is_rate_limited.get()
    }

    pub(crate) fn is_saturated(&self) -> bool {
        let is_full = self.pending() == self.concurrency.get() || self.is_rate_limited();
        is_full && self.size() > 0
    }

    pub(crate) fn running_tasks(&self) -> Vec<RunningTask> {
        self.running.borrow().values().cloned().collect()
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.get()
    }

    pub(crate) fn set_concurrency(self: &Rc<Self>, concurrency: usize) {
        check_concurrency(concurrency);
        self.concurrency.set(concurrency);
        self.process_queue();
    }

    pub(crate) fn set_priority(&self, id: &str, priority: i64) {
        let found = self.queue.borrow().iter().position(|e| e.id == id);
        let Some(mut entry) = found.and_then(|at| self.queue.borrow_mut().remove(at)) else {
            throw(Error::named(
                "ReferenceError",
                format!("No promise function with the id \"{id}\" exists in the queue."),
            ))
        };
        entry.priority = priority;
        self.enqueue(entry);
    }

    fn enqueue(&self, entry: Entry) {
        let mut queue = self.queue.borrow_mut();
        let at = queue.partition_point(|other| other.priority >= entry.priority);
        queue.insert(at, entry);
    }

    pub(crate) fn add<T: Clone + 'static>(
        self: &Rc<Self>,
        task: impl FnOnce() -> Promise<T> + 'static,
    ) -> Promise<T> {
        self.add_with(task, AddOptions::default())
    }

    /// The promise of an async function that returns another one: three ticks behind it.
    pub(crate) fn add_with<T: Clone + 'static>(
        self: &Rc<Self>,
        task: impl FnOnce() -> Promise<T> + 'static,
        options: AddOptions,
    ) -> Promise<T> {
        let queue = self.clone();
        call_returning(async move { queue.add_now(task, options) })
    }

    fn add_now<T: Clone + 'static>(
        self: &Rc<Self>,
        task: impl FnOnce() -> Promise<T> + 'static,
        options: AddOptions,
    ) -> Promise<T> {
        let timeout = options.timeout.or(self.options.timeout);
        let number = self.next_number.replace(self.next_number.get() + 1);
        let id = options.id.unwrap_or_else(|| {
            let id = self.next_id.replace(self.next_id.get() + 1);
            id.to_string()
        });
        check_timeout(timeout).unwrap_or_else(|error| throw(error));
        Promise::new(|deferred| {
            let mut entry = Entry {
                number,
                id: id.clone(),
                priority: options.priority,
                run: Box::new({
                    let (deferred, signal) = (deferred.clone(), options.signal.clone());
                    move |queue| {
                        change(&queue.pending, 1);
                        let running = RunningTask {
                            id,
                            priority: options.priority,
                            start_time: date_now(),
                            timeout,
                        };
                        queue.running.borrow_mut().insert(number, running);
                        try_call(async move {
                            let result = queue.run_task(task, timeout, signal).await;
                            let emitted = result.and_then(|value| {
                                deferred.resolve(value.clone());
                                catch(|| queue.emit(COMPLETED, &value as &dyn Any))
                            });
                            let emitted = emitted.or_else(|reason| {
                                deferred.reject(reason.clone());
                                catch(|| queue.emit(ERROR, reason))
                            });
                            queue.running.borrow_mut().remove(&number);
                            queue_microtask(move || queue.next());
                            emitted
                        });
                    }
                }),
                abort: None,
            };
            let Some(signal) = options.signal else {
                return self.added(entry);
            };
            let (queue, reason) = (self.clone(), signal.clone());
            let on_abort = move || {
                queue.queue.borrow_mut().retain(|e| e.number != number);
                deferred.reject(reason.reason().expect("it was aborted"));
                queue.try_to_start_another();
                queue.emit(NEXT, ());
            };
            if signal.aborted() {
                return on_abort();
            }
            let listener = signal.on_abort(on_abort);
            entry.abort = Some((signal, listener));
            self.added(entry);
        })
    }

    fn added(self: &Rc<Self>, entry: Entry) {
        self.enqueue(entry);
        self.emit(ADD, ());
        self.try_to_start_another();
    }

    async fn run_task<T: Clone + 'static>(
        self: &Rc<Self>,
        task: impl FnOnce() -> Promise<T>,
        timeout: Option<u64>,
        signal: Option<AbortSignal>,
    ) -> Result<T, Reason> {
        if let Some(Err(error)) = signal.as_ref().map(AbortSignal::throw_if_aborted) {
            self.roll_back_interval();
            return Err(error.into());
        }
        let mut operation = catch(task)?;
        if let Some(ms) = timeout {
            let (running, waiting) = (self.pending(), self.size());
            let message = format!(
                "Task timed out after {ms}ms (queue has {running} running, {waiting} waiting)"
            );
            operation = p_timeout(&operation, ms, message);
        }
        let Some(signal) = signal else {
            return operation.await;
        };
        let mut listener = None;
        let aborted = Promise::new(|deferred| {
            let reason = signal.clone();
            let reject = move || deferred.reject(reason.reason().expect("it was aborted"));
            match signal.aborted() {
                true => reject(),
                false => listener = Some(signal.on_abort(reject)),
            }
        });
        let result = race([operation, aborted]).await;
        listener.map(|listener| signal.off(listener));
        result
    }

    pub(crate) fn add_all<T: Clone + 'static>(
        self: &Rc<Self>,
        tasks: impl IntoIterator<Item = impl FnOnce() -> Promise<T> + 'static>,
    ) -> Promise<Vec<T>> {
        let added: Vec<_> = tasks.into_iter().map(|task| self.add(task)).collect();
        call_returning(async { all(added) })
    }

    pub(crate) fn start(self: &Rc<Self>) {
        if self.is_paused.replace(false) {
            self.process_queue();
        }
    }

    pub(crate) fn pause(&self) {
        self.is_paused.set(true);
    }

    pub(crate) fn clear(self: &Rc<Self>) {
        let mut cleared = self.queue.take();
        cleared.iter_mut().for_each(Entry::stop_listening);
        self.clear_interval_timer();
        self.update_rate_limit();
        self.emit(EMPTY, ());
        if self.pending() == 0 {
            self.clear_resume_timer();
            self.emit(IDLE, ());
        }
        self.emit(NEXT, ());
    }

    // What a program waits for.

    pub(crate) fn on_empty(self: &Rc<Self>) -> Promise<()> {
        self.until([EMPTY], |queue| queue.size() == 0, |_| true)
    }

    pub(crate) fn on_size_less_than(self: &Rc<Self>, limit: usize) -> Promise<()> {
        let is_less = move |queue: &Self| queue.size() < limit;
        self.until([NEXT, ACTIVE], is_less, is_less)
    }

    pub(crate) fn on_idle(self: &Rc<Self>) -> Promise<()> {
        let is_idle = |queue: &Self| queue.pending() == 0 && queue.size() == 0;
        self.until([IDLE], is_idle, |_| true)
    }

    pub(crate) fn on_pending_zero(self: &Rc<Self>) -> Promise<()> {
        self.until([PENDING_ZERO], |queue| queue.pending() == 0, |_| true)
    }

    pub(crate) fn on_rate_limit(self: &Rc<Self>) -> Promise<()> {
        self.until([RATE_LIMIT], Self::is_rate_limited, |_| true)
    }

    pub(crate) fn on_rate_limit_cleared(self: &Rc<Self>) -> Promise<()> {
        let is_cleared = |queue: &Self| !queue.is_rate_limited();
        self.until([RATE_LIMIT_CLEARED], is_cleared, |_| true)
    }

    pub(crate) fn on_error<T: Clone + 'static>(self: &Rc<Self>) -> Promise<T> {
        Promise::new(|deferred| {
            self.once(ERROR, move |reason| deferred.reject(reason.clone()));
        })
    }

    fn until<const N: usize>(
        self: &Rc<Self>,
        events: [Event<()>; N],
        is_there: impl FnOnce(&Self) -> bool,
        filter: impl Fn(&Self) -> bool + Copy + 'static,
    ) -> Promise<()> {
        if is_there(self) {
            return call(async {});
        }
        let event = Promise::new(|done| self.listen(events, filter, done));
        let event = call_returning(async move { event });
        try_call(async move { event.await })
    }

    fn listen<const N: usize>(
        self: &Rc<Self>,
        events: [Event<()>; N],
        filter: impl Fn(&Self) -> bool + Copy + 'static,
        done: Deferred<()>,
    ) {
        let ids: Rc<RefCell<Vec<ListenerId>>> = Rc::default();
        for event in events {
            let (all, done) = (ids.clone(), done.clone());
            let id = self.on_this(event, move |queue, ()| {
                if filter(queue) {
                    all.take().into_iter().for_each(|id| _ = queue.off(id));
                    done.resolve(());
                }
            });
            ids.borrow_mut().push(id);
        }
    }

    // Starting tasks.

    fn next(self: &Rc<Self>) {
        change(&self.pending, -1);
        if self.pending() == 0 {
            self.emit(PENDING_ZERO, ());
        }
        self.try_to_start_another();
        self.emit(NEXT, ());
    }

    fn process_queue(self: &Rc<Self>) {
        while self.try_to_start_another() {}
    }

    fn try_to_start_another(self: &Rc<Self>) -> bool {
        if self.size() == 0 {
            self.clear_interval_timer();
            self.emit(EMPTY, ());
            if self.pending() == 0 {
                self.clear_resume_timer();
                self.emit(IDLE, ());
            }
            return false;
        }
        if self.is_paused() {
            return false;
        }
        let now = date_now();
        let begins_interval = !self.is_interval_paused_at(now);
        if !self.interval_allows_another() || self.pending() >= self.concurrency() {
            return false;
        }
        let first = self.queue.borrow_mut().pop_front();
        let mut entry = first.expect("the queue is not empty");
        entry.stop_listening();
        if !self.ignores_interval() {
            match self.options.strict {
                true => self.strict_ticks.borrow_mut().push_back(now),
                false => change(&self.interval_count, 1),
            }
            self.schedule_rate_update();
        }
        if begins_interval {
            self.begin_interval();
        }
        (entry.run)(self.clone());
        self.emit(ACTIVE, ());
        true
    }
}

fn check_concurrency(concurrency: usize) {
    if concurrency == 0 {
        throw(expected("concurrency", "a number from 1 and up", 0));
    }
}
