//! libuv's rules for streams (R127–R182) and TCP (R183–R192), as far as they apply to streams that
//! are futures, and the tests libuv has for them. `LIBUV.md` says which do not apply and why.
//!
//! Ours differs in what follows from futures: nothing is queued inside a stream, so a write that
//! has not begun is taken back by dropping it (R146, R147, R154); a reader takes what there is
//! without a limit (R129) and gets the end in the turn of the last bytes (R138); an error of
//! `accept` is returned (R180); an address in use is reported by `bind` (R185); a second shutdown
//! is no error (R158).

use crate::util::child::in_child;
#[cfg(unix)]
use crate::util::polls::poll_once;
use crate::util::tcp::{
    Has, closed_port, expect_success, fill, half_std_pair, has_ipv6, kind, listener, pair, run,
    run_on, settle, sources, std_pair,
};
use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use std::cell::Cell;
use std::future::Future;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures::{AsyncRead, AsyncWrite, FutureExt};
#[cfg(unix)]
use phaseloop::net::UnixStream;
use phaseloop::net::{Keepalive, TcpListener, TcpSocket, TcpStream};
use phaseloop::phase::{Check, Prepare, check};
use phaseloop::time::{Timer, sleep, timeout};
use phaseloop::{EventLoop, Handle, Keeper, LoopHandle, RunMode, spawn};
use tokio_test::assert_pending;

/// Whether a short read means that nothing is left, because the end is an event of its own.
const REPORTS_END: bool = cfg!(all(
    any(target_os = "linux", target_os = "android"),
    not(phaseloop_portable_poller)
));

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// Reading.

#[test]
fn r128_the_first_read_comes_from_a_poll_phase() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.write_all(b"x").unwrap();
        settle(&stream, Has::Data);
        let mut buffer = [0; 8];
        assert_pending!(tokio_test::task::spawn(stream.read(&mut buffer)).poll());
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 1);
    });
}

/// Ours: 100 reads of a byte in the turn of their event, not 32 a turn.
#[test]
fn r129_a_reader_takes_what_there_is_in_one_turn() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.write_all(&[1; 100]).unwrap();
        settle(&stream, Has::Data);
        stream.readable().await.unwrap();
        let handle = LoopHandle::current();
        let first = handle.turns();
        for _ in 0..100 {
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 1);
        }
        assert_eq!(handle.turns(), first);
    });
}

#[test]
fn r130_after_a_short_read_the_next_waits_for_an_event() {
    if !REPORTS_END {
        return;
    }
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let mut buffer = [0; 8];
        theirs.write_all(b"x").unwrap();
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 1);
        theirs.write_all(b"yz").unwrap();
        settle(&stream, Has::Data);
        assert_pending!(tokio_test::task::spawn(stream.read(&mut buffer)).poll());
        assert_eq!(stream.read(&mut buffer[..1]).await.unwrap(), 1);
        assert_eq!(stream.read(&mut buffer).now_or_never().unwrap().unwrap(), 1);
    });
}

#[test]
fn r132_an_empty_buffer_takes_nothing() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.write_all(b"ab").unwrap();
        assert_eq!(stream.read(&mut []).await.unwrap(), 0);
        assert_eq!(stream.read_vectored(&mut []).await.unwrap(), 0);
        let mut buffer = [0; 8];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 2);
    });
}

/// libuv's `readable_on_eof`.
#[test]
fn r134_r135_the_end_can_be_read_again_and_writing_goes_on() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.shutdown(Shutdown::Write).unwrap();
        for _ in 0..3 {
            assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
            assert!(!stream.is_active());
            check().await;
        }
        stream.readable().await.unwrap();
        stream.writable().await.unwrap();
        stream.write_all(b"still").await.unwrap();
        theirs.read_exact(&mut [0; 5]).unwrap();
    });
}

/// libuv's `not_readable_nor_writable_on_read_error` and `tcp_rst`.
#[test]
fn r136_after_a_reset_there_is_nothing_to_read_and_writing_fails() {
    run(async {
        let (mut stream, theirs) = half_std_pair();
        reset(theirs);
        let mut buffer = [0; 8];
        let read = stream.read(&mut buffer).await;
        assert_eq!(kind(read), Some(ErrorKind::ConnectionReset));
        assert!(!stream.is_active());
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(kind(stream.write(b"x").await), Some(ErrorKind::BrokenPipe));
    });
}

fn reset(stream: net::TcpStream) {
    let linger = socket2::SockRef::from(&stream).set_linger(Some(ZERO));
    linger.unwrap();
}

/// Ours: as libuv did until 1.51.
#[test]
fn r137_r138_the_end_comes_in_the_turn_of_the_last_bytes() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.write_all(&[1; 1000]).unwrap();
        drop(theirs);
        settle(&stream, Has::DataAndEnd);
        let mut buffer = vec![0; 1 << 16];
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 1000);
        let read = stream.read(&mut buffer).now_or_never();
        assert_eq!(read.unwrap().unwrap(), 0);
    });
}

// On Windows, the first of both ends the wait, and the other is another event.
#[cfg(unix)]
#[test]
fn r139_one_event_serves_the_reader_first() {
    let mut event_loop = EventLoop::new().unwrap();
    let trace = Trace::new(&event_loop.handle());
    run_on(&mut event_loop, async {
        let (stream, mut theirs) = half_std_pair();
        let total = fill(&stream).await;
        let stream = Rc::new(stream);
        let (writer, log) = (stream.clone(), trace.clone());
        let write = spawn(async move {
            (&*writer).write_all(b"x").await.unwrap();
            log.log("write");
        });
        let (reader, log) = (stream.clone(), trace.clone());
        let read = spawn(async move {
            (&*reader).read_exact(&mut [0]).await.unwrap();
            log.log("read");
        });
        check().await;
        assert_eq!(trace.take(), "");
        theirs.read_exact(&mut vec![0; total]).unwrap();
        theirs.write_all(b"x").unwrap();
        settle(&stream, Has::DataAndRoom);
        read.await.unwrap();
        write.await.unwrap();
        assert_eq!(trace.take(), "read write");
    });
}

