//! Sockets of several loops, on one network in memory.

use std::time::Duration;

use phaseloop::cluster::{self, Balance};
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{Detached, TcpListener, TcpStream};
use phaseloop::shuffle::Explore;
use phaseloop::spawn;

// C23: a socket of one loop reaches that of another one.
#[phaseloop::test(loops = 3, seeds = 100)]
async fn loops_are_on_one_network() {
    let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
    let clients = cluster::current().each(|index| async move {
        if index == 0 {
            return String::new();
        }
        let mut stream = TcpStream::connect("127.0.0.1:80").await.unwrap();
        stream
            .write_all(format!("from {index}").as_bytes())
            .await
            .unwrap();
        stream.close().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    for _ in 0..2 {
        let (mut stream, _) = listener.accept().await.unwrap();
        spawn(async move {
            let mut question = String::new();
            stream.read_to_string(&mut question).await.unwrap();
            stream
                .write_all(format!("to {question}").as_bytes())
                .await
                .unwrap();
        })
        .detach();
    }
    let answers: Vec<_> = clients.await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, ["", "to from 1", "to from 2"]);
}

// C13, C23: a socket in memory moves between loops in the middle of a stream, and loses no byte.
#[phaseloop::test(loops = 3, seeds = 100)]
async fn a_moved_socket_loses_no_byte() {
    let listener = TcpListener::bind("127.0.0.1:80").await.unwrap();
    let writer = spawn(async {
        let mut stream = TcpStream::connect("127.0.0.1:80").await.unwrap();
        for byte in 0..20 {
            stream.write_all(&[byte]).await.unwrap();
        }
    });
    let (mut moved, _) = listener.accept_detached().await.unwrap();
    for byte in 0..20 {
        let next = cluster::current().remote(usize::from(byte) % 3).clone();
        let read = next.spawn(move || async move {
            let mut stream = moved.attach().unwrap();
            let mut buffer = [0];
            stream.read_exact(&mut buffer).await.unwrap();
            (buffer[0], stream.detach())
        });
        let (read, detached): (u8, Detached<TcpStream>) = read.unwrap().await.unwrap();
        assert_eq!(read, byte);
        moved = detached;
    }
    writer.await.unwrap();
}

// C23, C14, C18: connections are spread over the loops, and a shutdown cuts none.
#[test]
fn a_server_on_all_loops_stops_without_a_cut() {
    for balance in [Balance::LeastLag, Balance::RoundRobin] {
        Explore::new().seeds(50).loops(3).run(|| async move {
            let listeners = cluster::listen("127.0.0.1:80")
                .balance(balance)
                .await
                .unwrap();
            let servers = cluster::current().each(move |index| {
                let listener = listeners.here();
                async move {
                    let serve = async {
                        loop {
                            let (mut stream, _) = listener.accept().await.unwrap();
                            spawn(async move { stream.write_all(&[index as u8]).await.unwrap() })
                                .detach();
                        }
                    };
                    cluster::stopping().run_until_cancelled(serve).await;
                }
            });
            let mut clients = Vec::new();
            for _ in 0..6 {
                clients.push(spawn(async {
                    let mut stream = TcpStream::connect("127.0.0.1:80").await.unwrap();
                    let mut answer = Vec::new();
                    stream.read_to_end(&mut answer).await.unwrap();
                    answer[0]
                }));
            }
            let mut served = [0; 3];
            for client in clients {
                served[usize::from(client.await.unwrap())] += 1;
            }
            assert_eq!(served.iter().sum::<u32>(), 6);
            let stopped = cluster::current().shutdown(Duration::from_secs(5)).await;
            assert!(stopped.is_clean(), "{stopped}");
            for server in servers.await {
                server.unwrap();
            }
        });
    }
}
