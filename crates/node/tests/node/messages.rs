//! Message ports and workers, N130–N132: posting order, visits, closing, ports that move to another
//! thread.

use crate::run_to_end;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, finish, paused, turn};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;

use phaseloop::{
    AsyncHandle, Builder, LoopHandle, next_tick, pool::PoolBuilder, queue_microtask, set_immediate,
    spawn, spawn_blocking,
};
use phaseloop_node as node;
use phaseloop_node::Emitter;
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::worker_threads::{
    CLOSE, DetachedPort, EXIT, MessageChannel, MessagePort, ONLINE, Worker,
};

/// A channel on the loop.
fn channel<T: 'static>(event_loop: &phaseloop::EventLoop) -> MessageChannel<T> {
    event_loop.enter(MessageChannel::new)
}

/// Logs messages; closes the port after `last`.
fn log_until(trace: &Trace, port: &MessagePort<u32>, label: &'static str, last: u32) {
    let trace = trace.clone();
    port.on_message_this(move |port, n| {
        trace.log(format_args!("{label}{n}"));
        if *n == last {
            port.close();
        }
    });
}

#[test]
fn a_listener_of_a_worker_is_given_the_worker_and_can_take_itself_off() {
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    run_to_end(async move {
        let worker = Worker::<(), u32>::new(|parent| async move {
            (1..=3).for_each(|n| parent.post_message(n));
        });
        worker.unwrap().on_message_this(move |worker, n| {
            assert!(worker.exit_code().is_none());
            count.set(count.get() + 1);
            if *n == 2 {
                worker.stop_listening();
            }
        });
    });
    assert_eq!(calls.get(), 2);
}

#[test]
fn n130_messages_come_in_the_poll_phase_with_a_drain_after_each() {
    let (mut event_loop, handle, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    let (log, port) = (trace.clone(), channel.port2.clone());
    channel.port2.on_message(move |n| {
        log.log(format_args!("m{n}"));
        next_tick(log.call("tick"));
        queue_microtask(log.call("microtask"));
        if *n == 2 {
            port.close();
        }
    });
    channel.port1.post_message(1);
    channel.port1.post_message(2);
    handle.next_tick(trace.call("before"));
    handle.set_immediate(trace.call("immediate"));
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "before m1 tick microtask m2 tick microtask immediate"
    );
}

#[test]
fn n130_ports_are_visited_in_the_order_of_creation() {
    let (mut event_loop, _, trace) = paused();
    let [a, b] = [(); 2].map(|()| channel::<u32>(&event_loop));
    log_until(&trace, &b.port2, "b", 2);
    log_until(&trace, &a.port2, "a", 2);
    for n in 1..=2 {
        b.port1.post_message(n);
        a.port1.post_message(n);
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a1 a2 b1 b2");
}

#[test]
fn n093_the_pool_is_served_before_the_ports() {
    let pool = PoolBuilder::new().threads(1).build();
    let mut event_loop = Builder::new().pool(pool).build().unwrap();
    let trace = Trace::new(&event_loop.handle());
    let channel = channel::<u32>(&event_loop);
    log_until(&trace, &channel.port2, "m", 1);
    channel.port1.post_message(1);
    let (sender, second_runs) = mpsc::channel();
    let log = trace.clone();
    event_loop.enter(|| {
        let first = spawn_blocking(|| ());
        drop(spawn_blocking(move || sender.send(()).unwrap()));
        drop(spawn(async move {
            first.await.unwrap();
            log.log("pool");
        }));
    });
    // The only thread has handed the first job's end over when it begins the second.
    second_runs.recv().unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "pool m1");
}

