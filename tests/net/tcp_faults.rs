//! TCP when things go wrong or get large: peers that reset, stall or trickle, many connections,
//! descriptors that are used again within a batch or closed behind our back, a storm of signals.

use crate::util::child::{in_child, path_of};
use crate::util::polls::poll_once;
use crate::util::tcp::{
    Has, MANY_DESCRIPTORS, expect_success, fill, half_std_pair, kind, listener, pair, run, settle,
    sources,
};
use crate::util::trace::{ZERO, ms};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net;
#[cfg(unix)]
use std::os::fd::{AsRawFd, IntoRawFd};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::io::copy;
use phaseloop::net::TcpStream;
use phaseloop::phase::check;
use phaseloop::task::JoinSet;
use phaseloop::time::sleep;
use phaseloop::{JoinHandle, LoopHandle, spawn};
use tokio_test::assert_pending;

/// The drop of the stream resets the connection. Thousands of them leave no port waiting, either.
fn reset_on_drop(stream: &net::TcpStream) {
    socket2::SockRef::from(stream)
        .set_linger(Some(ZERO))
        .unwrap();
}

#[test]
fn a_peer_that_resets_ends_a_write_in_the_middle() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let writer = spawn(async move { stream.write_all(&vec![1; 20_000_000]).await });
        check().await;
        // Some of it, so that the write is under way; then no more.
        theirs.read_exact(&mut [0; 100_000]).unwrap();
        assert!(!writer.is_finished());
        reset_on_drop(&theirs);
        drop(theirs);
        let error = kind(writer.await.unwrap()).unwrap();
        let expected = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(expected.contains(&error), "{error:?}");
    });
}

/// A waiting read and a waiting write both return it.
#[test]
fn a_reset_wakes_both_directions() {
    run(async {
        let (stream, theirs) = half_std_pair();
        fill(&stream).await;
        let stream = Rc::new(stream);
        let (reader, writer) = (stream.clone(), stream.clone());
        let read = spawn(async move { (&*reader).read(&mut [0; 8]).await });
        let write = spawn(async move { (&*writer).write_all(b"x").await });
        check().await;
        assert!(!read.is_finished() && !write.is_finished());
        reset_on_drop(&theirs);
        drop(theirs);
        // One of them gets the reset, the other one what is left after it.
        assert!(!matches!(read.await.unwrap(), Ok(1..)));
        assert!(write.await.unwrap().is_err());
    });
}

/// A client that went without a word while the server writes on and on.
#[test]
fn a_half_open_peer_is_found_out_by_writing() {
    run(async {
        let (mut stream, theirs) = half_std_pair();
        drop(theirs);
        let error = loop {
            match stream.write(b"are you there?").await {
                Ok(_) => check().await,
                Err(error) => break error.kind(),
            }
        };
        let expected = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
        assert!(expected.contains(&error), "{error:?}");
    });
}

/// 100 clients that send their request a byte at a time do not keep one from being served that
/// sends it whole.
#[test]
fn slow_clients_leave_a_quick_one_its_turn() {
    const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
    run(async {
        let (listener, address) = listener().await;
        let served = Rc::new(Cell::new(0));
        let count = served.clone();
        let server = spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let served = count.clone();
                connections.spawn(async move {
                    let mut request = [0; REQUEST.len()];
                    if stream.read_exact(&mut request).await.is_ok() {
                        stream.write_all(b"200").await.unwrap();
                        served.set(served.get() + 1);
                    }
                });
            }
        });
        let mut slow = Vec::new();
        for _ in 0..100 {
            slow.push(TcpStream::connect(address).await.unwrap());
        }
        for byte in &REQUEST[..REQUEST.len() - 1] {
            for stream in &mut slow {
                stream.write_all(&[*byte]).await.unwrap();
            }
            let mut quick = TcpStream::connect(address).await.unwrap();
            quick.write_all(REQUEST).await.unwrap();
            let mut answer = String::new();
            quick.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "200");
        }
        assert_eq!(served.get(), REQUEST.len() - 1, "none of the slow ones");
        for stream in &mut slow {
            stream
                .write_all(&REQUEST[REQUEST.len() - 1..])
                .await
                .unwrap();
            stream.read_exact(&mut [0; 3]).await.unwrap();
        }
        server.abort();
    });
}

