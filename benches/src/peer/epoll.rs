//! epoll, for the loop without a runtime and for the client.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const EVENTS_PER_WAIT: usize = 1024;

pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: it takes no pointer.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self {
            fd,
            events: Vec::with_capacity(EVENTS_PER_WAIT),
        })
    }

    /// Watches for something to read; `key` comes back with the event. Closing the file ends it.
    pub(crate) fn watch(&self, file: &impl AsRawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: key,
        };
        let (epoll, file) = (self.fd.as_raw_fd(), file.as_raw_fd());
        // SAFETY: the pointer is valid for the time of the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, file, &raw mut event) })?;
        Ok(())
    }

    /// The keys of what can be read. A time-out of -1 waits for ever, 0 not at all.
    pub(crate) fn wait(&mut self, milliseconds: i32) -> io::Result<impl Iterator<Item = u64>> {
        let events = self.events.as_mut_ptr();
        let room = EVENTS_PER_WAIT as i32;
        // SAFETY: there is room for that many events.
        let n = check(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), events, room, milliseconds) });
        let n = match n {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            n => n?,
        };
        // SAFETY: the kernel has written that many.
        unsafe { self.events.set_len(n as usize) };
        Ok(self.events.iter().map(|event| event.u64))
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
