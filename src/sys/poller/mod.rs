//! The kernel's event queue, made by `polling` on all platforms; registrations and the wait use the
//! cheapest call of each platform.
//!
//! | file | platforms | the wait | wake-ups |
//! |---|---|---|---|
//! | `epoll.rs` | Linux, Android | one `epoll_pwait` | an edge-triggered eventfd, never read |
//! | `kqueue.rs` | macOS, the BSDs | one `kevent` | an edge-triggered pipe, read when it is full |
//! | `portable.rs` | others | the wait of `polling` | the notification of `polling` |
//!
//! The wait of `polling` makes five system calls a turn on Linux; a direct wait on its epoll
//! descriptor makes one. In return this code relies on two facts about its epoll backend: the
//! event's data is the key, and its timer and notifier are silent while its own wait is not used. A
//! test below fails if an upgrade changes them.
//!
//! `sys/platform` chooses the file. `windows.rs` has the sources of Windows: sockets, and handles
//! that become signalled.
#![allow(
    unsafe_code,
    reason = "polling leaves the life time of a registered source to its caller"
)]

pub(super) mod events;
mod level;
mod registration;
#[cfg(windows)]
mod windows;

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use crate::sys::fork;
use crate::sys::platform::poller as backend;
#[cfg(feature = "net")]
pub(crate) use backend::REPORTS_OWN_SHUTDOWN;
pub(crate) use backend::{HAS_TIMER, NEEDS_REARM, REPORTS_END, REPORTS_HANG_UP, REPORTS_PRIORITY};
pub(crate) use backend::{Notifier, Poller};
pub(crate) use events::Events;
#[cfg(feature = "test-util")]
pub(crate) use events::RawEvent;
pub(crate) use registration::Registration;

pub use level::PollEvents;
/// A type that can be registered: it has a descriptor.
#[cfg(unix)]
pub use polling::AsSource;
#[cfg(windows)]
pub use windows::AsSource;
#[cfg(windows)]
pub(crate) use windows::RawSource;
#[cfg(all(windows, any(test, feature = "test-util")))]
pub(crate) use windows::has_late_event;
#[cfg(windows)]
pub(in crate::sys) use windows::{Polled, Waitables};

/// The loop's own descriptor. A foreign loop can wait on it.
#[cfg(unix)]
pub type BackendFd<'a> = std::os::fd::BorrowedFd<'a>;
/// The loop's own completion port. A foreign loop can wait on it.
#[cfg(windows)]
pub type BackendFd<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// The descriptor of a loop, owned: for a foreign loop that drives this one.
///
/// [`LoopHandle::backend`](crate::LoopHandle::backend) creates it, and says what its readiness
/// means. A clone is cheap and refers to one and the same descriptor. The value may outlive the
/// loop; then the descriptor never becomes readable.
///
/// # Examples
///
/// A plain `poll(2)` loop drives the event loop:
///
/// ```
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// # #[cfg(target_os = "linux")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use phaseloop::{EventLoop, spawn, time::sleep};
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// let mut event_loop = EventLoop::new()?;
/// let backend = event_loop.handle().backend()?;
/// let task = event_loop.enter(|| spawn(sleep(Duration::from_millis(5))));
/// while !task.is_finished() {
///     // One descriptor is enough for any host: it also tells of timers and of new tasks.
///     poll(&mut [PollFd::new(&backend, PollFlags::IN)], None)?;
///     event_loop.turn(Some(Duration::ZERO))?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Backend {
    kernel: Arc<backend::Kernel>,
}

#[cfg(unix)]
impl std::os::fd::AsFd for Backend {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.kernel.poller.as_fd()
    }
}

#[cfg(unix)]
impl std::os::fd::AsRawFd for Backend {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.kernel.poller.as_raw_fd()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsHandle for Backend {
    fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
        self.kernel.poller.as_handle()
    }
}

#[cfg(windows)]
impl std::os::windows::io::AsRawHandle for Backend {
    fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
        self.kernel.poller.as_raw_handle()
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend").finish_non_exhaustive()
    }
}

/// The key of the notifier's event. `polling` uses `usize::MAX` itself.
pub(crate) const NOTIFY_KEY: usize = usize::MAX - 1;

/// The key of the timer's event; see [`Poller::set_timer`].
#[allow(dead_code, reason = "not every backend has a timer")]
pub(super) const TIMER_KEY: usize = usize::MAX - 2;

/// The largest key a source may have.
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

/// The raw descriptor of a registered source. Its owner keeps it open as long as it is registered.
#[cfg(unix)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RawSource(pub(super) std::os::fd::RawFd);

#[cfg(unix)]
impl RawSource {
    pub(crate) fn of(source: &impl AsSource) -> Self {
        Self(std::os::fd::AsRawFd::as_raw_fd(&source.source()))
    }

