//! Sockets that move between loops (C13).

use crate::util::tcp::{listener, pair, run};
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc;
use std::thread;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{Detached, TcpListener, TcpStream, UdpSocket};
use phaseloop::{EventLoop, Handle, LoopHandle};

fn is_send<T: Send>(value: T) -> T {
    value
}

// C13: what reports and the loop know of a socket goes along.
#[test]
fn a_moved_socket_keeps_its_line_its_name_and_whether_it_keeps_the_loop_alive() {
    run(async {
        let (listener, address) = listener().await;
        let client = TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let line = server.created_at();
        client.unref();
        let names = || {
            let handles = LoopHandle::current().handles();
            let mut names: Vec<_> = handles.iter().map(ToString::to_string).collect();
            names.sort();
            names
        };
        let before = names();
        let (client, server) = (is_send(client.detach()), is_send(server.detach()));
        assert_eq!(names().len(), before.len() - 2, "they are deregistered");
        assert_eq!(server.created_at(), line);
        let (client, server) = (client.attach().unwrap(), server.attach().unwrap());
        assert_eq!(names(), before);
        assert!(!client.has_ref() && server.has_ref());
        assert_eq!(server.created_at(), line);
    });
}

// C13: a connection that was never registered here is one that was accepted.
#[test]
fn an_accepted_socket_is_registered_by_its_first_loop() {
    run(async {
        let (listener, address) = listener().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let before = LoopHandle::current().handles().len();
        let (server, peer) = listener.accept_detached().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert_eq!(LoopHandle::current().handles().len(), before);
        let mut server = server.attach().unwrap();
        let handles = LoopHandle::current().handles();
        let arrow = format!("{address} ← {peer}");
        assert!(
            handles.iter().any(|info| info.name.contains(&arrow)),
            "{handles:?}"
        );
        client.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 5];
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"hello");
    });
}

// C13: a `Detached` that is dropped closes the socket, on whatever thread.
#[test]
fn a_detached_socket_that_is_dropped_is_closed() {
    run(async {
        let (mut client, server) = pair().await;
        let detached = server.detach();
        thread::spawn(move || drop(detached)).join().unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0, "EOF");
        let (listener, address) = listener().await;
        drop(listener.detach());
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}

/// The pattern of a stream: the byte at a place names the place.
fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// A loop on a thread of its own that reads what there is of each socket, and passes it on.
fn reader(
    sockets: mpsc::Receiver<(Detached<TcpStream>, usize, usize)>,
    next: mpsc::Sender<(Detached<TcpStream>, usize, usize)>,
    done: mpsc::Sender<usize>,
) {
    let event_loop = EventLoop::new().unwrap();
    for (socket, mut at, moves) in sockets {
        let moved = event_loop.block_on(async {
            let mut socket = socket.attach().unwrap();
            let mut buffer = [0; 97];
            let count = socket.read(&mut buffer).await.unwrap();
            for byte_read in &buffer[..count] {
                assert_eq!(*byte_read, byte(at));
                at += 1;
            }
            (count > 0).then(|| socket.detach())
        });
        match moved {
            // The next loop may have ended with the test.
            Some(socket) => drop(next.send((socket, at, moves + 1))),
            None => {
                done.send(at).unwrap();
                return;
            }
        }
    }
}

// C13: 10,000 moves between 4 loops in the middle of a stream lose no byte.
#[test]
fn ten_thousand_moves_between_four_loops_lose_no_byte() {
    const BYTES: usize = 97 * 10_000;
    let (client, server) = crate::util::tcp::std_pair();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
    let (done, end) = mpsc::channel();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(index, sockets)| {
            let (next, done) = (senders[(index + 1) % 4].clone(), done.clone());
            thread::spawn(move || reader(sockets, next, done))
        })
        .collect();
    drop(done);
    let writer = thread::spawn(move || {
        let mut client = client;
        let bytes: Vec<_> = (0..BYTES).map(byte).collect();
        client.write_all(&bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        client.read(&mut [0]).unwrap_or(0)
    });
    let first = EventLoop::new()
        .unwrap()
        .block_on(async { TcpStream::from_std(server).unwrap().detach() });
    senders[0].send((first, 0, 0)).unwrap();
    assert_eq!(end.recv().unwrap(), BYTES);
    drop(senders);
    drop(end);
    writer.join().unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
}

// C13: the other sockets of a loop.
#[test]
fn listeners_and_datagram_sockets_move_too() {
    let event_loop = EventLoop::new().unwrap();
    let (listener, socket, address) = event_loop.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        (listener.detach(), socket.detach(), address)
    });
    let other = thread::spawn(move || {
        run(async {
            let (listener, socket) = (listener.attach().unwrap(), socket.attach().unwrap());
            let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let to = socket.local_addr().unwrap();
            sender.send_to(b"datagram", to).await.unwrap();
            let mut buffer = [0; 16];
            assert_eq!(socket.recv(&mut buffer).await.unwrap(), 8);
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"stream").await.unwrap();
        });
    });
    let mut client = std::net::TcpStream::connect(address).unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "stream");
    other.join().unwrap();
}

