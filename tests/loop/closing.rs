//! Closing handles, R101–R109: at once for the handle, reported in the closing phase in reverse
//! order, from a snapshot.
//!
//! R110–R116 are about requests of streams, signals and file watchers. Ours differs in R109:
//! closing twice is not an error, since a close can always be awaited once more. And a drop closes
//! too, at once and without a report.

use crate::util::panics::panic_of;
use crate::util::sockets::udp_pair;
use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use std::cell::Cell;
use std::net::TcpListener;
use std::rc::Rc;

use phaseloop::io::Source;
use phaseloop::phase::{self, Check, Idle, Phase, Prepare};
use phaseloop::time::{Timer, sleep};
use phaseloop::{AsyncHandle, Handle, Keeper, LoopHandle, RunMode};

#[test]
fn r101_a_close_takes_effect_at_once() {
    let (_event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    drop(timer.close());
    assert!(!timer.is_active() && timer.is_closing());

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let source = Source::new(&handle, listener).unwrap();
    drop(source.close());
    TcpListener::bind(address).expect("the descriptor is closed, the port is free");
}

/// What the callback has captured goes with the close, or the drop, not with the loop.
#[test]
fn r101_a_close_drops_the_callback() {
    let (_event_loop, handle, _) = paused();
    let held = Rc::new(());
    let hold = |held: &Rc<()>| {
        let held = held.clone();
        move || drop(held.clone())
    };
    let (timer, idle) = (Timer::new(&handle), Idle::new(&handle));
    let (f, g, h) = (hold(&held), hold(&held), hold(&held));
    timer.start(ZERO, ZERO, move |_| f()).unwrap();
    idle.start(move |_| g()).unwrap();
    let sent = AsyncHandle::new(&handle, move |_| h()).unwrap();
    assert_eq!(Rc::strong_count(&held), 4);
    drop((timer.close(), sent.close()));
    drop(idle);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn r103_reports_come_in_reverse_order_of_the_closes() {
    let (mut event_loop, handle, trace) = paused();
    let [a, b, c] = [(); 3].map(|()| Timer::new(&handle));
    b.close().then(trace.call("b"));
    a.close().then(trace.call("a"));
    c.close().then(trace.call("c"));
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check c a b timer");
}

#[test]
fn r104_a_close_from_a_close_callback_is_reported_in_the_next_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    let log = trace.clone();
    let report = move || {
        log.log("first");
        second.close().then(log.call("second"));
    };
    first.close().then(report);
    assert!(turn(&mut event_loop));
    assert_eq!(trace.take(), "first");
    assert!(!turn(&mut event_loop));
    assert_eq!(trace.take(), "second");
}

/// The number of turns begun when the close of a handle is reported that was closed in the given
/// phase.
fn turn_of_report(phase: Phase) -> u64 {
    let (mut event_loop, handle, _) = paused();
    let reported = Rc::new(Cell::new(0));
    let (timer, mark) = (Timer::new(&handle), reported.clone());
    let close = async move {
        let handle = LoopHandle::current();
        timer.close().then(move || mark.set(handle.turns()));
    };
    let first = event_loop.enter(|| sleep(ZERO));
    drop(handle.spawn(async move {
        match phase {
            Phase::Pending => phase::pending().await,
            Phase::Idle => phase::idle().await,
            Phase::Prepare => phase::prepare().await,
            Phase::Check => phase::check().await,
            Phase::Closing => phase::closing().await,
            _ => first.await,
        }
        close.await;
    }));
    while turn(&mut event_loop) {}
    reported.get()
}

#[test]
fn r105_a_close_is_reported_in_the_same_turn_until_its_closing_phase() {
    for phase in [Phase::Pending, Phase::Idle, Phase::Prepare, Phase::Check] {
        assert_eq!(turn_of_report(phase), 1, "{phase}");
    }
    for phase in [Phase::Closing, Phase::Timers] {
        assert_eq!(turn_of_report(phase), 2, "{phase}");
    }

    let (mut event_loop, handle, trace) = paused();
    let (timer, log) = (Timer::new(&handle), trace.clone());
    let poll = AsyncHandle::new(&handle, move |_| timer.close().then(log.call("closed"))).unwrap();
    poll.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "closed", "from poll");
}

#[test]
fn r106_a_closing_handle_keeps_the_loop_alive_and_awake() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.unref();
    timer.close().then(trace.call("closed"));
    assert!(handle.is_alive());
    assert_eq!(handle.keepers(), [(Keeper::Closing, 1)]);
    let later = Timer::new(&handle);
    later.start(ms(100), ZERO, |_| ()).unwrap();
    let start = handle.now();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "closed");
    assert_eq!(handle.now(), start, "nothing was waited for");
}

#[test]
fn r107_in_its_report_a_handle_is_unrefd_and_off_the_list() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Rc::new(Timer::new(&handle));
    let (closed, log) = (timer.clone(), trace.clone());
    assert_eq!(handle.handles().len(), 1);
    assert!(!handle.handles()[0].closing);
    timer.close().then(move || {
        assert!(!closed.has_ref() && closed.is_closing());
        assert_eq!(closed.event_loop().handles(), []);
        assert_eq!(closed.event_loop().keepers(), []);
        drop(closed);
        log.log("closed");
    });
    assert!(handle.handles()[0].closing, "until then it is listed");
    drop(timer);
    assert_eq!(handle.handles().len(), 1, "also when its owner is gone");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
}

