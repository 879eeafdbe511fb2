//! TCP connections as a program uses them: connect, accept, read, write, half-close, split, copy,
//! the `try_` calls, vectored calls, options, the ways in and out of the standard library, reset,
//! close and drop.
//!
//! The rules of libuv are in `tcp_rules.rs`, what goes wrong in `tcp_faults.rs`, other programs in
//! `tcp_peers.rs`.

use crate::util::panics::panic_of;
use crate::util::polls::poll_once;
use crate::util::tcp::{
    closed_port, fill, half_std_pair, kind, listener, pair, run, run_on, sources, std_pair,
};
use crate::util::trace::{Trace, ms};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Ipv4Addr, Shutdown, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use futures::StreamExt;
use futures::io::{AsyncReadExt, AsyncWriteExt};
use futures::{AsyncRead, AsyncWrite};
use phaseloop::io::{Source, copy, copy_both_ways, split};
use phaseloop::net::{TcpListener, TcpSocket, TcpStream};
use phaseloop::phase::{Check, Prepare, check};
use phaseloop::{EventLoop, Handle, LoopHandle, spawn};
use tokio_test::assert_pending;

// Connect and accept.

#[test]
fn both_ends_know_both_addresses() {
    run(async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert_eq!(client.peer_addr().unwrap(), address);
        assert_eq!(server.local_addr().unwrap(), address);
        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(server.peer_addr().unwrap(), peer);
        assert!(client.take_error().unwrap().is_none());
        let text = format!("{client:?}");
        assert!(text.contains(&address.to_string()), "{text}");
    });
}

#[test]
fn a_target_is_an_address_a_text_or_a_name() {
    run(async {
        let (listener, address) = listener().await;
        let port = address.port();
        drop(TcpStream::connect(address).await.unwrap());
        drop(TcpStream::connect(address.to_string()).await.unwrap());
        drop(TcpStream::connect(&*address.to_string()).await.unwrap());
        drop(
            TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .await
                .unwrap(),
        );
        drop(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        drop(TcpStream::connect(("localhost", port)).await.unwrap());
        drop(
            TcpStream::connect(format!("localhost:{port}"))
                .await
                .unwrap(),
        );
        let mut incoming = listener.incoming();
        for _ in 0..7 {
            incoming.next().await.unwrap().unwrap();
        }
        assert_pending!(tokio_test::task::spawn(incoming.next()).poll(), "no eighth");
    });
}

#[test]
fn connect_goes_on_to_the_next_address() {
    run(async {
        let (listener, address) = listener().await;
        let (_holder, closed) = closed_port("127.0.0.1:0");
        let targets = [closed, address, closed];
        let client = TcpStream::connect(&targets[..]).await.unwrap();
        assert_eq!(client.peer_addr().unwrap(), address);
        drop(listener);
        let error = TcpStream::connect(&targets[..1]).await;
        assert_eq!(kind(error), Some(ErrorKind::ConnectionRefused));
        let none: &[SocketAddr] = &[];
        assert_eq!(
            kind(TcpStream::connect(none).await),
            Some(ErrorKind::InvalidInput)
        );
    });
}

#[test]
fn bind_goes_on_to_the_next_address() {
    run(async {
        let (_taken, address) = listener().await;
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = TcpListener::bind(&[address, free][..]).await.unwrap();
        assert_ne!(bound.local_addr().unwrap(), address);
        let error = TcpListener::bind(&[address][..]).await;
        assert_eq!(kind(error), Some(ErrorKind::AddrInUse));
    });
}

/// The next `accept` returns the connection that the dropped one did not.
#[test]
fn an_accept_that_is_given_up_loses_no_connection() {
    run(async {
        let (listener, address) = listener().await;
        assert_pending!(tokio_test::task::spawn(listener.accept()).poll());
        let mut waiting = Box::pin(listener.accept());
        assert_pending!(poll_once(&mut waiting).await);
        let client = TcpStream::connect(address).await.unwrap();
        drop(waiting);
        let (_server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    });
}

/// Who gives a connect up leaves no socket behind: the listener finds a connection that has ended
/// already, or none.
#[test]
fn a_connect_that_is_given_up_closes_its_socket() {
    run(async {
        let (listener, address) = listener().await;
        let before = sources();
        let mut connect = Box::pin(TcpStream::connect(address));
        assert_pending!(poll_once(&mut connect).await);
        assert_eq!(sources(), before + 1);
        drop(connect);
        assert_eq!(sources(), before);
        let (mut server, _) = listener.accept().await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn outside_a_loop_the_panic_says_what_to_call() {
    let (ours, _theirs) = std_pair();
    let message = panic_of(|| TcpStream::from_std(ours));
    assert!(message.contains("phaseloop::block_on"), "{message}");
}

// Read and write.

#[test]
fn bytes_arrive_as_they_were_sent_and_then_the_end() {
    run(async {
        let (mut client, mut server) = pair().await;
        // Longer than the socket buffers, so that both sides have to wait.
        let sent: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = sent.clone();
        let writer = spawn(async move {
            client.write_all(&sent).await.unwrap();
            client.flush().await.unwrap();
            drop(client);
        });
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert!(received == expected, "{} bytes", received.len());
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0, "the end stays");
        writer.await.unwrap();
    });
}

#[test]
fn a_half_close_leaves_the_other_direction_open() {
    run(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"question").await.unwrap();
        client.close().await.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "question");
        assert_eq!(
            kind(client.write(b"more").await),
            Some(ErrorKind::BrokenPipe)
        );
        server.write_all(b"answer").await.unwrap();
        server.close().await.unwrap();
        text.clear();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "answer");
    });
}

