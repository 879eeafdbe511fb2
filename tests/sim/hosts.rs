//! Hosts and links: names, latency, bandwidth, partitions, crashes, clocks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket, lookup_addr, lookup_host};
use phaseloop::shuffle::{Determinism, Explore, Kind, Strategy};
use phaseloop::sim::{Host, Link, Network, Settings};
use phaseloop::time::{now, sleep, system_now, timeout};
use phaseloop::{Builder, EventLoop, LoopHandle, set_immediate, spawn, spawn_blocking};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn simulated() -> EventLoop {
    Builder::new().network(Settings::default()).build().unwrap()
}

fn steady(latency: Duration) -> Link {
    Link {
        latency: latency..=latency,
        ..Link::default()
    }
}

/// Returns two hosts.
fn two_hosts() -> (Network, Host, Host) {
    let network = Network::current();
    let a = network.host("a", [10, 0, 0, 1]);
    let b = network.host("b", [10, 0, 0, 2]);
    (network, a, b)
}

/// Answers each connection with all that it sends.
async fn echo() {
    let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        spawn(async move { phaseloop::io::copy(&stream, &mut &stream).await }).detach();
    }
}

async fn ask(stream: &mut TcpStream, text: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(text).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[test]
fn a_task_belongs_to_the_host_of_its_spawner() {
    simulated().block_on(async {
        let (_network, a, b) = two_hosts();
        b.run(|| async {
            // A task of a task, and one behind an immediate.
            spawn(async {
                set_immediate(|| spawn(echo()).detach());
            })
            .detach();
        })
        .detach();
        let seen = a.run(|| async {
            sleep(SECOND).await;
            assert!(
                TcpStream::connect("127.0.0.1:7").await.is_err(),
                "not of this host"
            );
            let stream = TcpStream::connect("b:7").await.unwrap();
            (
                stream.local_addr().unwrap().ip(),
                stream.peer_addr().unwrap(),
            )
        });
        let (local, peer) = seen.await.unwrap();
        assert_eq!(local, a.address());
        assert_eq!(peer, SocketAddr::new(b.address(), 7));
        assert!(
            TcpStream::connect("127.0.0.1:7").await.is_err(),
            "not of the first host"
        );
        let outside = TcpStream::connect("b:7").await.unwrap();
        assert_eq!(outside.local_addr().unwrap().ip().to_string(), "192.0.2.1");
    });
}

#[test]
fn hosts_have_ports_of_their_own() {
    simulated().block_on(async {
        let (_network, a, b) = two_hosts();
        for host in [a, b] {
            let bound = host.run(|| async {
                let first = TcpListener::bind("0.0.0.0:80").await.unwrap();
                let error = TcpListener::bind("127.0.0.1:80").await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
                let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
                (
                    first.local_addr().unwrap().port(),
                    free.local_addr().unwrap().port(),
                )
            });
            assert_eq!(bound.await.unwrap(), (80, 40_000));
        }
    });
}

#[test]
fn a_host_has_its_own_address_and_no_other() {
    simulated().block_on(async {
        let (_network, a, _b) = two_hosts();
        let bound = a.run(|| async {
            assert!(TcpListener::bind("10.0.0.1:1").await.is_ok());
            assert!(UdpSocket::bind("10.0.0.1:1").await.is_ok());
            TcpListener::bind("10.0.0.2:1").await.unwrap_err().kind()
        });
        assert_eq!(bound.await.unwrap(), io::ErrorKind::AddrNotAvailable);
        let error = TcpStream::connect("10.9.9.9:1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::HostUnreachable);
    });
}

#[test]
fn names_of_hosts_resolve_without_a_job() {
    simulated().block_on(async {
        let (_network, a, _b) = two_hosts();
        let before = LoopHandle::current().turns();
        let found = lookup_host("a:80").await.unwrap();
        assert_eq!(found, [SocketAddr::new(a.address(), 80)]);
        let local = lookup_host(("localhost", 80)).await.unwrap();
        assert_eq!(local, ["127.0.0.1:80".parse().unwrap()]);
        let (name, service) = lookup_addr(found[0]).await.unwrap();
        assert_eq!((&*name, &*service), ("a", "80"));
        assert_eq!(LoopHandle::current().turns(), before, "no turn was needed");
        assert_eq!(
            format!("{a:?}"),
            r#"Host { name: "a", address: 10.0.0.1, .. }"#
        );
    });
}

#[test]
fn a_host_is_added_once() {
    for (name, address) in [
        ("a", [10, 0, 0, 9]),
        ("c", [10, 0, 0, 1]),
        ("c", [127, 0, 0, 1]),
    ] {
        let refused = std::panic::catch_unwind(|| {
            simulated().block_on(async {
                two_hosts();
                Network::current().host(name, address);
            });
        });
        assert!(refused.is_err(), "{name} {address:?}");
    }
    let missing = std::panic::catch_unwind(|| phaseloop::block_on(async { Network::current() }));
    let text = *missing.unwrap_err().downcast::<&str>().unwrap();
    assert!(text.contains("Builder::network"), "{text}");
}

#[test]
fn a_connect_and_a_round_trip_take_their_latency() {
    simulated().block_on(async {
        let (network, a, b) = two_hosts();
        network.link("a", "b", steady(10 * MILLISECOND));
        b.run(echo).detach();
        let times = a.run(|| async {
            sleep(SECOND).await;
            let start = now();
            let mut stream = TcpStream::connect("b:7").await.unwrap();
            let connected = now() - start;
            ask(&mut stream, b"hello").await.unwrap();
            (connected, now() - start)
        });
        assert_eq!(times.await.unwrap(), (20 * MILLISECOND, 40 * MILLISECOND));
    });
}

#[test]
fn a_refusal_of_another_host_takes_its_latency() {
    simulated().block_on(async {
        let (network, a, _b) = two_hosts();
        network.link("a", "b", steady(10 * MILLISECOND));
        let refused = a.run(|| async {
            let start = now();
            let error = TcpStream::connect("b:7").await.unwrap_err();
            (error.kind(), now() - start)
        });
        assert_eq!(
            refused.await.unwrap(),
            (io::ErrorKind::ConnectionRefused, 20 * MILLISECOND)
        );
    });
}

#[test]
fn bandwidth_delays_what_is_behind() {
    simulated().block_on(async {
        let (network, a, b) = two_hosts();
        let link = Link {
            bandwidth: Some(1_000_000),
            ..steady(Duration::ZERO)
        };
        network.link("a", "b", link);
        let receiver = b.run(|| async {
            let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            (bytes.len(), now())
        });
        let sender = a.run(|| async {
            sleep(SECOND).await;
            let start = now();
            let mut stream = TcpStream::connect("b:7").await.unwrap();
            stream.write_all(&[7; 500_000]).await.unwrap();
            start
        });
        let start = sender.await.unwrap();
        let (length, end) = receiver.await.unwrap();
        assert_eq!((length, end - start), (500_000, SECOND / 2));
    });
}

#[test]
fn latency_varies_with_the_seed_and_keeps_the_order_of_bytes() {
    let times = RefCell::new(BTreeSet::new());
    let explore = Explore::new()
        .seeds(60)
        .without(Kind::Delay)
        .without(Kind::Late);
    explore.run(|| async {
        let (_network, a, b) = two_hosts();
        b.run(echo).detach();
        let (text, time) = a
            .run(|| async {
                sleep(SECOND).await;
                let stream = TcpStream::connect("b:7").await.unwrap();
                let start = now();
                let (mut reader, mut writer) = (&stream, &stream);
                for piece in [&b"one "[..], b"two ", b"three"] {
                    writer.write_all(piece).await.unwrap();
                }
                writer.close().await.unwrap();
                let mut text = String::new();
                reader.read_to_string(&mut text).await.unwrap();
                (text, now() - start)
            })
            .await
            .unwrap();
        assert_eq!(text, "one two three");
        times.borrow_mut().insert(time);
    });
    let times = times.into_inner();
    assert!(times.len() > 5, "{times:?}");
    assert!(
        times.iter().all(|time| *time <= 20 * MILLISECOND),
        "{times:?}"
    );
}

#[test]
fn a_partition_stalls_connections_and_a_heal_resumes_them() {
    Explore::new().seeds(50).run(|| async {
        let (network, a, b) = two_hosts();
        b.run(echo).detach();
        a.run(move || {
            let network = network.clone();
            async move {
                sleep(SECOND).await;
                let mut stream = TcpStream::connect("b:7").await.unwrap();
                assert_eq!(ask(&mut stream, b"before").await.unwrap(), b"before");
                network.partition("a", "b");
                stream.write_all(b"during").await.unwrap();
                let mut answer = [0; 6];
                let stalled = timeout(10 * SECOND, stream.read(&mut answer)).await;
                assert!(stalled.is_err(), "nothing arrives");
                network.heal("b", "a");
                stream.read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, b"during");
                assert_eq!(ask(&mut stream, b"after").await.unwrap(), b"after");
            }
        })
        .await
        .unwrap();
    });
}

#[test]
fn what_is_in_flight_waits_for_the_end_of_a_partition() {
    simulated().block_on(async {
        let (network, a, b) = two_hosts();
        network.link("a", "b", steady(10 * MILLISECOND));
        b.run(echo).detach();
        let client = a.run(move || {
            let network = network.clone();
            async move {
                sleep(SECOND).await;
                let mut stream = TcpStream::connect("b:7").await.unwrap();
                stream.write_all(b"one ").await.unwrap();
                sleep(5 * MILLISECOND).await;
                // The first bytes are half way.
                network.partition("a", "b");
                stream.write_all(b"two ").await.unwrap();
                sleep(SECOND).await;
                network.heal("a", "b");
                stream.write_all(b"three").await.unwrap();
                stream.close().await.unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).await.unwrap();
                text
            }
        });
        assert_eq!(client.await.unwrap(), "one two three");
    });
}

