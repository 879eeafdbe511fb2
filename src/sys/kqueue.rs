//! kqueue, the event queue of macOS and the BSDs, for the files that need more of it than `polling`
//! offers: the poller, the exits of children, the changes of files.
//!
//! A queue is a descriptor itself, and another queue can wait for it: an exit or a change of a file
//! reaches the loop as the readable descriptor of a small queue of its own.
#![allow(
    unsafe_code,
    reason = "a queue may outlive the descriptors that it names"
)]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub(crate) use rustix::event::Timespec;
use rustix::event::kqueue;
#[cfg(feature = "process")]
pub(crate) use rustix::event::kqueue::ProcessEvents;
#[cfg(feature = "fs")]
pub(crate) use rustix::event::kqueue::VnodeEvents;
pub(crate) use rustix::event::kqueue::{Event, EventFilter, EventFlags};

/// The timeout of a wait that returns at once.
pub(crate) const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Creates a queue that a child process does not inherit.
#[cfg(any(feature = "fs", feature = "process"))]
pub(crate) fn create() -> io::Result<OwnedFd> {
    let queue = kqueue::kqueue()?;
    rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
    Ok(queue)
}

/// Creates a change of the events for which `key` is reported.
pub(crate) fn change(filter: EventFilter, flags: EventFlags, key: usize) -> Event {
    let key = std::ptr::without_provenance_mut::<c_void>(key);
    // With a receipt each change has a result of its own, and no event is taken from the queue.
    Event::new(filter, flags | EventFlags::RECEIPT, key)
}

/// Returns the key of an event.
pub(crate) fn key(event: &Event) -> usize {
    event.udata().addr()
}

/// Applies the changes. Returns the result of each.
///
/// # Errors
///
/// `EBADF` if the queue is closed, `ENOMEM`.
pub(crate) fn apply<const N: usize>(
    queue: impl AsFd,
    changes: [Event; N],
) -> io::Result<[io::Result<()>; N]> {
    let mut receipts = Vec::<Event>::with_capacity(N);
    rustix::io::retry_on_intr(|| {
        let room = rustix::buffer::spare_capacity(&mut receipts);
        // SAFETY: the kernel looks up the descriptors of the changes now, and returns EBADF for
        // one that is closed. It removes the events of a descriptor when that is closed.
        unsafe { kqueue::kevent_timespec(&queue, &changes, room, Some(&AT_ONCE)) }
    })?;
    Ok(std::array::from_fn(|nth| match receipts.get(nth) {
        Some(receipt) if receipt.flags().contains(EventFlags::ERROR) => result(receipt.data()),
        _ => Ok(()),
    }))
}

/// Returns the result that a receipt carries.
fn result(number: i64) -> io::Result<()> {
    match i32::try_from(number) {
        Ok(0) => Ok(()),
        Ok(number) => Err(io::Error::from_raw_os_error(number)),
        Err(_) => Err(io::ErrorKind::Other.into()),
    }
}

/// Waits for events, and adds as many to `events` as its spare capacity holds.
///
/// # Errors
///
/// `Interrupted` if a signal ended the wait; otherwise any OS error of `kevent`.
pub(crate) fn wait(
    queue: impl AsFd,
    events: &mut Vec<Event>,
    timeout: Option<&Timespec>,
) -> io::Result<()> {
    let room = rustix::buffer::spare_capacity(events);
    // SAFETY: there are no changes, so no descriptor is named.
    unsafe { kqueue::kevent_timespec(queue, &[], room, timeout)? };
    Ok(())
}
