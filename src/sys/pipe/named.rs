//! Windows: named pipes, as servers and clients use them.
#![allow(unsafe_code, reason = "calls of the OS")]

use std::cell::Cell;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_NO_DATA, ERROR_PIPE_BUSY, ERROR_PIPE_CONNECTED,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, FlushFileBuffers, PIPE_ACCESS_DUPLEX,
    SECURITY_IDENTIFICATION,
};
use windows_sys::Win32::System::Pipes::{
    ConnectNamedPipe, PIPE_UNLIMITED_INSTANCES, WaitNamedPipeW,
};
use windows_sys::Win32::System::Threading::SetEvent;

use super::windows::{Access, PipeEnd, create, is, wide};
use crate::sys::overlapped::{Operation, Progress, new_event};
use crate::sys::poller::{Polled, RawSource, Waitables};

/// Opens a named pipe for both directions.
///
/// # Errors
///
/// Any OS error of `CreateFile`; `WouldBlock` if all instances of the pipe are taken.
pub(crate) fn open(name: &Path) -> io::Result<PipeEnd> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(FILE_FLAG_OVERLAPPED)
        // The server may learn who the client is, and not act in its name.
        .security_qos_flags(SECURITY_IDENTIFICATION)
        .open(name);
    match opened {
        Ok(file) => PipeEnd::new(file.into(), Access::Both),
        Err(error) if is(&error, ERROR_PIPE_BUSY) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error),
    }
}

/// Waits until an instance of a named pipe is free, for a tenth of a second at most, on a thread
/// that may block.
pub(crate) fn wait_for_instance(name: &Path) {
    let name = wide(name);
    // SAFETY: the name ends with a zero. The next attempt returns what the result would.
    unsafe { WaitNamedPipeW(name.as_ptr(), 100) };
}

/// Waits until the peer has read all that was written, on a thread that may block.
pub(crate) fn drain(pipe: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open.
    match unsafe { FlushFileBuffers(pipe.as_raw_handle()) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A named pipe that waits for clients, with one instance for the next of them.
pub(crate) struct PipeListener {
    name: PathBuf,
    event: Arc<OwnedHandle>,
    /// `None` if the instance for the next client could not be created.
    next: Cell<Option<Instance>>,
}

/// An instance of a named pipe, and the wait for its client.
struct Instance {
    file: Arc<OwnedHandle>,
    operation: Operation,
    state: ConnectState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectState {
    Idle,
    Pending,
    Connected,
}

impl PipeListener {
    /// Creates a named pipe.
    ///
    /// # Errors
    ///
    /// `AddrInUse` if the name is taken; otherwise any OS error of `CreateNamedPipe`.
    pub(crate) fn new(name: &Path) -> io::Result<Self> {
        let event = Arc::new(new_event()?);
        let first = Instance::new(name, FILE_FLAG_FIRST_PIPE_INSTANCE, &event);
        let first = first.map_err(|error| match is(&error, ERROR_ACCESS_DENIED) {
            true => io::ErrorKind::AddrInUse.into(),
            false => error,
        })?;
        Ok(Self {
            name: name.to_owned(),
            event,
            next: Cell::new(Some(first)),
        })
    }

    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Takes the next client.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none; otherwise any OS error of `ConnectNamedPipe` and
    /// `CreateNamedPipe`.
    pub(crate) fn accept(&self) -> io::Result<PipeEnd> {
        let mut instance = match self.next.take() {
            Some(instance) => instance,
            None => Instance::new(&self.name, 0, &self.event)?,
        };
        let connected = instance.advance();
        if !matches!(connected, Ok(true)) {
            self.next.set(Some(instance));
            connected?;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // The instance for the next client exists before this one is served: a client that finds
        // none gets the error that the pipe does not exist.
        self.next
            .set(Instance::new(&self.name, 0, &self.event).ok());
        let Instance {
            file, operation, ..
        } = instance;
        operation.leave();
        PipeEnd::of(file, Access::Both)
    }
}

impl Instance {
    fn new(name: &Path, flags: u32, event: &Arc<OwnedHandle>) -> io::Result<Self> {
        let file = create(name, PIPE_ACCESS_DUPLEX | flags, PIPE_UNLIMITED_INSTANCES)?;
        let file = Arc::new(file);
        Ok(Self {
            operation: Operation::with_event(file.clone(), 0, event.clone()),
            file,
            state: ConnectState::Idle,
        })
    }

    /// Waits for a client, or asks whether one has come.
    fn advance(&mut self) -> io::Result<bool> {
        let progress = match self.state {
            ConnectState::Connected => return Ok(true),
            ConnectState::Pending => self.operation.progress(),
            // SAFETY: `ConnectNamedPipe` uses the pointer for one overlapped operation.
            ConnectState::Idle => unsafe {
                self.operation.start(0, |file, _, _, overlapped| {
                    ConnectNamedPipe(file, overlapped)
                })
            },
        };
        let (state, result) = match progress {
            Ok(Progress::Pending) => (ConnectState::Pending, Ok(false)),
            Ok(Progress::Done(_)) => (ConnectState::Connected, Ok(true)),
            // A client has come before the call; it may be gone by now, which a read will report.
            Err(error) if is(&error, ERROR_PIPE_CONNECTED) || is(&error, ERROR_NO_DATA) => {
                (ConnectState::Connected, Ok(true))
            }
            Err(error) => (ConnectState::Idle, Err(error)),
        };
        self.state = state;
        result
    }
}

impl Polled for PipeListener {
    fn raw_source(&self) -> RawSource {
        RawSource::Waitable(Waitables::new(Some(self.event.as_raw_handle()), None))
    }

    /// Waits for a client. If there is no need to wait, the event says so.
    fn begin_read(&self) {
        let mut instance = self.next.take();
        let is_pending = instance
            .as_mut()
            .is_some_and(|instance| matches!(instance.advance(), Ok(false)));
        if !is_pending {
            // SAFETY: the handle is an open event.
            unsafe { SetEvent(self.event.as_raw_handle()) };
        }
        self.next.set(instance);
    }
}

impl Drop for PipeListener {
    fn drop(&mut self) {
        if let Some(Instance { operation, .. }) = self.next.take() {
            if operation.is_pending() {
                operation.cancel();
            }
            operation.leave();
        }
    }
}

impl fmt::Debug for PipeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PipeListener").field(&self.name).finish()
    }
}
