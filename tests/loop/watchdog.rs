//! A stuck loop is reported while it is stuck, and when it is over. The tests block until the
//! watchdog has seen it, so that none of them depends on how long that takes.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::util::child::in_child;
use crate::util::gate::{block_until_let_go, read_and_let_go};
use crate::util::trace::ms;
use phaseloop::observe::{Recorder, Stall, Watchdog};
use phaseloop::time::{Timer, sleep};
use phaseloop::{Builder, EventLoop, LoopHandle, next_tick, queue_microtask, spawn, task};

const LIMIT: Duration = Duration::from_millis(5);

/// A loop whose watchdog sends each stall.
fn watched() -> (EventLoop, Receiver<Stall>) {
    let (send, stalls) = channel();
    let watchdog = Watchdog::new(LIMIT).then(move |stall| {
        let _ = send.send(stall.clone());
    });
    let event_loop = Builder::new().watchdog(watchdog).build().unwrap();
    (event_loop, stalls)
}

/// Blocks until the watchdog reports a stall of what has this text. Others are due to the machine.
fn block_until(stalls: &Receiver<Stall>, text: &str) -> Stall {
    loop {
        let stall = stalls.recv().unwrap();
        if !stall.is_over && stall.what.contains(text) {
            return stall;
        }
    }
}

fn at(line: u32) -> String {
    format!("({}:{line}:", file!())
}

#[test]
fn a_task_that_blocks_is_told_with_its_line_and_told_once_more_when_it_is_over() {
    let (event_loop, stalls) = watched();
    let line = line!() + 2;
    let (stall, stalls) = event_loop.block_on(async {
        let task = task::Builder::new().name("hash").spawn(async move {
            let stall = block_until(&stalls, "task 1 ");
            (stall, stalls)
        });
        let done = task.await.unwrap();
        spawn(sleep(ms(3_600_000))).detach();
        // The loop waits before it goes on.
        sleep(ms(1)).await;
        done
    });
    assert!(stall.took >= LIMIT, "{stall}");
    assert!(stall.what.starts_with(&format!("task 1 {}", at(line))));
    let text = stall.to_string();
    assert!(text.starts_with("phaseloop: stall: "), "{text}");
    assert!(text.contains(" so far: task 1 ("), "{text}");
    // The machine may have made it longer, so that it was reported again.
    let mut reported = stall.what;
    let over = stalls.iter().find(|later| {
        if !later.is_over {
            reported.clone_from(&later.what);
        }
        later.is_over
    });
    let over = over.unwrap();
    assert!(over.took >= stall.took, "{over}");
    assert_eq!(over.what, reported);
    assert!(over.report.contains("What keeps the loop alive"), "{over}");
    let text = over.to_string();
    assert!(text.starts_with("phaseloop: stall: over after "), "{text}");
}

#[test]
fn a_long_stall_is_told_again_each_time_after_twice_as_long() {
    let (event_loop, stalls) = watched();
    let reported = event_loop.block_on(async {
        let reported = || stalls.recv().unwrap();
        [(); 4].map(|()| reported())
    });
    for (stall, times) in reported.iter().zip([1, 2, 4, 8]) {
        assert!(!stall.is_over);
        assert!(stall.what.starts_with("the main future ("), "{stall}");
        assert!(stall.took >= LIMIT * times, "{times}: {stall}");
    }
}

#[test]
fn callbacks_ticks_and_microtasks_are_named() {
    let (event_loop, stalls) = watched();
    let handle = event_loop.handle();
    let timer = Timer::new(&handle);
    let line = line!() - 1;
    event_loop.block_on(async {
        let stalls = std::rc::Rc::new(stalls);
        let (one, two, three) = (stalls.clone(), stalls.clone(), stalls.clone());
        let blocked = move |_: &Timer| {
            drop(block_until(
                &one,
                &format!("timer in the timers phase {}", at(line)),
            ))
        };
        timer.start(ms(1), ms(0), blocked).unwrap();
        let tick = line!() + 1;
        next_tick(move || drop(block_until(&two, &format!("a tick {}", at(tick)))));
        let microtask = line!() + 1;
        queue_microtask(move || {
            drop(block_until(
                &three,
                &format!("a microtask {}", at(microtask)),
            ))
        });
        sleep(ms(2)).await;
    });
}

