//! The figures of several loops.

use super::Metrics;

impl Metrics {
    /// Adds the figures of another loop: the sum of both, as of one loop that has done the work of
    /// both. [`utilization`](Self::utilization) is the mean then.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let (first, second) = (EventLoop::new()?, EventLoop::new()?);
    ///     second.block_on(async {});
    ///     let mut both = first.handle().metrics();
    ///     both.merge(&second.handle().metrics());
    ///     assert_eq!(both.turns, second.handle().metrics().turns);
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        let Self {
            turns,
            kernel_polls,
            events,
            events_waiting,
            callbacks,
            polls,
            closures,
            remote_wakes,
            spawned,
            tasks,
            budget_hits,
            idle,
            active,
            busy_periods,
            lateness,
        } = self;
        *turns += other.turns;
        *kernel_polls += other.kernel_polls;
        *events += other.events;
        *events_waiting += other.events_waiting;
        for (count, more) in callbacks.iter_mut().zip(other.callbacks) {
            *count += more;
        }
        *polls += other.polls;
        *closures += other.closures;
        *remote_wakes += other.remote_wakes;
        *spawned += other.spawned;
        *tasks += other.tasks;
        *budget_hits += other.budget_hits;
        *idle += other.idle;
        *active += other.active;
        busy_periods.merge(&other.busy_periods);
        lateness.merge(&other.lateness);
    }

    /// Returns the figures of several loops as one page in the text format of Prometheus. Each line
    /// has the label `loop`, which is the index in `loops`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::observe::Metrics;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let metrics = phaseloop::LoopHandle::current().metrics();
    ///     let page = Metrics::all_to_prometheus(&[metrics.clone(), metrics]);
    ///     assert!(page.contains("phaseloop_tasks{loop=\"1\"} 0\n"));
    ///     assert_eq!(page.matches("# TYPE phaseloop_tasks gauge").count(), 1);
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn all_to_prometheus(loops: &[Self]) -> String {
        let page = |(index, metrics): (usize, &Self)| {
            metrics.to_prometheus(&[("loop", &index.to_string())])
        };
        let pages: Vec<_> = loops.iter().enumerate().map(page).collect();
        let Some(first) = pages.first() else {
            return String::new();
        };
        // Each page has the same families in the same order, and a family has one head.
        let families = |page: &str| -> Vec<String> {
            let families = page.split("# HELP ").skip(1);
            families.map(|family| format!("# HELP {family}")).collect()
        };
        let mut merged = families(first);
        for page in &pages[1..] {
            for (all, family) in merged.iter_mut().zip(families(page)) {
                let lines = family.lines().filter(|line| !line.starts_with('#'));
                all.extend(lines.flat_map(|line| [line, "\n"]));
            }
        }
        merged.concat()
    }
}