#[test]
fn n130_a_visit_goes_on_with_what_its_listeners_post_up_to_a_limit() {
    for (posted_at_first, in_first_visit) in [(1, 1000), (3000, 3000)] {
        let (mut event_loop, _, trace) = paused();
        let channel = channel::<u32>(&event_loop);
        let (count, log) = (Cell::new(0), trace.clone());
        let (this, other) = (channel.port2.clone(), channel.port1.clone());
        channel.port2.on_message(move |_| {
            count.set(count.get() + 1);
            if count.get() == 1 {
                set_immediate(log.call("immediate"));
            }
            match count.get() {
                1000 | 1001 | 3000 | 3001 => log.log(count.get()),
                4000 => this.close(),
                _ => {}
            }
            other.post_message(0);
        });
        for _ in 0..posted_at_first {
            channel.port1.post_message(0);
        }
        finish(&mut event_loop);
        let expected = match in_first_visit {
            1000 => "1000 immediate 1001 3000 3001",
            _ => "1000 1001 3000 immediate 3001",
        };
        assert_eq!(trace.take(), expected);
    }
}

#[test]
fn n130_a_port_receives_from_its_first_listener_to_its_last() {
    let (mut event_loop, _, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    for n in 1..=3 {
        channel.port1.post_message(n);
    }
    finish(&mut event_loop);
    assert!(
        !channel.port2.has_ref(),
        "without a listener it keeps nothing alive"
    );
    let log = trace.clone();
    channel
        .port2
        .once(MessagePort::<u32>::MESSAGE, move |n| log.log(n));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1", "the others wait for a listener");
    assert_eq!(channel.port2.receive_message(), Some(2));
    log_until(&trace, &channel.port2, "m", 3);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "m3");
    assert_eq!(channel.port2.receive_message(), None);
}

#[test]
fn a_port_is_kept_by_its_loop_while_it_receives() {
    let (mut event_loop, _, trace) = paused();
    let MessageChannel { port1, port2, .. } = channel::<u32>(&event_loop);
    log_until(&trace, &port2, "m", 1);
    drop(port2);
    port1.post_message(1);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "m1");
}

#[test]
fn a_port_that_nobody_listens_to_is_closed_when_it_is_dropped() {
    let (mut event_loop, _, trace) = paused();
    let MessageChannel { port1, port2, .. } = channel::<u32>(&event_loop);
    let log = trace.clone();
    port2.on(CLOSE, move |()| log.log("close"));
    port2.ref_();
    drop(port1);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "close");
}

#[test]
fn listeners_that_hold_their_port_go_with_the_loop() {
    let held = Rc::new(());
    let (event_loop, _, _) = paused();
    let channel = channel::<u32>(&event_loop);
    let (port, keeper) = (channel.port2.clone(), held.clone());
    channel
        .port2
        .on_message(move |_| drop((port.clone(), keeper.clone())));
    drop(channel);
    assert_eq!(Rc::strong_count(&held), 2);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&held), 1);
}