// C13: the path of a socket goes along, and is removed where the socket ends.
#[cfg(unix)]
#[test]
fn unix_sockets_move_with_their_paths() {
    use phaseloop::net::{UnixDatagram, UnixListener, UnixStream};
    let path = std::env::temp_dir().join(format!("detached-{}.socket", std::process::id()));
    let of_datagrams = path.with_extension("datagrams");
    let (listener, datagrams) = run(async {
        let listener = UnixListener::bind(&path).unwrap();
        (
            listener.detach(),
            UnixDatagram::bind(&of_datagrams).unwrap().detach(),
        )
    });
    assert!(path.exists() && of_datagrams.exists());
    run(async {
        let (listener, datagrams) = (listener.attach().unwrap(), datagrams.attach().unwrap());
        let client = UnixStream::connect(&path).await.unwrap();
        let mut client = client.detach().attach().unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"bytes").await.unwrap();
        let mut buffer = [0; 5];
        server.read_exact(&mut buffer).await.unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"one", &of_datagrams).await.unwrap();
        assert_eq!(datagrams.recv(&mut buffer).await.unwrap(), 3);
    });
    assert!(!path.exists() && !of_datagrams.exists());
}

// C13: `into_std` cannot move a socket in memory.
#[test]
fn a_socket_in_memory_moves_within_its_network() {
    use phaseloop::Builder;
    use phaseloop::sim::Settings;
    let network = || Builder::new().network(Settings::default()).build().unwrap();
    let detached = network().block_on(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"before").await.unwrap();
        client = client.detach().attach().unwrap();
        server = server.detach().attach().unwrap();
        let mut buffer = [0; 12];
        client.write_all(b" after").await.unwrap();
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"before after");
        drop(client.detach());
        assert_eq!(server.read(&mut buffer).await.unwrap(), 0, "EOF");
        server.detach()
    });
    let error = network().block_on(async { detached.attach().unwrap_err() });
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

// C13: the descriptor passes through a channel of processes, and what waits in the kernel's queue is
// not lost. Each process closes its own.
#[cfg(unix)]
#[test]
fn a_listener_passes_through_a_channel_with_what_waits() {
    use phaseloop::process::Channel;
    use std::os::fd::AsFd;
    run(async {
        let (one, other) = Channel::pair().unwrap();
        let (listener, address) = listener().await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"early").await.unwrap();
        let detached = listener.detach();
        one.send_with(b"", &[detached.as_fd()]).await.unwrap();
        drop(detached);
        let mut message = other.recv().await.unwrap().unwrap();
        let descriptor = message.descriptors.pop().unwrap();
        let received = Detached::<TcpListener>::try_from(descriptor).unwrap();
        assert_eq!(received.created_at().file(), file!());
        let listener = received.attach().unwrap();
        let (mut server, peer) = listener.accept().await.unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        let mut buffer = [0; 5];
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"early");
        // The connection goes on in the same way.
        one.send_with(b"", &[server.detach().as_fd()])
            .await
            .unwrap();
        let mut message = other.recv().await.unwrap().unwrap();
        let descriptor = message.descriptors.pop().unwrap();
        let server = Detached::<TcpStream>::try_from(descriptor).unwrap();
        server.attach().unwrap().write_all(b"late!").await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "late!", "and EOF: no descriptor is left open");
        drop(listener);
        let refused = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}

// C13: the type of a received socket is checked.
#[cfg(unix)]
#[test]
fn a_received_descriptor_is_what_its_type_states() {
    use std::net;
    use std::os::fd::OwnedFd;
    let listener = || net::TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = || net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let file = || OwnedFd::from(std::fs::File::open(".").unwrap());
    let unix = || OwnedFd::from(std::os::unix::net::UnixStream::pair().unwrap().0);
    for wrong in [file(), unix(), datagrams().into()] {
        let error = Detached::<TcpListener>::try_from(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "the descriptor is not a TCP listener");
    }
    for wrong in [file(), unix(), listener().into()] {
        let error = Detached::<UdpSocket>::try_from(wrong).unwrap_err();
        assert_eq!(error.to_string(), "the descriptor is not a UDP socket");
    }
    if cfg!(target_os = "linux") {
        let error = Detached::<TcpStream>::try_from(OwnedFd::from(listener())).unwrap_err();
        assert_eq!(error.to_string(), "the descriptor is not a TCP stream");
        let server = listener();
        let stream = net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let error = Detached::<TcpListener>::try_from(OwnedFd::from(stream)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    run(async {
        let socket = datagrams();
        let address = socket.local_addr().unwrap();
        let received = Detached::<UdpSocket>::try_from(OwnedFd::from(socket)).unwrap();
        assert_eq!(received.attach().unwrap().local_addr().unwrap(), address);
    });
}
