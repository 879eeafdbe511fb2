//! Descriptors over Unix streams, R199–R205: sockets, pipes and files, within the process and to a
//! child and back.
//!
//! Ours differs: every stream carries descriptors, and only a borrowed one, which is open, can be
//! sent (R199, R201). They come as a list of owned descriptors with the bytes they were sent with,
//! and the receiver knows what they are (R202, R203, R205).
#![cfg(all(target_os = "linux", feature = "net"))]

use crate::util::child::{in_child, path_of};
use crate::util::trace::{finish, paused, turn};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use futures::future::join;
use futures::{AsyncReadExt, AsyncWriteExt, FutureExt};
use phaseloop::io::copy;
use phaseloop::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use phaseloop::phase::Check;
use phaseloop::{LoopHandle, block_on, spawn};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::pipe::PipeFlags;

/// A pipe: its reading end and its writing end.
fn pipe() -> (File, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader.into(), writer.into())
}

/// Receives bytes as text, and the descriptors that came with them.
async fn receive(stream: &UnixStream) -> (String, Vec<OwnedFd>) {
    let (mut buffer, mut descriptors) = ([0; 64], Vec::new());
    let length = stream.recv_with(&mut buffer, &mut descriptors).await;
    let text = String::from_utf8_lossy(&buffer[..length.unwrap()]).into_owned();
    (text, descriptors)
}

/// Receives one byte and the only descriptor that comes with it.
async fn receive_one(stream: &UnixStream) -> OwnedFd {
    let (text, mut descriptors) = receive(stream).await;
    assert_eq!((text.len(), descriptors.len()), (1, 1));
    descriptors.remove(0)
}

async fn send_one(stream: &UnixStream, descriptor: impl AsFd) {
    let sent = stream.send_with(b"x", &[descriptor.as_fd()]).await;
    assert_eq!(sent.unwrap(), 1);
}

async fn read_to_end(mut stream: impl futures::AsyncRead + Unpin) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Writes through a pipe whose other end has travelled.
fn pipe_works(mut writer: File, received: OwnedFd) {
    writer.write_all(b"through").unwrap();
    drop(writer);
    let mut text = String::new();
    File::from(received).read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}

// Within the process.

#[test]
fn r202_libuv_ipc_send_recv_tcp_inprocess() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        send_one(&a, listener.get_ref()).await;
        // The sender's own one stays open until it is closed here.
        assert_eq!(listener.local_addr().unwrap(), address);
        drop(listener);
        let received = receive_one(&b).await;
        let listener = TcpListener::from_std(received.into()).unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
        let (client, server) = join(TcpStream::connect(address), listener.accept()).await;
        let (mut client, (server, _)) = (client.unwrap(), server.unwrap());
        client.write_all(b"hello").await.unwrap();
        drop(client);
        assert_eq!(read_to_end(&server).await, "hello");
    });
}

#[test]
fn libuv_ipc_tcp_connection() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connect = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = join(connect, listener.accept()).await;
        let (client, server) = (client.unwrap(), server.unwrap().0);
        (&server).write_all(b"before ").await.unwrap();
        send_one(&a, server.get_ref()).await;
        drop(server);
        let server = TcpStream::from_std(receive_one(&b).await.into()).unwrap();
        (&server).write_all(b"after").await.unwrap();
        drop(server);
        assert_eq!(read_to_end(&client).await, "before after");
    });
}

#[test]
fn libuv_ipc_send_recv_pipe_inprocess() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (passed, peer) = UnixStream::pair().unwrap();
        send_one(&a, &passed).await;
        drop(passed);
        let received = UnixStream::from_std(receive_one(&b).await.into()).unwrap();
        (&received).write_all(b"hello").await.unwrap();
        drop(received);
        assert_eq!(read_to_end(&peer).await, "hello");

        let (reader, writer) = pipe();
        send_one(&a, &reader).await;
        pipe_works(writer, receive_one(&b).await);

        let file = File::open("/proc/self/comm").unwrap();
        send_one(&a, &file).await;
        let mut text = String::new();
        let mut received = File::from(receive_one(&b).await);
        received.read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());

        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        send_one(&a, socket.get_ref()).await;
        let received = UdpSocket::from_std(receive_one(&b).await.into()).unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(received.local_addr().unwrap(), address);
    });
}

#[test]
fn r202_libuv_pipe_sendmsg_many_in_order() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let pipes: Vec<_> = (0..32).map(|_| pipe()).collect();
        let readers: Vec<_> = pipes.iter().map(|(reader, _)| reader.as_fd()).collect();
        assert_eq!(a.send_with(b"many", &readers).await.unwrap(), 4);
        let (text, received) = receive(&b).await;
        assert_eq!((text.as_str(), received.len()), ("many", 32));
        for (number, received) in received.into_iter().enumerate() {
            let mut writer = &pipes[number].1;
            writer.write_all(&[number as u8]).unwrap();
            let mut byte = [0];
            File::from(received).read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), number);
        }
    });
}

