//! What a file and its jobs share; among it the bytes that wait to be written.
//!
//! ```text
//!   write ──> pending ──> taken by the job that runs, which ends when nothing is left
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::blocking::Work;
use crate::fs::error::Error;
use crate::sys;

/// How many bytes may wait to be written, beside those that are being written.
pub(super) const MOST_PENDING: usize = 1 << 20;

/// The lock is never held during a system call: the loop takes it, too.
pub(crate) struct Shared {
    file: File,
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Accepted, and not taken by a job.
    pending: Vec<u8>,
    /// Room for the next, so that it need not be made each time.
    spare: Vec<u8>,
    /// A job runs, or will, that writes what is pending.
    is_writing: bool,
    /// Of a write that had been accepted.
    error: Option<io::Error>,
    /// Who waits for the job in flight, or for room.
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
        sys::fs::close(self.file).map_err(|error| Error::wrap(error, "close", path, None))
    }

    pub(super) fn wrap(&self, error: io::Error, operation: &'static str) -> io::Error {
        Error::wrap(error, operation, self.path.clone(), None)
    }

    /// The error of an earlier write, which is reported once.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Takes bytes to be written, as many as there is room for; at least one buffer is not empty.
    pub(super) fn accept(&self, buffers: &[io::IoSlice<'_>]) -> Accepted {
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
        let needs_job = !state.is_writing;
        state.is_writing = true;
        Accepted::Bytes { count, needs_job }
    }

    /// No job could be had for what was accepted.
    pub(super) fn refuse(&self) {
        let mut state = self.lock();
        state.pending.clear();
        state.is_writing = false;
    }

    /// The job: writes all that is pending, and what becomes so meanwhile. First the position is moved by `behind`.
    pub(super) fn write_pending(self: &Arc<Self>, behind: Option<i64>) {
        let mut file = &self.file;
        let mut result = match behind {
            Some(behind) => file.seek(SeekFrom::Current(behind)).map(drop),
            None => Ok(()),
        };
        let mut batch = Vec::new();
        while self.next_batch(result, &mut batch) {
            result = file.write_all(&batch);
        }
    }

    /// Takes what is pending, unless there was an error. Who waits for room has it now.
    fn next_batch(self: &Arc<Self>, result: io::Result<()>, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        let (goes_on, is_waited_for) = {
            let mut state = self.lock();
            if let Err(error) = result {
                state.error = Some(self.wrap(error, "write"));
                state.pending.clear();
            }
            if batch.capacity() == 0 {
                *batch = std::mem::take(&mut state.spare);
            }
            std::mem::swap(&mut state.pending, batch);
            state.is_writing = !batch.is_empty();
            if !state.is_writing {
                state.spare = std::mem::take(batch);
            }
            (state.is_writing, !state.waiters.is_empty())
        };
        if is_waited_for {
            self.wake_by_ref();
        }
        goes_on
    }

    /// Polls a job in flight. Whoever waits for one is woken by any: it looks again.
    pub(super) fn poll_job<T>(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        job: &mut Work<T>,
    ) -> Poll<T> {
        let poll = self.wake_by(job);
        if poll.is_pending() {
            self.wait(cx.waker());
        }
        poll
    }

    /// The end of this job wakes all who wait.
    pub(super) fn wake_by<T>(self: &Arc<Self>, job: &mut Work<T>) -> Poll<T> {
        let waker = Waker::from(self.clone());
        Pin::new(job).poll(&mut Context::from_waker(&waker))
    }

    /// The task is woken when the job in flight ends, and when there is room.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What became of bytes to be written.
pub(super) enum Accepted {
    Bytes { count: usize, needs_job: bool },
    NoRoom,
    Failed(io::Error),
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
