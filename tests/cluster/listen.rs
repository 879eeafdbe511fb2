//! Listeners of a cluster, and how connections are spread.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{self, SocketAddr};
use std::thread;
use std::time::Duration;

use futures::StreamExt;
use phaseloop::cluster::{self, Balance, Builder, Listeners, Sharded};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::TcpStream;
use phaseloop::{Handle, LoopHandle, spawn};

use crate::serve_each;
use crate::util::panics::panic_of;

/// Serves until the cluster stops: each connection gets the index of its loop, and stays open.
fn serve(listeners: Listeners) -> cluster::Each<()> {
    serve_each(&listeners, async |index, mut stream| {
        stream.write_all(&[index as u8]).await.unwrap();
        // Until the peer closes it.
        let _ = stream.read(&mut [0]).await;
    })
}

/// Connects, and returns which loop serves the connection.
async fn connect(address: SocketAddr) -> (TcpStream, usize) {
    let mut client = TcpStream::connect(address).await.unwrap();
    let mut index = [0];
    client.read_exact(&mut index).await.unwrap();
    (client, index[0].into())
}

// C14: in turn, by loop 0, whatever the connections do.
#[test]
fn round_robin_gives_each_loop_its_share() {
    Builder::new()
        .loops(3)
        .block_on(async {
            let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
            let listeners = listen.await.unwrap();
            let address = listeners.local_addr();
            let servers = serve(listeners);
            until_served(address, 3).await;
            let mut counts = [0; 3];
            for _ in 0..30 {
                let (client, index) = connect(address).await;
                counts[index] += 1;
                drop(client);
            }
            assert_eq!(counts, [10, 10, 10]);
            let stopped = cluster::current().shutdown(Duration::from_secs(30)).await;
            assert!(stopped.is_clean(), "{stopped}");
            assert!(servers.await.iter().all(Result::is_ok));
        })
        .unwrap();
}

/// Connects until each of the loops takes part, and a multiple of their number was connected.
async fn until_served(address: SocketAddr, loops: usize) {
    let mut seen = vec![0; loops];
    while seen.contains(&0) || seen.iter().sum::<u32>() % loops as u32 != 0 {
        let (_, index) = connect(address).await;
        seen[index] += 1;
    }
}

// C14: a loop alone accepts for itself. The line of a connection is that of `listen`.
#[test]
fn a_loop_alone_serves_all_connections() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let listener = listeners.here();
        let connect = TcpStream::connect(listeners.local_addr());
        let client = spawn(connect);
        let (stream, peer) = listener.accept().await.unwrap();
        assert_eq!(client.await.unwrap().unwrap().local_addr().unwrap(), peer);
        assert!(stream.created_at().file().ends_with("listen.rs"));
    });
}

// C14: connections that a listener has not accepted go to another one when it is dropped.
#[test]
fn what_a_dropped_listener_has_not_accepted_is_served_elsewhere() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let first = listeners.here();
        let mut clients = Vec::new();
        for _ in 0..5 {
            let connect = TcpStream::connect(listeners.local_addr());
            clients.push(connect.await.unwrap());
        }
        phaseloop::time::sleep(Duration::from_millis(20)).await;
        drop(first);
        let second = listeners.here();
        let mut served = Vec::new();
        for _ in 0..5 {
            let (stream, peer) = second.accept().await.unwrap();
            served.push((peer, stream));
        }
        let mut peers: Vec<_> = served.iter().map(|(peer, _)| *peer).collect();
        peers.sort_unstable();
        let mut expected: Vec<_> = clients.iter().map(|c| c.local_addr().unwrap()).collect();
        expected.sort_unstable();
        assert_eq!(peers, expected);
    });
}

// C14: a loop that does not accept has 128 connections in its queue; then the others get them, and
// if there is no other, the kernel's backlog is the queue.
#[test]
fn a_full_loop_is_passed_over() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let listeners = cluster::listen("127.0.0.1:0")
                .balance(Balance::RoundRobin)
                .backlog(1024);
            let listeners = listeners.await.unwrap();
            let address = listeners.local_addr();
            // Loop 1 takes its part, and accepts nothing.
            let (taken, (ready, mut is_ready)) = (listeners.clone(), cluster::channel(1));
            let rests = cluster::current().remote(1).spawn(move || async move {
                let listener = taken.here();
                ready.send(()).await.unwrap();
                cluster::stopping().cancelled().await;
                drop(listener);
            });
            is_ready.recv().await.unwrap();
            let clients = thread::spawn(move || {
                let connect = |_| net::TcpStream::connect(address).unwrap();
                (0..300).map(connect).collect::<Vec<_>>()
            });
            let here = listeners.here();
            let mut accepted = Vec::new();
            while accepted.len() < 300 - 128 {
                accepted.push(here.accept().await.unwrap());
            }
            let more = phaseloop::time::timeout(Duration::from_millis(50), here.accept());
            assert!(more.await.is_err(), "the queue of loop 1 has the others");
            drop(clients.join().unwrap());
            drop((accepted, here, listeners));
            let stopped = cluster::current().shutdown(Duration::ZERO).await;
            assert!(stopped.took < Duration::from_secs(5));
            rests.unwrap().abort();
        })
        .unwrap();
}

// C16: accepted connections are counted where they are registered, so a moved one counts on its
// new loop, and one that was connected from here does not.
#[test]
fn a_shutdown_waits_for_accepted_connections_of_any_listener() {
    phaseloop::block_on(async {
        let listener = phaseloop::net::TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let stream = stream.detach().attach().unwrap();
        spawn(async move {
            phaseloop::time::sleep(Duration::from_millis(20)).await;
            let mut stream = stream;
            stream.write_all(b"late").await.unwrap();
        })
        .detach();
        let stopped = cluster::current().shutdown(Duration::from_secs(60)).await;
        assert!(stopped.is_clean(), "{stopped}");
        assert!(stopped.took >= Duration::from_millis(20), "{stopped}");
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "late");
    });
}