#[test]
fn as_many_as_the_system_takes_and_no_more() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, writer) = pipe();
        let most: Vec<BorrowedFd<'_>> = vec![reader.as_fd(); 253];
        assert_eq!(a.send_with(b"x", &most).await.unwrap(), 1);
        let mut received = receive(&b).await.1;
        assert_eq!(received.len(), 253);
        pipe_works(writer, received.pop().unwrap());
        for count in [254, 255, 1000] {
            let more: Vec<_> = vec![reader.as_fd(); count];
            let error = a.send_with(b"x", &more).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{count}");
            assert!(error.to_string().contains("253"), "{error}");
        }
        // The refused ones have sent nothing.
        (&a).write_all(b"y").await.unwrap();
        let (text, descriptors) = receive(&b).await;
        assert_eq!((text.as_str(), descriptors.len()), ("y", 0));
    });
}

/// `SO_PASSCRED` adds the credentials of the sender to the control data.
#[cfg(target_os = "linux")]
#[test]
fn as_many_descriptors_come_beside_the_credentials_of_their_sender() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        rustix::net::sockopt::set_socket_passcred(&b, true).unwrap();
        let (reader, writer) = pipe();
        for count in [252, 253, 1] {
            let most: Vec<BorrowedFd<'_>> = vec![reader.as_fd(); count];
            assert_eq!(a.send_with(b"x", &most).await.unwrap(), 1);
            let (text, descriptors) = receive(&b).await;
            assert_eq!((text.as_str(), descriptors.len()), ("x", count));
        }
        send_one(&a, &reader).await;
        pipe_works(writer, receive_one(&b).await);
    });
}

/// Ours differs: a message without bytes is no message.
#[test]
fn libuv_ipc_send_zero_is_refused() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        for descriptors in [&[a.as_fd()][..], &[]] {
            let error = a.send_with(b"", descriptors).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        // Bytes alone are fine.
        assert_eq!(a.send_with(b"bytes", &[]).await.unwrap(), 5);
        drop(a);
        let (text, descriptors) = receive(&b).await;
        assert_eq!((text.as_str(), descriptors.len()), ("bytes", 0));
        assert_eq!(receive(&b).await.0, "", "the end");
    });
}

#[test]
fn r200_descriptors_travel_with_the_first_byte() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (first, _first) = pipe();
        let (second, writer) = pipe();
        (&a).write_all(b"0").await.unwrap();
        a.send_with(b"abc", &[first.as_fd()]).await.unwrap();
        (&a).write_all(b"d").await.unwrap();
        a.send_with(b"e", &[second.as_fd()]).await.unwrap();
        let mut seen = Vec::new();
        let mut descriptors = Vec::new();
        for _ in 0..6 {
            let mut byte = [0];
            assert_eq!(b.recv_with(&mut byte, &mut descriptors).await.unwrap(), 1);
            seen.push((char::from(byte[0]), descriptors.len()));
        }
        let expected = [('0', 0), ('a', 1), ('b', 1), ('c', 1), ('d', 1), ('e', 2)];
        assert_eq!(seen, expected);
        pipe_works(writer, descriptors.pop().unwrap());
    });
}

#[test]
fn r204_received_descriptors_are_not_inherited() {
    block_on(async {
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, _writer) = pipe();
        rustix::io::fcntl_setfd(&reader, FdFlags::empty()).unwrap();
        send_one(&a, &reader).await;
        let received = receive_one(&b).await;
        let flags = fcntl_getfd(&received).unwrap();
        assert!(flags.contains(FdFlags::CLOEXEC));
    });
}

#[test]
fn r204_r205_unclaimed_descriptors_are_closed() {
    /// Whether the writing end is closed everywhere.
    fn is_closed(mut reader: File) -> bool {
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        matches!(reader.read(&mut [0]), Ok(0))
    }
    block_on(async {
        // Not received at all.
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, writer) = pipe();
        send_one(&a, &writer).await;
        drop(writer);
        assert!(!is_closed(reader.try_clone().unwrap()), "it is under way");
        drop((a, b));
        assert!(is_closed(reader));

        // Received with a plain read.
        let (a, b) = UnixStream::pair().unwrap();
        let (reader, writer) = pipe();
        send_one(&a, &writer).await;
        drop(writer);
        (&b).read_exact(&mut [0]).await.unwrap();
        assert!(is_closed(reader));

        // Received and dropped.
        let (reader, writer) = pipe();
        send_one(&a, &writer).await;
        drop(writer);
        let received = receive(&b).await;
        assert!(!is_closed(reader.try_clone().unwrap()));
        drop(received);
        assert!(is_closed(reader));
    });
}

