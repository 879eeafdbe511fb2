//! Why does it hang, why did it exit: the report of a loop, and the error of a run that ended too
//! early.
//!
//! What the report says is for people; the tests hold it to the facts in it, and one to its whole
//! text.

use crate::util::files::Directory;
use crate::util::polls::poll_once;
use crate::util::pool::{Hold, with_threads};
use crate::util::sockets::udp_pair;
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::future::pending;
use std::sync::mpsc;

use futures::FutureExt;
use futures::channel::oneshot;
use phaseloop::io::Source;
#[cfg(unix)]
use phaseloop::net::UnixStream;
use phaseloop::phase::PhaseFuture;
#[cfg(unix)]
use phaseloop::process::Command;
#[cfg(unix)]
use phaseloop::signal::ctrl_c;
use phaseloop::time::{Timer, sleep};
use phaseloop::{EventLoop, Handle, LoopHandle, Remote, block_on, fs, phase, run, spawn, task};
use tokio_test::assert_pending;

/// `(tests/loop/report.rs:LINE:`, as it follows the name of what was made there.
fn at(line: u32) -> String {
    format!("({}:{line}:", file!())
}

/// The report as text, without the columns.
fn report(handle: &LoopHandle) -> String {
    let text = handle.report().to_string();
    let lines = text.lines().map(|line| {
        let mut parts = line.split(concat!(file!(), ":"));
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (line, rest) = part.split_once(':').unwrap();
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            out += &format!("#{line}{rest}");
        }
        out + "\n"
    });
    lines.collect()
}

