//! The end of a cluster that cuts nothing which ends in time.
//!
//! A task of loop 0 takes the steps: the acceptors hand over what is in the kernel's queue and
//! close their listeners; the listeners of the loops return what was handed over; only then the
//! loops are notified, since a server that is notified stops accepting. A loop is drained when its
//! roots have ended and its accepted connections are closed. What is left at the limit is reported
//! and cut.
// Rule C18.

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::channel::{Receiver, Sender, channel};
use super::listen::Hub;
use super::{Cluster, Member, lock};
use crate::raw::unwind::Steps;
use crate::report;
use crate::runtime::any_handle::AnyHandle;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sync::Notify;
use crate::task::{self, CancellationToken};
use crate::time::{sleep, sleep_until};

/// How long a loop that is not drained may take to report what is left.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// The name of the tasks that wait for the end; no report of what is left has them.
const NAME: &str = "cluster shutdown";

/// Returns the token that is cancelled when the cluster shuts down, for the running loop.
///
/// It is cancelled when the loop's [`Listener`](super::Listener)s have returned all connections
/// that were accepted, so a server that ends with it cuts none.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let workers = cluster::current().each(|index| async move {
///             cluster::stopping().cancelled().await;
///             index
///         });
///         let stopped = cluster::current().shutdown(Duration::from_secs(5)).await;
///         assert!(stopped.is_clean());
///         assert_eq!(workers.await.len(), 2);
///     })
/// }
/// ```
#[must_use]
pub fn stopping() -> CancellationToken {
    Member::current().stopping.clone()
}

impl Cluster {
    /// Shuts the cluster down: no connection is accepted any more, and what is under way may
    /// complete, for as long as `limit`.
    ///
    /// The steps are:
    ///
    /// 1. Connections that wait in the kernel's queue are accepted and handed over; then the
    ///    listeners are closed.
    /// 2. Each [`Listener`](super::Listener) returns what was handed over, and then rests.
    /// 3. The tokens of [`stopping`] are cancelled. If a server does not accept what was handed
    ///    over, it is notified after half of the limit all the same.
    /// 4. The loops are drained: the tasks that were spawned by [`each`](Self::each),
    ///    [`Sharded`](super::Sharded) and [`Remote::spawn`](crate::Remote::spawn) have ended, and
    ///    the accepted connections are closed. The task that awaits the shutdown is not waited for.
    /// 5. The loops end, but for loop 0. What is left at the limit is dropped, and connections are
    ///    reset; on loop 0, such tasks are aborted and such connections closed.
    ///
    /// The result names what was left. A second call shortens the limit, if its own is shorter. The
    /// shutdown begins when the future is first polled, and goes on if it is dropped.
    ///
    /// The kernel resets a connection that completes between the last `accept` and the close of the
    /// listener. On Linux no handshake begins in the last two milliseconds: the peer tries again,
    /// and is refused. To refuse none, pass the listener on, as a
    /// [`Detached`](crate::net::Detached).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the shutdown.
    ///
    /// # Examples
    ///
    /// See [`listen`](super::listen()).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::cluster;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let stopped = cluster::Builder::new().loops(2).block_on(async {
    ///         cluster::current().shutdown(Duration::from_secs(1)).await
    ///     })?;
    ///     for left in &stopped.left {
    ///         println!("loop {} still had {:?}", left.index, left.tasks);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn shutdown(&self, limit: Duration) -> Shutdown {
        Shutdown {
            cluster: self.clone(),
            begin_with: Some(limit),
            site: Location::caller(),
        }
    }

    pub(super) fn add_hub(&self, hub: &Arc<Hub>) {
        let mut hubs = lock(&self.inner.hubs);
        hubs.retain(|hub| hub.strong_count() > 0);
        hubs.push(Arc::downgrade(hub));
    }

    fn hubs(&self) -> Vec<Arc<Hub>> {
        let hubs = lock(&self.inner.hubs);
        hubs.iter().filter_map(std::sync::Weak::upgrade).collect()
    }
}

/// The future of [`Cluster::shutdown`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let stopped = cluster::Builder::new().loops(2).block_on(async {
///         cluster::current().shutdown(Duration::from_secs(1)).await
///     })?;
///     for left in &stopped.left {
///         println!("loop {} still had {:?}", left.index, left.tasks);
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Shutdown {
    cluster: Cluster,
    /// The limit, until the shutdown has begun.
    begin_with: Option<Duration>,
    site: Site,
}

impl Future for Shutdown {
    type Output = Stopped;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stopped> {
        if let Some(limit) = self.begin_with.take() {
            self.cluster.excuse_caller();
            let site = self.site;
            let begun = self.cluster.remote(0).call(move || begin(limit, site));
            if begun.is_err() {
                // The cluster has ended.
                self.cluster.inner.end.set(Stopped::default());
            }
        }
        self.cluster.inner.end.poll(cx)
    }
}

/// The end of a cluster, for any thread.
#[derive(Default)]
pub(super) struct End {
    state: Mutex<EndState>,
}

#[derive(Default)]
struct EndState {
    stopped: Option<Stopped>,
    waiters: Vec<Waker>,
}

