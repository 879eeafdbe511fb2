//! The line that made each handle and timer: the program's, not one of the crate.

#[cfg(unix)]
use crate::util::files::Directory;

use std::panic::Location;

use futures::StreamExt;
#[cfg(unix)]
use phaseloop::signal::SignalKind;
use phaseloop::{Keeper, LoopHandle, block_on, phase};
use phaseloop_node as node;
#[cfg(unix)]
use phaseloop_node::Emitter as _;
#[cfg(unix)]
use phaseloop_node::worker_threads::{MessageChannel, Worker};
use tokio_test::assert_pending;

#[track_caller]
fn lines_of(kind: Keeper) -> Vec<u32> {
    let handles = LoopHandle::current().handles();
    let of_kind = handles.iter().filter(|info| info.kind == kind);
    let line = |site: &Location<'_>| {
        assert_eq!(site.file(), file!());
        site.line()
    };
    of_kind.map(|info| line(info.created_at)).collect()
}

#[cfg(unix)]
#[test]
fn what_is_made_through_node_has_the_line_of_the_program() {
    let directory = Directory::new("sites-node");
    let exit = node::run(async move {
        let line = line!() + 2;
        let server = node::net::create_server(|_| ());
        server.listen(("127.0.0.1", 0));
        assert_eq!(lines_of(Keeper::Io), [line]);
        let client = line!() + 1;
        let socket = node::net::connect(server.address().unwrap());
        while lines_of(Keeper::Io).len() < 3 {
            phase::check().await;
        }
        assert_eq!(
            lines_of(Keeper::Io),
            [line, client, line],
            "the last is accepted"
        );
        socket.destroy(None);
        server.close();
        while !lines_of(Keeper::Io).is_empty() {
            phase::check().await;
        }

        let local = node::net::create_server(|_| ());
        let line = line!() + 1;
        local.listen_with(node::net::Address::Path(directory.path("local")), || ());
        assert_eq!(lines_of(Keeper::Io), [line]);
        local.close();

        let datagrams = node::dgram::Socket::new();
        let line = line!() + 1;
        datagrams.bind("127.0.0.1:0".parse().unwrap());
        phase::check().await;
        assert_eq!(lines_of(Keeper::Io), [line]);
        datagrams.close();

        let line = line!() + 1;
        let child = node::child_process::spawn("true", [] as [&str; 0]);
        assert_eq!(lines_of(Keeper::Child), [line]);
        assert_eq!(lines_of(Keeper::Io), [line; 3]);
        drop(child);

        let line = line!() + 1;
        let child = node::child_process::exec("true", |_, _, _| ());
        assert!(lines_of(Keeper::Child).contains(&line));
        drop(child);
        let line = line!() + 1;
        let listener = node::process::on_signal(SignalKind::USR2, |_| ()).unwrap();
        assert_eq!(lines_of(Keeper::Signal), [line]);
        listener.remove();

        let line = line!() + 1;
        let channel = MessageChannel::<()>::new();
        assert_eq!(lines_of(Keeper::Async), [line; 2]);
        channel.port1.close();
        phase::check().await;
        phase::check().await;

        let line = line!() + 1;
        let worker = Worker::<(), u32>::new(move |port| async move {
            assert_eq!(lines_of(Keeper::Async), [line]);
            port.post_message(7);
            port.close();
        });
        let worker = worker.unwrap();
        assert_eq!(lines_of(Keeper::Async), [line; 2]);
        worker.on_message(|n| assert_eq!(*n, 7));
        worker.on(node::worker_threads::EXIT, |code| assert_eq!(*code, 0));
    });
    assert_eq!(exit.code(), 0);
}

#[test]
fn timers_have_their_line() {
    #[track_caller]
    fn assert_listed(kind: &str, line: u32) {
        let report = LoopHandle::current().report().to_string();
        let expected = format!("{kind} ({}:{line}:", file!());
        assert!(report.contains(&expected), "{expected} in:\n{report}");
    }
    block_on(async {
        let line = line!() + 1;
        let timer = node::set_timeout(3_600_000, || ());
        assert_listed("timer", line);
        timer.close();
        let line = line!() + 1;
        let promise = node::timers::promises::set_timeout(3_600_000, ());
        assert_listed("timer", line);
        drop(promise);
        let line = line!() + 1;
        let mut ticks = node::timers::promises::set_interval(3_600_000, ());
        assert_pending!(tokio_test::task::spawn(ticks.next()).poll());
        assert_listed("timer", line);
        let line = line!() + 1;
        let signal = node::AbortSignal::timeout(3_600_000);
        assert_listed("timer", line);
        drop(signal);
    });
}

/// What panics for want of a loop, or because one runs, points at the line that has called it.
#[cfg(unix)]
#[test]
fn panics_point_at_the_caller() {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    thread_local! {
        static PLACE: Cell<Option<(String, u32)>> = const { Cell::new(None) };
    }
    let before = std::panic::take_hook();
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        PLACE.set(info.location().map(|at| (at.file().to_owned(), at.line())));
        if std::thread::current().id() != here {
            before(info);
        }
    }));
    let mut faults = Vec::new();
    macro_rules! panics {
        ($call:expr) => {{
            let (line, call) = (line!(), stringify!($call));
            let panicked = catch_unwind(AssertUnwindSafe(|| _ = $call));
            let place = PLACE.take().filter(|_| panicked.is_err());
            if place != Some((file!().to_owned(), line)) {
                faults.push(format!("line {line}, {call}: {place:?}"));
            }
        }};
    }
    panics!(node::set_timeout(1, || ()));
    panics!(node::set_interval(1, |_| ()));
    panics!(node::set_immediate(|| ()));
    panics!(node::next_tick(|| ()));
    panics!(node::in_callbacks(async {}));
    panics!(node::net::connect(1_u16));
    panics!(node::net::create_server(|_| ()).listen(0_u16));
    panics!(node::dgram::Socket::new().bind("127.0.0.1:0".parse().unwrap()));
    panics!(node::child_process::spawn("true", [] as [&str; 0]));
    panics!(node::AbortSignal::timeout(1));
    panics!(MessageChannel::<()>::new());
    block_on(async {
        panics!(node::run(async {}));
    });
    drop(std::panic::take_hook());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The recorder knows the line that set a timer.
#[test]
fn the_recorder_knows_who_set_a_timer() {
    let recorder = phaseloop::observe::Recorder::new();
    let builder = phaseloop::Builder::new().start_paused(true);
    let event_loop = builder.record(recorder.clone()).build().unwrap();
    let line = line!() + 3;
    event_loop.block_on(async {
        let (sender, fired) = futures::channel::oneshot::channel();
        node::set_timeout(1, move || sender.send(()).unwrap());
        fired.await.unwrap();
        phase::closing().await;
    });
    let is_it = |record: &phaseloop::observe::Record| {
        let site = record.site.map(|site| (site.file(), site.line()));
        record.what == phaseloop::observe::What::Callback
            && record.kind == Some(Keeper::Timer)
            && site == Some((file!(), line))
    };
    assert!(recorder.records().iter().any(is_it));
}