#[test]
fn n131_close_is_reported_in_the_closing_phase_and_a_turn_later_on_the_other_side() {
    let (mut event_loop, handle, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    let log = trace.clone();
    channel.port2.on_message(move |n| log.log(n));
    let [one, two] = [trace.clone(), trace.clone()];
    channel.port1.on(CLOSE, move |()| one.log("close1"));
    channel.port2.on(CLOSE, move |()| two.log("close2"));
    let (log, port) = (trace.clone(), channel.port1.clone());
    channel.port1.post_message(1);
    handle.set_immediate(move || {
        log.log("closing");
        port.post_message(2);
        port.close();
        port.post_message(3);
        next_tick(log.call("tick"));
        set_immediate(log.call("immediate"));
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 closing tick close1 2 immediate close2");
}

#[test]
fn n131_a_close_inside_a_visit_lets_the_visit_go_on() {
    let (mut event_loop, _, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    log_until(&trace, &channel.port2, "m", 1);
    let log = trace.clone();
    channel.port2.on(CLOSE, move |()| log.log("close"));
    for n in 1..=3 {
        channel.port1.post_message(n);
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "m1 m2 m3 close");
    channel.port1.post_message(4);
    channel.port2.close();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "", "once closed, always closed");
}

#[test]
fn a_listener_that_panics_loses_its_own_message_only() {
    let (mut event_loop, _, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    let (log, this) = (trace.clone(), channel.port2.clone());
    channel.port2.on_message(move |n| {
        log.log(n);
        assert_ne!(*n, 2, "the second message");
        if *n == 3 {
            this.close();
        }
    });
    for n in 1..=3 {
        channel.port1.post_message(n);
    }
    assert!(panic_of(|| finish(&mut event_loop)).contains("the second message"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 2 3");
}

#[test]
fn a_message_may_be_an_rc_on_one_thread() {
    let (mut event_loop, _, _) = paused();
    let channel = channel::<Rc<Cell<u32>>>(&event_loop);
    let value = Rc::new(Cell::new(1));
    let this = channel.port2.clone();
    channel.port2.on_message(move |value| {
        value.set(2);
        this.close();
    });
    channel.port1.post_message(value.clone());
    finish(&mut event_loop);
    assert_eq!(value.get(), 2);
}

#[test]
fn a_detached_port_takes_its_messages_to_another_loop() {
    let (mut event_loop, _, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    channel.port1.post_message(20);
    let port = channel.port2.detach().unwrap();
    assert!(channel.port2.detach().is_none());
    let thread = thread::spawn(move || {
        phaseloop::run(async move {
            let port = port.attach();
            let this = port.clone();
            port.on_message(move |n| {
                this.post_message(n + 1);
                if *n == 30 {
                    this.close();
                }
            });
        })
        .unwrap();
    });
    channel.port1.post_message(30);
    let log = trace.clone();
    channel.port1.on_message(move |n| log.log(n));
    let log = trace.clone();
    channel.port1.on(CLOSE, move |()| log.log("close"));
    finish(&mut event_loop);
    thread.join().unwrap();
    assert_eq!(trace.take(), "21 31 close");
}

#[test]
fn a_detached_port_that_is_dropped_closes_the_other_side() {
    fn assert_send<T: Send>(_: &T) {}
    let (mut event_loop, _, trace) = paused();
    let channel = channel::<u32>(&event_loop);
    log_until(&trace, &channel.port1, "m", 0);
    let log = trace.clone();
    channel.port1.on(CLOSE, move |()| log.log("close"));
    let port: DetachedPort<u32> = channel.port2.detach().unwrap();
    assert_send(&port);
    drop(port);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "close");
}

#[test]
fn r119_a_plain_async_handle_is_still_called_once_a_poll() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let again = AsyncHandle::new(&handle, move |handle| {
        log.log("async");
        handle.sender().send().unwrap();
    })
    .unwrap();
    again.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "async");
}

// Workers.

#[test]
fn n132_a_worker_is_online_then_sends_then_exits() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let say = |what: &'static str| {
        let log = log.clone();
        move || log.borrow_mut().push(what.to_owned())
    };
    let (online, message, tick, exit) = (say("online"), log.clone(), say("tick"), log.clone());
    let ended = node::run(async move {
        let worker = Worker::<(), &str>::new(|port| async move {
            port.post_message("a");
            port.post_message("b");
        });
        let worker = worker.unwrap();
        worker.on(ONLINE, move |()| online());
        worker.on_message(move |text| {
            message.borrow_mut().push((*text).to_owned());
            next_tick(tick.clone());
        });
        worker.on(EXIT, move |code| {
            exit.borrow_mut().push(format!("exit {code}"))
        });
    });
    assert_eq!(ended.code(), 0);
    assert_eq!(
        *log.borrow(),
        ["online", "a", "tick", "b", "tick", "exit 0"]
    );
}

#[test]
fn n132_messages_that_wait_when_a_worker_ends_come_before_its_exit() {
    let (mut event_loop, _, trace) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), u32>::new(|port| async move { (0..3).for_each(|n| port.post_message(n)) })
    });
    let worker = worker.unwrap();
    let (log, exit) = (trace.clone(), trace.clone());
    worker.on_message(move |n| {
        log.log(n);
        next_tick(log.call("tick"));
    });
    worker.on(EXIT, move |code| exit.log(format_args!("exit{code}")));
    thread::sleep(std::time::Duration::from_millis(50));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "0 tick 1 tick 2 tick exit0");
    assert_eq!(worker.exit_code(), Some(0));
}

