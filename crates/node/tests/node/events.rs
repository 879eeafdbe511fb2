//! Event emitters and abort signals, N110–N119: the order of listeners, what happens to an emit
//! while listeners come and go, errors without a listener, awaited events, aborts.

use crate::util::panics::panic_of;
use crate::util::trace::{Trace, finish, ms, paused};
use crate::util::wakers::on_clone;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::Context;

use futures::{FutureExt, StreamExt};
use phaseloop::time::sleep;
use phaseloop::{next_tick, queue_microtask, set_immediate, spawn, spawn_blocking};
use phaseloop_node as node;
use phaseloop_node::events::{
    self, ERROR, Emitter, Event, EventEmitter, NEW_LISTENER, REMOVE_LISTENER,
};
use phaseloop_node::{AbortController, AbortSignal, Error, Promise, process};
use tokio_test::{assert_pending, assert_ready};

const X: Event<()> = Event::new("x");
const NUMBER: Event<u32> = Event::new("number");

/// A log that needs no loop.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn say(&self, what: impl ToString) {
        self.0.borrow_mut().push(what.to_string());
    }

    /// A listener that logs `what`.
    fn listener<A: ?Sized>(&self, what: &'static str) -> impl Fn(&A) + 'static {
        let log = self.clone();
        move |_| log.say(what)
    }

    fn take(&self) -> String {
        self.0.take().join(" ")
    }
}

// Order.

#[test]
fn n110_listeners_are_called_in_order_inside_the_emit() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    emitter.on(X, log.listener("a"));
    emitter.on(X, log.listener("b"));
    assert!(emitter.emit(X, ()));
    log.say("after");
    assert_eq!(log.take(), "a b after");
    assert!(!emitter.emit(NUMBER, 1), "the event has no listener");
}

#[test]
fn the_arguments_of_an_emit_are_a_value_or_a_reference() {
    const TEXT: Event<str> = Event::new("text");
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let (text, number) = (log.clone(), log.clone());
    emitter.on(TEXT, move |what| text.say(what));
    emitter.on(NUMBER, move |n| number.say(n));
    emitter.emit(TEXT, "a");
    emitter.emit(TEXT, "b".to_owned());
    emitter.emit(NUMBER, 1);
    emitter.emit(NUMBER, 2);
    assert_eq!(log.take(), "a b 1 2");
}

#[test]
fn a_listener_can_take_itself_off() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let said = log.clone();
    emitter.on_this(NUMBER, move |this, n| {
        said.say(n);
        if *n == 2 {
            assert!(this.stop_listening());
            assert!(!this.stop_listening(), "it is off");
            this.emit(NUMBER, 9);
        }
    });
    emitter.on(NUMBER, log.listener("other"));
    (1..=3).for_each(|n| assert!(emitter.emit(NUMBER, n)));
    assert_eq!(log.take(), "1 other 2 other other other");
}

/// A type of a program's own, in place of a class that extends `EventEmitter`.
#[derive(Clone, Default)]
struct Door {
    emitter: EventEmitter,
    steps: Rc<Cell<u32>>,
}

impl Emitter for Door {
    fn emitter(&self) -> &EventEmitter {
        &self.emitter
    }
}

phaseloop_node::weak_this!(Door { emitter; steps });

#[test]
fn what_emits_has_the_methods_of_its_emitter() {
    let (door, log) = (Door::default(), Log::default());
    let said = log.clone();
    door.on_this(NUMBER, move |door, n| {
        door.steps.set(door.steps.get() + n);
        said.say("last");
    });
    door.prepend(NUMBER, log.listener("first"));
    let owned = (log.clone(), "once".to_owned());
    // The closure moves what it owns: it is called once.
    door.prepend_once(NUMBER, move |_| {
        let (log, what) = owned;
        log.say(what);
    });
    door.once_this(NUMBER, |door, n| door.steps.set(door.steps.get() + 10 * n));
    assert_eq!(door.listener_count(NUMBER), 4);
    assert!(door.emit(NUMBER, 1) && door.emit(NUMBER, 1));
    assert_eq!(log.take(), "once first last first last");
    assert_eq!(door.steps.get(), 12);
    door.remove_all(NUMBER);
    assert!(!door.emit(NUMBER, 1));
}

