//! The kernel's event queue: registration through `polling` everywhere, the wait by the platform's
//! cheapest way.
//!
//! | file | where | the wait |
//! |---|---|---|
//! | `epoll.rs` | Linux, Android | one `epoll_pwait` on the poller's own descriptor; wake-ups by an edge-triggered eventfd that is never read |
//! | `portable.rs` | everywhere else | `polling`'s own wait and notify |
//!
//! `polling`'s wait costs five system calls a turn on Linux; going to the same epoll descriptor directly
//! costs one. The price is that two facts about its epoll backend are relied on (the event's data is the
//! key; its timer and notifier stay silent while its own wait is not used), and a test below fails should
//! an upgrade change them.
#![allow(
    unsafe_code,
    reason = "polling leaves the life time of a registered source to its caller"
)]

// `--cfg phaseloop_portable_poller` runs the portable file on Linux too, to test it there.
#[cfg_attr(
    all(
        any(target_os = "linux", target_os = "android"),
        not(phaseloop_portable_poller)
    ),
    path = "epoll.rs"
)]
#[cfg_attr(
    any(
        not(any(target_os = "linux", target_os = "android")),
        phaseloop_portable_poller
    ),
    path = "portable.rs"
)]
mod backend;
mod level;

use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use crate::sys::fork;
#[cfg(any(test, unix, feature = "net"))]
pub(crate) use backend::REPORTS_END;
pub(crate) use backend::{Events, Notifier, Poller};
pub(crate) use backend::{NEEDS_REARM, REPORTS_PRIORITY};

pub use level::PollEvents;
/// What can be registered: anything with a descriptor (Unix) or a socket (Windows).
pub use polling::AsSource;

/// The loop's own descriptor, to be waited on by somebody else's loop.
#[cfg(unix)]
pub type BackendFd<'a> = std::os::fd::BorrowedFd<'a>;
/// The loop's own completion port.
#[cfg(windows)]
pub type BackendFd<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// The key of the notifier's own event. `usize::MAX` is taken by `polling`.
const NOTIFY_KEY: usize = usize::MAX - 1;

/// The largest key a source may have.
pub(crate) const MAX_KEY: usize = usize::MAX - 2;

/// How many events one system call may return (R89).
pub(crate) const BATCH: usize = 1024;

/// What the kernel said of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) key: usize,
    pub(crate) ready: Ready,
}

/// A registered source without the owner of its descriptor, who keeps it open as long as it is registered.
#[cfg(unix)]
#[derive(Clone, Copy)]
pub(crate) struct RawSource(std::os::fd::RawFd);
#[cfg(windows)]
#[derive(Clone, Copy)]
pub(crate) struct RawSource(std::os::windows::io::RawSocket);

impl RawSource {
    #[cfg(unix)]
    pub(crate) fn of(source: &impl AsSource) -> Self {
        Self(std::os::fd::AsRawFd::as_raw_fd(&source.source()))
    }

    #[cfg(windows)]
    pub(crate) fn of(source: &impl AsSource) -> Self {
        Self(std::os::windows::io::AsRawSocket::as_raw_socket(
            &source.source(),
        ))
    }