/// libuv's `tcp_read_stop` and `tcp_read_stop_start`: a dropped read, however often, takes no byte
/// with it.
#[test]
fn r140_a_read_that_is_given_up_loses_nothing() {
    run(async {
        let (stream, theirs) = half_std_pair();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 253) as u8).collect();
        let expected = sent.clone();
        let writer = std::thread::spawn(move || (&theirs).write_all(&sent).unwrap());
        let (mut received, mut buffer) = (Vec::<u8>::new(), vec![0; 5000]);
        while received.len() < expected.len() {
            // Begun, dropped, begun again.
            if let Some(count) = (&stream).read(&mut buffer).now_or_never() {
                received.extend(&buffer[..count.unwrap()]);
            }
            check().await;
        }
        assert!(received == expected);
        writer.join().unwrap();
    });
}

/// libuv's `tcp_unexpected_read`: bytes that are not read neither wake a task nor make the loop
/// turn.
#[test]
fn r141_what_nobody_reads_makes_no_turns() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = std_pair();
    let stream = event_loop.enter(|| TcpStream::from_std(ours)).unwrap();
    theirs.write_all(&[1; 1000]).unwrap();
    settle(&stream, Has::Data);
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "timer@10");
    assert_eq!(handle.turns(), 1);
}

/// libuv's `io_64_safe`: a length above the limit of one system call is cut, not refused.
#[test]
fn r142_a_huge_buffer_is_as_good_as_another() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        // Never touched, so it is no memory. 32 bits leave no room for more than the kernel takes.
        let is_small = cfg!(target_pointer_width = "32");
        let mut huge = vec![
            0;
            if is_small {
                1 << 30
            } else {
                0x7fff_f000 + 4096
            }
        ];
        theirs.write_all(b"abc").unwrap();
        assert_eq!(stream.read(&mut huge).await.unwrap(), 3);
        let written = stream.write(&huge).await.unwrap();
        assert!(written > 0 && written < huge.len());
        theirs.read_exact(&mut vec![0; written]).unwrap();
    });
}

/// libuv's `tcp_oob`: a byte of urgent data, which no read returns, stands between others.
#[test]
fn libuv_tcp_oob() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        for _ in 0..3 {
            theirs.write_all(b"before").unwrap();
            socket2::SockRef::from(&theirs)
                .send_out_of_band(b"!")
                .unwrap();
            // Let the reader run into the mark with nothing behind it.
            let mut buffer = [0; 6];
            stream.read_exact(&mut buffer).await.unwrap();
            assert_eq!(&buffer, b"before");
            theirs.write_all(b"after").unwrap();
            let mut buffer = [0; 5];
            stream.read_exact(&mut buffer).await.unwrap();
            assert_eq!(&buffer, b"after");
        }
    });
}

/// A read ends at the urgent mark although there is more behind it: what is short there is not all.
#[test]
fn libuv_tcp_oob_with_bytes_behind_it() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        theirs.write_all(b"before").unwrap();
        socket2::SockRef::from(&theirs)
            .send_out_of_band(b"!")
            .unwrap();
        theirs.write_all(b"after").unwrap();
        settle(&stream, Has::DataAndUrgent);
        let (mut all, mut buffer) = (Vec::<u8>::new(), [0; 64]);
        while all.len() < 11 {
            let count = stream.read(&mut buffer).await.unwrap();
            all.extend(&buffer[..count]);
        }
        assert_eq!(all, b"beforeafter");
    });
}

// Writing.

/// Tried at once, and what is known at once is no callback: the write is over when the call
/// returns.
#[test]
fn r143_a_write_is_tried_at_once() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        for _ in 0..3 {
            let written = stream.write(b"at once").now_or_never();
            assert_eq!(written.unwrap().unwrap(), 7);
            theirs.read_exact(&mut [0; 7]).unwrap();
        }
    });
}

/// libuv's `tcp_write_in_a_row`: a small write behind a big one that is stuck.
#[test]
fn r144_r145_a_stuck_write_ends_when_all_is_written_and_the_next_follows() {
    let mut event_loop = EventLoop::new().unwrap();
    let trace = Trace::new(&event_loop.handle());
    run_on(&mut event_loop, async {
        let (mut stream, mut theirs) = half_std_pair();
        let log = trace.clone();
        let writer = spawn(async move {
            stream.write_all(&vec![1; 10_000_000]).await.unwrap();
            log.log("big");
            stream.write_all(&[2]).await.unwrap();
            log.log("small");
        });
        for _ in 0..20 {
            check().await;
        }
        assert_eq!(trace.take(), "", "the big one is stuck");
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        writer.await.unwrap();
        let all = reader.join().unwrap();
        assert_eq!(trace.take(), "big small");
        assert_eq!(
            (all.len(), all[9_999_999], all[10_000_000]),
            (10_000_001, 1, 2)
        );
    });
}

/// Also R153: the process outlives the broken pipe.
#[test]
fn r148_each_write_after_the_peer_is_gone_has_its_own_error() {
    run(async {
        let (mut stream, theirs) = half_std_pair();
        reset(theirs);
        settle(&stream, Has::Reset);
        assert_eq!(
            kind(stream.write(b"1").await),
            Some(ErrorKind::ConnectionReset)
        );
        let later = if cfg!(windows) {
            ErrorKind::ConnectionReset
        } else {
            ErrorKind::BrokenPipe
        };
        for _ in 0..3 {
            assert_eq!(kind(stream.write(b"2").await), Some(later));
        }
    });
}

