//! Unix streams and listeners, R193–R198, R206 and R207: names with and without a file, what is
//! removed in the end, errors in the pending phase.
//!
//! Ours differs: a missing directory is reported as such (R194); a name is never cut, and an empty
//! one is refused (R195); a name is returned as a value of its own size (R197); permissions are
//! those of the file, set as of any other (R198).
#![cfg(all(target_os = "linux", feature = "net"))]

use crate::util::child::in_child;
use crate::util::files::Directory;
use crate::util::trace::{ZERO, finish, paused, turn};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use futures::future::{join, try_join_all};
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use phaseloop::net::{SocketName, UnixListener, UnixStream};
use phaseloop::phase::{Check, Idle, Prepare};
use phaseloop::time::Timer;
use phaseloop::{Handle, Keeper, LoopHandle, block_on, spawn};
use rustix::io::{FdFlags, fcntl_getfd};

/// An abstract name that no other process has.
fn abstract_name(test: &str) -> SocketName {
    SocketName::abstract_name(format!("phaseloop-{}-{test}", std::process::id()))
}

async fn read_to_end(stream: &UnixStream) -> String {
    let mut text = String::new();
    let mut reader = stream;
    reader.read_to_string(&mut text).await.unwrap();
    text
}

// Names.

#[test]
fn r193_a_path_is_removed_when_its_listener_goes() {
    let directory = Directory::new("r193");
    let path = directory.path("socket");
    block_on(async {
        let dropped = UnixListener::bind(&path).unwrap();
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
        drop(dropped);
        assert!(!path.exists());
        let close = UnixListener::bind(&path).unwrap().close();
        assert!(!path.exists(), "at once");
        close.await;
        // Other code may have removed the path.
        let removed = UnixListener::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        drop(removed);
        // A listener that goes with its loop.
        let listener = UnixListener::bind(&path).unwrap();
        drop(spawn(async move { drop(listener.accept().await) }));
    });
    assert!(!path.exists());
}

#[test]
fn r193_but_not_that_of_an_adopted_one() {
    let directory = Directory::new("r193-adopted");
    let path = directory.path("socket");
    block_on(async {
        let foreign = net::UnixListener::bind(&path).unwrap();
        let listener = UnixListener::from_std(foreign).unwrap();
        let name = listener.local_name().unwrap();
        assert_eq!(name, Some(SocketName::Path(path.clone())));
        let client = UnixStream::connect(&path);
        let (client, server) = join(client, listener.accept()).await;
        drop((client.unwrap(), server.unwrap()));
        drop(listener);
        assert!(path.exists());
    });
}