    /// Names the source as users do. `peer` is the address that it is being connected to, if so.
    pub(crate) fn label(
        self,
        role: crate::label::Role,
        peer: Option<std::net::SocketAddr>,
    ) -> crate::label::Label {
        self.with(|source| crate::sys::describe::describe(*source, role, peer))
    }

    /// Calls `f` with the source.
    pub(in crate::sys) fn with<R>(self, f: impl FnOnce(&std::os::fd::BorrowedFd<'_>) -> R) -> R {
        // SAFETY: the descriptor is open: its owner has registered it, or is about to.
        f(&unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0) })
    }
}

/// Starts the operation that a waiting reader waits for, on platforms that have such operations.
#[cfg(unix)]
#[allow(dead_code, reason = "called by the portable backend only")]
pub(super) fn begin_read(_: &impl AsSource) {}

#[cfg(windows)]
pub(super) fn begin_read(source: &impl AsSource) {
    source.begin_read();
}

/// Returns whether bytes that a write has accepted are still on their way to the kernel.
#[cfg(unix)]
#[inline(always)]
pub(crate) fn is_writing(_: &impl AsSource) -> bool {
    false
}

#[cfg(windows)]
pub(crate) fn is_writing(source: &impl AsSource) -> bool {
    source.is_writing()
}

/// Implements the platform's view of a descriptor for a type, by an expression that returns one of
/// the kernel.
#[cfg(feature = "net")]
macro_rules! impl_as_source {
    ($type:ty, |$this:ident| $kernel:expr) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                let $this = self;
                std::os::fd::AsFd::as_fd($kernel)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                let $this = self;
                std::os::fd::AsRawFd::as_raw_fd($kernel)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $type {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                let $this = self;
                std::os::windows::io::AsSocket::as_socket($kernel)
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $type {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                let $this = self;
                std::os::windows::io::AsRawSocket::as_raw_socket($kernel)
            }
        }
    };
}
#[cfg(feature = "net")]
pub(crate) use impl_as_source;

/// The process that created a poller, identified by its generation.
pub(super) struct Maker {
    generation: Cell<u32>,
}

impl Maker {
    pub(super) fn this_process() -> Self {
        fork::count_forks();
        Self {
            generation: Cell::new(fork::generation()),
        }
    }

    /// Returns whether this process is a forked child of the maker, and so shares the poller's
    /// kernel objects with it.
    #[inline]
    pub(super) fn is_parent(&self) -> bool {
        self.generation.get() != fork::generation()
    }

    /// # Errors
    ///
    /// In a forked child of the maker: its registrations and waits would act on the parent's
    /// poller.
    #[inline]
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_parent() {
            Err(inherited())
        } else {
            Ok(())
        }
    }

    /// Makes this process the maker.
    #[allow(dead_code, reason = "only epoll can replace inherited kernel objects")]
    pub(super) fn take_over(&self) {
        self.generation.set(fork::generation());
    }
}

#[cold]
fn inherited() -> io::Error {
    io::Error::other(
        "this process was forked from the one that has made the loop: call `LoopHandle::reinit_after_fork` before it goes \
         on here",
    )
}

impl Poller {
    /// Returns the descriptor, owned.
    pub(crate) fn backend(&self) -> Backend {
        Backend {
            kernel: self.kernel.clone(),
        }
    }

    /// # Errors
    ///
    /// If the poller was created by a process that this one was forked from.
    pub(crate) fn check_owner(&self) -> io::Result<()> {
        self.maker.check()
    }

