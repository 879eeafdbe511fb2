//! UDP in batches when the kernel is short of buffers: between any two datagrams, it may take no
//! more for now, or fail.
//!
//! Over the loopback interface it never does. So this program has its own `recvmmsg` and
//! `sendmmsg`, which are called in place of the C library's, do as a script says, and count.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
#![allow(
    unsafe_code,
    reason = "functions of the C library are replaced by others"
)]

use crate::util::polls::poll_once;
use crate::util::trace::paused;
use crate::util::udp::{address, assert_errno, bind, receive};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{self, SocketAddr};
use std::pin::pin;

use futures::FutureExt;
use phaseloop::net::{Batch, UdpSocket};
use phaseloop::phase::check;
use phaseloop::{block_on, spawn};
use rustix::io::Errno;
use tokio_test::assert_pending;

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// The system does it, for so many datagrams at most.
    Limited(u32),
    Fails(Errno),
}
use Fate::{Fails, Limited};

#[derive(Default)]
struct Calls {
    /// The next calls end so; those behind them are not touched.
    script: RefCell<VecDeque<Fate>>,
    /// How many datagrams each call was asked for.
    asked: RefCell<Vec<u32>>,
}

thread_local! {
    static SENDS: Calls = Calls::default();
    static RECEIVES: Calls = Calls::default();
}

impl Calls {
    /// How many datagrams the call may handle; `None`: it has failed, and `errno` says why.
    fn begin(&self, asked: u32) -> Option<u32> {
        self.asked.borrow_mut().push(asked);
        match self.script.borrow_mut().pop_front() {
            None => Some(asked),
            Some(Limited(most)) => Some(asked.min(most)),
            Some(Fails(errno)) => {
                // SAFETY: the place of this thread's `errno` can always be written.
                unsafe { *libc::__errno_location() = errno.raw_os_error() };
                None
            }
        }
    }
}

/// Replaces the function of the C library.
///
/// # Safety
///
/// The requirements of the system call apply.
#[unsafe(no_mangle)]
unsafe extern "C" fn sendmmsg(
    socket: libc::c_int,
    messages: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
) -> libc::c_int {
    let Some(count) = SENDS.with(|calls| calls.begin(count)) else {
        return -1;
    };
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_sendmmsg, socket, messages, count, flags) as _ }
}

/// Replaces the function of the C library.
///
/// # Safety
///
/// The requirements of the system call apply.
#[unsafe(no_mangle)]
unsafe extern "C" fn recvmmsg(
    socket: libc::c_int,
    messages: *mut libc::mmsghdr,
    count: libc::c_uint,
    flags: libc::c_int,
    timeout: *mut libc::timespec,
) -> libc::c_int {
    let Some(count) = RECEIVES.with(|calls| calls.begin(count)) else {
        return -1;
    };
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_recvmmsg, socket, messages, count, flags, timeout) as _ }
}

/// The next sends end so.
fn sends_end(script: impl IntoIterator<Item = Fate>) {
    SENDS.with(|calls| {
        calls.asked.take();
        calls.script.replace(script.into_iter().collect());
    });
}

/// What was asked for since then. All of the script is played.
fn sends_asked() -> Vec<u32> {
    SENDS.with(|calls| {
        assert!(calls.script.borrow().is_empty());
        calls.asked.take()
    })
}

fn batch_of(texts: &[&str], to: &UdpSocket) -> Batch {
    let mut batch = Batch::new(8, 16);
    for text in texts {
        batch.push(text.as_bytes(), address(to)).unwrap();
    }
    batch
}

async fn expect(socket: &UdpSocket, texts: &[&str]) {
    for expected in texts {
        assert_eq!(receive(socket).await.0, *expected);
    }
}

/// Makes the kernel report room for a socket, as it does in the end: here, because something has
/// come for it.
async fn make_room(socket: &UdpSocket) {
    bind().send_to(b"room", address(socket)).await.unwrap();
}