// C17: one listener a loop, on one port.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[test]
fn reuse_port_has_a_listener_on_each_loop() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let listen = cluster::listen("127.0.0.1:0").balance(Balance::ReusePort);
            let listeners = listen.await.unwrap();
            let address = listeners.local_addr();
            let twice = listeners.clone();
            let servers = serve(listeners);
            // The kernel chooses by a hash of the addresses.
            until_served(address, 2).await;
            let text = panic_of(|| _ = twice.here());
            assert!(text.contains("once"), "{text}");
            let stopped = cluster::current().shutdown(Duration::from_secs(30)).await;
            assert!(stopped.is_clean(), "{stopped}");
            assert!(servers.await.iter().all(Result::is_ok));
            assert!(TcpStream::connect(address).await.is_err(), "it is closed");
        })
        .unwrap();
}

// The listener is closed with its last owner.
#[test]
fn the_last_owner_closes_the_listener() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let (address, here) = (listeners.local_addr(), listeners.here());
        drop(listeners);
        let client = spawn(TcpStream::connect(address));
        here.accept().await.unwrap();
        client.await.unwrap().unwrap();
        drop(here);
        phaseloop::time::sleep(Duration::from_millis(20)).await;
        assert!(TcpStream::connect(address).await.is_err());
        assert!(LoopHandle::current().tasks().is_empty());
    });
}

// Several futures may wait for one listener, and a dropped one loses no connection.
#[test]
fn several_tasks_accept_from_one_listener() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let address = listeners.local_addr();
        let listener = std::rc::Rc::new(listeners.here());
        let accepts: Vec<_> = (0..3)
            .map(|_| {
                let listener = listener.clone();
                spawn(async move { listener.accept().await.unwrap().1 })
            })
            .collect();
        phaseloop::task::yield_now().await;
        accepts[0].abort();
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let mut accepts = accepts.into_iter();
        assert!(accepts.next().unwrap().await.unwrap_err().is_cancelled());
        for accept in accepts {
            accept.await.unwrap();
        }
        let mut incoming = std::pin::pin!(listener.incoming());
        incoming.next().await.unwrap().unwrap();
    });
}

#[test]
fn a_bad_address_is_an_error() {
    phaseloop::block_on(async {
        let error = cluster::listen("127.0.0.1:99999").await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        let text = cluster::listen("192.0.2.1:1")
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains("192.0.2.1:1"), "{text}");
    });
}

// A stuck loop gets no connection (C15): its activity grows while it is stuck.
#[test]
fn a_stuck_loop_gets_no_connection() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
            let address = listeners.local_addr();
            let servers = serve(listeners);
            let (mut first, _) = connect(address).await;
            let (release, is_released) = std::sync::mpsc::channel::<()>();
            let (stuck, mut is_stuck) = cluster::channel(1);
            let hangs = move || {
                stuck.try_send(()).unwrap();
                let _ = is_released.recv();
            };
            cluster::current().remote(1).call(hangs).unwrap();
            is_stuck.recv().await.unwrap();
            // Two looks, 20 ms apart.
            let mut clients = Vec::new();
            for _ in 0..4 {
                phaseloop::time::sleep(Duration::from_millis(25)).await;
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            for client in &mut clients[2..] {
                let mut index = [9];
                client.read_exact(&mut index).await.unwrap();
                assert_eq!(index, [0], "loop 1 is stuck");
            }
            release.send(()).unwrap();
            first.close().await.unwrap();
            drop((first, clients));
            let stopped = cluster::current().shutdown(Duration::from_secs(30)).await;
            assert!(stopped.is_clean(), "{stopped}");
            assert!(servers.await.iter().all(Result::is_ok));
        })
        .unwrap();
}

// Values of `Sharded` count what each loop serves.
#[test]
fn connections_use_the_values_of_their_loop() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let hits = Sharded::new(async |_| Cell::new(0u32)).await.unwrap();
            let listeners = cluster::listen("127.0.0.1:0")
                .balance(Balance::RoundRobin)
                .await
                .unwrap();
            let address = listeners.local_addr();
            let of_loops = hits.clone();
            let servers = cluster::current().each(move |_| {
                let (listener, hits) = (listeners.here(), of_loops.here());
                async move {
                    let serve = async {
                        loop {
                            let (mut stream, _) = listener.accept().await.unwrap();
                            hits.set(hits.get() + 1);
                            stream.write_all(b"x").await.unwrap();
                        }
                    };
                    cluster::stopping().run_until_cancelled(serve).await;
                    hits.get()
                }
            });
            let client = thread::spawn(move || {
                for _ in 0..20 {
                    let mut client = net::TcpStream::connect(address).unwrap();
                    client.write_all(b"y").unwrap();
                    let _ = client.read(&mut [0; 1]);
                }
            });
            while hits.on(0, async |hits| hits.get()).unwrap().await.unwrap()
                + hits.on(1, async |hits| hits.get()).unwrap().await.unwrap()
                < 20
            {
                phaseloop::task::yield_now().await;
            }
            client.join().unwrap();
            cluster::current().shutdown(Duration::from_secs(30)).await;
            let counts: Vec<_> = servers.await.into_iter().map(Result::unwrap).collect();
            assert_eq!(counts.iter().sum::<u32>(), 20);
        })
        .unwrap();
}