    /// Returns whether the poller was created by a process that this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        self.maker.is_parent()
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
        source.with(|source| self.set_level(source, key, events, true))
    }

    /// Changes the key and the events of a level-triggered source.
    pub(crate) fn change_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
    ) -> io::Result<()> {
        source.with(|source| self.set_level(source, key, events, false))
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
mod tests {
    #[cfg(feature = "test-util")]
    use super::RawEvent;
    use super::{
        Event, Events, HAS_TIMER, Interest, MAX_KEY, NOTIFY_KEY, Poller, REPORTS_END, Ready,
        Registration,
    };
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    fn wait(poller: &Poller, events: &mut Events, timeout: u64) -> Vec<Event> {
        poller.wait(events, Some(timeout)).unwrap();
        let next = || events.next().inspect(|_| events.advance());
        let all = std::iter::from_fn(next);
        all.filter(|event| event.key <= MAX_KEY).collect()
    }

    /// `epoll.rs` relies on this behaviour of `polling`: the key arrives unchanged, and no other
    /// event does.
    #[test]
    fn events_carry_the_key_and_only_real_sources_report() {
        let poller = Rc::new(Poller::new().unwrap());
        let mut events = Events::new();
        assert_eq!(wait(&poller, &mut events, 0), []);

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let key = 0x1234_5678;
        let registration =
            Registration::new(poller.clone(), ours, key, Interest::Both).map_err(|(_, e)| e);
        let registration = registration.unwrap();
        registration.rearm(key, true, true).unwrap();
        let first = wait(&poller, &mut events, 10_000_000_000);
        assert_eq!(
            first,
            [Event {
                key,
                ready: Ready::WRITE,
            }],
            "a fresh socket is writable"
        );

        theirs.write_all(b"x").unwrap();
        registration.rearm(key, true, false).unwrap();
        let second = wait(&poller, &mut events, 10_000_000_000);
        assert_eq!(second.len(), 1);
        assert!(second[0].ready.intersects(Ready::READ) && second[0].key == key);

        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        registration.rearm(key, true, false).unwrap();
        let third = wait(&poller, &mut events, 10_000_000_000);
        assert!(third[0].ready.intersects(Ready::READ));
        for end in [Ready::READ_FOR_GOOD, Ready::HANG_UP] {
            assert_eq!(third[0].ready.intersects(end), REPORTS_END);
        }

        drop(registration);
        assert_eq!(wait(&poller, &mut events, 0), []);
    }

    #[cfg(feature = "test-util")]
    #[test]
    fn an_event_in_memory_has_the_readiness_it_was_made_of() {
        let ended = Ready::READ_FOR_GOOD.with(Ready::HANG_UP);
        let failed = Ready::READ_FOR_GOOD.with(Ready::WRITE_FOR_GOOD);
        let both = Ready::READ.with(Ready::WRITE);
        let all = [
            Ready::READ,
            Ready::WRITE,
            Ready::READ.with(ended),
            both.with(failed),
            both.with(failed).with(Ready::HANG_UP),
        ];
        for ready in all {
            let mut events = Events::new();
            let event = RawEvent::of(Event { key: 1, ready });
            events.put_all(std::iter::once(event));
            let seen = events.next().map(|event| event.ready);
            let known = match REPORTS_END {
                true => ready,
                false => ready.without(failed).without(ended),
            };
            assert_eq!(seen, Some(known));
        }
    }

    #[test]
    fn every_notification_ends_one_wait() {
        let poller = Poller::new().unwrap();
        let notifier = poller.notifier();
        let mut events = Events::new();
        for _ in 0..3 {
            notifier.notify();
            // This would wait for ever if the notification were lost.
            poller.wait(&mut events, None).unwrap();
            let key = events.next().map_or(NOTIFY_KEY, |event| event.key);
            assert_eq!(key, NOTIFY_KEY, "the notifier is not a source");
            assert_eq!(wait(&poller, &mut events, 0), []);
        }
    }

    #[test]
    fn the_timer_ends_a_wait_each_time_it_is_set() {
        let poller = Poller::new().unwrap();
        let mut events = Events::new();
        if !HAS_TIMER {
            assert!(poller.set_timer(Some(1)).is_err());
            return;
        }
        for _ in 0..3 {
            poller.set_timer(Some(1)).unwrap();
            // This would wait for ever if the timer did not fire.
            poller.wait(&mut events, None).unwrap();
            assert!(events.next().is_some_and(|event| event.key > MAX_KEY));
            assert_eq!(wait(&poller, &mut events, 0), []);
            assert_eq!(events.len(), 0, "the timer is quiet until it is set again");
        }
        poller.set_timer(Some(20_000_000)).unwrap();
        poller.set_timer(None).unwrap();
        poller.wait(&mut events, Some(100_000_000)).unwrap();
        assert_eq!(events.len(), 0, "it was stopped");
    }

    #[test]
    fn a_writer_is_told_that_its_reader_was_gone_before_it_was_registered() {
        let poller = Rc::new(Poller::new().unwrap());
        let (reader, writer) = crate::sys::descriptor::pipe().unwrap();
        drop(reader);
        let _registration = Registration::new(poller.clone(), writer, 7, Interest::Both)
            .map_err(|(_, error)| error)
            .unwrap();
        let told = wait(&poller, &mut Events::new(), 10_000_000_000);
        assert!(told[0].key == 7 && told[0].ready.intersects(Ready::WRITE));
    }

    #[test]
    fn a_source_that_cannot_be_polled_comes_back() {
        let poller = Rc::new(Poller::new().unwrap());
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let twin = ours.try_clone().unwrap();
        let _first = Registration::new(poller.clone(), &ours, 1, Interest::Read)
            .map_err(|(_, e)| e)
            .unwrap();
        let (_source, error) = Registration::new(poller.clone(), &ours, 2, Interest::Read)
            .err()
            .unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(
            Registration::new(poller, twin, 3, Interest::Read).is_ok(),
            "another descriptor is another source"
        );
    }
}
