//! The line that made each handle: for every public constructor it is the caller's, not one of the
//! crate.

use crate::util::files::Directory;
use crate::util::panics::panic_of;
#[cfg(unix)]
use crate::util::pty::open_pty;
use crate::util::sockets::udp_pair;
use crate::util::trace::ms;
use std::panic::Location;
use std::time::Duration;

use futures::StreamExt;
use phaseloop::io::Source;
#[cfg(unix)]
use phaseloop::io::{PipeReader, PipeWriter};
use phaseloop::net::{TcpListener, TcpSocket, TcpStream, UdpOptions, UdpSocket};
#[cfg(unix)]
use phaseloop::net::{UnixDatagram, UnixListener, UnixStream};
use phaseloop::phase::{Check, Idle, Prepare};
#[cfg(unix)]
use phaseloop::process::{Channel, Command, Stdio};
#[cfg(unix)]
use phaseloop::signal::{Signal, SignalKind, Signals, ctrl_c};
use phaseloop::time::{Timer, interval, sleep, sleep_until, timeout};
#[cfg(unix)]
use phaseloop::tty::Tty;
use phaseloop::{
    AsyncHandle, EventLoop, Handle, Keeper, LoopHandle, RunMode, block_on, fs, io, phase, spawn,
    spawn_blocking,
};
use tokio_test::assert_pending;

const HOUR: Duration = Duration::from_secs(3600);

/// The line of a handle is in this file, and is the one given.
#[track_caller]
fn assert_at(handle: &impl Handle, line: u32) {
    let site = handle.created_at();
    assert_eq!((site.file(), site.line()), (file!(), line));
}

/// Checks that the handle that `$make` makes has the line of the `made!`.
macro_rules! made {
    ($make:expr) => {{
        let line = line!();
        let handle = $make;
        assert_at(&handle, line);
        handle
    }};
}

#[test]
fn handles_have_the_line_of_their_constructor() {
    let (socket, _peer) = udp_pair();
    block_on(async {
        let handle = LoopHandle::current();
        made!(Timer::new(&handle));
        made!(Idle::new(&handle));
        made!(Prepare::new(&handle));
        made!(Check::new(&handle));
        made!(AsyncHandle::new(&handle, |_| ()).unwrap());
        made!(Source::new(&handle, socket).unwrap());
    });
}

