//! State that a file shares with its jobs, among it the bytes to be written.
//!
//! ```text
//!   write ──> pending ──> taken and written, step by step, until nothing is left
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::blocking::step_job::Steps;
use crate::error::OsError;
use crate::error::os::About;
use crate::fs::job;
use crate::raw::unwind::{self, ignore_panic};
use crate::sys;

/// The most bytes that are accepted and not yet taken by a job.
const MOST_PENDING: usize = 1 << 20;

/// The lock is never held during a system call, since the loop's thread takes it, too.
pub(crate) struct Shared {
    file: File,
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes accepted and not yet taken by a job.
    pending: Vec<u8>,
    /// An empty buffer for the next writes, which saves an allocation.
    spare: Vec<u8>,
    /// The seek that must precede the next write.
    behind: Option<i64>,
    /// A job is writing what is pending.
    is_writing: bool,
    /// Jobs whose completion has not reached the loop.
    courses: usize,
    /// The error of an accepted write.
    error: Option<io::Error>,
    /// Wakers of tasks that wait for a job or for room.
    waiters: VecDeque<Waker>,
}

impl Shared {
    #[inline]
    pub(super) fn new(file: File, path: Option<PathBuf>) -> Self {
        Self {
            file,
            path,
            state: Mutex::default(),
        }
    }

    #[inline]
    pub(in crate::fs) fn file(&self) -> &File {
        &self.file
    }

    #[inline]
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    #[inline]
    pub(super) fn into_file(self) -> File {
        self.file
    }

    #[inline]
    pub(super) fn close(self) -> io::Result<()> {
        let path = self.path;
        sys::fs::close(self.file).map_err(|error| OsError::wrap(error, "close", path))
    }

    #[inline]
    pub(super) fn wrap(&self, error: io::Error, operation: &'static str) -> io::Error {
        OsError::wrap(error, operation, self.about())
    }

    /// The path, as far as it is known.
    #[inline]
    pub(super) fn about(&self) -> About {
        self.path.clone().into()
    }

    /// Takes the error of an accepted write, which is reported once.
    #[inline]
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Returns whether the error of an accepted write is not yet reported.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.lock().error.is_some()
    }

    /// Accepts as many bytes as there is room for. At least one buffer is not empty.
    #[inline]
    pub(super) fn accept(&self, buffers: &[IoSlice<'_>]) -> Accepted {
        let mut state = self.lock();
        if let Some(error) = state.error.take() {
            return Accepted::Failed(error);
        }
        let mut count = 0;
        for buffer in buffers {
            let room = MOST_PENDING - state.pending.len();
            let taken = &buffer[..buffer.len().min(room)];
            state.pending.extend_from_slice(taken);
            count += taken.len();
        }
        if count == 0 {
            return Accepted::NoRoom;
        }
        Accepted::Bytes {
            count,
            is_writing: state.is_writing,
        }
    }

    /// Starts a job that seeks by `behind` and writes what is pending.
    #[inline]
    pub(super) fn start_writing(self: &Arc<Self>, behind: Option<i64>) -> io::Result<()> {
        {
            let mut state = self.lock();
            state.is_writing = true;
            state.courses += 1;
            state.behind = behind;
        }
        job::start("write", self.clone()).map_err(|error| {
            let mut state = self.lock();
            state.is_writing = false;
            state.pending.clear();
            drop(state);
            self.wrap(error, "write")
        })
    }

    /// Whether an accepted write is not yet reported as done.
    #[inline]
    pub(super) fn is_writing(&self) -> bool {
        self.lock().courses > 0
    }

    /// Polls a job in flight. Its completion wakes all waiters, which check their conditions again.
    pub(super) fn poll_job<F: Future + Unpin>(self: &Arc<Self>, job: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(self.clone());
        Pin::new(job).poll(&mut Context::from_waker(&waker))
    }

    /// Registers a task that is woken when a job completes and when there is room.
    #[inline]
    pub(super) fn wait(&self, waker: &Waker) {
        // The clone and the drop happen outside the lock, since a waker runs user code there.
        let waker = waker.clone();
        let mut state = self.lock();
        if !state.waiters.iter().any(|waiter| waiter.will_wake(&waker)) {
            state.waiters.push_back(waker);
            return;
        }
        drop(state);
    }

    /// Takes the pending bytes. `None`: there are none, and the job ends.
    #[inline]
    fn take_pending(self: &Arc<Self>) -> Option<(Vec<u8>, Option<i64>)> {
        let (taken, is_waited_for) = {
            let mut state = self.lock();
            if state.pending.is_empty() {
                state.is_writing = false;
                return None;
            }
            let spare = std::mem::take(&mut state.spare);
            let taken = std::mem::replace(&mut state.pending, spare);
            ((taken, state.behind.take()), !state.waiters.is_empty())
        };
        if is_waited_for {
            // The buffer has room again. A waker that panics is reported by the panic hook; the
            // bytes must be written all the same.
            ignore_panic(|| self.wake_by_ref());
        }
        Some(taken)
    }

    #[inline]
    fn write(&self, bytes: &[u8], behind: Option<i64>) -> io::Result<()> {
        let mut file = &self.file;
        sys::fs::at_position(file, || {
            if let Some(behind) = behind {
                file.seek(SeekFrom::Current(behind))?;
            }
            file.write_all(bytes)
        })
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of [`Shared::accept`].
pub(super) enum Accepted {
    Bytes { count: usize, is_writing: bool },
    NoRoom,
    Failed(io::Error),
}

/// One step writes what was pending at its start.
impl Steps for Shared {
    #[inline]
    fn step(self: &Arc<Self>) -> bool {
        let Some((mut bytes, behind)) = self.take_pending() else {
            return false;
        };
        let result = self.write(&bytes, behind);
        bytes.clear();
        let mut state = self.lock();
        state.spare = bytes;
        if let Err(error) = result {
            state.error = Some(self.wrap(error, "write"));
            state.pending.clear();
        }
        state.is_writing = !state.pending.is_empty();
        state.is_writing
    }

    #[inline]
    fn ended(self: &Arc<Self>) {
        self.lock().courses -= 1;
        self.wake_by_ref();
    }
}

impl Wake for Shared {
    #[inline]
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Wakes all tasks that wait now, outside the lock. A waker that panics keeps no other task
    /// from its wake.
    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        let count = self.lock().waiters.len();
        let mut wakes = unwind::Steps::default();
        for _ in 0..count {
            let waiter = self.lock().waiters.pop_front();
            if let Some(waiter) = waiter {
                wakes.run(|| waiter.wake());
            }
        }
        wakes.end();
    }
}
