//! Sockets of the network in memory.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures::AsyncReadExt;
use phaseloop::net::TcpStream;
use phaseloop::sim::Settings;
use phaseloop::time::sleep;
use phaseloop_node as node;

#[test]
fn nodes_sockets_run_in_memory() {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let seen = lines.clone();
    let network = phaseloop::Builder::new().network(Settings::default());
    network.build().unwrap().block_on(async move {
        let log = seen.clone();
        let server = node::net::create_server(move |socket| {
            log.borrow_mut().push("connection".to_owned());
            socket.end("hello");
        });
        server.listen("127.0.0.1:80".parse::<std::net::SocketAddr>().unwrap());
        sleep(Duration::from_millis(10)).await;
        let mut client = TcpStream::connect("127.0.0.1:80").await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        seen.borrow_mut().push(text);
        server.close();
    });
    assert_eq!(*lines.borrow(), ["connection", "hello"]);
}

#[cfg(feature = "tls")]
#[test]
fn handshakes_that_never_end_keep_no_other_client_out() {
    use phaseloop::LoopHandle;
    use phaseloop_node::events::ERROR;
    use phaseloop_node::stream::{CLOSE, END};
    use phaseloop_node::{Emitter, net, tls};

    const CA: &[u8] = include_bytes!("../../../../tests/util/certificates/ca.pem");
    const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
    const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

    let identity = tls::ServerContext::new(CERTIFICATE, KEY).unwrap();
    let trust = tls::ClientContext::with_ca(CA).unwrap();
    let network = phaseloop::Builder::new().network(Settings::default());
    let exit = node::run_on(&mut network.build().unwrap(), async move {
        let server = tls::create_server(&identity, |socket| socket.end("hello"));
        let address: std::net::SocketAddr = "127.0.0.1:443".parse().unwrap();
        server.listen(address);
        node::sleep(10).await.unwrap();
        let mut silent = Vec::new();
        // More than the server takes at a time, and fewer than may wait to be accepted.
        for _ in 0..12 {
            silent.extend((0..100).map(|_| net::connect(address)));
            node::sleep(100).await.unwrap();
        }
        for socket in &silent {
            socket.on(ERROR, |_| ());
            socket.resume();
        }
        let start = LoopHandle::current().now();
        let client = tls::connect_with(address, Some("localhost"), &trust);
        let (ended, text) = (
            node::events::once(&client, END),
            Rc::new(RefCell::new(Vec::new())),
        );
        let seen = text.clone();
        client.on_data(move |bytes| seen.borrow_mut().extend_from_slice(bytes));
        let closed = node::events::once(&client, CLOSE);
        ended.await.unwrap();
        closed.await.unwrap();
        assert_eq!(*text.borrow(), b"hello");
        assert!(LoopHandle::current().now() - start < Duration::from_secs(60));
        // The oldest ones have made room.
        assert!(silent[0].destroyed() && !silent[1199].destroyed());
        for socket in silent {
            socket.destroy(None);
        }
        server.close();
    });
    assert_eq!(exit.code(), 0);
}
