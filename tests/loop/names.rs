//! The names in reports are those that users have: types, addresses, paths, programs.

use crate::util::polls::poll_once;
use std::future::pending;
use std::time::Duration;

use crate::util::files::Directory;
use crate::util::pool::{Hold, with_threads};
#[cfg(unix)]
use crate::util::pty::open_pty;
use crate::util::trace::{ms, paused, turn};
use futures::FutureExt;
use futures::future::maybe_done;
use futures::stream::{FuturesUnordered, StreamExt};
use phaseloop::io::AsyncReadExt;
#[cfg(unix)]
use phaseloop::io::{PipeReader, PipeWriter};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket};
#[cfg(unix)]
use phaseloop::net::{UnixDatagram, UnixListener, UnixStream};
#[cfg(unix)]
use phaseloop::process::{Channel, Command, Stdio};
#[cfg(unix)]
use phaseloop::signal::{Signal, SignalKind, Signals};
use phaseloop::task::JoinSet;
use phaseloop::time::sleep;
#[cfg(unix)]
use phaseloop::tty::Tty;
use phaseloop::{Handle, LoopHandle, block_on, fs, io, phase, spawn, spawn_blocking, task};
use tokio_test::assert_pending;

/// The name of a handle, as `handles` and the report have it.
#[track_caller]
fn name_of(handle: &impl Handle) -> String {
    let info = handle.any().info();
    let listed = handle.event_loop().handles();
    assert!(listed.contains(&info), "{info} in {listed:?}");
    let report = handle.event_loop().report().to_string();
    let line = format!("{} ({})", info.name, info.created_at);
    assert!(report.contains(&line), "{line} in:\n{report}");
    assert!(info.to_string().starts_with(&line), "{info}");
    info.name
}

fn report() -> String {
    LoopHandle::current().report().to_string()
}

#[test]
fn tcp_sockets_have_their_addresses_and_an_arrow_from_who_connects() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(name_of(&listener), format!("TcpListener {address}"));
        let client = TcpStream::connect(address).await.unwrap();
        let port = client.local_addr().unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert_eq!(name_of(&client), format!("TcpStream {port} → {address}"));
        assert_eq!(name_of(&accepted), format!("TcpStream {address} ← {port}"));
        let client = TcpStream::from_std(client.into_std()).unwrap();
        assert_eq!(name_of(&client), format!("TcpStream {port} ↔ {address}"));
    });
}

#[test]
fn tcp_sockets_of_version_six_have_brackets() {
    block_on(async {
        let Ok(listener) = TcpListener::bind("[::1]:0").await else {
            return; // This machine has no IPv6.
        };
        let port = listener.local_addr().unwrap().port();
        assert_eq!(name_of(&listener), format!("TcpListener [::1]:{port}"));
    });
}

/// The queue of the listener is full, so the kernel answers no further connect.
#[cfg(unix)]
#[test]
fn a_socket_that_is_being_connected_names_its_target() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let full = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    bind(&full, &any).unwrap();
    listen(&full, 0).unwrap();
    let address = std::net::SocketAddr::try_from(getsockname(&full).unwrap()).unwrap();
    block_on(async {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Box::pin(maybe_done(TcpStream::connect(address))));
        }
        for _ in 0..20 {
            for client in &mut clients {
                let _ = poll_once(client).await;
            }
            phase::check().await;
        }
        let connecting = format!("→ {address}, connecting");
        let names = || {
            let handles = LoopHandle::current().handles();
            handles
                .into_iter()
                .map(|info| info.name)
                .collect::<Vec<_>>()
        };
        let is_connecting = |name: &String| name.ends_with(&connecting);
        assert!(names().iter().any(is_connecting), "{:?}", names());
        drop(clients);
        assert_eq!(names(), [""; 0]);
    });
}

#[test]
fn udp_sockets_have_their_address_and_their_peer_if_they_are_connected() {
    block_on(async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(name_of(&socket), format!("UdpSocket {address}"));
        let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        other.connect(address).await.unwrap();
        let name = format!("UdpSocket {} ↔ {address}", other.local_addr().unwrap());
        assert_eq!(name_of(&other), name);
    });
}

#[cfg(unix)]
#[test]
fn unix_sockets_have_their_paths_or_the_process_of_their_peer() {
    let directory = Directory::new("names-unix");
    block_on(async {
        let path = directory.path("s");
        let shown = path.display();
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(name_of(&listener), format!("UnixListener {shown}"));
        let client = UnixStream::connect(&path).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        assert_eq!(name_of(&client), format!("UnixStream → {shown}"));
        let name = format!("UnixStream {shown} ← this process");
        assert_eq!(name_of(&accepted), name);
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(name_of(&one), "UnixStream ↔ this process");
        let path = directory.path("d");
        let datagram = UnixDatagram::bind(&path).unwrap();
        let name = format!("UnixDatagram {}", path.display());
        assert_eq!(name_of(&datagram), name);
        let (channel, _other) = Channel::pair().unwrap();
        assert!(name_of(&channel).starts_with("channel "), "{channel:?}");
    });
}

#[cfg(unix)]
#[test]
fn pipes_have_the_number_that_both_ends_share() {
    block_on(async {
        let (reader, writer): (PipeReader, PipeWriter) = io::pipe().unwrap();
        let (reader, writer) = (name_of(&reader), name_of(&writer));
        let number = reader.strip_prefix("pipe ").unwrap();
        let number = number.strip_suffix(", read end").unwrap();
        assert!(number.parse::<u64>().is_ok(), "{reader}");
        assert_eq!(writer, format!("pipe {number}, write end"));
    });
}

