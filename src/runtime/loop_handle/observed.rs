//! What a loop reports of itself: figures, records, open handles, tasks.

use super::LoopHandle;
use crate::keeper::Keeper;
use crate::metrics::Metrics;
#[cfg(feature = "probe")]
use crate::probe::Recorder;
use crate::runtime::handle::HandleInfo;
use crate::task_info::Info;

/// Figures, records, open handles and tasks.
impl LoopHandle {
    /// Returns the number of turns that the loop has made.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let before = handle.turns();
    ///     yield_now().await;
    ///     assert!(handle.turns() > before);
    ///     println!("busy for {:.0} %", handle.metrics().utilization() * 100.0);
    ///     assert_eq!(handle.budget_hits(), 0);
    /// }
    /// ```
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.core.counters.turns.get()
    }

    /// Returns what the loop has counted and measured of itself since it was created:
    /// utilization, delay, lateness of timers, and more.
    ///
    /// The figures are always counted. A call copies two histograms of 7 KiB; the rest is cheap.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let before = handle.turns();
    ///     yield_now().await;
    ///     assert!(handle.turns() > before);
    ///     println!("busy for {:.0} %", handle.metrics().utilization() * 100.0);
    ///     assert_eq!(handle.budget_hits(), 0);
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn metrics(&self) -> Metrics {
        self.core.counters.metrics(&self.core.executor)
    }

    /// Begins to record what the loop does, in place of the recorder that it had, if any.
    ///
    /// What is in progress, such as the callback that calls this, is not recorded.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, observe::Recorder, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     handle.record(Recorder::new());
    ///     yield_now().await;
    ///     let recorder = handle.recorder().unwrap();
    ///     handle.stop_recording();
    ///     println!("{}", recorder.blame());
    /// }
    /// ```
    #[cfg(feature = "probe")]
    pub fn record(&self, recorder: Recorder) {
        let now = self.core.executor.clock.read();
        self.core.executor.probe.record(Some(recorder), now);
    }

    /// Returns the loop's recorder, if it has one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, observe::Recorder, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     handle.record(Recorder::new());
    ///     yield_now().await;
    ///     let recorder = handle.recorder().unwrap();
    ///     handle.stop_recording();
    ///     println!("{}", recorder.blame());
    /// }
    /// ```
    #[cfg(feature = "probe")]
    #[must_use]
    pub fn recorder(&self) -> Option<Recorder> {
        self.core.executor.probe.recorder()
    }

    /// Stops recording. The recorder keeps its records.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, observe::Recorder, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     handle.record(Recorder::new());
    ///     yield_now().await;
    ///     let recorder = handle.recorder().unwrap();
    ///     handle.stop_recording();
    ///     println!("{}", recorder.blame());
    /// }
    /// ```
    #[cfg(feature = "probe")]
    pub fn stop_recording(&self) {
        let now = self.core.executor.clock.read();
        self.core.executor.probe.record(None, now);
    }

    /// Returns how often the [lane budget](crate::Builder::lane_budget) ended a drain.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task::yield_now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let before = handle.turns();
    ///     yield_now().await;
    ///     assert!(handle.turns() > before);
    ///     println!("busy for {:.0} %", handle.metrics().utilization() * 100.0);
    ///     assert_eq!(handle.budget_hits(), 0);
    /// }
    /// ```
    #[must_use]
    pub fn budget_hits(&self) -> u64 {
        self.core.executor.budget_hits()
    }

    /// Returns what keeps the loop alive, as counts of each kind that has any.
    /// [`report`](Self::report) adds names and source lines.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, Keeper};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     assert!(!handle.is_alive());
    ///     handle.set_immediate(|| ());
    ///     assert!(handle.is_alive());
    ///     assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    ///     drop(event_loop);
    ///     assert!(handle.is_closed());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn keepers(&self) -> Vec<(Keeper, usize)> {
        Keeper::ALL
            .into_iter()
            .map(|kind| (kind, self.core.count_keepers(kind)))
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    /// Returns the loop's open handles, started or not, in the order of their creation.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let _timer = Timer::new(&handle);
    ///     let _task = task::Builder::new().name("reader").spawn(std::future::pending::<()>());
    ///     for open in handle.handles() {
    ///         println!("{open}");
    ///     }
    ///     assert_eq!(handle.tasks()[0].name(), Some("reader"));
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn handles(&self) -> Vec<HandleInfo> {
        let headers = self.core.ledger.headers();
        let infos = headers
            .iter()
            .map(|header| HandleInfo::of(header, &self.core));
        infos.collect()
    }

    /// Returns the tasks that have not ended, oldest first.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, task, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let _timer = Timer::new(&handle);
    ///     let _task = task::Builder::new().name("reader").spawn(std::future::pending::<()>());
    ///     for open in handle.handles() {
    ///         println!("{open}");
    ///     }
    ///     assert_eq!(handle.tasks()[0].name(), Some("reader"));
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn tasks(&self) -> Vec<Info> {
        let states = self.core.task_states().into_iter();
        states.map(|task| task.info).collect()
    }
}