impl End {
    /// Sets what the shutdown has left, once.
    pub(super) fn set(&self, stopped: Stopped) {
        let mut state = lock(&self.state);
        state.stopped.get_or_insert(stopped);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        // A waker that panics keeps no other waiter from its wake.
        let mut wakes = Steps::default();
        for waiter in waiters {
            wakes.run(|| waiter.wake());
        }
        wakes.end();
    }

    /// Returns whether the cluster was shut down.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).stopped.is_some()
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Stopped> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.state);
        if let Some(stopped) = &state.stopped {
            return Poll::Ready(stopped.clone());
        }
        if !state.waiters.iter().any(|known| known.will_wake(&waker)) {
            state.waiters.push(waker);
        }
        Poll::Pending
    }
}

/// What a [shutdown](Cluster::shutdown) took, and what it cut.
///
/// # Examples
///
/// ```
/// use std::{future::pending, time::Duration};
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let stopped = cluster::Builder::new().loops(2).block_on(async {
///         let hangs = cluster::current().remote(1).spawn(|| pending::<()>()).unwrap();
///         let stopped = cluster::current().shutdown(Duration::from_millis(10)).await;
///         assert!(hangs.await.unwrap_err().is_cancelled());
///         stopped
///     })?;
///     assert!(!stopped.is_clean());
///     assert_eq!(stopped.left[0].index, 1);
///     // stopped after 10.1ms, and has cut on loop 1: task 1 (src/main.rs:6:48): waits for …
///     assert!(stopped.to_string().contains("task 1 ("), "{stopped}");
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stopped {
    /// How long the shutdown took.
    pub took: Duration,
    /// The loops that were not drained, by index.
    pub left: Vec<Left>,
}

impl Stopped {
    /// Returns whether nothing was cut.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.left.is_empty()
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {:.1?}", self.took)?;
        if self.is_clean() {
            return f.write_str(", and has cut nothing");
        }
        for (place, left) in self.left.iter().enumerate() {
            f.write_str(if place == 0 {
                ", and has cut on "
            } else {
                "; on "
            })?;
            write!(f, "{left}")?;
        }
        Ok(())
    }
}

/// What was left on a loop when its shutdown was out of time.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let stopped = cluster::Builder::new().loops(2).block_on(async {
///         cluster::current().shutdown(Duration::from_secs(1)).await
///     })?;
///     for left in &stopped.left {
///         println!("loop {} still had {:?}", left.index, left.tasks);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Left {
    /// The index of the loop.
    pub index: usize,
    /// The tasks, each with its line and with what it waits for. A loop that was stuck and did not
    /// answer has one line for that.
    pub tasks: Vec<String>,
    /// How many accepted connections were open.
    pub connections: usize,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loop {}: ", self.index)?;
        let mut parts = self.tasks.clone();
        match self.connections {
            0 => {}
            1 => parts.push("1 connection".to_owned()),
            many => parts.push(format!("{many} connections")),
        }
        f.write_str(&parts.join(", "))
    }
}

/// When the shutdown is out of time, in the time of loop 0.
pub(super) struct Limit {
    begun: Instant,
    limit: Cell<Duration>,
    shortened: Notify,
}

impl Limit {
    fn new(limit: Duration) -> Rc<Self> {
        Rc::new(Self {
            begun: LoopHandle::current().now(),
            limit: Cell::new(limit),
            shortened: Notify::new(),
        })
    }

    fn shorten(&self, limit: Duration) {
        let passed = LoopHandle::current()
            .now()
            .saturating_duration_since(self.begun);
        if passed + limit < self.limit.get() {
            self.limit.set(passed + limit);
            self.shortened.notify_all();
        }
    }

    /// Waits for a part of the limit.
    async fn wait_for(&self, part: u32) {
        loop {
            let mut shortened = pin!(self.shortened.notified());
            shortened.as_mut().enable();
            let Some(deadline) = self.begun.checked_add(self.limit.get() / part) else {
                shortened.await;
                continue;
            };
            if is_first(sleep_until(deadline), shortened).await {
                return;
            }
        }
    }

    /// Runs a future until it completes, or until a part of the limit has passed.
    async fn bound(&self, part: u32, future: impl Future<Output = ()>) -> bool {
        is_first(pin!(future), pin!(self.wait_for(part))).await
    }
}

/// Returns whether the first of two futures is the first to complete.
pub(super) async fn is_first(
    mut first: impl Future<Output = ()> + Unpin,
    mut second: impl Future<Output = ()> + Unpin,
) -> bool {
    poll_fn(|cx| {
        if Pin::new(&mut first).poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        Pin::new(&mut second).poll(cx).map(|()| false)
    })
    .await
}

/// Begins the shutdown on loop 0, or shortens its limit.
fn begin(limit: Duration, site: Site) {
    let member = Member::current();
    if let Some(begun) = member.shutdown.get() {
        return begun.shorten(limit);
    }
    let limit = Limit::new(limit);
    if member.shutdown.set(limit.clone()).is_err() {
        return;
    }
    let stop = async move {
        let stopped = stop(&member.cluster, &limit, site).await;
        member.cluster.end_members(1);
        member.cut_rest();
        member.cluster.inner.end.set(stopped);
    };
    let core = LoopHandle::current().core().clone();
    core.executor.spawn(stop, site, Some(NAME.into())).detach();
}

