//! The event loop inside a foreign loop: a plain `poll(2)` loop waits on the descriptor of the
//! event loop, for at most its next timeout, and runs one turn when it is ready.
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

    let mut turns = 0;
    while event_loop.turn(Some(Duration::ZERO))? || !task.is_finished() {
        turns += 1;
        let timeout = handle.next_timeout();
        println!("host: waiting on the descriptor, at most {timeout:?}");
        let timeout = timeout.map(Timespec::try_from).transpose()?;
        let backend = event_loop.backend_fd();
        let mut descriptors = [PollFd::new(&backend, PollFlags::IN)];
        poll(&mut descriptors, timeout.as_ref())?;
    }
    worker.join().expect("the worker does not panic")?;
    println!("host: {turns} waits, and nothing is left on the loop");
    Ok(())
}

#[cfg(not(unix))]
fn main() {
    println!("This example needs poll(2), which this platform does not have.");
}