/// Who waits to read learns that this end gave the direction up.
#[test]
fn a_shutdown_of_reading_is_the_end_for_who_waits() {
    run(async {
        let (client, _server) = pair().await;
        let client = Rc::new(client);
        let reader = client.clone();
        let read = spawn(async move { (&*reader).read(&mut [0; 8]).await.unwrap() });
        check().await;
        assert!(!read.is_finished());
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!(read.await.unwrap(), 0);
    });
}

/// One task reads and another writes on the same stream, through references to it.
#[test]
fn a_reference_reads_while_another_writes() {
    run(async {
        let (client, server) = pair().await;
        let echo = spawn(async move { copy(&server, &server).await.unwrap() });
        let client = Rc::new(client);
        let mut reader = &*client;
        let mut writer = &*client;
        let sent = vec![9; 4_000_000];
        let mut received = vec![0; sent.len()];
        let (written, read) = futures::future::join(
            async {
                writer.write_all(&sent).await?;
                writer.close().await
            },
            reader.read_exact(&mut received),
        )
        .await;
        written.unwrap();
        read.unwrap();
        assert!(received == sent);
        assert_eq!(echo.await.unwrap(), 4_000_000);
    });
}

#[test]
fn peek_leaves_the_bytes_where_they_are() {
    run(async {
        let (mut client, mut theirs) = half_std_pair();
        let mut buffer = [0; 8];
        assert_pending!(tokio_test::task::spawn(client.peek(&mut buffer)).poll());
        theirs.write_all(b"peeked").unwrap();
        for _ in 0..2 {
            assert_eq!(client.peek(&mut buffer).await.unwrap(), 6);
            assert_eq!(&buffer[..6], b"peeked");
        }
        let count = client.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..count], b"peeked");
        drop(theirs);
        assert_eq!(client.peek(&mut buffer).await.unwrap(), 0);
    });
}

#[test]
fn try_read_says_would_block_and_then_reads() {
    run(async {
        let (client, mut theirs) = half_std_pair();
        let mut buffer = [0; 8];
        assert_eq!(
            kind(client.try_read(&mut buffer)),
            Some(ErrorKind::WouldBlock)
        );
        theirs.write_all(b"abc").unwrap();
        client.readable().await.unwrap();
        assert_eq!(client.try_read(&mut buffer[..2]).unwrap(), 2);
        let mut parts = [[0; 1], [0; 1]];
        let [first, second] = &mut parts;
        let mut parts = [IoSliceMut::new(first), IoSliceMut::new(second)];
        assert_eq!(client.try_read_vectored(&mut parts).unwrap(), 1);
        assert_eq!((&buffer[..2], parts[0][0]), (&b"ab"[..], b'c'));
        assert_eq!(
            kind(client.try_read(&mut buffer)),
            Some(ErrorKind::WouldBlock)
        );
        drop(theirs);
        client.readable().await.unwrap();
        assert_eq!(client.try_read(&mut buffer).unwrap(), 0);
    });
}

