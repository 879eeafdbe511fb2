//! Channels between parents and children: whole messages, descriptors with them, backpressure, the
//! end. Libuv's tests of IPC, once more over a channel.
#![cfg(all(target_os = "linux", feature = "process"))]

use crate::util::child::{in_child, path_of};
use crate::util::trace::{finish, ms, paused};
use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use futures::future::{join, join_all};
use futures::{AsyncReadExt, FutureExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::process::{Channel, Child, Command, Message, Stdio};
use phaseloop::time::{sleep, timeout};
use phaseloop::{Handle, LoopHandle, RunMode, block_on, phase, run, spawn};
use rustix::pipe::PipeFlags;
use tokio_test::assert_pending;

fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader.into(), writer.into())
}

async fn receive(channel: &Channel) -> Message {
    channel.recv().await.unwrap().unwrap()
}

async fn receive_text(channel: &Channel) -> String {
    let message = receive(channel).await;
    assert!(message.descriptors.is_empty());
    String::from_utf8(message.bytes).unwrap()
}

// Within the process.

#[test]
fn libuv_ipc_send_zero_and_messages_stay_whole() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let messages = ["", "a", "", "longer than the others"];
        for message in messages {
            one.send(message.as_bytes()).await.unwrap();
        }
        for message in messages {
            assert_eq!(receive_text(&other).await, message);
        }
        other.send(b"back").await.unwrap();
        assert_eq!(receive_text(&one).await, "back");
    });
}

/// Far larger than the socket's buffer, from several tasks at once, both ways.
#[test]
fn libuv_ipc_heavy_traffic_deadlock_bug() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let ends = [Rc::new(one), Rc::new(other)];
        let sends = ends.iter().flat_map(|end| {
            (0..8_u8).map(move |number| {
                let message = vec![number; 300_000 + usize::from(number)];
                async move { end.send(&message).await.unwrap() }
            })
        });
        let receives = ends.iter().map(|end| async move {
            let mut seen = [false; 8];
            for _ in 0..8 {
                let bytes = receive(end).await.bytes;
                assert_eq!(bytes.len(), 300_000 + usize::from(bytes[0]));
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "mixed up");
                assert!(!std::mem::replace(&mut seen[usize::from(bytes[0])], true));
            }
        });
        join(join_all(sends), join_all(receives)).await;
    });
}

#[test]
fn a_send_waits_while_the_other_side_is_slow() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let sent = Rc::new(Cell::new(0));
        let task = spawn({
            let sent = sent.clone();
            async move {
                for _ in 0..200 {
                    one.send(&[7; 10_000]).await.unwrap();
                    sent.set(sent.get() + 1);
                }
            }
        });
        for _ in 0..10 {
            phase::check().await;
        }
        let before = sent.get();
        assert!(before > 0 && before < 200, "{before} were taken unread");
        for _ in 0..200 {
            assert_eq!(receive(&other).await.bytes.len(), 10_000);
        }
        task.await.unwrap();
        assert!(other.recv().await.unwrap().is_none());
    });
}

#[test]
fn a_send_that_is_given_up_midway_does_not_spoil_the_next() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let long = vec![1; 2_000_000];
        // Polled once: it has begun, and cannot go on.
        assert_pending!(tokio_test::task::spawn(one.send(&long)).poll());
        let next = async {
            one.send(b"next").await.unwrap();
        };
        let (_, (first, second)) = join(next, async {
            (receive(&other).await, receive_text(&other).await)
        })
        .await;
        assert!(first.bytes == long);
        assert_eq!(second, "next");
        // One that has not begun is not sent at all.
        drop(one.send(b"never"));
        drop(one);
        assert!(other.recv().await.unwrap().is_none());
    });
}

#[test]
fn a_receive_that_is_given_up_loses_nothing() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let message = vec![5; 1_000_000];
        let sender = spawn({
            let message = message.clone();
            async move { one.send(&message).await.unwrap() }
        });
        loop {
            if let Ok(received) = timeout(ms(0), other.recv()).await {
                assert!(received.unwrap().unwrap().bytes == message);
                break;
            }
        }
        sender.await.unwrap();
    });
}

