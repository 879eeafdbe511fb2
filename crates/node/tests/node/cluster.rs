//! Servers on all loops of a cluster.

use std::net::SocketAddr;

use phaseloop::cluster;
use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::TcpStream;
use phaseloop_node::{http, net};

use crate::util::clusters::{listeners, shut_down, until_all_listen};

/// Connects four times, sends a text, and returns the answers.
async fn ask(address: SocketAddr, text: &str) -> Vec<String> {
    let mut answers = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answers.push(answer.rsplit("\r\n").next().unwrap().to_owned());
    }
    answers.sort();
    answers
}

// C14: `server.listen` takes the listener of a loop, as Node takes a handle.
#[test]
fn a_server_listens_on_each_loop() {
    let run = cluster::Builder::new().loops(2).block_on(async {
        let listeners = listeners().await;
        let address = listeners.local_addr();
        let (listens, listening) = cluster::channel(2);
        let servers = cluster::current().each(move |index| {
            let server = net::create_server(move |socket| socket.end(format!("net {index}")));
            server.listen(listeners.here());
            assert_eq!(server.address(), Some(address));
            let listens = listens.clone();
            async move {
                listens.send(()).await.unwrap();
                cluster::stopping().cancelled().await;
                server.close();
            }
        });
        until_all_listen(listening).await;
        let answers = ask(address, "").await;
        assert_eq!(answers, ["net 0", "net 0", "net 1", "net 1"]);
        shut_down().await;
        for server in servers.await {
            server.unwrap();
        }
    });
    run.unwrap();
}

// C14: HTTP.
#[test]
fn an_http_server_listens_on_each_loop() {
    let run = cluster::Builder::new().loops(2).block_on(async {
        let listeners = listeners().await;
        let address = listeners.local_addr();
        let (listens, listening) = cluster::channel(2);
        let servers = cluster::current().each(move |index| {
            let server = http::create_server(move |_, response| {
                response.end(format!("http {index}"));
            });
            server.listen(listeners.here());
            let listens = listens.clone();
            async move {
                listens.send(()).await.unwrap();
                cluster::stopping().cancelled().await;
                server.close();
            }
        });
        until_all_listen(listening).await;
        let request = "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
        let answers = ask(address, request).await;
        assert_eq!(answers, ["http 0", "http 0", "http 1", "http 1"]);
        shut_down().await;
        for server in servers.await {
            server.unwrap();
        }
    });
    run.unwrap();
}

// C18: a server that is closed returns what it has not accepted, and other loops serve it.
#[test]
fn a_closed_server_gives_its_connections_back() {
    let run = cluster::Builder::new().loops(2).block_on(async {
        let listeners = listeners().await;
        let address = listeners.local_addr();
        let servers = cluster::current().each(move |index| {
            let server = net::create_server(move |socket| socket.end(format!("net {index}")));
            server.listen(listeners.here());
            async move {
                if index == 1 {
                    server.close();
                }
                cluster::stopping().cancelled().await;
                server.close();
            }
        });
        // Until the other server is closed, it may have a connection on its way.
        let last = ask(address, "").await;
        assert_eq!(last.len(), 4, "{last:?}");
        shut_down().await;
        for server in servers.await {
            server.unwrap();
        }
    });
    run.unwrap();
}
