//! Planted bugs of distributed programs: each is found by seeds and by no ordinary run, and its
//! mended twin passes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream, UdpSocket};
use phaseloop::shuffle::{self, Explore, Found, Kind, Strategy};
use phaseloop::sim::{Host, Link, Network};
use phaseloop::spawn;
use phaseloop::time::{sleep, timeout};

const MOST_SEEDS: u64 = 1_000;

/// Returns what the first seed of each of ten starts finds.
fn is_found<F: Future<Output = ()>>(program: impl Fn() -> F) -> Vec<Found> {
    let usual = Explore::new().strategy(Strategy::Usual).seeds(100);
    let usual = usual.try_run(&program);
    assert!(
        usual.is_ok(),
        "an ordinary run finds it: {}",
        usual.unwrap_err()
    );
    let starts = 0..10;
    let found = starts.map(|start| {
        let explore = Explore::new().first(start * 10_000).seeds(MOST_SEEDS);
        let found = explore.try_run(&program).expect_err("no seed has found it");
        assert!(found.seed.is_some(), "{found}");
        assert!((1..=3).contains(&found.shrunk.len()), "{found}");
        *found
    });
    found.collect()
}

fn survives<F: Future<Output = ()>>(program: impl Fn() -> F) {
    shuffle::explore(500, program);
}

fn hosts<const N: usize>(network: &Network) -> [Host; N] {
    std::array::from_fn(|n| network.host(&format!("n{n}"), [10, 0, 0, n as u8 + 1]))
}

/// A length and so many bytes, in one read or in as many as it takes.
async fn message(whole: bool) {
    let network = Network::current();
    let [server, client] = hosts(&network);
    let got = server.run(move || async move {
        let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 16];
        if whole {
            stream.read_exact(&mut bytes[..8]).await.unwrap();
        } else {
            let _length = stream.read(&mut bytes).await.unwrap();
        }
        bytes[..8].to_vec()
    });
    client
        .run(|| async {
            sleep(Duration::from_millis(10)).await;
            let mut stream = TcpStream::connect("n0:1").await.unwrap();
            stream.write_all(b"eight by").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        })
        .detach();
    assert_eq!(got.await.unwrap(), b"eight by");
}

#[test]
fn one_read_that_is_taken_for_one_message_is_found() {
    let found = is_found(|| message(false));
    assert!(found.iter().any(|found| found.shrunk[0].kind == Kind::Read));
    survives(|| message(true));
}

/// A counter on a server; two clients read it, add one and write it back.
async fn counter(compares: bool) {
    let network = Network::current();
    let [server, one, two] = hosts(&network);
    let value = Rc::new(Cell::new(0_u8));
    let stored = value.clone();
    server
        .run(move || {
            let stored = stored.clone();
            async move {
                let socket = UdpSocket::bind("0.0.0.0:1").await.unwrap();
                let mut request = [0; 2];
                loop {
                    let (length, from) = socket.recv_from(&mut request).await.unwrap();
                    let is_current = !compares || request[0] == stored.get();
                    if length == 2 && is_current {
                        stored.set(request[1]);
                    }
                    let answer = [stored.get(), u8::from(is_current)];
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        })
        .detach();
    let client = |late: u64| {
        move || async move {
            sleep(Duration::from_millis(10 + late)).await;
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            socket.connect("n0:1").await.unwrap();
            let mut answer = [0; 2];
            loop {
                socket.send(&[]).await.unwrap();
                socket.recv(&mut answer).await.unwrap();
                socket.send(&[answer[0], answer[0] + 1]).await.unwrap();
                socket.recv(&mut answer).await.unwrap();
                if answer[1] == 1 {
                    return;
                }
            }
        }
    };
    // In an ordinary run the first one is done before the second one begins.
    let clients = [one.run(client(0)), two.run(client(4))];
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(value.get(), 2);
}

#[test]
fn a_lost_update_is_found() {
    is_found(|| counter(false));
    survives(|| counter(true));
}

/// A server that counts requests; a client that repeats a request when no answer comes.
async fn repeated(by_number: bool) {
    let network = Network::current();
    let [server, client] = hosts(&network);
    network.link(
        "n0",
        "n1",
        Link {
            loss: 0.3,
            ..Link::default()
        },
    );
    let done = Rc::new(RefCell::new(Vec::new()));
    let list = done.clone();
    server
        .run(move || {
            let list = list.clone();
            async move {
                let socket = UdpSocket::bind("0.0.0.0:1").await.unwrap();
                let mut request = [0];
                loop {
                    let (_, from) = socket.recv_from(&mut request).await.unwrap();
                    let is_new = !list.borrow().contains(&request[0]);
                    if is_new || !by_number {
                        list.borrow_mut().push(request[0]);
                    }
                    socket.send_to(&request, from).await.unwrap();
                }
            }
        })
        .detach();
    let asked = client.run(|| async {
        sleep(Duration::from_millis(10)).await;
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        socket.connect("n0:1").await.unwrap();
        for number in 0..3 {
            loop {
                socket.send(&[number]).await.unwrap();
                let mut answer = [0];
                let wait = Duration::from_secs(1);
                if timeout(wait, socket.recv(&mut answer)).await.is_ok() && answer[0] == number {
                    break;
                }
            }
        }
    });
    asked.await.unwrap();
    assert_eq!(*done.borrow(), [0, 1, 2], "each request is done once");
}

#[test]
fn a_request_that_is_done_twice_is_found() {
    let found = is_found(|| repeated(false));
    assert!(found.iter().any(|found| found.shrunk[0].kind == Kind::Loss));
    survives(|| repeated(true));
}

/// A client that takes the end of a stream for the end of the answer, and a server that crashes.
async fn download(checks_length: bool) {
    let network = Network::current();
    let [server, client] = hosts(&network);
    server
        .run(|| async {
            let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                spawn(async move {
                    for _ in 0..4 {
                        // A disk is read in between.
                        sleep(Duration::from_millis(1)).await;
                        if stream.write_all(&[7; 100]).await.is_err() {
                            return;
                        }
                    }
                    sleep(Duration::from_secs(1)).await;
                })
                .detach();
            }
        })
        .detach();
    let host = server.clone();
    spawn(async move {
        sleep(Duration::from_millis(40)).await;
        host.crash();
        host.restart();
    })
    .detach();
    let got = client.run(move || async move {
        sleep(Duration::from_millis(10)).await;
        loop {
            let Ok(mut stream) = TcpStream::connect("n0:1").await else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (mut bytes, mut part) = (Vec::<u8>::new(), [0; 400]);
            while bytes.len() < 400 {
                match stream.read(&mut part).await {
                    Ok(count) if count > 0 => bytes.extend(&part[..count]),
                    _ => break,
                }
            }
            if !checks_length || bytes.len() == 400 {
                return bytes.len();
            }
        }
    });
    assert_eq!(got.await.unwrap(), 400);
}

#[test]
fn half_an_answer_that_a_crash_leaves_is_found() {
    is_found(|| download(false));
    survives(|| download(true));
}
