//! How a cluster starts, and how it ends.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::{self, JoinHandle};

use super::{Cluster, Member, Stopped, lock};
use crate::event_loop::EventLoop;
use crate::executor::join::panic_message;
use crate::probe::JointTrace;
use crate::raw::task::Payload;
use crate::runtime::builder::Builder as LoopBuilder;
use crate::runtime::remote::Remote;
use crate::stderr;
use crate::sys::affinity;

/// Configures the builder of each loop.
type EachLoop = dyn Fn(usize, LoopBuilder) -> LoopBuilder + Send + Sync;

/// Starts several loops, each on a thread of its own.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let loops = cluster::Builder::new().loops(3).block_on(async { cluster::current().len() })?;
///     assert_eq!(loops, 3);
///     Ok(())
/// }
/// ```
#[must_use = "a builder does nothing until `block_on`"]
pub struct Builder {
    loops: Option<usize>,
    pin: bool,
    each_loop: Arc<EachLoop>,
}

impl Builder {
    /// Creates a builder of as many loops as the process may use processors
    /// ([`available_parallelism`](thread::available_parallelism)).
    pub fn new() -> Self {
        Self {
            loops: None,
            pin: false,
            each_loop: Arc::new(|_, builder| builder),
        }
    }

    /// Sets the number of loops. One loop starts no thread.
    ///
    /// # Panics
    ///
    /// If the number is zero.
    pub fn loops(mut self, loops: usize) -> Self {
        assert!(loops > 0, "a cluster has at least one loop");
        self.loops = Some(loops);
        self
    }

    /// Sets whether each loop stays on a processor of its own: loop `i` on the `i`-th that the
    /// process may use. The default is `false`: beside other processes, loops that may move do
    /// better.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the options of each loop. The function is called on the thread of the loop, with its
    /// index.
    pub fn each_loop(
        mut self,
        options: impl Fn(usize, LoopBuilder) -> LoopBuilder + Send + Sync + 'static,
    ) -> Self {
        self.each_loop = Arc::new(options);
        self
    }

    /// Runs the cluster until `main` completes, and returns its output. `main` runs on loop 0,
    /// which is that of the calling thread, and need not be `Send`.
    ///
    /// Every loop is built before `main` is polled. When `main` has completed, the other loops are
    /// stopped and their threads joined: what is left on them is dropped. A program that wants them
    /// to complete their work awaits it before, such as the result of [`Cluster::each`].
    ///
    /// # Errors
    ///
    /// The error of the first loop that could not be built, or of its thread; then the other loops
    /// are joined, and `main` is dropped. [`Unsupported`](io::ErrorKind::Unsupported) if loops are
    /// to be pinned on a platform that cannot, or to fewer processors than loops.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread. The first panic that leaves the run of a loop stops
    /// the cluster and propagates.
    #[track_caller]
    pub fn block_on<F: Future>(self, main: F) -> io::Result<F::Output> {
        let count = match self.loops {
            Some(loops) => loops,
            None => thread::available_parallelism()?.get(),
        };
        let places = if self.pin {
            Some(affinity::places(count)?)
        } else {
            None
        };
        let place = |index: usize| places.as_ref().map(|places| places[index]);
        let failure = Arc::new(Failure::default());
        // A loop alone is named as ever.
        let trace = (count > 1).then(JointTrace::default);
        let mut crew = Crew::default();
        let (reports, built) = mpsc::channel();
        for index in 1..count {
            let (go, start) = mpsc::channel();
            let member = NewMember {
                index,
                place: place(index),
                options: self.each_loop.clone(),
                trace: trace.clone().unwrap_or_default(),
                reports: reports.clone(),
                start,
                failure: failure.clone(),
            };
            let thread = thread::Builder::new().name(format!("phaseloop-{index}"));
            crew.threads.push(thread.spawn(move || member.run())?);
            crew.starts.push(go);
        }
        drop(reports);
        let _pinned = place(0).map(affinity::stay).transpose()?;
        let mut first = (self.each_loop)(0, LoopBuilder::new());
        if let Some(trace) = &trace {
            first = first.one_of(0, trace);
        }
        let event_loop = first.build()?;
        let mut remotes = vec![event_loop.remote(); count];
        for (index, result) in built {
            remotes[index] = result?;
        }
        // A member that has not reported has panicked.
        failure.propagate();
        let cluster = Cluster::new(remotes);
        crew.start(&cluster);
        let member = Member::new(0, cluster);
        let output = run_main(&event_loop, &member, main);
        crew.end();
        member.cluster.inner.end.set(Stopped::default());
        drop(event_loop);
        member.drop_shards();
        failure.propagate();
        Ok(output.expect("without an output there is a panic"))
    }
}

