//! Windows: what can be registered with the poller.
//!
//! Sockets are polled by the kernel. Everything else is waited for by a handle that becomes
//! signalled: a process, or the event of an overlapped operation. Such a handle is a *waitable* of
//! `polling`: a wait thread of the OS, one for many handles, posts a packet to the completion port.
//!
//! The completion port belongs to `polling`, which takes each packet for one of its own. So no
//! overlapped operation is bound to the port.

use std::io;
use std::os::windows::io::{
    AsRawSocket, AsSocket, BorrowedHandle, BorrowedSocket, RawHandle, RawSocket,
};
use std::ptr::null_mut;

use polling::os::iocp::PollerIocpExt;
use polling::{Event, PollMode};

use super::backend::asked::Directions;
use crate::label::{Label, Role};
use crate::sys::describe::describe;

/// A type that can be registered: it has a socket, or it is a pipe of this crate.
pub trait AsSource: Polled {}

impl<T: Polled> AsSource for T {}

/// What the poller asks of a source.
#[expect(unnameable_types, reason = "an internal of the trait `AsSource`")]
pub trait Polled {
    fn raw_source(&self) -> RawSource;

    /// Starts the operation that a waiting reader waits for, if it is not started. Sockets have
    /// none.
    fn begin_read(&self) {}

    /// Returns whether bytes that a write has accepted are still on their way to the kernel.
    fn is_writing(&self) -> bool {
        false
    }
}

impl<T: AsSocket> Polled for T {
    fn raw_source(&self) -> RawSource {
        RawSource::Socket(self.as_socket().as_raw_socket())
    }
}

/// Returns whether one of these sockets is ready for what it waits for, so that an event is on its
/// way: the kernel completes the request for it by a thread of its own.
#[cfg(any(test, feature = "test-util"))]
pub(crate) fn has_late_event(sources: &[(RawSource, super::Ready)]) -> bool {
    use super::Ready;
    use windows_sys::Win32::Networking::WinSock::{POLLRDNORM, POLLWRNORM, WSAPOLLFD, WSAPoll};
    let asked = |&(source, ready): &(RawSource, Ready)| {
        let RawSource::Socket(socket) = source else {
            return None;
        };
        let bits = [(Ready::READ, POLLRDNORM), (Ready::WRITE, POLLWRNORM)];
        let bits = bits.into_iter().filter(|(bit, _)| ready.intersects(*bit));
        Some(WSAPOLLFD {
            fd: socket as usize,
            events: bits.fold(0, |events, (_, bit)| events | bit),
            revents: 0,
        })
    };
    let mut asked: Vec<_> = sources.iter().filter_map(asked).collect();
    if asked.is_empty() {
        return false;
    }
    // SAFETY: the array has as many entries as its length states, and their sockets are open, since
    // they are registered.
    unsafe { WSAPoll(asked.as_mut_ptr(), asked.len() as u32, 0) > 0 }
}

/// The raw handles of a registered source. Their owner keeps them open as long as it is registered.
#[expect(unnameable_types, reason = "an internal of the trait `AsSource`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawSource {
    Socket(RawSocket),
    Waitable(Waitables),
}

/// The handles that become signalled when a source is ready. A null handle is none.
#[expect(unnameable_types, reason = "an internal of the trait `AsSource`")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waitables {
    read: RawHandle,
    write: RawHandle,
}

impl Waitables {
    pub(in crate::sys) fn new(read: Option<RawHandle>, write: Option<RawHandle>) -> Self {
        Self {
            read: read.unwrap_or(null_mut()),
            write: write.unwrap_or(null_mut()),
        }
    }

    /// Returns the handles, each with the event that reports it.
    fn all(self, key: usize) -> impl Iterator<Item = (RawHandle, Event)> {
        [
            (self.read, Event::readable(key)),
            (self.write, Event::writable(key)),
        ]
        .into_iter()
        .filter(|(handle, _)| !handle.is_null())
    }
}

impl RawSource {
    pub(crate) fn of(source: &impl AsSource) -> Self {
        source.raw_source()
    }

    /// Calls `f` with the source.
    pub(in crate::sys) fn with<R>(self, f: impl FnOnce(&Self) -> R) -> R {
        f(&self)
    }