#[test]
fn a_report_says_what_keeps_the_loop_alive_and_who_waits_for_what() {
    let (mut event_loop, handle, _) = paused();
    let (socket, _peer) = udp_pair();
    let name = socket_name(&socket);
    let l = line!() + 1;
    let idle_timer = Timer::new(&handle);
    let timer = Timer::new(&handle);
    timer.start(ms(1_500), ZERO, |_| ()).unwrap();
    let unheard = Timer::new(&handle);
    unheard.start(ms(60_000), ZERO, |_| ()).unwrap();
    unheard.unref();
    let source = Source::new(&handle, socket).unwrap();
    let read = async move { source.readable().await.unwrap() };
    let named = task::Builder::new().name("reader");
    let reader = named.spawn_on(read, &handle);
    let joiner = handle.spawn(async { reader.await.unwrap() });
    let sleeper = handle.spawn(async { sleep(ms(20)).await });
    let stuck = handle.spawn(pending::<()>());
    turn(&mut event_loop);
    let expected = format!(
        "\
What keeps the loop alive (3):
  timer (#{}): due in 1.5s
  {name} (#{}): a reader is waiting, wakes task 1 \"reader\"
  sleep (#{}): due in 20ms, wakes task 3
Open, without keeping it alive (2):
  timer (#{}): not started
  timer (#{}): unref'd, due in 60s
Pending (4):
  task 1 \"reader\" (#{}): waits for {name} (#{})
  task 2 (#{}): waits for task 1 \"reader\"
  task 3 (#{}): waits for sleep (#{})
  task 4 (#{}): waits for something else (another crate's channel or lock, another thread)
",
        l + 1,
        l + 6,
        l + 11,
        l,
        l + 3,
        l + 9,
        l + 6,
        l + 10,
        l + 11,
        l + 11,
        l + 12,
    );
    assert_eq!(report(&handle), expected);
    assert_eq!(
        format!("{:?}", handle.report()),
        handle.report().to_string()
    );
    drop((idle_timer, timer, unheard, joiner, sleeper, stuck));
}

/// What a report calls a UDP socket.
fn socket_name(socket: &std::net::UdpSocket) -> String {
    let local = socket.local_addr().unwrap();
    match socket.peer_addr() {
        Ok(peer) => format!("UdpSocket {local} ↔ {peer}"),
        Err(_) => format!("UdpSocket {local}"),
    }
}

#[test]
fn nothing_keeps_an_empty_loop_alive_and_a_dropped_one_says_so() {
    let (event_loop, handle, _) = paused();
    let text = handle.report().to_string();
    assert_eq!(text, "Nothing keeps the loop alive.\nNo task is pending.\n");
    drop(event_loop);
    let text = handle.report().to_string();
    assert_eq!(text, "The loop has been dropped.\n");
}

#[test]
fn the_main_future_is_in_the_report_with_its_line() {
    let line = line!() + 1;
    block_on(async {
        let handle = LoopHandle::current();
        let text = handle.report().to_string();
        let root = format!("future of block_on {}", at(line));
        assert!(text.contains(&root), "{text}");
        assert!(
            text.contains(&format!("the main future {}", at(line))),
            "{text}"
        );
    });
    // The root of `run` is pending, too, but it keeps nothing alive.
    let line = line!() + 1;
    run(async {
        let text = LoopHandle::current().report().to_string();
        assert!(
            text.contains(&format!("the main future {}", at(line))),
            "{text}"
        );
        assert!(!text.contains("future of block_on"), "{text}");
    })
    .unwrap();
}

/// Another task requests the report: the main future is named with what it waits for.
#[test]
fn the_report_says_what_the_main_future_waits_for() {
    let (event_loop, handle, _) = paused();
    let asks = handle.spawn(async {
        phase::check().await;
        LoopHandle::current().report().to_string()
    });
    let mut line = 0;
    let main = line!() + 1;
    event_loop.block_on(async {
        line = line!() + 1;
        sleep(ms(5)).await;
    });
    let text = event_loop.block_on(asks).unwrap();
    let (_, rest) = text
        .split_once(&format!("the main future {}", at(main)))
        .unwrap();
    assert!(
        rest.contains(&format!("waits for sleep {}", at(line))),
        "{text}"
    );
    assert!(text.contains(", wakes the main future"), "{text}");
}

#[test]
fn thousands_are_one_line_with_a_count() {
    let (mut event_loop, handle, _) = paused();
    let line = line!() + 2;
    for number in 0..5_000 {
        let task = handle.spawn(async move { sleep(ms(1_000 + number)).await });
        task.detach();
    }
    turn(&mut event_loop);
    let text = handle.report().to_string();
    assert_eq!(text.lines().count(), 4, "{text}");
    let sleeps = format!("5000 × sleep {}", at(line));
    assert!(text.contains(&sleeps), "{text}");
    assert!(
        text.contains("the first due in 1s, the last due in 5.999s"),
        "{text}"
    );
    let tasks = format!("5000 × task spawned at {}", &at(line)[1..]);
    assert!(text.contains(&tasks), "{text}");
}

/// Many different lines are cut.
#[test]
fn a_part_has_some_fifty_lines_at_most() {
    let (mut event_loop, handle, _) = paused();
    for _ in 0..100 {
        // Each waits for another one: nothing is alike.
        let task = handle.spawn(pending::<()>());
        handle.spawn(task.map(drop)).detach();
    }
    turn(&mut event_loop);
    let text = handle.report().to_string();
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.trim_end().ends_with("more"), "{text}");
}

#[test]
fn jobs_are_named_with_who_has_asked_for_them() {
    let directory = Directory::new("report-jobs");
    let path = directory.file("file", "text");
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let handle = LoopHandle::current();
        let hold_line = line!() + 1;
        let hold = Hold::new();
        let reader = task::Builder::new().name("reader").spawn({
            let path = path.clone();
            async move { fs::read(path).await.unwrap() }
        });
        let mut meta = Box::pin(fs::metadata(&path));
        assert_pending!(poll_once(&mut meta).await);
        phase::check().await;
        let text = handle.report().to_string();
        let blocking = format!("pool job spawn_blocking {}", at(hold_line));
        assert!(text.contains(&blocking), "{text}");
        assert!(text.contains("): class Cpu, wakes task"), "{text}");
        let of_reader = "pool job read: class Fs, wakes task 2 \"reader\"";
        assert!(text.contains(of_reader), "{text}");
        let of_main = "pool job metadata: class Fs, wakes the main future";
        assert!(text.contains(of_main), "{text}");
        drop(hold);
        meta.await.unwrap();
        assert_eq!(reader.await.unwrap(), b"text");
        phase::check().await;
        let text = handle.report().to_string();
        assert!(!text.contains("pool job"), "{text}");
    });
}

#[test]
fn a_wait_for_any_phase_is_named_and_keeps_the_loop_alive() {
    type Wait = fn() -> PhaseFuture;
    let waits = [
        ("pending", phase::pending as Wait),
        ("idle", phase::idle),
        ("prepare", phase::prepare),
        ("poll", phase::poll),
        ("check", phase::check),
        ("closing", phase::closing),
        ("timers", phase::timers),
    ];
    for (name, wait) in waits {
        block_on(async {
            let waiting = spawn(async move { wait().await });
            // The task is polled behind this one, and waits then.
            task::yield_microtask().await;
            let text = LoopHandle::current().report().to_string();
            assert!(
                text.contains(&format!("queued for the {name} phase")),
                "{text}"
            );
            assert!(
                text.contains(&format!("waits for the {name} phase")),
                "{text}"
            );
            waiting.await.unwrap();
        });
    }
}

/// A pool job whose future was dropped does not keep the loop alive.
#[test]
fn a_job_that_was_given_up_is_not_in_the_report() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let handle = LoopHandle::current();
        let hold = Hold::new();
        let mut given_up = Box::pin(fs::metadata("/"));
        assert_pending!(poll_once(&mut given_up).await);
        assert!(handle.report().to_string().contains("metadata"));
        drop(given_up);
        assert!(!handle.report().to_string().contains("metadata"));
        drop(hold);
    });
}

/// A waiting write keeps the loop alive although its stream is unref'd; an unref'd sleep does not.
#[cfg(unix)]
#[test]
fn r156_what_is_unrefd_is_listed_where_it_counts() {
    block_on(async {
        let handle = LoopHandle::current();
        let (stream, _peer) = UnixStream::pair().unwrap();
        stream.unref();
        while stream.try_write(&[0; 4096]).is_ok() {}
        let mut write = Box::pin(stream.writable());
        assert_pending!(poll_once(&mut write).await);
        let mut sleep = Box::pin(sleep(ms(60_000)).unref());
        assert_pending!(poll_once(&mut sleep).await);
        let text = handle.report().to_string();
        let (keepers, rest) = text.split_once("Open, without keeping it alive").unwrap();
        let (others, _) = rest.split_once("Pending").unwrap();
        assert!(keepers.contains("a writer is waiting, unref'd"), "{text}");
        assert!(!keepers.contains("sleep"), "{text}");
        assert!(others.contains("sleep"), "{text}");
    });
}

#[test]
fn what_is_queued_is_counted_by_phase() {
    let (_event_loop, handle, _) = paused();
    for _ in 0..5 {
        handle.set_immediate(|| ());
    }
    handle.set_immediate(|| ()).unref();
    handle.queue_microtask(|| ());
    let text = handle.report().to_string();
    assert!(text.starts_with("What keeps the loop alive (6):"), "{text}");
    assert!(text.contains("5 × queued for the check phase"), "{text}");
    assert!(text.contains("woken tasks or queued closures"), "{text}");
}

#[test]
fn a_closing_handle_keeps_the_loop_alive() {
    let (mut event_loop, handle, _) = paused();
    let line = line!() + 1;
    let timer = Timer::new(&handle);
    drop(timer.close());
    let text = handle.report().to_string();
    let closing = format!("timer {}", at(line));
    assert!(text.contains(&closing), "{text}");
    assert!(
        text.contains("closed, completes in the closing phase"),
        "{text}"
    );
    finish(&mut event_loop);
    assert!(handle.report().to_string().starts_with("Nothing keeps"));
}

#[cfg(unix)]
#[test]
fn signals_children_watchers_and_phases_are_known_to_those_who_wait() {
    let directory = Directory::new("report-waits");
    block_on(async {
        let handle = LoopHandle::current();
        let first = line!() + 1;
        let signal = handle.spawn(ctrl_c());
        let mut watcher = fs::watch(&directory.0).unwrap();
        let watch = handle.spawn(async move { watcher.recv().await });
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = child.id();
        let exit = handle.spawn(child.exited());
        let turn = handle.spawn(async { phase::closing().await });
        phase::check().await;
        let text = report(&handle);
        let expected = [
            format!("task 1 (#{first}): waits for signal SIGINT (#{first})"),
            format!(
                "task 2 (#{}): waits for file watcher {} (#{})",
                first + 2,
                directory.0.display(),
                first + 1
            ),
            format!(
                "task 3 (#{}): waits for child {id} \"sleep\" (#{})",
                first + 5,
                first + 3
            ),
            format!("task 4 (#{}): waits for the closing phase", first + 6),
        ];
        for line in expected {
            assert!(text.contains(&line), "{line} in:\n{text}");
        }
        child.start_kill().unwrap();
        drop((signal, watch, exit, turn));
    });
}

/// The program that hangs is asked by another thread.
#[test]
fn another_thread_can_ask_for_the_report() {
    let event_loop = EventLoop::new().unwrap();
    let remote: Remote = event_loop.remote();
    let (done, is_done) = oneshot::channel::<()>();
    let asking = std::thread::spawn(move || {
        let (send, receive) = mpsc::channel();
        remote
            .call(move || {
                send.send(LoopHandle::current().report().to_string())
                    .unwrap()
            })
            .unwrap();
        let text: String = receive.recv().unwrap();
        done.send(()).unwrap();
        text
    });
    let line = line!() + 1;
    event_loop.block_on(is_done).unwrap();
    let text = asking.join().unwrap();
    assert!(
        text.contains(&format!("future of block_on {}", at(line))),
        "{text}"
    );
}

// Why did it exit?

#[test]
fn a_deadlock_names_what_was_pending() {
    let main = line!() + 2;
    let mut line = 0;
    let error = run(async {
        line = line!() + 1;
        let task = spawn(pending::<()>());
        let named = task::Builder::new().name("reader").spawn(pending::<()>());
        named.detach();
        task.await.unwrap();
    });
    let error = error.unwrap_err();
    assert!(error.is_deadlock());
    let text = error.to_string();
    assert!(
        text.contains(&format!("the main future {}", at(main))),
        "{text}"
    );
    assert!(text.contains(&format!("task 1 {}", at(line))), "{text}");
    assert!(
        text.contains(&format!("task 2 \"reader\" {}", at(line + 1))),
        "{text}"
    );
    assert!(
        text.contains("use `block_on`"),
        "it says what to do: {text}"
    );
    // What a `main` prints that returns it.
    assert_eq!(format!("{error:?}"), text);
}

#[test]
fn a_deadlock_says_what_each_waits_for() {
    let line = line!() + 2;
    let error = run(async {
        let (_sender, receiver) = phaseloop::sync::oneshot::channel::<()>();
        let task = task::Builder::new().name("waits").spawn(receiver);
        task.await.unwrap().unwrap();
    });
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("that waits for task 1 \"waits\", task 1"),
        "{text}"
    );
    let channel = format!("that waits for oneshot channel ({}:{line}:", file!());
    assert!(text.contains(&channel), "{text}");
}

#[test]
fn of_many_pending_tasks_the_oldest_are_named() {
    let error = run(async {
        for _ in 0..100 {
            spawn(pending::<()>()).detach();
        }
        pending::<()>().await;
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("task 8 "), "{text}");
    assert!(!text.contains("task 9 "), "{text}");
    assert!(text.contains("and 92 more tasks"), "{text}");
}

#[test]
fn a_run_that_was_stopped_names_what_was_pending() {
    let error = run(async {
        LoopHandle::current().stop();
        sleep(ms(1)).await;
    });
    let error = error.unwrap_err();
    assert!(error.is_stopped());
    assert!(error.to_string().contains("the main future"), "{error}");
}

#[test]
fn infos_print_in_one_line() {
    let (_event_loop, handle, _) = paused();
    let line = line!() + 1;
    let timer = Timer::new(&handle);
    let print = || {
        let text = handle.handles()[0].to_string();
        let (_, state) = text.split_once(')').unwrap();
        assert!(text.starts_with(&format!("timer {}", at(line))), "{text}");
        state.to_owned()
    };
    assert_eq!(print(), ", not active");
    timer.start(ms(1), ZERO, |_| ()).unwrap();
    assert_eq!(print(), ", active");
    timer.unref();
    assert_eq!(print(), ", active, unref'd");
    drop(timer.close());
    assert_eq!(print(), ", closing, unref'd");
}

#[test]
fn detach_lets_the_task_go_on() {
    let (mut event_loop, handle, trace) = paused();
    let says = trace.clone();
    handle
        .spawn(async move {
            sleep(ms(1)).await;
            says.log("done");
        })
        .detach();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "done");
}

/// The report in the guide is that of the example: its lines are there.
#[test]
fn the_report_of_the_guide_points_at_the_example() {
    let made_by = [
        "phaseloop::block_on(",
        "accept(",
        "TcpListener::bind(",
        "TcpStream::connect(",
        "Signals::new(",
        "sleep(",
        "spawn(",
        "phaseloop::spawn_blocking(",
        "Mutex::new(",
        "lock()",
        "mpsc::unbounded::<",
        "recv()",
    ];
    let guide = include_str!("../../src/guide/diagnosing.md");
    let example: Vec<_> = include_str!("../../examples/why_hang.rs").lines().collect();
    let places = guide.split("examples/why_hang.rs:").skip(1);
    let mut count = 0;
    for place in places {
        let (line, column) = place.split_once(':').unwrap();
        let is_digit = |character: char| character.is_ascii_digit();
        let (column, _) = column.split_once(|next| !is_digit(next)).unwrap();
        let place = format!("{line}:{column}");
        let (line, column): (usize, usize) = (line.parse().unwrap(), column.parse().unwrap());
        let call = &example[line - 1][column - 1..];
        assert!(
            made_by.iter().any(|name| call.starts_with(name)),
            "{place} is {call}; take the report anew from a run of the example"
        );
        count += 1;
    }
    assert!(count > 10, "there is a report");
}
