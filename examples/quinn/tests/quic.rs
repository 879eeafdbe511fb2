//! Two endpoints on one loop, and an endpoint without a peer.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use phaseloop::{Builder, EventLoop, LoopHandle, spawn, time};
use phaseloop_quinn::OnLoop;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, ConnectionError, Endpoint, EndpointConfig, ServerConfig};

const LOCALHOST: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server and a client that trusts it.
fn configs() -> (ServerConfig, ClientConfig) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = signed.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    (server, client)
}

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind(LOCALHOST).unwrap();
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(OnLoop)).unwrap()
}

/// Answers each stream and each datagram of each connection with its own bytes.
async fn echo(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        spawn(async move {
            let connection = incoming.await.unwrap();
            let datagrams = connection.clone();
            spawn(async move {
                while let Ok(datagram) = datagrams.read_datagram().await {
                    datagrams.send_datagram(datagram).unwrap();
                }
            })
            .detach();
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                spawn(async move {
                    let mut buffer = vec![0; 64 * 1024];
                    while let Ok(Some(count)) = receive.read(&mut buffer).await {
                        send.write_all(&buffer[..count]).await.unwrap();
                    }
                    send.finish().unwrap();
                })
                .detach();
            }
        })
        .detach();
    }
}

/// Both endpoints on one loop; the server is stopped in the end, and nothing is left.
fn with_echo(client: impl AsyncFnOnce(quinn::Connection)) {
    let mut event_loop = EventLoop::new().unwrap();
    event_loop.block_on(async {
        let (server_config, client_config) = configs();
        let server = endpoint(Some(server_config));
        let address = server.local_addr().unwrap();
        let echo = spawn(echo(server.clone()));
        let mut ours = endpoint(None);
        ours.set_default_client_config(client_config);
        let connection = ours.connect(address, "localhost").unwrap().await.unwrap();
        client(connection.clone()).await;
        connection.close(0_u8.into(), b"done");
        ours.wait_idle().await;
        server.close(0_u8.into(), b"done");
        server.wait_idle().await;
        echo.await.unwrap();
    });
    // The tasks of quinn end with its handles, and nothing keeps the loop alive.
    let handle = event_loop.handle();
    let is_alive = event_loop.run(phaseloop::RunMode::Default).unwrap();
    assert!(!is_alive, "{}", handle.report());
    assert!(handle.tasks().is_empty(), "{}", handle.report());
}

#[test]
fn a_stream_is_echoed() {
    with_echo(async |connection| {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(b"hello").await.unwrap();
        send.finish().unwrap();
        assert_eq!(receive.read_to_end(100).await.unwrap(), b"hello");
    });
}

#[test]
fn many_streams_carry_megabytes_beside_a_timer() {
    const LENGTH: usize = 1 << 20;
    with_echo(async |connection| {
        let ticks = spawn(async {
            let mut ticks = time::interval(Duration::from_millis(1));
            loop {
                ticks.tick().await;
            }
        });
        let streams = (0..8_u8).map(|number| {
            let connection = connection.clone();
            spawn(async move {
                let (mut send, mut receive) = connection.open_bi().await.unwrap();
                let sender = spawn(async move {
                    send.write_all(&vec![number; LENGTH]).await.unwrap();
                    send.finish().unwrap();
                });
                let bytes = receive.read_to_end(LENGTH).await.unwrap();
                sender.await.unwrap();
                assert!(bytes.len() == LENGTH && bytes.iter().all(|byte| *byte == number));
            })
        });
        for stream in streams.collect::<Vec<_>>() {
            stream.await.unwrap();
        }
        assert!(!ticks.is_finished());
        ticks.abort();
    });
}