    /// Calls `f` with the source.
    #[cfg(unix)]
    fn with<R>(self, f: impl FnOnce(&std::os::fd::BorrowedFd<'_>) -> R) -> R {
        // SAFETY: open: it is registered, or about to be, by its owner.
        f(&unsafe { std::os::fd::BorrowedFd::borrow_raw(self.0) })
    }

    /// Calls `f` with the source.
    #[cfg(windows)]
    fn with<R>(self, f: impl FnOnce(&std::os::windows::io::BorrowedSocket<'_>) -> R) -> R {
        // SAFETY: open: it is registered, or about to be, by its owner.
        f(&unsafe { std::os::windows::io::BorrowedSocket::borrow_raw(self.0) })
    }
}

/// The process that has made a poller, by its generation.
struct Maker {
    generation: Cell<u32>,
}

impl Maker {
    fn this_process() -> Self {
        fork::count_forks();
        Self {
            generation: Cell::new(fork::generation()),
        }
    }

    /// Whether this process is a child of the maker: the kernel's part of the poller is shared with that.
    #[inline]
    fn is_parent(&self) -> bool {
        self.generation.get() != fork::generation()
    }

    /// # Errors
    ///
    /// In a child of the maker: what it registers, or waits for, would be its parent's.
    #[inline]
    fn check(&self) -> io::Result<()> {
        if self.is_parent() {
            Err(inherited())
        } else {
            Ok(())
        }
    }

    /// From now on, this process counts as the maker.
    fn take_over(&self) {
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
    /// Whether the poller was made by a process that this one was forked from.
    pub(crate) fn is_inherited(&self) -> bool {
        self.maker.is_parent()
    }

    /// Registers a source anew, after [`reinit`](Self::reinit).
    pub(crate) fn add_again(&self, source: RawSource, key: usize) -> io::Result<()> {
        // SAFETY: the registration of before is still there to delete it.
        source.with(|source| unsafe { self.add(source, key) })
    }

    /// Deregisters a source on behalf of its [`Registration`], which has to [`leave`](Registration::leave) then.
    pub(crate) fn remove(&self, source: RawSource) {
        // As in `Registration::deregister`.
        let _ = source.with(|source| self.delete(source));
    }

    /// Whether the source can be watched: registers it for a moment.
    pub(crate) fn check(&self, source: &impl AsSource) -> io::Result<()> {
        // SAFETY: deleted at once.
        unsafe { self.add(source, MAX_KEY)? };
        self.delete(source)
    }

    /// Registers a source, level-triggered.
    ///
    /// The caller sees to it that [`remove`](Self::remove) is called before the source is closed.
    pub(crate) fn add_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
    ) -> io::Result<()> {
        source.with(|source| self.set_level(source, key, events, true))
    }

    /// Changes the key of a level-triggered source and what it is watched for.
    pub(crate) fn change_level(
        &self,
        source: RawSource,
        key: usize,
        events: PollEvents,
    ) -> io::Result<()> {
        source.with(|source| self.set_level(source, key, events, false))
    }
}

/// What a source is ready for: a set, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ready(u8);

impl Ready {
    /// An attempt to read is worth while.
    pub(crate) const READ: Self = Self(1);
    /// An attempt to write is worth while.
    pub(crate) const WRITE: Self = Self(1 << 1);
    /// Reading stays worth while until an attempt would block, and a short one says nothing: the end or an error has come,
    /// of which no further event will tell, or urgent data.
    pub(crate) const READ_FOR_GOOD: Self = Self(1 << 2);
    /// The same for writing.
    pub(crate) const WRITE_FOR_GOOD: Self = Self(1 << 3);
    /// There is urgent data, or what the driver of a device takes for such.
    pub(crate) const PRIORITY: Self = Self(1 << 4);
    /// The peer has closed its end, at least for writing.
    pub(crate) const HANG_UP: Self = Self(1 << 5);

    /// Whether the two have anything in common.
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

/// A source that is registered for both directions, and leaves the poller before it is closed.
pub(crate) struct Registration<T: AsSource> {
    /// There until `into_inner` or drop. No `&mut T` is ever handed out: the descriptor behind it must stay the one that was
    /// registered.
    source: ManuallyDrop<T>,
    poller: Rc<Poller>,
    key: usize,
}

impl<T: AsSource> Registration<T> {
    /// Registers `source` under `key`.
    ///
    /// # Errors
    ///
    /// The system's: `AlreadyExists` for a source that is registered already, `PermissionDenied` for one
    /// that cannot be polled (a regular file), out of memory. The source comes back with the error.
    pub(crate) fn new(poller: Rc<Poller>, source: T, key: usize) -> Result<Self, (T, io::Error)> {
        // SAFETY: the source must be deleted from the poller before it is dropped: `Registration` owns it, its drop
        // deregisters it first, and `leave` is for one that was.
        match unsafe { poller.add(&source, key) } {
            Ok(()) => Ok(Self {
                source: ManuallyDrop::new(source),
                poller,
                key,
            }),
            Err(error) => Err((source, error)),
        }
    }

    #[inline]
    pub(crate) fn get(&self) -> &T {
        &self.source
    }

    /// Asks for the next event of these directions, where the platform reports each interest once only.
    pub(crate) fn rearm(&self, readable: bool, writable: bool) -> io::Result<()> {
        self.poller.rearm(self.get(), self.key, readable, writable)
    }

    /// The source, for who deregisters it by [`Poller::remove`] before this is gone.
    pub(crate) fn raw(&self) -> RawSource {
        RawSource::of(self.get())
    }

    /// The way out for a source that [`Poller::remove`] has deregistered.
    pub(crate) fn leave(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped: each of its fields is taken, or dropped, here and once.
        unsafe {
            std::ptr::drop_in_place(&raw mut this.poller);
            ManuallyDrop::take(&mut this.source)
        }
    }

    fn deregister(&self) {
        // The only failure that matters would be a source that is still registered; the system reports
        // none of that kind: it fails when the descriptor was closed behind our back, and is gone then.
        let _ = self.poller.delete(&*self.source);
    }
}

impl<T: AsSource> Drop for Registration<T> {
    fn drop(&mut self) {
        self.deregister();
        // SAFETY: not used afterwards; `leave`, which takes it, keeps this from being called.
        unsafe { ManuallyDrop::drop(&mut self.source) };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Event, Events, Poller, REPORTS_END, Ready, Registration};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    fn wait(poller: &Poller, events: &mut Events, timeout: u64) -> Vec<Event> {
        poller.wait(events, Some(timeout)).unwrap();
        let next = || events.next().inspect(|_| events.advance());
        std::iter::from_fn(next).collect()
    }

    /// What `epoll.rs` relies on inside `polling`: the key arrives unchanged, and nothing else does.
    #[test]
    fn events_carry_the_key_and_only_real_sources_report() {
        let poller = Rc::new(Poller::new().unwrap());
        let mut events = Events::new();
        assert_eq!(wait(&poller, &mut events, 0), []);

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let key = 0x1234_5678;
        let registration = Registration::new(poller.clone(), ours, key).map_err(|(_, e)| e);
        let registration = registration.unwrap();
        registration.rearm(true, true).unwrap();
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
        registration.rearm(true, false).unwrap();
        let second = wait(&poller, &mut events, 10_000_000_000);
        assert_eq!(second.len(), 1);
        assert!(second[0].ready.intersects(Ready::READ) && second[0].key == key);

        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        registration.rearm(true, false).unwrap();
        let third = wait(&poller, &mut events, 10_000_000_000);
        assert!(third[0].ready.intersects(Ready::READ));
        for end in [Ready::READ_FOR_GOOD, Ready::HANG_UP] {
            assert_eq!(third[0].ready.intersects(end), REPORTS_END);
        }

        drop(registration);
        assert_eq!(wait(&poller, &mut events, 0), []);
    }

    #[test]
    fn every_notification_ends_one_wait() {
        let poller = Poller::new().unwrap();
        let notifier = poller.notifier();
        let mut events = Events::new();
        for _ in 0..3 {
            notifier.notify();
            // Would hang for ever if the notification were lost.
            poller.wait(&mut events, None).unwrap();
            assert_eq!(events.next(), None, "the notifier is nobody's source");
            assert_eq!(wait(&poller, &mut events, 0), []);
        }
    }

    #[test]
    fn a_source_that_cannot_be_polled_comes_back() {
        let poller = Rc::new(Poller::new().unwrap());
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let twin = ours.try_clone().unwrap();
        let _first = Registration::new(poller.clone(), &ours, 1)
            .map_err(|(_, e)| e)
            .unwrap();
        let (_source, error) = Registration::new(poller.clone(), &ours, 2).err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(
            Registration::new(poller, twin, 3).is_ok(),
            "another descriptor is another source"
        );
    }
}
