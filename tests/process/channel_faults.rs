//! Channels whose other side breaks the rules, or is not what the environment says: bounded memory,
//! bounded descriptors, errors that say what to do.
#![cfg(all(target_os = "linux", feature = "process"))]
#![allow(
    unsafe_code,
    reason = "sets the environment, and owns a descriptor by its number"
)]

use crate::util::child::{in_child, path_of};
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Stdio;

use futures::future::join;
use phaseloop::block_on;
use phaseloop::phase::check;
use phaseloop::process::{Channel, Command};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::pipe::PipeFlags;

const VARIABLE: &str = "PHASELOOP_CHANNEL";

/// A channel, and its other side as a plain socket.
fn channel_and_peer() -> (Channel, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Channel::from_std(ours).unwrap(), theirs)
}

/// The writer is to be sent; the reader sees the end when no copy of it is open.
fn pipe() -> (File, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader.into(), writer)
}

/// Sends bytes with `count` copies of a descriptor.
fn send(peer: &UnixStream, bytes: &[u8], descriptor: &OwnedFd, count: usize) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let copies = vec![descriptor.as_fd(); count];
    assert!(count == 0 || control.push(SendAncillaryMessage::ScmRights(&copies)));
    let bytes = [IoSlice::new(bytes)];
    rustix::net::sendmsg(peer, &bytes, &mut control, SendFlags::empty()).unwrap();
}

fn frame(length: u32, descriptors: u8, message: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes()[..], &[descriptors], message].concat()
}

/// Whether all copies of the pipe's writer are closed. This one's goes with the question. A process
/// that another test starts has copies of its own until its program is loaded.
fn is_closed(reader: File, writer: OwnedFd) -> bool {
    drop(writer);
    let mut descriptors = [PollFd::new(&reader, PollFlags::IN)];
    let a_minute = rustix::event::Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut descriptors, Some(&a_minute)).unwrap() == 1
        && descriptors[0].revents().contains(PollFlags::HUP)
}

/// Receives until an error, which stays. Returns how many messages came before, and its text.
async fn broken(channel: &Channel, kind: ErrorKind) -> (usize, String) {
    let mut messages = 0;
    loop {
        match channel.recv().await {
            Ok(Some(_)) => messages += 1,
            Ok(None) => panic!("the end"),
            Err(error) => {
                assert_eq!(error.kind(), kind, "{error}");
                let again = channel.recv().await.unwrap_err();
                assert_eq!(again.to_string(), error.to_string());
                return (messages, error.to_string());
            }
        }
    }
}

// Descriptors.

#[test]
fn descriptors_that_no_message_announces_are_closed_and_break_the_channel() {
    block_on(async {
        let (channel, peer) = channel_and_peer();
        let (reader, writer) = pipe();
        for _ in 0..20 {
            send(&peer, &frame(0, 0, b""), &writer, 50);
        }
        let (messages, text) = broken(&channel, ErrorKind::InvalidData).await;
        assert_eq!(messages, 1, "the one before it was known");
        assert!(
            text.contains("50 descriptors that no message announces"),
            "{text}"
        );
        // Bytes that the kernel still holds are lost with the socket.
        drop((channel, peer));
        assert!(is_closed(reader, writer));
    });
}

#[test]
fn surplus_descriptors_are_closed_as_soon_as_the_message_is_received() {
    block_on(async {
        let (channel, peer) = channel_and_peer();
        let (reader, writer) = pipe();
        send(&peer, &frame(2, 1, b"hi"), &writer, 40);
        let message = channel.recv().await.unwrap().unwrap();
        assert_eq!(message.bytes, b"hi");
        assert_eq!(message.descriptors.len(), 1);
        drop(message);
        assert!(is_closed(reader, writer));
        broken(&channel, ErrorKind::InvalidData).await;
    });
}