#[cfg(unix)]
#[test]
fn terminals_have_their_path() {
    let (_controller, terminal) = open_pty();
    block_on(async {
        let tty = Tty::from_fd(&terminal).unwrap();
        let name = name_of(&tty);
        assert!(name.starts_with("terminal /dev/"), "{name}");
    });
}

#[cfg(unix)]
#[test]
fn standard_streams_have_the_names_of_their_functions() {
    block_on(async {
        assert!(name_of(&io::stdin().unwrap()).starts_with("stdin"));
        assert!(name_of(&io::stdout().unwrap()).starts_with("stdout"));
        assert!(name_of(&io::stderr().unwrap()).starts_with("stderr"));
    });
}

#[cfg(unix)]
#[test]
fn children_have_their_number_and_program() {
    block_on(async {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        assert_eq!(name_of(&child), format!("child {id} \"cat\""));
        drop(child.stdin.take());
        child.wait().await.unwrap();
    });
}

#[cfg(unix)]
#[test]
fn signals_have_their_names() {
    block_on(async {
        let handle = LoopHandle::current();
        let signals = Signals::new([SignalKind::USR2, SignalKind::WINCH]).unwrap();
        assert_eq!(name_of(&signals), "signal SIGUSR2, SIGWINCH");
        let signal = Signal::new(&handle);
        assert_eq!(name_of(&signal), "signal listener");
        signal.start(SignalKind::WINCH, |_, _| ()).unwrap();
        assert_eq!(name_of(&signal), "signal SIGWINCH");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn watchers_have_their_paths() {
    let directory = Directory::new("names-watch");
    let name = format!("file watcher {}", directory.0.display());
    block_on(async {
        assert_eq!(name_of(&fs::watch(&directory.0).unwrap()), name);
        let poll = fs::watch_poll(&directory.0, Duration::from_secs(1)).unwrap();
        assert_eq!(name_of(&poll), name);
    });
}

#[test]
fn pool_jobs_have_the_name_of_their_function() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let hold = Hold::new();
        let job = spawn_blocking(|| ());
        let mut meta = Box::pin(fs::metadata("/"));
        assert_pending!(poll_once(&mut meta).await);
        let text = report();
        assert!(text.contains("pool job spawn_blocking ("), "{text}");
        assert!(
            text.contains("pool job metadata: class Fs, wakes the main"),
            "{text}"
        );
        drop(hold);
        meta.await.unwrap();
        job.await.unwrap();
    });
}

/// Streams with different addresses from one line are one line.
#[test]
fn many_streams_of_one_line_are_counted_without_their_addresses() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        for _ in 0..6 {
            let client = TcpStream::connect(address).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let echo = async move { stream.read(&mut [0; 8]).await };
            clients.push((client, spawn(echo)));
        }
        phase::check().await;
        let text = report();
        assert!(text.contains("6 × TcpStream (tests"), "{text}");
        assert!(text.contains("6 × task spawned at tests"), "{text}");
        assert!(!text.contains('←') && !text.contains('→'), "{text}");
    });
}

// Waits that do not show the task.

#[test]
fn a_join_set_waits_for_its_tasks() {
    let (mut event_loop, handle, _) = paused();
    let mut set = JoinSet::new();
    set.spawn_on(sleep_of(5), &handle);
    set.spawn_on(pending(), &handle);
    let joiner = task::Builder::new().name("joiner");
    let joiner = joiner.spawn_on(
        async move { while set.join_next().await.is_some() {} },
        &handle,
    );
    turn(&mut event_loop);
    let text = handle.report().to_string();
    assert!(text.contains("waits for task 1, task 2\n"), "{text}");
    event_loop.block_on(sleep_of(6));
    turn(&mut event_loop);
    let text = handle.report().to_string();
    assert!(text.contains("waits for task 2\n"), "{text}");
    drop(joiner);
}

async fn sleep_of(milliseconds: u64) {
    sleep(ms(milliseconds)).await;
}

#[test]
fn a_waker_of_another_library_is_a_waker_of_the_task_that_polled_it() {
    let (mut event_loop, handle, _) = paused();
    let inner = handle.spawn(pending::<()>());
    let line = line!() + 3;
    let task = handle.spawn(async move {
        let mut all = FuturesUnordered::new();
        all.push(futures::future::Either::Left(sleep(ms(5))));
        all.push(futures::future::Either::Right(
            async { drop(inner.await) }.boxed_local(),
        ));
        while all.next().await.is_some() {}
    });
    turn(&mut event_loop);
    let text = handle.report().to_string();
    assert!(text.contains("wakes a waker of task 2"), "{text}");
    let waits = format!("waits for sleep (tests/loop/names.rs:{line}:");
    assert!(text.contains(&waits), "{waits} in:\n{text}");
    assert!(text.contains("), task 1\n"), "{text}");
    drop(task);
}

#[cfg(unix)]
#[test]
fn the_main_future_has_wakers_of_other_libraries_too() {
    block_on(async {
        let (reader, _writer) = io::pipe().unwrap();
        let mut all: FuturesUnordered<_> = [reader.readable()].into_iter().collect();
        assert_pending!(poll_once(all.next()).await);
        let text = report();
        assert!(text.contains("wakes a waker of the main future"), "{text}");
    });
}