#[test]
fn a_receiver_waits_in_the_poll_phase_and_may_give_up() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let (a, b) = event_loop.enter(|| UnixStream::pair().unwrap());
    event_loop.enter(|| assert!(receive(&b).now_or_never().is_none()));
    let log = trace.clone();
    drop(handle.spawn(async move {
        let (text, descriptors) = receive(&b).await;
        log.log(format_args!("{text}+{}", descriptors.len()));
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check");
    event_loop.enter(|| {
        let sent = a.send_with(b"x", &[a.as_fd()]).now_or_never();
        assert_eq!(sent.unwrap().unwrap(), 1, "there is room");
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "x+1 check");
}

#[test]
fn a_sender_waits_until_there_is_room() {
    let (mut event_loop, handle, _) = paused();
    let (a, b) = event_loop.enter(|| UnixStream::pair().unwrap());
    let (reader, writer) = pipe();
    let sender = handle.spawn(async move {
        let mut filled = 0;
        while let Ok(count) = a.try_write(&[0; 1 << 12]) {
            filled += count;
        }
        let given_up = a.send_with(b"never", &[reader.as_fd()]).now_or_never();
        assert!(given_up.is_none());
        let sent = a.send_with(b"x", &[reader.as_fd()]).await.unwrap();
        (filled, sent)
    });
    turn(&mut event_loop);
    assert!(!sender.is_finished());
    let receiver = handle.spawn(async move {
        let (mut total, mut descriptors) = (0, Vec::new());
        loop {
            let mut buffer = [0; 1 << 14];
            match b.recv_with(&mut buffer, &mut descriptors).await.unwrap() {
                0 => return (total, descriptors),
                count => total += count,
            }
        }
    });
    finish(&mut event_loop);
    let (filled, sent) = sender.now_or_never().unwrap().unwrap();
    let (total, mut descriptors) = receiver.now_or_never().unwrap().unwrap();
    assert_eq!((total, sent, descriptors.len()), (filled + 1, 1, 1));
    pipe_works(writer, descriptors.pop().unwrap());
}

// To a child and back.

const CHILD: &str = "PHASELOOP_TEST_PASSING";

/// Runs the test named `test` once more in a process of its own, which calls `child` with one end
/// of a stream, while this one calls `parent` with the other.
#[track_caller]
fn with_child<C, P>(
    test: &str,
    child: impl FnOnce(UnixStream) -> C,
    parent: impl FnOnce(UnixStream) -> P,
) where
    C: Future<Output = ()>,
    P: Future<Output = ()>,
{
    if std::env::var_os(CHILD).is_some() {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        return block_on(async { child(UnixStream::from_std(stdin.into()).unwrap()).await });
    }
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let process: Child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &path_of(test), "--nocapture"])
        .env(CHILD, "1")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    block_on(async { parent(UnixStream::from_std(ours).unwrap()).await });
    let process = process.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&process.stderr);
    assert!(process.status.success(), "{stderr}");
}

/// The child listens and hands the listener over; connections are made and accepted here.
#[test]
fn libuv_ipc_listen_before_write() {
    let child = |channel: UnixStream| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        send_one(&channel, listener.get_ref()).await;
        // Gone before it is used.
        drop(listener);
        let (text, _) = receive(&channel).await;
        assert_eq!(text, "done");
    };
    with_child(
        "libuv_ipc_listen_before_write",
        child,
        |channel| async move {
            let received = receive_one(&channel).await;
            let listener = TcpListener::from_std(received.into()).unwrap();
            let address = listener.local_addr().unwrap();
            for _ in 0..3 {
                let connected = join(TcpStream::connect(address), listener.accept()).await;
                let (client, (server, _)) = (connected.0.unwrap(), connected.1.unwrap());
                (&server).write_all(b"hello").await.unwrap();
                drop(server);
                assert_eq!(read_to_end(&client).await, "hello");
            }
            (&channel).write_all(b"done").await.unwrap();
        },
    );
}

/// Bound here, handed over, and listened on by the child.
#[test]
fn libuv_ipc_listen_after_write() {
    let child = |channel: UnixStream| async move {
        let socket: std::net::TcpListener = receive_one(&channel).await.into();
        rustix::net::listen(&socket, 16).unwrap();
        let listener = TcpListener::from_std(socket).unwrap();
        (&channel).write_all(b"l").await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (&stream).write_all(b"child").await.unwrap();
    };
    with_child(
        "libuv_ipc_listen_after_write",
        child,
        |channel| async move {
            use rustix::net::{AddressFamily, SocketAddrV4, SocketType, bind, socket};
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            let any_port = SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
            bind(&socket, &any_port).unwrap();
            send_one(&channel, &socket).await;
            let address = std::net::TcpListener::from(socket).local_addr().unwrap();
            assert_eq!(receive(&channel).await.0, "l");
            let client = TcpStream::connect(address).await.unwrap();
            assert_eq!(read_to_end(&client).await, "child");
        },
    );
}