#[test]
fn a_batch_takes_as_many_calls_as_the_system_wants() {
    block_on(async {
        let (a, b) = (bind(), bind());
        sends_end([Limited(1), Limited(3)]);
        let mut batch = batch_of(&["1", "2", "3", "4", "5", "6"], &b);
        a.send_batch(&mut batch).await.unwrap();
        assert!(batch.is_empty());
        assert_eq!(sends_asked(), [6, 5, 2]);
        expect(&b, &["1", "2", "3", "4", "5", "6"]).await;
    });
}

#[test]
fn r225_no_room_in_the_middle_is_waited_for() {
    block_on(async {
        let (a, b) = (std::rc::Rc::new(bind()), bind());
        a.writable().await.unwrap();
        sends_end([Limited(2), Fails(Errno::AGAIN), Fails(Errno::AGAIN)]);
        let mut batch = batch_of(&["1", "2", "3", "4"], &b);
        let sender = a.clone();
        let task = spawn(async move {
            sender.send_batch(&mut batch).await.unwrap();
            batch
        });
        expect(&b, &["1", "2"]).await;
        assert!(!task.is_finished());
        make_room(&a).await;
        while sends_asked_so_far() < 3 {
            check().await;
        }
        assert!(!task.is_finished(), "there was no room after all");
        make_room(&a).await;
        assert!(task.await.unwrap().is_empty());
        expect(&b, &["3", "4"]).await;
        assert_eq!(sends_asked(), [4, 2, 2, 2]);
    });
}

fn sends_asked_so_far() -> usize {
    SENDS.with(|calls| calls.asked.borrow().len())
}

/// What was not sent stays, and goes with what is added behind it.
#[test]
fn a_send_that_is_given_up_keeps_the_rest() {
    block_on(async {
        let (a, b) = (bind(), bind());
        a.writable().await.unwrap();
        sends_end([Limited(3), Fails(Errno::AGAIN)]);
        let mut batch = batch_of(&["1", "2", "3", "4", "5", "6", "7", "8"], &b);
        {
            let mut send = pin!(a.send_batch(&mut batch));
            assert_pending!(poll_once(&mut send).await);
        }
        assert_eq!((batch.len(), sends_asked()), (5, vec![8, 5]));
        assert!(batch.failed().is_none());
        // The room of those that went is used again.
        for text in ["9", "10", "11"] {
            batch.push(text.as_bytes(), address(&b)).unwrap();
        }
        let full = batch.push(b"12", address(&b)).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        make_room(&a).await;
        a.send_batch(&mut batch).await.unwrap();
        expect(
            &b,
            &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"],
        )
        .await;
        assert_eq!(sends_asked(), [8]);
    });
}

/// Ours differs from libuv: a lack of memory is an error, since no event would report free memory.
#[test]
fn r225_no_memory_in_the_middle_is_an_error_of_one() {
    block_on(async {
        let (a, b) = (bind(), bind());
        sends_end([Limited(2), Fails(Errno::NOBUFS)]);
        let mut batch = batch_of(&["1", "2", "3", "4"], &b);
        assert_errno(a.send_batch(&mut batch).await, Errno::NOBUFS);
        assert_eq!(batch.failed().unwrap().bytes(), b"3");
        assert_eq!(batch.len(), 1);
        batch.push(b"5", address(&b)).unwrap();
        assert!(batch.failed().is_none(), "the batch is another one");
        a.send_batch(&mut batch).await.unwrap();
        expect(&b, &["1", "2", "4", "5"]).await;
        assert_eq!(sends_asked(), [4, 2, 2]);
        // And with something added in between, which may take the place of the failed one.
        sends_end([Fails(Errno::NOBUFS)]);
        let mut batch = batch_of(&["1", "2", "3", "4", "5", "6", "7", "8"], &b);
        assert_errno(a.send_batch(&mut batch).await, Errno::NOBUFS);
        batch.push(b"9", address(&b)).unwrap();
        assert!(batch.failed().is_none());
        a.send_batch(&mut batch).await.unwrap();
        expect(&b, &["2", "3", "4", "5", "6", "7", "8", "9"]).await;
    });
}

