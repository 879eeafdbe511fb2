//! A tokio runtime inside the wait of the loop (`Builder::tokio`).
#![cfg(unix)]

use crate::util::panics::text_of;
use crate::util::trace::{ZERO, ms};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures::channel::oneshot;
use phaseloop::io::{PollEvents, PollHandle};
use phaseloop::phase::{Check, Prepare};
use phaseloop::time::{Timer, sleep};
use phaseloop::{Builder, EventLoop, Keeper, Local, LoopHandle, RunMode, net, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const HOUR: Duration = Duration::from_secs(3600);

fn island() -> (EventLoop, LoopHandle) {
    let event_loop = Builder::new().tokio().build().unwrap();
    let handle = event_loop.handle();
    (event_loop, handle)
}

/// Lets everything of tokio that is ready run, and what it wakes.
fn settle(event_loop: &mut EventLoop) {
    for _ in 0..4 {
        event_loop.run(RunMode::NoWait).unwrap();
    }
}

#[test]
fn sockets_timers_tasks_and_jobs_of_tokio_work_in_tasks_that_are_not_send() {
    let total = phaseloop::tokio::block_on(async {
        let total = Rc::new(Cell::new(0));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4];
            while peer.read_exact(&mut buffer).await.is_ok() {
                peer.write_all(&buffer).await.unwrap();
            }
        });
        let copy = total.clone();
        let client = spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            for n in 1..=10_u32 {
                stream.write_all(&n.to_be_bytes()).await.unwrap();
                copy.set(copy.get() + stream.read_u32().await.unwrap());
                tokio::time::sleep(ms(1)).await;
            }
        });
        client.await.unwrap();
        server.await.unwrap();
        let job = tokio::task::spawn_blocking(|| 45).await.unwrap();
        total.get() + job
    });
    assert_eq!(total, 100);
}

#[test]
fn sockets_of_both_worlds_talk_to_each_other() {
    phaseloop::tokio::block_on(async {
        let listener = net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 3];
            for _ in 0..50 {
                AsyncReadExt::read_exact(&mut stream, &mut buffer)
                    .await
                    .unwrap();
                AsyncWriteExt::write_all(&mut stream, &buffer)
                    .await
                    .unwrap();
            }
        });
        let client = tokio::spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut buffer = [0; 3];
            for _ in 0..50 {
                stream.write_all(b"abc").await.unwrap();
                stream.read_exact(&mut buffer).await.unwrap();
            }
            buffer
        });
        assert_eq!(&client.await.unwrap(), b"abc");
        server.await.unwrap();
    });
}

#[test]
fn a_local_set_runs_tasks_that_are_not_send() {
    phaseloop::tokio::block_on(async {
        let shared = Rc::new(Cell::new(0));
        let set = tokio::task::LocalSet::new();
        let copy = shared.clone();
        set.run_until(async move {
            let task = tokio::task::spawn_local(async move {
                tokio::time::sleep(ms(1)).await;
                copy.set(7);
            });
            task.await.unwrap();
        })
        .await;
        assert_eq!(shared.get(), 7);
    });
}

/// One wait is one callback: what it wakes runs before the check phase.
#[test]
fn tasks_of_tokio_run_in_the_poll_phase_and_their_wakes_are_drained_there() {
    let (mut event_loop, handle) = island();
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |text: &'static str| {
        let log = log.clone();
        move || log.lock().unwrap().push(text)
    };
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    let (in_prepare, in_check) = (note("prepare"), note("check"));
    prepare.start(move |_| in_prepare()).unwrap();
    check.start(move |_| in_check()).unwrap();
    let (in_tokio, in_loop) = (note("tokio"), note("woken"));
    let tick = note("tick");
    handle.enter(|| {
        let (sender, receiver) = oneshot::channel();
        let task = spawn(async move {
            receiver.await.unwrap();
            phaseloop::next_tick(tick);
            in_loop();
        });
        task.detach();
        drop(tokio::spawn(async move {
            in_tokio();
            sender.send(()).unwrap();
        }));
    });
    event_loop.run(RunMode::Once).unwrap();
    let order = log.lock().unwrap().join(" ");
    assert_eq!(order, "prepare tokio woken tick check");
}