#[cfg(unix)]
#[test]
fn a_thousand_connects_in_one_turn() {
    let test = "a_thousand_connects_in_one_turn";
    expect_success(in_child(&MANY_DESCRIPTORS, test, || {
        run(async {
            let (listener, address) = listener().await;
            let handle = LoopHandle::current();
            let began = Rc::new(RefCell::new(Vec::new()));
            let clients: Vec<_> = (0..1000_u32)
                .map(|number| {
                    let (began, handle) = (began.clone(), handle.clone());
                    spawn(async move {
                        began.borrow_mut().push(handle.turns());
                        let mut stream = TcpStream::connect(address).await.unwrap();
                        reset_on_drop(stream.get_ref());
                        stream.write_all(&number.to_be_bytes()).await.unwrap();
                        let mut answer = [0; 4];
                        stream.read_exact(&mut answer).await.unwrap();
                        assert_eq!(u32::from_be_bytes(answer), number);
                    })
                })
                .collect();
            let mut servers = JoinSet::new();
            for _ in 0..1000 {
                let (mut stream, _) = listener.accept().await.unwrap();
                servers.spawn(async move {
                    let mut buffer = [0; 4];
                    stream.read_exact(&mut buffer).await.unwrap();
                    stream.write_all(&buffer).await.unwrap();
                    // Until the client has gone, and taken the connection with it.
                    let _ = stream.read(&mut buffer).await;
                });
            }
            for client in clients {
                client.await.unwrap();
            }
            while let Some(served) = servers.join_next().await {
                served.unwrap();
            }
            let began = began.take();
            assert!(began.iter().all(|turn| *turn == began[0]), "all in one");
            assert_eq!(sources(), 1, "only the listener is left");
        });
    }));
}

/// How many connections stay idle while fifty work.
const IDLE: usize = 10_000;

/// Idle connections cost nothing: none of them is polled while fifty others work.
///
/// Their clients are held by a process of their own, as one may not have descriptors for both ends.
#[cfg(unix)]
#[test]
fn ten_thousand_idle_connections_and_fifty_active() {
    const CLIENTS_OF: &str = "PHASELOOP_TEST_CLIENTS_OF";
    if let Ok(address) = std::env::var(CLIENTS_OF) {
        return hold_idle_clients(address.parse().unwrap());
    }
    let test = "ten_thousand_idle_connections_and_fifty_active";
    let wrapper = [
        "sh",
        "-c",
        "ulimit -n 10300 2>/dev/null || { echo 'skipped: too few descriptors allowed' >&2; exit 0; }; exec \"$@\"",
        "sh",
    ];
    expect_success(in_child(&wrapper, test, || {
        run(async {
            let (listener, address) = listener().await;
            let mut clients = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &path_of(test), "--nocapture"])
                .env(CLIENTS_OF, address.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let polls = Rc::new(Cell::new(0_usize));
            let mut idle = Vec::with_capacity(IDLE);
            for _ in 0..IDLE {
                let (mut server, _) = listener.accept().await.unwrap();
                let polls = polls.clone();
                let mut waits = Box::pin(async move { server.read(&mut [0; 8]).await });
                idle.push(spawn(std::future::poll_fn(move |cx| {
                    polls.set(polls.get() + 1);
                    waits.as_mut().poll(cx)
                })));
            }
            check().await;
            assert_eq!(polls.get(), IDLE);
            let mut active = JoinSet::new();
            for _ in 0..50 {
                let (mut client, mut server) = pair().await;
                active.spawn(async move {
                    for round in 0..100_u8 {
                        client.write_all(&[round; 100]).await.unwrap();
                        let mut buffer = [0; 100];
                        server.read_exact(&mut buffer).await.unwrap();
                        assert_eq!(buffer, [round; 100]);
                    }
                });
            }
            while let Some(done) = active.join_next().await {
                done.unwrap();
            }
            assert_eq!(polls.get(), IDLE, "no idle one was disturbed");
            drop(clients.stdin.take());
            for waiting in idle {
                assert_eq!(waiting.await.unwrap().unwrap(), 1, "all are still there");
            }
            assert!(clients.wait().unwrap().success());
        });
    }));
}

