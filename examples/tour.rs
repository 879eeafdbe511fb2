//! A tour of the loop in a few seconds: every line names the phase or lane that prints it, in the
//! order that the loop guarantees.
//!
//! ```text
//! cargo run --release --example tour
//! ```

use std::cell::Cell;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use phaseloop::phase::{self, Check, Idle, Prepare};
use phaseloop::time::{self, Timer};
use phaseloop::{EventLoop, Handle, LoopHandle, RunMode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    lanes()?;
    one_turn()?;
    tasks_and_phases();
    other_threads();
    why_alive()?;
    println!("\nNothing is left on the loop, so the program ends.");
    Ok(())
}

fn title(text: &str) {
    println!("\n== {text}\n");
}

fn lanes() -> Result<(), Box<dyn std::error::Error>> {
    title("After every callback the lanes are drained: all ticks, then all microtasks");
    let mut event_loop = EventLoop::new()?;
    let timer = Timer::new(&event_loop.handle());
    timer.start(Duration::ZERO, Duration::ZERO, |_| {
        phaseloop::set_immediate(|| println!("  7  immediate: the check phase"));
        phaseloop::queue_microtask(|| {
            println!("  3  microtask");
            phaseloop::next_tick(|| {
                println!("  6  tick queued by a microtask: after all microtasks")
            });
        });
        phaseloop::spawn(async {
            println!("  4  spawned task: its first poll is a microtask");
            phaseloop::task::yield_microtask().await;
            println!("  5  the same task after yield_microtask: the back of the same lane");
        })
        .detach();
        phaseloop::next_tick(|| println!("  2  tick: queued last, yet before all microtasks"));
        println!("  1  timer callback: it queues all the others");
    })?;
    event_loop.run(RunMode::Default)?;
    Ok(())
}

fn one_turn() -> Result<(), Box<dyn std::error::Error>> {
    title("Turns of the loop: a hook in each phase, until the timer stops them all");
    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();

    let idle = Rc::new(Idle::new(&handle));
    let prepare = Rc::new(Prepare::new(&handle));
    let check = Rc::new(Check::new(&handle));
    idle.start(|_| println!("  idle      keeps the loop from sleeping"))?;
    prepare.start(|_| println!("  prepare   right before the wait"))?;
    check.start(|_| println!("  check     right after the wait"))?;

    let timer = Timer::new(&handle);
    let hooks = (idle.clone(), prepare.clone(), check.clone());
    let turns = Cell::new(0);
    timer.start(Duration::ZERO, Duration::from_nanos(1), move |timer| {
        turns.set(turns.get() + 1);
        println!("  timers    call {}", turns.get());
        if turns.get() == 3 {
            let (idle, prepare, check) = &hooks;
            idle.close()
                .then(|| println!("  closing   idle, closed first, reports last"));
            prepare.close().then(|| println!("  closing   prepare"));
            check
                .close()
                .then(|| println!("  closing   check, closed last, reports first"));
            timer.stop();
        }
    })?;
    let alive = event_loop.run(RunMode::Default)?;
    println!("  run() returns; still alive: {alive}");
    Ok(())
}

fn tasks_and_phases() {
    title("Futures wait for phases, and share an Rc: all tasks run on this thread");
    let step = Rc::new(Cell::new(0));
    let say = {
        let step = step.clone();
        move |text: &str| {
            step.set(step.get() + 1);
            println!("  {}  {text}", step.get());
        }
    };
    phaseloop::block_on(async {
        let other = phaseloop::spawn({
            let say = say.clone();
            async move {
                time::sleep(Duration::from_millis(1)).await;
                say("sleep is over: the timers phase");
                phase::check().await;
                say("phase::check(): the next turn, after its wait");
                time::sleep(Duration::ZERO).await;
                say("a sleep of zero: the timers phase of the same turn");
                "result"
            }
        });
        say("the task is spawned, not yet polled");
        let result = other.await;
        say(&format!("awaiting it gave {result:?}"));
    });
    assert_eq!(step.get(), 5);
}

fn other_threads() {
    title("Wakes from other threads arrive in the poll phase");
    phaseloop::block_on(async {
        let remote = LoopHandle::current().remote();
        let local = Rc::new("an Rc created on the loop's thread");
        println!("  the loop thread has {local}");
        let worker = thread::spawn(move || {
            let task = remote.spawn(|| async {
                let local = Rc::new(41);
                time::sleep(Duration::from_millis(1)).await;
                *local + 1
            });
            task.map(|task| task.join())
        });
        while !worker.is_finished() {
            time::sleep(Duration::from_millis(1)).await;
        }
        println!(
            "  the worker spawned a task here and got {:?}",
            worker.join().unwrap()
        );
    });
}

fn why_alive() -> Result<(), Box<dyn std::error::Error>> {
    title("What keeps the loop alive");
    let mut event_loop = EventLoop::new()?;
    let handle = event_loop.handle();
    let timer = Timer::new(&handle);
    timer.start(Duration::from_millis(20), Duration::ZERO, |_| {
        println!("  the timer fires")
    })?;
    for (kind, count) in handle.keepers() {
        println!("  kept alive by {count} × {kind}");
    }
    for info in handle.handles() {
        println!("  {} created at {}", info.kind, info.created_at);
    }
    event_loop.run(RunMode::Default)?;
    timer.unref();
    println!("  afterwards: alive = {}", handle.is_alive());
    Ok(())
}
