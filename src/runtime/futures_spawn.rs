//! The spawners of the crate `futures`.

use std::panic::Location;

use futures::task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};

use super::loop_handle::LoopHandle;
use super::remote::Remote;
use crate::error::Error;

/// Spawns tasks from any thread, for libraries that take a spawner of the crate `futures`.
///
/// The task arrives in the poll phase, as one of [`Remote::spawn`] does.
///
/// # Errors
///
/// [`is_shutdown`](SpawnError::is_shutdown) if the loop was dropped. The future is dropped on this
/// thread then.
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use futures::task::SpawnExt;
///
/// #[phaseloop::main]
/// async fn main() {
///     let remote = phaseloop::LoopHandle::current().remote();
///     let answer = remote.spawn_with_handle(async { 42 }).unwrap();
///     assert_eq!(answer.await, 42);
/// }
/// ```
impl Spawn for Remote {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        let site = Location::caller();
        let spawned = self.call(move || LoopHandle::spawn_current(future, site).detach());
        spawned.map_err(|_: Error| SpawnError::shutdown())
    }

    fn status(&self) -> Result<(), SpawnError> {
        status(self.is_closed())
    }
}

/// Spawns tasks on the owner thread, for libraries that take a spawner of the crate `futures`.
///
/// # Errors
///
/// [`is_shutdown`](SpawnError::is_shutdown) if the loop was dropped.
impl Spawn for LoopHandle {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn_local_obj(future.into())
    }

    fn status(&self) -> Result<(), SpawnError> {
        self.status_local()
    }
}

/// Spawns tasks that need not be `Send`, for libraries that take a spawner of the crate `futures`.
///
/// # Errors
///
/// [`is_shutdown`](SpawnError::is_shutdown) if the loop was dropped.
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use std::rc::Rc;
/// use futures::task::LocalSpawnExt;
///
/// #[phaseloop::main]
/// async fn main() {
///     let shared = Rc::new(42);
///     let handle = phaseloop::LoopHandle::current();
///     let answer = handle.spawn_local_with_handle(async move { *shared }).unwrap();
///     assert_eq!(answer.await, 42);
/// }
/// ```
impl LocalSpawn for LoopHandle {
    #[track_caller]
    fn spawn_local_obj(&self, future: LocalFutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status_local()?;
        self.spawn(future).detach();
        Ok(())
    }

    fn status_local(&self) -> Result<(), SpawnError> {
        status(self.is_closed())
    }
}

fn status(is_closed: bool) -> Result<(), SpawnError> {
    match is_closed {
        true => Err(SpawnError::shutdown()),
        false => Ok(()),
    }
}
