//! A test that passes a thousand times, the seed under which it fails, and the fix.
//!
//! ```text
//! cargo run --release --example orders
//! ```

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use phaseloop::shuffle::{Explore, Strategy};
use phaseloop::time::sleep;
use phaseloop::{spawn, spawn_blocking};

/// A value that is loaded once, and the wakers of those who wait for it.
#[derive(Default)]
struct Cache {
    value: Cell<Option<u32>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Cache {
    fn load(&self) {
        self.value.set(Some(7));
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// Waits for the value. Without `checks_again`, it misses a value that was loaded while the
    /// request was written to the log.
    async fn get(&self, checks_again: bool) -> Option<u32> {
        if self.value.get().is_none() {
            // The request is written to a log.
            spawn_blocking(|| ()).await.ok()?;
            let mut may_check = checks_again;
            poll_fn(|cx| {
                if may_check && self.value.get().is_some() {
                    return Poll::Ready(());
                }
                may_check = true;
                self.waiting.borrow_mut().push(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
        self.value.get()
    }
}

async fn test(checks_again: bool) {
    let cache = Rc::new(Cache::default());
    let loader = cache.clone();
    spawn(async move {
        sleep(Duration::from_millis(10)).await;
        loader.load();
    })
    .detach();
    assert_eq!(cache.get(checks_again).await, Some(7));
}

fn main() {
    let usual = Explore::new().strategy(Strategy::Usual).seeds(1_000);
    match usual.try_run(|| test(false)) {
        Ok(explored) => println!("The test passes {} times in a row.\n", explored.runs),
        Err(found) => panic!("{found}"),
    }
    match Explore::new().seeds(200).try_run(|| test(false)) {
        Ok(_) => panic!("no seed has found the bug"),
        Err(found) => println!("Under seeds:\n\n{found}"),
    }
    match Explore::new().seeds(2_000).try_run(|| test(true)) {
        Ok(explored) => println!(
            "With the fix, {} runs pass: {} questions about the order were answered.",
            explored.runs, explored.questions
        ),
        Err(found) => panic!("{found}"),
    }
}