#[test]
fn libuv_ipc_send_recv_tcp() {
    let child = |channel: UnixStream| async move {
        let stream = TcpStream::from_std(receive_one(&channel).await.into()).unwrap();
        (&stream).write_all(b"child ").await.unwrap();
        send_one(&channel, stream.get_ref()).await;
    };
    with_child("libuv_ipc_send_recv_tcp", child, |channel| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connect = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = join(connect, listener.accept()).await;
        let (client, server) = (client.unwrap(), server.unwrap().0);
        send_one(&channel, server.get_ref()).await;
        drop(server);
        let server = TcpStream::from_std(receive_one(&channel).await.into()).unwrap();
        (&server).write_all(b"parent").await.unwrap();
        drop(server);
        // Its end comes when the child is gone too.
        assert_eq!(read_to_end(&client).await, "child parent");
    });
}

#[test]
fn libuv_ipc_send_recv_pipe() {
    let child = |channel: UnixStream| async move {
        let passed = UnixStream::from_std(receive_one(&channel).await.into()).unwrap();
        (&passed).write_all(b"child ").await.unwrap();
        send_one(&channel, &passed).await;
    };
    with_child("libuv_ipc_send_recv_pipe", child, |channel| async move {
        let (passed, peer) = UnixStream::pair().unwrap();
        send_one(&channel, &passed).await;
        drop(passed);
        let passed = UnixStream::from_std(receive_one(&channel).await.into()).unwrap();
        (&passed).write_all(b"parent").await.unwrap();
        drop(passed);
        assert_eq!(read_to_end(&peer).await, "child parent");
    });
}

/// More than all buffers hold, both ways at once, with descriptors among it.
#[test]
fn libuv_ipc_heavy_traffic_deadlock_bug() {
    const TOTAL: usize = 2_000_000;
    let child = |channel: UnixStream| async move {
        assert_eq!(copy(&channel, &channel).await.unwrap(), TOTAL as u64 + 100);
        (&channel).close().await.unwrap();
    };
    with_child(
        "libuv_ipc_heavy_traffic_deadlock_bug",
        child,
        |channel| async move {
            let channel = std::rc::Rc::new(channel);
            let writer = channel.clone();
            let write = spawn(async move {
                for chunk in vec![1; TOTAL].chunks(TOTAL / 100) {
                    send_one(&writer, &*writer).await;
                    (&*writer).write_all(chunk).await.unwrap();
                }
                (&*writer).close().await.unwrap();
            });
            let mut all = Vec::new();
            (&*channel).read_to_end(&mut all).await.unwrap();
            write.await.unwrap();
            assert_eq!(all.len(), TOTAL + 100);
            assert_eq!(LoopHandle::current().handles().len(), 1);
        },
    );
}

/// The limit is the process's, so this has one of its own.
#[test]
fn descriptors_without_a_number_are_lost_and_the_receiver_hears_of_it() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let test = "descriptors_without_a_number_are_lost_and_the_receiver_hears_of_it";
    let child = in_child(&[], test, || {
        block_on(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (reader, _writer) = pipe();
            let both = [reader.as_fd(), reader.as_fd()];
            theirs.send_with(b"with two", &both).await.unwrap();
            let before = getrlimit(Resource::Nofile);
            let next = File::open("/dev/null").unwrap();
            let one_more = std::os::fd::AsRawFd::as_raw_fd(&next) as u64 + 1;
            drop(next);
            let limit = Rlimit {
                current: Some(one_more),
                ..before
            };
            setrlimit(Resource::Nofile, limit).unwrap();
            let (mut buffer, mut descriptors) = ([0; 64], Vec::new());
            let error = ours.recv_with(&mut buffer, &mut descriptors).await;
            setrlimit(Resource::Nofile, before).unwrap();
            let text = error.unwrap_err().to_string();
            assert!(text.contains("8 bytes") && text.contains("lost"), "{text}");
            // It could have two causes.
            assert!(
                text.contains("RLIMIT_NOFILE") && text.contains("SO_PASSCRED"),
                "{text}"
            );
            assert_eq!(&buffer[..8], b"with two");
            assert_eq!(descriptors.len(), 1, "as many as there was room for");
            // Nothing else has suffered.
            descriptors.clear();
            send_one(&theirs, &reader).await;
            receive_one(&ours).await;
        });
    });
    if let Some(child) = child {
        let child = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{stderr}");
    }
}
