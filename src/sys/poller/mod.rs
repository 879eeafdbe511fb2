//! The kernel's event queue, made by `polling` on all platforms; registrations and the wait use the
//! cheapest call of each platform.
//!
//! | file | platforms | the wait | wake-ups |
//! |---|---|---|---|
//! | `epoll.rs` | Linux, Android | `epoll_pwait`, or `_pwait2` | an eventfd by edge, never read |
//! | `kqueue.rs` | macOS, the BSDs | one `kevent` | an edge-triggered pipe, read when it is full |
//! | `portable.rs` | others | the wait of `polling` | the notification of `polling` |
//!
//! The wait of `polling` makes five system calls a turn on Linux; a direct wait on its epoll
//! descriptor makes one. In return this code relies on two facts about its epoll backend: the
//! event's data is the key, and its timer and notifier are silent while its own wait is not used. A
//! test below fails if an upgrade changes them.
//!
//! `selector.rs` states what each of the three offers. `sys/platform` chooses one: a new backend is
//! one more implementor, and its name there. [`Poller`] is what the loop calls. It checks for all
//! of them that the process was not forked from the one that has created the queue.
//! `windows_sources.rs` has the sources of Windows: sockets, and handles that become signalled.
#![allow(
    unsafe_code,
    reason = "polling leaves the life time of a registered source to its caller"
)]

mod registration;
pub(super) mod selector;
#[cfg(windows)]
mod windows_sources;

use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::sys::fork::{self, GENERATION};
use crate::sys::platform::poller as backend;
use backend::Queue;
use selector::{Kernel as _, Selector};

/// The kernel objects of the platform.
type Kernel = <Queue as Selector>::Kernel;

pub(crate) const REPORTS_END: bool = Queue::REPORTS_END;
pub(crate) const NEEDS_REARM: bool = Queue::NEEDS_REARM;
pub(crate) const REPORTS_PRIORITY: bool = Queue::REPORTS_PRIORITY;
pub(crate) const REPORTS_HANG_UP: bool = Queue::REPORTS_HANG_UP;
#[cfg(feature = "net")]
pub(crate) const REPORTS_OWN_SHUTDOWN: bool = Queue::REPORTS_OWN_SHUTDOWN;
pub(crate) const HAS_TIMER: bool = Queue::HAS_TIMER;
pub(crate) use registration::{Registration, is_writing};

pub(crate) use crate::kinds::PollEvents;
/// A type that can be registered: it has a descriptor.
#[cfg(unix)]
pub use polling::AsSource;
#[cfg(unix)]
pub(crate) use registration::RawSource;
#[cfg(feature = "net")]
pub(crate) use registration::impl_as_source;
#[cfg(windows)]
pub use windows_sources::AsSource;
#[cfg(windows)]
pub(crate) use windows_sources::RawSource;
#[cfg(all(windows, any(test, feature = "test-util")))]
pub(crate) use windows_sources::has_late_event;
#[cfg(windows)]
pub(in crate::sys) use windows_sources::{Polled, Waitables};

/// The descriptor of a queue.
#[cfg(unix)]
pub(crate) type QueueFd<'a> = std::os::fd::BorrowedFd<'a>;
/// The completion port of a queue.
#[cfg(windows)]
pub(crate) type QueueFd<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// The kernel objects of a poller, which stay open while they are held.
#[derive(Clone)]
pub(crate) struct SharedQueue(Arc<Kernel>);

impl SharedQueue {
    pub(crate) fn fd(&self) -> QueueFd<'_> {
        fd_of(&self.0)
    }
}

#[cfg(unix)]
fn fd_of(kernel: &Kernel) -> QueueFd<'_> {
    std::os::fd::AsFd::as_fd(kernel.poller())
}

#[cfg(windows)]
fn fd_of(kernel: &Kernel) -> QueueFd<'_> {
    std::os::windows::io::AsHandle::as_handle(kernel.poller())
}