/// libuv's `not_writable_after_shutdown`.
#[test]
fn r149_r159_nothing_is_written_after_a_shutdown() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(kind(stream.write(b"x").await), Some(ErrorKind::BrokenPipe));
        assert_eq!(kind(stream.try_write(b"x")), Some(ErrorKind::BrokenPipe));
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0);
    });
}

/// libuv's `pipe_write_trailing_empty_buf`, for TCP too.
#[test]
fn r151_empty_buffers_are_written_like_others() {
    async fn proof(mut ours: impl AsyncWrite + Unpin, mut theirs: impl AsyncRead + Unpin) {
        assert_eq!(ours.write(b"").await.unwrap(), 0);
        ours.write_all(b"").await.unwrap();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b"")];
        assert_eq!(ours.write_vectored(&parts).await.unwrap(), 2);
        assert_eq!(ours.write_vectored(&parts[1..]).await.unwrap(), 0);
        assert_eq!(ours.write_vectored(&[]).await.unwrap(), 0);
        ours.close().await.unwrap();
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "ab");
    }
    run(async {
        let (ours, theirs) = pair().await;
        proof(ours, theirs).await;
        #[cfg(unix)]
        {
            let (ours, theirs) = UnixStream::pair().unwrap();
            proof(ours, theirs).await;
        }
    });
}

/// libuv's `tcp_write_cancel`, `tcp_write_nwritten`.
#[test]
fn r154_a_write_that_is_given_up_has_sent_nothing() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let mut total = fill(&stream).await;
        for _ in 0..3 {
            let mut write = pin!(stream.write(b"given up"));
            assert_pending!(poll_once(&mut write).await);
        }
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        // One that goes through says how much it was.
        total += stream.write(&[7; 10]).await.unwrap();
        drop(stream);
        let all = reader.join().unwrap();
        assert_eq!(all.len(), total);
        assert!(all.iter().all(|&byte| byte == 7));
    });
}

/// A write of a part, because the list of buffers was cut, is no sign of a full socket; and a read
/// so cut none of an empty one.
#[test]
fn r155_a_long_list_of_buffers_goes_on() {
    run(async {
        let (mut stream, mut theirs) = pair().await;
        let parts = [IoSlice::new(b"x"); 3000];
        let mut written = 0;
        while written < 3000 {
            written += stream.write_vectored(&parts[written..]).await.unwrap();
        }
        let mut bytes = vec![[0_u8; 1]; 3000];
        let mut rest = &mut bytes[..];
        while !rest.is_empty() {
            let mut parts: Vec<_> = rest.iter_mut().map(|byte| IoSliceMut::new(byte)).collect();
            let read = theirs.read_vectored(&mut parts).await.unwrap();
            assert_ne!(read, 0);
            rest = &mut rest[read..];
        }
        assert_eq!(bytes, vec![[b'x']; 3000]);
    });
}

/// libuv's `tcp_ref4`: a waiting write keeps the loop alive although the stream is unref'd; a
/// waiting read does not.
#[test]
fn r156_a_write_holds_the_loop_although_the_stream_is_unrefd() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let (stream, mut theirs, total) = run_on(&mut event_loop, async {
        let (stream, theirs) = half_std_pair();
        let total = fill(&stream).await;
        stream.unref();
        (Rc::new(stream), theirs, total)
    });
    let reader = stream.clone();
    let read = handle.spawn(async move { (&*reader).read(&mut [0; 8]).await });
    finish(&mut event_loop);
    assert!(!read.is_finished(), "the reader does not hold it");
    let writer = stream.clone();
    let write = handle.spawn(async move { (&*writer).write_all(b"last").await });
    assert!(turn(&mut event_loop));
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
    let peer = std::thread::spawn(move || {
        theirs.read_exact(&mut vec![0; total + 4]).unwrap();
        theirs
    });
    finish(&mut event_loop);
    assert!(write.is_finished() && !read.is_finished());
    let _theirs = peer.join().unwrap();
}

// Shutdown.

/// libuv's `shutdown_twice`, and ours differs: the second returns what the kernel returns, which is
/// nothing.
#[test]
fn r158_a_second_shutdown_is_no_error_while_connected() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        stream.close().await.unwrap();
        stream.close().await.unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0);
        reset(theirs);
        settle(&stream, Has::Reset);
        let third = stream.shutdown(Shutdown::Write);
        assert_eq!(kind(third), Some(ErrorKind::NotConnected));
        stream.close().await.unwrap();
    });
}

/// libuv's `shutdown_eof`, `tcp_shutdown_after_write`: what was written arrives before the end, and
/// the other direction goes on.
#[test]
fn r160_r162_the_end_comes_after_what_was_written() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let big = vec![3; 4_000_000];
        let peer = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            theirs.write_all(b"and back").unwrap();
            all.len()
        });
        stream.write_all(&big).await.unwrap();
        stream.close().await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "and back");
        assert_eq!(peer.join().unwrap(), big.len());
    });
}

/// libuv's `shutdown_close_tcp`, `shutdown_close_pipe`.
#[test]
fn libuv_shutdown_close() {
    run(async {
        let (mut stream, mut theirs) = pair().await;
        stream.close().await.unwrap();
        stream.close_now().await;
        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0);
        #[cfg(unix)]
        {
            let (mut stream, mut theirs) = UnixStream::pair().unwrap();
            stream.close().await.unwrap();
            stream.close_now().await;
            assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 0);
        }
    });
}