/// Connects, waits for the end of the standard input, sends a byte over each connection and leaves.
#[cfg(unix)]
fn hold_idle_clients(address: net::SocketAddr) {
    let mut clients: Vec<_> = (0..IDLE)
        .map(|_| net::TcpStream::connect(address).unwrap())
        .collect();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    for client in &mut clients {
        client.write_all(b"x").unwrap();
    }
    // The server ends the connections first, so that no port of ours has to wait.
    for client in &mut clients {
        let _ = client.read(&mut [0]);
    }
}

/// libuv's `tcp_close_accept`. Two sockets have an event in one batch. Who comes first closes both
/// and opens two connections, which get the descriptors, and the places in the loop, of the old
/// ones; they see nothing of them.
///
/// In a process of its own, because other tests open and close descriptors, too.
#[cfg(unix)]
#[test]
fn a_descriptor_used_again_in_the_batch_sees_nothing_of_its_past() {
    let test = "a_descriptor_used_again_in_the_batch_sees_nothing_of_its_past";
    expect_success(in_child(&[], test, || {
        run(async {
            for _ in 0..20 {
                reuse_descriptors_in_a_batch().await;
            }
        });
    }));
}

#[cfg(unix)]
async fn reuse_descriptors_in_a_batch() {
    let (old, mut theirs): (Vec<_>, Vec<_>) = (0..2).map(|_| half_std_pair()).unzip();
    // Takes the number that the pairs' own listeners had, so that none lower than those of the old
    // ones is free.
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let numbers = |streams: &[TcpStream]| {
        let numbers = streams.iter().map(|stream| stream.get_ref().as_raw_fd());
        BTreeSet::from_iter(numbers)
    };
    let old_numbers = numbers(&old);
    for (ours, theirs) in old.iter().zip(&mut theirs) {
        ours.writable().await.unwrap();
        theirs.write_all(b"for the old").unwrap();
        settle(ours, Has::Data);
    }
    let tasks: Rc<RefCell<[Option<JoinHandle<()>>; 2]>> = Rc::default();
    let fresh: Rc<RefCell<Vec<TcpStream>>> = Rc::default();
    for (number, mut stream) in old.into_iter().enumerate() {
        let (all, fresh) = (tasks.clone(), fresh.clone());
        let task = spawn(async move {
            assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 11);
            drop(stream);
            let other = all.borrow_mut()[1 - number].take().unwrap();
            other.abort();
            assert!(other.await.unwrap_err().is_cancelled());
            for _ in 0..2 {
                let new = net::TcpStream::connect(address).unwrap();
                fresh.borrow_mut().push(TcpStream::from_std(new).unwrap());
            }
        });
        tasks.borrow_mut()[number] = Some(task);
    }
    while fresh.borrow().is_empty() {
        check().await;
    }
    let fresh = fresh.take();
    assert_eq!(numbers(&fresh), old_numbers, "the same descriptors");
    for mut stream in fresh {
        check().await;
        assert_pending!(tokio_test::task::spawn(stream.readable()).poll());
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(b"new").unwrap();
        let mut buffer = [0; 64];
        let count = stream.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"new");
    }
}