#[test]
fn run_waits_for_tasks_of_both_worlds_that_wait_for_tokio_only() {
    let done = Rc::new(Cell::new(0));
    let far = Arc::new(AtomicBool::new(false));
    let (copy, mark) = (done.clone(), far.clone());
    phaseloop::tokio::run(async move {
        spawn(async move {
            tokio::time::sleep(ms(5)).await;
            copy.set(1);
        })
        .detach();
        drop(tokio::spawn(async move {
            tokio::time::sleep(ms(10)).await;
            mark.store(true, Ordering::Relaxed);
        }));
    })
    .unwrap();
    assert!(done.get() == 1 && far.load(Ordering::Relaxed));
}

#[test]
fn a_loop_with_tokio_and_nothing_else_is_not_alive() {
    let (mut event_loop, handle) = island();
    assert!(!handle.is_alive());
    assert!(!event_loop.run(RunMode::Default).unwrap());
    let task = handle.enter(|| tokio::spawn(tokio::time::sleep(ms(1))));
    assert!(handle.is_alive());
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert!(task.is_finished());
    assert!(event_loop.close().is_ok());
}

#[test]
fn the_report_and_the_keepers_name_what_waits_for_tokio() {
    let (mut event_loop, handle) = island();
    handle.enter(|| {
        drop(tokio::spawn(tokio::time::sleep(HOUR)));
        spawn(async { tokio::time::sleep(HOUR).await }).detach();
    });
    settle(&mut event_loop);
    let report = handle.report().to_string();
    assert!(report.contains("task of tokio"), "{report}");
    assert!(report.contains("waits for something of tokio"), "{report}");
    assert!(
        report.contains("pending tasks, which may wait for something of tokio"),
        "{report}"
    );
    assert!(handle.keepers().contains(&(Keeper::Runtime, 2)));
    let busy = event_loop.close().unwrap_err().to_string();
    assert!(busy.contains("2 × task with the runtime"), "{busy}");
}

#[test]
fn a_loop_that_never_sleeps_visits_tokio_now_and_then() {
    let (event_loop, handle) = island();
    let turns = event_loop.block_on(async {
        fn again(stop: Rc<Cell<bool>>) {
            if !stop.get() {
                drop(phaseloop::set_immediate(move || again(stop)));
            }
        }
        let stop = Rc::new(Cell::new(false));
        again(stop.clone());
        let before = handle.turns();
        for _ in 0..10 {
            tokio::spawn(async {}).await.unwrap();
        }
        stop.set(true);
        handle.turns() - before
    });
    // At most 61 turns for the spawn, and as many for the wake.
    assert!((10..=1300).contains(&turns), "{turns} turns for ten spawns");
}

