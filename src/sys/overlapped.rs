//! Windows: overlapped operations, which the kernel carries out on memory of its own until their
//! event becomes signalled.
#![allow(unsafe_code, reason = "lends memory to the kernel")]

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::io;
use std::mem::forget;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr::{NonNull, null};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{ERROR_IO_INCOMPLETE, ERROR_IO_PENDING};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Threading::{
    CloseThreadpoolWait, CreateEventW, CreateThreadpoolWait, PTP_CALLBACK_INSTANCE, PTP_WAIT,
    SetEvent, SetThreadpoolWait,
};
use windows_sys::core::BOOL;

/// One operation at a time on a file, with the memory that it reads or writes.
///
/// The memory is never moved or freed while the kernel has it. If the operation is dropped
/// meanwhile, a wait of the OS keeps it until the kernel is done.
pub(crate) struct Operation {
    file: Arc<OwnedHandle>,
    /// Signalled once the operation is complete: a manual-reset event.
    event: Arc<OwnedHandle>,
    /// Owned; freed on drop, unless the kernel has it.
    lent: NonNull<Lent>,
    is_pending: Cell<bool>,
}

/// What the kernel reads and writes.
struct Lent {
    overlapped: UnsafeCell<OVERLAPPED>,
    /// Words, since some operations want their memory aligned.
    buffer: UnsafeCell<Box<[u64]>>,
}

const WORD: usize = size_of::<u64>();

/// What has become of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Pending,
    /// The number of bytes that were moved.
    Done(usize),
}

impl Operation {
    /// Prepares operations of up to `length` bytes on a file that was opened for overlapped
    /// operations.
    pub(crate) fn new(file: Arc<OwnedHandle>, length: usize) -> io::Result<Self> {
        Ok(Self::with_event(file, length, Arc::new(new_event()?)))
    }

    /// Prepares operations whose event was that of earlier ones, which are complete.
    pub(crate) fn with_event(
        file: Arc<OwnedHandle>,
        length: usize,
        event: Arc<OwnedHandle>,
    ) -> Self {
        let lent = Box::new(Lent {
            overlapped: UnsafeCell::default(),
            buffer: UnsafeCell::new(vec![0; length.div_ceil(WORD)].into_boxed_slice()),
        });
        Self {
            file,
            event,
            lent: NonNull::from(Box::leak(lent)),
            is_pending: Cell::new(false),
        }
    }

    /// Returns the handle that is signalled when the operation is complete.
    pub(crate) fn event(&self) -> RawHandle {
        self.event.as_raw_handle()
    }

    /// Signals the event, for a result that needs no kernel.
    pub(crate) fn signal(&self) {
        // SAFETY: the handle is an open event.
        unsafe { SetEvent(self.event.as_raw_handle()) };
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.get()
    }

