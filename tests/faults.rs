//! System calls that fail: interruptions where a wake or a connection would be lost.
//!
//! The tests run themselves under `strace`; where there is none, they say so and pass.
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

mod fault_util;
mod tcp_util;
mod util;

use std::thread;

use fault_util::{with_faults, with_faults_of_eventfds};
use futures::StreamExt;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{SocketName, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use phaseloop::signal::{SignalKind, Signals};
use rustix::process::{Signal, kill_process};
use tcp_util::{listener, run};
use util::ms;

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
    with_faults_of_eventfds(test, &["write:error=EINTR:when=1+2"], wake_from_elsewhere);
}

/// The counter of an eventfd holds 2^64 - 2 wakes.
#[test]
fn a_wake_that_the_eventfd_has_no_room_for_is_written_again() {
    let test = "a_wake_that_the_eventfd_has_no_room_for_is_written_again";
    with_faults_of_eventfds(test, &["write:error=EAGAIN:when=1+2"], wake_from_elsewhere);
}

/// The handler of a signal writes, too.
#[test]
fn a_signal_whose_write_is_interrupted_arrives() {
    let test = "a_signal_whose_write_is_interrupted_arrives";
    with_faults_of_eventfds(test, &["write:error=EINTR:when=1+2"], || {
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

/// Some systems let a signal interrupt a connect that goes on in the background; all let it be tried again.
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
            let mut peer = listener.accept().await.unwrap();
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