/// Implements the platform's view of a descriptor for a type that has a [`SharedQueue`] in a field.
macro_rules! impl_queue_fd {
    ($type:ty, $queue:ident) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$queue.fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&self.$queue.fd())
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsHandle for $type {
            fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
                self.$queue.fd()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawHandle for $type {
            fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
                std::os::windows::io::AsRawHandle::as_raw_handle(&self.$queue.fd())
            }
        }
    };
}
pub(crate) use impl_queue_fd;

/// The key of the notifier's event. `polling` uses `usize::MAX` itself.
pub(crate) const NOTIFY_KEY: usize = usize::MAX - 1;

/// The largest key a source may have. Between it and [`NOTIFY_KEY`] is the key of the timer, in the
/// backends that have one.
pub(crate) const MAX_KEY: usize = usize::MAX - 3;

/// Returns how long the kernel takes, in nanoseconds, to carry what is sent from one socket of this
/// process to another. With zero, the next wait reports it.
#[cfg(any(test, feature = "test-util"))]
pub(crate) fn report_delay() -> u64 {
    if cfg!(windows) { 5_000_000 } else { 0 }
}

/// Returns whether one of these sockets is ready for what it waits for, so that an event is on its
/// way. Here the last wait has reported it.
#[cfg(all(unix, any(test, feature = "test-util")))]
pub(crate) fn has_late_event(_: &[(RawSource, Ready)]) -> bool {
    false
}

/// The most events that one system call returns.
pub(crate) const BATCH: usize = 1024;

/// An event of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) key: usize,
    pub(crate) ready: Ready,
}

/// What an event says, in whatever form a backend keeps it.
pub(in crate::sys) trait Report: Copy {
    fn key(self) -> usize;

    /// Returns the readiness of an edge-triggered source.
    fn ready(self) -> Ready;

    /// Returns the requested events that it reports for a level-triggered source; `None` if it
    /// reports none of them.
    ///
    /// # Errors
    ///
    /// `EBADF` if the source has an error, as in libuv.
    fn level(self, asked: PollEvents) -> Option<io::Result<PollEvents>>;

    /// Creates the event of a source with this readiness.
    #[cfg(feature = "test-util")]
    fn of(event: Event) -> Self;

    /// Adds a later event of the same source.
    #[cfg(feature = "test-util")]
    #[must_use]
    fn with(self, later: Self) -> Self;
}

/// An event as the backend of the platform reports it.
type Reported = <Queue as Selector>::Event;

/// The events of one wait, including that of the notifier, with the key
/// [`NOTIFY_KEY`].
pub(crate) struct Events {
    list: Vec<Reported>,
    next: Cell<usize>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            list: Vec::with_capacity(BATCH),
            next: Cell::new(0),
        }
    }

    /// Forgets the events.
    pub(crate) fn clear(&mut self) {
        self.emptied();
    }

    /// Forgets the events, and returns the list for those of the next wait.
    pub(in crate::sys) fn emptied(&mut self) -> &mut Vec<Reported> {
        self.list.clear();
        self.next.set(0);
        &mut self.list
    }

    /// Returns the number of events of the wait.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the keys of the events.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn keys(&self) -> impl Iterator<Item = usize> {
        self.list.iter().map(|event| event.key())
    }

    /// Returns the next event, without consuming it; see [`advance`](Self::advance).
    #[inline]
    pub(crate) fn next(&self) -> Option<Event> {
        let event = *self.list.get(self.next.get())?;
        Some(Event {
            key: event.key(),
            ready: event.ready(),
        })
    }

    /// Returns the requested events that the next event reports for a level-triggered source;
    /// `None` if it reports none of them.
    ///
    /// # Errors
    ///
    /// `EBADF` if the source has an error, as in libuv.
    pub(crate) fn reported(&self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        self.list.get(self.next.get())?.level(asked)
    }

    /// Consumes the next event.
    #[inline]
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }

    /// Returns whether all events are consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.get() >= self.list.len()
    }

    /// Takes all events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn take_all(&mut self) -> Vec<RawEvent> {
        self.next.set(0);
        self.list.drain(..).map(RawEvent).collect()
    }

    /// Makes `events` the events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn put_all(&mut self, events: impl Iterator<Item = RawEvent>) {
        self.emptied().extend(events.map(|event| event.0));
    }
}

