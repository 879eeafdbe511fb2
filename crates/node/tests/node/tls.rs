//! `node::tls` and `node::https`, with a certificate for `localhost` and 127.0.0.1. All on the
//! paused clock, which does not touch the dates of certificates.
#![cfg(all(feature = "tls", feature = "fetch"))]

use crate::run_to_end;
use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::net::SocketAddr;
use std::rc::Rc;

use phaseloop::shuffle::{Kind, Question};
use phaseloop::{Builder, LoopHandle};
use phaseloop_node::events::{ERROR, once};
use phaseloop_node::http::{RESPONSE, RequestOptions};
use phaseloop_node::net::{self, CONNECT, LISTENING, Server, Socket};
use phaseloop_node::stream::{CLOSE, END};
use phaseloop_node::tls::{self, ClientContext, ServerContext};
use phaseloop_node::{Deferred, Emitter, Error, Promise, fetch, https, run_on, sleep};

use crate::util::child::in_child;
use crate::util::peers::{output, serve, start};
use crate::util::trace::{ms, paused};

const CA: &[u8] = include_bytes!("../../../../tests/util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/server.key");

fn trusting() -> ClientContext {
    ClientContext::with_ca(CA).unwrap()
}

fn run(program: impl Future<Output = ()> + 'static) {
    let (mut event_loop, _, _) = paused();
    assert_eq!(run_on(&mut event_loop, program).code(), 0);
}

async fn listen(server: &Server) -> SocketAddr {
    let listening = once(server, LISTENING);
    server.listen(("127.0.0.1", 0));
    listening.await.unwrap();
    server.address().unwrap()
}

fn server(listener: impl Fn(&Socket) + 'static) -> Server {
    let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
    tls::create_server(&context, listener)
}

/// All that a socket receives until its end.
fn all_of(socket: &Socket) -> Promise<Vec<u8>> {
    let (done, all) = (Deferred::new(), Rc::new(RefCell::new(Vec::new())));
    let (promise, part) = (done.promise(), all.clone());
    socket.on_data(move |bytes| part.borrow_mut().extend_from_slice(bytes));
    socket.once(END, move |()| done.resolve(all.take()));
    promise
}

/// Sends bytes, ends, and receives them in reverse, until the end.
async fn bytes_go_both_ways(length: u32) {
    let server = server(|socket| {
        socket.set_allow_half_open(true);
        let answer = socket.clone();
        all_of(socket).then(move |mut bytes| {
            bytes.reverse();
            answer.end(bytes);
        });
    });
    let address = listen(&server).await;
    let sent: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
    let socket = tls::connect_with(address, Some("localhost"), &trusting());
    socket.set_allow_half_open(true);
    let received = all_of(&socket);
    socket.write(sent[..10].to_vec());
    socket.end(sent[10..].to_vec());
    let mut received = received.await.unwrap();
    received.reverse();
    assert!(received == sent);
    server.close();
}

#[test]
fn bytes_go_both_ways_and_ends_are_seen() {
    run(bytes_go_both_ways(3_000_000));
}

// The kernel may be full when the session says that nothing follows. The end waits for it then.
#[test]
fn the_end_of_a_session_waits_until_the_connection_takes_it() {
    for blocked in 0..12 {
        let mut writes = 0..;
        let blocks_once = move |question: &Question<'_>| {
            let is_meant = question.kind == Kind::Write && writes.next() == Some(blocked);
            usize::from(is_meant)
        };
        let mut event_loop = Builder::new().shuffle(blocks_once).build().unwrap();
        let exit = run_on(&mut event_loop, bytes_go_both_ways(20_000));
        assert_eq!(exit.code(), 0, "write {blocked} would block");
    }
}