#[test]
fn try_write_goes_on_until_there_is_no_room() {
    run(async {
        let (client, mut theirs) = half_std_pair();
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"c")];
        assert_eq!(client.try_write_vectored(&parts).unwrap(), 3);
        let total = fill(&client).await;
        assert_pending!(tokio_test::task::spawn(client.writable()).poll());
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).unwrap();
            all
        });
        client.writable().await.unwrap();
        let more = client.try_write(&[8; 100]).unwrap();
        drop(client);
        let all = reader.join().unwrap();
        assert_eq!(&all[..3], b"abc");
        assert_eq!(all.len(), 3 + total + more);
    });
}

#[test]
fn vectored_calls_use_all_buffers() {
    run(async {
        let (mut client, mut server) = pair().await;
        let parts = [
            IoSlice::new(b"one "),
            IoSlice::new(b""),
            IoSlice::new(b"two"),
        ];
        assert_eq!(client.write_vectored(&parts).await.unwrap(), 7);
        let (mut first, mut second) = ([0; 4], [0; 16]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(server.read_vectored(&mut parts).await.unwrap(), 7);
        assert_eq!((&first[..], &second[..3]), (&b"one "[..], &b"two"[..]));
    });
}

// Split and copy.

#[test]
fn two_halves_for_two_tasks() {
    run(async {
        let (client, server) = pair().await;
        let (mut read, mut write) = split(server);
        let echo = spawn(async move {
            let mut text = Vec::new();
            read.read_to_end(&mut text).await.unwrap();
            (read, text)
        });
        // The other direction at the same time; the drop of the half ends it.
        let push = spawn(async move {
            write.write_all(b"pushed").await.unwrap();
            drop(write);
        });
        let mut text = String::new();
        (&client).read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "pushed");
        push.await.unwrap();
        (&client).write_all(b"late").await.unwrap();
        (&client).close().await.unwrap();
        let (read, text) = echo.await.unwrap();
        assert_eq!(text, b"late", "the reading half outlives the other");
        assert!(read.get_ref().local_addr().is_ok(), "and holds the stream");
    });
}

#[test]
fn halves_come_together_again_unless_they_are_strangers() {
    run(async {
        let (mut client, server) = pair().await;
        let (read, write) = split(server);
        let (_other_client, other) = pair().await;
        let (other_read, _other_write) = split(other);
        let others = write.reunite(other_read).unwrap_err();
        assert!(others.to_string().contains("not of one stream"));
        let phaseloop::io::ReuniteError(_other_read, write) = others;
        let mut server = write.reunite(read).unwrap();
        // Neither way ended the direction.
        server.write_all(b"x").await.unwrap();
        let (read, write) = split(server);
        write.forget();
        (&mut read.get_ref()).write_all(b"y").await.unwrap();
        drop(read);
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "xy");
    });
}

#[test]
fn closing_a_half_is_enough_and_happens_once() {
    run(async {
        let (mut client, server) = pair().await;
        let (_read, mut write) = split(server);
        write.close().await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(kind(write.write(b"x").await), Some(ErrorKind::BrokenPipe));
    });
}

/// client – proxy – server: each end is passed on, and each direction counted.
#[test]
fn copy_both_ways_passes_on_bytes_and_ends() {
    run(async {
        let (mut client, proxy_front) = pair().await;
        let (proxy_back, mut server) = pair().await;
        let proxy = spawn(copy_both_ways(proxy_front, proxy_back));
        client.write_all(b"question").await.unwrap();
        client.close().await.unwrap();
        let mut text = String::new();
        server.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "question");
        assert!(!proxy.is_finished(), "the other direction is open");
        server.write_all(b"long answer").await.unwrap();
        server.close().await.unwrap();
        text.clear();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "long answer");
        assert_eq!(proxy.await.unwrap().unwrap(), (8, 11));
    });
}

/// A writer that takes one byte at a time, and one that takes none.
#[test]
fn copy_copes_with_small_steps_and_refuses_none() {
    struct Slow<'a>(&'a RefCell<Vec<u8>>, usize);
    impl AsyncWrite for Slow<'_> {
        fn poll_write(
            self: Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
            buffer: &[u8],
        ) -> Poll<std::io::Result<usize>> {
            let count = self.1.min(buffer.len());
            self.0.borrow_mut().extend(&buffer[..count]);
            cx.waker().wake_by_ref();
            Poll::Ready(Ok(count))
        }
        fn poll_flush(
            self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<std::io::Result<()>> {
            self.0.borrow_mut().push(b'|');
            Poll::Ready(Ok(()))
        }
        fn poll_close(
            self: Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> Poll<std::io::Result<()>> {
            unreachable!("copy leaves the writer open")
        }
    }
    run(async {
        let out = RefCell::default();
        let copied = copy(&b"bytes"[..], Slow(&out, 1)).await;
        assert_eq!((copied.unwrap(), &*out.take()), (5, &b"bytes|"[..]));
        let refused = copy(&b"bytes"[..], Slow(&out, 0)).await;
        assert_eq!(kind(refused), Some(ErrorKind::WriteZero));

        // A pause of the reader flushes what there is.
        let (client, mut theirs) = half_std_pair();
        theirs.write_all(b"ab").unwrap();
        let mut copying = Box::pin(copy(&client, Slow(&out, 8)));
        while !out.borrow().ends_with(b"ab|") {
            assert_pending!(poll_once(&mut copying).await);
            check().await;
        }
        drop(theirs);
        assert_eq!(copying.await.unwrap(), 2);
    });
}