#[test]
fn libuv_shutdown_simultaneous() {
    run(async {
        let (mut ours, mut theirs) = pair().await;
        ours.write_all(b"x").await.unwrap();
        theirs.write_all(b"y").await.unwrap();
        let (first, second) = futures::future::join(ours.close(), theirs.close()).await;
        first.unwrap();
        second.unwrap();
        for (end, expected) in [(&mut ours, "y"), (&mut theirs, "x")] {
            let mut text = String::new();
            end.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, expected);
        }
    });
}

// Connect.

#[test]
fn r163_a_connect_ends_in_the_poll_phase() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (_holder, closed) = closed_port("127.0.0.1:0");
    for (address, expected) in [
        (listener.local_addr().unwrap(), "prepare connected check"),
        (closed, "prepare refused check"),
    ] {
        let (prepare, after) = (Prepare::new(&handle), Check::new(&handle));
        prepare.start(trace.on("prepare")).unwrap();
        after.start(trace.on("check")).unwrap();
        let log = trace.clone();
        drop(handle.spawn(async move {
            let connected = TcpStream::connect(address).await;
            log.log(if connected.is_ok() {
                "connected"
            } else {
                "refused"
            });
        }));
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), expected);
    }
}

/// An error that the call itself returns comes without a turn: TCP to a broadcast address, a wrong
/// family. A refusal takes the way through the loop.
#[test]
fn r165_an_immediate_error_is_returned_at_once() {
    run(async {
        let before = sources();
        let broadcast = TcpStream::connect("255.255.255.255:9");
        assert!(broadcast.now_or_never().unwrap().is_err());
        let socket = TcpSocket::new_v4().unwrap();
        let family = socket.connect("[::1]:9".parse().unwrap());
        assert!(family.now_or_never().unwrap().is_err());
        let (_holder, closed) = closed_port("127.0.0.1:0");
        let mut refused = Box::pin(TcpStream::connect(closed));
        assert_pending!(poll_once(&mut refused).await);
        assert_eq!(kind(refused.await), Some(ErrorKind::ConnectionRefused));
        assert_eq!(sources(), before, "nothing is left of them");
    });
}

/// libuv's `connection_fail`, `tcp_local_connect_timeout`, `tcp6_local_connect_timeout`: refused,
/// by an answer and not by a timeout. A failed connect leaves no handle to close.
#[test]
fn r167_a_refused_connect_fails_once() {
    run(async {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            if address.starts_with('[') && !has_ipv6() {
                continue;
            }
            let (_holder, closed) = closed_port(address);
            let before = sources();
            let refused = TcpStream::connect(closed).await;
            assert_eq!(kind(refused), Some(ErrorKind::ConnectionRefused));
            assert_eq!(sources(), before);
        }
    });
}

/// libuv's `connect_unspecified`.
#[test]
fn r170_the_unspecified_address_is_the_local_host() {
    run(async {
        let (listener, address) = listener().await;
        let unspecified = SocketAddr::from(([0, 0, 0, 0], address.port()));
        let client = TcpStream::connect(unspecified).await.unwrap();
        assert!(client.peer_addr().unwrap().ip().is_loopback());
        listener.accept().await.unwrap();
        if has_ipv6() {
            let listener = TcpListener::bind("[::1]:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect(format!("[::]:{port}")).await.unwrap();
            assert!(client.peer_addr().unwrap().ip().is_loopback());
        }
    });
}

/// libuv's `tcp_connect6_link_local`, in a network of its own, with one link-local address on its
/// one interface. Where such a network cannot be made, the test says so and passes.
#[cfg(target_os = "linux")]
#[test]
fn r171_libuv_tcp_connect6_link_local() {
    let set_up = "ip link set lo up && ip addr add fe80::1234/64 dev lo nodad && exec \"$@\"";
    let wrapper = [
        "unshare",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        set_up,
        "sh",
    ];
    let is_child = std::env::var_os("PHASELOOP_TEST_CHILD").is_some();
    let mut probe = std::process::Command::new(wrapper[0]);
    let probe = probe.args(&wrapper[1..]).arg("true").status();
    if !is_child && !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no network of its own can be made here");
        return;
    }
    let test = "r171_libuv_tcp_connect6_link_local";
    expect_success(in_child(&wrapper, test, || {
        run(async {
            let local = net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x1234);
            let bound = net::SocketAddrV6::new(local, 0, 0, 1);
            let listener = net::TcpListener::bind(bound).unwrap();
            let port = listener.local_addr().unwrap().port();
            let stream = TcpStream::connect((local, port)).await.unwrap();
            let SocketAddr::V6(peer) = stream.peer_addr().unwrap() else {
                panic!("it is of version 6");
            };
            assert_eq!((*peer.ip(), peer.scope_id()), (local, 1));
            // A scope that was given stays; there is no such interface.
            let elsewhere = net::SocketAddrV6::new(local, port, 0, 77);
            let socket = TcpSocket::new_v6().unwrap();
            assert!(socket.connect(elsewhere.into()).await.is_err());
        });
    }));
}

/// A listener whose queue is full: the kernel neither accepts nor refuses. libuv's
/// `tcp_connect_timeout` and `tcp_close_while_connecting`: the hanging connect is ended by dropping
/// it, and timers go on.
#[cfg(target_os = "linux")]
#[test]
fn r172_a_full_backlog_makes_a_connect_wait_and_it_can_be_given_up() {
    run(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let before = sources();
        // The queue has room for one more than it was asked for; the next one hangs.
        let first = TcpStream::connect(address).await.unwrap();
        let second = TcpStream::connect(address).await.unwrap();
        let third = timeout(ms(30), TcpStream::connect(address)).await;
        assert!(third.is_err(), "it has nowhere to go");
        assert_eq!(sources(), before + 2, "and is gone");
        for expected in [first, second] {
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(peer, expected.local_addr().unwrap());
        }
    });
}