/// In a process of its own, which goes to another directory.
#[test]
fn r193_a_relative_path_is_that_of_the_moment_of_binding() {
    let test = "r193_a_relative_path_is_that_of_the_moment_of_binding";
    let child = in_child(&[], test, || {
        let directory = Directory::new("r193-relative");
        std::env::set_current_dir(&directory.0).unwrap();
        let (event_loop, ..) = paused();
        let listener = event_loop.enter(|| UnixListener::bind("socket").unwrap());
        std::env::set_current_dir("/").unwrap();
        assert!(directory.path("socket").exists());
        drop(listener);
        assert!(!directory.path("socket").exists());
    });
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

#[test]
fn r194_libuv_pipe_bind_error_addrinuse_and_addrnotavail() {
    let directory = Directory::new("r194");
    block_on(async {
        let path = directory.path("socket");
        let first = UnixListener::bind(&path).unwrap();
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(path.exists(), "the failure has not removed it");
        drop(first);
        // Whatever it is.
        let file = directory.path("file");
        File::create(&file).unwrap();
        let error = UnixListener::bind(&file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(file.exists());
        let error = UnixListener::bind(directory.path("missing/socket")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(LoopHandle::current().handles(), []);
    });
}

#[test]
fn r195_libuv_pipe_overlong_path() {
    let directory = Directory::new("r195");
    block_on(async {
        // With the final zero, 108 bytes.
        let room = 107 - directory.0.as_os_str().len() - 1;
        let longest = directory.path("x".repeat(room));
        assert_eq!(longest.as_os_str().len(), 107);
        let listener = UnixListener::bind(&longest).unwrap();
        let name = listener.local_name().unwrap();
        assert_eq!(name, Some(SocketName::Path(longest.clone())));
        let connected = join(UnixStream::connect(&longest), listener.accept()).await;
        drop((connected.0.unwrap(), connected.1.unwrap()));
        let longer = directory.path("x".repeat(room + 1));
        for path in [
            longer.as_path(),
            Path::new(""),
            Path::new("a\0b"),
            Path::new("\0not abstract"),
        ] {
            let error = UnixListener::bind(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
            let error = UnixStream::connect(path).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
        }
        // No zero at its end, so it may be one longer; one byte marks it as abstract.
        let longest = vec![b'x'; 107];
        drop(UnixListener::bind(SocketName::abstract_name(longest)).unwrap());
        let longer = SocketName::abstract_name([b'x'; 108]);
        let error = UnixListener::bind(longer.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let error = UnixStream::connect(longer).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
        drop(listener);
    });
}

#[test]
fn r197_libuv_pipe_getsockname() {
    let directory = Directory::new("r197");
    block_on(async {
        let path = directory.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let name = Some(SocketName::Path(path.clone()));
        assert_eq!(listener.local_name().unwrap(), name);
        let (client, server) = join(UnixStream::connect(&path), listener.accept()).await;
        let (client, server) = (client.unwrap(), server.unwrap().0);
        assert_eq!(client.local_name().unwrap(), None);
        assert_eq!(client.peer_name().unwrap(), name);
        assert_eq!(server.local_name().unwrap(), name);
        assert_eq!(server.peer_name().unwrap(), None);
        let text = format!("{listener:?} {client:?}");
        assert_eq!(text.matches("socket\"").count(), 2, "{text}");
        let (one, other) = UnixStream::pair().unwrap();
        for end in [one, other] {
            assert_eq!(end.local_name().unwrap(), None);
            assert_eq!(end.peer_name().unwrap(), None);
        }
    });
}

#[test]
fn r193_r195_libuv_pipe_getsockname_abstract() {
    block_on(async {
        let SocketName::Abstract(mut bytes) = abstract_name("r197") else {
            unreachable!()
        };
        // Any bytes, zero among them.
        bytes.extend(b"\0\xff\0");
        let name = SocketName::Abstract(bytes.clone());
        let listener = UnixListener::bind(name.clone()).unwrap();
        assert_eq!(listener.local_name().unwrap(), Some(name.clone()));
        let error = UnixListener::bind(name.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let connect = UnixStream::connect(name.clone());
        let (client, server) = join(connect, listener.accept()).await;
        assert_eq!(client.unwrap().peer_name().unwrap(), Some(name.clone()));
        assert_eq!(server.unwrap().0.local_name().unwrap(), Some(name.clone()));
        // One byte less is another name.
        bytes.pop();
        let shorter = UnixStream::connect(SocketName::Abstract(bytes)).await;
        assert_eq!(shorter.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        drop(listener);
        // A child that another test starts has the listener, too, until its exec.
        let error = loop {
            match UnixStream::connect(name.clone()).await {
                Ok(_) => phaseloop::task::yield_now_immediate().await,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        drop(UnixListener::bind(name).unwrap());
    });
}

/// Root may do anything, so that only the bits are looked at.
#[test]
fn r198_libuv_pipe_set_chmod() {
    let directory = Directory::new("r198");
    block_on(async {
        let path = directory.path("socket");
        let listener = UnixListener::bind(&path).unwrap();
        for mode in [0o600, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode);
            let (client, server) = join(UnixStream::connect(&path), listener.accept()).await;
            drop((client.unwrap(), server.unwrap()));
        }
    });
}

#[test]
fn the_peer_is_known() {
    let name = abstract_name("peer");
    block_on(async {
        let listener = UnixListener::bind(name.clone()).unwrap();
        let (client, server) = join(UnixStream::connect(name), listener.accept()).await;
        for end in [client.unwrap(), server.unwrap().0] {
            let peer = end.peer_credentials().unwrap();
            assert_eq!(peer.process, std::process::id());
            assert_eq!(peer.user, rustix::process::getuid().as_raw());
            assert_eq!(peer.group, rustix::process::getgid().as_raw());
        }
    });
}

// Connecting and accepting.

#[test]
fn libuv_pipe_connect_bad_name_and_pipe_connect_to_file() {
    let directory = Directory::new("bad-name");
    block_on(async {
        let missing = UnixStream::connect(directory.path("missing")).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
        let path = directory.path("file");
        File::create(&path).unwrap();
        let file = UnixStream::connect(&path).await;
        assert_eq!(file.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        // A listener that has gone and left its path.
        let left = directory.path("left");
        drop(net::UnixListener::bind(&left).unwrap());
        let left = UnixStream::connect(&left).await;
        assert_eq!(left.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(LoopHandle::current().handles(), []);
    });
}

#[test]
fn libuv_pipe_connect_on_prepare_errors_come_in_the_pending_phase() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, prepare, check) = (
        Idle::new(&handle),
        Prepare::new(&handle),
        Check::new(&handle),
    );
    idle.start(trace.on("idle")).unwrap();
    check.start(trace.on("check")).unwrap();
    let log = trace.clone();
    prepare
        .start(move |prepare| {
            log.log("prepare");
            prepare.stop();
            for name in ["/missing/socket", ""] {
                let log = log.clone();
                drop(spawn(async move {
                    let error = UnixStream::connect(name).await.unwrap_err();
                    log.log(format_args!("{:?}", error.kind()));
                }));
            }
        })
        .unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "idle prepare NotFound InvalidInput check",
        "after poll"
    );
    // From a timer: before the idle hooks of the next turn.
    let (timer, log) = (Timer::new(&handle), trace.clone());
    let connect = move |_: &Timer| {
        let log = log.clone();
        drop(spawn(async move {
            let error = UnixStream::connect("/missing/socket").await.unwrap_err();
            log.log(format_args!("{:?}", error.kind()));
        }));
    };
    timer.start(ZERO, ZERO, connect).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "idle check");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "NotFound idle check");
}

#[test]
fn a_full_queue_refuses_connections() {
    let directory = Directory::new("full");
    block_on(async {
        let path = directory.path("socket");
        let listener = net::UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let first = UnixStream::connect(&path).await.unwrap();
        let error = UnixStream::connect(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        // Room again.
        let listener = UnixListener::from_std(listener).unwrap();
        drop(listener.accept().await.unwrap());
        drop(UnixStream::connect(&path).await.unwrap());
        drop(first);
    });
}

#[test]
fn libuv_pipe_connect_multiple_and_pipe_connect_close_multiple() {
    let name = abstract_name("multiple");
    block_on(async {
        let listener = Rc::new(UnixListener::bind(name.clone()).unwrap());
        let accepting = listener.clone();
        let server = spawn(async move {
            let mut all = Vec::new();
            for _ in 0..50 {
                all.push(accepting.accept().await.unwrap().0);
            }
            all
        });
        let clients = try_join_all((0..50).map(|_| UnixStream::connect(name.clone()))).await;
        let (clients, servers) = (clients.unwrap(), server.await.unwrap());
        assert_eq!((clients.len(), servers.len()), (50, 50));
        drop(clients);
        for server in &servers {
            assert_eq!(read_to_end(server).await, "");
        }
        let closes: Vec<_> = servers.into_iter().map(UnixStream::close_now).collect();
        futures::future::join_all(closes).await;
        assert_eq!(LoopHandle::current().handles().len(), 1);
    });
}

#[test]
fn at_most_one_connection_is_accepted_a_turn() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let name = abstract_name("one-a-turn");
    let listener = event_loop.enter(|| UnixListener::bind(name.clone()).unwrap());
    let clients = [(); 3].map(|()| {
        let connected = event_loop.enter(|| UnixStream::connect(name.clone()).now_or_never());
        connected.expect("connected at once").unwrap()
    });
    let log = trace.clone();
    drop(handle.spawn(async move {
        for _ in 0..3 {
            listener.accept().await.unwrap();
            log.log("accept");
        }
    }));
    for _ in 0..4 {
        turn(&mut event_loop);
    }
    let expected = "accept check accept check accept check check";
    assert_eq!(trace.take(), expected);
    drop(clients);
}

/// Connected, and never accepted.
#[test]
fn libuv_pipe_server_close() {
    let name = abstract_name("server-close");
    block_on(async {
        let listener = UnixListener::bind(name.clone()).unwrap();
        let mut client = UnixStream::connect(name).await.unwrap();
        listener.close().await;
        let mut byte = [0];
        match client.read(&mut byte).await {
            Ok(count) => assert_eq!(count, 0),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        let error = client.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

// Streams.

#[test]
fn bytes_then_the_end() {
    block_on(async {
        let (mut a, b) = UnixStream::pair().unwrap();
        a.write_all(b"hello").await.unwrap();
        a.close().await.unwrap();
        assert_eq!(read_to_end(&b).await, "hello");
        // The other direction is still open.
        (&b).write_all(b"answer").await.unwrap();
        drop(b);
        assert_eq!(read_to_end(&a).await, "answer");
        let error = a.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn shutdown_ends_a_direction() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        a.shutdown(Shutdown::Read).unwrap();
        assert_eq!(read_to_end(&a).await, "");
        let error = (&b).write(b"x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        a.shutdown(Shutdown::Both).unwrap();
        assert_eq!(read_to_end(&b).await, "");
        assert!(b.take_error().unwrap().is_none());
    });
}

/// More than the buffers hold, both ways at once over the same two streams.
#[test]
fn both_directions_at_once() {
    const TOTAL: usize = 1 << 20;
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let run = |stream: UnixStream| async move {
            let write = async {
                (&stream).write_all(&vec![7; TOTAL]).await.unwrap();
                (&stream).close().await.unwrap();
            };
            let read = async {
                let mut all = Vec::new();
                (&stream).read_to_end(&mut all).await.unwrap();
                assert!(all.iter().all(|&byte| byte == 7));
                all.len()
            };
            join(read, write).await.0
        };
        assert_eq!(join(run(a), run(b)).await, (TOTAL, TOTAL));
    });
}

#[test]
fn several_buffers_are_one_write_and_one_read() {
    block_on(async {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")];
        assert_eq!(a.write_vectored(&parts).await.unwrap(), 5);
        let (mut first, mut second) = ([0; 3], [0; 8]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(b.read_vectored(&mut parts).await.unwrap(), 5);
        assert_eq!((&first, &second[..2]), (b"abc", &b"de"[..]));
    });
}

#[test]
fn attempts_do_not_wait() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let mut buffer = [0; 8];
        let nothing = b.try_read(&mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        assert_eq!(a.try_write(b"hi").unwrap(), 2);
        b.readable().await.unwrap();
        assert_eq!(b.try_read(&mut buffer).unwrap(), 2);
        let full = loop {
            match a.try_write(&[0; 1 << 16]) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        assert!(a.writable().now_or_never().is_none());
        drop(b);
        a.writable().await.unwrap();
        let gone = a.try_write(b"x").unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn r206_pairs_and_accepted_streams_do_not_block_and_are_not_inherited() {
    let name = abstract_name("r206");
    block_on(async {
        let listener = UnixListener::bind(name.clone()).unwrap();
        let (client, server) = join(UnixStream::connect(name), listener.accept()).await;
        let (one, other) = UnixStream::pair().unwrap();
        let streams = [client.unwrap(), server.unwrap().0, one, other];
        for stream in &streams {
            let flags = fcntl_getfd(stream.as_fd()).unwrap();
            assert!(flags.contains(FdFlags::CLOEXEC));
            let nothing = stream.try_read(&mut [0]).unwrap_err();
            assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
        }
        let flags = fcntl_getfd(listener.get_ref().as_fd()).unwrap();
        assert!(flags.contains(FdFlags::CLOEXEC));
    });
}

#[test]
fn r207_libuv_pipe_set_non_blocking() {
    const TOTAL: usize = 1 << 20;
    block_on(async {
        let (ours, mut theirs) = net::UnixStream::pair().unwrap();
        let stream = UnixStream::from_std(ours).unwrap();
        stream.get_ref().set_nonblocking(false).unwrap();
        let reader = thread::spawn(move || {
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut theirs, &mut all).map(|_| all.len())
        });
        assert_eq!(stream.try_write(&vec![0; TOTAL]).unwrap(), TOTAL);
        drop(stream);
        assert_eq!(reader.join().unwrap().unwrap(), TOTAL);
    });
}

#[test]
fn off_the_loop_and_on_again() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let foreign = a.into_std();
        assert_eq!(LoopHandle::current().handles().len(), 1);
        let a = UnixStream::from_std(foreign).unwrap();
        (&a).write_all(b"x").await.unwrap();
        drop(a);
        assert_eq!(read_to_end(&b).await, "x");
    });
}

#[test]
fn a_stream_keeps_the_loop_alive_while_somebody_waits() {
    let (mut event_loop, handle, trace) = paused();
    let (a, b) = event_loop.enter(|| UnixStream::pair().unwrap());
    let a = Rc::new(a);
    assert!(!handle.is_alive() && !a.is_active());
    let (reader, log) = (a.clone(), trace.clone());
    let task = handle.spawn(async move { log.log(read_to_end(&reader).await) });
    turn(&mut event_loop);
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
    a.unref();
    assert!(!handle.is_alive(), "a read of an unref'd stream");
    a.ref_();
    b.close_now().then(trace.call("closed"));
    finish(&mut event_loop);
    // The end comes with the poll phase of the same turn.
    assert_eq!(trace.take(), " closed");
    assert!(task.is_finished());
}

#[test]
fn a_listener_waits_and_closes_as_a_handle() {
    let (mut event_loop, handle, trace) = paused();
    let name = abstract_name("handle");
    let listener = event_loop.enter(|| Rc::new(UnixListener::bind(name.clone()).unwrap()));
    let (accepting, accepted) = (listener.clone(), Rc::new(Cell::new(false)));
    let mark = accepted.clone();
    let task = handle.spawn(async move {
        drop(accepting.accept().await);
        mark.set(true);
    });
    turn(&mut event_loop);
    assert!(listener.is_active());
    task.abort();
    finish(&mut event_loop);
    assert!(!listener.is_active() && !accepted.get());
    // The dropped futures have taken no connection.
    let _client = event_loop.enter(|| UnixStream::connect(name).now_or_never());
    let taken = event_loop.block_on(listener.accept());
    taken.unwrap();
    Rc::try_unwrap(listener)
        .unwrap()
        .close()
        .then(trace.call("closed"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
}

/// A name of bytes that are no text.
#[test]
fn paths_are_bytes() {
    let directory = Directory::new("bytes");
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    block_on(async {
        let path = directory.0.join(name);
        let listener = UnixListener::bind(&path).unwrap();
        let name = listener.local_name().unwrap();
        assert_eq!(name, Some(SocketName::Path(path)));
    });
}