/// A listener of the standard library as a plain source, and the poll functions of one.
#[test]
fn a_source_of_any_socket() {
    run(async {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Source::new(&LoopHandle::current(), listener).unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.read_with(net::TcpListener::accept).await.unwrap();
        server.set_nonblocking(true).unwrap();
        let server = Source::new(&LoopHandle::current(), server).unwrap();
        std::future::poll_fn(|cx| server.poll_writable(cx))
            .await
            .unwrap();
        let write = |mut stream: &net::TcpStream| stream.write(b"from a source");
        let count = std::future::poll_fn(|cx| server.poll_write_with(cx, write)).await;
        let mut buffer = [0; 32];
        let read = client.read(&mut buffer).await.unwrap();
        assert_eq!(
            (count.unwrap(), &buffer[..read]),
            (13, &b"from a source"[..])
        );
        client.write_all(b"back").await.unwrap();
        std::future::poll_fn(|cx| server.poll_readable(cx))
            .await
            .unwrap();
        let read = |mut stream: &net::TcpStream| stream.read(&mut buffer);
        let mut read = Some(read);
        let count = std::future::poll_fn(|cx| server.poll_read_with(cx, read.as_mut().unwrap()));
        assert_eq!(count.await.unwrap(), 4);
        let mut server = server.into_inner();
        server.write_all(b"off the loop").unwrap();
        assert_eq!(client.read(&mut buffer).await.unwrap(), 12);
    });
}

// In and out of the standard library.

/// Whether calls of the stream block; `None` if the system does not report it.
fn is_blocking(stream: &net::TcpStream) -> Option<bool> {
    #[cfg(unix)]
    {
        let flags = rustix::fs::fcntl_getfl(stream).unwrap();
        Some(!flags.contains(rustix::fs::OFlags::NONBLOCK))
    }
    #[cfg(not(unix))]
    {
        let _ = stream;
        None
    }
}

#[test]
fn from_std_and_into_std_keep_the_connection() {
    run(async {
        let before = sources();
        let (ours, mut theirs) = std_pair();
        assert_ne!(is_blocking(&ours), Some(false));
        let mut stream = TcpStream::from_std(ours).unwrap();
        assert_ne!(is_blocking(stream.get_ref()), Some(true));
        theirs.write_all(b"1").unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
        assert_eq!(sources(), before + 1);
        let mut ours = stream.into_std();
        assert_eq!(sources(), before);
        assert_ne!(is_blocking(&ours), Some(true), "it stays non-blocking");
        ours.write_all(b"2").unwrap();
        theirs.read_exact(&mut [0]).unwrap();
        // And on the loop again.
        let mut stream = TcpStream::from_std(ours).unwrap();
        drop(theirs);
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    });
}

#[test]
fn a_listener_moves_in_and_out() {
    run(async {
        let std_listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = std_listener.local_addr().unwrap();
        let listener = TcpListener::from_std(std_listener).unwrap();
        let _first = TcpStream::connect(address).await.unwrap();
        listener.accept().await.unwrap();
        let std_listener = listener.into_std();
        assert_eq!(kind(std_listener.accept()), Some(ErrorKind::WouldBlock));
        let _second = TcpStream::connect(address).await.unwrap();
        std_listener.set_nonblocking(false).unwrap();
        std_listener.accept().unwrap();
    });
}

// Options.

#[test]
fn options_are_read_back() {
    run(async {
        let (client, _server) = pair().await;
        for on in [true, false] {
            client.set_nodelay(on).unwrap();
            assert_eq!(client.nodelay().unwrap(), on);
        }
        client.set_ttl(17).unwrap();
        assert_eq!(client.ttl().unwrap(), 17);
        for linger in [Some(ms(2000)), None] {
            client.set_linger(linger).unwrap();
            assert_eq!(client.linger().unwrap(), linger);
        }
        let (listener, _) = listener().await;
        listener.set_ttl(18).unwrap();
        assert_eq!(listener.ttl().unwrap(), 18);
        let text = format!("{listener:?}");
        assert!(text.contains("127.0.0.1:"), "{text}");
    });
}