#[test]
fn descriptors_with_every_byte_of_a_head_or_of_a_message_are_refused() {
    let head_in_parts = vec![vec![0], vec![0], vec![0], vec![2], vec![253]];
    let message_in_parts = vec![frame(8, 253, b""), b"a".to_vec(), b"b".to_vec()];
    for parts in [head_in_parts, message_in_parts] {
        block_on(async {
            let (channel, peer) = channel_and_peer();
            let (reader, writer) = pipe();
            let send_parts = async {
                for part in &parts {
                    send(&peer, part, &writer, 253);
                    // The receiver takes in this part before the next one.
                    for _ in 0..3 {
                        check().await;
                    }
                }
            };
            let (received, ()) = join(channel.recv(), send_parts).await;
            assert_eq!(received.unwrap_err().kind(), ErrorKind::InvalidData);
            // Bytes that the kernel still holds are lost with the socket.
            drop((channel, peer));
            assert!(is_closed(reader, writer));
        });
    }
}

#[test]
fn descriptors_that_are_announced_and_do_not_come_break_the_channel() {
    block_on(async {
        let (channel, mut peer) = channel_and_peer();
        peer.write_all(&frame(2, 3, b"hi")).unwrap();
        peer.write_all(&frame(2, 0, b"hi")).unwrap();
        let (messages, text) = broken(&channel, ErrorKind::InvalidData).await;
        assert_eq!(messages, 0);
        assert!(
            text.contains("with 0 descriptors and announces 3"),
            "{text}"
        );
    });
}

#[test]
fn descriptors_of_messages_that_wait_are_kept_for_them() {
    block_on(async {
        let (channel, peer) = channel_and_peer();
        let (reader, writer) = pipe();
        for number in [3_u8, 0, 253, 1] {
            send(&peer, &frame(1, number, b"x"), &writer, usize::from(number));
        }
        for number in [3_u8, 0, 253, 1] {
            let message = channel.recv().await.unwrap().unwrap();
            assert_eq!(message.descriptors.len(), usize::from(number));
        }
        assert!(is_closed(reader, writer));
    });
}

// Lengths.

#[test]
fn a_message_longer_than_the_limit_is_refused_by_its_head_and_says_what_to_do() {
    block_on(async {
        let (channel, mut peer) = channel_and_peer();
        assert_eq!(channel.max_message_len(), 256 << 20);
        peer.write_all(&frame(u32::MAX, 0, b"the beginning"))
            .unwrap();
        let (_, text) = broken(&channel, ErrorKind::InvalidData).await;
        assert!(text.contains("4294967295 bytes"), "{text}");
        assert!(text.contains("268435456"), "{text}");
        assert!(text.contains("set_max_message_len"), "{text}");
    });
}

#[test]
fn a_refused_message_can_be_received_with_a_higher_limit() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        other.set_max_message_len(3);
        one.send(b"abc").await.unwrap();
        one.send(b"abcd").await.unwrap();
        assert_eq!(other.recv().await.unwrap().unwrap().bytes, b"abc");
        assert_eq!(
            other.recv().await.unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        other.set_max_message_len(usize::MAX);
        assert_eq!(other.recv().await.unwrap().unwrap().bytes, b"abcd");
    });
}

#[test]
fn a_message_longer_than_the_limit_is_not_sent() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        one.set_max_message_len(3);
        let error = one.send(b"abcd").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(
            text.contains("4 bytes") && text.contains("set_max_message_len"),
            "{text}"
        );
        one.send(b"abc").await.unwrap();
        assert_eq!(other.recv().await.unwrap().unwrap().bytes, b"abc");
    });
}

#[test]
fn a_peer_that_goes_in_the_middle_is_told_how_far_it_came() {
    for (sent, text) in [
        (frame(100, 0, b"abc"), "after 3 of the 100 bytes"),
        (vec![0, 0], "inside the head"),
    ] {
        block_on(async {
            let (channel, mut peer) = channel_and_peer();
            peer.write_all(&sent).unwrap();
            drop(peer);
            let error = channel.recv().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert!(error.to_string().contains(text), "{error}");
        });
    }
}

