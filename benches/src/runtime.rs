//! The runtimes that are compared, each behind the few calls that the workloads make.
//!
//! The question for this file: is every runtime used as its own documentation shows it? Nothing is added around a call
//! but the trait, which is gone after inlining.

use std::future::Future;
use std::time::{Duration, Instant};

use async_executor::LocalExecutor;

/// One runtime on one thread, with futures that need not be `Send`.
pub(crate) trait Runtime: Copy + 'static {
    /// Runs a spawned task to its end.
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T;
    /// Spawns a task; the returned future waits for it.
    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static;
    /// Spawns a task that nobody waits for.
    fn detach(self, task: impl Future<Output = ()> + 'static);
    fn yield_now(self) -> impl Future;
    fn sleep(self, duration: Duration) -> impl Future + 'static;
    fn sleep_until(self, deadline: Instant) -> impl Future + 'static;
}

/// `phaseloop::block_on`.
#[derive(Clone, Copy)]
pub(crate) struct Phaseloop;

impl Runtime for Phaseloop {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        phaseloop::block_on(async { phaseloop::spawn(main).await.expect("it does not panic") })
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        phaseloop::spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(phaseloop::spawn(task));
    }

    fn yield_now(self) -> impl Future {
        phaseloop::task::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        phaseloop::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        phaseloop::time::sleep_until(deadline)
    }
}

/// tokio's current-thread runtime with a `LocalSet`.
#[derive(Clone, Copy)]
pub(crate) struct TokioLocalSet;

impl Runtime for TokioLocalSet {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("tokio starts");
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            let main = tokio::task::spawn_local(main);
            main.await.expect("it does not panic")
        })
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        tokio::task::spawn_local(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(tokio::task::spawn_local(task));
    }

    fn yield_now(self) -> impl Future {
        tokio::task::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        tokio::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        tokio::time::sleep_until(deadline.into())
    }
}

/// tokio's `LocalRuntime`.
#[derive(Clone, Copy)]
pub(crate) struct TokioLocalRuntime;

impl Runtime for TokioLocalRuntime {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("tokio starts");
        runtime.block_on(async {
            let main = tokio::task::spawn_local(main);
            main.await.expect("it does not panic")
        })
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        tokio::task::spawn_local(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        drop(tokio::task::spawn_local(task));
    }

    fn yield_now(self) -> impl Future {
        tokio::task::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        tokio::time::sleep(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        tokio::time::sleep_until(deadline.into())
    }
}

/// smol: a `LocalExecutor` under `async_io::block_on`, which is `smol::block_on`.
#[derive(Clone, Copy)]
pub(crate) struct Smol(&'static LocalExecutor<'static>);

impl Smol {
    pub(crate) fn new() -> Self {
        Self(Box::leak(Box::default()))
    }
}

impl Runtime for Smol {
    fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        async_io::block_on(self.0.run(self.0.spawn(main)))
    }

    fn spawn<T: 'static>(self, task: impl Future<Output = T> + 'static) -> impl Future + 'static {
        self.0.spawn(task)
    }

    fn detach(self, task: impl Future<Output = ()> + 'static) {
        self.0.spawn(task).detach();
    }

    fn yield_now(self) -> impl Future {
        futures_lite::future::yield_now()
    }

    fn sleep(self, duration: Duration) -> impl Future + 'static {
        async_io::Timer::after(duration)
    }

    fn sleep_until(self, deadline: Instant) -> impl Future + 'static {
        async_io::Timer::at(deadline)
    }
}