    /// Returns the socket, if the source is one.
    pub(in crate::sys) fn socket(&self) -> Option<BorrowedSocket<'_>> {
        match *self {
            // SAFETY: the socket is open: its owner has registered it, or is about to.
            Self::Socket(socket) => Some(unsafe { BorrowedSocket::borrow_raw(socket) }),
            Self::Waitable(_) => None,
        }
    }

    /// Names the source as users do. `peer` is the address that it is being connected to, if so.
    pub(crate) fn label(self, role: Role, peer: Option<std::net::SocketAddr>) -> Label {
        match self.socket() {
            Some(socket) => describe(socket, role, peer),
            None => Label::new(role.name().unwrap_or("pipe"), ""),
        }
    }

    /// Returns the directions that [`add_to`](Self::add_to) asks for.
    pub(in crate::sys) fn first_directions(self) -> Directions {
        match self {
            Self::Socket(_) => Directions::BOTH,
            Self::Waitable(_) => Directions::NONE,
        }
    }

    /// Registers the source. A socket is registered for both directions, a waitable for none: each
    /// wait would take a place of a wait thread.
    ///
    /// # Safety
    ///
    /// The source must be deleted before its handles are closed.
    pub(in crate::sys) unsafe fn add_to(
        self,
        poller: &polling::Poller,
        key: usize,
        mode: PollMode,
    ) -> io::Result<()> {
        match self {
            // SAFETY: the contract of this function.
            Self::Socket(socket) => unsafe { poller.add_with_mode(socket, Event::all(key), mode) },
            Self::Waitable(waitables) => {
                // SAFETY: the contract of this function.
                let add = |handle| unsafe { poller.add_waitable(handle, Event::none(key), mode) };
                for (place, (handle, _)) in waitables.all(key).enumerate() {
                    if let Err(error) = add(handle) {
                        let added = Waitables::new((place > 0).then_some(waitables.read), None);
                        let _ = Self::Waitable(added).delete_from(poller);
                        return Err(error);
                    }
                }
                Ok(())
            }
        }
    }

    /// Registers a socket for one event.
    ///
    /// # Safety
    ///
    /// The socket must be deleted before it is closed.
    pub(in crate::sys) unsafe fn add_level_to(
        self,
        poller: &polling::Poller,
        interest: Event,
    ) -> io::Result<()> {
        match self {
            // SAFETY: the contract of this function.
            Self::Socket(socket) => unsafe {
                poller.add_with_mode(socket, interest, PollMode::Oneshot)
            },
            Self::Waitable(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Changes what the source is registered for.
    pub(in crate::sys) fn modify_in(
        self,
        poller: &polling::Poller,
        interest: Event,
        mode: PollMode,
    ) -> io::Result<()> {
        if let Some(socket) = self.socket() {
            return poller.modify_with_mode(socket, interest, mode);
        }
        self.try_each_waitable(interest.key, |handle, event| {
            let is_asked =
                event.readable && interest.readable || event.writable && interest.writable;
            if is_asked {
                poller.modify_waitable(handle, event, mode)
            } else {
                Ok(())
            }
        })
    }

    pub(in crate::sys) fn delete_from(self, poller: &polling::Poller) -> io::Result<()> {
        if let Some(socket) = self.socket() {
            return poller.delete(socket);
        }
        self.try_each_waitable(0, |handle, _| poller.remove_waitable(handle))
    }

    /// Calls `f` with the waitables, each with the event that reports it, as long as it succeeds.
    fn try_each_waitable(
        self,
        key: usize,
        mut f: impl FnMut(BorrowedHandle<'_>, Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self::Waitable(waitables) = self else {
            return Ok(());
        };
        waitables.all(key).try_for_each(|(handle, event)| {
            // SAFETY: the handle is open: its owner has registered it, or is about to.
            f(unsafe { BorrowedHandle::borrow_raw(handle) }, event)
        })
    }
}

impl Polled for RawSource {
    fn raw_source(&self) -> RawSource {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::{Polled, RawSource, Waitables};
    use crate::sys::poller::{Event, Events, Interest, Poller, Ready, Registration};
    use std::os::windows::io::{AsRawHandle, OwnedHandle};
    use std::process::{Command, Stdio};
    use std::rc::Rc;

    /// A process as a waitable.
    struct Exit(OwnedHandle);

    impl Polled for Exit {
        fn raw_source(&self) -> RawSource {
            RawSource::Waitable(Waitables::new(Some(self.0.as_raw_handle()), None))
        }
    }

    fn start() -> (std::process::Child, Exit) {
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .arg("--list")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let handle = std::os::windows::io::AsHandle::as_handle(&child);
        let exit = Exit(handle.try_clone_to_owned().unwrap());
        (child, exit)
    }

    fn wait(poller: &Poller, timeout: u64) -> Vec<Event> {
        let mut events = Events::new();
        poller.wait(&mut events, Some(timeout)).unwrap();
        std::iter::from_fn(|| events.next().inspect(|_| events.advance())).collect()
    }

    #[test]
    fn a_waitable_reports_once_for_each_time_it_is_asked() {
        const LONG: u64 = 60_000_000_000;
        let poller = Rc::new(Poller::new().unwrap());
        let (mut child, exit) = start();
        let registration = Registration::new(poller.clone(), exit, 7, Interest::Read)
            .map_err(|(_, error)| error)
            .unwrap();
        child.wait().unwrap();
        assert_eq!(wait(&poller, 0), [], "it was not asked");
        let reported = Event {
            key: 7,
            ready: Ready::READ,
        };
        for _ in 0..3 {
            registration.rearm(7, true, false).unwrap();
            assert_eq!(wait(&poller, LONG), [reported]);
            assert_eq!(wait(&poller, 0), [], "it was reported");
        }
        registration.rearm(7, true, false).unwrap();
        drop(registration);
        assert_eq!(wait(&poller, 50_000_000), [], "it is registered no longer");
    }

    #[test]
    fn a_handle_can_be_registered_once() {
        let poller = Rc::new(Poller::new().unwrap());
        let (mut child, exit) = start();
        let twin = Exit(exit.0.try_clone().unwrap());
        let registration = Registration::new(poller.clone(), exit, 1, Interest::Read)
            .map_err(|(_, error)| error)
            .unwrap();
        let again = RawSource::of(registration.get());
        let refused = Registration::new(poller.clone(), again, 2, Interest::Read);
        let (_, error) = refused.err().unwrap();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(Registration::new(poller, twin, 3, Interest::Read).is_ok());
        child.wait().unwrap();
    }
}