#[test]
fn a_listener_that_is_given_its_emitter_does_not_keep_it() {
    let held = Rc::new(());
    let emitter = EventEmitter::new();
    let (kept, once) = (held.clone(), held.clone());
    emitter.on_this(X, move |_, ()| drop(kept.clone()));
    emitter.once_this(X, move |_, ()| drop(once));
    drop(emitter);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn an_object_of_the_program_does_not_keep_itself() {
    let held = Rc::new(());
    let listener = || {
        let held = held.clone();
        move || drop(held.clone())
    };
    let (door, shared) = (Door::default(), Rc::new(Door::default()));
    let [first, second, third] = [(); 3].map(|()| listener());
    door.on_this(X, move |_, ()| first());
    shared.on_this(X, move |_, ()| second());
    shared.once_this(X, move |_, ()| third());
    assert!(door.emit(X, ()) && shared.emit(X, ()) && shared.emit(X, ()));
    drop((door, shared));
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn n111_a_once_listener_is_off_before_it_is_called() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let (inner, said) = (emitter.downgrade(), log.clone());
    emitter.once(X, move |()| {
        let emitter = inner.upgrade().unwrap();
        said.say(emitter.listener_count(X));
        assert!(!emitter.emit(X, ()), "it does not call itself");
    });
    assert!(emitter.emit(X, ()));
    assert!(!emitter.emit(X, ()));
    assert_eq!(log.take(), "0");
}

#[test]
fn n111_a_once_listener_in_two_nested_emits_is_called_once() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let (inner, said, depth) = (emitter.downgrade(), log.clone(), Cell::new(0));
    emitter.on(X, move |()| {
        depth.set(depth.get() + 1);
        said.say(depth.get());
        if depth.get() == 1 {
            inner.upgrade().unwrap().emit(X, ());
        }
    });
    emitter.once(X, log.listener("once"));
    emitter.emit(X, ());
    assert_eq!(log.take(), "1 2 once");
}

#[test]
fn n112_prepended_listeners_come_first() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    emitter.on(X, log.listener("a"));
    emitter.prepend(X, log.listener("b"));
    emitter.prepend_once(X, log.listener("c"));
    emitter.emit(X, ());
    emitter.emit(X, ());
    assert_eq!(log.take(), "c b a b a");
}

#[test]
fn n113_an_emit_works_on_the_listeners_of_its_beginning() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let last = Rc::new(Cell::new(None));
    let (inner, said, victim) = (emitter.downgrade(), log.clone(), last.clone());
    emitter.on(X, move |()| {
        let emitter = inner.upgrade().unwrap();
        said.say("a");
        if let Some(id) = victim.take() {
            assert!(emitter.off(id));
            emitter.on(X, said.listener("added"));
        }
    });
    last.set(Some(emitter.on(X, log.listener("removed"))));
    emitter.emit(X, ());
    log.say("|");
    emitter.emit(X, ());
    assert_eq!(log.take(), "a removed | a added");
}

#[test]
fn n113_an_emitter_may_be_emptied_and_dropped_while_it_emits() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let slot = Rc::new(RefCell::new(None));
    let inner = slot.clone();
    emitter.on(X, move |()| {
        let emitter: EventEmitter = inner.take().unwrap();
        emitter.remove_all_events();
        assert_eq!(emitter.event_names(), [""; 0]);
    });
    emitter.on(X, log.listener("still called"));
    let weak = emitter.downgrade();
    slot.replace(Some(emitter.clone()));
    emitter.emit(X, ());
    assert_eq!(log.take(), "still called");
    drop(emitter);
    assert!(weak.upgrade().is_none());
}

