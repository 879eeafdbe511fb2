//! Windows: the ends of pipes, read and written by overlapped operations.
//!
//! ```text
//!   read:  idle ── ReadFile ──> pending ── event ──> filled ── all bytes taken ──> idle
//!                     └──── at once ──────────────────^   └── no writer is left ──> ended
//!   write: idle ── WriteFile, its bytes are accepted ──> pending ── event ──> idle
//! ```
//!
//! Both look as a file in non-blocking mode does: an attempt that has to wait fails with
//! `WouldBlock`.
#![allow(unsafe_code, reason = "calls of the OS")]

use std::cell::Cell;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windows_sys::Win32::Foundation::{
    ERROR_BROKEN_PIPE, ERROR_HANDLE_EOF, ERROR_PIPE_NOT_CONNECTED, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_INBOUND, ReadFile, WriteFile,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE, PIPE_WAIT,
};

use crate::sys::overlapped::{Operation, Progress, is_overlapped};
use crate::sys::poller::{Polled, RawSource, Waitables};

/// The most bytes that one operation moves, and the size of the buffers of a pipe.
const CAPACITY: usize = 64 * 1024;

/// An open end of a pipe, on which reads and writes do not block.
#[expect(unnameable_types, reason = "an internal of the pipes")]
pub struct PipeEnd {
    file: Arc<OwnedHandle>,
    read: Option<Reading>,
    write: Option<Writing>,
}

struct Reading {
    operation: Operation,
    state: Cell<ReadState>,
}

#[derive(Default)]
enum ReadState {
    #[default]
    Idle,
    Pending,
    /// The bytes of the operation's memory that were not taken yet.
    Filled(Range<usize>),
    Ended,
    Failed(io::Error),
}

struct Writing {
    operation: Operation,
}

/// The directions of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// A named pipe.
    #[cfg(feature = "net")]
    Both,
}

impl PipeEnd {
    /// Takes over an end that was opened for overlapped operations.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it was not: its operations would block the loop.
    pub(crate) fn new(file: OwnedHandle, access: Access) -> io::Result<Self> {
        if !is_overlapped(file.as_handle()) {
            let text = "the handle was not opened for overlapped operations";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Self::of(Arc::new(file), access)
    }

    pub(super) fn of(file: Arc<OwnedHandle>, access: Access) -> io::Result<Self> {
        let operation = || Operation::new(file.clone(), CAPACITY);
        let read = match access {
            Access::Write => None,
            _ => Some(Reading {
                operation: operation()?,
                state: Cell::default(),
            }),
        };
        let write = match access {
            Access::Read => None,
            _ => Some(Writing {
                operation: operation()?,
            }),
        };
        Ok(Self { file, read, write })
    }

    /// Returns another handle of the same end.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedHandle> {
        self.file.try_clone()
    }

    fn reading(&self) -> io::Result<&Reading> {
        self.read.as_ref().ok_or_else(wrong_direction)
    }

    fn writing(&self) -> io::Result<&Writing> {
        self.write.as_ref().ok_or_else(wrong_direction)
    }
}

