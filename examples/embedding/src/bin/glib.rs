//! GLib's main loop drives the event loop, as in a program with GTK: one source watches the
//! descriptor of the loop and runs its turns.
//!
//! ```text
//! cargo run --manifest-path examples/embedding/Cargo.toml --features glib --bin glib
//! ```
//!
//! It needs Debian's `libglib2.0-dev`, and no display.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Duration;

use glib::{ControlFlow, IOCondition, MainLoop};
use phaseloop::time::{interval, sleep};
use phaseloop::{EventLoop, spawn, spawn_blocking};

fn main() -> Result<(), Box<dyn Error>> {
    let main_loop = MainLoop::new(None, false);
    let event_loop = EventLoop::new()?;
    let handle = event_loop.handle();
    let backend = handle.backend()?;

    // The tasks of the loop, and a timer of GLib beside them.
    let task = handle.enter(|| {
        spawn(async {
            let mut ticks = interval(Duration::from_millis(5));
            for tick in 0..5 {
                ticks.tick().await;
                println!("loop: tick {tick}");
            }
            let answer = spawn_blocking(|| 6 * 7).await.expect("no panic");
            sleep(Duration::from_millis(5)).await;
            println!("loop: the job says {answer}");
        })
    });
    let of_glib = Rc::new(Cell::new(0));
    let count = of_glib.clone();
    glib::timeout_add_local(Duration::from_millis(7), move || {
        count.set(count.get() + 1);
        ControlFlow::Continue
    });

    let (event_loop, quit) = (RefCell::new(event_loop), main_loop.clone());
    let turns = Rc::new(Cell::new(0));
    let count = turns.clone();
    // The source is level-triggered: it is called while the descriptor is readable.
    let fd = backend.as_raw_fd();
    glib::source::unix_fd_add_local(fd, IOCondition::IN, move |_, _| {
        // Kept until the source is removed.
        let _open = &backend;
        let turned = event_loop.borrow_mut().turn(Some(Duration::ZERO));
        turned.expect("the kernel answers");
        count.set(count.get() + 1);
        if task.is_finished() {
            quit.quit();
        }
        ControlFlow::Continue
    });
    main_loop.run();
    println!(
        "host: {} turns of the loop, {} timeouts of GLib",
        turns.get(),
        of_glib.get()
    );
    Ok(())
}
