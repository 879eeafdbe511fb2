//! Windows: standard handles, which block. Threads of the pool read and write them.
#![allow(unsafe_code, reason = "calls of the OS")]

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::Arc;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_TYPE_CHAR, FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType, ReadFile, WriteFile,
};
use windows_sys::Win32::System::Console::GetConsoleMode;

use super::StdioKind;
use crate::label::{Label, Role};
use crate::sys::overlapped::{Operation, is_overlapped};
use crate::sys::poller::{Polled, RawSource};

impl StdioKind {
    /// Determines the kind of the object behind a handle.
    #[must_use]
    pub fn of(handle: impl AsHandle) -> Self {
        let handle = handle.as_handle();
        // SAFETY: the handle is open, or null, which the call rejects.
        match unsafe { GetFileType(handle.as_raw_handle()) } {
            FILE_TYPE_DISK => Self::File,
            FILE_TYPE_PIPE => Self::Pipe,
            FILE_TYPE_CHAR if is_console(handle) => Self::Terminal,
            FILE_TYPE_CHAR => Self::Device,
            _ => Self::Unknown,
        }
    }
}

fn is_console(handle: BorrowedHandle<'_>) -> bool {
    let mut mode = 0;
    // SAFETY: the handle is open, and `mode` has room for the answer.
    unsafe { GetConsoleMode(handle.as_raw_handle(), &mut mode) != 0 }
}

/// A borrowed standard handle.
pub(crate) type Borrowed<'a> = BorrowedHandle<'a>;

/// A duplicate of a standard handle, which threads of the pool read and write.
pub(crate) struct Descriptor {
    handle: Arc<OwnedHandle>,
    how: How,
}

enum How {
    /// The console, by the streams of the standard library: they translate its text.
    Console(Role),
    /// By the handle itself.
    Plain(File),
    /// A pipe that was opened for overlapped operations.
    Overlapped,
}

pub(crate) fn borrow(handle: &impl AsHandle) -> Borrowed<'_> {
    handle.as_handle()
}

pub(crate) fn duplicate(handle: Borrowed<'_>, role: Role) -> io::Result<Descriptor> {
    let owned = handle.try_clone_to_owned()?;
    let how = match StdioKind::of(handle) {
        StdioKind::Terminal => How::Console(role),
        StdioKind::Pipe if is_overlapped(handle) => How::Overlapped,
        _ => How::Plain(owned.try_clone()?.into()),
    };
    Ok(Descriptor {
        handle: Arc::new(owned),
        how,
    })
}

impl AsHandle for Descriptor {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.handle.as_handle()
    }
}

/// Names a handle as users do.
pub(crate) fn label(descriptor: &Descriptor, role: Role) -> Label {
    let kind = match StdioKind::of(descriptor) {
        StdioKind::Terminal => "console",
        StdioKind::File => "file",
        StdioKind::Pipe => "pipe",
        _ => "device",
    };
    Label::new(role.name().unwrap_or(kind), "")
}

/// Reads, and blocks until there is something to read.
pub(crate) fn read(descriptor: &Descriptor, buffer: &mut [u8]) -> io::Result<usize> {
    match &descriptor.how {
        How::Console(_) => io::stdin().lock().read(buffer),
        How::Plain(file) => (&mut &*file).read(buffer),
        How::Overlapped => {
            let operation = Operation::new(descriptor.handle.clone(), buffer.len())?;
            // SAFETY: `ReadFile` uses the pointers for one overlapped read.
            let started = unsafe {
                operation.start(buffer.len(), |file, memory, length, overlapped| {
                    ReadFile(file, memory, length, null_mut(), overlapped)
                })
            };
            let count = match started.and_then(|_| operation.wait()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
                count => count?,
            };
            operation.with_buffer(|memory| buffer[..count].copy_from_slice(&memory[..count]));
            Ok(count)
        }
    }
}

/// Writes, and blocks until there is room.
pub(crate) fn write(descriptor: &Descriptor, bytes: &[u8]) -> io::Result<usize> {
    match &descriptor.how {
        How::Console(Role::Stderr) => write_all(&mut io::stderr().lock(), bytes),
        How::Console(_) => write_all(&mut io::stdout().lock(), bytes),
        How::Plain(file) => (&mut &*file).write(bytes),
        How::Overlapped => {
            let operation = Operation::new(descriptor.handle.clone(), bytes.len())?;
            operation.with_buffer(|memory| memory[..bytes.len()].copy_from_slice(bytes));
            // SAFETY: `WriteFile` uses the pointers for one overlapped write.
            let started = unsafe {
                operation.start(bytes.len(), |file, memory, length, overlapped| {
                    WriteFile(file, memory, length, null_mut(), overlapped)
                })
            };
            started.and_then(|_| operation.wait())
        }
    }
}

fn write_all(stream: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    stream.write_all(bytes)?;
    stream.flush()?;
    Ok(bytes.len())
}

/// The direction of a readiness check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Read,
    Write,
}

/// No handle can be watched for the threads of the pool: this type has no values.
#[derive(Clone, Copy)]
pub(crate) enum Watched {}

pub(crate) fn watched(_: &Arc<Descriptor>) -> Option<Watched> {
    None
}

pub(crate) fn is_ready(watched: &Watched, _: Wanted) -> io::Result<bool> {
    match *watched {}
}

/// No handle has a second view that does not block: this type has no values.
pub(crate) enum Unblocked {}

impl Unblocked {
    pub(crate) fn new(_: Borrowed<'_>, _: StdioKind) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Polled for Watched {
    fn raw_source(&self) -> RawSource {
        match *self {}
    }
}

impl Polled for Unblocked {
    fn raw_source(&self) -> RawSource {
        match *self {}
    }
}

impl AsHandle for Unblocked {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        match *self {}
    }
}

impl Read for &Unblocked {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        match **self {}
    }

    fn read_vectored(&mut self, _: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match **self {}
    }
}

impl Write for &Unblocked {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match **self {}
    }

    fn write_vectored(&mut self, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match **self {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match **self {}
    }
}