fn wrong_direction() -> io::Error {
    let text = "the pipe is not open for this direction";
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl Reading {
    /// Starts a read and returns what it has brought by now.
    fn start(&self) -> ReadState {
        // SAFETY: `ReadFile` uses the pointers for one overlapped read.
        let started = unsafe {
            self.operation
                .start(CAPACITY, |file, buffer, length, overlapped| {
                    ReadFile(file, buffer, length, null_mut(), overlapped)
                })
        };
        Self::state_of(started)
    }

    fn state_of(progress: io::Result<Progress>) -> ReadState {
        match progress {
            Ok(Progress::Pending) => ReadState::Pending,
            // The peer has written no bytes, which is not EOF.
            Ok(Progress::Done(0)) => ReadState::Idle,
            Ok(Progress::Done(count)) => ReadState::Filled(0..count),
            Err(error) if is_end(&error) => ReadState::Ended,
            Err(error) => ReadState::Failed(error),
        }
    }

    /// Takes available bytes.
    fn take(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let state = match self.state.take() {
                ReadState::Idle => self.start(),
                ReadState::Pending => Self::state_of(self.operation.progress()),
                ReadState::Filled(left) => return Ok(self.copy(left, buffer)),
                ReadState::Ended => {
                    self.state.set(ReadState::Ended);
                    return Ok(0);
                }
                ReadState::Failed(error) => return Err(error),
            };
            let is_pending = matches!(state, ReadState::Pending);
            self.state.set(state);
            if is_pending {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn copy(&self, left: Range<usize>, buffer: &mut [u8]) -> usize {
        let count = left.len().min(buffer.len());
        let (start, end) = (left.start, left.end);
        self.operation
            .with_buffer(|filled| buffer[..count].copy_from_slice(&filled[start..start + count]));
        let rest = start + count..end;
        self.state.set(match rest.is_empty() {
            true => ReadState::Idle,
            false => ReadState::Filled(rest),
        });
        count
    }

    /// Starts a read for a waiting reader. If there is no need to wait, the event says so.
    fn begin(&self) {
        let state = match self.state.take() {
            ReadState::Idle => self.start(),
            state => state,
        };
        if !matches!(state, ReadState::Pending) {
            self.operation.signal();
        }
        self.state.set(state);
    }
}

/// Returns whether the error of a read is EOF: no writer is left.
fn is_end(error: &io::Error) -> bool {
    let ends = [
        ERROR_BROKEN_PIPE,
        ERROR_HANDLE_EOF,
        ERROR_PIPE_NOT_CONNECTED,
    ];
    ends.into_iter().any(|end| is(error, end))
}

impl Writing {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.finish()?;
        let bytes = &bytes[..bytes.len().min(CAPACITY)];
        self.operation
            .with_buffer(|buffer| buffer[..bytes.len()].copy_from_slice(bytes));
        // SAFETY: `WriteFile` uses the pointers for one overlapped write.
        let started = unsafe {
            self.operation
                .start(bytes.len(), |file, buffer, length, overlapped| {
                    WriteFile(file, buffer, length, null_mut(), overlapped)
                })
        };
        match started? {
            // The bytes are accepted, and the next write waits for them.
            Progress::Pending => Ok(bytes.len()),
            Progress::Done(count) => Ok(count),
        }
    }

    /// Fails with `WouldBlock` while earlier bytes are on their way.
    fn finish(&self) -> io::Result<()> {
        if self.operation.is_pending() && self.operation.progress()? == Progress::Pending {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }
}

/// Closes the end. A read is given up. Bytes that a write has accepted are delivered, and the end
/// stays open until then.
impl Drop for PipeEnd {
    fn drop(&mut self) {
        if let Some(reading) = self.read.take() {
            if reading.operation.is_pending() {
                reading.operation.cancel();
            }
            reading.operation.leave();
        }
        if let Some(writing) = self.write.take() {
            writing.operation.leave();
        }
    }
}

impl Polled for PipeEnd {
    fn raw_source(&self) -> RawSource {
        let event = |operation: &Operation| operation.event();
        let read = self.read.as_ref().map(|read| event(&read.operation));
        let write = self.write.as_ref().map(|write| event(&write.operation));
        RawSource::Waitable(Waitables::new(read, write))
    }

    fn begin_read(&self) {
        if let Some(reading) = &self.read {
            reading.begin();
        }
    }

    fn is_writing(&self) -> bool {
        let writing = self.write.as_ref();
        writing.is_some_and(|writing| writing.operation.is_pending())
    }
}

impl Read for &PipeEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let reading = self.reading()?;
        match buffer.is_empty() {
            true => Ok(0),
            false => reading.take(buffer),
        }
    }

    /// Reads into the first buffer that is not empty: callers must expect partial reads anyway.
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let first = buffers.iter_mut().find(|buffer| !buffer.is_empty());
        first.map_or(Ok(0), |buffer| self.read(buffer))
    }
}

impl Write for &PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let writing = self.writing()?;
        match bytes.is_empty() {
            true => Ok(0),
            false => writing.write(bytes),
        }
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let first = buffers.iter().find(|buffer| !buffer.is_empty());
        first.map_or(Ok(0), |buffer| self.write(buffer))
    }

    /// Fails with `WouldBlock` while accepted bytes are on their way.
    fn flush(&mut self) -> io::Result<()> {
        self.writing()?.finish()
    }
}

impl AsHandle for PipeEnd {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.file.as_handle()
    }
}

impl fmt::Debug for PipeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PipeEnd").field(&self.file).finish()
    }
}

/// Creates a pipe: its reading end, its writing end.
pub(crate) fn pipe() -> io::Result<(PipeEnd, PipeEnd)> {
    // Anonymous pipes of the OS know no overlapped operations, so the pipe has a name that no other
    // has.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(r"\\.\pipe\phaseloop.{}.{number}", std::process::id());
    let access = PIPE_ACCESS_INBOUND | FILE_FLAG_FIRST_PIPE_INSTANCE;
    let reader = create(Path::new(&name), access, 1)?;
    let writer = OpenOptions::new()
        .write(true)
        .custom_flags(FILE_FLAG_OVERLAPPED)
        .open(&name)?;
    Ok((
        PipeEnd::new(reader, Access::Read)?,
        PipeEnd::new(writer.into(), Access::Write)?,
    ))
}

pub(super) fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code as i32)
}

/// Returns a path as the OS takes it, with a zero at its end.
pub(super) fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}

/// Creates an instance of a named pipe of bytes, for clients of this machine.
pub(super) fn create(name: &Path, access: u32, instances: u32) -> io::Result<OwnedHandle> {
    let name = wide(name);
    let mode = PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS;
    let size = CAPACITY as u32;
    // SAFETY: the name ends with a zero, and no other pointer is passed.
    let pipe = unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            access | FILE_FLAG_OVERLAPPED,
            mode,
            instances,
            size,
            size,
            0,
            null(),
        )
    };
    if pipe == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was created just now, and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(pipe) })
}