/// As with a descriptor that other code has closed: each operation fails, and no wait ends.
#[test]
fn a_bad_descriptor_is_an_error_of_each() {
    block_on(async {
        let (a, b) = (bind(), bind());
        sends_end([Fails(Errno::BADF), Fails(Errno::BADF)]);
        let mut batch = batch_of(&["1", "2"], &b);
        for (left, failed) in [(1, b"1"), (0, b"2")] {
            assert_errno(a.send_batch(&mut batch).await, Errno::BADF);
            assert_eq!(
                (batch.len(), batch.failed().unwrap().bytes()),
                (left, &failed[..])
            );
        }
        a.send_batch(&mut batch).await.unwrap();
        make_room(&b).await;
        RECEIVES.with(|calls| calls.script.replace([Fails(Errno::BADF)].into()));
        assert_errno(b.recv_batch(&mut batch).await, Errno::BADF);
        assert!(batch.is_empty());
    });
}

#[test]
fn attempts_say_what_they_did() {
    let (event_loop, ..) = paused();
    let (a, b) = event_loop.enter(|| (bind(), bind()));
    sends_end([Limited(1), Fails(Errno::AGAIN), Fails(Errno::INTR)]);
    let mut batch = batch_of(&["1", "2", "3"], &b);
    assert_eq!(a.try_send_batch(&mut batch).unwrap(), 1);
    let error = a.try_send_batch(&mut batch).unwrap_err();
    assert_eq!((error.kind(), batch.len()), (ErrorKind::WouldBlock, 2));
    assert!(batch.failed().is_none());
    let waits = event_loop.enter(|| a.writable().now_or_never().is_none());
    assert!(waits, "the next event says that there is room");
    // An interrupted call is made again.
    assert_eq!(a.try_send_batch(&mut batch).unwrap(), 2);
    assert_eq!(sends_asked(), [3, 2, 2, 2]);
}

#[test]
fn interrupted_calls_are_made_again() {
    block_on(async {
        let (a, b) = (bind(), bind());
        sends_end([Fails(Errno::INTR), Limited(1), Fails(Errno::INTR)]);
        let mut batch = batch_of(&["1", "2", "3"], &b);
        a.send_batch(&mut batch).await.unwrap();
        assert_eq!(sends_asked(), [3, 3, 2, 2]);
        let script = [Fails(Errno::INTR), Limited(2), Fails(Errno::INTR)];
        RECEIVES.with(|calls| calls.script.replace(script.into()));
        assert_eq!(b.recv_batch(&mut batch).await.unwrap(), 2);
        assert_eq!(b.recv_batch(&mut batch).await.unwrap(), 1);
        RECEIVES.with(|calls| assert!(calls.script.borrow().is_empty()));
    });
}

/// A server with fifty clients: for each round one receive, one send, and a receive that finds
/// nothing.
#[test]
fn a_round_of_fifty_is_three_calls() {
    const ROUNDS: usize = 20;
    block_on(async {
        let server = bind();
        let to = address(&server);
        let clients: Vec<_> = (0..50).map(|_| client_of(to)).collect();
        let echo = spawn(async move {
            let mut batch = Batch::new(64, 64);
            loop {
                server.recv_batch(&mut batch).await.unwrap();
                server.send_batch(&mut batch).await.unwrap();
            }
        });
        for _ in 0..ROUNDS {
            for client in &clients {
                client.send(b"ping").unwrap();
            }
            // As long as it takes; they do not block.
            for client in &clients {
                while client.recv(&mut [0; 8]).is_err() {
                    check().await;
                }
            }
        }
        echo.abort();
        let receives = RECEIVES.with(|calls| calls.asked.borrow().len());
        assert!(receives <= 2 * ROUNDS + 1, "{receives} receives");
        assert_eq!(sends_asked(), [50; ROUNDS]);
    });
}

/// A non-blocking socket of the standard library.
fn client_of(server: SocketAddr) -> net::UdpSocket {
    let client = net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(server).unwrap();
    client.set_nonblocking(true).unwrap();
    client
}
