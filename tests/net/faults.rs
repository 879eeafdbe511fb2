//! System calls that fail: interruptions where a wake or a connection would be lost, errors of
//! `accept` that stay.
//!
//! The tests run themselves under `strace`; where there is none, they say so and pass.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use crate::util::faults::{with_faults, with_faults_of};
use crate::util::tcp::{listener, run};
use crate::util::trace::ms;
use std::thread;

use futures::StreamExt;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{SocketName, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use phaseloop::signal::{SignalKind, Signals};
use phaseloop::{Handle, LoopHandle};
use rustix::process::{Signal, kill_process};
use tokio_test::assert_pending;

/// Calls with the descriptor of an eventfd, by which a loop is woken.
const EVENTFDS: [&str; 2] = ["-P", "anon_inode:[eventfd]"];

/// Wakes the loop from another thread, each time when it has probably gone to sleep.
fn wake_from_elsewhere() {
    run(async {
        let (asleep, is_asleep) = std::sync::mpsc::channel();
        let (sender, mut woken) = futures::channel::mpsc::unbounded();
        let thread = thread::spawn(move || {
            while is_asleep.recv().is_ok() {
                thread::sleep(ms(2));
                sender.unbounded_send(()).unwrap();
            }
        });
        for _ in 0..20 {
            asleep.send(()).unwrap();
            woken.next().await.unwrap();
        }
        drop(asleep);
        thread.join().unwrap();
    });
}

#[test]
fn a_wake_whose_write_is_interrupted_is_written_again() {
    let test = "a_wake_whose_write_is_interrupted_is_written_again";
    with_faults_of(
        &EVENTFDS,
        test,
        &["write:error=EINTR:when=1+2"],
        wake_from_elsewhere,
    );
}

/// The counter of an eventfd holds 2^64 - 2 wakes.
#[test]
fn a_wake_that_the_eventfd_has_no_room_for_is_written_again() {
    let test = "a_wake_that_the_eventfd_has_no_room_for_is_written_again";
    with_faults_of(
        &EVENTFDS,
        test,
        &["write:error=EAGAIN:when=1+2"],
        wake_from_elsewhere,
    );
}

/// The handler of a signal writes, too.
#[test]
fn a_signal_whose_write_is_interrupted_arrives() {
    let test = "a_signal_whose_write_is_interrupted_arrives";
    with_faults_of(&EVENTFDS, test, &["write:error=EINTR:when=1+2"], || {
        run(async {
            let mut signals = Signals::new([SignalKind::USR1]).unwrap();
            let this = rustix::process::getpid();
            let (asleep, is_asleep) = std::sync::mpsc::channel();
            let thread = thread::spawn(move || {
                while is_asleep.recv().is_ok() {
                    thread::sleep(ms(2));
                    kill_process(this, Signal::USR1).unwrap();
                }
            });
            for _ in 0..20 {
                asleep.send(()).unwrap();
                signals.next().await.unwrap();
            }
            drop(asleep);
            thread.join().unwrap();
        });
    });
}

/// Some systems let a signal interrupt a connect that goes on in the background; all let it be
/// tried again.
#[test]
fn a_connect_that_is_interrupted_is_tried_again() {
    let test = "a_connect_that_is_interrupted_is_tried_again";
    with_faults(test, &["connect:error=EINTR:when=1+2"], || {
        run(async {
            let (listener, address) = listener().await;
            let mut stream = TcpStream::connect(address).await.unwrap();
            let (mut peer, _) = listener.accept().await.unwrap();
            stream.write_all(b"tcp").await.unwrap();
            peer.read_exact(&mut [0; 3]).await.unwrap();

            let name = SocketName::abstract_name(format!("{test}-{}", std::process::id()));
            let listener = UnixListener::bind(name.clone()).unwrap();
            let mut stream = UnixStream::connect(name).await.unwrap();
            let (mut peer, _) = listener.accept().await.unwrap();
            stream.write_all(b"unix").await.unwrap();
            peer.read_exact(&mut [0; 4]).await.unwrap();

            let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            sender
                .connect(receiver.local_addr().unwrap())
                .await
                .unwrap();
            sender.send(b"udp").await.unwrap();
            receiver.recv_from(&mut [0; 3]).await.unwrap();

            let name = SocketName::abstract_name(format!("{test}-{}-d", std::process::id()));
            let receiver = UnixDatagram::bind(name.clone()).unwrap();
            let sender = UnixDatagram::unbound().unwrap();
            sender.connect(name).unwrap();
            sender.send(b"datagram").await.unwrap();
            receiver.recv_from(&mut [0; 8]).await.unwrap();
        });
    });
}

/// Counts the errors of an accept loop that goes on after each of them, and compares them with the
/// time.
async fn count_errors<T>(mut accept: impl AsyncFnMut() -> std::io::Result<T>) {
    /// How long a listener rests after an error that stays.
    const REST: u128 = 10;
    /// How many connections may fail one after the other without a rest.
    const OF_CONNECTIONS: u128 = 16;
    let start = LoopHandle::current().now();
    let mut errors = 0;
    while LoopHandle::current().now() - start < ms(100) {
        assert!(accept().await.is_err());
        errors += 1;
    }
    let passed = (LoopHandle::current().now() - start).as_millis();
    assert!(errors <= passed / REST + OF_CONNECTIONS + 1, "{errors}");
}

/// Runs accept loops under an error for good, on a TCP and on a Unix listener.
fn accept_under(test: &str, error: &str) {
    // musl makes an `accept4` that fails with EINVAL once more, as `accept`.
    with_faults(test, &[&format!("accept4,accept:error={error}")], || {
        run(async {
            let (listener, address) = listener().await;
            let _client = std::net::TcpStream::connect(address).unwrap();
            count_errors(async || listener.accept().await).await;

            let name = SocketName::abstract_name(format!("{test}-{}", std::process::id()));
            let listener = UnixListener::bind(name.clone()).unwrap();
            let _client = UnixStream::connect(name).await.unwrap();
            count_errors(async || listener.accept().await).await;
        });
    });
}

#[test]
fn an_accept_loop_rests_while_there_are_no_buffers() {
    accept_under("an_accept_loop_rests_while_there_are_no_buffers", "ENOBUFS");
}

#[test]
fn an_accept_loop_rests_while_there_is_no_memory() {
    accept_under("an_accept_loop_rests_while_there_is_no_memory", "ENOMEM");
}

#[test]
fn an_accept_loop_rests_while_it_is_forbidden() {
    accept_under("an_accept_loop_rests_while_it_is_forbidden", "EPERM");
}

#[test]
fn an_accept_loop_rests_when_the_socket_does_not_listen() {
    let test = "an_accept_loop_rests_when_the_socket_does_not_listen";
    accept_under(test, "EINVAL");
}

/// Also not on the descriptor that is held back to turn connections away.
#[test]
fn an_accept_loop_rests_while_there_is_no_descriptor() {
    accept_under(
        "an_accept_loop_rests_while_there_is_no_descriptor",
        "EMFILE",
    );
}

#[test]
fn an_accept_loop_rests_when_all_connections_are_aborted() {
    let test = "an_accept_loop_rests_when_all_connections_are_aborted";
    accept_under(test, "ECONNABORTED");
}

/// The connection is still queued, and no further event reports it.
#[test]
fn a_listener_that_has_rested_accepts_what_waited() {
    let test = "a_listener_that_has_rested_accepts_what_waited";
    with_faults(test, &["accept4:error=ENOMEM:when=1..3"], || {
        run(async {
            let (listener, address) = listener().await;
            let _client = std::net::TcpStream::connect(address).unwrap();
            for _ in 0..3 {
                assert!(listener.accept().await.is_err());
            }
            // Given up while it rests.
            assert_pending!(tokio_test::task::spawn(listener.accept()).poll());
            listener.accept().await.unwrap();
        });
    });
}

/// A listener that does not keep the loop alive does not do so while it rests.
#[test]
fn a_rest_of_a_listener_that_is_unrefd_keeps_no_loop_alive() {
    let test = "a_rest_of_a_listener_that_is_unrefd_keeps_no_loop_alive";
    with_faults(test, &["accept4:error=ENOMEM"], || {
        phaseloop::run(async {
            let (listener, address) = listener().await;
            let _client = std::net::TcpStream::connect(address).unwrap();
            assert!(listener.accept().await.is_err());
            listener.unref();
            let accepts = async move { while listener.accept().await.is_err() {} };
            phaseloop::spawn(accepts).detach();
        })
        .unwrap();
    });
}
