//! Poll handles with a callback (libuv's `uv_poll_t`), R235–R240: level-triggered, started, stopped
//! and restarted.

use crate::util::panics::panic_of;
use crate::util::sockets::{Local, local_pair};
use crate::util::trace::{Trace, finish, paused, turn};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::rc::Rc;

use phaseloop::io::{AsSource, PollEvents, PollHandle, Source};
use phaseloop::phase::{Check, Prepare};
use phaseloop::{Handle, Keeper, LoopHandle, RunMode};
#[cfg(target_os = "linux")]
use rustix::event::epoll;

const READABLE: PollEvents = PollEvents::READABLE;
const WRITABLE: PollEvents = PollEvents::WRITABLE;

/// Whether the poller reports disconnects, urgent data and errors.
const REPORTS_ALL: bool = cfg!(all(target_os = "linux", not(phaseloop_portable_poller)));

fn pair() -> (Local, Local) {
    let (a, b) = local_pair();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    client.set_nonblocking(true).unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server)
}

/// A callback that logs what is ready.
fn log<T: AsSource + 'static>(
    trace: &Trace,
) -> impl FnMut(&PollHandle<T>, std::io::Result<PollEvents>) + 'static {
    let trace = trace.clone();
    move |_, events| match events {
        Ok(events) => trace.log(format!("{events:?}").replace(" | ", "+")),
        Err(error) => trace.log(error.raw_os_error().unwrap()),
    }
}

#[test]
fn r237_a_callback_that_does_not_drain_is_called_again_in_each_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = pair();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    let poll = PollHandle::new(&handle, ours).unwrap();
    assert!(!poll.is_active() && poll.events().is_empty());
    poll.start(READABLE, log(&trace)).unwrap();
    assert!(poll.is_active());
    assert_eq!((poll.events(), poll.has_ref()), (READABLE, true));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare check", "nothing is there");
    theirs.write_all(b"x").unwrap();
    for _ in 0..3 {
        turn(&mut event_loop);
        assert_eq!(trace.take(), "prepare READABLE check");
    }
    poll.get_ref().read_exact(&mut [0]).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare check");
}

#[test]
fn the_handle_keeps_the_loop_alive_while_it_is_started() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = pair();
    let poll = PollHandle::new(&handle, ours).unwrap();
    assert!(!handle.is_alive());
    let log = trace.clone();
    let callback = move |poll: &PollHandle<Local>, events| {
        log.log(format_args!("{:?}", Result::unwrap(events)));
        poll.stop();
    };
    poll.start(READABLE, callback).unwrap();
    assert_eq!(handle.keepers(), [(Keeper::Poll, 1)]);
    theirs.write_all(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "READABLE");
    assert!(!poll.is_active() && poll.events().is_empty());
    poll.restart(READABLE).unwrap();
    poll.unref();
    assert!(!handle.is_alive());
    poll.ref_();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "READABLE", "by the callback of before");
}

#[test]
fn r236_start_replaces_the_set_and_an_empty_one_is_a_stop() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = pair();
    theirs.write_all(b"x").unwrap();
    let poll = PollHandle::new(&handle, ours).unwrap();
    let error = poll.restart(READABLE).unwrap_err();
    assert!(error.to_string().contains("never started"), "{error}");
    for (events, expected) in [
        (READABLE | WRITABLE, "READABLE+WRITABLE"),
        (WRITABLE, "WRITABLE"),
        (PollEvents::NONE, ""),
        (READABLE, "READABLE"),
        (PollEvents::DISCONNECT | READABLE, "READABLE"),
    ] {
        let started = poll.start(events, log(&trace));
        if !REPORTS_ALL && events.contains(PollEvents::DISCONNECT) {
            assert_eq!(started.unwrap_err().kind(), ErrorKind::Unsupported);
            continue;
        }
        started.unwrap();
        assert_eq!(poll.is_active(), !events.is_empty());
        turn(&mut event_loop);
        assert_eq!(trace.take(), expected);
    }
    poll.restart(WRITABLE).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "WRITABLE");
    poll.stop();
    poll.stop();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[cfg(target_os = "linux")]
