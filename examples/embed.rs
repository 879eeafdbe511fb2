//! The event loop inside a foreign loop: a plain `poll(2)` loop waits for the descriptor of the
//! event loop, and runs one turn when it is readable. On Linux the descriptor is readable for timers, too;
//! elsewhere the host waits for at most `next_wait().timeout()`, as here.
//!
//! ```text
//! cargo run --release --example embed
//! ```

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::thread;
    use std::time::Duration;

    use phaseloop::{EventLoop, time};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();
    let remote = event_loop.remote();

    let task = handle.spawn(async move {
        for n in 1..=3 {
            time::sleep(Duration::from_millis(10)).await;
            println!("  task: nap {n} is over");
        }
    });
    let worker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(15));
        remote.call(|| println!("  task thread: called from a worker"))
    });

    let backend = event_loop.backend()?;
    let mut turns = 0;
    while event_loop.turn(Some(Duration::ZERO))? || !task.is_finished() {
        turns += 1;
        let next = handle.next_wait();
        println!("host: waiting for the descriptor; the loop says {next:?}");
        // On Linux `None` would do.
        let timeout = next.timeout().map(Timespec::try_from).transpose()?;
        poll(
            &mut [PollFd::new(&backend, PollFlags::IN)],
            timeout.as_ref(),
        )?;
    }
    worker.join().expect("the worker does not panic")?;
    println!("host: {turns} waits, and nothing is left on the loop");
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("This example needs poll(2), which this platform does not have.");
}
