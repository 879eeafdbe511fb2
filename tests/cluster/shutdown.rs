//! How a cluster ends when it is asked to.

use std::future::pending;
use std::io::{Read, Write};
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use phaseloop::cluster::{self, Balance, Builder, Each, Listeners};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::TcpStream;
use phaseloop::{LoopHandle, spawn, time};

use crate::serve_each;

/// Answers each connection with what it sends, until the cluster stops.
fn echo(listeners: &Listeners) -> Each<()> {
    serve_each(listeners, async |_, mut stream| {
        let mut request = [0; 4];
        if stream.read_exact(&mut request).await.is_ok() {
            let _ = stream.write_all(&request).await;
        }
    })
}

/// What the clients of a server have seen.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    cut: AtomicUsize,
    is_over: AtomicBool,
}

/// Sends requests, each on a connection of its own, until the server is gone.
fn request(address: SocketAddr, seen: &Seen) {
    while !seen.is_over.load(Ordering::SeqCst) {
        // Refused, or not answered: the listener is closed, or about to be.
        let limit = Duration::from_millis(20);
        let Ok(mut client) = net::TcpStream::connect_timeout(&address, limit) else {
            return;
        };
        let mut answer = [0; 4];
        let sent = client.write_all(b"ping");
        match sent.and_then(|()| client.read_exact(&mut answer)) {
            Ok(()) => seen.answered.fetch_add(1, Ordering::SeqCst),
            Err(_) => seen.cut.fetch_add(1, Ordering::SeqCst),
        };
    }
}

/// Stops a server under 8 clients. Returns how many requests were answered and cut.
fn stop_under_load(balance: Balance, round: u32) -> (usize, usize) {
    let seen = Arc::new(Seen::default());
    let of_clients = seen.clone();
    Builder::new()
        .loops(2)
        .block_on(async move {
            let listeners = cluster::listen("127.0.0.1:0")
                .balance(balance)
                .await
                .unwrap();
            let address = listeners.local_addr();
            let servers = echo(&listeners);
            let clients: Vec<_> = (0..8)
                .map(|_| {
                    let seen = of_clients.clone();
                    thread::spawn(move || request(address, &seen))
                })
                .collect();
            while of_clients.answered.load(Ordering::SeqCst) < 20 + round as usize {
                time::sleep(Duration::from_millis(1)).await;
            }
            let stopped = cluster::current().shutdown(Duration::from_secs(30)).await;
            assert!(stopped.is_clean(), "{stopped}");
            assert!(servers.await.iter().all(Result::is_ok));
            of_clients.is_over.store(true, Ordering::SeqCst);
            for client in clients {
                client.join().unwrap();
            }
        })
        .unwrap();
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    (count(&seen.answered), count(&seen.cut))
}

// C18: 100 shutdowns under clients that connect anew for each request.
#[test]
fn a_shutdown_under_load_cuts_no_request() {
    let (mut answered, mut cut) = (0, 0);
    for round in 0..100 {
        let of_round = stop_under_load(Balance::LeastLag, round);
        answered += of_round.0;
        cut += of_round.1;
    }
    assert!(cut <= 1, "{cut} of {answered} requests were cut");
    assert!(answered >= 100 * 20);
}

// C18: with a listener on each loop, each accepts what is in its own queue.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[test]
fn a_shutdown_with_a_listener_on_each_loop_cuts_no_request() {
    let rounds = (0..100).map(|round| stop_under_load(Balance::ReusePort, round));
    let cut: usize = rounds.map(|(_, cut)| cut).sum();
    assert!(cut <= 1, "{cut} requests were cut");
}

