//! Futures on every loop.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Cluster;
use crate::executor::join::JoinError;
use crate::runtime::remote::RemoteJoinHandle;
use crate::task_info::Id;

impl Cluster {
    /// Spawns a future on every loop. `make` is called on each loop with its index, so the futures
    /// need not be `Send`.
    ///
    /// The result is a future of all outputs, by index. Dropping it detaches the futures. On a loop
    /// that has ended the output is a [`JoinError`], cancelled; so are all after a
    /// [shutdown](Self::shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::cluster;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let results = cluster::Builder::new().loops(3).block_on(async {
    ///         cluster::current().each(|index| async move { index * 10 }).await
    ///     })?;
    ///     let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    ///     assert_eq!(results, [0, 10, 20]);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn each<M, F>(&self, make: M) -> Each<F::Output>
    where
        M: Fn(usize) -> F + Clone + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let mut roots = Vec::with_capacity(self.len());
        if self.inner.end.is_over() {
            let ended = || Root::Ended(Some(Err(JoinError::cancelled(Id::NONE))));
            roots.resize_with(self.len(), ended);
            return Each { roots };
        }
        for (index, remote) in self.inner.remotes.iter().enumerate() {
            let make = make.clone();
            let task = remote.spawn(move || make(index));
            roots.push(match task {
                Ok(task) => Root::Runs(task),
                Err(_) => Root::Ended(Some(Err(JoinError::cancelled(Id::NONE)))),
            });
        }
        Each { roots }
    }
}

/// The outputs of [`Cluster::each`], by index.
///
/// # Cancel safety
///
/// Dropping a future that polls it by reference loses no output.
///
/// # Panics
///
/// If it is polled again after it was ready.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster;
///
/// fn main() -> std::io::Result<()> {
///     let results = cluster::Builder::new().loops(3).block_on(async {
///         cluster::current().each(|index| async move { index * 10 }).await
///     })?;
///     let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
///     assert_eq!(results, [0, 10, 20]);
///     Ok(())
/// }
/// ```
#[must_use = "dropping it detaches the futures"]
pub struct Each<T: 'static> {
    roots: Vec<Root<T>>,
}

enum Root<T: 'static> {
    Runs(RemoteJoinHandle<T>),
    Ended(Option<Result<T, JoinError>>),
}

/// No output is pinned.
impl<T> Unpin for Each<T> {}

impl<T> Each<T> {
    /// Aborts the futures that have not completed.
    pub fn abort(&self) {
        for root in &self.roots {
            if let Root::Runs(task) = root {
                task.abort();
            }
        }
    }
}

impl<T> Future for Each<T> {
    type Output = Vec<Result<T, JoinError>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let roots = &mut self.get_mut().roots;
        let mut pending = false;
        for root in roots.iter_mut() {
            if let Root::Runs(task) = root {
                match Pin::new(task).poll(cx) {
                    Poll::Ready(output) => *root = Root::Ended(Some(output)),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return Poll::Pending;
        }
        let outputs = roots.iter_mut().map(|root| match root {
            Root::Ended(output) => output.take().expect("`Each` polled after completion"),
            Root::Runs(_) => unreachable!("all have ended"),
        });
        Poll::Ready(outputs.collect())
    }
}

impl<T> fmt::Debug for Each<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Each")
            .field("loops", &self.roots.len())
            .finish_non_exhaustive()
    }
}