#[test]
fn options_set_before_the_connect_hold_after_it() {
    run(async {
        let (_listener, address) = listener().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_send_buffer_size(20_000).unwrap();
        socket.set_recv_buffer_size(30_000).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let local = socket.local_addr().unwrap();
        assert_ne!(local.port(), 0);
        assert!(format!("{socket:?}").contains(&local.to_string()));
        let stream = socket.connect(address).await.unwrap();
        assert_eq!(stream.local_addr().unwrap(), local);
        assert!(stream.nodelay().unwrap());
        assert!(stream.send_buffer_size().unwrap() >= 20_000);
        assert!(stream.recv_buffer_size().unwrap() >= 30_000);
    });
}

// Reset, close, drop.

#[test]
fn a_reset_is_an_error_for_the_peer() {
    run(async {
        let (client, mut server) = pair().await;
        client.reset().unwrap().await;
        let read = server.read(&mut [0; 8]).await;
        assert_eq!(kind(read), Some(ErrorKind::ConnectionReset));
    });
}

/// Closed in the poll phase, the stream is gone for its peer at once, and reported in the closing
/// phase of the turn.
#[test]
fn close_now_is_reported_in_the_closing_phase() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    run_on(&mut event_loop, async {
        let (mut stream, mut theirs) = half_std_pair();
        let (prepare, after) = (Prepare::new(&handle), Check::new(&handle));
        theirs.write_all(b"x").unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 1);
        prepare.start(trace.on("prepare")).unwrap();
        after.start(trace.on("check")).unwrap();
        let close = stream.close_now();
        assert_eq!(
            theirs.read(&mut [0; 8]).unwrap(),
            0,
            "its descriptor is closed"
        );
        trace.log("close");
        close.await;
        trace.log("closed");
    });
    assert_eq!(trace.take(), "close check closed");
}

#[test]
fn a_closed_listener_refuses_connections() {
    run(async {
        let (listener, address) = listener().await;
        listener.close().await;
        let refused = TcpStream::connect(address).await;
        assert_eq!(kind(refused), Some(ErrorKind::ConnectionRefused));
    });
}

/// A waker that was left with the stream is not called when the stream goes.
#[test]
fn a_drop_wakes_nobody() {
    for close in [false, true] {
        run(async {
            let handle = LoopHandle::current();
            let (mut client, mut theirs) = half_std_pair();
            fill(&client).await;
            let woken = Rc::new(Cell::new(0));
            let (count, mut buffer) = (woken.clone(), [0; 8]);
            let mut read = tokio_test::task::spawn(());
            read.enter(|cx, _| {
                assert_pending!(Pin::new(&mut client).poll_read(cx, &mut buffer));
            });
            let mut write = tokio_test::task::spawn(());
            write.enter(|cx, _| {
                assert_pending!(Pin::new(&mut client).poll_write(cx, b"x"));
            });
            assert!(client.is_active());
            let keepers = handle.keepers();
            if close {
                client.close_now().then(move || count.set(1));
            } else {
                drop(client);
            }
            assert!(
                handle.keepers() != keepers,
                "it keeps the loop alive no more"
            );
            // The peer sees the end, after some turns of the loop have passed.
            std::io::copy(&mut theirs, &mut std::io::sink()).unwrap();
            check().await;
            check().await;
            assert!(!read.is_woken() && !write.is_woken());
            assert_eq!(woken.get() == 1, close);
        });
    }
}

/// A task that is aborted while it reads takes its stream along.
#[test]
fn an_aborted_reader_closes_its_stream() {
    run(async {
        let before = sources();
        let (mut client, mut theirs) = half_std_pair();
        let task = spawn(async move { client.read(&mut [0; 8]).await });
        check().await;
        assert_eq!(sources(), before + 1);
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0);
        assert_eq!(sources(), before);
    });
}

/// A future that takes a stream and reads from it holds the stream twice.
#[test]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn a_stream_takes_six_words_and_two_in_tests() {
    // Without `test-util` it is six, which the crate asserts when it is compiled.
    let word = size_of::<usize>();
    assert_eq!(size_of::<TcpStream>(), 8 * word);
}
