//! Servers on the two loops of a cluster.

use std::time::Duration;

use phaseloop::cluster::{self, Balance, Listeners};

/// Listens for both loops, which get the connections in turn.
pub(crate) async fn listeners() -> Listeners {
    let listen = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin);
    listen.await.unwrap()
}

/// Waits until both loops listen: a connection goes to a loop that does.
pub(crate) async fn until_all_listen(mut listening: cluster::Receiver<()>) {
    for _ in 0..2 {
        listening.recv().await.unwrap();
    }
}

/// Ends the cluster, whose servers must end by themselves.
pub(crate) async fn shut_down() {
    let stopped = cluster::current().shutdown(Duration::from_secs(20)).await;
    assert!(stopped.is_clean(), "{stopped}");
}
