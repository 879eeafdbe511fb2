//! Futures are no larger than tokio's: a task holds them, and a server has a task per connection.
//!
//! tokio's sizes are measured here, except those of its files and processes, which these tests do
//! not build: they are of tokio 1.54.
#![cfg(all(unix, target_pointer_width = "64"))]

use std::net::SocketAddr;
use std::time::Duration;

use phaseloop::{block_on, fs, net, process, time};

/// Compares the size of a future with that of tokio's.
macro_rules! at_most {
    ($ours:expr, $theirs:expr) => {
        let (ours, theirs) = (size_of_val(&$ours), size_of_val(&$theirs));
        let what = stringify!($ours);
        assert!(
            ours <= theirs,
            "{what}: {ours} bytes, and {theirs} in tokio"
        );
    };
}

/// Compares the size of a future with a number.
macro_rules! at_most_bytes {
    ($most:expr, $ours:expr) => {
        let (ours, what) = (size_of_val(&$ours), stringify!($ours));
        assert!(
            ours <= $most,
            "{what}: {ours} bytes, and {} in tokio",
            $most
        );
    };
}

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

/// Calls `f` on a loop, and inside a runtime of tokio.
fn on_both(f: impl AsyncFnOnce()) {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _guard = tokio.enter();
    block_on(f());
}

#[test]
fn futures_of_addresses_are_no_larger_than_tokios() {
    on_both(async || {
        macro_rules! targets {
            ($($target:expr),*) => {$(
                at_most!(net::TcpStream::connect($target), tokio::net::TcpStream::connect($target));
                at_most!(net::TcpListener::bind($target), tokio::net::TcpListener::bind($target));
                at_most!(net::UdpSocket::bind($target), tokio::net::UdpSocket::bind($target));
                at_most!(net::lookup_host($target), tokio::net::lookup_host($target));
            )*};
        }
        targets!(
            "a:1",
            String::new(),
            ("a", 1),
            (String::new(), 1),
            address()
        );
        let (ours, theirs) = (
            net::TcpSocket::new_v4().unwrap(),
            tokio::net::TcpSocket::new_v4().unwrap(),
        );
        at_most!(ours.connect(address()), theirs.connect(address()));
        at_most!(
            net::UnixStream::connect("path"),
            tokio::net::UnixStream::connect("path")
        );
    });
}

#[test]
fn futures_of_sockets_are_no_larger_than_tokios() {
    on_both(async || {
        let (mut one, mut other) = ([0; 4], [0; 4]);
        let ours = net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let std = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std.set_nonblocking(true).unwrap();
        let theirs = tokio::net::TcpListener::from_std(std).unwrap();
        at_most!(ours.accept(), theirs.accept());

        let ours = net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let std = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        std.set_nonblocking(true).unwrap();
        let theirs = tokio::net::UdpSocket::from_std(std).unwrap();
        at_most!(ours.connect("a:1"), theirs.connect("a:1"));
        at_most!(ours.recv_from(&mut one), theirs.recv_from(&mut other));
        at_most!(ours.recv(&mut one), theirs.recv(&mut other));
        at_most!(ours.peek_from(&mut one), theirs.peek_from(&mut other));
        at_most!(ours.send(b"x"), theirs.send(b"x"));
        at_most!(
            ours.send_to(b"x", address()),
            theirs.send_to(b"x", address())
        );

        let (ours, _other) = net::UnixStream::pair().unwrap();
        let (theirs, _other) = tokio::net::UnixStream::pair().unwrap();
        let (our_interest, their_interest) = (
            phaseloop::io::Interest::READABLE,
            tokio::io::Interest::READABLE,
        );
        at_most!(ours.readable(), theirs.readable());
        at_most!(ours.writable(), theirs.writable());
        at_most!(ours.ready(our_interest), theirs.ready(their_interest));
        at_most!(
            ours.async_io(our_interest, || Ok(())),
            theirs.async_io(their_interest, || Ok(()))
        );

        let (ours, _other) = net::UnixDatagram::pair().unwrap();
        let (theirs, _other) = tokio::net::UnixDatagram::pair().unwrap();
        at_most!(ours.recv(&mut one), theirs.recv(&mut other));
        at_most!(ours.recv_from(&mut one), theirs.recv_from(&mut other));
        at_most!(ours.send(b"x"), theirs.send(b"x"));
        at_most!(ours.send_to(b"x", "path"), theirs.send_to(b"x", "path"));

        let zero = Duration::ZERO;
        at_most!(time::sleep(zero), tokio::time::sleep(zero));
        let ready = std::future::ready;
        at_most!(
            time::timeout(zero, ready(())),
            tokio::time::timeout(zero, ready(()))
        );
    });
}

#[test]
fn futures_of_files_are_no_larger_than_tokios() {
    at_most_bytes!(104, fs::read("path"));
    at_most_bytes!(120, fs::read(std::path::PathBuf::new()));
    at_most_bytes!(80, fs::read_to_string("path"));
    at_most_bytes!(184, fs::write("path", "text"));
    at_most_bytes!(176, fs::rename("path", "path"));
    at_most_bytes!(136, fs::hard_link("path", "path"));
    at_most_bytes!(136, fs::copy("path", "path"));
    at_most_bytes!(80, fs::metadata("path"));
    at_most_bytes!(80, fs::remove_file("path"));
    at_most_bytes!(80, fs::canonicalize("path"));
    at_most_bytes!(80, fs::create_dir_all("path"));
    at_most_bytes!(80, fs::read_dir("path"));
    at_most_bytes!(208, fs::File::open("path"));
    at_most_bytes!(208, fs::File::create("path"));
}

#[test]
fn futures_of_processes_are_no_larger_than_tokios() {
    block_on(async {
        let mut command = process::Command::new("true");
        at_most_bytes!(968, command.output());
        at_most_bytes!(376, command.status());
        let mut child = command.spawn().unwrap();
        at_most_bytes!(32, child.wait());
        at_most_bytes!(624, child.wait_with_output());
    });
}