// Listen and accept.

/// libuv's `tcp_listen_without_bind`.
#[test]
fn r173_without_an_address_a_listener_gets_a_port() {
    run(async {
        let listener = TcpSocket::new_v4().unwrap().listen(8).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_unspecified() && address.port() != 0);
        let client = TcpStream::connect(("127.0.0.1", address.port()))
            .await
            .unwrap();
        let (_, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

/// Five connections wait, one task accepts or three do: a turn each.
#[test]
fn r175_one_connection_is_accepted_a_turn() {
    for acceptors in [1, 3] {
        run(async {
            let (listener, address) = listener().await;
            let mut clients = Vec::new();
            for _ in 0..5 {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            let (listener, turns) = (Rc::new(listener), Rc::new(Cell::default()));
            let tasks = Vec::from_iter((0..acceptors).map(|_| {
                let (listener, turns) = (listener.clone(), turns.clone());
                spawn(async move {
                    loop {
                        listener.accept().await.unwrap();
                        let mut all: Vec<u64> = turns.take();
                        all.push(LoopHandle::current().turns());
                        turns.set(all);
                    }
                })
            }));
            let all = loop {
                check().await;
                let all = turns.take();
                if all.len() == 5 {
                    break all;
                }
                turns.set(all);
            };
            assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
            tasks.iter().for_each(phaseloop::JoinHandle::abort);
        });
    }
}

/// Ours: `accept` takes a connection from the kernel's queue. libuv's `delayed_accept`: until then
/// it stays there, with the bytes it has sent, and causes no turns.
#[test]
fn r176_r177_a_connection_waits_until_it_is_accepted() {
    let (mut event_loop, handle, trace) = paused();
    let std_listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = net::TcpStream::connect(std_listener.local_addr().unwrap()).unwrap();
    client.write_all(b"early").unwrap();
    let listener = event_loop
        .enter(|| TcpListener::from_std(std_listener))
        .unwrap();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!((&*trace.take(), handle.turns()), ("timer@10", 1));
    let late = event_loop.block_on(async {
        let (mut server, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 5];
        server.read_exact(&mut buffer).await.unwrap();
        buffer
    });
    assert_eq!(&late, b"early");
}

/// libuv's `emfile`. The limit is the process's, so this has one of its own.
#[cfg(unix)]
#[test]
fn r179_out_of_descriptors_connections_are_turned_away() {
    let test = "r179_out_of_descriptors_connections_are_turned_away";
    expect_success(in_child(&[], test, || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        run(async {
            let (listener, address) = listener().await;
            let mut clients = Vec::new();
            for _ in 0..3 {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            let before = getrlimit(Resource::Nofile);
            let limit = |current| Rlimit {
                current: Some(current),
                ..before
            };
            // As many as there are, the reserve included.
            let no_more = || {
                let next = std::fs::File::open("/dev/null").unwrap();
                limit(std::os::fd::AsRawFd::as_raw_fd(&next) as u64)
            };
            setrlimit(Resource::Nofile, no_more()).unwrap();
            // The error is returned once, and all queued connections are closed.
            let error = listener.accept().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
            for client in &mut clients {
                let read = client.read(&mut [0; 8]).await;
                assert!(!matches!(read, Ok(1..)), "{read:?}");
            }
            assert_pending!(
                tokio_test::task::spawn(listener.accept()).poll(),
                "none is left"
            );
            setrlimit(Resource::Nofile, before).unwrap();
            let serve = async || {
                let mut client = TcpStream::connect(address).await.unwrap();
                let (mut server, _) = listener.accept().await.unwrap();
                server.write_all(b"welcome").await.unwrap();
                client.read_exact(&mut [0; 7]).await.unwrap();
            };
            let turn_away = async || {
                let mut client = TcpStream::connect(address).await.unwrap();
                setrlimit(Resource::Nofile, no_more()).unwrap();
                listener.accept().await.unwrap_err();
                setrlimit(Resource::Nofile, before).unwrap();
                let read = client.read(&mut [0; 8]).await;
                assert!(!matches!(read, Ok(1..)), "{read:?}");
            };
            // The listener goes on, and the reserve is there for another time.
            serve().await;
            turn_away().await;
            // So little is allowed that the reserve cannot be taken back: the next connection that
            // is served restores it.
            let client = TcpStream::connect(address).await.unwrap();
            setrlimit(Resource::Nofile, limit(0)).unwrap();
            listener.accept().await.unwrap_err();
            setrlimit(Resource::Nofile, before).unwrap();
            let _served = listener.accept().await.unwrap();
            turn_away().await;
            serve().await;
            drop(client);
        });
    }));
}

/// Not even the reserve could be opened: the listener rests after each error, so that a server that
/// goes on regardless leaves the processor to others. When there are descriptors again, the
/// connection is served.
#[cfg(unix)]
#[test]
fn r179_out_of_descriptors_a_server_that_goes_on_does_not_spin() {
    let test = "r179_out_of_descriptors_a_server_that_goes_on_does_not_spin";
    expect_success(in_child(&[], test, || {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        run(async {
            let (listener, address) = listener().await;
            let mut client = TcpStream::connect(address).await.unwrap();
            let before = getrlimit(Resource::Nofile);
            let none = Rlimit {
                current: Some(0),
                ..before
            };
            setrlimit(Resource::Nofile, none).unwrap();
            let errors = Rc::new(Cell::new(0));
            let count = errors.clone();
            let server = spawn(async move {
                loop {
                    match listener.accept().await {
                        Ok((mut stream, _)) => return stream.write_all(b"late").await,
                        Err(_) => count.set(count.get() + 1),
                    }
                }
            });
            let (handle, before_that) = (LoopHandle::current(), LoopHandle::current().turns());
            sleep(ms(100)).await;
            let (turns, errors) = (handle.turns() - before_that, errors.get());
            // The first costs the reserve; the others come after a rest each.
            assert!((2..=20).contains(&errors), "{errors} errors");
            assert!(turns < 100, "{turns} turns");
            setrlimit(Resource::Nofile, before).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "late");
            server.await.unwrap().unwrap();
        });
    }));
}

#[cfg(unix)]
#[test]
fn r181_sockets_do_not_block_and_are_not_inherited() {
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::io::{FdFlags, fcntl_getfd};
    run(async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        for socket in [
            std::os::fd::AsFd::as_fd(listener.get_ref()),
            std::os::fd::AsFd::as_fd(client.get_ref()),
            std::os::fd::AsFd::as_fd(server.get_ref()),
        ] {
            assert!(fcntl_getfl(socket).unwrap().contains(OFlags::NONBLOCK));
            assert!(fcntl_getfd(socket).unwrap().contains(FdFlags::CLOEXEC));
        }
    });
}

// Addresses.

/// The port of a server that has closed its connections first can be had again at once.
#[test]
fn r184_an_address_whose_connections_linger_can_be_bound() {
    run(async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        drop((server, listener));
        assert_eq!((&client).read(&mut [0; 8]).await.unwrap(), 0);
        drop(client);
        let again = TcpListener::bind(address).await.unwrap();
        assert_eq!(again.local_addr().unwrap(), address);
    });
}

/// libuv's `tcp_reuseport`; without the option the second is refused.
#[cfg(unix)]
#[test]
fn r184_listeners_share_a_port_if_all_of_them_say_so() {
    run(async {
        let bind = |address: SocketAddr, share| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuse_port(share).unwrap();
            socket.bind(address).and_then(|()| socket.listen(64))
        };
        let first = bind("127.0.0.1:0".parse().unwrap(), true).unwrap();
        let address = first.local_addr().unwrap();
        let second = bind(address, true).unwrap();
        assert_eq!(kind(bind(address, false)), Some(ErrorKind::AddrInUse));
        // The kernel chooses which of them gets a connection; all connections are accepted.
        for _ in 0..20 {
            let client = TcpStream::connect(address).await.unwrap();
            let (first, second) = (pin!(first.accept()), pin!(second.accept()));
            let accepted = futures::future::select(first, second).await;
            let (_, peer) = accepted.factor_first().0.unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
    });
}

/// libuv's `tcp_bind_invalid_flags` among it.
#[test]
fn r184_v6_only_leaves_v4_alone() {
    let v4 = TcpSocket::new_v4().unwrap();
    // Wine takes it.
    assert!(
        cfg!(windows) || v4.set_only_v6(true).is_err(),
        "an option of the other family"
    );
    if !has_ipv6() {
        return;
    }
    run(async {
        for only in [true, false] {
            let attempt = || {
                let socket = TcpSocket::new_v6().unwrap();
                socket.set_only_v6(only).unwrap();
                socket.bind("[::]:0".parse().unwrap()).unwrap();
                let listener = socket.listen(8).unwrap();
                let port = listener.local_addr().unwrap().port();
                let v4 = TcpSocket::new_v4().unwrap();
                let bound = v4.bind(SocketAddr::from(([127, 0, 0, 1], port)));
                (listener, port, bound.map(|()| v4))
            };
            // More than one attempt, as any other program may have the port.
            let mut attempts = (0..20).map(|_| attempt());
            let found = attempts.find(|(_, _, bound)| bound.is_ok());
            assert_eq!(found.is_some(), only, "the port is free for IPv4");
            // This test holds the port, so that no other process answers there.
            let (_listener, port, _held) = found.unwrap_or_else(attempt);
            let connected = TcpStream::connect(("127.0.0.1", port)).await;
            assert_eq!(connected.is_err(), only);
            TcpStream::connect(("::1", port)).await.unwrap();
        }
    });
}

/// libuv's `tcp_bind_error_addrinuse_listen`, `tcp_bind_error_addrinuse_connect`,
/// `tcp_bind6_error_addrinuse`; ours: the call that binds reports it.
#[test]
fn r185_an_address_in_use_is_reported_by_bind() {
    run(async {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            if address.starts_with('[') && !has_ipv6() {
                continue;
            }
            let first = TcpListener::bind(address).await.unwrap();
            let address = first.local_addr().unwrap();
            let second = TcpListener::bind(address).await;
            assert_eq!(kind(second), Some(ErrorKind::AddrInUse));
            let socket = if address.is_ipv4() {
                TcpSocket::new_v4()
            } else {
                TcpSocket::new_v6()
            };
            let bound = socket.unwrap().bind(address);
            assert_eq!(kind(bound), Some(ErrorKind::AddrInUse));
        }
    });
}