#[test]
fn n010_an_emit_drains_no_lane() {
    let (mut event_loop, handle, trace) = paused();
    let emitter = EventEmitter::new();
    let first = trace.clone();
    emitter.on(X, move |()| {
        first.log("a");
        next_tick(first.call("tick"));
        queue_microtask(first.call("microtask"));
    });
    let second = trace.clone();
    emitter.on(X, move |()| second.log("b"));
    let after = trace.clone();
    handle.set_immediate(move || {
        emitter.emit(X, ());
        after.log("emitted");
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a b emitted tick microtask");
}

// Removing.

#[test]
fn an_id_is_good_for_its_own_emitter_once() {
    let (one, two) = (EventEmitter::new(), EventEmitter::new());
    let id = one.on(X, |()| ());
    two.on(X, |()| ());
    assert!(!two.off(id));
    assert!(one.off(id));
    assert!(!one.off(id));
    assert_eq!((one.listener_count(X), two.listener_count(X)), (0, 1));
}

#[test]
fn event_names_are_in_the_order_of_their_first_listener() {
    let emitter = EventEmitter::new();
    emitter.on(X, |()| ());
    let id = emitter.on(NUMBER, |_| ());
    emitter.on(X, |()| ());
    assert_eq!(emitter.event_names(), ["x", "number"]);
    emitter.off(id);
    assert_eq!(emitter.event_names(), ["x"]);
    emitter.remove_all(X);
    assert!(emitter.event_names().is_empty());
}

#[test]
fn events_of_one_name_and_different_arguments_are_two() {
    const OTHER: Event<str> = Event::new("x");
    let (emitter, log) = (EventEmitter::new(), Log::default());
    emitter.on(X, log.listener("unit"));
    emitter.on(OTHER, log.listener("text"));
    emitter.emit(OTHER, "..");
    assert_eq!(log.take(), "text");
}

#[test]
fn a_listener_that_is_dropped_may_use_the_emitter() {
    struct Noisy(EventEmitter);
    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.emit(X, ());
            self.0.on(NUMBER, |_| ());
        }
    }
    let emitter = EventEmitter::new();
    let noisy = Noisy(emitter.clone());
    let id = emitter.on(NUMBER, move |_| {
        let _kept = &noisy;
    });
    emitter.off(id);
    assert_eq!(emitter.listener_count(NUMBER), 1);
}

// Events about listeners.

#[test]
fn n115_new_listener_comes_before_the_addition_and_remove_listener_after_the_removal() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let (inner, said) = (emitter.downgrade(), log.clone());
    emitter.on(NEW_LISTENER, move |name| {
        let count = inner.upgrade().unwrap().listener_count(X);
        said.say(format_args!("+{name}{count}"));
    });
    let (inner, said) = (emitter.downgrade(), log.clone());
    emitter.on(REMOVE_LISTENER, move |name| {
        let count = inner.upgrade().unwrap().listener_count(X);
        said.say(format_args!("-{name}{count}"));
    });
    let f = emitter.on(X, log.listener("f"));
    emitter.once(X, log.listener("g"));
    emitter.emit(X, ());
    emitter.off(f);
    assert_eq!(log.take(), "+removeListener0 +x0 +x1 f -x1 g -x0");
}

#[test]
fn n115_all_listeners_go_last_one_first_and_those_who_watch_last() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    let said = log.clone();
    emitter.on(REMOVE_LISTENER, move |name| said.say(name));
    emitter.on(X, |()| ());
    emitter.on(NUMBER, |_| ());
    emitter.on(X, |()| ());
    emitter.remove_all_events();
    assert_eq!(log.take(), "x x number");
    assert!(emitter.event_names().is_empty());
}

#[test]
fn an_event_with_too_many_listeners_is_reported_once_by_a_tick() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    handle.set_immediate(move || {
        let (emitter, warned) = (EventEmitter::new(), log.clone());
        process::on_warning(move |warning| warned.log(warning));
        emitter.set_max_listeners(2);
        assert_eq!(emitter.max_listeners(), 2);
        for _ in 0..4 {
            emitter.on(X, |()| ());
        }
        emitter.set_max_listeners(0);
        for _ in 0..40 {
            emitter.on(NUMBER, |_| ());
        }
        log.log("|");
    });
    finish(&mut event_loop);
    let text = "| MaxListenersExceededWarning: Possible EventEmitter memory leak detected. 3 x listeners added to \
                [EventEmitter]. MaxListeners is 2. Use emitter.setMaxListeners() to increase limit";
    assert_eq!(trace.take(), text);
}