/// An event as the backend has reported it.
#[cfg(feature = "test-util")]
pub(crate) struct RawEvent(Reported);

#[cfg(feature = "test-util")]
impl RawEvent {
    /// Creates the event of a source with this readiness.
    pub(crate) fn of(event: Event) -> Self {
        Self(Reported::of(event))
    }

    pub(crate) fn key(&self) -> usize {
        self.0.key()
    }

    /// Adds a later event of the same source.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.0 = self.0.with(later.0);
    }
}

/// The process that created an object, identified by its generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker {
    generation: u32,
}

impl Maker {
    #[inline]
    pub(crate) fn this_process() -> Self {
        fork::count_forks();
        Self {
            generation: GENERATION.load(Ordering::Relaxed),
        }
    }

    /// Returns whether this process is a forked child of the maker, and so shares the object with
    /// it.
    #[inline]
    pub(crate) fn is_parent(self) -> bool {
        self.generation != GENERATION.load(Ordering::Relaxed)
    }

    /// # Errors
    ///
    /// In a forked child of the maker: its registrations and waits would act on the parent's
    /// poller.
    #[inline]
    pub(crate) fn check(self) -> io::Result<()> {
        if self.generation == GENERATION.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err(inherited())
        }
    }
}

fn inherited() -> io::Error {
    io::Error::other(
        "this process was forked from the one that has made the loop: call `LoopHandle::reinit_after_fork` before it goes \
         on here",
    )
}

/// The event queue of a loop.
pub(crate) struct Poller {
    selector: Queue,
    maker: Cell<Maker>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            selector: Queue::new()?,
            maker: Cell::new(Maker::this_process()),
        })
    }

    /// Replaces the kernel objects that are shared with the parent, in a child after `fork`. Only
    /// the notifier is registered afterwards.
    ///
    /// # Errors
    ///
    /// `Unsupported` where a child cannot replace the queue; otherwise any OS error.
    pub(crate) fn reinit(&self) -> io::Result<()> {
        self.selector.reinit()?;
        self.maker.set(Maker::this_process());
        Ok(())
    }

    pub(crate) fn notifier(&self) -> Notifier {
        Notifier {
            kernel: Arc::downgrade(self.selector.kernel()),
        }
    }

    pub(crate) fn backend_fd(&self) -> QueueFd<'_> {
        fd_of(self.selector.kernel())
    }

    /// Returns the kernel objects, shared.
    pub(crate) fn queue(&self) -> SharedQueue {
        SharedQueue(self.selector.kernel().clone())
    }

    /// Makes the descriptor readable once, after `delay` nanoseconds, or stops that. The event ends
    /// a wait and belongs to no source.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless [`HAS_TIMER`]; otherwise any OS error.
    pub(crate) fn set_timer(&self, delay: Option<u64>) -> io::Result<()> {
        self.maker.get().check()?;
        self.selector.set_timer(delay)
    }

    /// Waits for an event, a notification or the timeout. The timeout is in nanoseconds; `None`
    /// waits for ever.
    ///
    /// # Errors
    ///
    /// `Interrupted` if a signal ended the wait; otherwise any OS error.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<u64>) -> io::Result<()> {
        let list = events.emptied();
        self.maker.get().check()?;
        self.selector.wait(list, timeout)
    }

    /// Registers the source once for its life.
    ///
    /// # Safety
    ///
    /// `source` must be deleted before it is dropped.
    pub(in crate::sys) unsafe fn add(
        &self,
        source: &impl AsSource,
        key: usize,
        interest: Interest,
    ) -> io::Result<()> {
        self.maker.get().check()?;
        // SAFETY: the contract of this function.
        unsafe { self.selector.add(source, key, interest) }
    }

    /// Registers a source for both directions that was registered for reading.
    fn add_write(&self, source: &impl AsSource, key: usize) -> io::Result<()> {
        self.maker.get().check()?;
        self.selector.add_write(source, key)
    }

    fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        if self.maker.get().is_parent() {
            // The call would deregister it from the parent's queue, where that is inherited.
            return Ok(());
        }
        self.selector.delete(source)
    }

    /// Registers a source for `events`, level-triggered, or changes its registration.
    fn set_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()> {
        self.maker.get().check()?;
        source.with(|source| self.selector.set_level(source, key, events, is_new))
    }

    /// # Errors
    ///
    /// If the poller was created by a process that this one was forked from.
    pub(crate) fn check_owner(&self) -> io::Result<()> {
        self.maker.get().check()
    }

    /// Returns whether the poller was created by a process that this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        self.maker.get().is_parent()
    }

    /// Registers a source again, after [`reinit`](Self::reinit).
    pub(crate) fn add_again(
        &self,
        source: RawSource,
        key: usize,
        interest: Interest,
    ) -> io::Result<()> {
        // SAFETY: the `Registration` of the source still exists and deletes it.
        source.with(|source| unsafe { self.add(source, key, interest) })
    }

    /// Deregisters a source on behalf of its [`Registration`], which must
    /// [`leave`](Registration::leave) afterwards.
    pub(crate) fn remove(&self, source: RawSource) {
        // The error is ignored for the reason given in `Registration::deregister`.
        let _ = source.with(|source| self.delete(source));
    }

    /// Checks whether the source can be polled, by registering it for a moment.
    pub(crate) fn check(&self, source: &impl AsSource) -> io::Result<()> {
        // SAFETY: the source is deleted right after.
        unsafe { self.add(source, MAX_KEY, Interest::Both)? };
        self.delete(source)
    }

    /// Registers a level-triggered source.
    ///
    /// The caller must call [`remove`](Self::remove) before the source is closed.
    pub(crate) fn add_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
    ) -> io::Result<()> {
        self.set_level(source, key, events, true)
    }

    /// Changes the key and the events of a level-triggered source.
    pub(crate) fn change_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
    ) -> io::Result<()> {
        self.set_level(source, key, events, false)
    }
}