#[test]
fn a_message_of_many_chunks_arrives_whole() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let message: Vec<u8> = (0..24_u32 << 20).map(|index| (index % 251) as u8).collect();
        let (sent, received) = join(one.send(&message), other.recv()).await;
        sent.unwrap();
        assert!(received.unwrap().unwrap().bytes == message);
    });
}

// The environment.

/// Sets the variable to a descriptor of this process, as a parent would describe it.
fn describe(descriptor: BorrowedFd<'_>) {
    let inode = rustix::fs::fstat(descriptor).unwrap().st_ino;
    let value = format!("{}:{inode}", descriptor.as_raw_fd());
    // SAFETY: no other thread of this process uses the environment; see `in_child`.
    unsafe { std::env::set_var(VARIABLE, value) };
}

fn child_succeeds(child: Option<std::process::Child>) {
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
    }
}

#[test]
fn only_a_connected_unix_stream_is_taken_from_the_environment() {
    let test = "only_a_connected_unix_stream_is_taken_from_the_environment";
    child_succeeds(in_child(&[], test, || {
        let directory = std::env::temp_dir().join(format!("phaseloop-{}", std::process::id()));
        let listener = UnixListener::bind(&directory).unwrap();
        std::fs::remove_file(directory).unwrap();
        let (datagram, _other) = UnixDatagram::pair().unwrap();
        let (reader, writer) = pipe();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let wrong = [
            listener.as_fd(),
            datagram.as_fd(),
            reader.as_fd(),
            writer.as_fd(),
            client.as_fd(),
        ];
        block_on(async {
            for descriptor in wrong {
                describe(descriptor);
                let error = Channel::from_env().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidData);
                assert!(error.to_string().contains("not there"), "{error}");
            }
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            describe(ours.as_fd());
            let channel = Channel::from_env().unwrap().unwrap();
            assert!(Channel::from_env().unwrap().is_none(), "once in a process");
            theirs.write_all(&frame(2, 0, b"hi")).unwrap();
            assert_eq!(channel.recv().await.unwrap().unwrap().bytes, b"hi");
            // Its owner closes it; the channel has its own.
            drop(ours);
            theirs.write_all(&frame(2, 0, b"ho")).unwrap();
            assert_eq!(channel.recv().await.unwrap().unwrap().bytes, b"ho");
        });
    }));
}

#[test]
fn a_channel_from_the_environment_leaves_the_number_to_its_owner() {
    let test = "a_channel_from_the_environment_leaves_the_number_to_its_owner";
    let child = in_child(&[], test, || {
        block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            describe(ours.as_fd());
            let channel = Channel::from_env().unwrap().unwrap();
            drop(channel);
            // Still open, and disconnected.
            assert!(rustix::fs::fstat(&ours).is_ok());
            let mut theirs = theirs;
            assert_eq!(theirs.read(&mut [0]).unwrap(), 0);
        });
    });
    child_succeeds(child);
}

/// A child that drops its channel and goes on: its parent sees the end of the channel at once.
/// Other code in the child owns the number, and closes it.
#[test]
fn a_parent_sees_the_end_of_a_channel_that_its_child_drops() {
    let test = "a_parent_sees_the_end_of_a_channel_that_its_child_drops";
    if let Ok(value) = std::env::var(VARIABLE) {
        return block_on(async {
            let channel = Channel::from_env().unwrap().unwrap();
            let number: RawFd = value.split(':').next().unwrap().parse().unwrap();
            // SAFETY: the channel does not own the number, as its documentation says.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
            channel.send(b"here").await.unwrap();
            drop(channel);
            // Until the parent has seen it.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        });
    }
    block_on(async {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = path_of(test);
        command
            .args(["--exact", &test, "--nocapture"])
            .channel(true);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let channel = child.channel.take().unwrap();
        assert_eq!(channel.recv().await.unwrap().unwrap().bytes, b"here");
        assert!(channel.recv().await.unwrap().is_none());
        drop(child.stdin.take());
        assert!(child.wait().await.unwrap().success());
    });
}