/// The recorder knows who made timers late, and the end of the stall names it.
#[test]
fn the_end_of_a_stall_has_the_blame_of_the_recorder() {
    let (send, stalls) = channel();
    let watchdog = Watchdog::new(LIMIT).then(move |stall: &Stall| {
        let _ = send.send(stall.clone());
    });
    let recorder = Recorder::new().on_slow(|_| ());
    let builder = Builder::new().watchdog(watchdog).record(recorder);
    let event_loop = builder.build().unwrap();
    let is_blamed = |stall: Stall| stall.is_over && stall.report.contains("\"hash\"");
    // A busy machine may hide the stall from the watchdog, or be to blame itself: then once more.
    let found = event_loop.block_on(async {
        for _ in 0..1000 {
            let late = spawn(sleep(ms(1)));
            let hash = async { std::thread::sleep(4 * LIMIT) };
            let hash = task::Builder::new().name("hash").spawn(hash);
            hash.await.unwrap();
            late.await.unwrap();
            sleep(ms(1)).await;
            if stalls.try_iter().any(is_blamed) {
                return true;
            }
        }
        false
    });
    assert!(found);
}

#[test]
fn a_listener_that_panics_ends_neither_the_watchdog_nor_the_loop() {
    let (send, stalls) = channel();
    let watchdog = Watchdog::new(LIMIT).then(move |stall: &Stall| {
        let _ = send.send(stall.clone());
        std::panic::resume_unwind(Box::new("a listener's bug"));
    });
    let event_loop = Builder::new().watchdog(watchdog).build().unwrap();
    event_loop.block_on(async {
        for _ in 0..3 {
            block_until(&stalls, "the main future");
        }
    });
}

/// The number of threads of the process with the watchdog's name, of which the kernel keeps 15
/// bytes.
#[cfg(target_os = "linux")]
fn watchdogs() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.trim() == "phaseloop-watch")
        .count()
}

#[cfg(target_os = "linux")]
#[test]
fn one_thread_watches_all_loops_and_ends_with_the_last() {
    let test = "one_thread_watches_all_loops_and_ends_with_the_last";
    let body = || {
        let (one, stalls) = watched();
        let (two, _) = watched();
        let others = std::thread::spawn(|| {
            let (three, stalls) = watched();
            three.block_on(async { block_until(&stalls, "the main future") });
            assert_eq!(watchdogs(), 1);
        });
        one.block_on(async { block_until(&stalls, "the main future") });
        others.join().unwrap();
        drop((one, two));
        while watchdogs() > 0 {
            std::thread::yield_now();
        }
        // Another one begins with the next loop.
        let (four, stalls) = watched();
        four.block_on(async { block_until(&stalls, "the main future") });
    };
    if let Some(child) = in_child(&[], test, body) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

/// Without a listener the lines are on standard error.
#[test]
fn a_stall_is_printed_on_standard_error() {
    let body = || {
        let watchdog = Watchdog::new(LIMIT).stack(false);
        let event_loop = Builder::new().watchdog(watchdog).build().unwrap();
        event_loop.block_on(async {
            block_until_let_go();
            sleep(ms(1)).await;
            assert!(LoopHandle::current().is_alive());
        });
    };
    let test = "a_stall_is_printed_on_standard_error";
    if let Some(child) = in_child(&[], test, body) {
        let text = read_and_let_go(child, "so far");
        let reported = text.find("phaseloop: stall: ").expect(&text);
        let over = text.find("phaseloop: stall: over after ").expect(&text);
        assert!(reported < over, "{text}");
        assert!(text[over..].contains("What keeps the loop alive"), "{text}");
    }
}

/// Each stuck loop is reported with the name of its thread.
#[test]
fn loops_that_are_stuck_at_the_same_time_are_told_by_their_threads() {
    let stuck = |name: &str| {
        let body = || {
            let (event_loop, stalls) = watched();
            event_loop.block_on(async { block_until(&stalls, "the main future") })
        };
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(body).unwrap()
    };
    for (name, thread) in ["one", "two"].map(|name| (name, stuck(name))) {
        let stall = thread.join().unwrap();
        assert_eq!(stall.thread.as_deref(), Some(name));
        let head = stall.to_string();
        let head = head.lines().next().unwrap();
        assert!(head.ends_with(&format!(", thread \"{name}\"")), "{head}");
    }
}

/// The names of a stack take long to read the first time: the line of the stall does not wait for
/// them, the loop does not either, and the end is reported behind them.
#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
#[test]
fn a_stall_is_printed_with_the_function_that_blocks() {
    #[inline(never)]
    fn blocks_here() {
        block_until_let_go();
    }

    let body = || {
        let event_loop = Builder::new()
            .watchdog(Watchdog::new(LIMIT))
            .build()
            .unwrap();
        event_loop.block_on(async { blocks_here() });
    };
    let test = "a_stall_is_printed_with_the_function_that_blocks";
    if let Some(child) = in_child(&[], test, body) {
        let text = read_and_let_go(child, "blocks_here");
        let reported = text.find("so far: the main future (").expect(&text);
        let stack = text.find("blocks_here").expect(&text);
        let over = text.find("phaseloop: stall: over after ").expect(&text);
        assert!(reported < stack && stack < over, "{text}");
        assert!(text[over..].contains("keeps the loop alive"), "{text}");
    }
}
