//! TCP in memory gives the same results as over the kernel's loopback interface.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use futures::future::join;
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use phaseloop::fs::File;
use phaseloop::net::{Keepalive, TcpListener, TcpSocket, TcpStream};
use phaseloop::spawn;

use crate::both::{Log, scripts};
use crate::util::polls::poll_once;

scripts! { 40,
    bytes_come_back_from_an_echo,
    a_half_close_ends_one_direction,
    a_drop_is_the_end_of_the_stream,
    bytes_come_before_the_end,
    a_write_after_the_own_end_is_a_broken_pipe,
    reads_after_the_own_shutdown_find_the_end,
    bytes_that_have_arrived_are_read_after_a_shutdown,
    a_shutdown_of_both_directions_ends_both,
    a_shutdown_may_be_repeated_until_both_have_ended,
    a_close_with_unread_bytes_resets_the_peer,
    a_reset_comes_behind_the_bytes,
    a_reset_is_told_once_to_a_reader,
    a_waiting_read_is_ended_by_a_reset,
    no_listener_refuses,
    a_listener_that_is_gone_refuses,
    a_listener_resets_what_it_has_not_accepted,
    connections_are_accepted_in_their_order,
    an_accepted_connection_knows_its_peer,
    a_wildcard_listener_hears_all_addresses,
    the_unspecified_address_is_this_host,
    a_taken_port_is_in_use,
    a_closed_port_is_free_again,
    a_foreign_address_cannot_be_bound,
    a_bound_socket_connects_from_its_port,
    an_unbound_socket_listens_on_a_free_port,
    a_socket_is_bound_once,
    an_address_of_the_other_family_is_refused,
    many_bytes_pass_a_small_window,
    both_directions_move_at_the_same_time,
    an_end_is_found_after_much_data,
    options_are_returned_as_they_were_set,
    bad_options_are_refused,
    incoming_is_a_stream_of_connections,
    a_listener_outlives_its_connections,
    ipv6_works_alike,
    a_listener_of_ipv6_serves_ipv4,
    a_listener_of_ipv6_alone_does_not,
    two_listeners_share_a_port_if_both_want,
    a_waiting_write_is_ended_by_a_reset,
    sockets_close_in_the_closing_phase,
    a_client_that_has_gone_is_still_accepted,
    a_poll_of_accept_keeps_its_waker,
    options_of_a_socket_are_returned,
    readiness_of_either_direction_is_returned,
    a_file_is_sent,
}

scripts! { 0,
    bytes_for_a_socket_that_was_shut_down_reset_it,
    a_reset_is_told_once_to_a_writer,
    a_write_to_a_closed_peer_breaks_the_next,
    a_peek_leaves_the_bytes,
    a_peek_finds_the_end,
    an_attempt_to_read_would_block,
    a_full_window_would_block,
    vectored_calls_use_all_buffers,
    attempts_with_several_buffers,
    empty_buffers_move_nothing,
    an_empty_read_waits_for_data,
    empty_lists_of_buffers_look_at_nothing,
    a_pending_error_is_taken_once,
    readiness_tells_of_data_and_end,
    an_ended_connection_has_no_peer,
}

mod scripts {
    use super::*;

    pub(super) async fn a_file_is_sent(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (client, mut server) = (client.unwrap(), listener.accept().await.unwrap().0);
        let file = File::open("Cargo.toml").await.unwrap();
        let expected = std::fs::read("Cargo.toml").unwrap();
        let send = async {
            log.result("sent", client.send_file(&file, 1..).await);
            drop(client);
        };
        let mut bytes = Vec::new();
        join(send, server.read_to_end(&mut bytes)).await.1.unwrap();
        log.line(bytes == expected[1..]);
    }

    pub(super) async fn a_poll_of_accept_keeps_its_waker(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepts = spawn(async move {
            let mut peers = Vec::new();
            for _ in 0..3 {
                let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                peers.push(accepted.unwrap().1);
            }
            peers
        });
        let mut clients = Vec::new();
        for _ in 0..3 {
            let client = TcpStream::connect(address).await.unwrap();
            clients.push(client.local_addr().unwrap());
        }
        log.line(accepts.await.unwrap() == clients);
    }