// Errors.

#[test]
fn n114_an_error_without_a_listener_is_thrown_itself_or_returned() {
    let emitter = EventEmitter::new();
    let coded = Error::with_code("E_CODED", "boom");
    let (inside, same) = (emitter.clone(), coded.clone());
    let exit = node::run(async move {
        let thrown = Promise::<()>::new(|_| assert!(inside.emit(ERROR, &coded)));
        thrown.await.unwrap_err()
    });
    let reason = exit.into_output().unwrap();
    let error = reason.error().and_then(|error| error.downcast_ref());
    assert!(error.is_some_and(|error| same.is(error)), "{reason:?}");
    let text = panic_of(|| emitter.emit(ERROR, &same));
    assert_eq!(text, "boom", "a plain panic where no program runs");
    let unheard = emitter.try_emit(ERROR, Error::new("two")).unwrap_err();
    assert_eq!(unheard.message(), "two");
    emitter.on(ERROR, |_| ());
    assert_eq!(emitter.try_emit(ERROR, Error::new("three")), Ok(true));
    const TYPED: Event<io::Error> = Event::error();
    let text = panic_of(|| emitter.emit(TYPED, io::Error::other("four")));
    assert_eq!(text, "four");
    const TEXT: Event<String> = Event::error();
    let text = panic_of(|| emitter.emit(TEXT, "five".to_owned()));
    assert_eq!(text, "Unhandled error. ('five')");
}

#[test]
fn n114_a_listener_that_panics_ends_the_emit_and_nothing_else() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    emitter.on(X, log.listener("a"));
    let panics = Cell::new(true);
    emitter.on(X, move |()| assert!(!panics.take(), "in the listener"));
    emitter.on(X, log.listener("b"));
    assert_eq!(panic_of(|| emitter.emit(X, ())), "in the listener");
    assert_eq!(log.take(), "a");
    assert!(emitter.emit(X, ()));
    assert_eq!(log.take(), "a b", "the emitter works as before");
}

#[test]
fn n116_monitors_see_an_error_first_and_do_not_hear_it() {
    let (emitter, log) = (EventEmitter::new(), Log::default());
    emitter.on(ERROR.monitor(), log.listener("monitor"));
    assert!(emitter.try_emit(ERROR, Error::new("..")).is_err());
    emitter.on(ERROR, log.listener("received"));
    assert!(emitter.emit(ERROR, Error::new("..")));
    assert_eq!(log.take(), "monitor monitor received");
}

