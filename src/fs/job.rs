//! The way of every operation to the pool.

use std::io;
use std::path::Path;

use super::error::Error;
use crate::blocking::Work;
use crate::event_loop::handle::LoopHandle;
use crate::pool::Class;

/// Runs one operation on the pool: one hop, whatever it does there.
pub(super) async fn run<T: Send + 'static>(
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    Work::submit(&LoopHandle::current(), Class::Fs, job)?.await
}

/// The same for an operation on a path; its error names both.
pub(super) async fn on_path<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    job: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path = path.to_owned();
    run(move || job(&path).map_err(|error| Error::wrap(error, operation, path))).await
}
