//! The async functions between a task and what it waits for; see `raw/stack_poll.rs`.

use super::{Stack, Stacks, TaskTree, lines_of};
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::notes::Polled;
use crate::raw::stack;
use crate::report::waits::{State, Waits, Who, waits, waits_by};

impl TaskTree {
    /// Returns the tree with the async functions between each task and what it waits for, from the
    /// body of the task down to the function that awaits the socket, sleep or job. The lines are
    /// those of the awaits, if the program has debug information.
    ///
    /// Each task that waits is polled twice, inside this call: the first poll finds the functions,
    /// the second lets what waits have the waker of the task again. Operations on sockets and pipes
    /// are not attempted meanwhile, so a future of this crate stays pending. A future of another
    /// crate may complete, as it may in any poll. Tasks that were woken are not polled, and of
    /// those inside a `FuturesUnordered` or a thread nothing is known but who polls them.
    ///
    /// Feature `stacks`, on Linux with glibc. The first call in a process reads the debug
    /// information, which may take seconds. The caller
    /// must not hold a borrow that a task needs.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, phase, spawn, time::sleep};
    ///
    /// async fn pause() {
    ///     sleep(Duration::from_secs(3600)).await;
    /// }
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(async { pause().await });
    ///     phase::check().await;
    ///     let tree = LoopHandle::current().task_tree().with_stacks().to_string();
    ///     // the main future (src/main.rs:8:12): is being polled
    ///     // task 1 (src/main.rs:9:16)
    ///     // └ app::main (src/main.rs:9)
    ///     //   └ app::pause (src/main.rs:5)
    ///     //     └ sleep (src/main.rs:5:5): due in 3599.999s
    ///     assert!(tree.contains("pause"), "{tree}");
    ///     task.abort();
    /// }
    /// ```
    #[must_use]
    pub fn with_stacks(self) -> Self {
        let core = self
            .core
            .upgrade()
            .filter(|core| !core.executor.is_closed());
        let Some(core) = core else {
            return self;
        };
        let lines = current::enter(&core, || lines_with_stacks(&core));
        Self { lines, ..self }
    }
}

fn lines_with_stacks(core: &Core) -> Vec<String> {
    let waits = waits(core);
    let stacks = stacks(core, &waits);
    let tags: Vec<_> = stacks.0.iter().map(|one| (one.who, one.waker)).collect();
    let lines = lines_of(&waits_by(core, &tags), &stacks);
    each_waiting(core, &waits, |who| match who {
        Who::Main => core.executor.poll_main_untagged(),
        Who::Task(place) => {
            let task = &waits.tasks[place];
            if let Some(slot) = task.slot {
                core.executor.poll_untagged(slot, task.info.id());
            }
        }
    });
    lines
}

/// Polls what waits, and returns the functions that do.
fn stacks(core: &Core, waits: &Waits) -> Stacks {
    let mut stacks = Vec::new();
    each_waiting(core, waits, |who| {
        let (who, places) = match who {
            Who::Main => (Polled::MainFuture, core.executor.places_of_main()),
            Who::Task(place) => {
                let task = &waits.tasks[place];
                let id = task.info.id();
                let places = task.slot.map(|slot| core.executor.places_of(slot, id));
                (Polled::Task(id), places.unwrap_or_default())
            }
        };
        stacks.extend(places.into_iter().map(|place| Stack {
            who,
            waker: place.tag,
            functions: stack::functions(&place.stack),
        }));
    });
    Stacks(stacks)
}

/// Calls `f` with the main future and each task, if it waits.
fn each_waiting(core: &Core, waits: &Waits, mut f: impl FnMut(Who)) {
    let main = waits.main.map(|_| Who::Main);
    let tasks = (0..waits.tasks.len()).map(Who::Task);
    for who in main.into_iter().chain(tasks) {
        let is_polled = matches!(who, Who::Main) && core.executor.is_in_main_future();
        let waits = matches!(waits.state(who), State::WaitsFor(_) | State::Unknown);
        if waits && !is_polled {
            f(who);
        }
    }
}
