//! The report of all loops.
// Rule C22.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use super::Cluster;
use super::channel::{Sender, channel};
use super::shutdown::is_first;
use crate::runtime::loop_handle::LoopHandle;
use crate::time::sleep;

impl Cluster {
    /// Returns the [report](LoopHandle::report) of each loop: what keeps it alive, and what its
    /// tasks wait for. A loop that does not answer within `timeout` has a line that says so.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect on the loops.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::pending, time::Duration};
    /// use phaseloop::cluster;
    ///
    /// #[phaseloop::main(loops = 2)]
    /// async fn main() {
    ///     let hangs = cluster::current().remote(1).spawn(pending::<()>).unwrap();
    ///     let report = cluster::current().report(Duration::from_secs(1)).await;
    ///     // loop 1:
    ///     // …
    ///     //   loop 1 task 1 (src/main.rs:6:46): waits for …
    ///     assert!(report.to_string().contains("loop 1 task 1 ("), "{report}");
    ///     hangs.abort();
    /// }
    /// ```
    pub async fn report(&self, timeout: Duration) -> ClusterReport {
        let (sender, mut answers) = channel(self.len());
        let mut loops = Vec::with_capacity(self.len());
        for (index, remote) in self.inner.remotes.iter().enumerate() {
            let sender: Sender<(usize, String)> = sender.clone();
            let asked = remote.call(move || {
                let report = LoopHandle::current().report().to_string();
                // There is room for an answer of each.
                let _ = sender.try_send((index, report));
            });
            loops.push(match asked {
                Ok(()) => format!(
                    "It has not answered within {timeout:?}: a callback or a poll blocks it.\n"
                ),
                Err(_) => "It has ended.\n".to_owned(),
            });
        }
        drop(sender);
        let collect = async {
            while let Some((index, report)) = answers.recv().await {
                loops[index] = report;
            }
        };
        is_first(pin!(collect), sleep(timeout)).await;
        ClusterReport { loops }
    }
}

/// The reports of all loops of a cluster, by [`Cluster::report`]. Programs read
/// [`loops`](Self::loops); people read its text, which may change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterReport {
    /// The report of each loop, by index, or why there is none.
    pub loops: Vec<String>,
}

/// A cluster of one prints as its loop does.
impl fmt::Display for ClusterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.loops.as_slice() {
            return f.write_str(only);
        }
        for (index, report) in self.loops.iter().enumerate() {
            write!(f, "loop {index}:\n{report}")?;
        }
        Ok(())
    }
}
