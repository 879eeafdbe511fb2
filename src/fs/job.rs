//! Hands operations on files to the thread pool.

use std::future::Future;
use std::io;
use std::panic::Location;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::blocking::Work;
use crate::blocking::step_job::{self, Steps};
use crate::error::OsError;
use crate::error::os::About;
use crate::event_loop::ledger::jobs::Purpose;
use crate::pool::Class;
use crate::probe::Area;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// A job that was queued, or was not.
type Queued<T> = io::Result<Work<io::Result<T>>>;

/// A call of this module: its job goes to the pool when the call is first polled.
///
/// It is a type of its own in place of an async block, which would keep room for the arguments
/// beside the job that owns them.
pub(crate) struct Call<S, T> {
    state: State<S, T>,
}

enum State<S, T> {
    /// What submits the job, and the line of the call, which the panic of a poll without a loop
    /// names.
    New(S, Option<Site>),
    Queued(Work<io::Result<T>>),
    Over,
}

impl<S, T> Call<S, T>
where
    S: FnOnce(Option<Site>) -> Queued<T>,
{
    pub(super) fn new(submit: S) -> Self {
        Self {
            state: State::New(submit, None),
        }
    }

    /// Notes the line of the caller.
    #[track_caller]
    pub(super) fn here(mut self) -> Self {
        if let State::New(_, site) = &mut self.state {
            *site = Some(Location::caller());
        }
        self
    }

    /// Converts the result on the loop.
    pub(super) fn map<U>(self, convert: impl Fn(T) -> U) -> impl Future<Output = io::Result<U>> {
        Mapped {
            call: self,
            convert,
        }
    }
}

/// No part is ever pinned.
impl<S, T> Unpin for Call<S, T> {}

impl<S, T> Future for Call<S, T>
where
    S: FnOnce(Option<Site>) -> Queued<T>,
{
    type Output = io::Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let state = &mut self.get_mut().state;
        loop {
            match std::mem::replace(state, State::Over) {
                State::New(submit, site) => *state = State::Queued(submit(site)?),
                State::Queued(mut work) => {
                    let result = Pin::new(&mut work).poll(cx);
                    if result.is_pending() {
                        *state = State::Queued(work);
                    }
                    return result;
                }
                State::Over => panic!("a future of `phaseloop::fs` was polled after its end"),
            }
        }
    }
}

/// A call whose result is converted.
struct Mapped<C, F> {
    call: C,
    convert: F,
}

impl<C, F> Unpin for Mapped<C, F> {}

impl<C, F, T, U> Future for Mapped<C, F>
where
    C: Future<Output = io::Result<T>> + Unpin,
    F: Fn(T) -> U,
{
    type Output = io::Result<U>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<U>> {
        let result = ready!(Pin::new(&mut self.call).poll(cx));
        Poll::Ready(result.map(|value| (self.convert)(value)))
    }
}

/// Hands an operation to the pool.
///
/// # Errors
///
/// When the pool has no thread and none can be started.
pub(super) fn submit<T: Send + 'static>(
    operation: &'static str,
    site: Option<Site>,
    about: impl Fn() -> About,
    job: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Work<T>> {
    let purpose = Purpose::new(Class::Fs, operation);
    let handle = LoopHandle::current_for(format_args!("fs::{operation}"), site);
    let queued = || match about().path {
        Some(path) => format!("{operation} {path:?} is queued"),
        None => format!("{operation} is queued"),
    };
    handle.core().executor.probe.log(Area::Fs, queued);
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
    handle.core().executor.probe.log(Area::Fs, queued);
    step_job::start(&handle, purpose, steps)
}

/// Runs an operation as one job of the pool. `about` names its object in the error of a job that
/// cannot be queued.
pub(crate) fn run_on<T: Send + 'static>(
    operation: &'static str,
    about: impl Fn() -> About,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Call<impl FnOnce(Option<Site>) -> Queued<T>, T> {
    Call::new(move |site| submit(operation, site, about, job))
}

/// Runs an operation on a path. An error names the operation and the path.
pub(crate) fn on_path<T: Send + 'static>(
    operation: &'static str,
    path: impl AsRef<Path>,
    job: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Call<impl FnOnce(Option<Site>) -> Queued<T>, T> {
    prepared_on_path(operation, path, move || job)
}

/// Runs an operation on a path, whose job `prepare` makes of the arguments when it is queued.
pub(super) fn prepared_on_path<T, J>(
    operation: &'static str,
    path: impl AsRef<Path>,
    prepare: impl FnOnce() -> J,
) -> Call<impl FnOnce(Option<Site>) -> Queued<T>, T>
where
    T: Send + 'static,
    J: FnOnce(&Path) -> io::Result<T> + Send + 'static,
{
    Call::new(move |site| {
        let (path, job) = (path.as_ref(), prepare());
        let owned = path.to_owned();
        let about = || path.to_owned().into();
        submit(operation, site, about, move || {
            job(&owned).map_err(|error| OsError::wrap(error, operation, owned))
        })
    })
}

/// Runs an operation on two paths. An error names the operation and both paths.
pub(super) fn on_paths<T: Send + 'static>(
    operation: &'static str,
    path: impl AsRef<Path>,
    target: impl AsRef<Path>,
    job: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
) -> Call<impl FnOnce(Option<Site>) -> Queued<T>, T> {
    Call::new(move |site| {
        let paths = || (path.as_ref().to_owned(), target.as_ref().to_owned());
        let about = || paths().into();
        let (path, target) = paths();
        submit(operation, site, about, move || {
            job(&path, &target).map_err(|error| OsError::wrap(error, operation, (path, target)))
        })
    })
}