/// libuv's `tcp_bind_error_addrnotavail_1` and `_2`, `tcp_bind6_error_addrnotavail`,
/// `tcp_bind_error_inval`, `tcp_bind6_error_inval`, `tcp_create_early_bad_bind`,
/// `tcp_create_early`.
#[test]
fn r186_bind_says_what_is_wrong_with_an_address() {
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    // An address of the block for documentation, which no host has.
    let foreign = socket.bind("192.0.2.1:0".parse().unwrap());
    assert_eq!(kind(foreign), Some(ErrorKind::AddrNotAvailable));
    socket.bind(local).unwrap();
    assert_ne!(socket.local_addr().unwrap().port(), 0);
    assert_eq!(kind(socket.bind(local)), Some(ErrorKind::InvalidInput));
    if has_ipv6() {
        let socket = TcpSocket::new_v6().unwrap();
        assert_eq!(kind(socket.bind(local)), Some(ErrorKind::InvalidInput));
        let foreign = socket.bind("[2001:db8::1]:0".parse().unwrap());
        assert_eq!(kind(foreign), Some(ErrorKind::AddrNotAvailable));
        let local: SocketAddr = "[::1]:0".parse().unwrap();
        socket.bind(local).unwrap();
        assert_eq!(kind(socket.bind(local)), Some(ErrorKind::InvalidInput));
    }
}