#[test]
fn r108_nobody_need_look_at_a_close() {
    let (mut event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    drop(timer.close());
    finish(&mut event_loop);
    assert_eq!(handle.turns(), 1);
    assert_eq!(handle.handles(), []);
}

/// What the pass has taken is not waiting any more.
#[test]
fn r104_what_is_still_to_be_reported_keeps_no_loop_alive() {
    let (mut event_loop, handle, trace) = paused();
    for _ in 0..3 {
        let (timer, log, asked) = (Timer::new(&handle), trace.clone(), handle.clone());
        timer.close().then(move || {
            log.log(asked.is_alive());
            assert_eq!(asked.keepers(), []);
        });
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "false false false");

    // The first close callback closes this handle, whose close is reported in the next turn.
    let again = Timer::new(&handle);
    let other = Timer::new(&handle);
    let (log, asked) = (trace.clone(), handle.clone());
    other.close().then(move || log.log(asked.is_alive()));
    let (log, asked, first) = (trace.clone(), handle.clone(), Timer::new(&handle));
    first.close().then(move || {
        log.log(asked.is_alive());
        again.close().then(log.call("again"));
    });
    assert!(turn(&mut event_loop));
    assert_eq!(trace.take(), "false true");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "again");
}

/// After a panic the remaining close callbacks still run, even if nothing else is alive.
#[test]
fn r104_a_panic_leaves_the_rest_of_the_pass_to_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    for label in ["third", "second"] {
        let timer = Timer::new(&handle);
        timer.close().then(trace.call(label));
    }
    let first = Timer::new(&handle);
    first.close().then(|| panic!("first"));
    let text = panic_of(|| event_loop.run(RunMode::Default));
    assert_eq!((text.as_str(), trace.take()), ("first", String::new()));
    assert!(handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second third");
}

#[test]
fn r109_closing_twice_is_the_same_as_once() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.close().then(trace.call("first"));
    timer.close().then(trace.call("second"));
    assert_eq!(handle.keepers(), [(Keeper::Closing, 1)]);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first second");
    assert!(timer.is_closing(), "also afterwards");
    timer.close().then(trace.call("too-late"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    event_loop.block_on(timer.close());
}

#[test]
fn a_close_can_be_awaited_in_the_closing_phase() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    check.unref();
    let (prepare, log) = (Prepare::new(&handle), trace.clone());
    drop(handle.spawn(async move {
        let closed = prepare.close();
        drop(prepare);
        closed.await;
        log.log("closed");
        sleep(ZERO).await;
        log.log("same-turn");
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check closed same-turn");
}

#[test]
fn each_report_is_followed_by_a_drain_of_the_lanes() {
    let (mut event_loop, handle, trace) = paused();
    for (name, tick) in [("b", "tick-b"), ("a", "tick-a")] {
        let log = trace.clone();
        Timer::new(&handle).close().then(move || {
            log.log(name);
            phaseloop::next_tick(log.call(tick));
        });
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a tick-a b tick-b");
}

#[test]
fn a_dropped_handle_is_gone_without_a_report() {
    let (event_loop, handle, trace) = paused();
    fn drop_started<H: Handle>(handle: &LoopHandle, started: H) {
        assert!(started.is_active() && handle.is_alive());
        drop(started);
        assert!(!handle.is_alive());
        assert_eq!(handle.handles(), []);
    }
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    drop_started(&handle, timer);
    let idle = Idle::new(&handle);
    idle.start(trace.on("idle")).unwrap();
    drop_started(&handle, idle);
    drop_started(&handle, AsyncHandle::new(&handle, |_| ()).unwrap());
    event_loop.close().unwrap();
}

#[test]
fn a_source_given_back_is_open_and_off_the_loop() {
    let (event_loop, handle, _) = paused();
    let (ours, _theirs) = udp_pair();
    let source = Source::new(&handle, ours).unwrap();
    let ours = source.into_inner();
    assert!(ours.peer_addr().is_ok());
    assert_eq!(handle.handles(), []);
    let again = Source::new(&handle, ours).expect("no longer registered");
    drop(again);
    event_loop.close().unwrap();
}

/// libuv's `active`.
#[test]
fn libuv_active() {
    fn flags(handle: &impl Handle) -> (bool, bool) {
        (handle.is_active(), handle.is_closing())
    }
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    assert_eq!(flags(&timer), (false, false));
    timer.start(ms(1000), ZERO, |_| ()).unwrap();
    assert_eq!(flags(&timer), (true, false));
    timer.stop();
    assert_eq!(flags(&timer), (false, false));
    timer.start(ms(1000), ZERO, |_| ()).unwrap();
    timer.close().then(trace.call("closed"));
    assert_eq!(flags(&timer), (false, true));
    finish(&mut event_loop);
    assert_eq!(flags(&timer), (false, true));
    assert_eq!(trace.take(), "closed");
}

/// Nothing runs while the loop goes away.
#[test]
fn closes_that_were_not_reported_go_with_the_loop() {
    let (event_loop, handle, trace) = paused();
    let (timer, held) = (Timer::new(&handle), Rc::new(()));
    let (log, keep): (Trace, _) = (trace.clone(), held.clone());
    timer.close().then(move || {
        log.log("closed");
        drop(keep);
    });
    drop(event_loop);
    assert_eq!(trace.take(), "");
    assert_eq!(Rc::strong_count(&held), 1, "but the callback is dropped");
}