#[test]
fn the_end() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        one.send(b"last words").await.unwrap();
        one.close().await;
        assert_eq!(receive_text(&other).await, "last words");
        assert!(other.recv().await.unwrap().is_none());
        assert!(other.recv().await.unwrap().is_none(), "it stays so");
        let error = other.send(b"into the void").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);

        // With something unreceived on the other side.
        let (one, other) = Channel::pair().unwrap();
        other.send(b"unheard").await.unwrap();
        drop(one);
        assert!(other.recv().await.unwrap().is_none());

        // In the middle of a message.
        let (raw, end) = std::os::unix::net::UnixStream::pair().unwrap();
        let end = Channel::from_std(end).unwrap();
        (&raw).write_all(&[0, 0, 0, 9, 0, b'x']).unwrap();
        drop(raw);
        assert_eq!(
            end.recv().await.unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );

        // A frame that claims descriptors which did not come.
        let (raw, end) = std::os::unix::net::UnixStream::pair().unwrap();
        let end = Channel::from_std(end).unwrap();
        (&raw).write_all(&[0, 0, 0, 0, 1]).unwrap();
        assert_eq!(end.recv().await.unwrap_err().kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn r202_descriptors_come_with_their_own_message() {
    block_on(async {
        let (one, other) = Channel::pair().unwrap();
        let pipes: Vec<_> = (0..6).map(|_| pipe()).collect();
        let ends: Vec<_> = pipes.iter().map(|(_, writer)| writer.as_fd()).collect();
        one.send(b"none").await.unwrap();
        one.send_with(b"three", &ends[..3]).await.unwrap();
        one.send_with(b"", &ends[3..4]).await.unwrap();
        one.send(b"none").await.unwrap();
        one.send_with(&vec![9; 500_000], &[]).now_or_never();
        let received = [
            receive(&other).await,
            receive(&other).await,
            receive(&other).await,
        ];
        let counts = received.each_ref().map(|message| message.descriptors.len());
        assert_eq!(counts, [0, 3, 1]);
        for (index, descriptor) in received.into_iter().flat_map(|m| m.descriptors).enumerate() {
            File::from(descriptor).write_all(&[index as u8]).unwrap();
            let mut byte = [0];
            (&pipes[index].0).read_exact(&mut byte).unwrap();
            assert_eq!(byte, [index as u8]);
        }
        let many = vec![ends[0]; 254];
        let error = one.send_with(b"x", &many).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_receive_keeps_the_loop_alive_unless_unrefd() {
    let (mut event_loop, handle, trace) = paused();
    let (one, other) = event_loop.enter(|| Channel::pair().unwrap());
    let (one, trace_task) = (Rc::new(one), trace.clone());
    let receiver = one.clone();
    let _task = handle.spawn(async move {
        let end = receiver.recv().await.unwrap();
        trace_task.log(if end.is_none() { "end" } else { "message" });
    });
    event_loop.run(RunMode::NoWait).unwrap();
    assert!(handle.is_alive() && one.is_active());
    one.unref();
    finish(&mut event_loop);
    one.ref_();
    drop(other);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "end");
}

// To a child and back: the child is this very test, which finds its channel in the environment.

const MARK: &str = "PHASELOOP_TEST_CHANNEL";

/// Starts the test named so as a child with a channel. `None` in that child, once `body` has run on
/// its channel.
fn with_child<F: Future<Output = ()>>(
    test: &str,
    body: impl FnOnce(Channel) -> F,
) -> Option<Command> {
    if std::env::var_os(MARK).is_some() {
        run(async {
            let channel = Channel::from_env().unwrap().unwrap();
            assert!(Channel::from_env().unwrap().is_none(), "taken already");
            body(channel).await;
        })
        .unwrap();
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &path_of(test), "--nocapture"])
        .env(MARK, "1");
    command.stdout(Stdio::null()).channel(true);
    Some(command)
}

/// Disconnects and expects the child to end well for that.
async fn ends_well(mut child: Child) {
    drop(child.channel.take());
    assert!(child.wait().await.unwrap().success());
}

#[test]
fn messages_to_a_child_and_back() {
    let command = with_child("messages_to_a_child_and_back", |channel| async move {
        while let Some(message) = channel.recv().await.unwrap() {
            channel.send(&message.bytes).await.unwrap();
        }
    });
    let Some(mut command) = command else { return };
    block_on(async {
        // Each child has its own.
        let children = [command.spawn().unwrap(), command.spawn().unwrap()];
        for (index, child) in children.iter().enumerate() {
            let channel = child.channel.as_ref().unwrap();
            channel.send(&[index as u8; 100]).await.unwrap();
        }
        for (index, child) in children.into_iter().enumerate() {
            let echo = receive(child.channel.as_ref().unwrap()).await;
            assert_eq!(echo.bytes, [index as u8; 100]);
            ends_well(child).await;
        }
        assert_eq!(LoopHandle::current().handles().len(), 0);
    });
}

/// The parent accepts, children serve.
#[test]
fn libuv_ipc_tcp_connection_and_send_recv_tcp() {
    let command = with_child(
        "libuv_ipc_tcp_connection_and_send_recv_tcp",
        |channel| async move {
            while let Some(mut message) = channel.recv().await.unwrap() {
                let stream = net::TcpStream::from(message.descriptors.pop().unwrap());
                let mut stream = TcpStream::from_std(stream).unwrap();
                futures::AsyncWriteExt::write_all(&mut stream, &message.bytes)
                    .await
                    .unwrap();
                // And back, open.
                channel
                    .send_with(b"yours again", &[stream.get_ref().as_fd()])
                    .await
                    .unwrap();
            }
        },
    );
    let Some(mut command) = command else { return };
    block_on(async {
        let child = command.spawn().unwrap();
        let channel = child.channel.as_ref().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for text in ["first", "second"] {
            let (client, accepted) = join(TcpStream::connect(address), listener.accept()).await;
            let (mut client, (accepted, _)) = (client.unwrap(), accepted.unwrap());
            let descriptor = accepted.get_ref().as_fd();
            channel
                .send_with(text.as_bytes(), &[descriptor])
                .await
                .unwrap();
            drop(accepted);
            let mut back = receive(channel).await;
            assert_eq!(back.bytes, b"yours again");
            let back = net::TcpStream::from(back.descriptors.pop().unwrap());
            (&back).write_all(b" and the parent").unwrap();
            drop(back);
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, format!("{text} and the parent"));
        }
        ends_well(child).await;
    });
}

/// A listener is passed, bound or already listening, and the child accepts on it.
#[test]
fn libuv_ipc_listen_before_write_and_after_write() {
    let command = with_child(
        "libuv_ipc_listen_before_write_and_after_write",
        |channel| async move {
            while let Some(mut message) = channel.recv().await.unwrap() {
                let listener = net::TcpListener::from(message.descriptors.pop().unwrap());
                if message.bytes == b"bound" {
                    rustix::net::listen(&listener, 8).unwrap();
                }
                let listener = TcpListener::from_std(listener).unwrap();
                channel.send(b"listening").await.unwrap();
                let (mut stream, _) = listener.accept().await.unwrap();
                futures::AsyncWriteExt::write_all(&mut stream, b"served")
                    .await
                    .unwrap();
            }
        },
    );
    let Some(mut command) = command else { return };
    block_on(async {
        let child = command.spawn().unwrap();
        let channel = child.channel.as_ref().unwrap();
        for state in ["bound", "listening"] {
            let address = net::SocketAddr::from(([127, 0, 0, 1], 0));
            let socket = rustix::net::socket(
                rustix::net::AddressFamily::INET,
                rustix::net::SocketType::STREAM,
                None,
            )
            .unwrap();
            rustix::net::bind(&socket, &address).unwrap();
            if state == "listening" {
                rustix::net::listen(&socket, 8).unwrap();
            }
            channel
                .send_with(state.as_bytes(), &[socket.as_fd()])
                .await
                .unwrap();
            let address = net::TcpListener::from(socket).local_addr().unwrap();
            assert_eq!(receive_text(channel).await, "listening");
            let mut client = TcpStream::connect(address).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "served");
        }
        ends_well(child).await;
    });
}