#[test]
fn errors_have_node_s_codes_and_keep_their_cause() {
    let refused = Error::from(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert_eq!(refused.code(), Some("ECONNREFUSED"));
    assert_eq!(format!("{refused:?}"), "connection refused");
    assert!(refused.is(&refused.clone()));
    assert_eq!(
        io::Error::from(refused).kind(),
        io::ErrorKind::ConnectionRefused
    );
    let odd = Error::from(io::Error::other("odd"));
    assert_eq!((odd.code(), odd.message()), (None, "odd"));
    assert!(std::error::Error::source(&odd).is_some());
}

// Awaited events.

/// A chain of `n` microtasks that log their number.
fn chain(trace: &Trace, from: u32, to: u32) {
    let trace = trace.clone();
    queue_microtask(move || {
        trace.log(format_args!("c{from}"));
        if from < to {
            chain(&trace, from + 1, to);
        }
    });
}

#[test]
fn n117_an_awaited_event_resumes_two_microtasks_after_the_emit() {
    let (mut event_loop, handle, trace) = paused();
    let emitter = EventEmitter::new();
    let (awaited, log) = (events::once(&emitter, NUMBER), trace.clone());
    drop(handle.spawn(async move { log.log(awaited.await.unwrap()) }));
    let log = trace.clone();
    handle.set_immediate(move || {
        next_tick(log.call("tick"));
        emitter.emit(NUMBER, 7);
        log.log("emitted");
        chain(&log, 1, 3);
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "emitted tick c1 7 c2 c3");
}

#[test]
fn n117_an_error_rejects_unless_it_is_what_is_awaited() {
    let (mut event_loop, handle, trace) = paused();
    let emitter = EventEmitter::new();
    let (value, log) = (events::once(&emitter, X), trace.clone());
    drop(handle.spawn(async move { log.log(value.await.unwrap_err()) }));
    let (error, log) = (events::once(&emitter, ERROR), trace.clone());
    drop(handle.spawn(async move { log.log(error.await.unwrap().name()) }));
    let log = trace.clone();
    handle.set_immediate(move || {
        emitter.emit(ERROR, Error::new("bad"));
        log.log("emitted");
        assert!(emitter.event_names().is_empty(), "all listeners are off");
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "emitted bad Error");
}

#[test]
fn an_awaited_event_that_is_given_up_leaves_no_listener() {
    let emitter = EventEmitter::new();
    let mut awaited = events::once(&emitter, NUMBER);
    assert_pending!(tokio_test::task::spawn(&mut awaited).poll());
    assert_eq!(emitter.event_names(), ["number", "error"]);
    drop(awaited);
    assert!(emitter.event_names().is_empty());
    // Without a loop there is no lane: ready at once.
    let awaited = events::once(&emitter, NUMBER);
    emitter.emit(NUMBER, 1);
    emitter.emit(NUMBER, 2);
    assert_eq!(awaited.now_or_never().unwrap().unwrap(), 1);
}

#[test]
fn a_stream_of_events_keeps_what_comes_and_ends_with_an_error() {
    let emitter = EventEmitter::new();
    let mut stream = events::on(&emitter, NUMBER);
    assert_pending!(tokio_test::task::spawn(stream.next()).poll());
    emitter.emit(NUMBER, 1);
    emitter.emit(NUMBER, 2);
    emitter.emit(ERROR, Error::new("bad"));
    emitter.emit(NUMBER, 3);
    assert!(emitter.event_names().is_empty(), "the error ends it");
    let items = stream.map(|item| item.map_err(|error| error.to_string()));
    let items: Vec<_> = futures::executor::block_on(items.collect());
    assert_eq!(items, [Ok(1), Ok(2), Err("bad".to_owned())]);
}

#[test]
fn h120_each_event_of_a_stream_takes_a_microtask() {
    let (mut event_loop, handle, trace) = paused();
    let emitter = EventEmitter::new();
    let (mut stream, log) = (events::on(&emitter, NUMBER), trace.clone());
    drop(handle.spawn(async move {
        while let Some(item) = stream.next().await {
            log.log(item.unwrap());
        }
    }));
    let log = trace.clone();
    handle.set_immediate(move || {
        emitter.emit(NUMBER, 1);
        emitter.emit(NUMBER, 2);
        chain(&log, 1, 2);
        set_immediate(move || assert!(emitter.emit(NUMBER, 3)));
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 c1 2 c2 3");
}

#[test]
fn h120_an_abort_removes_the_listeners_at_once() {
    let emitter = EventEmitter::new();
    let controller = AbortController::new();
    let mut stream = events::on_with_signal(&emitter, NUMBER, &controller.signal());
    emitter.emit(NUMBER, 1);
    controller.abort();
    assert!(emitter.event_names().is_empty());
    emitter.emit(NUMBER, 2);
    futures::executor::block_on(async {
        assert_eq!(stream.next().await.unwrap().unwrap(), 1);
        assert_eq!(
            stream.next().await.unwrap().unwrap_err().name(),
            "AbortError"
        );
        assert!(stream.next().await.is_none());
    });
    emitter.on(NEW_LISTENER, |_| {
        unreachable!("an aborted signal adds no listener")
    });
    let mut stream = events::on_with_signal(&emitter, NUMBER, &controller.signal());
    let item = stream
        .next()
        .now_or_never()
        .expect("Node throws in the call");
    assert_eq!(item.unwrap().unwrap_err().name(), "AbortError");
}

#[test]
fn a_stream_of_events_ends_with_another_event() {
    let emitter = EventEmitter::new();
    let stream = events::on(&emitter, NUMBER).until(X);
    emitter.emit(NUMBER, 1);
    emitter.emit(X, ());
    assert!(emitter.event_names().is_empty());
    let items: Vec<_> = futures::executor::block_on(stream.map(Result::unwrap).collect());
    assert_eq!(items, [1]);
}

// Aborts.

#[test]
fn n119_an_abort_calls_its_listeners_before_it_returns() {
    let log = Log::default();
    let controller = AbortController::new();
    let signal = controller.signal();
    let [a, b, late] = ["a", "b", "late"].map(|what| log.listener::<()>(what));
    signal.on_abort(move || a(&()));
    let off = signal.on_abort(|| unreachable!("it was taken off"));
    signal.on_abort(move || b(&()));
    assert!(signal.off(off));
    assert!(!signal.off(off));
    assert!(signal.throw_if_aborted().is_ok());
    controller.abort();
    log.say("after");
    controller.abort_with(Error::new("a second reason"));
    signal.on_abort(move || late(&()));
    assert_eq!(log.take(), "a b after");
    assert!(signal.aborted());
    let reason = signal.throw_if_aborted().unwrap_err();
    assert_eq!(
        (reason.name(), reason.message()),
        ("AbortError", "This operation was aborted")
    );
}

#[test]
fn n119_a_listener_that_panics_does_not_keep_the_others_from_hearing() {
    let (mut event_loop, handle, trace) = paused();
    let controller = AbortController::new();
    let signal = controller.signal();
    signal.on_abort(|| panic!("in the listener"));
    signal.on_abort(trace.call("other"));
    let log = trace.clone();
    handle.set_immediate(move || {
        controller.abort();
        log.log("aborted");
    });
    assert_eq!(panic_of(|| finish(&mut event_loop)), "in the listener");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "other aborted");
}

#[test]
fn a_listener_may_take_off_those_after_it() {
    let controller = AbortController::new();
    let signal = controller.signal();
    let second = Rc::new(Cell::new(None));
    let (inner, victim) = (signal.clone(), second.clone());
    signal.on_abort(move || assert!(inner.off(victim.take().unwrap())));
    second.set(Some(signal.on_abort(|| unreachable!("it was taken off"))));
    controller.abort();
}

#[test]
fn any_is_aborted_after_the_listeners_of_the_one_that_was() {
    let log = Log::default();
    let (one, two) = (AbortController::new(), AbortController::new());
    let either = AbortSignal::any([&one.signal(), &two.signal()]);
    let nested = AbortSignal::any([&either]);
    let [a, b, c] = ["nested", "either", "two"].map(|what| log.listener::<()>(what));
    nested.on_abort(move || a(&()));
    either.on_abort(move || b(&()));
    two.signal().on_abort(move || c(&()));
    two.abort_with(Error::new("why"));
    assert_eq!(log.take(), "two either nested");
    assert_eq!(nested.reason().unwrap().message(), "why");
    one.abort();
    assert_eq!(
        either.reason().unwrap().message(),
        "why",
        "the first one counts"
    );
    let at_once = AbortSignal::any([&AbortSignal::abort(Error::new("before")), &one.signal()]);
    assert_eq!(at_once.reason().unwrap().message(), "before");
    assert!(!AbortSignal::any([]).aborted());
}

#[test]
fn n119_signals_made_of_others_are_aborted_in_the_order_in_which_they_were_made() {
    let root = AbortController::new();
    let one = AbortSignal::any([&root.signal()]);
    let two = AbortSignal::any([&root.signal()]);
    let of_one = AbortSignal::any([&one]);
    let log = Log::default();
    for (name, signal) in [("of-one", &of_one), ("two", &two), ("one", &one)] {
        let listener = log.listener::<()>(name);
        signal.on_abort(move || listener(&()));
    }
    root.abort();
    assert_eq!(log.take(), "one two of-one");
}

#[test]
fn a_guard_ends_what_it_guards() {
    let (mut event_loop, handle, trace) = paused();
    let start = handle.now();
    let controller = AbortController::new();
    let (signal, log) = (controller.signal(), trace.clone());
    drop(handle.spawn(async move {
        let error = signal.guard(sleep(ms(60_000))).await.unwrap_err();
        log.log(error.name());
        let cause = std::error::Error::source(&error).unwrap();
        log.log(cause);
    }));
    let log = trace.clone();
    handle.set_immediate(move || {
        controller.abort_with(Error::new("enough"));
        next_tick(log.call("tick"));
        set_immediate(log.call("immediate"));
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick AbortError enough immediate");
    assert_eq!(handle.now(), start, "the sleep was cancelled");
}

#[test]
fn a_guard_gives_the_output_of_what_was_faster() {
    phaseloop::block_on(async {
        let controller = AbortController::new();
        let signal = controller.signal();
        let job = signal.guard(spawn_blocking(|| 6 * 7)).await;
        assert_eq!(job.unwrap().unwrap(), 42);
        controller.abort();
        let polled = Rc::new(Cell::new(false));
        let mark = polled.clone();
        let late = signal.guard(async move { mark.set(true) }).await;
        assert_eq!(late.unwrap_err().code(), Some("ABORT_ERR"));
        assert!(!polled.get(), "aborted before it began");
        assert_eq!(signal.cancelled().await.name(), "AbortError");
    });
}

#[test]
fn a_guard_that_is_given_up_leaves_no_listener() {
    let mut task = tokio_test::task::spawn(());
    let before = task.waker_ref_count();
    let signal = AbortController::new().signal();
    let mut guard = Box::pin(signal.guard(std::future::pending::<()>()));
    for _ in 0..2 {
        assert_pending!(task.enter(|cx, _| guard.as_mut().poll(cx)));
    }
    assert!(
        task.waker_ref_count() > before,
        "the signal holds the waker"
    );
    drop(guard);
    assert_eq!(task.waker_ref_count(), before);
}

#[test]
fn a_read_from_a_socket_can_be_aborted() {
    use futures::AsyncReadExt;
    use phaseloop::net::{TcpListener, TcpStream};
    phaseloop::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (_server, _) = listener.accept().await.unwrap();
        let controller = AbortController::new();
        let signal = controller.signal();
        let read = spawn(async move {
            let mut reader = &client;
            signal.guard(reader.read(&mut [0; 8])).await.map(|_| ())
        });
        set_immediate(move || controller.abort());
        assert_eq!(read.await.unwrap().unwrap_err().name(), "AbortError");
    });
}

#[test]
fn a_timeout_with_a_listener_does_not_outlive_its_loop() {
    let held = Rc::new(());
    let keeper = held.clone();
    phaseloop::block_on(async move {
        let handle = phaseloop::LoopHandle::current();
        AbortSignal::timeout(60_000).on_abort(move || drop((keeper, handle)));
    });
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn a_waker_that_emits_when_it_is_cloned_is_heard() {
    phaseloop::block_on(async {
        let emitter = EventEmitter::new();
        let this = emitter.clone();
        let mut next = events::once(&emitter, NUMBER);
        let waker = on_clone(move || assert!(this.emit(NUMBER, 1)));
        assert_pending!(next.poll_unpin(&mut Context::from_waker(&waker)));
        assert_eq!(next.await.unwrap(), 1);
        let this = emitter.clone();
        let mut all = events::on(&emitter, NUMBER);
        let waker = on_clone(move || assert!(this.emit(NUMBER, 2)));
        assert_pending!(
            all.poll_next_unpin(&mut Context::from_waker(&waker)),
            "an event that is there takes a microtask"
        );
        let polled = assert_ready!(tokio_test::task::spawn(&mut all).poll_next());
        assert_eq!(polled.unwrap().unwrap(), 2);
    });
}
