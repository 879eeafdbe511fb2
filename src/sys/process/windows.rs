//! Windows: child processes, by their handles. A handle becomes signalled when its process exits.
#![allow(unsafe_code, reason = "calls of the OS")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

use crate::sys::poller::{Polled, RawSource, Waitables};
use crate::sys::signal::{SIGINT, SIGKILL, SIGQUIT, SIGTERM, exists};

/// Whether the exits of several children are events of several waits, though they came before the
/// first. The wait threads of the OS post them one by one.
pub(crate) const REPORTS_ONE_BY_ONE: bool = true;

/// The exit code of a process that is terminated.
const TERMINATED: u32 = 1;

/// A started child. The OS keeps its exit code as long as the handle is open.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    handle: Arc<OwnedHandle>,
    id: u32,
}

/// What the poller watches for the exit of a child.
pub(crate) struct Descriptor(Arc<OwnedHandle>);

impl Polled for Descriptor {
    fn raw_source(&self) -> RawSource {
        RawSource::Waitable(Waitables::new(Some(self.0.as_raw_handle()), None))
    }
}

impl Process {
    /// Takes over a child of the standard library.
    pub(crate) fn of(child: std::process::Child) -> Self {
        let id = child.id();
        Self {
            handle: Arc::new(child.into()),
            id,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Returns the exit status if the child has exited.
    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        if !has_exited(&self.handle)? {
            return Ok(None);
        }
        let mut code = 0;
        // SAFETY: the handle is open, and `code` has room for the answer.
        match unsafe { GetExitCodeProcess(self.handle.as_raw_handle(), &mut code) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(Some(ExitStatus::from_raw(code))),
        }
    }

    /// Does what a signal would do; see [`kill`]. A child whose exit was not delivered yet accepts
    /// every signal, as on Unix.
    pub(crate) fn signal(&self, number: i32) -> io::Result<()> {
        match signal(&self.handle, number) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            sent => sent,
        }
    }

    /// Does what a signal would do. The descriptor refers to the same process.
    pub(crate) fn signal_by(&self, _: &Descriptor, number: i32) -> io::Result<()> {
        self.signal(number)
    }

    /// Returns what the poller watches for the exit.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature is shared with platforms that may be out of descriptors"
    )]
    pub(crate) fn open(&self) -> Option<Descriptor> {
        Some(Descriptor(self.handle.clone()))
    }
}

fn has_exited(process: &OwnedHandle) -> io::Result<bool> {
    // SAFETY: the handle is open, and the call does not wait.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Terminates a process for the signals that end one on Unix, which it cannot catch here. Signal 0
/// only checks whether the process runs.
fn signal(process: &OwnedHandle, number: i32) -> io::Result<()> {
    let ends = [SIGINT, SIGKILL, SIGQUIT, SIGTERM];
    match number {
        number if number != 0 && !exists(number) => Err(io::ErrorKind::InvalidInput.into()),
        number if number != 0 && !ends.contains(&number) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "Windows sends no such signal to another process",
        )),
        _ if has_exited(process)? => Err(no_such_process()),
        0 => Ok(()),
        _ => terminate(process),
    }
}

fn terminate(process: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open.
    if unsafe { TerminateProcess(process.as_raw_handle(), TERMINATED) } != 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // It has exited meanwhile.
        error if is(&error, ERROR_ACCESS_DENIED) && has_exited(process)? => Err(no_such_process()),
        error => Err(error),
    }
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code as i32)
}

/// Does to a process what a signal would do: terminates it, or checks whether it runs.
pub(crate) fn kill(process: i32, number: i32) -> io::Result<()> {
    let id = u32::try_from(process).map_err(|_| {
        let text = "Windows has no process groups to send a signal to";
        io::Error::new(io::ErrorKind::Unsupported, text)
    })?;
    let rights = PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    // SAFETY: the call takes numbers only.
    let handle = unsafe { OpenProcess(rights, 0, id) };
    if handle.is_null() {
        return Err(match io::Error::last_os_error() {
            error if is(&error, ERROR_INVALID_PARAMETER) => no_such_process(),
            error => error,
        });
    }
    // SAFETY: the handle was opened just now, and has no other owner.
    signal(&unsafe { OwnedHandle::from_raw_handle(handle) }, number)
}

/// Returns the error for a process that does not exist.
pub(crate) fn no_such_process() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such process")
}

/// Does nothing: the OS frees a process that has exited once its last handle is closed.
pub(crate) fn reap_in_background(_: Vec<Process>) {}

/// Returns the error that keeps a process from entering a directory, if there is one.
pub(crate) fn enter_fault(directory: &std::path::Path) -> io::Result<()> {
    if std::fs::metadata(directory)?.is_dir() {
        Ok(())
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Returns whether the error of a start says that a limit is reached. Windows has none that a
/// program could raise.
pub(crate) fn is_limit(_: &io::Error) -> bool {
    false
}
