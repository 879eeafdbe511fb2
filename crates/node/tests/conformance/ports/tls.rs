//! 875: what handshakes of `tls` agree on.

use std::net::SocketAddr;

use phaseloop_node::Emitter;
use phaseloop_node::events::ERROR;
use phaseloop_node::net::{CONNECT, Server};
use phaseloop_node::stream::CLOSE;
use phaseloop_node::tls::{self, ClientContext, ServerContext};

use crate::support::{log, text};

super::ports! {
    Real "875-tls-sessions" => sessions,
}

const CA: &[u8] = include_bytes!("../../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../../tests/util/certificates/server.key");

async fn sessions() {
    let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
    let context = context.with_alpn_protocols(["two", "one"]);
    let server = tls::create_server(&context, |socket| {
        let session = tls::session(socket).unwrap();
        log(format!(
            "server {} {} {}",
            session.alpn_protocol().unwrap_or("false"),
            session.server_name().unwrap(),
            session.is_reused()
        ));
        socket.end("hello");
        socket.on(ERROR, |_| ());
    });
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    server.listen_this(local, |server| {
        let trusted = || ClientContext::with_ca(CA).unwrap();
        let kept = trusted().with_alpn_protocols(["one", "two"]);
        let talks = vec![
            ("first", kept.clone()),
            ("second", kept),
            ("third", trusted().with_alpn_protocols(["one"])),
            ("none", trusted()),
            ("other", trusted().with_alpn_protocols(["other"])),
        ];
        talk(server.clone(), talks.into_iter());
    });
}

fn talk(server: Server, mut talks: std::vec::IntoIter<(&'static str, ClientContext)>) {
    let Some((name, context)) = talks.next() else {
        return server.close();
    };
    let address = server.address().unwrap();
    let socket = tls::connect_with(address, Some("localhost"), &context);
    socket.on_this(CONNECT, move |socket, ()| {
        let session = tls::session(socket).unwrap();
        log(format!(
            "{name} {} {} {} {}",
            session.alpn_protocol().unwrap_or("none"),
            session.protocol().unwrap(),
            session.cipher().unwrap(),
            session.is_reused()
        ));
        if !session.is_reused() {
            let certificate = &session.peer_certificates()[0];
            let (length, sum) = (certificate.raw().len(), certificate.fingerprint256());
            log(format!("{length} {sum}"));
        }
    });
    socket.on_data(move |bytes| log(format!("{name} {}", text(bytes))));
    socket.on(ERROR, move |_| log(format!("{name} error")));
    let rest = std::cell::Cell::new(Some((server, talks)));
    socket.on(CLOSE, move |()| {
        log(format!("{name} close"));
        if let Some((server, talks)) = rest.take() {
            talk(server, talks);
        }
    });
}