/// A descriptor that other code has closed: new operations fail, and the loop serves the others. A
/// future that waits already is not woken, as with libuv: the kernel reports nothing.
#[cfg(unix)]
#[test]
fn a_descriptor_closed_behind_our_back_is_an_error() {
    let test = "a_descriptor_closed_behind_our_back_is_an_error";
    expect_success(in_child(&[], test, || {
        run(async {
            let (stream, _theirs) = half_std_pair();
            let (mut other, mut other_theirs) = pair().await;
            stream.writable().await.unwrap();
            let mut waits = Box::pin(async { (&stream).read(&mut [0; 8]).await });
            assert_pending!(poll_once(&mut waits).await);
            close_behind_its_back(stream.get_ref());
            sleep(ms(1)).await;
            assert_pending!(poll_once(&mut waits).await);
            drop(waits);
            let bad = |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(libc::EBADF));
            bad((&stream).write(b"x").await.unwrap_err());
            bad(stream.try_read(&mut [0; 8]).unwrap_err());
            bad(stream.shutdown(net::Shutdown::Write).unwrap_err());
            other.write_all(b"x").await.unwrap();
            other_theirs.read_exact(&mut [0]).await.unwrap();
            // Off the loop, and not closed a second time.
            let before = sources();
            let _ = stream.into_std().into_raw_fd();
            assert_eq!(sources(), before - 1);
        });
    }));
}

#[allow(
    unsafe_code,
    reason = "closing what belongs to another is what is tested"
)]
#[cfg(unix)]
fn close_behind_its_back(stream: &net::TcpStream) {
    // SAFETY: the number is not used until its owner releases it without closing it.
    assert_eq!(unsafe { libc::close(stream.as_raw_fd()) }, 0);
}

/// A signal every few microseconds, whose handler does nothing: system calls are interrupted all
/// the time.
#[cfg(unix)]
#[test]
fn a_storm_of_signals_disturbs_nothing() {
    let test = "a_storm_of_signals_disturbs_nothing";
    expect_success(in_child(&[], test, || {
        let storm = Storm::start();
        run(async {
            let (listener, address) = listener().await;
            let echo = spawn(async move {
                let mut connections = JoinSet::new();
                for _ in 0..20 {
                    let (stream, _) = listener.accept().await.unwrap();
                    connections.spawn(async move { copy(&stream, &stream).await.unwrap() });
                }
                let mut total = 0;
                while let Some(copied) = connections.join_next().await {
                    total += copied.unwrap();
                }
                total
            });
            for _ in 0..20 {
                let stream = TcpStream::connect(address).await.unwrap();
                let (mut reader, mut writer) = (&stream, &stream);
                let sent = vec![5; 200_000];
                let mut received = Vec::new();
                let (written, read) = futures::future::join(
                    async {
                        writer.write_all(&sent).await?;
                        writer.close().await
                    },
                    reader.read_to_end(&mut received),
                )
                .await;
                written.unwrap();
                assert_eq!((read.unwrap(), received == sent), (200_000, true));
                // A wait that is interrupted, too.
                sleep(ms(2)).await;
            }
            assert_eq!(echo.await.unwrap(), 20 * 200_000);
        });
        assert!(storm.stop() > 20, "there were signals");
    }));
}

/// Sends signals to the thread that started it.
struct Storm {
    over: Arc<AtomicBool>,
    sender: thread::JoinHandle<()>,
}

static CAUGHT: AtomicU32 = AtomicU32::new(0);

#[cfg(unix)]
impl Storm {
    #[allow(unsafe_code, reason = "signal handlers are the C library's")]
    fn start() -> Self {
        extern "C" fn count(_: libc::c_int) {
            CAUGHT.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the handler only counts; all zero is a valid `sigaction`, without SA_RESTART.
        let target = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count as *const () as usize;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()),
                0
            );
            libc::pthread_self()
        } as usize;
        let over = Arc::new(AtomicBool::new(false));
        let end = over.clone();
        let sender = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                // SAFETY: the target waits for this thread before it ends.
                unsafe { libc::pthread_kill(target as libc::pthread_t, libc::SIGUSR1) };
                thread::sleep(Duration::from_micros(20));
            }
        });
        Self { over, sender }
    }

    fn stop(self) -> u32 {
        self.over.store(true, Ordering::Relaxed);
        self.sender.join().unwrap();
        CAUGHT.load(Ordering::Relaxed)
    }
}