/// libuv's `tcp_bind_localhost_ok`, `tcp_bind6_localhost_ok`.
#[test]
fn libuv_tcp_bind_localhost_ok() {
    run(async {
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        assert!(listener.local_addr().unwrap().ip().is_loopback());
        if has_ipv6() {
            let listener = TcpListener::bind("[::1]:0").await.unwrap();
            assert!(listener.local_addr().unwrap().is_ipv6());
        }
    });
}

// Options.

/// libuv's `tcp_flags`. Ours keeps the times, too.
#[test]
fn r187_options_set_before_the_connect_are_those_of_the_connection() {
    run(async {
        let (_listener, address) = listener().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_nodelay(true).unwrap();
        let keepalive = Keepalive::after(seconds(90))
            .interval(seconds(7))
            .retries(4);
        socket.set_keepalive(Some(keepalive)).unwrap();
        let stream = socket.connect(address).await.unwrap();
        assert!(stream.nodelay().unwrap() && stream.keepalive().unwrap());
        // Windows does not report the times.
        #[cfg(unix)]
        {
            let options = socket2::SockRef::from(stream.get_ref());
            assert_eq!(options.tcp_keepalive_time().unwrap(), seconds(90));
            assert_eq!(options.tcp_keepalive_interval().unwrap(), seconds(7));
            assert_eq!(options.tcp_keepalive_retries().unwrap(), 4);
        }
        stream.set_keepalive(None).unwrap();
        assert!(!stream.keepalive().unwrap());
    });
}

#[test]
fn r188_keepalive_refuses_nothing_at_all() {
    run(async {
        let (stream, _theirs) = half_std_pair();
        let good = Keepalive::after(seconds(1));
        for bad in [
            Keepalive::after(ZERO),
            Keepalive::after(ms(999)),
            good.interval(ZERO),
            good.retries(0),
        ] {
            let refused = stream.set_keepalive(Some(bad));
            assert_eq!(kind(refused), Some(ErrorKind::InvalidInput), "{bad:?}");
            assert!(!stream.keepalive().unwrap());
        }
        stream.set_keepalive(Some(good)).unwrap();
        #[cfg(unix)]
        {
            let options = socket2::SockRef::from(stream.get_ref());
            assert_eq!(options.tcp_keepalive_interval().unwrap(), seconds(1));
            assert_eq!(options.tcp_keepalive_retries().unwrap(), 10);
        }
    });
}

/// libuv's `tcp_close_reset_*`: either end, also after a shutdown of writing, which is not refused
/// here.
#[test]
fn r189_a_reset_is_seen_as_one() {
    for (client_resets, shut_before) in [(true, false), (true, true), (false, false), (false, true)]
    {
        run(async {
            let (client, server) = pair().await;
            let (resets, mut sees) = match client_resets {
                true => (client, server),
                false => (server, client),
            };
            if shut_before {
                resets.shutdown(Shutdown::Write).unwrap();
                assert_eq!(sees.read(&mut [0; 8]).await.unwrap(), 0);
            }
            resets.reset().unwrap().await;
            // Of one that saw the end before, only a write reports it.
            let error = match shut_before {
                false => kind(sees.read(&mut [0; 8]).await),
                true => {
                    settle(&sees, Has::Reset);
                    kind(sees.write(b"x").await)
                }
            };
            let expected = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(
                error.is_some_and(|kind| expected.contains(&kind)),
                "{error:?}"
            );
        });
    }
}

/// libuv's `tcp_open`, `tcp_open_bound`, `tcp_open_connected`, `tcp_write_ready`: sockets that were
/// made elsewhere.
#[test]
fn r190_a_foreign_socket_is_as_good_as_ours() {
    run(async {
        let (bound, address) = closed_port("127.0.0.1:0");
        bound.listen(8).unwrap();
        let listener = TcpListener::from_std(bound.into()).unwrap();
        let std_client = net::TcpStream::connect(address).unwrap();
        let mut client = TcpStream::from_std(std_client).unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        // Writable, again and again, until it is full.
        for _ in 0..3 {
            client.writable().await.unwrap();
            client.write_all(b"ping").await.unwrap();
            server.read_exact(&mut [0; 4]).await.unwrap();
            check().await;
        }
        fill(&client).await;
        assert_pending!(tokio_test::task::spawn(client.writable()).poll());
    });
}

#[test]
fn r192_buffer_sizes_are_read_back_doubled() {
    run(async {
        let (stream, _theirs) = half_std_pair();
        let factor = if cfg!(target_os = "linux") { 2 } else { 1 };
        stream.set_send_buffer_size(10_000).unwrap();
        assert_eq!(stream.send_buffer_size().unwrap(), 10_000 * factor);
        stream.set_recv_buffer_size(20_000).unwrap();
        assert_eq!(stream.recv_buffer_size().unwrap(), 20_000 * factor);
    });
}

// Closing.

