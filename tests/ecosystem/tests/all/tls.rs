//! TLS, three ways: our own, futures-rustls, and tokio-rustls over tokio's traits.

use std::io;
use std::sync::Arc;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, TryFutureExt};
use phaseloop::hyper::TlsStream;
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::{block_on, spawn};
use rustls::pki_types::ServerName;
use tokio_util::compat::TokioAsyncReadCompatExt;

use crate::certificates::{client_config, server_config};

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

/// Sends a long message through two ends of a TLS connection, and back.
async fn echo<C, S>(
    client: impl Future<Output = io::Result<C>>,
    server: impl Future<Output = io::Result<S>> + 'static,
) where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let server = spawn(async move {
        let mut server = server.await.unwrap();
        let mut all = vec![0; LENGTH];
        server.read_exact(&mut all).await.unwrap();
        server.write_all(&all).await.unwrap();
        server.close().await.unwrap();
    });
    let mut client = client.await.unwrap();
    client.write_all(&[7; LENGTH]).await.unwrap();
    client.flush().await.unwrap();
    let mut back = Vec::new();
    client.read_to_end(&mut back).await.unwrap();
    assert_eq!(back, [7; LENGTH]);
    server.await.unwrap();
}

#[test]
fn our_own_streams() {
    block_on(async {
        let (client, server) = pair().await;
        let client = TlsStream::connect(Arc::new(client_config()), name(), client);
        let server = TlsStream::accept(server_config(), server);
        echo(client, server).await;
    });
}

#[test]
fn futures_rustls() {
    block_on(async {
        let (client, server) = pair().await;
        let connector = futures_rustls::TlsConnector::from(Arc::new(client_config()));
        let acceptor = futures_rustls::TlsAcceptor::from(server_config());
        echo(connector.connect(name(), client), acceptor.accept(server)).await;
    });
}

/// The streams of tokio-rustls have tokio's traits; `compat` gives them those of `futures`.
#[test]
fn tokio_rustls() {
    block_on(async {
        let (client, server) = pair().await;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client_config()));
        let acceptor = tokio_rustls::TlsAcceptor::from(server_config());
        let client = connector
            .connect(name(), client)
            .map_ok(|stream| stream.compat());
        let server = acceptor.accept(server).map_ok(|stream| stream.compat());
        echo(client, server).await;
    });
}