    pub(super) async fn options_of_a_socket_are_returned(log: Log) {
        let socket = TcpSocket::new_v4().unwrap();
        log.result("reuseaddr", socket.reuseaddr());
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        log.result("reuseaddr", socket.reuseaddr());
        log.result("reuseport", socket.reuseport());
        log.result("nodelay", socket.nodelay());
        log.result("keepalive", socket.keepalive());
        log.result(
            "set_linger",
            socket.set_linger(Some(Duration::from_secs(2))),
        );
        log.result("linger", socket.linger());
        log.result("set_tos", socket.set_tos_v4(0x10));
        log.result("tos", socket.tos());
        log.result(
            "take_error",
            socket.take_error().map(|error| error.is_none()),
        );
    }

    /// Under seeds, a socket that is ready may count as not ready for a while.
    pub(super) async fn readiness_of_either_direction_is_returned(log: Log) {
        use phaseloop::io::Interest;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connect = TcpStream::connect(listener.local_addr().unwrap());
        let (client, server) = join(connect, listener.accept()).await;
        let (client, (mut server, _)) = (client.unwrap(), server.unwrap());
        log.line(
            client
                .ready(Interest::WRITABLE)
                .await
                .unwrap()
                .is_writable(),
        );
        server.write_all(b"x").await.unwrap();
        std::future::poll_fn(|cx| client.poll_read_ready(cx))
            .await
            .unwrap();
        let mut byte = [0];
        let read = async {
            loop {
                let ready = client.ready(Interest::READABLE).await.unwrap();
                assert!(ready.is_readable());
                match client.try_read(&mut byte) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => break read,
                }
            }
        };
        log.result("read", read.await);
        std::future::poll_fn(|cx| client.poll_write_ready(cx))
            .await
            .unwrap();
        drop(server);
        log.line(
            client
                .ready(Interest::READABLE)
                .await
                .unwrap()
                .is_readable(),
        );
    }

    /// Returns a client, the server's end, and the listener.
    async fn connected() -> (TcpStream, TcpStream, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (server, _) = listener.accept().await.unwrap();
        (client.unwrap(), server, listener)
    }

    async fn read_all(log: &Log, what: &str, stream: &mut TcpStream) {
        let mut bytes = Vec::new();
        let result = stream.read_to_end(&mut bytes).await;
        log.result(what, result);
        log.line(format!("{what}: {}", String::from_utf8_lossy(&bytes)));
    }

    async fn read_some(log: &Log, what: &str, stream: &mut TcpStream) {
        log.result(what, stream.read(&mut [0; 64]).await);
    }

    pub(super) async fn bytes_come_back_from_an_echo(log: Log) {
        let (mut client, server, _listener) = connected().await;
        let echo = spawn(async move { phaseloop::io::copy(&server, &mut &server).await });
        for text in ["one", "two", "three"] {
            client.write_all(text.as_bytes()).await.unwrap();
            let mut answer = vec![0; text.len()];
            client.read_exact(&mut answer).await.unwrap();
            log.line(String::from_utf8(answer).unwrap());
        }
        drop(client);
        log.result("echoed", echo.await.unwrap());
    }

    pub(super) async fn a_half_close_ends_one_direction(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        client.write_all(b"question").await.unwrap();
        client.close().await.unwrap();
        read_all(&log, "server", &mut server).await;
        log.result("answer", server.write_all(b"answer").await);
        server.close().await.unwrap();
        read_all(&log, "client", &mut client).await;
    }

    pub(super) async fn a_drop_is_the_end_of_the_stream(log: Log) {
        let (client, mut server, _listener) = connected().await;
        drop(client);
        read_some(&log, "first", &mut server).await;
        read_some(&log, "again", &mut server).await;
    }

    pub(super) async fn bytes_come_before_the_end(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        client.write_all(b"last words").await.unwrap();
        drop(client);
        read_all(&log, "server", &mut server).await;
    }

    pub(super) async fn a_write_after_the_own_end_is_a_broken_pipe(log: Log) {
        let (mut client, _server, _listener) = connected().await;
        client.close().await.unwrap();
        for _ in 0..2 {
            log.result("write", client.write(b"more").await);
        }
    }

    pub(super) async fn reads_after_the_own_shutdown_find_the_end(log: Log) {
        let (mut client, _server, _listener) = connected().await;
        log.result("shutdown", client.shutdown(Shutdown::Read));
        read_some(&log, "read", &mut client).await;
        log.result("write", client.write(b"x").await);
    }

    pub(super) async fn bytes_that_have_arrived_are_read_after_a_shutdown(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        server.write_all(b"early").await.unwrap();
        client.readable().await.unwrap();
        client.shutdown(Shutdown::Read).unwrap();
        read_all(&log, "client", &mut client).await;
    }

    pub(super) async fn a_shutdown_of_both_directions_ends_both(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        log.result("shutdown", client.shutdown(Shutdown::Both));
        log.result("write", client.write(b"x").await);
        read_some(&log, "client", &mut client).await;
        read_some(&log, "server", &mut server).await;
    }

    pub(super) async fn bytes_for_a_socket_that_was_shut_down_reset_it(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        log.result("shutdown", client.shutdown(Shutdown::Both));
        log.result("first write", server.write(b"x").await);
        read_some(&log, "client", &mut client).await;
        read_some(&log, "client", &mut client).await;
        log.result("next write", server.write(b"x").await);
        read_some(&log, "server", &mut server).await;
        log.result("peer", client.peer_addr().map(drop));
        log.result("peer", server.peer_addr().map(drop));
    }

    pub(super) async fn a_shutdown_may_be_repeated_until_both_have_ended(log: Log) {
        let (client, mut server, _listener) = connected().await;
        log.result("first", client.shutdown(Shutdown::Write));
        log.result("second", client.shutdown(Shutdown::Write));
        read_some(&log, "server", &mut server).await;
        log.result("server", server.shutdown(Shutdown::Write));
        log.result("third", client.shutdown(Shutdown::Write));
        log.result("server again", server.shutdown(Shutdown::Both));
    }

    pub(super) async fn a_close_with_unread_bytes_resets_the_peer(log: Log) {
        let (mut client, server, _listener) = connected().await;
        client.write_all(b"unread").await.unwrap();
        server.readable().await.unwrap();
        drop(server);
        read_some(&log, "first", &mut client).await;
        read_some(&log, "then", &mut client).await;
        log.result("write", client.write(b"x").await);
    }

    pub(super) async fn a_reset_comes_behind_the_bytes(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        server.write_all(b"answer").await.unwrap();
        log.result("reset", server.reset().map(drop));
        let mut answer = [0; 6];
        log.result("bytes", client.read_exact(&mut answer).await);
        read_some(&log, "then", &mut client).await;
        read_some(&log, "at last", &mut client).await;
    }

    pub(super) async fn a_reset_is_told_once_to_a_reader(log: Log) {
        let (mut client, server, _listener) = connected().await;
        drop(server.reset());
        read_some(&log, "first", &mut client).await;
        read_some(&log, "then", &mut client).await;
        log.result("write", client.write(b"x").await);
        log.result("shutdown", client.shutdown(Shutdown::Write));
    }

    pub(super) async fn a_reset_is_told_once_to_a_writer(log: Log) {
        let (client, server, _listener) = connected().await;
        drop(server.reset());
        client.readable().await.unwrap();
        log.result("first", client.try_write(b"x"));
        log.result("then", client.try_write(b"x"));
        log.result("read", client.try_read(&mut [0; 8]));
    }

    pub(super) async fn a_write_to_a_closed_peer_breaks_the_next(log: Log) {
        let (client, server, _listener) = connected().await;
        drop(server);
        client.readable().await.unwrap();
        log.result("first", client.try_write(b"x"));
        log.result("second", client.try_write(b"x"));
        log.result("third", client.try_write(b"x"));
        log.result("read", client.try_read(&mut [0; 8]));
    }

    pub(super) async fn a_waiting_read_is_ended_by_a_reset(log: Log) {
        let (mut client, server, _listener) = connected().await;
        let reading = spawn(async move { client.read(&mut [0; 8]).await });
        phaseloop::task::yield_now().await;
        drop(server.reset());
        log.result("read", reading.await.unwrap());
    }

    pub(super) async fn a_waiting_write_is_ended_by_a_reset(log: Log) {
        let (mut client, server, _listener) = connected().await;
        let writing = spawn(async move { client.write_all(&vec![0; 50_000_000]).await });
        phaseloop::time::sleep(Duration::from_millis(5)).await;
        drop(server.reset());
        log.result("write", writing.await.unwrap());
    }

    pub(super) async fn no_listener_refuses(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let refused = TcpStream::connect(address).await;
        log.result("connect", refused.map(drop));
    }

    pub(super) async fn a_listener_that_is_gone_refuses(log: Log) {
        let (mut client, mut server, listener) = connected().await;
        let address = listener.local_addr().unwrap();
        listener.close().await;
        log.result("connect", TcpStream::connect(address).await.map(drop));
        server.write_all(b"still here").await.unwrap();
        drop(server);
        read_all(&log, "client", &mut client).await;
    }

    pub(super) async fn a_listener_resets_what_it_has_not_accepted(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        drop(listener);
        read_some(&log, "read", &mut client).await;
    }

    pub(super) async fn connections_are_accepted_in_their_order(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = Vec::new();
        for number in 0..5_u8 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(&[number]).await.unwrap();
            clients.push(client);
        }
        for _ in 0..5 {
            let (mut server, _) = listener.accept().await.unwrap();
            let mut number = [0];
            server.read_exact(&mut number).await.unwrap();
            log.line(number[0]);
        }
    }

    pub(super) async fn an_accepted_connection_knows_its_peer(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        log.line(client.peer_addr().unwrap() == address);
        log.line(client.local_addr().unwrap() == peer);
        log.line(server.peer_addr().unwrap() == peer);
        log.line(server.local_addr().unwrap() == address);
        log.line(peer.ip());
        log.line(peer.port() != address.port());
    }

    pub(super) async fn a_wildcard_listener_hears_all_addresses(log: Log) {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let local = listener.local_addr().unwrap();
        log.line(local.ip());
        for ip in ["127.0.0.1", "127.0.0.2"] {
            let to = SocketAddr::new(ip.parse().unwrap(), local.port());
            let client = TcpStream::connect(to).await.unwrap();
            let (server, peer) = listener.accept().await.unwrap();
            log.line(server.local_addr().unwrap().ip());
            log.line(peer == client.local_addr().unwrap());
        }
    }

    pub(super) async fn the_unspecified_address_is_this_host(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("0.0.0.0", port)).await;
        log.result(
            "peer",
            client.and_then(|client| Ok(client.peer_addr()?.ip())),
        );
    }

    pub(super) async fn a_taken_port_is_in_use(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        log.result("same", TcpListener::bind(address).await.map(drop));
        let wildcard = TcpListener::bind(("0.0.0.0", address.port())).await;
        log.result("wildcard", wildcard.map(drop));
        let other = TcpListener::bind(("127.0.0.2", address.port())).await;
        log.result("other address", other.map(drop));
    }

    pub(super) async fn a_closed_port_is_free_again(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        log.result("again", TcpListener::bind(address).await.map(drop));
    }

    pub(super) async fn a_foreign_address_cannot_be_bound(log: Log) {
        log.result("bind", TcpListener::bind("203.0.113.7:0").await.map(drop));
    }

    pub(super) async fn a_bound_socket_connects_from_its_port(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let bound = socket.local_addr().unwrap();
        let client = socket
            .connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (_server, peer) = listener.accept().await.unwrap();
        log.line(peer == bound && client.local_addr().unwrap() == bound);
    }

    pub(super) async fn an_unbound_socket_listens_on_a_free_port(log: Log) {
        let socket = TcpSocket::new_v4().unwrap();
        log.result("before", socket.local_addr());
        let listener = socket.listen(8).unwrap();
        let local = listener.local_addr().unwrap();
        log.line(local.ip());
        log.line(local.port() > 1023);
        let client = TcpStream::connect(("127.0.0.1", local.port())).await;
        log.result("connect", client.map(drop));
    }

    pub(super) async fn a_socket_is_bound_once(log: Log) {
        let socket = TcpSocket::new_v4().unwrap();
        log.result("first", socket.bind(([127, 0, 0, 1], 0).into()));
        log.result("second", socket.bind(([127, 0, 0, 1], 0).into()));
    }

    pub(super) async fn an_address_of_the_other_family_is_refused(log: Log) {
        let socket = TcpSocket::new_v6().unwrap();
        log.result("bind", socket.bind(([127, 0, 0, 1], 0).into()));
    }

    pub(super) async fn a_peek_leaves_the_bytes(log: Log) {
        let (mut client, server, _listener) = connected().await;
        client.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 3];
        for _ in 0..2 {
            log.result("peek", server.peek(&mut buffer).await);
            log.line(String::from_utf8_lossy(&buffer));
        }
        let mut whole = [0; 16];
        log.result("read", server.try_read(&mut whole));
        log.line(String::from_utf8_lossy(&whole[..5]));
    }

    pub(super) async fn a_peek_finds_the_end(log: Log) {
        let (client, server, _listener) = connected().await;
        drop(client);
        log.result("peek", server.peek(&mut [0; 8]).await);
        log.result("again", server.peek(&mut [0; 8]).await);
    }

    pub(super) async fn an_attempt_to_read_would_block(log: Log) {
        let (mut client, server, _listener) = connected().await;
        log.result("nothing", server.try_read(&mut [0; 8]));
        client.write_all(b"hello").await.unwrap();
        server.readable().await.unwrap();
        log.result("some", server.try_read(&mut [0; 3]));
        log.result("rest", server.try_read(&mut [0; 8]));
        log.result("nothing", server.try_read(&mut [0; 8]));
        drop(client);
        server.readable().await.unwrap();
        log.result("end", server.try_read(&mut [0; 8]));
    }

    pub(super) async fn a_full_window_would_block(log: Log) {
        let (client, mut server, _listener) = connected().await;
        let piece = [7; 4096];
        let mut written = 0;
        let error = loop {
            match client.try_write(&piece) {
                Ok(count) => written += count,
                Err(error) => break error,
            }
        };
        log.result::<()>("full", Err(error));
        log.line(written >= 64 * 1024);
        let mut buffer = vec![0; written];
        server.read_exact(&mut buffer).await.unwrap();
        log.line(buffer.iter().all(|byte| *byte == 7));
        client.writable().await.unwrap();
        log.line(client.try_write(&piece).is_ok());
    }

    pub(super) async fn vectored_calls_use_all_buffers(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        let parts = [
            IoSlice::new(b"ab"),
            IoSlice::new(b""),
            IoSlice::new(b"cdef"),
        ];
        log.result("write", client.write_vectored(&parts).await);
        let (mut one, mut two) = ([0; 1], [0; 8]);
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        server.readable().await.unwrap();
        log.result("read", server.read_vectored(&mut parts).await);
        log.line(format!("{one:?} {two:?}"));
    }

    pub(super) async fn attempts_with_several_buffers(log: Log) {
        let (client, server, _listener) = connected().await;
        let (mut one, mut two) = ([0; 2], [0; 2]);
        let mut parts = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        log.result("nothing", server.try_read_vectored(&mut parts));
        let sent = [IoSlice::new(b"x"), IoSlice::new(b"yz")];
        log.result("write", client.try_write_vectored(&sent));
        server.readable().await.unwrap();
        log.result("read", server.try_read_vectored(&mut parts));
        log.line(format!("{one:?} {two:?}"));
    }

    pub(super) async fn empty_buffers_move_nothing(log: Log) {
        let (mut client, server, _listener) = connected().await;
        log.result("write", client.write(b"").await);
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        log.result("read", server.try_read(&mut []));
        log.result("read", server.try_read(&mut [0; 8]));
    }

    pub(super) async fn an_empty_read_waits_for_data(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        log.result("attempt", server.try_read(&mut []));
        log.line(poll_once(server.read(&mut [])).await.is_pending());
        client.write_all(b"x").await.unwrap();
        log.result("read", server.read(&mut []).await);
        read_some(&log, "the byte", &mut server).await;
        drop(client);
        log.result("at the end", server.read(&mut []).await);
    }

    pub(super) async fn empty_lists_of_buffers_look_at_nothing(log: Log) {
        let (mut client, server, _listener) = connected().await;
        log.result("read", server.try_read_vectored(&mut []));
        client.close().await.unwrap();
        log.result("write", client.try_write_vectored(&[]));
        log.result("write", client.try_write_vectored(&[IoSlice::new(b"")]));
        log.result("plain", client.try_write(b""));
    }

    pub(super) async fn many_bytes_pass_a_small_window(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        let sent: Vec<u8> = (0..150_000_u32).map(|n| (n % 251) as u8).collect();
        let copy = sent.clone();
        let writer = spawn(async move {
            client.write_all(&copy).await?;
            client.close().await
        });
        let mut got = Vec::new();
        log.result("read", server.read_to_end(&mut got).await);
        log.line(got == sent);
        log.result("write", writer.await.unwrap());
    }

    pub(super) async fn both_directions_move_at_the_same_time(log: Log) {
        async fn exchange(mut stream: TcpStream, byte: u8) -> (io::Result<()>, usize) {
            let data = vec![byte; 80_000];
            let (mut reader, mut writer) = (&stream, &stream);
            let write = async {
                writer.write_all(&data).await?;
                writer.close().await
            };
            let mut got = Vec::new();
            let (written, read) = join(write, reader.read_to_end(&mut got)).await;
            assert!(stream.flush().await.is_ok());
            (written, read.unwrap())
        }
        let (client, server, _listener) = connected().await;
        let (one, two) = join(exchange(client, 1), exchange(server, 2)).await;
        log.line(format!("{:?} {}", one.0.is_ok(), one.1));
        log.line(format!("{:?} {}", two.0.is_ok(), two.1));
    }

    pub(super) async fn an_end_is_found_after_much_data(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        client.write_all(&[1; 30_000]).await.unwrap();
        drop(client);
        let mut got = Vec::new();
        log.result("read", server.read_to_end(&mut got).await);
    }

    pub(super) async fn options_are_returned_as_they_were_set(log: Log) {
        let (client, server, listener) = connected().await;
        log.result("nodelay", client.nodelay());
        client.set_nodelay(true).unwrap();
        log.result("nodelay", client.nodelay());
        log.result("other end", server.nodelay());
        log.result("ttl", client.ttl());
        client.set_ttl(9).unwrap();
        log.result("ttl", client.ttl());
        listener.set_ttl(11).unwrap();
        log.result("ttl of the listener", listener.ttl());
        log.result("linger", client.linger());
        client.set_linger(Some(Duration::from_secs(3))).unwrap();
        log.result("linger", client.linger());
        client.set_linger(None).unwrap();
        log.result("keep-alive", client.keepalive());
        let keepalive = Keepalive::after(Duration::from_secs(9));
        client.set_keepalive(Some(keepalive)).unwrap();
        log.result("keep-alive", client.keepalive());
        client.set_keepalive(None).unwrap();
        log.result("keep-alive", client.keepalive());
        client.set_recv_buffer_size(20_000).unwrap();
        log.line(client.recv_buffer_size().unwrap() >= 20_000);
        client.set_send_buffer_size(20_000).unwrap();
        log.line(client.send_buffer_size().unwrap() >= 20_000);
    }

    pub(super) async fn bad_options_are_refused(log: Log) {
        let (client, _server, _listener) = connected().await;
        log.result("ttl", client.set_ttl(0));
        log.result("ttl", client.set_ttl(256));
        let keepalive = Keepalive::after(Duration::ZERO);
        log.result("keep-alive", client.set_keepalive(Some(keepalive)));
    }

    pub(super) async fn a_pending_error_is_taken_once(log: Log) {
        let (client, server, _listener) = connected().await;
        log.result("none", client.take_error());
        drop(server.reset());
        client.readable().await.unwrap();
        let error = client.take_error().unwrap();
        log.line(format!("{:?}", error.map(|error| error.kind())));
        log.result("none", client.take_error());
        log.result("read", client.try_read(&mut [0; 8]));
        log.result("write", client.try_write(b"x"));
    }

    pub(super) async fn readiness_tells_of_data_and_end(log: Log) {
        let (mut client, server, _listener) = connected().await;
        server.writable().await.unwrap();
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        log.result("data", server.try_read(&mut [0; 8]));
        log.result("nothing", server.try_read(&mut [0; 8]));
        client.close().await.unwrap();
        server.readable().await.unwrap();
        log.result("end", server.try_read(&mut [0; 8]));
        server.readable().await.unwrap();
        log.result("end again", server.try_read(&mut [0; 8]));
    }

    pub(super) async fn an_ended_connection_has_no_peer(log: Log) {
        let (mut client, mut server, _listener) = connected().await;
        client.close().await.unwrap();
        log.line(client.peer_addr().is_ok());
        read_some(&log, "server", &mut server).await;
        server.close().await.unwrap();
        read_some(&log, "client", &mut client).await;
        log.result("client", client.peer_addr());
        log.result("server", server.peer_addr());
        log.line(client.local_addr().is_ok());
    }

    pub(super) async fn incoming_is_a_stream_of_connections(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).await.unwrap();
        let server = listener.incoming().next().await.unwrap().unwrap();
        log.line(server.peer_addr().unwrap() == client.local_addr().unwrap());
    }

    pub(super) async fn a_listener_outlives_its_connections(log: Log) {
        let (client, server, listener) = connected().await;
        drop((client, server));
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"again").await.unwrap();
        drop(server);
        read_all(&log, "client", &mut client).await;
    }

    pub(super) async fn a_client_that_has_gone_is_still_accepted(log: Log) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"bye").await.unwrap();
        drop(client);
        let (mut server, _) = listener.accept().await.unwrap();
        read_all(&log, "server", &mut server).await;
    }

    pub(super) async fn ipv6_works_alike(log: Log) {
        let listener = TcpListener::bind("[::1]:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, peer) = listener.accept().await.unwrap();
        log.line(peer.ip());
        server.write_all(b"six").await.unwrap();
        drop(server);
        read_all(&log, "client", &mut client).await;
    }

    pub(super) async fn a_listener_of_ipv6_serves_ipv4(log: Log) {
        let listener = TcpListener::bind("[::]:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        log.line(peer.ip());
        log.line(server.local_addr().unwrap().ip());
        log.line(client.peer_addr().unwrap().ip());
    }

    pub(super) async fn a_listener_of_ipv6_alone_does_not(log: Log) {
        let socket = TcpSocket::new_v6().unwrap();
        socket.set_only_v6(true).unwrap();
        socket.bind("[::]:0".parse().unwrap()).unwrap();
        let listener = socket.listen(8).unwrap();
        let port = listener.local_addr().unwrap().port();
        let four = TcpStream::connect(("127.0.0.1", port)).await;
        log.result("IPv4", four.map(drop));
        log.result("IPv6", TcpStream::connect(("::1", port)).await.map(drop));
        let other = TcpSocket::new_v4().unwrap();
        log.result("option", other.set_only_v6(true));
    }

    pub(super) async fn two_listeners_share_a_port_if_both_want(log: Log) {
        let listen = |port, shares| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_reuse_port(shares).unwrap();
            socket.bind(([127, 0, 0, 1], port).into())?;
            socket.listen(8)
        };
        let one = listen(0, true).unwrap();
        let port = one.local_addr().unwrap().port();
        let two = listen(port, true);
        log.line(two.is_ok());
        log.result("not shared", listen(port, false).map(drop));
        log.result(
            "connect",
            TcpStream::connect(("127.0.0.1", port)).await.map(drop),
        );
    }

    pub(super) async fn sockets_close_in_the_closing_phase(log: Log) {
        let (client, mut server, listener) = connected().await;
        client.close_now().await;
        listener.close().await;
        read_some(&log, "server", &mut server).await;
    }
}