#[test]
fn peers_that_are_not_trusted_are_refused_with_nodes_codes() {
    run(async {
        let server = server(|socket| _ = socket.on(ERROR, |_| ()));
        let address = listen(&server).await;
        let code = async |socket: Socket| {
            socket.on(CONNECT, |()| panic!("the peer is not trusted"));
            let failed = once(&socket, ERROR).await.unwrap();
            failed.code().map(str::to_owned).unwrap()
        };
        let unknown = tls::connect_with(address, Some("localhost"), &ClientContext::new());
        assert_eq!(code(unknown).await, "UNABLE_TO_VERIFY_LEAF_SIGNATURE");
        let other = tls::connect_with(address, Some("example.org"), &trusting());
        assert_eq!(code(other).await, "ERR_TLS_CERT_ALTNAME_INVALID");
        server.close();
        let plain = net::create_server(|socket| {
            socket.on(ERROR, |_| ());
            socket.end("this is no TLS\r\n");
        });
        let address = listen(&plain).await;
        let clear = tls::connect_with(address, Some("localhost"), &trusting());
        assert_eq!(code(clear).await, "EPROTO");
        plain.close();
        let rude = net::create_server(|socket| {
            socket.on(ERROR, |_| ());
            socket.end(());
        });
        let address = listen(&rude).await;
        let cut = tls::connect_with(address, Some("localhost"), &trusting());
        assert_eq!(code(cut).await, "ECONNRESET");
        rude.close();
    });
}

#[test]
fn a_peer_that_never_shakes_hands_delays_no_other_and_is_closed() {
    run(async {
        let server = server(|socket| socket.end("hello"));
        let address = listen(&server).await;
        let start = LoopHandle::current().now();
        let silent: Vec<_> = (0..20).map(|_| net::connect(address)).collect();
        let closed = once(&silent[0], CLOSE);
        silent.iter().for_each(Socket::resume);
        let socket = tls::connect_with(address, None, &trusting());
        assert_eq!(all_of(&socket).await.unwrap(), b"hello");
        assert!(LoopHandle::current().now() - start < ms(1000));
        closed.await.unwrap();
        assert!(LoopHandle::current().now() - start >= ms(120_000));
        server.close();
    });
}

#[test]
fn a_peer_that_does_not_read_fills_no_memory() {
    run(async {
        let full = Rc::new(Cell::new(None));
        let known = full.clone();
        let server = server(move |socket| {
            socket.on(ERROR, |_| ());
            let mut rounds = 0_u32;
            while socket.write(vec![0; 64 << 10]) && rounds < 10_000 {
                rounds += 1;
            }
            known.set(Some(socket.writable().length()));
        });
        let address = listen(&server).await;
        let socket = tls::connect_with(address, None, &trusting());
        socket.readable().pause();
        once(&socket, CONNECT).await.unwrap();
        sleep(100).await.unwrap();
        assert!(full.get().unwrap() <= 128 << 10, "{:?}", full.get());
        socket.destroy(None);
        server.close();
    });
}

