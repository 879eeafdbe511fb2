//! Hooks and awaited phases: a task awaits every phase of three turns, while hooks count the turns.
//!
//! ```text
//! cargo run --release --example phases
//! ```

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::phase::{self, Check, Prepare};
use phaseloop::{EventLoop, Handle};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();

    // The hooks are unref'd: they do not keep the loop alive.
    let turn = Rc::new(Cell::new(0));
    let prepare = Prepare::new(&handle);
    prepare.unref();
    let counter = turn.clone();
    prepare.start(move |_| counter.set(counter.get() + 1))?;
    let check = Check::new(&handle);
    check.unref();
    let counter = turn.clone();
    check.start(move |_| {
        println!(
            "turn {}: the check hook runs before the tasks",
            counter.get()
        )
    })?;

    let main = async {
        for _ in 0..3 {
            phase::idle().await;
            println!("--- a new turn: idle");
            phase::prepare().await;
            println!("turn {}: prepare", turn.get());
            phase::check().await;
            println!("turn {}: check", turn.get());
            phase::closing().await;
            println!("turn {}: closing", turn.get());
            phaseloop::time::sleep(Duration::ZERO).await;
            println!("turn {}: timers", turn.get());
        }
        "three turns"
    };
    println!("{}", event_loop.run_until_done(main)?);
    Ok(())
}