/// Several datagrams leave with one call, and they are longer than the shortest that QUIC allows.
#[cfg(target_os = "linux")]
#[test]
fn the_kernel_cuts_what_is_sent_and_nothing_on_the_way_does() {
    with_echo(async |connection| {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        let sender = spawn(async move {
            send.write_all(&vec![7; 4 << 20]).await.unwrap();
            send.finish().unwrap();
        });
        assert_eq!(receive.read_to_end(4 << 20).await.unwrap().len(), 4 << 20);
        sender.await.unwrap();
        let stats = connection.stats();
        let (datagrams, calls) = (stats.udp_tx.datagrams, stats.udp_tx.ios);
        assert!(datagrams > 2 * calls, "{datagrams} in {calls}");
        let mtu = stats.path.current_mtu;
        assert!(mtu > 1200, "{mtu}");
    });
}

/// quinn stops to mark its datagrams when the marks do not arrive.
#[cfg(target_os = "linux")]
#[test]
fn datagrams_are_marked_as_capable_of_reporting_congestion() {
    EventLoop::new().unwrap().block_on(async {
        let peer = phaseloop::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        peer.set_recv_tos(true).unwrap();
        let mut ours = endpoint(None);
        ours.set_default_client_config(configs().1);
        let connecting = ours.connect(peer.local_addr().unwrap(), "localhost");
        let mut batch = phaseloop::net::Batch::new(8, 2000);
        peer.recv_batch(&mut batch).await.unwrap();
        assert_eq!(batch.iter().next().unwrap().tos(), Some(0b10));
        drop(connecting);
    });
}

/// A client takes no packet from an address that it did not send to.
#[cfg(target_os = "linux")]
#[test]
fn a_server_on_all_addresses_answers_from_the_one_that_was_asked() {
    EventLoop::new().unwrap().block_on(async {
        let (server_config, client_config) = configs();
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let config = EndpointConfig::default();
        let server = Endpoint::new(config, Some(server_config), socket, Arc::new(OnLoop)).unwrap();
        let port = server.local_addr().unwrap().port();
        let accepting = spawn({
            let server = server.clone();
            async move { server.accept().await.unwrap().await.unwrap() }
        });
        let mut ours = endpoint(None);
        ours.set_default_client_config(client_config);
        let asked = SocketAddr::from(([127, 0, 0, 2], port));
        let connection = ours.connect(asked, "localhost").unwrap().await.unwrap();
        let theirs = accepting.await.unwrap();
        assert_eq!(theirs.local_ip(), Some(asked.ip()));
        connection.close(0_u8.into(), b"");
        ours.wait_idle().await;
        server.close(0_u8.into(), b"");
        server.wait_idle().await;
    });
}

#[test]
fn a_datagram_is_echoed() {
    with_echo(async |connection| {
        for number in 0..100_u8 {
            connection.send_datagram(vec![number; 1000].into()).unwrap();
            assert_eq!(
                connection.read_datagram().await.unwrap(),
                [number; 1000][..]
            );
        }
    });
}

/// quinn's timers run on the loop's clock: a time-out of 30 seconds takes no time on a paused one.
#[test]
fn a_peer_that_does_not_answer_times_out_on_the_paused_clock() {
    let event_loop = Builder::new()
        .start_paused(true)
        // No peer outside will answer.
        .outside_timeout(Duration::ZERO)
        .build()
        .unwrap();
    event_loop.block_on(async {
        let silent = UdpSocket::bind(LOCALHOST).unwrap();
        let mut ours = endpoint(None);
        ours.set_default_client_config(configs().1);
        let before = time::now();
        let connecting = ours.connect(silent.local_addr().unwrap(), "localhost");
        let error = connecting.unwrap().await.unwrap_err();
        assert!(matches!(error, ConnectionError::TimedOut), "{error}");
        assert!(time::now() - before >= Duration::from_secs(30));
    });
}

#[test]
fn a_report_names_the_socket_and_who_waits_for_it() {
    EventLoop::new().unwrap().block_on(async {
        let server = endpoint(Some(configs().0));
        let accepting = spawn({
            let server = server.clone();
            async move { server.accept().await.is_some() }
        });
        phaseloop::phase::check().await;
        let report = LoopHandle::current().report().to_string();
        let address = server.local_addr().unwrap().to_string();
        assert!(report.contains(&address), "{report}");
        assert!(report.contains("a reader is waiting"), "{report}");
        server.close(0_u8.into(), b"");
        assert!(!accepting.await.unwrap());
    });
}