#[test]
fn r236_r238_disconnects_hang_ups_and_errors() {
    if !REPORTS_ALL {
        return;
    }
    let (mut event_loop, handle, trace) = paused();
    // A half-close is readable, and a disconnect.
    let (client, server) = tcp_pair();
    let poll = PollHandle::new(&handle, client).unwrap();
    let events = READABLE | PollEvents::DISCONNECT;
    poll.start(events, log(&trace)).unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE+DISCONNECT");
    poll.start(PollEvents::DISCONNECT, log(&trace)).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "DISCONNECT");
    drop(poll);
    // A hang-up alone is all that was asked for.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let poll = PollHandle::new(&handle, reader).unwrap();
    poll.start(READABLE | PollEvents::PRIORITIZED, log(&trace))
        .unwrap();
    drop(writer);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE+PRIORITIZED");
    drop(poll);
    // So is one beside bytes that are left.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&writer, b"left").unwrap();
    let poll = PollHandle::new(&handle, reader).unwrap();
    poll.start(READABLE | PollEvents::DISCONNECT, log(&trace))
        .unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE");
    drop(writer);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE+DISCONNECT");
    drop(poll);
    // An error stops the handle: the reader of this pipe is gone.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let poll = PollHandle::new(&handle, writer).unwrap();
    poll.start(WRITABLE, log(&trace)).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "WRITABLE");
    drop(reader);
    turn(&mut event_loop);
    let bad = rustix::io::Errno::BADF.raw_os_error().to_string();
    assert_eq!(trace.take(), bad);
    assert!(!poll.is_active());
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    poll.restart(WRITABLE).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), bad, "started anew, it says so again");
}

#[cfg(unix)]
#[cfg(feature = "net")]
#[test]
fn r236_libuv_poll_oob_urgent_data_is_an_event_of_its_own() {
    use rustix::net::{RecvFlags, SendFlags, recv, send};
    if !REPORTS_ALL {
        return;
    }
    let (mut event_loop, handle, trace) = paused();
    let (client, server) = tcp_pair();
    let poll = PollHandle::new(&handle, client).unwrap();
    poll.start(PollEvents::PRIORITIZED, log(&trace)).unwrap();
    (&server).write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    send(&server, b"!", SendFlags::OOB).unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "PRIORITIZED");
    let mut byte = [0_u8];
    recv(poll.get_ref(), &mut byte, RecvFlags::OOB).unwrap();
    assert_eq!(byte, *b"!");
}

#[test]
fn r239_stop_close_drop_and_a_new_start_drop_what_the_running_phase_has_heard() {
    type Polls = Rc<RefCell<Vec<Option<PollHandle<Local>>>>>;
    type Act = fn(&Polls, usize);
    let acts: [Act; 4] = [
        |polls, index| polls.borrow()[index].as_ref().unwrap().stop(),
        |polls, index| drop(polls.borrow()[index].as_ref().unwrap().close()),
        |polls, index| drop(polls.borrow_mut()[index].take()),
        |polls, index| {
            let polls = polls.borrow();
            polls[index].as_ref().unwrap().restart(WRITABLE).unwrap();
        },
    ];
    for act in acts {
        let (mut event_loop, handle, _) = paused();
        let (polls, calls) = (Polls::default(), Rc::new(Cell::new(0)));
        let mut peers = Vec::new();
        for index in 0..2 {
            let (ours, mut theirs) = pair();
            theirs.write_all(b"x").unwrap();
            peers.push(theirs);
            let poll = PollHandle::new(&handle, ours).unwrap();
            let (others, count) = (polls.clone(), calls.clone());
            poll.start(READABLE, move |_, events| {
                assert_eq!(events.unwrap(), READABLE);
                count.set(count.get() + 1);
                // The other one was reported together with this one.
                act(&others, 1 - index);
            })
            .unwrap();
            polls.borrow_mut().push(Some(poll));
        }
        event_loop.run(RunMode::NoWait).unwrap();
        assert_eq!(calls.get(), 1);
        drop(polls.take());
    }
}

