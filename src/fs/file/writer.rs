//! What a file and its jobs share; among it the bytes that wait to be written.
//!
//! ```text
//!   write ──> pending ──> taken and written, step by step, until nothing is left
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::blocking::steps::Steps;
use crate::error::OsError;
use crate::fs::job;
use crate::sys;

/// How many bytes may wait to be written, beside those that are being written.
const MOST_PENDING: usize = 1 << 20;

/// The lock is never held during a system call: the loop takes it, too.
pub(crate) struct Shared {
    file: File,
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Accepted, and not taken to be written.
    pending: Vec<u8>,
    /// Room for the next, so that it need not be made each time.
    spare: Vec<u8>,
    /// By how much the position has to be moved before.
    behind: Option<i64>,
    /// Steps are under way that write what is pending.
    is_writing: bool,
    /// How many courses of steps have not been reported to be over.
    courses: usize,
    /// Of a write that had been accepted.
    error: Option<io::Error>,
    /// Who waits for a job to end, or for room.
    waiters: VecDeque<Waker>,
}

impl Shared {
    pub(super) fn new(file: File, path: Option<PathBuf>) -> Self {
        Self {
            file,
            path,
            state: Mutex::default(),
        }
    }

    pub(in crate::fs) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn into_file(self) -> File {
        self.file
    }

    pub(super) fn close(self) -> io::Result<()> {
        let path = self.path;
        sys::fs::close(self.file).map_err(|error| OsError::wrap(error, "close", path))
    }

    pub(super) fn wrap(&self, error: io::Error, operation: &'static str) -> io::Error {
        OsError::wrap(error, operation, self.path.clone())
    }

    /// The error of an earlier write, which is reported once.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Takes bytes to be written, as many as there is room for; at least one buffer is not empty.
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

    /// Steps that write what is pending; first they move the position.
    pub(super) fn start_writing(self: &Arc<Self>, behind: Option<i64>) -> io::Result<()> {
        {
            let mut state = self.lock();
            state.is_writing = true;
            state.courses += 1;
            state.behind = behind;
        }
        job::start("write", self.clone()).inspect_err(|_| {
            let mut state = self.lock();
            state.is_writing = false;
            state.pending.clear();
        })
    }

    /// Whether something has been accepted, and nobody told yet that it is written.
    pub(super) fn is_writing(&self) -> bool {
        self.lock().courses > 0
    }

    /// Polls a job in flight. Whoever waits for something here is woken by anything: it looks again.
    pub(super) fn poll_job<F: Future + Unpin>(self: &Arc<Self>, job: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(self.clone());
        Pin::new(job).poll(&mut Context::from_waker(&waker))
    }

    /// The task is woken when a job ends, and when there is room.
    pub(super) fn wait(&self, waker: &Waker) {
        // Cloned and dropped outside of the lock: a waker may do anything then.
        let waker = waker.clone();
        let mut state = self.lock();
        if !state.waiters.iter().any(|waiter| waiter.will_wake(&waker)) {
            state.waiters.push_back(waker);
            return;
        }
        drop(state);
    }

    /// Takes what is pending. `None`: nothing is, and the steps are over.
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
            // There is room. A waker that panics has been reported by the panic hook; the bytes are written still.
            let _ = catch_unwind(AssertUnwindSafe(|| self.wake_by_ref()));
        }
        Some(taken)
    }

    fn write(&self, bytes: &[u8], behind: Option<i64>) -> io::Result<()> {
        let mut file = &self.file;
        if let Some(behind) = behind {
            file.seek(SeekFrom::Current(behind))?;
        }
        file.write_all(bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of bytes to be written.
pub(super) enum Accepted {
    Bytes { count: usize, is_writing: bool },
    NoRoom,
    Failed(io::Error),
}

/// One step writes what was pending when it began.
impl Steps for Shared {
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

    fn ended(self: &Arc<Self>) {
        self.lock().courses -= 1;
        self.wake_by_ref();
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Wakes all who wait now, outside of the lock.
    fn wake_by_ref(self: &Arc<Self>) {
        let count = self.lock().waiters.len();
        for _ in 0..count {
            let waiter = self.lock().waiters.pop_front();
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }
    }
}
