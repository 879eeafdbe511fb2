//! What never changes, whatever the seed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{UnixListener, UnixStream};
use phaseloop::phase::{Check, Prepare};
use phaseloop::shuffle::{Determinism, Explore, Kind};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    AsyncHandle, LoopHandle, next_tick, phase, queue_microtask, set_immediate, spawn,
    spawn_blocking,
};

type Trace = Rc<RefCell<Vec<String>>>;

/// Runs a program under 500 seeds and checks that its trace is always that of the usual run.
fn is_fixed<F: Future<Output = ()>>(program: impl Fn(Trace) -> F) {
    is_fixed_in(Explore::new(), program);
}

fn is_fixed_in<F: Future<Output = ()>>(explore: Explore, program: impl Fn(Trace) -> F) {
    let usual: RefCell<Option<Vec<String>>> = RefCell::new(None);
    // A child that another test starts may delay the end of a stream, which these programs permit.
    let explore = explore.seeds(500).check(Determinism::Off);
    let explored = explore.try_run(|| {
        let trace = Trace::default();
        let run = program(trace.clone());
        let usual = &usual;
        async move {
            run.await;
            let trace = trace.take();
            let mut usual = usual.borrow_mut();
            assert!(!trace.is_empty());
            assert_eq!(*usual.get_or_insert_with(|| trace.clone()), trace);
        }
    });
    explored.unwrap_or_else(|found| panic!("{found}"));
}

fn note(trace: &Trace, text: impl Into<String>) {
    trace.borrow_mut().push(text.into());
}

/// Keeps events, jobs and timers of the loop busy meanwhile, so that there is something to shuffle.
fn noise() {
    for _ in 0..2 {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            for _ in 0..5 {
                theirs.write_all(b"x").await.unwrap();
                sleep(Duration::from_millis(1)).await;
            }
        })
        .detach();
        spawn(async move {
            let mut byte = [0];
            while ours.read(&mut byte).await.unwrap() > 0 {}
        })
        .detach();
    }
    for _ in 0..3 {
        spawn_blocking(|| ()).detach();
    }
}

#[test]
fn phases_of_a_turn_keep_their_order() {
    // Within a turn; the number of turns depends on what arrives.
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let turn = Rc::new(RefCell::new(Vec::new()));
        let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
        let log = |name: &'static str| {
            let turn = turn.clone();
            move || turn.borrow_mut().push(name)
        };
        let (on_prepare, on_check) = (log("prepare"), log("check"));
        prepare.start(move |_| on_prepare()).unwrap();
        check.start(move |_| on_check()).unwrap();
        sleep(Duration::from_millis(20)).await;
        let turns = turn.take();
        assert!(turns.len() > 3);
        for hooks in turns.chunks_exact(2) {
            note(&trace, hooks.join(" "));
        }
        trace.borrow_mut().dedup();
    });
}

#[test]
fn ticks_come_before_microtasks_and_both_before_immediates() {
    is_fixed(|trace| async move {
        noise();
        for round in 0..3 {
            type Queue = fn(Box<dyn FnOnce()>);
            let entries: [(&str, Queue); 3] = [
                ("immediate", |f| _ = set_immediate(f)),
                ("microtask", |f| queue_microtask(f)),
                ("tick", |f| next_tick(f)),
            ];
            for (name, queue) in entries {
                let trace = trace.clone();
                queue(Box::new(move || note(&trace, format!("{name} {round}"))));
            }
            phase::check().await;
        }
    });
}

#[test]
fn timers_run_by_deadline_and_then_by_start() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let mut timers = Vec::new();
        for (name, millis) in [("c", 9), ("a", 3), ("d", 9), ("b", 4)] {
            let timer = Timer::new(&handle);
            let trace = trace.clone();
            let after = Duration::from_millis(millis);
            timer
                .start(after, Duration::ZERO, move |_| note(&trace, name))
                .unwrap();
            timers.push(timer);
        }
        sleep(Duration::from_millis(200)).await;
    });
}

#[test]
fn queued_entries_of_a_phase_run_in_the_order_of_queueing() {
    is_fixed(|trace| async move {
        noise();
        for name in ["a", "b", "c"] {
            let trace = trace.clone();
            set_immediate(move || note(&trace, name));
        }
        for name in ["d", "e"] {
            let trace = trace.clone();
            spawn(async move {
                phase::check().await;
                note(&trace, name);
            })
            .detach();
        }
        sleep(Duration::from_millis(5)).await;
    });
}