    /// Calls `f` with the memory, which the kernel does not have.
    ///
    /// # Panics
    ///
    /// While the operation is pending, and if `f` calls this function again.
    pub(crate) fn with_buffer<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        assert!(!self.is_pending.replace(true), "the kernel has the memory");
        let (buffer, length) = self.buffer();
        // SAFETY: the memory exists as long as `self`, and is initialised. The flag, which is set
        // while `f` runs, keeps both the kernel and other calls of this function from it.
        let result = f(unsafe { std::slice::from_raw_parts_mut(buffer, length) });
        self.is_pending.set(false);
        result
    }

    /// Starts an operation: `call` passes the first `length` bytes of the memory and the
    /// `OVERLAPPED` to the kernel, and returns what the kernel's function does.
    ///
    /// # Errors
    ///
    /// The OS error of the call; then nothing was started.
    ///
    /// # Safety
    ///
    /// `call` uses the pointers for one overlapped operation on the given handle, and for nothing
    /// else.
    pub(crate) unsafe fn start(
        &self,
        length: usize,
        call: impl FnOnce(RawHandle, *mut u8, u32, *mut OVERLAPPED) -> BOOL,
    ) -> io::Result<Progress> {
        assert!(!self.is_pending.get(), "one operation at a time");
        let (buffer, most) = self.buffer();
        let length = u32::try_from(length.min(most)).unwrap_or(u32::MAX);
        let overlapped = self.overlapped();
        let fresh = OVERLAPPED {
            hEvent: self.event.as_raw_handle(),
            ..OVERLAPPED::default()
        };
        // SAFETY: the memory exists as long as `self`, and the kernel does not have it.
        unsafe { overlapped.write(fresh) };
        self.is_pending.set(true);
        if call(self.file.as_raw_handle(), buffer, length, overlapped) != 0 {
            return self.progress();
        }
        match io::Error::last_os_error() {
            error if is(&error, ERROR_IO_PENDING) => Ok(Progress::Pending),
            error => {
                self.is_pending.set(false);
                Err(error)
            }
        }
    }

    /// Asks what has become of the operation that was started.
    ///
    /// # Errors
    ///
    /// The OS error that has ended the operation.
    pub(crate) fn progress(&self) -> io::Result<Progress> {
        self.result(false)
    }

    fn result(&self, wait: bool) -> io::Result<Progress> {
        let (file, overlapped) = (self.file.as_raw_handle(), self.overlapped());
        let mut count = 0;
        // SAFETY: the file is open, and the `OVERLAPPED` belongs to the last operation on it.
        let done = unsafe { GetOverlappedResult(file, overlapped, &mut count, BOOL::from(wait)) };
        if done != 0 {
            self.is_pending.set(false);
            return Ok(Progress::Done(count as usize));
        }
        match io::Error::last_os_error() {
            error if is(&error, ERROR_IO_INCOMPLETE) => Ok(Progress::Pending),
            error => {
                self.is_pending.set(false);
                Err(error)
            }
        }
    }

    /// Waits until the operation that was started is complete, on a thread that may block. Returns
    /// the number of bytes that were moved.
    ///
    /// # Errors
    ///
    /// The OS error that has ended the operation.
    pub(crate) fn wait(&self) -> io::Result<usize> {
        match self.result(true)? {
            Progress::Done(count) => Ok(count),
            Progress::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Asks the kernel to give the operation up. It is pending until the kernel has done so.
    pub(crate) fn cancel(&self) {
        // SAFETY: the file is open, and the `OVERLAPPED` belongs to the last operation on it.
        unsafe { CancelIoEx(self.file.as_raw_handle(), self.overlapped()) };
    }

    /// Keeps the memory and the file until the operation is complete, if it is pending.
    pub(crate) fn leave(self) {
        if self.is_pending() && matches!(self.progress(), Ok(Progress::Pending)) {
            keep_until_signalled(self);
        }
    }

    /// Returns the memory and its length in bytes.
    fn buffer(&self) -> (*mut u8, usize) {
        // SAFETY: the memory exists as long as `self`. The box around it is never changed.
        let words = unsafe { &mut *self.lent.as_ref().buffer.get() };
        (words.as_mut_ptr().cast(), words.len() * WORD)
    }

    fn overlapped(&self) -> *mut OVERLAPPED {
        // SAFETY: the memory exists as long as `self`.
        unsafe { self.lent.as_ref().overlapped.get() }
    }
}

/// Frees the memory, which the kernel must not have: the owner of an operation
/// [leaves](Operation::leave) it.
impl Drop for Operation {
    fn drop(&mut self) {
        let may_be_written = self.is_pending() && matches!(self.progress(), Ok(Progress::Pending));
        debug_assert!(!may_be_written, "a pending operation must be left");
        if !may_be_written {
            // SAFETY: the pointer comes from `Box::leak`, and the kernel has done its part.
            drop(unsafe { Box::from_raw(self.lent.as_ptr()) });
        }
    }
}

fn is(error: &io::Error, code: u32) -> bool {
    error.raw_os_error() == Some(code as i32)
}

/// Creates an event for operations.
pub(crate) fn new_event() -> io::Result<OwnedHandle> {
    // SAFETY: the call creates an unnamed manual-reset event, not signalled.
    let event = unsafe { CreateEventW(null(), 1, 0, null()) };
    if event.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was created just now, and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(event) })
}

/// Keeps an operation until its event is signalled, by a wait of the thread pool of the OS: it
/// needs neither the loop nor a thread of its own. Without memory for the wait, the operation is
/// never freed.
fn keep_until_signalled(operation: Operation) {
    let event = operation.event();
    let kept = Box::into_raw(Box::new(operation)).cast::<c_void>();
    // SAFETY: the callback runs once, and takes the box over.
    unsafe {
        let wait = CreateThreadpoolWait(Some(free), kept, null());
        if wait != 0 {
            SetThreadpoolWait(wait, event, null());
        }
    }
}

/// Frees an operation that is complete.
unsafe extern "system" fn free(
    _: PTP_CALLBACK_INSTANCE,
    kept: *mut c_void,
    wait: PTP_WAIT,
    _result: u32,
) {
    // SAFETY: the pointer comes from `keep_until_signalled`, and this function is called once.
    let operation = unsafe { Box::from_raw(kept.cast::<Operation>()) };
    // The event may be signalled a moment before the result can be read.
    if operation.is_pending() && matches!(operation.progress(), Ok(Progress::Pending)) {
        forget(operation);
    }
    // SAFETY: the wait exists; it is freed when this callback has returned.
    unsafe { CloseThreadpoolWait(wait) };
}

/// Returns whether a file was opened for overlapped operations. Reads and writes of another file
/// would block.
pub(crate) fn is_overlapped(file: BorrowedHandle<'_>) -> bool {
    use windows_sys::Wdk::Storage::FileSystem::{
        FILE_MODE_INFORMATION, FILE_SYNCHRONOUS_IO_ALERT, FILE_SYNCHRONOUS_IO_NONALERT,
        FileModeInformation, NtQueryInformationFile,
    };
    use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;
    let mut status = IO_STATUS_BLOCK::default();
    let mut mode = FILE_MODE_INFORMATION::default();
    // SAFETY: the file is open, and `mode` has room for the answer.
    let result = unsafe {
        NtQueryInformationFile(
            file.as_raw_handle(),
            &mut status,
            (&raw mut mode).cast(),
            size_of::<FILE_MODE_INFORMATION>() as u32,
            FileModeInformation,
        )
    };
    let synchronous = FILE_SYNCHRONOUS_IO_ALERT | FILE_SYNCHRONOUS_IO_NONALERT;
    result >= 0 && mode.Mode & synchronous == 0
}
