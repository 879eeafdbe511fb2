//! hyper's executor and timer traits.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::time::{Duration, Instant};

use hyper::rt;

use crate::local::Local;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::time::{self, Sleep};

/// Spawns hyper's futures on the running loop, `Send` or not.
///
/// # Panics
///
/// When hyper spawns a future and no loop runs on this thread.
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```
/// use hyper::rt::Executor;
/// use phaseloop::hyper::HyperExecutor;
///
/// fn main() {
///     phaseloop::run(async {
///         let shared = std::rc::Rc::new(1);
///         HyperExecutor.execute(async move { assert_eq!(*shared, 1) });
///     });
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperExecutor;

impl<F> rt::Executor<F> for HyperExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        let handle = LoopHandle::current();
        let site = user_site(&handle);
        handle.core().executor.spawn(future, site, None).detach();
    }
}

/// Runs hyper's timeouts in the timer heap of the loop: they end in the timers phase.
///
/// Its sleeps are `Send`, as hyper requires, but panic when they are polled on another thread.
///
/// # Panics
///
/// When hyper starts a sleep and no loop runs on this thread.
///
/// # Examples
///
/// After `cargo add hyper`:
///
/// ```no_run
/// use std::time::Duration;
/// use hyper::server::conn::http1;
/// use phaseloop::hyper::HyperTimer;
///
/// fn main() {
///     let mut server = http1::Builder::new();
///     server.timer(HyperTimer).header_read_timeout(Duration::from_secs(5));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperTimer;

impl rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        let site = user_site(&LoopHandle::current());
        Box::pin(Local::new(Sleep::after(duration, site)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        let handle = LoopHandle::current();
        let (deadline, site) = (
            handle.core().executor.clock.time(deadline),
            user_site(&handle),
        );
        Box::pin(Local::new(Sleep::new(handle, deadline, site)))
    }

    fn now(&self) -> Instant {
        // A pool of connections asks after its loop has ended, when it is dropped.
        match LoopHandle::try_current() {
            Some(_) => time::now().into_std(),
            None => sys::clock::monotonic(),
        }
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Local<Sleep>>() {
            Some(ours) => ours.get_mut().reset(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// Returns the line that started the task, or the main future, that is polled now. hyper creates
/// its sleeps and tasks inside it, and a report names the user's line rather than one of hyper.
#[track_caller]
fn user_site(handle: &LoopHandle) -> Site {
    let executor = &handle.core().executor;
    let main = executor
        .main_info()
        .filter(|_| executor.polls_main_future());
    let site = main.map(|main| main.site);
    site.or_else(|| Some(executor.polled_task()?.site))
        .unwrap_or_else(Location::caller)
}

impl rt::Sleep for Local<Sleep> {}
