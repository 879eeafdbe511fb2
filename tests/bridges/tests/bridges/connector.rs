//! `hyper::Connector` and `hyper::TlsStream`: hyper-util's client on the loop, against `serve`.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use phaseloop::hyper::{Connector, Listener, TlsStream, serve, serve_with};
use phaseloop::net::TcpListener;
use phaseloop::{JoinHandle, block_on, spawn, time};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

const CA: &[u8] = include_bytes!("../../../util/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../util/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../util/certificates/server.key");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn trusting() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CA).unwrap())
        .unwrap();
    rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn server_config(protocols: &[&str]) -> Arc<rustls::ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap);
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| (*name).into()).collect();
    Arc::new(config)
}

/// Answers with the version, the number of the connection, and what was sent.
async fn describe(
    request: Request<Incoming>,
    connection: u32,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let mut text = format!("{:?} {connection} ", request.version()).into_bytes();
    text.extend(request.into_body().collect().await?.to_bytes());
    Ok(Response::new(Full::new(text.into())))
}

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    async fn start(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { _ = stopped.await };
        let connections = std::cell::Cell::new(0);
        let number = move || {
            connections.set(connections.get() + 1);
            connections.get()
        };
        let task = match tls {
            None => spawn(
                serve_with(listener, move |_| {
                    let number = number();
                    service_fn(move |request| describe(request, number))
                })
                .with_graceful_shutdown(stopped),
            ),
            Some(config) => {
                let listener = listener
                    .with_handshake(move |stream| TlsStream::accept(config.clone(), stream));
                spawn(
                    serve_with(listener, move |_| {
                        let number = number();
                        service_fn(move |request| describe(request, number))
                    })
                    .with_graceful_shutdown(stopped),
                )
            }
        };
        Self {
            address,
            stop,
            task,
        }
    }

    fn uri(&self, scheme: &str, host: &str) -> Uri {
        let port = self.address.port();
        format!("{scheme}://{host}:{port}/").parse().unwrap()
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

async fn send(connector: &Client, uri: Uri, body: &[u8]) -> Result<String, Box<dyn Error>> {
    let request = Request::post(uri).body(Full::new(Bytes::copy_from_slice(body)))?;
    let answer = connector.request(request).await?;
    let body = answer.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.into())?)
}

type Client = hyper_util::client::legacy::Client<Connector, Full<Bytes>>;

#[test]
fn hyper_utils_client_looks_up_connects_and_keeps_connections() {
    block_on(async {
        let server = Server::start(None).await;
        let client = Connector::new().client();
        let uri = server.uri("http", "127.0.0.1");
        for _ in 0..2 {
            let text = send(&client, uri.clone(), b"a").await.unwrap();
            assert_eq!(text, "HTTP/1.1 1 a", "over one connection");
        }
        let by_name = Connector::new().connect_timeout(Duration::from_secs(60));
        let by_name = by_name.client();
        let text = send(&by_name, server.uri("http", "localhost"), b"b").await;
        assert_eq!(text.unwrap(), "HTTP/1.1 2 b");
        drop((client, by_name));
        server.end().await;
    });
}

#[test]
fn https_speaks_the_version_that_both_ends_offer() {
    for (protocols, version) in [(&["h2", "http/1.1"][..], "HTTP/2.0"), (&[], "HTTP/1.1")] {
        block_on(async {
            let server = Server::start(Some(server_config(protocols))).await;
            let client = Connector::new().tls_config(trusting()).client();
            let uri = server.uri("https", "localhost");
            let long = "x".repeat(1 << 20);
            let text = send(&client, uri.clone(), long.as_bytes()).await.unwrap();
            assert_eq!(text, format!("{version} 1 {long}"));
            assert_eq!(
                send(&client, uri, b"again").await.unwrap(),
                format!("{version} 1 again")
            );
            drop(client);
            server.end().await;
        });
    }
}

fn has_kind(error: &(dyn Error + 'static), kind: io::ErrorKind) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == kind)
        {
            return true;
        }
        cause = error.source();
    }
    false
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    block_on(async {
        let server = Server::start(Some(server_config(&[]))).await;
        let client = Connector::new().client();
        let refused = send(&client, server.uri("https", "localhost"), b"").await;
        let error = refused.unwrap_err();
        assert!(has_kind(&*error, io::ErrorKind::InvalidData), "{error:?}");
        let trusting = Connector::new().tls_config(trusting()).client();
        let other_name = send(&trusting, server.uri("https", "127.0.0.2"), b"").await;
        assert!(other_name.is_err(), "the certificate names another host");
        server.end().await;
    });
}

#[test]
fn what_cannot_be_connected_to_says_why() {
    block_on(async {
        let client = Connector::new().client();
        let refused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = refused.local_addr().unwrap().port();
        drop(refused);
        for (uri, kind) in [
            ("ftp://localhost/".to_owned(), io::ErrorKind::InvalidInput),
            (
                format!("http://127.0.0.1:{port}/"),
                io::ErrorKind::ConnectionRefused,
            ),
            (
                format!("http://[::1]:{port}/"),
                io::ErrorKind::ConnectionRefused,
            ),
        ] {
            let error = send(&client, uri.parse().unwrap(), b"").await.unwrap_err();
            let has_no_ipv6 = has_kind(&*error, io::ErrorKind::AddrNotAvailable);
            assert!(has_kind(&*error, kind) || has_no_ipv6, "{uri}: {error:?}");
        }
    });
}

/// The peer accepts and says nothing, so the handshake does not end.
#[test]
fn a_handshake_has_its_part_in_the_time_to_connect() {
    block_on(async {
        time::pause();
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let client = Connector::new().connect_timeout(Duration::from_secs(5));
        let client = client.client();
        let uri = format!("https://127.0.0.1:{port}/").parse().unwrap();
        let asking = spawn(async move {
            send(&client, uri, b"")
                .await
                .map_err(|e| has_kind(&*e, io::ErrorKind::TimedOut))
        });
        let _open = silent.accept().await.unwrap();
        time::advance(Duration::from_secs(5)).await;
        assert_eq!(asking.await.unwrap(), Err(true));
    });
}

/// Its pool drops connections of a loop that is gone.
#[test]
fn a_client_may_outlive_its_loop() {
    let client = block_on(async {
        let server = Server::start(None).await;
        let client = Connector::new().client();
        send(&client, server.uri("http", "127.0.0.1"), b"a")
            .await
            .unwrap();
        client
    });
    drop(client);
}

/// A peer that closes without saying so has cut the body short.
#[test]
fn a_truncated_answer_is_an_error() {
    use futures::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = server_config(&["http/1.1"]);
        let peer = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = TlsStream::accept(config, stream).await.unwrap();
            assert_eq!(stream.protocol(), Some(&b"http/1.1"[..]));
            let read = stream.read(&mut [0; 1024]).await.unwrap();
            assert!(read > 0);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf")
                .await
                .unwrap();
            stream.flush().await.unwrap();
        });
        let client = Connector::new().tls_config(trusting()).client();
        let uri = format!("https://localhost:{port}/").parse().unwrap();
        assert!(send(&client, uri, b"").await.is_err());
        peer.await.unwrap();
    });
}

/// The simplest service, for the types: an `Infallible` error is enough.
#[test]
fn a_service_that_cannot_fail_is_served() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hello = service_fn(|_| async {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
        });
        let server = spawn(serve(listener, hello));
        let client: Client = Connector::new().client();
        let uri = format!("http://{address}/").parse().unwrap();
        assert_eq!(send(&client, uri, b"").await.unwrap(), "hello");
        server.abort();
    });
}