#[test]
fn r235_libuv_poll_bad_fdtype_and_multiple_handles() {
    let (mut event_loop, handle, trace) = paused();
    // Elsewhere, files are no sources by their type.
    #[cfg(unix)]
    for path in [std::env::current_exe().unwrap(), "/".into()] {
        let refused = PollHandle::new(&handle, File::open(path).unwrap());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    let (ours, mut theirs) = pair();
    let ours = Rc::new(ours);
    let [first, second] = [(); 2].map(|()| PollHandle::new(&handle, ours.clone()).unwrap());
    first.start(READABLE, log(&trace)).unwrap();
    let error = second.start(READABLE, log(&trace)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(!second.is_active());
    let error = PollHandle::new(&handle, ours.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let error = Source::new(&handle, ours.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    first.stop();
    second.restart(READABLE).unwrap();
    // This one is stopped: it must not take the other out.
    drop(first);
    theirs.write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE");
}

#[test]
fn r240_the_source_comes_back_and_is_nothing_to_the_loop_after_the_stop() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = pair();
    let poll = PollHandle::new(&handle, ours).unwrap();
    poll.start(READABLE, log(&trace)).unwrap();
    theirs.write_all(b"x").unwrap();
    let mut ours = poll.into_inner().unwrap();
    assert_eq!(handle.handles(), []);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    ours.read_exact(&mut [0]).unwrap();
}

#[test]
fn libuv_poll_close_each_is_reported_once() {
    let (mut event_loop, handle, _) = paused();
    let closed = Rc::new(Cell::new(0));
    let mut polls = Vec::new();
    for _ in 0..128 {
        let (ours, theirs) = pair();
        (&theirs).write_all(b"x").unwrap();
        let poll = PollHandle::new(&handle, ours).unwrap();
        poll.start(READABLE | WRITABLE, |_, _| unreachable!("it was closed"))
            .unwrap();
        polls.push((poll, theirs));
    }
    let count = closed.clone();
    handle.walk(|each| {
        let count = count.clone();
        each.close().then(move || count.set(count.get() + 1));
    });
    finish(&mut event_loop);
    assert_eq!((closed.get(), handle.handles().len()), (128, 0));
    let again = polls[0].0.restart(READABLE);
    assert!(again.is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn libuv_poll_nested_epoll_with_a_callback() {
    let (mut event_loop, handle, trace) = paused();
    let inner = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let (reader, mut writer) = pair();
    let data = epoll::EventData::new_u64(7);
    epoll::add(&inner, &reader, data, epoll::EventFlags::IN).unwrap();
    let poll = PollHandle::new(&handle, inner).unwrap();
    poll.start(READABLE, log(&trace)).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    writer.write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "READABLE");
}

#[test]
fn libuv_poll_duplex_and_unidirectional_with_callbacks() {
    const TOTAL: usize = 300_000;
    let (mut event_loop, handle, _) = paused();
    let done = Rc::new(Cell::new(0));
    for (a, b) in (0..4).map(|_| tcp_pair()) {
        for end in [a, b] {
            let poll = PollHandle::new(&handle, end).unwrap();
            let (mut read, mut written, done) = (0, 0, done.clone());
            let callback = move |poll: &PollHandle<TcpStream>,
                                 events: std::io::Result<PollEvents>| {
                let (events, mut stream) = (events.unwrap(), poll.get_ref());
                let mut left = READABLE | WRITABLE;
                if events.contains(READABLE) {
                    let mut buffer = [0; 777];
                    match stream.read(&mut buffer).unwrap() {
                        0 => left = WRITABLE,
                        count => read += count,
                    }
                }
                if events.contains(WRITABLE) && written < TOTAL {
                    let piece = vec![0; 5000.min(TOTAL - written)];
                    written += stream.write(&piece).unwrap();
                    if written == TOTAL {
                        stream.shutdown(Shutdown::Write).unwrap();
                    }
                }
                if written == TOTAL {
                    left = left.intersection(READABLE);
                }
                if left.is_empty() || read == TOTAL && written == TOTAL {
                    done.set(done.get() + read);
                    drop(poll.close());
                } else {
                    poll.restart(left).unwrap();
                }
            };
            poll.start(READABLE | WRITABLE, callback).unwrap();
            // The loop has it; its callback closes it.
            std::mem::forget(poll);
        }
    }
    finish(&mut event_loop);
    assert_eq!(done.get(), 8 * TOTAL);
}

#[test]
fn a_panic_of_the_callback_comes_out_and_the_handle_goes_on() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = pair();
    theirs.write_all(b"x").unwrap();
    let poll = PollHandle::new(&handle, ours).unwrap();
    let (log, mut calls) = (trace.clone(), 0);
    poll.start(READABLE, move |poll, _| {
        calls += 1;
        assert!(calls > 1, "the first call");
        log.log("second");
        LoopHandle::current().next_tick(log.call("tick"));
        poll.stop();
    })
    .unwrap();
    let text = panic_of(|| event_loop.run(RunMode::Default));
    assert_eq!(text, "the first call");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second tick");
}