/// Also libuv's `tcp_close`, `tcp_write_queue_order`, and ours differs: a task whose stream was
/// closed is not called back with a cancelled write or read; it owns the stream, so it is gone
/// itself.
#[test]
fn r110_r111_a_close_reports_only_the_close() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    run_on(&mut event_loop, async {
        let (stream, mut theirs) = half_std_pair();
        let total = fill(&stream).await;
        let stream = Rc::new(stream);
        let tasks = [true, false].map(|write| {
            let (stream, log) = (stream.clone(), trace.clone());
            spawn(async move {
                match write {
                    true => drop((&*stream).write(b"x").await),
                    false => drop((&*stream).read(&mut [0; 8]).await),
                }
                log.log("woken");
            })
        });
        check().await;
        for task in tasks {
            task.abort();
            task.await.unwrap_err();
        }
        let stream = Rc::into_inner(stream).unwrap();
        stream.close_now().await;
        trace.log("closed");
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), total, "what the system had taken still arrives");
    });
    assert_eq!(trace.take(), "closed");
}

/// libuv's `tcp_close_after_read_timeout`.
#[test]
fn libuv_tcp_close_after_read_timeout() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let read = timeout(ms(10), stream.read(&mut [0; 8])).await;
        assert!(read.is_err());
        stream.close_now().await;
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0);
    });
}

/// libuv's `tcp_write_in_read_cb_backend_timeout`: a write that was done at once leaves nothing to
/// poll for.
#[test]
fn libuv_tcp_write_in_read_cb_backend_timeout() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let (ours, mut theirs) = std_pair();
    let stream = event_loop.enter(|| TcpStream::from_std(ours)).unwrap();
    drop(handle.spawn(async move {
        let mut stream = stream;
        stream.writable().await.unwrap();
        while stream.read(&mut [0; 8]).await.unwrap() > 0 {
            stream.write_all(b"answer").await.unwrap();
        }
    }));
    theirs.write_all(b"question").unwrap();
    theirs.set_nonblocking(true).unwrap();
    // Turns, until the answer is there.
    let mut answer = [0; 6];
    while theirs.read(&mut answer).is_err() {
        event_loop.turn(Some(ms(10))).unwrap();
    }
    assert_eq!(handle.next_timeout(), None);
    drop(theirs);
    finish(&mut event_loop);
}

// Traffic.

/// libuv's `tcp_ping_pong`, `tcp_ping_pong_vec`, `tcp6_…`, `pipe_…`: a thousand round trips.
#[test]
fn libuv_ping_pong() {
    async fn client(mut stream: impl AsyncRead + AsyncWrite + Unpin, vectored: bool) {
        let mut buffer = [0; 5];
        for _ in 0..1000 {
            if vectored {
                let parts = [IoSlice::new(b"PI"), IoSlice::new(b"NG\n")];
                assert_eq!(stream.write_vectored(&parts).await.unwrap(), 5);
            } else {
                stream.write_all(b"PING\n").await.unwrap();
            }
            stream.read_exact(&mut buffer).await.unwrap();
            assert_eq!(&buffer, b"PING\n");
        }
    }
    fn with(pair: impl Future<Output = [Box<dyn Both>; 2]>, vectored: bool) {
        run(async {
            let [ours, mut theirs] = pair.await;
            let echo = spawn(async move {
                let mut buffer = [0; 64];
                let mut total = 0;
                loop {
                    let count = theirs.read(&mut buffer).await.unwrap();
                    if count == 0 {
                        return total;
                    }
                    total += count;
                    theirs.write_all(&buffer[..count]).await.unwrap();
                }
            });
            client(ours, vectored).await;
            assert_eq!(echo.await.unwrap(), 5000);
        });
    }
    async fn tcp(address: &str) -> [Box<dyn Both>; 2] {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let ours = TcpStream::connect(address).await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        [Box::new(ours), Box::new(theirs)]
    }
    #[cfg(unix)]
    async fn unix() -> [Box<dyn Both>; 2] {
        let (ours, theirs) = UnixStream::pair().unwrap();
        [Box::new(ours), Box::new(theirs)]
    }
    trait Both: AsyncRead + AsyncWrite + Unpin {}
    impl<T: AsyncRead + AsyncWrite + Unpin> Both for T {}
    for vectored in [false, true] {
        with(tcp("127.0.0.1:0"), vectored);
        if has_ipv6() {
            with(tcp("[::1]:0"), vectored);
        }
        #[cfg(unix)]
        with(unix(), vectored);
    }
}

/// libuv's `tcp_writealot`: many vectored writes, all of which arrive in order.
#[test]
fn libuv_tcp_writealot() {
    run(async {
        let (mut stream, mut theirs) = half_std_pair();
        let peer = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        let sent: Vec<u8> = (0..16_000_000_u32).map(|n| (n % 239) as u8).collect();
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let parts: Vec<_> = rest.chunks(16_384).take(64).map(IoSlice::new).collect();
            let written = stream.write_vectored(&parts).await.unwrap();
            rest = &rest[written..];
        }
        stream.close().await.unwrap();
        assert!(peer.join().unwrap() == sent);
    });
}

/// libuv's `tcp_try_write_error`.
#[test]
fn libuv_tcp_try_write_error() {
    run(async {
        let (stream, theirs) = half_std_pair();
        drop(theirs);
        let error = loop {
            match stream.try_write(&[1; 1000]) {
                Ok(_) => check().await,
                Err(error) => break error.kind(),
            }
        };
        let expected = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        assert!(expected.contains(&error), "{error:?}");
    });
}

/// libuv's `tcp_write_to_half_open_connection`: written to a client that is gone; the read reports it.
#[test]
fn libuv_tcp_write_to_half_open_connection() {
    run(async {
        let (mut stream, theirs) = half_std_pair();
        drop(theirs);
        stream.write_all(b"to a closed peer").await.unwrap();
        let read = stream.read(&mut [0; 8]).await;
        let reset = |kind| kind == Some(ErrorKind::ConnectionReset);
        assert!(matches!(read, Ok(0)) || reset(kind(read)));
    });
}