async fn stop(cluster: &Cluster, limit: &Limit, site: Site) -> Stopped {
    // Connections first: a server that is notified stops accepting.
    let hubs = cluster.hubs();
    for hub in &hubs {
        hub.drain();
    }
    cluster.call_each(|| Member::current().closing.cancel());
    let handed_over = async {
        for hub in &hubs {
            hub.drained().await;
        }
    };
    limit.bound(2, handed_over).await;
    for hub in &hubs {
        hub.close();
    }
    cluster.call_each(|| Member::current().stopping.cancel());
    let mut loops = Draining::new(cluster, site);
    limit.bound(1, loops.wait()).await;
    let left = loops.left(cluster).await;
    let handle = LoopHandle::current();
    handle.update_time();
    Stopped {
        took: handle.now().saturating_duration_since(limit.begun),
        left,
    }
}

impl Cluster {
    fn call_each(&self, call: impl Fn() + Clone + Send + 'static) {
        for remote in &self.inner.remotes {
            // A loop that has ended needs no notice.
            let _ = remote.call(call.clone());
        }
    }

    /// Notes that the caller, if it is a task of this cluster, is not waited for.
    fn excuse_caller(&self) {
        if LoopHandle::try_current().is_none() {
            return;
        }
        let member = Member::current();
        if let (true, Some(caller)) = (member.cluster.is_same(self), task::current()) {
            member.excused.borrow_mut().push(caller.id());
        }
    }
}

/// The loops that are not drained yet.
struct Draining {
    open: Vec<bool>,
    drained: Receiver<usize>,
}

impl Draining {
    fn new(cluster: &Cluster, site: Site) -> Self {
        let (sender, drained) = channel(cluster.len());
        let mut open = vec![false; cluster.len()];
        for (index, remote) in cluster.inner.remotes.iter().enumerate() {
            let sender = sender.clone();
            let asked = remote.call(move || report_drained(index, sender, site));
            // A loop that has ended is drained.
            open[index] = asked.is_ok();
        }
        Self { open, drained }
    }

    async fn wait(&mut self) {
        while self.open.contains(&true) {
            match self.drained.recv().await {
                Some(index) => self.open[index] = false,
                // The loops that are left have ended.
                None => self.open.fill(false),
            }
        }
    }

    /// Returns what is left, as far as the loops answer.
    async fn left(&self, cluster: &Cluster) -> Vec<Left> {
        let (sender, mut answers) = channel(cluster.len());
        let mut left = Vec::new();
        for (index, is_open) in self.open.iter().enumerate() {
            if !is_open {
                continue;
            }
            let sender: Sender<Left> = sender.clone();
            let asked = cluster.remote(index).call(move || {
                // There is room for an answer of each.
                let _ = sender.try_send(Member::current().left());
            });
            if asked.is_ok() {
                left.push(Left {
                    index,
                    tasks: vec!["it is stuck in a callback or a poll".to_owned()],
                    connections: cluster.remote(index).open_connections(),
                });
            }
        }
        drop(sender);
        let collect = async {
            while let Some(answer) = answers.recv().await {
                if let Some(one) = left.iter_mut().find(|one| one.index == answer.index) {
                    *one = answer;
                }
            }
        };
        is_first(pin!(collect), sleep(ANSWER_TIMEOUT)).await;
        left
    }
}

/// Sends the index of this loop when it is drained.
fn report_drained(index: usize, sender: Sender<usize>, site: Site) {
    let core = LoopHandle::current().core().clone();
    let member = Member::current();
    let report = async move {
        let handle = LoopHandle::current();
        poll_fn(|cx| {
            let excused = member.excused.borrow().clone();
            let core = handle.core();
            core.outstanding
                .poll_drained(&core.executor.shared, &excused, cx)
        })
        .await;
        // There is room for one of each loop.
        let _ = sender.try_send(index);
    };
    core.executor
        .spawn(report, site, Some(NAME.into()))
        .detach();
}

impl Member {
    /// Returns what is left on this loop.
    fn left(&self) -> Left {
        let handle = LoopHandle::current();
        let excused = self.excused.borrow().clone();
        let is_left =
            |task: &task::Info| task.name() != Some(NAME) && !excused.contains(&task.id());
        Left {
            index: self.index,
            tasks: report::pending_tasks(handle.core(), is_left),
            connections: self.cluster.remote(self.index).open_connections(),
        }
    }

    /// Cuts what is left on loop 0, which goes on: roots and accepted connections.
    fn cut_rest(&self) {
        let handle = LoopHandle::current();
        for root in handle.core().outstanding.roots(&self.excused.borrow()) {
            root.abort();
        }
        for connection in handle.core().io.accepted() {
            drop(AnyHandle::new(handle.clone(), connection).close());
        }
    }
}