#[test]
fn sockets_have_the_line_of_their_constructor() {
    block_on(async {
        let listener = made!(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        made!(TcpStream::connect(address).await.unwrap());
        made!(listener.accept().await.unwrap().0);
        let socket = TcpSocket::new_v4().unwrap();
        let client = made!(socket.connect(address).await.unwrap());
        let mut incoming = listener.incoming();
        let line = line!() - 1;
        let accepted = incoming.next().await.unwrap().unwrap();
        assert_at(&accepted, line);
        made!(TcpStream::from_std(client.into_std()).unwrap());
        drop(incoming);
        made!(TcpListener::from_std(listener.into_std()).unwrap());
        let socket = TcpSocket::new_v4().unwrap();
        made!(socket.listen(1).unwrap());

        let socket = made!(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        made!(UdpSocket::from_std(socket.into_std()).unwrap());
        let any = "127.0.0.1:0".parse().unwrap();
        made!(UdpSocket::bind_with(any, UdpOptions::new()).unwrap());
    });
}

#[cfg(unix)]
#[test]
fn unix_sockets_have_the_line_of_their_constructor() {
    let directory = Directory::new("sites");
    block_on(async {
        let path = directory.path("listener");
        let listener = made!(UnixListener::bind(&path).unwrap());
        let stream = made!(UnixStream::connect(&path).await.unwrap());
        made!(listener.accept().await.unwrap().0);
        made!(UnixStream::from_std(stream.into_std()).unwrap());
        made!(UnixStream::pair().unwrap().0);
        made!(UnixStream::pair().unwrap().1);
        let std = std::os::unix::net::UnixListener::bind(directory.path("std")).unwrap();
        made!(UnixListener::from_std(std).unwrap());

        made!(UnixDatagram::bind(directory.path("datagram")).unwrap());
        made!(UnixDatagram::unbound().unwrap());
        made!(UnixDatagram::pair().unwrap().0);
        made!(UnixDatagram::pair().unwrap().1);
        let (std, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        made!(UnixDatagram::from_std(std).unwrap());
    });
}

#[cfg(unix)]
#[test]
fn pipes_and_standard_streams_have_the_line_of_their_constructor() {
    block_on(async {
        made!(io::pipe().unwrap().0);
        made!(io::pipe().unwrap().1);
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        made!(PipeReader::from_fd(reader).unwrap());
        made!(PipeWriter::from_fd(writer).unwrap());
        made!(io::stdin().unwrap());
        made!(io::stdout().unwrap());
        made!(io::stderr().unwrap());
    });
}

#[cfg(unix)]
#[test]
fn terminals_have_the_line_of_their_constructor() {
    let (_controller, terminal) = open_pty();
    block_on(async {
        let tty = made!(Tty::from_fd(&terminal).unwrap());
        let line = line!() + 1;
        let resizes = tty.resizes().unwrap();
        assert_eq!(lines_of(Keeper::Signal), [line]);
        drop(resizes);
    });
}

#[cfg(unix)]
#[test]
fn children_and_their_pipes_have_the_line_of_their_start() {
    block_on(async {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).channel(true);
        let line = line!() + 1;
        let mut child = command.spawn().unwrap();
        assert_at(&child, line);
        assert_at(child.stdin.as_ref().unwrap(), line);
        assert_at(child.stdout.as_ref().unwrap(), line);
        assert_at(child.stderr.as_ref().unwrap(), line);
        assert_at(child.channel.as_ref().unwrap(), line);
        child.wait().await.unwrap();
        drop(child);

        made!(Channel::pair().unwrap().0);
        made!(Channel::pair().unwrap().1);
        let (std, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        made!(Channel::from_std(std).unwrap());

        let line = line!() + 1;
        let status = Command::new("true").status();
        assert_eq!(lines_of(Keeper::Child), [line]);
        status.await.unwrap();
        let line = line!() + 1;
        let output = Command::new("true").output();
        assert_eq!(lines_of(Keeper::Child), [line]);
        assert_eq!(lines_of(Keeper::Io), [line, line]);
        output.await.unwrap();
    });
}

/// The lines in this file that made the handles of a kind; no other file did.
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
fn listeners_have_the_line_of_their_constructor() {
    let directory = Directory::new("sites-watch");
    block_on(async {
        let handle = LoopHandle::current();
        made!(Signal::new(&handle));
        made!(Signals::new([SignalKind::USR2]).unwrap());
        made!(Signals::new_on(&handle, [SignalKind::USR2]).unwrap());
        let line = line!() + 1;
        let mut waiting = Box::pin(ctrl_c());
        assert_eq!(
            lines_of(Keeper::Signal),
            [0; 0],
            "nothing before the first poll"
        );
        assert_pending!(tokio_test::task::spawn(&mut waiting).poll());
        assert_eq!(lines_of(Keeper::Signal), [line]);

        let path = directory.path("");
        made!(fs::watch(&path).unwrap());
        made!(fs::Watcher::new_on(&handle, &path).unwrap());
        made!(fs::watch_poll(&path, HOUR).unwrap());
        made!(fs::PollWatcher::new_on(&handle, &path, HOUR).unwrap());
    });
}

/// Nothing is done before the first poll, and no loop is needed.
#[test]
fn constructors_that_are_futures_are_lazy() {
    drop(TcpListener::bind("127.0.0.1:0"));
    drop(TcpStream::connect("127.0.0.1:1"));
    drop(UdpSocket::bind("127.0.0.1:0"));
    #[cfg(unix)]
    drop((UnixStream::connect("/no/such"), ctrl_c()));
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let before = LoopHandle::current().handles().len();
        let futures = (listener.accept(), TcpListener::bind("127.0.0.1:0"));
        assert_eq!(LoopHandle::current().handles().len(), before);
        drop(futures);
    });
}

/// What is no handle has its line in the report.
#[test]
fn sleeps_and_jobs_have_their_line() {
    #[track_caller]
    fn assert_listed(kind: &str, line: u32) {
        let report = LoopHandle::current().report().to_string();
        let expected = format!("{kind} ({}:{line}:", file!());
        assert!(report.contains(&expected), "{expected} in:\n{report}");
    }
    block_on(async {
        let line = line!() + 1;
        let mut one = Box::pin(sleep(HOUR));
        assert_pending!(tokio_test::task::spawn(&mut one).poll());
        assert_listed("sleep", line);
        let line = line!() + 1;
        let mut one = Box::pin(sleep_until(phaseloop::time::now() + HOUR));
        assert_pending!(tokio_test::task::spawn(&mut one).poll());
        assert_listed("sleep", line);
        let line = line!() + 1;
        let mut one = Box::pin(timeout(HOUR, std::future::pending::<()>()));
        assert_pending!(tokio_test::task::spawn(&mut one).poll());
        assert_listed("sleep", line);
        let line = line!() + 1;
        let mut ticks = interval(HOUR);
        ticks.tick().await;
        assert_pending!(tokio_test::task::spawn(ticks.tick()).poll());
        assert_listed("sleep", line);

        let (release, wait) = std::sync::mpsc::channel();
        let line = line!() + 1;
        let job = spawn_blocking(move || wait.recv());
        assert_listed("pool job spawn_blocking", line);
        release.send(()).unwrap();
        job.await.unwrap().unwrap();
    });
}

#[test]
fn tasks_have_the_line_of_their_spawn() {
    block_on(async {
        let line = line!() + 1;
        spawn(sleep(ms(0))).detach();
        let tasks = LoopHandle::current().tasks();
        let sites: Vec<_> = tasks.iter().map(|task| task.spawned_at()).collect();
        assert_eq!(sites.len(), 1);
        assert_eq!((sites[0].file(), sites[0].line()), (file!(), line));
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
    panics!(LoopHandle::current());
    panics!(spawn(async {}));
    panics!(phaseloop::task::Builder::new().spawn(async {}));
    panics!(phaseloop::task::JoinSet::new().spawn(async {}));
    panics!(spawn_blocking(|| ()));
    panics!(phaseloop::next_tick(|| ()));
    panics!(phaseloop::queue_microtask(|| ()));
    panics!(phaseloop::set_immediate(|| ()));
    panics!(sleep(ms(1)));
    panics!(sleep_until(std::time::Instant::now()));
    panics!(timeout(ms(1), async {}));
    panics!(interval(ms(1)));
    panics!(phaseloop::time::now());
    panics!(phaseloop::time::pause());
    panics!(phaseloop::time::resume());
    panics!(phaseloop::time::is_paused());
    panics!(io::pipe());
    panics!(io::stdin());
    panics!(UnixStream::pair());
    panics!(UnixDatagram::unbound());
    panics!(UnixListener::bind("/no/such"));
    let any = ([127, 0, 0, 1], 0).into();
    panics!(UdpSocket::bind_with(any, UdpOptions::new()));
    panics!(TcpSocket::new_v4().unwrap().listen(1));
    panics!(Signals::new([SignalKind::USR2]));
    panics!(fs::watch("/"));
    panics!(fs::watch_poll("/", HOUR));
    panics!(Command::new("true").spawn());
    panics!(Command::new("true").fd(2, rustix::pipe::pipe().unwrap().0));
    panics!(Channel::pair());
    block_on(async {
        panics!(block_on(async {}));
        panics!(phaseloop::run(async {}));
        panics!(EventLoop::new().unwrap().run(RunMode::NoWait));
        panics!(EventLoop::new().unwrap().turn(None));
    });
    drop(std::panic::take_hook());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A future that is polled where no loop runs cannot point at its line, so the text of its panic
/// has the function and the line.
#[cfg(unix)]
#[test]
fn futures_without_a_loop_name_their_function_and_line() {
    use tokio_test::block_on;

    macro_rules! names {
        ($function:literal, $future:expr) => {{
            let line = line!();
            let text = panic_of(|| _ = block_on($future));
            let start = "no event loop runs on this thread: ";
            assert!(text.starts_with(start), "{text}");
            let what = concat!("(needed by the future of `", $function, "` at ");
            let expected = format!("{what}{}:{line}:", file!());
            assert!(text.contains(&expected), "{text}");
        }};
    }
    let directory = Directory::new("sites-futures");
    let (path, missing) = (directory.path("listener"), directory.path("missing"));
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    names!("net::TcpListener::bind", TcpListener::bind("127.0.0.1:0"));
    names!("net::TcpStream::connect", TcpStream::connect("127.0.0.1:1"));
    let (socket, refusing) = (TcpSocket::new_v4().unwrap(), ([127, 0, 0, 1], 1).into());
    names!("net::TcpSocket::connect", socket.connect(refusing));
    names!("net::UdpSocket::bind", UdpSocket::bind("127.0.0.1:0"));
    names!("net::UnixStream::connect", UnixStream::connect(&path));
    names!("net::UnixStream::connect", UnixStream::connect(&missing));
    names!("signal::ctrl_c", ctrl_c());
    names!("time::advance", phaseloop::time::advance(ms(1)));
    names!("os::random", phaseloop::os::random(1));
    names!("phase::check", phase::check());
    names!("phase::pending", phase::pending());
    names!("phase::check", phaseloop::task::yield_now_immediate());

    // A name has to be looked up first, by a job that the loop waits for.
    let name = "localhost:1";
    names!("net::TcpListener::bind", TcpListener::bind(name));
    names!("net::TcpStream::connect", TcpStream::connect(name));
    names!("net::UdpSocket::bind", UdpSocket::bind(name));
    names!("net::lookup_host", phaseloop::net::lookup_host(name));
    names!("net::lookup_addr", phaseloop::net::lookup_addr(refusing));

    names!("fs::read", fs::read("file"));
    names!("fs::write", fs::write("file", "text"));
    names!("fs::metadata", fs::metadata("file"));
    names!("fs::rename", fs::rename("file", "other"));
    names!("fs::copy", fs::copy("file", "other"));
    names!("fs::read_dir", fs::read_dir("directory"));
    names!("fs::symlink", fs::symlink("file", "other"));
    names!("fs::open", fs::File::open("file"));
    names!("fs::create", fs::File::create("file"));
    names!("fs::open", fs::OpenOptions::new().open("file"));
}

/// The text names each way to get a loop, the one for other threads included.
#[test]
fn a_panic_for_want_of_a_loop_names_the_remedies() {
    let text = panic_of(|| sleep(ms(1)));
    for remedy in [
        "`phaseloop::block_on`",
        "`phaseloop::run`",
        "`EventLoop::enter`",
        "`LoopHandle`",
        "`Remote`",
    ] {
        assert!(text.contains(remedy), "{remedy}: {text}");
    }
}