#[test]
fn closes_complete_in_the_order_of_closing() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let timers = ["a", "b", "c"].map(|name| (name, Timer::new(&handle)));
        for (name, timer) in timers {
            let trace = trace.clone();
            let close = timer.close();
            spawn(async move {
                close.await;
                note(&trace, name);
            })
            .detach();
        }
        sleep(Duration::from_millis(5)).await;
    });
}

#[test]
fn async_handles_run_in_the_order_of_creation() {
    is_fixed(|trace| async move {
        let handle = LoopHandle::current();
        let handles = ["a", "b"].map(|name| {
            let trace = trace.clone();
            AsyncHandle::new(&handle, move |_| note(&trace, name)).unwrap()
        });
        for handle in handles.iter().rev() {
            handle.send().unwrap();
        }
        phase::check().await;
    });
}

#[test]
fn the_bytes_of_a_stream_keep_their_order() {
    is_fixed(|trace| async move {
        noise();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            for byte in 0..50_u8 {
                theirs.write_all(&[byte]).await.unwrap();
                if byte % 7 == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
            }
        })
        .detach();
        let mut bytes = Vec::new();
        ours.read_to_end(&mut bytes).await.unwrap();
        note(&trace, format!("{bytes:?}"));
    });
}

#[test]
fn the_waiters_of_one_source_are_woken_oldest_first_with_a_drain_after_each() {
    is_fixed(|trace| async move {
        noise();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Rc::new(ours);
        let waiters = ["a", "b"].map(|name| {
            let (ours, trace) = (ours.clone(), trace.clone());
            spawn(async move {
                ours.readable().await.unwrap();
                note(&trace, name);
                next_tick(move || note(&trace, format!("tick-{name}")));
            })
        });
        phase::check().await;
        theirs.write_all(b"x").await.unwrap();
        for waiter in waiters {
            waiter.await.unwrap();
        }
    });
}

#[test]
fn the_end_of_a_stream_is_not_lost_by_a_delay() {
    is_fixed(|trace| async move {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            theirs.write_all(b"all").await.unwrap();
            drop(theirs);
        })
        .detach();
        let mut text = String::new();
        ours.read_to_string(&mut text).await.unwrap();
        note(&trace, text);
    });
}

#[test]
fn what_a_job_sends_comes_before_async_handles() {
    // Within a poll phase: the job may end in a later one.
    is_fixed(|trace| async move {
        let handle = LoopHandle::current();
        let job_turn = Rc::new(Cell::new(None));
        let async_turn = Rc::new(Cell::new(None));
        let (turn, clock) = (async_turn.clone(), handle.clone());
        let sent = AsyncHandle::new(&handle, move |_| turn.set(Some(clock.turns()))).unwrap();
        let sender = sent.sender();
        let (turn, before, clock) = (job_turn.clone(), async_turn.clone(), handle.clone());
        handle
            .queue_work(
                move || sender.send().unwrap(),
                move |_| {
                    assert_ne!(before.get(), Some(clock.turns()), "the handle came first");
                    turn.set(Some(clock.turns()));
                },
            )
            .unwrap();
        while job_turn.get().is_none() || async_turn.get().is_none() {
            sleep(Duration::from_millis(1)).await;
        }
        note(&trace, "both");
    });
}

#[test]
fn what_is_started_in_a_pass_waits_for_the_next_one() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        // An immediate of an immediate, and a timer of a timer, both due at once.
        let (log, clock) = (trace.clone(), handle.clone());
        set_immediate(move || {
            let turn = clock.turns();
            set_immediate(move || note(&log, format!("{} turn later", clock.turns() - turn)));
        });
        let timers = Rc::new(RefCell::new(Vec::new()));
        let first = Timer::new(&handle);
        let (log, all) = (trace.clone(), timers.clone());
        first
            .start(Duration::ZERO, Duration::ZERO, move |timer| {
                let clock = phaseloop::Handle::event_loop(timer);
                let turn = clock.turns();
                let second = Timer::new(&clock);
                let log = log.clone();
                second
                    .start(Duration::ZERO, Duration::ZERO, move |_| {
                        assert_ne!(clock.turns(), turn, "in the same pass");
                        note(&log, "timer of a timer");
                    })
                    .unwrap();
                all.borrow_mut().push(second);
            })
            .unwrap();
        sleep(Duration::from_millis(100)).await;
        // Which of the two comes first depends on what else the turns have to do.
        trace.borrow_mut().sort_unstable();
    });
}

