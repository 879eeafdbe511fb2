//! A register on three hosts, a partition, the seed under which a read is stale, and the fix.
//!
//! ```text
//! cargo run --release --example replicas
//! ```
//!
//! A write is done when a majority of the replicas has it. The bug: a read takes the first answer.
//! One replica missed the write, since it was cut off. An ordinary run does not show it, because
//! the other replicas answer first. All hosts, links and clocks are in this process.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use phaseloop::net::UdpSocket;
use phaseloop::shuffle::{Explore, Strategy};
use phaseloop::sim::Network;
use phaseloop::time::{sleep, timeout};

const REPLICAS: usize = 3;
const MAJORITY: usize = 2;

/// What a replica stores: the newest version has the value of the register.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    version: u8,
    value: u8,
}

/// Stores newer entries, and answers each request with what it has.
async fn replica() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:7").await?;
    let stored = Cell::new(Entry::default());
    let mut request = [0; 3];
    loop {
        let (_, client) = socket.recv_from(&mut request).await?;
        let [number, version, value] = request;
        stored.set(stored.get().max(Entry { version, value }));
        let Entry { version, value } = stored.get();
        socket.send_to(&[number, version, value], client).await?;
    }
}

struct Client {
    socket: UdpSocket,
    requests: Cell<u8>,
    /// How many answers a read waits for.
    readers: usize,
}

impl Client {
    /// Sends an entry to all replicas until so many have answered, and returns the newest answer.
    async fn ask(&self, entry: Entry, answers: usize) -> io::Result<Entry> {
        let number = self.requests.get();
        self.requests.set(number + 1);
        let mut answered = Vec::new();
        let mut newest = Entry::default();
        while answered.len() < answers {
            for replica in 0..REPLICAS {
                let to = ([10, 0, 0, replica as u8 + 1], 7).into();
                let request = [number, entry.version, entry.value];
                self.socket.send_to(&request, to).await?;
            }
            // What was lost is sent again.
            let mut answer = [0; 3];
            let longest_wait = Duration::from_millis(100);
            while let Ok(received) = timeout(longest_wait, self.socket.recv_from(&mut answer)).await
            {
                let (_, from) = received?;
                if answer[0] == number && !answered.contains(&from) {
                    answered.push(from);
                    let [_, version, value] = answer;
                    newest = newest.max(Entry { version, value });
                }
                if answered.len() == answers {
                    break;
                }
            }
        }
        Ok(newest)
    }

    async fn read(&self) -> io::Result<Entry> {
        self.ask(Entry::default(), self.readers).await
    }

    async fn write(&self, value: u8) -> io::Result<()> {
        let version = self.read().await?.version + 1;
        self.ask(Entry { version, value }, MAJORITY).await?;
        Ok(())
    }
}

/// A client writes while one replica is cut off, and reads when it is back.
async fn test(readers: usize) {
    let network = Network::current();
    for n in 0..REPLICAS {
        let host = network.host(&format!("replica{n}"), [10, 0, 0, n as u8 + 1]);
        host.run(replica).detach();
    }
    let client = network.host("client", [10, 0, 1, 1]);
    let done = client.run(move || async move {
        sleep(Duration::from_secs(1)).await;
        let socket = UdpSocket::bind("0.0.0.0:0").await?;
        let client = Client {
            socket,
            requests: Cell::new(0),
            readers,
        };
        let network = Network::current();
        network.partition("client", "replica2");
        client.write(42).await?;
        network.heal("client", "replica2");
        client.read().await
    });
    let read = done.await.expect("no panic").expect("no error");
    assert_eq!(read.value, 42, "a read that begins after a write sees it");
}

fn main() {
    println!("A read takes the first answer.");
    let usual = Explore::new().strategy(Strategy::Usual).seeds(300);
    match usual.try_run(|| test(1)) {
        Ok(explored) => println!("{} ordinary runs: no failure.", explored.runs),
        Err(found) => println!("{found}"),
    }
    match Explore::new().seeds(1_000).try_run(|| test(1)) {
        Ok(explored) => println!("{} seeds: no failure.", explored.runs),
        Err(found) => println!("\n{found}"),
    }
    println!("A read takes the newest answer of a majority.");
    match Explore::new().seeds(1_000).try_run(|| test(MAJORITY)) {
        Ok(explored) => println!("{} seeds: no failure.", explored.runs),
        Err(found) => println!("{found}"),
    }
}
