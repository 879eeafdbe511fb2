//! What the network in memory answers late, out of turn, or not at all.

use std::io;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use phaseloop::sim::{Link, Network, Settings};
use phaseloop::time::{now, sleep};
use phaseloop::{Builder, spawn};

const MILLISECOND: Duration = Duration::from_millis(1);

fn block_on(settings: Settings, program: impl Future<Output = ()>) {
    let event_loop = Builder::new().network(settings).build().unwrap();
    event_loop.block_on(program);
}

fn steady(latency: Duration) -> Link {
    Link {
        latency: latency..=latency,
        ..Link::default()
    }
}

#[test]
fn a_connect_whose_answer_is_held_back_times_out() {
    block_on(Settings::default(), async {
        let network = Network::current();
        let server = network.host("server", [10, 0, 0, 2]);
        network.link("localhost", "server", steady(10 * MILLISECOND));
        server
            .run(|| async {
                let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
                let _accepted = listener.accept().await;
                std::future::pending::<()>().await;
            })
            .detach();
        sleep(MILLISECOND).await;
        for port in [7, 8] {
            // The listener of one port accepts, the other port refuses.
            let connecting = spawn(async move { TcpStream::connect(("server", port)).await });
            sleep(15 * MILLISECOND).await;
            network.partition("localhost", "server");
            let cut = now();
            let error = connecting.await.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "port {port}");
            assert_eq!(now() - cut, Settings::default().connect_timeout);
            network.heal("localhost", "server");
            sleep(15 * MILLISECOND).await;
        }
    });
}

#[test]
fn packets_that_wake_no_task_do_not_delay_a_timer() {
    block_on(Settings::default(), async {
        let network = Network::current();
        network.host("server", [10, 0, 0, 2]);
        network.link("localhost", "server", steady(10 * MILLISECOND));
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        let start = now();
        // No socket receives the datagram, and the sender is not notified.
        let to = "10.0.0.2:7".parse().unwrap();
        socket.send_to(b"x", to).await.unwrap();
        sleep(25 * MILLISECOND).await;
        assert_eq!(now() - start, 25 * MILLISECOND);
    });
}

#[test]
fn a_reset_of_a_closed_socket_stays_behind_its_bytes() {
    block_on(Settings::default(), async {
        let network = Network::current();
        let server = network.host("server", [10, 0, 0, 2]);
        network.link("localhost", "server", steady(100 * MILLISECOND));
        server
            .run(move || {
                let network = network.clone();
                async move {
                    let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
                    let (mut stream, _) = listener.accept().await.unwrap();
                    sleep(200 * MILLISECOND).await;
                    stream.write_all(b"bytes").await.unwrap();
                    network.link("localhost", "server", steady(MILLISECOND));
                }
            })
            .detach();
        sleep(MILLISECOND).await;
        let mut stream = TcpStream::connect("server:7").await.unwrap();
        sleep(150 * MILLISECOND).await;
        // It reaches a socket that is closed, while the bytes of that socket are half way.
        stream.write_all(b"late").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "bytes");
    });
}

#[test]
fn a_socket_of_the_loopback_address_reaches_no_other_host() {
    block_on(Settings::default(), async {
        Network::current().host("server", [10, 0, 0, 2]);
        let loopback = "127.0.0.1:0".parse().unwrap();
        let to = "10.0.0.2:7".parse().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(loopback).unwrap();
        let error = socket.connect(to).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let socket = UdpSocket::bind(loopback).await.unwrap();
        let error = socket.send_to(b"x", to).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_window_of_no_bytes_counts_as_one() {
    let settings = Settings {
        window: 0,
        ..Settings::default()
    };
    block_on(settings, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        spawn(async move { client.write_all(b"three").await }).detach();
        let mut text = [0; 5];
        server.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"three");
    });
}
