//! 875, 913: what handshakes of `tls` agree on, and what callbacks choose.

use std::net::SocketAddr;

use phaseloop_node::events::ERROR;
use phaseloop_node::net::{CONNECT, Server};
use phaseloop_node::stream::{CLOSE, END, duplex_pair};
use phaseloop_node::tls::{self, Certificate, ClientContext, ServerContext};
use phaseloop_node::{Emitter, Error, sleep};

use crate::support::{log, says, text};

super::ports! {
    Real "875-tls-sessions" => sessions,
    Real "913-tls-choices" => choices,
}

const CA: &[u8] = include_bytes!("../../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../../tests/util/certificates/server.pem");
const SECOND_CA: &[u8] = include_bytes!("../../../../../tests/util/certificates/second-ca.pem");
const OTHER: &[u8] = include_bytes!("../../../../../tests/util/certificates/other.pem");
const OTHER_KEY: &[u8] = include_bytes!("../../../../../tests/util/certificates/other.key");
const ODD: &[u8] = include_bytes!("../../../../../tests/util/certificates/odd.pem");
const ODD_KEY: &[u8] = include_bytes!("../../../../../tests/util/certificates/odd.key");
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

fn show(certificate: &Certificate) {
    let pairs = |name: Vec<(String, String)>| {
        let pairs: Vec<_> = name
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        pairs.join("/")
    };
    log(format!(
        "{} by {}",
        pairs(certificate.subject()),
        pairs(certificate.issuer())
    ));
    let uses = certificate.ext_key_usage().map(|uses| uses.join(","));
    log(format!(
        "{} {} {} {}",
        certificate.subject_alt_name().unwrap(),
        certificate.ca(),
        uses.as_deref().unwrap_or("undefined"),
        certificate.serial_number().unwrap()
    ));
    log(format!(
        "{} {}",
        certificate.valid_from().unwrap(),
        certificate.valid_to().unwrap()
    ));
    log(format!(
        "{} {} {}",
        certificate.fingerprint(),
        certificate.fingerprint256(),
        certificate.fingerprint512()
    ));
}

async fn by_name(name: String) -> Result<Option<ServerContext>, Error> {
    log(format!("sni {name}"));
    if name == "refused.test" {
        return Err(Error::new("no"));
    }
    sleep(5).await?;
    match &*name {
        "other.test" => ServerContext::new(OTHER, OTHER_KEY).map(Some),
        "odd.test" => ServerContext::new(ODD, ODD_KEY).map(Some),
        _ => Ok(None),
    }
}

async fn choices() {
    let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
    let context = context
        .with_sni_callback(by_name)
        .with_alpn_callback(|name, offered| {
            log(format!("alpn {} {}", name.unwrap(), offered.join(",")));
            offered.iter().find(|offer| offer.starts_with('b')).cloned()
        });
    let server = tls::create_server(&context, |socket| {
        let session = tls::session(socket).unwrap();
        log(format!(
            "server {} {}",
            session.alpn_protocol().unwrap_or("false"),
            session.server_name().unwrap()
        ));
        socket.on(ERROR, |_| ());
        socket.end("hello");
    });
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    server.listen_this(local, |server| {
        let talks: Vec<(&str, &[&str])> = vec![
            ("localhost", &["a", "b1", "b2"]),
            ("other.test", &["b2", "b1"]),
            ("odd.test", &[]),
            ("refused.test", &[]),
            ("localhost", &["a", "c"]),
        ];
        choose(server.clone(), talks.into_iter());
    });
}

fn choose(server: Server, mut talks: std::vec::IntoIter<(&'static str, &'static [&'static str])>) {
    let Some((name, protocols)) = talks.next() else {
        server.close();
        return over();
    };
    let trusted = ClientContext::with_ca(&[CA, SECOND_CA, ODD].concat()).unwrap();
    let trusted = trusted.with_alpn_protocols(protocols.iter().copied());
    let socket = tls::connect_with(server.address().unwrap(), Some(name), &trusted);
    socket.on_this(CONNECT, |socket, ()| {
        let session = tls::session(socket).unwrap();
        log(format!(
            "connect {}",
            session.alpn_protocol().unwrap_or("false")
        ));
        show(session.peer_certificate().unwrap());
    });
    socket.on_data(|bytes| log(text(bytes)));
    socket.on(ERROR, says("error"));
    let rest = std::cell::Cell::new(Some((server, talks)));
    socket.on(CLOSE, move |()| {
        log("close");
        if let Some((server, talks)) = rest.take() {
            choose(server, talks);
        }
    });
}

fn over() {
    let (left, right) = duplex_pair::<Vec<u8>>();
    let identity = ServerContext::new(CERTIFICATE, KEY).unwrap();
    let accepted = tls::accept_over(&right, &identity);
    accepted.on_data_this(|accepted, bytes| {
        log(format!("over {}", text(bytes)));
        accepted.end("bye");
    });
    let trusted = ClientContext::with_ca(CA).unwrap();
    let client = tls::connect_over(&left, "localhost", &trusted);
    client.on_this(CONNECT, |client, ()| {
        let session = tls::session(client).unwrap();
        let subject = session.peer_certificate().unwrap().subject();
        log(format!("secure {}", subject[0].1));
        client.write("hello");
    });
    client.on_data(|bytes| log(format!("client {}", text(bytes))));
    client.on_this(END, move |client, ()| {
        log("client end");
        client.destroy(None);
        accepted.destroy(None);
        untrusted();
    });
}

fn untrusted() {
    let (left, right) = duplex_pair::<Vec<u8>>();
    let identity = ServerContext::new(OTHER, OTHER_KEY).unwrap();
    tls::accept_over(&right, &identity).on(ERROR, |_| ());
    let trusted = ClientContext::with_ca(CA).unwrap();
    let client = tls::connect_over(&left, "localhost", &trusted);
    client.on(ERROR, |error| log(error.code().unwrap()));
    client.on(CLOSE, move |()| {
        log("untrusted close");
        right.destroy(None);
    });
}