// C18 (5), (6): what is left at the limit is named, with its line, and cut.
#[test]
fn what_hangs_is_named_and_cut() {
    let output = Builder::new().loops(2).block_on(async {
        let hangs = cluster::current().each(|index| async move {
            if index == 1 {
                pending::<()>().await;
            }
        });
        let stopped = cluster::current().shutdown(Duration::from_millis(30)).await;
        assert!(!stopped.is_clean());
        assert!(stopped.took >= Duration::from_millis(30), "{stopped}");
        assert_eq!(stopped.left.len(), 1, "{stopped}");
        assert_eq!(stopped.left[0].index, 1);
        assert_eq!(stopped.left[0].tasks.len(), 1, "{stopped}");
        let line = "shutdown.rs:";
        assert!(stopped.left[0].tasks[0].contains(line), "{stopped}");
        assert!(
            stopped.to_string().contains("cut on loop 1: loop 1 task "),
            "{stopped}"
        );
        let mut outputs = hangs.await;
        assert!(outputs.pop().unwrap().unwrap_err().is_cancelled());
        assert!(outputs.pop().unwrap().is_ok());
        // C5: after the stop a root is cancelled.
        let after = cluster::current().each(|index| async move { index }).await;
        assert!(
            after
                .iter()
                .all(|output| output.as_ref().unwrap_err().is_cancelled())
        );
        stopped
    });
    assert!(output.is_ok());
}

// C18 (4), (5): loop 0 is drained, too: its roots are aborted and its connections are closed.
#[test]
fn loop_0_is_drained_but_for_the_caller() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let listener = listeners.here();
        let mut client = TcpStream::connect(listeners.local_addr()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        // A task that is no root, with an accepted connection.
        let reads = spawn(async move { server.read(&mut [0]).await });
        let hangs = cluster::current().each(|_| pending::<()>());
        let caller = cluster::current()
            .remote(0)
            .spawn(|| async { cluster::current().shutdown(Duration::from_millis(30)).await });
        let stopped = caller.unwrap().await.unwrap();
        assert_eq!(stopped.left.len(), 1, "{stopped}");
        assert_eq!(stopped.left[0].connections, 1, "{stopped}");
        assert!(hangs.await[0].as_ref().unwrap_err().is_cancelled());
        assert!(reads.await.unwrap().is_err(), "closed through a view");
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    });
}

// C18: a stuck loop does not delay the shutdown by more than its limit, and has its line.
#[test]
fn a_stuck_loop_has_its_line() {
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    Builder::new()
        .loops(2)
        .block_on(async move {
            let hangs = move || _ = is_released.recv();
            cluster::current().remote(1).call(hangs).unwrap();
            let stopped = cluster::current().shutdown(Duration::from_millis(20)).await;
            assert_eq!(stopped.left.len(), 1, "{stopped}");
            assert!(stopped.left[0].tasks[0].contains("stuck"), "{stopped}");
            release.send(()).unwrap();
        })
        .unwrap();
}

// C18: a second call has the shorter limit of the two, and both get the result.
#[test]
fn a_second_call_shortens_the_limit() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let hangs = cluster::current().each(|_| pending::<()>());
            let first = spawn(cluster::current().shutdown(Duration::from_secs(3600)));
            phaseloop::task::yield_now().await;
            let other = spawn(cluster::current().shutdown(Duration::from_secs(7200)));
            let second = cluster::current().shutdown(Duration::from_millis(10)).await;
            assert_eq!(second.left.len(), 2, "{second}");
            assert!(second.took < Duration::from_secs(600), "{second}");
            assert_eq!(first.await.unwrap().left.len(), 2);
            assert_eq!(other.await.unwrap().left.len(), 2);
            assert_eq!(hangs.await.len(), 2);
        })
        .unwrap();
}

// C18 (3): the token is cancelled only when what was handed over has been accepted, and (2) the
// listener rests then.
#[test]
fn the_token_is_cancelled_behind_the_last_connection() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let listener = listeners.here();
        let mut clients = Vec::new();
        for _ in 0..10 {
            clients.push(TcpStream::connect(listeners.local_addr()).await.unwrap());
        }
        let shutdown = spawn(cluster::current().shutdown(Duration::from_secs(60)));
        for _ in 0..10 {
            assert!(!cluster::stopping().is_cancelled());
            drop(listener.accept().await.unwrap());
            time::sleep(Duration::from_millis(1)).await;
        }
        let rests = time::timeout(Duration::from_millis(20), listener.accept());
        assert!(rests.await.is_err());
        cluster::stopping().cancelled().await;
        assert!(shutdown.await.unwrap().is_clean());
        // A listener that is taken afterwards rests as well.
        let late = listeners.here();
        assert!(
            time::timeout(Duration::from_millis(5), late.accept())
                .await
                .is_err()
        );
    });
}

