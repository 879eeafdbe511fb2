//! Hands operations on files to the thread pool.

use std::future::Future;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::blocking::Work;
use crate::blocking::step_job::{self, Steps};
use crate::error::OsError;
use crate::error::os::About;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::ledger::jobs::Purpose;
use crate::pool::Class;
use crate::probe::Area;
use crate::site::Site;

pin_project! {
    /// A future that needs a loop. It knows the line of its creation, which the panic of a poll
    /// without a loop names.
    pub(super) struct NeedsLoop<F> {
        #[pin]
        future: F,
        // The function that created it.
        function: &'static str,
        // `None` once a loop was found.
        site: Option<Site>,
    }
}

/// Wraps the future of the function `function` of this module, on behalf of its caller.
#[track_caller]
pub(super) fn needs_loop<F: Future>(function: &'static str, future: F) -> NeedsLoop<F> {
    NeedsLoop {
        future,
        function,
        site: Some(Location::caller()),
    }
}

impl<F: Future> Future for NeedsLoop<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Some(site) = this.site.take() {
            let function = this.function;
            LoopHandle::current_for(format_args!("fs::{function}"), Some(site));
        }
        this.future.poll(cx)
    }
}

/// Hands an operation to the pool.
///
/// # Errors
///
/// When the pool has no thread and none can be started.
pub(super) fn submit<T: Send + 'static>(
    operation: &'static str,
    about: impl Fn() -> About,
    job: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Work<T>> {
    let purpose = Purpose::new(Class::Fs, operation);
    let handle = LoopHandle::current_for(format_args!("fs::{operation}"), None);
    let queued = || match about().path {
        Some(path) => format!("{operation} {path:?} is queued"),
        None => format!("{operation} is queued"),
    };
    handle.core().log(Area::Fs, queued);
    let work = Work::submit(&handle, purpose, job);
    work.map_err(|error| OsError::wrap(error, operation, about()))
}

/// Hands a job of several steps to the pool. It cannot be awaited or cancelled.
///
/// # Errors
///
/// The errors of [`submit`].
pub(super) fn start(operation: &'static str, steps: Arc<impl Steps>) -> io::Result<()> {
    let purpose = Purpose::new(Class::Fs, operation);
    let handle = LoopHandle::current_for(format_args!("fs::{operation}"), None);
    let queued = || format!("{operation} is queued");
    handle.core().log(Area::Fs, queued);
    step_job::start(&handle, purpose, steps)
}

/// Runs an operation as one job of the pool. `about` names its object in the error of a job that
/// cannot be queued.
pub async fn run_on<T: Send + 'static>(
    operation: &'static str,
    about: impl Fn() -> About,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    submit(operation, about, job)?.await
}

/// Runs an operation on a path. An error names the operation and the path.
pub async fn on_path<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    job: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let owned = path.to_owned();
    let about = || path.to_owned().into();
    run_on(operation, about, move || {
        job(&owned).map_err(|error| OsError::wrap(error, operation, owned))
    })
    .await
}

/// Runs an operation on two paths. An error names the operation and both paths.
pub(super) async fn on_paths<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    target: &Path,
    job: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let paths = || (path.to_owned(), target.to_owned());
    let about = || paths().into();
    let (path, target) = paths();
    run_on(operation, about, move || {
        job(&path, &target).map_err(|error| OsError::wrap(error, operation, (path, target)))
    })
    .await
}