#[test]
fn libuv_ipc_send_recv_pipe() {
    let command = with_child("libuv_ipc_send_recv_pipe", |channel| async move {
        let mut message = receive(&channel).await;
        let end = message.descriptors.pop().unwrap();
        File::from(end.try_clone().unwrap())
            .write_all(b"child ")
            .unwrap();
        channel.send_with(b"", &[end.as_fd()]).await.unwrap();
    });
    let Some(mut command) = command else { return };
    block_on(async {
        let (mut reader, writer) = pipe();
        let child = command.spawn().unwrap();
        let channel = child.channel.as_ref().unwrap();
        channel.send_with(b"", &[writer.as_fd()]).await.unwrap();
        drop(writer);
        let back: OwnedFd = receive(channel).await.descriptors.pop().unwrap();
        File::from(back).write_all(b"parent").unwrap();
        ends_well(child).await;
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "child parent");
    });
}

/// A child's end is its channel's, and its child has no channel at all.
#[test]
fn a_child_that_ends_and_a_grandchild_without_a_channel() {
    let command = with_child(
        "a_child_that_ends_and_a_grandchild_without_a_channel",
        |channel| async move {
            let output = Command::new("sh")
                .args(["-c", "echo $PHASELOOP_CHANNEL"])
                .output()
                .await;
            channel.send(&output.unwrap().stdout).await.unwrap();
            // Started by others, it has the variable and not the socket.
            let mut other = std::process::Command::new("sh");
            let output = other
                .args(["-c", "ls -l /proc/$$/fd | grep -c socket"])
                .stderr(Stdio::null())
                .output();
            channel.send(&output.unwrap().stdout).await.unwrap();
        },
    );
    let Some(mut command) = command else { return };
    block_on(async {
        let mut child = command.spawn().unwrap();
        let channel = child.channel.take().unwrap();
        assert_eq!(receive_text(&channel).await, "\n");
        assert_eq!(receive_text(&channel).await, "0\n");
        assert!(channel.recv().await.unwrap().is_none());
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn a_channel_that_is_not_there_is_noticed() {
    let test = "a_channel_that_is_not_there_is_noticed";
    for value in ["3:1", "0:5", "nonsense", "3:", "-1:7", ""] {
        let child = in_child(
            &["env", &format!("PHASELOOP_CHANNEL={value}")],
            test,
            || {
                block_on(async {
                    let error = Channel::from_env().unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
                });
            },
        );
        let Some(child) = child else { return };
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    block_on(async {
        assert!(Channel::from_env().unwrap().is_none());
        sleep(ms(0)).await;
    });
}