#[test]
fn hooks_run_in_reverse_order_of_start() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let turns = Rc::new(RefCell::new(Vec::new()));
        let hooks = ["a", "b", "c"].map(|name| {
            let (hook, turns) = (Check::new(&handle), turns.clone());
            hook.start(move |_| turns.borrow_mut().push(name)).unwrap();
            hook
        });
        sleep(Duration::from_millis(10)).await;
        drop(hooks);
        for turn in turns.take().chunks(3) {
            note(&trace, turn.concat());
        }
        trace.borrow_mut().dedup();
        assert_eq!(*trace.borrow(), ["cba"]);
    });
}

#[test]
fn one_event_serves_the_reader_before_the_writer() {
    // A poll for nothing parts them, and so does an attempt of one direction that would block. The
    // buffer is filled to the end.
    let kinds = [Kind::Wake, Kind::Attempt, Kind::Read, Kind::Write];
    let explore = kinds.into_iter().fold(Explore::new(), Explore::without);
    is_fixed_in(explore, |trace| async move {
        noise();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (ours, theirs) = (Rc::new(ours), Rc::new(theirs));
        // Both directions are stuck: the buffer is full, and nothing has come.
        while ours.try_write(&[0; 4096]).is_ok() {}
        let (reader, log) = (ours.clone(), trace.clone());
        let writes = {
            let (writer, log) = (ours.clone(), trace.clone());
            spawn(async move {
                writer.writable().await.unwrap();
                note(&log, "write");
            })
        };
        let reads = spawn(async move {
            reader.readable().await.unwrap();
            note(&log, "read");
        });
        phase::check().await;
        assert!(trace.borrow().is_empty());
        // In one callback: the kernel reports both directions at once.
        let mut rest = vec![0; 1 << 20];
        while theirs.try_read(&mut rest).is_ok() {}
        while theirs.try_write(b"x").is_err() {}
        reads.await.unwrap();
        writes.await.unwrap();
    });
}

#[test]
fn the_writes_of_a_stream_complete_in_their_order() {
    is_fixed(|trace| async move {
        noise();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (ours, lock) = (Rc::new(ours), Rc::new(Cell::new(0)));
        let writers = [0, 1, 2].map(|number| {
            let (ours, lock, trace) = (ours.clone(), lock.clone(), trace.clone());
            spawn(async move {
                while lock.get() != number {
                    phase::check().await;
                }
                (&*ours).write_all(&[number; 20_000]).await.unwrap();
                note(&trace, format!("written {number}"));
                lock.set(number + 1);
            })
        });
        let mut bytes = vec![0; 60_000];
        theirs.read_exact(&mut bytes).await.unwrap();
        assert!(
            bytes.is_sorted(),
            "bytes of one write end before those of the next"
        );
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[test]
fn the_messages_of_one_sender_keep_their_order() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let remote = handle.remote();
        let lists = std::sync::Arc::new(std::sync::Mutex::new(vec![Vec::new(); 3]));
        let jobs = [0, 1, 2].map(|sender| {
            let (remote, lists) = (remote.clone(), lists.clone());
            spawn_blocking(move || {
                for message in 0..4 {
                    let lists = lists.clone();
                    let note = move || lists.lock().unwrap()[sender].push(message);
                    remote.call(note).unwrap();
                }
            })
        });
        for job in jobs {
            job.await.unwrap();
        }
        sleep(Duration::from_millis(200)).await;
        note(&trace, format!("{:?}", lists.lock().unwrap()));
    });
}

#[test]
fn connections_are_accepted_in_the_order_of_their_arrival() {
    let directory = crate::util::files::Directory::new("shuffled-listener");
    is_fixed(|trace| {
        let path = directory.path("socket");
        let _ = std::fs::remove_file(&path);
        async move {
            noise();
            let listener = UnixListener::bind(&path).unwrap();
            // Connects complete with the call: the order of arrival is that of the calls.
            let mut clients = Vec::new();
            for byte in 0..4 {
                let client = UnixStream::connect(&path).await.unwrap();
                while client.try_write(&[byte]).is_err() {
                    client.writable().await.unwrap();
                }
                clients.push(client);
            }
            for _ in &clients {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut byte = [0];
                stream.read_exact(&mut byte).await.unwrap();
                note(&trace, byte[0].to_string());
            }
        }
    });
}

#[test]
fn a_closed_source_gets_nothing_that_was_held_for_it() {
    // R94: a source that is made after the close does not inherit its events.
    is_fixed(|trace| async move {
        noise();
        for _ in 0..3 {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(b"x").await.unwrap();
            phase::check().await;
            drop(ours);
            let (new, peer) = UnixStream::pair().unwrap();
            let read = new.readable();
            let received = phaseloop::time::timeout(Duration::from_millis(120), read).await;
            note(&trace, format!("inherited: {}", received.is_ok()));
            drop((peer, theirs));
        }
    });
}