/// A timer that a task of tokio starts is noticed although another one never sleeps.
#[test]
fn a_task_of_tokio_that_is_always_ready_does_not_starve_the_loop() {
    phaseloop::tokio::block_on(async {
        let polls = Arc::new(AtomicUsize::new(0));
        let count = polls.clone();
        let busy = tokio::spawn(async move {
            loop {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        sleep(ms(2)).await;
        spawn(async {}).await.unwrap();
        let inner = tokio::spawn(async { Local::new(sleep(ms(2))).await });
        inner.await.unwrap();
        let (sender, receiver) = oneshot::channel();
        drop(tokio::spawn(async move {
            let immediate = LoopHandle::current().set_immediate(|| sender.send(()).unwrap());
            drop(immediate);
        }));
        receiver.await.unwrap();
        busy.abort();
        assert!(polls.load(Ordering::Relaxed) > 0);
    });
}

/// The wait was begun with a later deadline, or without one.
#[test]
fn what_a_task_of_tokio_starts_on_the_loop_ends_the_wait() {
    let (mut event_loop, handle) = island();
    let far = Timer::new(&handle);
    far.start(HOUR, ZERO, |_| {}).unwrap();
    event_loop.block_on(async {
        for _ in 0..3 {
            let inner = tokio::spawn(async {
                tokio::time::sleep(ms(1)).await;
                Local::new(sleep(ms(1))).await;
            });
            inner.await.unwrap();
        }
        let inner = tokio::spawn(async {
            tokio::time::sleep(ms(1)).await;
            let (sender, receiver) = oneshot::channel();
            drop(LoopHandle::current().set_immediate(|| sender.send(()).unwrap()));
            receiver.await.unwrap();
            Local::new(spawn(async {})).await.unwrap();
        });
        inner.await.unwrap();
    });
    handle.enter(|| {
        drop(tokio::spawn(async {
            tokio::time::sleep(ms(1)).await;
            LoopHandle::current().stop();
        }))
    });
    assert!(event_loop.run(RunMode::Default).unwrap(), "it was stopped");
}

#[test]
fn every_run_mode_runs_tokio() {
    let (mut event_loop, handle) = island();
    let tasks = |n| handle.enter(|| Vec::from_iter((0..n).map(|_| tokio::spawn(async {}))));
    let two = tasks(2);
    settle(&mut event_loop);
    assert!(two.iter().all(|task| task.is_finished()), "without a wait");
    let two = tasks(2);
    for _ in 0..4 {
        event_loop.turn(Some(ZERO)).unwrap();
    }
    assert!(two.iter().all(|task| task.is_finished()), "by turns");
    let late = handle.spawn(async { tokio::time::sleep(ms(2)).await });
    while !late.is_finished() {
        assert!(event_loop.run(RunMode::Once).unwrap() || late.is_finished());
    }
    let never = handle.spawn(async { tokio::time::sleep(HOUR).await });
    assert!(
        event_loop.turn(Some(ms(3))).unwrap(),
        "the limit ends the wait"
    );
    never.abort();
    assert!(!event_loop.run(RunMode::Default).unwrap());
}

#[test]
fn other_threads_reach_a_loop_that_waits_inside_tokio() {
    let (event_loop, _) = island();
    let remote = event_loop.remote();
    event_loop.block_on(async {
        for _ in 0..100 {
            let (sender, receiver) = oneshot::channel();
            let copy = remote.clone();
            let other = thread::spawn(move || copy.call(|| sender.send(()).unwrap()));
            receiver.await.unwrap();
            other.join().unwrap().unwrap();
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || sender.send(()).unwrap());
            receiver.await.unwrap();
            other.join().unwrap();
        }
    });
}

/// tokio sees only that the descriptor of the loop becomes readable, not that it stays so.
#[test]
fn a_level_triggered_handle_is_called_again_while_it_stays_ready() {
    let (mut event_loop, handle) = island();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let calls = Rc::new(Cell::new(0));
    let poll = PollHandle::new(&handle, ours).unwrap();
    let count = calls.clone();
    poll.start(PollEvents::READABLE, move |poll, _| {
        count.set(count.get() + 1);
        if count.get() == 5 {
            poll.stop();
        }
    })
    .unwrap();
    theirs.write_all(b"x").unwrap();
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert_eq!(calls.get(), 5);
}

#[test]
fn the_panic_of_a_task_of_tokio_is_in_its_handle_and_the_loop_goes_on() {
    let (event_loop, _) = island();
    event_loop.block_on(async {
        let task = tokio::spawn(async { panic!("of tokio") });
        assert!(task.await.unwrap_err().is_panic());
        let task = spawn(async { tokio::spawn(async { 7 }).await.unwrap() });
        assert_eq!(task.await.unwrap(), 7);
    });
    let panic = catch_unwind(AssertUnwindSafe(|| {
        event_loop.block_on(async {
            tokio::time::sleep(ms(1)).await;
            panic!("of the main future");
        });
    }));
    assert_eq!(text_of(&*panic.unwrap_err()), "of the main future");
    let answer = event_loop.block_on(async { tokio::spawn(async { 8 }).await.unwrap() });
    assert_eq!(answer, 8);
}

#[test]
fn a_loop_is_not_run_inside_a_task_of_tokio() {
    phaseloop::tokio::block_on(async {
        let nested = tokio::spawn(async { phaseloop::block_on(async {}) });
        let panic = nested.await.unwrap_err().into_panic();
        let text = text_of(&*panic);
        assert!(
            text.contains("cannot run an event loop from inside"),
            "{text}"
        );
    });
    let other = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let inside = || other.block_on(async { phaseloop::tokio::block_on(async {}) });
    let panic = catch_unwind(AssertUnwindSafe(inside)).unwrap_err();
    let text = text_of(&*panic);
    assert!(
        text.contains("Cannot start a runtime from within a runtime"),
        "{text}"
    );
}

#[test]
fn the_clock_of_a_loop_with_tokio_cannot_be_paused() {
    let builder = Builder::new().tokio().start_paused(true);
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(
        text.contains("the timers of tokio run in real time"),
        "{text}"
    );
    let (event_loop, _) = island();
    let pause = || event_loop.block_on(async { phaseloop::time::pause() });
    let panic = catch_unwind(AssertUnwindSafe(pause)).unwrap_err();
    let text = text_of(&*panic);
    assert!(text.contains("cannot be paused"), "{text}");
}

#[test]
fn a_task_of_tokio_cannot_pause_the_clock_while_the_loop_waits_for_it() {
    phaseloop::tokio::block_on(async {
        let pause = tokio::spawn(async {
            tokio::time::sleep(ms(1)).await;
            phaseloop::time::pause();
        });
        let panic = pause.await.unwrap_err().into_panic();
        assert!(text_of(&*panic).contains("cannot be paused"));
        assert!(!phaseloop::time::is_paused());
        sleep(ms(1)).await;
    });
}

#[test]
fn a_loop_with_tokio_cannot_be_embedded() {
    let (event_loop, _) = island();
    let error = event_loop.backend().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

/// Notes that it was dropped, and uses tokio while it is.
struct Dropped(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        drop(tokio::spawn(async {}));
        self.1.borrow_mut().push(self.0);
    }
}

#[test]
fn a_dropped_loop_drops_its_tasks_then_those_of_tokio() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let (mut event_loop, handle) = island();
    let (ours, theirs) = (
        Dropped("loop", log.clone()),
        Local::new(Dropped("tokio", log.clone())),
    );
    let begun = Arc::new(AtomicBool::new(false));
    let ended = Arc::new(AtomicBool::new(false));
    let (begin, end) = (begun.clone(), ended.clone());
    handle.enter(|| {
        drop(tokio::spawn(async move {
            let _held = theirs;
            let socket = Local::new(net::UdpSocket::bind("127.0.0.1:0"))
                .await
                .unwrap();
            let socket = Local::new(socket);
            tokio::time::sleep(HOUR).await;
            drop(socket);
        }));
        spawn(async move {
            let _held = ours;
            tokio::time::sleep(HOUR).await;
        })
        .detach();
        drop(tokio::task::spawn_blocking(move || {
            begin.store(true, Ordering::Release);
            thread::sleep(ms(5));
            end.store(true, Ordering::Release);
        }));
    });
    while !begun.load(Ordering::Acquire) {
        settle(&mut event_loop);
    }
    drop(event_loop);
    assert_eq!(*log.borrow(), ["loop", "tokio"]);
    assert!(ended.load(Ordering::Acquire), "a job that has begun ends");
    assert!(handle.is_closed() && !handle.is_alive());
}

#[phaseloop::test(tokio, timeout = "60s")]
async fn the_attributes_take_the_option() {
    assert_eq!(tokio::spawn(async { 7 }).await.unwrap(), 7);
}