/// Ends the poller's wait, from any thread and from signal handlers. It has no effect once the
/// poller is dropped.
#[derive(Clone)]
pub(crate) struct Notifier {
    kernel: Weak<Kernel>,
}

/// Ends the wait of a loop.
// A trait, since the models of threads have no kernel.
pub(crate) trait Notify {
    fn notify(&self);
}

impl Notify for Notifier {
    fn notify(&self) {
        if let Some(kernel) = self.kernel.upgrade() {
            kernel.notify();
        }
    }
}

/// The readiness of a source: a set, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready(u8);

impl Ready {
    /// A read is worth an attempt.
    pub(crate) const READ: Self = Self(1);
    /// A write is worth an attempt.
    pub(crate) const WRITE: Self = Self(1 << 1);
    /// Both are.
    pub(crate) const READ_AND_WRITE: Self = Self::READ.with(Self::WRITE);
    /// A read is worth an attempt until one would block; a short read proves nothing. Set at EOF
    /// and after an error, since no further event reports them, and for urgent data.
    pub(crate) const READ_FOR_GOOD: Self = Self(1 << 2);
    /// A write is worth an attempt until one would block; a short write proves nothing.
    pub(crate) const WRITE_FOR_GOOD: Self = Self(1 << 3);
    /// Urgent data has arrived, or a device reports an exceptional condition (`POLLPRI`).
    pub(crate) const PRIORITY: Self = Self(1 << 4);
    /// The peer has closed its end, at least for writing.
    pub(crate) const HANG_UP: Self = Self(1 << 5);
    /// A short read or write proves nothing. No event reports this bit: it is a property of the
    /// stream, and is kept here so that one test finds all reasons to attempt again.
    pub(crate) const SHORT_PROVES_NOTHING: Self = Self(1 << 6);

    /// Returns whether the sets have a bit in common.
    #[inline]
    pub(crate) const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The directions that a source is registered for.
///
/// A socket whose peer reads becomes writable with each read: datagram sockets and Unix streams
/// report that as an event, though they were writable before. A source that only writes when it can
/// is registered for reading until a write would block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Both,
}

#[cfg(all(test, unix))]
mod tests;
