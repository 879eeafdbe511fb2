//! Several loops as one program. The rules are in `tests/CLUSTER.md`.

#[path = "../util"]
mod util {
    pub(crate) mod browser;
    pub(crate) mod child;
    pub(crate) mod files;
    pub(crate) mod json;
    pub(crate) mod panics;
}

mod attribute;
mod channel;
mod hostile;
mod life;
mod listen;
mod names;
mod order;
mod sharded;
mod shutdown;

use phaseloop::cluster::{self, Each, Listeners};
use phaseloop::net::TcpStream;
use phaseloop::spawn;

/// Calls `answer` on the loop of each connection, in a task of its own, until the cluster stops.
fn serve_each(
    listeners: &Listeners,
    answer: impl AsyncFn(usize, TcpStream) + Clone + Send + 'static,
) -> Each<()> {
    let listeners = listeners.clone();
    cluster::current().each(move |index| {
        let (listener, answer) = (listeners.here(), answer.clone());
        async move {
            let serve = async {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let answer = answer.clone();
                    spawn(async move { answer(index, stream).await }).detach();
                }
            };
            cluster::stopping().run_until_cancelled(serve).await;
        }
    })
}
