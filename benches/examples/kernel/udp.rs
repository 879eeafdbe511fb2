//! Datagrams with and without segments.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use phaseloop::net::{Batch, UdpSocket};

use crate::{MIB, ROUNDS, Rounds, thread_cpu};

const DATAGRAM: usize = 1200;
const DATAGRAMS: usize = 540_000;
const AT_ONCE: usize = 54;

#[derive(Clone, Copy)]
enum How {
    Alone,
    Batch,
    Segments,
}

/// Receives until a datagram of one byte comes. Returns the number of datagrams, and CPU time.
fn receive(gro: bool, address: std::sync::mpsc::Sender<SocketAddr>) -> (usize, Duration) {
    phaseloop::block_on(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.set_recv_buffer_size(8 * MIB).unwrap();
        socket.set_gro(gro).unwrap();
        address.send(socket.local_addr().unwrap()).unwrap();
        let mut batch = Batch::new(16, 65_535);
        let (mut count, before) = (0, thread_cpu());
        loop {
            socket.recv_batch(&mut batch).await.unwrap();
            for datagram in &batch {
                if datagram.bytes().len() == 1 {
                    return (count, thread_cpu() - before);
                }
                count += datagram.segments().count();
            }
        }
    })
}

async fn send(to: SocketAddr, how: How) -> Duration {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(to).await.unwrap();
    let bytes = vec![7; DATAGRAM * AT_ONCE];
    let mut batch = match how {
        How::Segments => Batch::new(1, bytes.len()),
        _ => Batch::new(AT_ONCE, DATAGRAM),
    };
    let before = thread_cpu();
    for _ in 0..DATAGRAMS / AT_ONCE {
        match how {
            How::Alone => {
                for one in bytes.chunks(DATAGRAM) {
                    socket.send(one).await.unwrap();
                }
            }
            How::Batch => {
                for one in bytes.chunks(DATAGRAM) {
                    batch.push_to_peer(one).unwrap();
                }
                socket.send_batch(&mut batch).await.unwrap();
            }
            How::Segments => {
                batch.push_segments_to_peer(&bytes, DATAGRAM).unwrap();
                socket.send_batch(&mut batch).await.unwrap();
            }
        }
    }
    let spent = thread_cpu() - before;
    // The receiver has dropped what it had no room for: it gets the end when it has room again.
    for _ in 0..100 {
        socket.send(&[0]).await.unwrap_or(0);
        phaseloop::time::sleep(Duration::from_millis(1)).await;
    }
    spent
}

pub(crate) fn run(_: &Path) {
    let mut rounds = Rounds::new(["sent", "received", "% received"]);
    for _ in 0..ROUNDS {
        for (name, how, gro) in [
            (ALONE, How::Alone, false),
            ("`Batch`", How::Batch, false),
            ("`Batch::push_segments`, 54 at once", How::Segments, false),
            ("the same, to a socket with `set_gro`", How::Segments, true),
        ] {
            let (sender, address) = std::sync::mpsc::channel();
            let receiver = thread::spawn(move || receive(gro, sender));
            let spent = phaseloop::block_on(send(address.recv().unwrap(), how));
            let (count, received) = receiver.join().unwrap();
            let rate = |count: usize, time: Duration| count as f64 / time.as_secs_f64() / 1e3;
            let share = 100.0 * count as f64 / DATAGRAMS as f64;
            rounds.push(name, [rate(DATAGRAMS, spent), rate(count, received), share]);
        }
    }
    let title = format!("datagrams of {DATAGRAM} bytes, thousands a second of CPU");
    rounds.print(&title, Some(ALONE));
}

const ALONE: &str = "`UdpSocket::send`";