#[test]
fn a_connect_through_a_partition_times_out() {
    simulated().block_on(async {
        let (network, a, b) = two_hosts();
        b.run(echo).detach();
        network.partition("a", "b");
        let error = a.run(|| async {
            let start = now();
            let error = TcpStream::connect("b:7").await.unwrap_err();
            (error.kind(), now() - start)
        });
        assert_eq!(
            error.await.unwrap(),
            (io::ErrorKind::TimedOut, 127 * SECOND)
        );
        let early = a.run(|| TcpStream::connect("b:7"));
        sleep(SECOND).await;
        network.heal("a", "b");
        assert!(early.await.unwrap().is_ok(), "the request is repeated");
    });
}

#[test]
fn datagrams_are_lost_in_a_partition() {
    simulated().block_on(async {
        let (network, a, b) = two_hosts();
        let receiver = b.run(|| async {
            let socket = UdpSocket::bind("0.0.0.0:9").await.unwrap();
            let mut byte = [0];
            socket.recv(&mut byte).await.unwrap();
            byte[0]
        });
        a.run(move || {
            let network = network.clone();
            async move {
                sleep(SECOND).await;
                let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                let to = "10.0.0.2:9".parse().unwrap();
                network.partition("a", "b");
                socket.send_to(&[1], to).await.unwrap();
                network.heal("a", "b");
                socket.send_to(&[2], to).await.unwrap();
            }
        })
        .await
        .unwrap();
        assert_eq!(receiver.await.unwrap(), 2);
    });
}