#[test]
fn a_worker_answers() {
    let sum = phaseloop::block_on(async {
        let worker = Worker::new(|port| async move {
            let parent = port.clone();
            port.on_message(move |n: &u64| {
                parent.post_message((1..=*n).sum::<u64>());
                parent.close();
            });
        });
        let worker = worker.unwrap();
        let answer = Rc::new(Cell::new(0));
        let seen = answer.clone();
        worker.on_message(move |sum| seen.set(*sum));
        worker.post_message(100);
        let code = once(worker.emitter(), EXIT).await.unwrap();
        assert_eq!(code, 0);
        answer.get()
    });
    assert_eq!(sum, 5050);
}

#[test]
fn a_worker_that_panics_reports_an_error_and_exits_with_1() {
    let (mut event_loop, _, trace) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), u32>::new(|port| async move {
            port.post_message(1);
            panic!("in the worker");
        })
    });
    let worker = worker.unwrap();
    let [message, error, exit] = [(); 3].map(|()| trace.clone());
    worker.on_message(move |n| message.log(n));
    worker.on(ERROR, move |what| error.log(what));
    worker.on(EXIT, move |code| exit.log(code));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 in the worker 1");
}

#[test]
fn a_worker_s_error_that_nobody_hears_is_a_panic_here_and_the_exit_still_comes() {
    let (mut event_loop, _, trace) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), u32>::new(|port| async move {
            port.post_message(1);
            panic!("unheard");
        })
    });
    let worker = worker.unwrap();
    let [message, exit] = [(); 2].map(|()| trace.clone());
    worker.on_message(move |n| message.log(n));
    worker.on(EXIT, move |code| exit.log(code));
    let text = panic_of(|| finish(&mut event_loop));
    assert_eq!(text, "unheard");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 1");
}

#[test]
fn a_worker_can_be_terminated() {
    let (mut event_loop, _, trace) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), ()>::new(|_port| async move {
            phaseloop::time::sleep(std::time::Duration::from_secs(3600)).await;
        })
    });
    let worker = worker.unwrap();
    let (terminated, exit) = (worker.clone(), trace.clone());
    worker.on(ONLINE, move |()| drop(terminated.terminate()));
    worker.on(EXIT, move |code| exit.log(code));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1");
}

#[test]
fn a_worker_that_is_unref_d_keeps_nothing_alive() {
    let (mut event_loop, _, _) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), u32>::new(|port| async move {
            let parent = port.clone();
            port.on_message(move |()| parent.close());
        })
    });
    let worker = worker.unwrap();
    worker.on_message(|_| ());
    worker.unref();
    finish(&mut event_loop);
    assert_eq!(worker.exit_code(), None);
    worker.ref_();
    worker.post_message(());
    finish(&mut event_loop);
    assert_eq!(worker.exit_code(), Some(0));
}

#[test]
fn ports_need_a_loop() {
    assert!(LoopHandle::try_current().is_none());
    let text = panic_of(MessageChannel::<u32>::new);
    assert!(text.starts_with("no event loop runs on this thread"));
}

#[test]
fn n132_terminate_is_fulfilled_with_the_exit_code() {
    let codes = Rc::new(Cell::new(None));
    let seen = codes.clone();
    run_to_end(async move {
        let worker = Worker::<(), ()>::new(|port| async move {
            // Its listener keeps the worker alive.
            port.on_message(|()| ());
        })
        .unwrap();
        once(&worker, ONLINE).await.unwrap();
        let first = worker.terminate().await.unwrap();
        let second = worker.terminate().await.unwrap();
        seen.set(Some((first, second)));
    });
    assert_eq!(codes.get(), Some((Some(1), None)));
}

/// The drop of its payload panics with another such payload, for ever.
#[test]
fn a_worker_whose_payload_panics_in_its_drop_ends_like_another() {
    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Self));
        }
    }

    let (mut event_loop, _, _) = paused();
    let worker = event_loop.enter(|| {
        Worker::<(), ()>::new(|_| async {
            std::panic::resume_unwind(Box::new(Endless));
        })
    });
    let worker = worker.unwrap();
    worker.on(ERROR, |_| ());
    finish(&mut event_loop);
    assert_eq!(worker.exit_code(), Some(1));
}