#[test]
fn https_requests_reuse_their_sockets() {
    run(async {
        let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let server = https::create_server(&context, |request, response| {
            response.end(request.url());
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let address = server.address().unwrap();
        let agent = https::agent(&trusting()).keep_alive(true).build();
        for (path, reused) in [("/1", false), ("/2", true)] {
            let options = RequestOptions::new(("localhost", address.port())).path(path);
            let request = https::get(options.agent(&agent));
            let response = once(&request, RESPONSE).await.unwrap();
            let closed = once(&request, CLOSE);
            response.on_data(move |bytes| assert_eq!(bytes, path.as_bytes()));
            closed.await.unwrap();
            assert_eq!(request.reused_socket(), reused);
            sleep(1).await.unwrap();
        }
        let url = format!("https://localhost:{}/url", address.port());
        let by_url = || RequestOptions::url(&url).unwrap();
        let refused = phaseloop_node::http::try_request(by_url()).unwrap_err();
        assert_eq!(refused.code(), Some("ERR_INVALID_PROTOCOL"));
        let request = https::get(by_url().agent(&agent));
        let response = once(&request, RESPONSE).await.unwrap();
        response.on_data(|bytes| assert_eq!(bytes, b"/url"));
        once(&request, CLOSE).await.unwrap();
        agent.destroy();
        server.close();
    });
}

/// What `openssl req -x509` makes: a certificate of an authority that has signed itself.
const SELF_SIGNED: &[u8] = include_bytes!("../../../../tests/util/certificates/self-signed.pem");
const SELF_SIGNED_KEY: &[u8] =
    include_bytes!("../../../../tests/util/certificates/self-signed.key");

#[test]
fn a_certificate_that_signed_itself_is_trusted_by_its_own_and_by_no_other() {
    run(async {
        let context = ServerContext::new(SELF_SIGNED, SELF_SIGNED_KEY).unwrap();
        let server = https::create_server(&context, |_, response| response.end("ok"));
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let address = server.address().unwrap();
        let own = ClientContext::with_ca(SELF_SIGNED).unwrap();
        let both = ClientContext::with_ca(&[CA, SELF_SIGNED].concat()).unwrap();
        for context in [&own, &both] {
            let agent = https::agent(context).build();
            let request = https::get(RequestOptions::new(address).agent(&agent));
            let response = once(&request, RESPONSE).await.unwrap();
            assert_eq!(response.status_code(), Some(200));
            response.resume();
        }
        let code = async |name: &str, context: &ClientContext| {
            let socket = tls::connect_with(address, Some(name), context);
            let failed = once(&socket, ERROR).await.unwrap();
            failed.code().map(str::to_owned).unwrap()
        };
        assert_eq!(
            code("example.org", &own).await,
            "ERR_TLS_CERT_ALTNAME_INVALID"
        );
        for context in [trusting(), ClientContext::new()] {
            let refused = code("localhost", &context).await;
            assert_eq!(refused, "DEPTH_ZERO_SELF_SIGNED_CERT");
        }
        server.close();
        server.close_all_connections();
    });
}

#[test]
fn a_chain_to_an_authority_that_is_not_trusted_is_refused_with_nodes_code() {
    run(async {
        let chain = [CERTIFICATE, CA].concat();
        let context = ServerContext::new(&chain, KEY).unwrap();
        let server = tls::create_server(&context, |socket| _ = socket.on(ERROR, |_| ()));
        let address = listen(&server).await;
        let socket = tls::connect_with(address, Some("localhost"), &ClientContext::new());
        let failed = once(&socket, ERROR).await.unwrap();
        assert_eq!(failed.code(), Some("SELF_SIGNED_CERT_IN_CHAIN"));
        assert_eq!(
            failed.message(),
            "self-signed certificate in certificate chain"
        );
        server.close();
    });
}

/// Fetches from a server with the certificate of these tests.
fn fetch_once(check: impl FnOnce(Result<u16, Option<String>>) + 'static) {
    run(async move {
        let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let server = https::create_server(&context, |request, response| {
            let codings = request.headers().get("accept-encoding");
            let has_brotli = cfg!(feature = "fetch-brotli");
            assert_eq!(codings == Some("br, gzip, deflate"), has_brotli);
            response.end("ok");
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let url = format!("https://{}", server.address().unwrap());
        let fetched = fetch(&url).send().await;
        check(fetched.map(|response| response.status()).map_err(|failed| {
            let error: &Error = failed.downcast_ref().unwrap();
            let cause: &Error = error.source().unwrap().downcast_ref().unwrap();
            cause.code().map(str::to_owned)
        }));
        server.close();
        server.close_all_connections();
    });
}

#[test]
fn fetch_verifies_its_peer() {
    let refused = Some("UNABLE_TO_VERIFY_LEAF_SIGNATURE".to_owned());
    fetch_once(|fetched| assert_eq!(fetched, Err(refused)));
}

#[test]
fn fetch_trusts_what_the_environment_adds() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/util/certificates/ca.pem"
    );
    let variable = format!("NODE_EXTRA_CA_CERTS={file}");
    let wrapper = ["env", &*variable];
    let test = "fetch_trusts_what_the_environment_adds";
    let child = in_child(&wrapper, test, || {
        fetch_once(|fetched| assert_eq!(fetched, Ok(200)));
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }
}

/// The directory of the certificates.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/util/certificates");

#[test]
fn nodes_client_and_the_server_understand_each_other() {
    const CLIENT: &str = "
        const [base, dir] = process.argv.slice(1), fs = require('fs'), https = require('https');
        const ca = fs.readFileSync(dir + '/ca.pem');
        const req = https.request(base, { method: 'POST', ca }, (res) => {
          let size = 0;
          res.on('data', (d) => { size += d.length; });
          res.on('end', () => console.log(res.statusCode, size));
        });
        req.end('x'.repeat(1000000));";
    run_to_end(async {
        let context = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let server = https::create_server(&context, |request, response| {
            request.readable().pipe(response.writable());
        });
        let listening = once(&server, LISTENING);
        server.listen(("127.0.0.1", 0));
        listening.await.unwrap();
        let base = format!("https://{}", server.address().unwrap());
        if let Some(node) = start("node", &["-e", CLIENT, &base, DIRECTORY]) {
            assert_eq!(output(node).await.trim(), "200 1000000");
        }
        server.close();
        server.close_all_connections();
    });
}

#[test]
fn the_client_and_nodes_server_understand_each_other() {
    const SERVER: &str = "
        const [dir] = process.argv.slice(1), fs = require('fs'), https = require('https');
        const read = (name) => fs.readFileSync(dir + '/' + name);
        const options = { cert: read('server.pem'), key: read('server.key') };
        const server = https.createServer(options, (req, res) => req.pipe(res));
        server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
    let Some((_server, port)) = serve("node", &["-e", SERVER, DIRECTORY]) else {
        return;
    };
    let port: u16 = port.trim().parse().unwrap();
    run_to_end(async move {
        let agent = https::agent(&trusting()).build();
        let options = RequestOptions::new(("localhost", port)).method("POST");
        let request = https::request(options.agent(&agent));
        let responded = once(&request, RESPONSE);
        request.end(vec![b'x'; 1_000_000]);
        let response = responded.await.unwrap();
        let size = Rc::new(Cell::new(0));
        let count = size.clone();
        response.on_data(move |bytes| count.set(count.get() + bytes.len()));
        once(&response, END).await.unwrap();
        assert_eq!(size.get(), 1_000_000);
    });
}

const SECOND_CA: &[u8] = include_bytes!("../../../../tests/util/certificates/second-ca.pem");
const OTHER: &[u8] = include_bytes!("../../../../tests/util/certificates/other.pem");
const OTHER_KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/other.key");
const CLIENT: &[u8] = include_bytes!("../../../../tests/util/certificates/client.pem");
const CLIENT_KEY: &[u8] = include_bytes!("../../../../tests/util/certificates/client.key");

/// What a client gets that asks for a name and trusts both authorities: the bytes of the server, or
/// the code of the error.
async fn asks_for(name: &'static str, address: SocketAddr, context: &ClientContext) -> String {
    let client = tls::connect_with(address, Some(name), context);
    let (done, failed) = (Deferred::new(), Rc::new(Cell::new(None)));
    let (promise, why) = (done.promise(), failed.clone());
    client.on(ERROR, move |error| {
        why.set(Some(error.code().unwrap_or_default().to_owned()));
    });
    let got = Rc::<RefCell<Vec<u8>>>::default();
    let all = got.clone();
    client.on_data(move |bytes| got.borrow_mut().extend_from_slice(bytes));
    client.on(CLOSE, move |()| done.resolve(()));
    promise.await.unwrap();
    let text = String::from_utf8(all.take()).unwrap();
    failed.take().unwrap_or(text)
}

#[test]
fn a_server_shows_the_certificate_of_the_name_that_is_asked_for() {
    run(async {
        let mut context = ServerContext::new(CERTIFICATE, KEY).unwrap();
        let other = ServerContext::new(OTHER, OTHER_KEY).unwrap();
        context.add_context("other.test", &other);
        context.add_context("*.WILD.test", &other);
        let server = tls::create_server(&context, |socket| socket.end("hello"));
        let address = listen(&server).await;
        let both = ClientContext::with_ca(&[CA, SECOND_CA].concat()).unwrap();
        for name in ["localhost", "other.test", "OTHER.test", "a.wild.test"] {
            assert_eq!(asks_for(name, address, &both).await, "hello", "{name}");
        }
        for name in ["a.b.wild.test", "wild.test", "unknown.test"] {
            let refused = "ERR_TLS_CERT_ALTNAME_INVALID";
            assert_eq!(asks_for(name, address, &both).await, refused, "{name}");
        }
        server.close();
    });
}

#[test]
fn a_server_that_asks_for_certificates_refuses_clients_without() {
    run(async {
        let context = ServerContext::with_client_ca(CERTIFICATE, KEY, SECOND_CA).unwrap();
        let server = tls::create_server(&context, |socket| socket.end("hello"));
        let address = listen(&server).await;
        let known = trusting().with_certificate(CLIENT, CLIENT_KEY).unwrap();
        assert_eq!(asks_for("localhost", address, &known).await, "hello");
        let anonymous = asks_for("localhost", address, &trusting()).await;
        assert_ne!(anonymous, "hello");
        // A certificate of an authority that the server does not know.
        let uncertified = trusting().with_certificate(CERTIFICATE, KEY).unwrap();
        assert_ne!(asks_for("localhost", address, &uncertified).await, "hello");
        server.close();
    });
}