/// Writes when it is dropped, as a buffered writer does.
struct Last(Rc<TcpStream>, Rc<Cell<Option<io::ErrorKind>>>);

impl Drop for Last {
    fn drop(&mut self) {
        self.1
            .set(self.0.try_write(b"last").err().map(|error| error.kind()));
    }
}

#[test]
fn a_crash_ends_the_tasks_and_resets_the_connections() {
    Explore::new().seeds(50).run(|| async {
        let (_network, _a, b) = two_hosts();
        let (steps, seen) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
        let (counted, written) = (steps.clone(), seen.clone());
        let server = b.run(move || {
            let (counted, written) = (counted.clone(), written.clone());
            async move {
                spawn(async move {
                    loop {
                        sleep(MILLISECOND).await;
                        counted.set(counted.get() + 1);
                    }
                })
                .detach();
                let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                let _last = Last(Rc::new(stream), written);
                std::future::pending::<()>().await;
            }
        });
        sleep(SECOND).await;
        let mut client = TcpStream::connect("b:7").await.unwrap();
        sleep(SECOND).await;
        b.crash();
        let before = steps.get();
        assert!(before > 0);
        let error = client.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(server.await.unwrap_err().is_cancelled());
        sleep(10 * SECOND).await;
        assert_eq!(steps.get(), before, "nothing of the host runs any more");
        let kind = seen.get().expect("the write of a destructor fails");
        assert_eq!(kind, io::ErrorKind::ConnectionAborted);
        let error = TcpStream::connect("b:7").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_restart_runs_the_programs_again() {
    Explore::new().seeds(30).run(|| async {
        let (_network, _a, b) = two_hosts();
        let starts = Rc::new(Cell::new(0));
        let counted = starts.clone();
        b.run(move || {
            counted.set(counted.get() + 1);
            echo()
        })
        .detach();
        for round in 1..4 {
            sleep(SECOND).await;
            let mut client = TcpStream::connect("b:7").await.unwrap();
            assert_eq!(ask(&mut client, b"hello").await.unwrap(), b"hello");
            assert_eq!(starts.get(), round);
            b.crash();
            assert!(ask(&mut client, b"hello").await.is_err());
            b.restart();
        }
    });
}

#[test]
fn a_task_that_crashes_its_own_host_ends_at_its_next_await() {
    simulated().block_on(async {
        let (_network, a, _b) = two_hosts();
        let host = a.clone();
        let task = a.run(move || {
            let host = host.clone();
            async move {
                let listener = TcpListener::bind("0.0.0.0:7").await.unwrap();
                host.crash();
                assert!(listener.local_addr().is_err());
                let error = TcpListener::bind("0.0.0.0:8").await.unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
                sleep(MILLISECOND).await;
                unreachable!("the host has crashed");
            }
        });
        assert!(task.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_program_that_holds_its_host_does_not_keep_the_loop() {
    let held = Rc::new(());
    let inside = held.clone();
    simulated().block_on(async move {
        let (_network, a, _b) = two_hosts();
        let host = a.clone();
        a.run(move || {
            let (host, _inside) = (host.clone(), inside.clone());
            async move { host.name() }
        })
        .await
        .unwrap();
    });
    assert_eq!(
        Rc::strong_count(&held),
        1,
        "the program is dropped with the loop"
    );
}

#[test]
fn each_host_has_its_wall_clock() {
    simulated().block_on(async {
        let (_network, a, b) = two_hosts();
        a.clock_skew(5_000);
        b.clock_skew(-2_000);
        let here = system_now();
        let of = |host: &Host| host.run(|| async { system_now() });
        assert_eq!(of(&a).await.unwrap(), here + 5 * SECOND);
        assert_eq!(of(&b).await.unwrap(), here - 2 * SECOND);
        sleep(SECOND).await;
        assert_eq!(system_now(), here + SECOND);
    });
    let real = phaseloop::block_on(async { system_now() });
    assert!(real > SystemTime::UNIX_EPOCH + 3 * 365 * 24 * 3600 * SECOND);
    assert!(SystemTime::now().duration_since(real).unwrap() < 3600 * SECOND);
}

#[test]
fn jobs_and_hosts_go_together() {
    Explore::new().seeds(30).run(|| async {
        let (_network, a, _b) = two_hosts();
        let answer = a.run(|| async {
            let job = spawn_blocking(|| 7).await.unwrap();
            // After the job the task is still one of its host.
            let listener = TcpListener::bind("10.0.0.1:0").await.unwrap();
            (job, listener.local_addr().unwrap().ip())
        });
        assert_eq!(answer.await.unwrap(), (7, a.address()));
    });
}

#[test]
fn a_program_that_waits_for_ever_is_a_dead_end_at_once() {
    // A run that waits for something outside hangs.
    let explore = Explore::new().seeds(1).stall(Duration::MAX);
    let found = explore.try_run(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let accepting = spawn(async move { listener.accept().await.map(drop) });
        drop(accepting.await);
    });
    let found = found.unwrap_err();
    assert!(
        found
            .message
            .contains("nothing is left that could wake the program"),
        "{found}"
    );
    assert!(
        found.report.contains("TcpListener 127.0.0.1:40000"),
        "{found}"
    );
}

#[test]
fn a_socket_in_memory_says_that_it_has_no_descriptor() {
    let refused = std::panic::catch_unwind(|| {
        simulated().block_on(async {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.get_ref().local_addr()
        })
    });
    let text = *refused.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("has no descriptor"), "{text}");
    // One of the kernel has.
    simulated().block_on(async {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = UdpSocket::from_std(socket).unwrap();
        assert!(socket.get_ref().local_addr().is_ok());
        let here = socket.local_addr().unwrap();
        socket.send_to(b"x", here).await.unwrap();
        assert_eq!(socket.recv(&mut [0; 4]).await.unwrap(), 1);
    });
}

#[test]
fn a_backlog_that_is_full_refuses() {
    let settings = Settings {
        backlog: 2,
        ..Settings::default()
    };
    let event_loop = Builder::new().network(settings).build().unwrap();
    event_loop.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
        let _waiting = [
            TcpStream::connect("127.0.0.1:7").await.unwrap(),
            TcpStream::connect("127.0.0.1:7").await.unwrap(),
        ];
        let error = TcpStream::connect("127.0.0.1:7").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        listener.accept().await.unwrap();
        assert!(TcpStream::connect("127.0.0.1:7").await.is_ok());
    });
}

#[test]
fn a_small_window_holds_writers_back() {
    let settings = Settings {
        window: 100,
        ..Settings::default()
    };
    Explore::new().seeds(20).network(settings).run(|| async {
        let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
        let mut client = TcpStream::connect("127.0.0.1:7").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let written = Rc::new(Cell::new(0));
        let counted = written.clone();
        spawn(async move {
            for _ in 0..10 {
                client.write_all(&[7; 50]).await.unwrap();
                counted.set(counted.get() + 50);
            }
        })
        .detach();
        sleep(SECOND).await;
        assert_eq!(written.get(), 100);
        let mut bytes = Vec::new();
        server.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes.len(), 500);
    });
}

/// Each of so many hosts asks the next one a question.
async fn ring(count: u16) -> usize {
    let network = Network::current();
    let answered = Rc::new(Cell::new(0));
    let hosts: Vec<Host> = (0..count)
        .map(|n| network.host(&format!("host{n}"), [10, 1, (n >> 8) as u8, n as u8]))
        .collect();
    for host in &hosts {
        host.run(echo).detach();
    }
    let mut clients = Vec::new();
    for (n, host) in hosts.iter().enumerate() {
        let (next, answered) = ((n + 1) % hosts.len(), answered.clone());
        clients.push(host.run(move || {
            let answered = answered.clone();
            async move {
                sleep(SECOND).await;
                let mut stream = TcpStream::connect(format!("host{next}:7")).await.unwrap();
                for _ in 0..10 {
                    assert_eq!(ask(&mut stream, b"hello").await.unwrap(), b"hello");
                    answered.set(answered.get() + 1);
                }
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    answered.get()
}

#[test]
fn a_thousand_hosts_fit_into_one_test() {
    let usual = Explore::new().strategy(Strategy::Usual).seeds(0);
    usual.check(Determinism::Off).run(|| async {
        assert_eq!(ring(1000).await, 10_000);
    });
}

#[test]
fn a_cluster_is_repeated_exactly() {
    let explore = Explore::new().seeds(10).check(Determinism::Every(1));
    explore.run(|| async {
        assert_eq!(ring(20).await, 200);
    });
}
