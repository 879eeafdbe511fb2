//! Children: waiting for one without blocking, a descriptor that tells of its end, signals.
//!
//! Only processes that were started here are waited for, one by one: the children of others in this process are theirs.
#![allow(unsafe_code, reason = "sends signals by their number")]

pub(crate) mod inherited;
#[cfg(feature = "node")]
pub(crate) mod node_channel;
mod pre_exec;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, WaitOptions, waitpid};

pub(crate) use pre_exec::{Ids, PreExec, has_inheritable_signals, is_limit, is_worth_another_try};

/// A child that was started and has not been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    id: Pid,
}

impl Process {
    /// Takes a child over from the standard library, which neither waits for it nor ends it when it forgets it.
    pub(crate) fn of(child: &std::process::Child) -> Self {
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Self {
            id: id.expect("a child has a number"),
        }
    }

    pub(crate) fn id(self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// How the child has ended, if it has; it is over with it then, and its number may be somebody else's.
    ///
    /// # Errors
    ///
    /// ECHILD when somebody else in the process has waited for it.
    pub(crate) fn try_wait(self) -> io::Result<Option<ExitStatus>> {
        let wait = || waitpid(Some(self.id), WaitOptions::NOHANG);
        let ended = rustix::io::retry_on_intr(wait)?;
        Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
    }

    /// Sends a signal. The child must not have been waited for.
    pub(crate) fn signal(self, number: i32) -> io::Result<()> {
        kill(self.id.as_raw_nonzero().get(), number)
    }

    /// The same by the descriptor that [`open`](Self::open) has returned. It stands for this child alone, also when the
    /// system has waited for it, as it does for those who ignore SIGCHLD.
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) fn signal_by(self, descriptor: &OwnedFd, number: i32) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open; the null pointer stands for what `kill` would tell of the signal.
        let result = unsafe {
            let descriptor = descriptor.as_raw_fd();
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                descriptor,
                number,
                no_info,
                0_u32,
            )
        };
        match result {
            0 => Ok(()),
            _ => match io::Error::last_os_error() {
                // Not there, or not allowed in this sandbox.
                error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                    self.signal(number)
                }
                error => Err(error),
            },
        }
    }

    #[cfg(not(all(target_os = "linux", not(phaseloop_portable_poller))))]
    pub(crate) fn signal_by(self, _: &OwnedFd, number: i32) -> io::Result<()> {
        self.signal(number)
    }

    /// A descriptor that becomes readable when the child has ended. `None` where there is no such thing, and where
    /// descriptors run short: the last quarter of them is for those who have no other way.
    #[cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]
    pub(crate) fn open(self) -> Option<OwnedFd> {
        use rustix::process::{PidfdFlags, Resource, getrlimit, pidfd_open};
        use std::os::fd::AsRawFd;
        let descriptor = pidfd_open(self.id, PidfdFlags::empty()).ok()?;
        let number = u64::try_from(descriptor.as_raw_fd()).ok()?;
        // Low numbers are fine under every limit; that saves most starts the question.
        let is_fine = number < 24 || {
            let limit = getrlimit(Resource::Nofile).current;
            limit.is_none_or(|limit| number < limit / 4 * 3)
        };
        is_fine.then_some(descriptor)
    }

    #[cfg(not(all(target_os = "linux", not(phaseloop_portable_poller))))]
    pub(crate) fn open(self) -> Option<OwnedFd> {
        None
    }
}

/// Sends a signal to a process, or with a negative number to a group; signal 0 only asks whether it could be sent.
pub(crate) fn kill(process: i32, number: i32) -> io::Result<()> {
    // SAFETY: takes two numbers and refuses those that mean nothing.
    match unsafe { libc::kill(process, number) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The error of somebody who asks for a process that is gone.
pub(crate) fn no_such_process() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

/// Waits on a thread of its own for children whose loop is gone, so that none stays a zombie.
pub(crate) fn reap_in_background(mut left: Vec<Process>) {
    left.retain(|child| matches!(child.try_wait(), Ok(None)));
    if !left.is_empty() {
        // A thread that cannot be started leaves them to whoever adopts the children of this process.
        let _ = std::thread::Builder::new()
            .name("phaseloop-reaper".to_owned())
            .spawn(move || reap(left));
    }
}

fn reap(left: Vec<Process>) {
    let mut left: Vec<_> = left
        .into_iter()
        .map(|child| (child, child.open()))
        .collect();
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
            // One after the other: those that end before it wait for it.
            None => drop(waitpid(Some(first.id), WaitOptions::empty())),
        }
    }
}

/// Why a directory cannot be entered, if it cannot.
pub(crate) fn enter_fault(directory: &std::path::Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}
