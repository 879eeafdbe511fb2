//! Reads that return less than they were asked for although there is more: the rest arrives without
//! another event.
#![cfg(all(target_os = "linux", feature = "net"))]

use crate::util::pty::open_pty;
use crate::util::tcp::{Has, half_std_pair, run, settle};
use std::io::Write;
use std::net;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net as unix;
use std::process::{Command, Stdio};

use futures::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use phaseloop::io::{PipeReader, pipe};
use phaseloop::net::{TcpStream, UnixStream};
use rustix::io::write;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};

/// What the next reads return, as texts.
async fn reads<const N: usize>(mut stream: impl AsyncRead + Unpin) -> [String; N] {
    let mut texts = [const { String::new() }; N];
    for text in &mut texts {
        let mut buffer = [0; 64];
        let count = stream.read(&mut buffer).await.unwrap();
        *text = String::from_utf8_lossy(&buffer[..count]).into_owned();
    }
    texts
}

/// Lets the loop receive the events of all bytes sent until now.
async fn receive() {
    phaseloop::phase::check().await;
    phaseloop::phase::check().await;
}

/// One byte with a descriptor and a request behind it, in the socket when the first read comes.
async fn send_descriptor_and_request(sender: unix::UnixStream) {
    let sender = UnixStream::from_std(sender).unwrap();
    let passed = std::io::stderr();
    sender.send_with(b"x", &[passed.as_fd()]).await.unwrap();
    (&sender).write_all(b"request").await.unwrap();
    receive().await;
}

#[test]
fn a_unix_stream_is_read_on_behind_a_descriptor() {
    run(async {
        let (ours, theirs) = unix::UnixStream::pair().unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        send_descriptor_and_request(theirs.try_clone().unwrap()).await;
        assert_eq!(reads(&ours).await, ["x", "request"]);
    });
}

#[test]
fn what_tries_and_waits_for_readiness_reads_on_behind_a_descriptor() {
    run(async {
        let (ours, theirs) = unix::UnixStream::pair().unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        send_descriptor_and_request(theirs.try_clone().unwrap()).await;
        for expected in [&b"x"[..], b"request"] {
            ours.readable().await.unwrap();
            let mut buffer = [0; 64];
            let count = ours.try_read(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], expected);
        }
    });
}

#[test]
fn a_unix_stream_is_read_on_between_two_senders() {
    run(async {
        let (ours, theirs) = unix::UnixStream::pair().unwrap();
        sockopt::set_socket_passcred(&ours, true).unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        for text in ["one", "other"] {
            let status = Command::new("printf")
                .arg(text)
                .stdout(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())))
                .status();
            assert!(status.unwrap().success());
        }
        receive().await;
        assert_eq!(reads(&ours).await, ["one", "other"]);
    });
}

#[test]
fn a_unix_stream_over_a_socket_of_messages_gets_them_all() {
    run(async {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let ours = UnixStream::from_std(ours.into()).unwrap();
        for message in [b"one", b"two"] {
            send(&theirs, message, SendFlags::empty()).unwrap();
        }
        receive().await;
        assert_eq!(reads(&ours).await, ["one", "two"]);
    });
}

/// As a program gets it that is started with a Unix socket where a TCP socket is expected.
#[test]
fn a_tcp_stream_over_a_unix_socket_is_read_on_behind_a_descriptor() {
    run(async {
        let (ours, theirs) = unix::UnixStream::pair().unwrap();
        let ours = TcpStream::from_std(net::TcpStream::from(OwnedFd::from(ours))).unwrap();
        send_descriptor_and_request(theirs.try_clone().unwrap()).await;
        assert_eq!(reads(&ours).await, ["x", "request"]);
    });
}

#[test]
fn a_pipe_in_packet_mode_gives_a_packet_a_read() {
    run(async {
        let (reader, writer) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
        let reader = PipeReader::from_fd(reader).unwrap();
        for packet in [b"one", b"two"] {
            write(&writer, packet).unwrap();
        }
        receive().await;
        assert_eq!(reads(&reader).await, ["one", "two"]);
    });
}

/// The writer alone decides on the mode, at any time.
#[test]
fn a_pipe_that_its_writer_puts_into_packet_mode_gives_a_packet_a_read() {
    run(async {
        let (reader, writer) = pipe().unwrap();
        let writer = writer.into_owned_fd().unwrap();
        rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::DIRECT).unwrap();
        for packet in [b"one", b"two"] {
            write(&writer, packet).unwrap();
        }
        receive().await;
        assert_eq!(reads(&reader).await, ["one", "two"]);
    });
}

#[test]
fn a_terminal_gives_a_line_a_read() {
    run(async {
        let (mut controller, terminal) = open_pty();
        let terminal = PipeReader::from_fd(terminal).unwrap();
        controller.write_all(b"one\ntwo\n").unwrap();
        receive().await;
        assert_eq!(reads(&terminal).await, ["one\n", "two\n"]);
    });
}

/// A read ends where urgent data begin. Here they are there before the first read.
#[test]
fn a_tcp_stream_is_read_on_behind_urgent_data() {
    run(async {
        let (ours, mut theirs) = half_std_pair();
        theirs.write_all(b"before").unwrap();
        send(&theirs, b"!", SendFlags::OOB).unwrap();
        theirs.write_all(b"behind").unwrap();
        settle(&ours, Has::DataAndUrgent);
        receive().await;
        assert_eq!(reads(&ours).await, ["before", "behind"]);
    });
}

/// Here the loop was notified of what comes before them only.
#[test]
fn a_tcp_stream_is_read_on_behind_urgent_data_that_come_late() {
    run(async {
        let (ours, mut theirs) = half_std_pair();
        theirs.write_all(b"before").unwrap();
        settle(&ours, Has::Data);
        receive().await;
        send(&theirs, b"!", SendFlags::OOB).unwrap();
        theirs.write_all(b"behind").unwrap();
        settle(&ours, Has::Urgent);
        assert_eq!(reads(&ours).await, ["before", "behind"]);
        theirs.write_all(b"more").unwrap();
        assert_eq!(reads(&ours).await, ["more"]);
    });
}

/// The urgent byte is then the first of what is behind the mark.
#[test]
fn a_tcp_stream_is_read_on_behind_urgent_data_that_stay_in_line() {
    run(async {
        let (ours, mut theirs) = half_std_pair();
        socket2::SockRef::from(ours.get_ref())
            .set_out_of_band_inline(true)
            .unwrap();
        theirs.write_all(b"before").unwrap();
        send(&theirs, b"!", SendFlags::OOB).unwrap();
        theirs.write_all(b"behind").unwrap();
        settle(&ours, Has::DataAndUrgent);
        receive().await;
        let mut all = [0; 13];
        (&ours).read_exact(&mut all).await.unwrap();
        assert_eq!(&all, b"before!behind");
    });
}
