//! tokio drives the event loop: one task waits for the descriptor of the loop and runs its turns.
//!
//! ```text
//! cargo run --manifest-path examples/embedding/Cargo.toml --bin tokio
//! ```
//!
//! This is for a program whose main loop is tokio. If tokio's crates are all that is needed, the
//! other way round is simpler: `phaseloop::tokio`.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::time::sleep;
use phaseloop::{EventLoop, spawn};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(host())
}

async fn host() -> Result<(), Box<dyn Error>> {
    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();
    // On Linux its readiness is all that a host needs: it includes due timers.
    let descriptor = handle.backend()?;
    #[allow(
        deprecated,
        reason = "the descriptor is owned, which the successor asks for"
    )]
    let descriptor = AsyncFd::with_interest(descriptor, Interest::READABLE)?;

    // Tasks of both worlds talk over a channel, which needs neither runtime.
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let naps = Rc::new(Cell::new(0));
    let count = naps.clone();
    let task = handle.enter(|| {
        spawn(async move {
            while count.get() < 5 {
                sleep(Duration::from_millis(10)).await;
                count.set(count.get() + 1);
                sender.send(count.get()).expect("the host listens");
            }
        })
    });
    let listener = tokio::spawn(async move {
        while let Some(nap) = receiver.recv().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
            println!("tokio: the loop's task has ended nap {nap}");
        }
    });

    let mut turns = 0;
    while !task.is_finished() {
        let mut guard = descriptor.readable().await?;
        // Before the turn: what comes during it makes the descriptor readable anew.
        guard.clear_ready();
        event_loop.turn(Some(Duration::ZERO))?;
        turns += 1;
    }
    listener.await?;
    println!("host: {turns} turns for {} naps", naps.get());
    assert_eq!(naps.get(), 5);
    Ok(())
}