// C18: a server that does not accept what was handed over is notified after half of the limit.
#[test]
fn a_server_that_does_not_accept_is_notified_all_the_same() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let listener = listeners.here();
        let mut client = TcpStream::connect(listeners.local_addr()).await.unwrap();
        let waits = cluster::current().each(|_| async { cluster::stopping().cancelled().await });
        let stopped = cluster::current().shutdown(Duration::from_millis(60)).await;
        assert!(stopped.is_clean(), "{stopped}");
        assert!(stopped.took >= Duration::from_millis(30), "{stopped}");
        assert!(waits.await[0].is_ok());
        drop(listener);
        // No loop serves it any more.
        assert!(!matches!(client.read(&mut [0]).await, Ok(1..)));
    });
}

// C4, C18: main ends first, and a shutdown that another executor awaits does not hang.
#[test]
fn a_shutdown_of_a_cluster_that_has_ended_is_over() {
    let cluster = Builder::new()
        .loops(2)
        .block_on(async { cluster::current() })
        .unwrap();
    let stopped = phaseloop::block_on(cluster.shutdown(Duration::from_secs(60)));
    assert!(stopped.is_clean());
    assert_eq!(
        stopped.to_string(),
        "stopped after 0.0ns, and has cut nothing"
    );
}

// What a shutdown leaves behind on a loop alone: no task, no handle.
#[test]
fn a_clean_shutdown_leaves_nothing_behind() {
    phaseloop::block_on(async {
        let listeners = cluster::listen("127.0.0.1:0").await.unwrap();
        let servers = echo(&listeners);
        let mut client = TcpStream::connect(listeners.local_addr()).await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        client.read_exact(&mut answer).await.unwrap();
        drop((client, listeners));
        let stopped = cluster::current().shutdown(Duration::from_secs(60)).await;
        assert!(stopped.is_clean(), "{stopped}");
        servers.await;
        phaseloop::phase::check().await;
        assert!(LoopHandle::current().tasks().is_empty());
        assert!(LoopHandle::current().handles().is_empty());
    });
}

// C18: several tasks that accept from a loop's own listener: none of them reports the end before
// the listener is empty, and what is in its queue is served.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[test]
fn several_tasks_empty_the_listener_of_a_loop() {
    for _ in 0..5 {
        phaseloop::block_on(async {
            let listen = cluster::listen("127.0.0.1:0").balance(Balance::ReusePort);
            let listeners = listen.await.unwrap();
            let listener = std::rc::Rc::new(listeners.here());
            let mut servers = Vec::new();
            for _ in 0..4 {
                let listener = listener.clone();
                servers.push(spawn(async move {
                    let serve = async {
                        loop {
                            let (mut stream, _) = listener.accept().await.unwrap();
                            stream.write_all(b"pong").await.unwrap();
                            // A report that comes too early would end the servers here.
                            time::sleep(Duration::from_millis(1)).await;
                        }
                    };
                    cluster::stopping().run_until_cancelled(serve).await;
                }));
            }
            phaseloop::phase::check().await;
            // They are in the kernel's queue when the shutdown begins: no turn is in between.
            let address = listeners.local_addr();
            let clients: Vec<_> = (0..20)
                .map(|_| net::TcpStream::connect(address).unwrap())
                .collect();
            let stopped = cluster::current().shutdown(Duration::from_secs(30)).await;
            assert!(stopped.is_clean(), "{stopped}");
            for server in servers {
                server.await.unwrap();
            }
            for mut client in clients {
                client
                    .set_read_timeout(Some(Duration::from_secs(20)))
                    .unwrap();
                client.read_exact(&mut [0; 4]).unwrap();
            }
        });
    }
}
