//! What a transfer between two endpoints on one loop costs, and in how many datagrams it leaves.
//!
//! ```text
//! cargo run --release --manifest-path examples/quinn/Cargo.toml --example transfer [MiB]
//! ```

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use phaseloop::spawn;
use phaseloop_quinn::OnLoop;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig};

const MIB: usize = 1 << 20;

fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(OnLoop)).unwrap()
}

/// Sends so many bytes by one stream, and returns the sender's connection.
async fn serve(endpoint: Endpoint, length: usize) -> Connection {
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let mut stream = connection.open_uni().await.unwrap();
    let piece = vec![7; MIB];
    for _ in 0..length / MIB {
        stream.write_all(&piece).await.unwrap();
    }
    stream.finish().unwrap();
    connection.closed().await;
    connection
}

#[phaseloop::main]
async fn main() {
    let mebibytes = std::env::args()
        .nth(1)
        .map_or(16, |text| text.parse().unwrap());
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = signed.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();

    let server = endpoint(Some(server));
    let address = server.local_addr().unwrap();
    let sender = spawn(serve(server, mebibytes * MIB));
    let mut ours = endpoint(None);
    ours.set_default_client_config(client);
    let connection = ours.connect(address, "localhost").unwrap().await.unwrap();
    let (before, start) = (cpu_time(), Instant::now());
    let mut stream = connection.accept_uni().await.unwrap();
    let (mut buffer, mut received) = (vec![0; 64 * 1024], 0);
    while let Some(count) = stream.read(&mut buffer).await.unwrap() {
        received += count;
    }
    let (cpu, wall) = (cpu_time() - before, start.elapsed());
    assert_eq!(received, mebibytes * MIB);
    connection.close(0_u8.into(), b"done");
    let stats = sender.await.unwrap().stats();
    let (sent, path) = (stats.udp_tx, stats.path);
    println!(
        "{mebibytes} MiB: {:.2} s of CPU for both ends, {:.2} s; {} datagrams in {} sends, {:.0} thousand a second of CPU; \
         packets of at most {} bytes, {} lost, {} marks of congestion",
        cpu,
        wall.as_secs_f64(),
        sent.datagrams,
        sent.ios,
        sent.datagrams as f64 / cpu / 1e3,
        path.current_mtu,
        path.lost_packets,
        path.congestion_events,
    );
    ours.wait_idle().await;
}

/// The CPU time of this thread in seconds; 0 where the system has no such file.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text
        .split(' ')
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}
