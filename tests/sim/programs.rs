//! Programs that know nothing of the network in memory. Those with hyper, axum and tokio's traits are
//! in the package `tests/bridges`.

use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::{TcpListener, TcpStream};
use phaseloop::shuffle::{Determinism, Explore};
use phaseloop::sim::{Link, Network};
use phaseloop::spawn;
use phaseloop::time::sleep;

/// Frames of one byte of length and so many bytes, over links that are slow, on many hosts.
async fn frames() {
    let network = Network::current();
    let hub = network.host("hub", [10, 0, 0, 1]);
    hub.run(|| async {
        let listener = TcpListener::bind("0.0.0.0:1").await.unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            spawn(async move {
                let mut length = [0];
                while stream.read_exact(&mut length).await.is_ok() {
                    let mut frame = vec![0; length[0].into()];
                    stream.read_exact(&mut frame).await.unwrap();
                    frame.reverse();
                    stream.write_all(&frame).await.unwrap();
                }
            })
            .detach();
        }
    })
    .detach();
    let clients = (1..9_u8).map(|n| {
        let host = network.host(&format!("client{n}"), [10, 0, 1, n]);
        let link = Link {
            bandwidth: Some(10_000),
            ..Link::default()
        };
        network.link("hub", &format!("client{n}"), link);
        host.run(move || async move {
            sleep(Duration::from_millis(10)).await;
            let mut stream = TcpStream::connect("hub:1").await.unwrap();
            for length in [1_u8, 7, 200] {
                let frame: Vec<u8> = (0..length).map(|byte| byte ^ n).collect();
                stream
                    .write_all(&[&[length][..], &frame].concat())
                    .await
                    .unwrap();
                let mut answer = vec![0; length.into()];
                stream.read_exact(&mut answer).await.unwrap();
                answer.reverse();
                assert_eq!(answer, frame);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[test]
fn a_protocol_that_is_right_survives_every_seed() {
    let explore = Explore::new().seeds(200).check(Determinism::Every(10));
    explore.run(frames);
}
