//! TLS, three ways: our own, futures-rustls, and tokio-rustls over tokio's traits.

use std::sync::Arc;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::hyper::TlsStream;
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{block_on, spawn};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

const CA: &[u8] = include_bytes!("../../../node/certificates/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../node/certificates/server.pem");
const KEY: &[u8] = include_bytes!("../../../node/certificates/server.key");

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn client_config() -> rustls::ClientConfig {
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

pub(crate) fn server_config() -> Arc<rustls::ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(CERTIFICATE).map(Result::unwrap);
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key);
    Arc::new(config.unwrap())
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (client, server) = futures::join!(client, listener.accept());
    (client.unwrap(), server.unwrap().0)
}

const LENGTH: usize = 300_000;

#[test]
fn our_own_streams() {
    block_on(async {
        let (client, server) = pair().await;
        let server = spawn(async move {
            let mut server = TlsStream::accept(server_config(), server).await.unwrap();
            let mut all = vec![0; LENGTH];
            server.read_exact(&mut all).await.unwrap();
            server.write_all(&all).await.unwrap();
            server.close().await.unwrap();
        });
        let config = Arc::new(client_config());
        let mut client = TlsStream::connect(config, name(), client).await.unwrap();
        client.write_all(&[7; LENGTH]).await.unwrap();
        client.flush().await.unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, [7; LENGTH]);
        server.await.unwrap();
    });
}

#[test]
fn futures_rustls() {
    block_on(async {
        let (client, server) = pair().await;
        let server = spawn(async move {
            let acceptor = futures_rustls::TlsAcceptor::from(server_config());
            let mut server = acceptor.accept(server).await.unwrap();
            let mut all = vec![0; LENGTH];
            server.read_exact(&mut all).await.unwrap();
            server.write_all(&all).await.unwrap();
            server.close().await.unwrap();
        });
        let connector = futures_rustls::TlsConnector::from(Arc::new(client_config()));
        let mut client = connector.connect(name(), client).await.unwrap();
        client.write_all(&[7; LENGTH]).await.unwrap();
        client.flush().await.unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, [7; LENGTH]);
        server.await.unwrap();
    });
}

#[test]
fn tokio_rustls() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    block_on(async {
        let (client, server) = pair().await;
        let server = spawn(async move {
            let acceptor = tokio_rustls::TlsAcceptor::from(server_config());
            let mut server = acceptor.accept(server).await.unwrap();
            let mut all = vec![0; LENGTH];
            server.read_exact(&mut all).await.unwrap();
            server.write_all(&all).await.unwrap();
            server.shutdown().await.unwrap();
        });
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client_config()));
        let mut client = connector.connect(name(), client).await.unwrap();
        client.write_all(&[7; LENGTH]).await.unwrap();
        client.flush().await.unwrap();
        let mut back = Vec::new();
        client.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, [7; LENGTH]);
        server.await.unwrap();
    });
}
