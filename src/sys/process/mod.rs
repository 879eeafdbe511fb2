//! Child processes: reaping without blocking, pidfds, signals.
//!
//! Only children that were started here are reaped, one by one: other code in the process reaps its
//! own.
#![allow(unsafe_code, reason = "sends signals by their number")]

pub(crate) mod inherited;
pub(crate) mod node_channel;
mod pre_exec;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::platform::exits;
pub(crate) use pre_exec::{Ids, PreExec, has_inheritable_signals, is_limit, is_worth_another_try};

/// What the poller watches for the exit of a child: a pidfd, or a kqueue.
pub(crate) type Descriptor = OwnedFd;

/// Whether the exits of several children are events of several waits, though they came before the
/// first. Then the others are asked about as well.
pub(crate) const REPORTS_ONE_BY_ONE: bool = false;

/// A started child that was not reaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    id: Pid,
}

impl Process {
    /// Takes over a child of the standard library, whose drop neither reaps nor kills it.
    #[expect(clippy::needless_pass_by_value, reason = "the child has a new owner")]
    pub(crate) fn of(child: std::process::Child) -> Self {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self {
            id: id.expect("a child has a number"),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns the exit status if the child has exited. The child is reaped then, and its process
    /// id may be reused.
    ///
    /// # Errors
    ///
    /// `ECHILD` if other code in the process has reaped the child.
    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        let wait = || waitpid(Some(self.id), WaitOptions::NOHANG);
        let ended = rustix::io::retry_on_intr(wait)?;
        Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
    }

    /// Sends a signal. The child must not be reaped.
    pub(crate) fn signal(&self, number: i32) -> io::Result<()> {
        kill(self.id.as_raw_nonzero().get(), number)
    }

    /// Sends a signal by the descriptor that [`open`](Self::open) returned. A pidfd refers to this
    /// child only, even after the kernel has reaped it, as it does if SIGCHLD is ignored.
    pub(crate) fn signal_by(&self, descriptor: &OwnedFd, number: i32) -> io::Result<()> {
        exits::signal(descriptor, self.id, number)
    }

    /// Returns a descriptor that becomes readable when the child exits: a pidfd on Linux, a kqueue
    /// on macOS and the BSDs. `None` on other platforms, and if three quarters of the descriptors
    /// are in use: SIGCHLD can replace this one, other users of descriptors have no alternative.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        exits::open(self.id).filter(leaves_room)
    }
}

/// Returns whether a new descriptor leaves a quarter of them to others.
fn leaves_room(descriptor: &OwnedFd) -> bool {
    use rustix::process::{Resource, getrlimit};
    use std::os::fd::AsRawFd;
    let number = descriptor.as_raw_fd().unsigned_abs();
    // A low number is below three quarters of any usual limit: most starts need no `getrlimit`.
    number < 24 || {
        let limit = getrlimit(Resource::Nofile).current;
        limit.is_none_or(|limit| u64::from(number) < limit / 4 * 3)
    }
}

/// Sends a signal to a process, or with a negative number to a process group. Signal 0 only checks
/// whether a signal could be sent.
pub(crate) fn kill(process: i32, number: i32) -> io::Result<()> {
    // SAFETY: the call takes two numbers and rejects invalid ones.
    match unsafe { libc::kill(process, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns `ESRCH`, the error for a process that does not exist.
pub(crate) fn no_such_process() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

/// Reaps children whose loop was dropped, on a thread of its own, so that no zombie is left.
#[inline]
pub(crate) fn reap_in_background(mut left: Vec<Process>) {
    left.retain(|child| matches!(child.try_wait(), Ok(None)));
    if !left.is_empty() {
        // If no thread can be started, the children become zombies until this process exits and
        // init reaps them.
        let _ = std::thread::Builder::new()
            .name("phaseloop-reaper".to_owned())
            .spawn(move || reap(left));
    }
}

#[inline]
fn reap(left: Vec<Process>) {
    let open = |child: Process| {
        let descriptor = child.open();
        (child, descriptor)
    };
    let mut left: Vec<_> = left.into_iter().map(open).collect();
    loop {
        left.retain(|(child, _)| matches!(child.try_wait(), Ok(None)));
        let Some((first, _)) = left.first() else {
            return;
        };
        let descriptors = left.iter().map(|(_, descriptor)| {
            let descriptor = descriptor.as_ref()?;
            Some(PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
        });
        match descriptors.collect::<Option<Vec<_>>>() {
            Some(mut descriptors) => drop(rustix::event::poll(&mut descriptors, None)),
            // The children are reaped one after the other: a child that exits earlier stays a
            // zombie until its turn.
            None => drop(waitpid(Some(first.id), WaitOptions::empty())),
        }
    }
}

/// Returns the error that keeps a process from entering a directory, if there is one.
pub(crate) fn enter_fault(directory: &std::path::Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}
