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