/// Runs `main` on loop 0. The result is `None` if another loop has failed.
#[track_caller]
fn run_main<F: Future>(event_loop: &EventLoop, member: &Rc<Member>, main: F) -> Option<F::Output> {
    event_loop
        .handle()
        .core()
        .member
        .get_or_init(|| member.clone());
    event_loop.block_on(async {
        let mut main = pin!(main);
        poll_fn(|cx| match main.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => member.poll_ended(cx).map(|()| None),
        })
        .await
    })
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("loops", &self.loops)
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

/// The threads of loops 1 and on. They are stopped and joined on drop, also by a panic.
#[derive(Default)]
struct Crew {
    threads: Vec<JoinHandle<()>>,
    /// Starts each member; a member whose sender is dropped ends.
    starts: Vec<Sender<Cluster>>,
    cluster: Option<Cluster>,
}

impl Crew {
    fn start(&mut self, cluster: &Cluster) {
        self.cluster = Some(cluster.clone());
        for start in self.starts.drain(..) {
            // A member that has ended has failed, and has printed why.
            let _ = start.send(cluster.clone());
        }
    }

    /// Ends the runs of the members, and joins their threads.
    fn end(&mut self) {
        self.starts.clear();
        if let Some(cluster) = &self.cluster {
            cluster.end_members(1);
        }
        for thread in self.threads.drain(..) {
            // A thread catches its panics.
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}

impl Cluster {
    /// Ends the runs of the loops from an index on.
    pub(super) fn end_members(&self, first: usize) {
        for remote in &self.inner.remotes[first..] {
            // A loop that was dropped has ended.
            let _ = remote.call(|| Member::current().end());
        }
    }
}

/// The first panic that has left a run.
#[derive(Default)]
struct Failure {
    first: Mutex<Option<Payload>>,
}

impl Failure {
    fn set(&self, index: usize, payload: Payload) {
        let message = panic_message(&*payload).unwrap_or("a panic without a message");
        stderr::print(format_args!("phaseloop: loop {index} has ended: {message}"));
        let mut first = lock(&self.first);
        if first.is_none() {
            *first = Some(payload);
        }
    }

    fn propagate(&self) {
        let first = lock(&self.first).take();
        if let Some(payload) = first {
            resume_unwind(payload);
        }
    }
}

/// A member before it runs, on its own thread.
struct NewMember {
    index: usize,
    place: Option<usize>,
    options: Arc<EachLoop>,
    trace: JointTrace,
    reports: Sender<(usize, io::Result<Remote>)>,
    start: Receiver<Cluster>,
    failure: Arc<Failure>,
}

impl NewMember {
    fn run(self) {
        let Self {
            index,
            place,
            options,
            trace,
            reports,
            start,
            failure,
        } = self;
        let mut cluster = None;
        // After a panic it is dropped behind the note of the failure.
        let mut reports = Some(reports);
        let run = || {
            let built = place.map(affinity::stay).transpose().and_then(|pinned| {
                let builder = options(index, LoopBuilder::new());
                let event_loop = builder.one_of(index, &trace).build()?;
                Ok((event_loop, pinned))
            });
            // The thread of loop 0 waits until it has the report of each member. It is gone only if
            // it has panicked.
            let mut report = |remote| drop(reports.take().map(|to| to.send((index, remote))));
            let (event_loop, _pinned) = match built {
                Ok(built) => built,
                Err(error) => return report(Err(error)),
            };
            report(Ok(event_loop.remote()));
            // An error: another loop could not be built.
            let Ok(started) = start.recv() else { return };
            cluster = Some(started.clone());
            let member = Member::new(index, started);
            event_loop
                .handle()
                .core()
                .member
                .get_or_init(|| member.clone());
            event_loop.block_on(poll_fn(|cx| member.poll_ended(cx)));
            drop(event_loop);
            member.drop_shards();
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
            failure.set(index, payload);
            if let Some(cluster) = cluster {
                cluster.end_members(0);
            }
        }
    }
}
