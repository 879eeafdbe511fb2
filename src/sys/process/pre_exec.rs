//! The steps of a child between `fork` and `exec` that the standard library does not offer.
//!
//! A command that needs none of them is started by `posix_spawn`, which does not copy the parent's
//! memory map. Other commands are forked.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::fstat;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};

use crate::sys::descriptor::dup_onto;
use crate::sys::signal::{action_of, disposition, mask};

/// The user id and the group ids of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    /// `None`: dropped if the user or the group is set and the process has the privilege.
    pub(crate) groups: Option<Vec<u32>>,
}

/// The steps of one start, in the child, before the program is loaded.
///
/// The command and the `pre_exec` closure share it.
#[derive(Clone, Default)]
pub(crate) struct PreExec {
    /// Locked only briefly by the thread that starts the child next. So it is never contended, and
    /// may be locked in a forked child.
    steps: Arc<Mutex<Steps>>,
}

#[derive(Default)]
struct Steps {
    new_session: bool,
    ids: Ids,
    descriptors: Vec<Placed>,
    reset_signals: bool,
}

/// A descriptor that the child gets under a number.
struct Placed {
    source: RawFd,
    target: RawFd,
    /// The file that has the number in the parent, if any. The child overwrites the number only if
    /// it still refers to this file.
    tenant: Option<(u64, u64)>,
}

/// Returns whether a start failed only because another thread closed or opened descriptors
/// meanwhile.
pub(crate) fn is_worth_another_try(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

/// Returns whether a start failed because a process limit is reached.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

/// Occupies the chosen numbers, so that descriptors which the start itself opens do not get them.
pub(crate) struct Placeholders {
    _held: Vec<OwnedFd>,
}

impl PreExec {
    /// Makes the command run these steps in each child from now on.
    #[inline]
    pub(crate) fn attach(&self, command: &mut Command) {
        let steps = self.steps.clone();
        let run = move || steps.lock().unwrap_or_else(PoisonError::into_inner).run();
        // SAFETY: `run` makes system calls and does not allocate. It does not wait either: no other
        // thread holds the lock, see `PreExec`.
        unsafe { command.pre_exec(run) };
    }

    /// Sets the steps of the next start.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl(F_DUPFD_CLOEXEC)`, if no descriptor is left to occupy the chosen
    /// numbers.
    #[inline]
    pub(crate) fn set(
        &self,
        new_session: bool,
        ids: &Ids,
        descriptors: &[(RawFd, OwnedFd)],
        reset_signals: bool,
    ) -> io::Result<Placeholders> {
        let mut held = Vec::new();
        let mut placed = Vec::new();
        for (target, source) in descriptors {
            placed.push(Placed {
                source: source.as_raw_fd(),
                target: *target,
                tenant: hold(*target, source, &mut held)?,
            });
        }
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        *steps = Steps {
            new_session,
            ids: ids.clone(),
            descriptors: placed,
            reset_signals,
        };
        Ok(Placeholders { _held: held })
    }
}

/// Occupies the number, so that no descriptor which the start opens gets it. Otherwise the pipe
/// through which the standard library reports a failed `exec` could be overwritten.
///
/// Returns the file that has the number already, if any. Another thread may close it at any time,
/// so the child checks again.
fn hold(
    target: RawFd,
    source: &OwnedFd,
    held: &mut Vec<OwnedFd>,
) -> io::Result<Option<(u64, u64)>> {
    if source.as_raw_fd() == target {
        return Ok(None);
    }
    loop {
        let placeholder = fcntl_dupfd_cloexec(source, target)
            .map_err(|error| explain_number(target, error.into()))?;
        if placeholder.as_raw_fd() == target {
            held.push(placeholder);
            return Ok(None);
        }
        let tenant = identity(target);
        // `None`: the file was closed in between, and the number can be occupied after all.
        if tenant.is_some() {
            return Ok(tenant);
        }
    }
}

/// Adds the requested number to an error.
fn explain_number(number: RawFd, error: io::Error) -> io::Error {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let text = match limit {
        Some(limit) if u64::try_from(number).is_ok_and(|number| number >= limit) => format!(
            "no descriptor can have the number {number}: the limit (RLIMIT_NOFILE) is {limit}, so \
             {} is the highest",
            limit.saturating_sub(1)
        ),
        _ => format!("a descriptor for the number {number}: {error}"),
    };
    io::Error::new(error.kind(), text)
}

/// Borrows a number for the system calls that follow. They fail if it is closed.
pub(super) fn borrowed<'a>(number: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the number is the command's, or was created for it, and the command outlives the
    // start; or it is borrowed for a few queries, and for its duplication after them.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Returns device and inode of the file behind a number. Each pipe and each socket has its own.
fn identity(number: RawFd) -> Option<(u64, u64)> {
    let stat = fstat(borrowed(number)).ok()?;
    // The types differ between platforms.
    Some((stat.st_dev as u64, stat.st_ino as u64))
}

impl Steps {
    /// Runs the steps. It runs in the child: system calls only, no allocation.
    #[inline]
    fn run(&mut self) -> io::Result<()> {
        if self.new_session {
            rustix::process::setsid()?;
        }
        self.place_descriptors()?;
        self.set_ids()?;
        if self.reset_signals {
            reset_signals();
        }
        Ok(())
    }

    /// Moves the descriptors to their numbers, even if other descriptors of the list occupy them.
    #[inline]
    fn place_descriptors(&mut self) -> io::Result<()> {
        for placed in &self.descriptors {
            let now = identity(placed.target);
            if placed.tenant.is_some() && now.is_some() && now != placed.tenant {
                // Another file has the number now, perhaps one that the start itself needs.
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
        }
        let above = self.descriptors.iter().map(|placed| placed.target).max();
        let above = above.unwrap_or(0) + 1;
        for index in 0..self.descriptors.len() {
            let source = self.descriptors[index].source;
            let mut others = self.descriptors.iter().enumerate();
            if others.any(|(other, placed)| other != index && placed.target == source) {
                let moved = fcntl_dupfd_cloexec(borrowed(source), above)?;
                self.descriptors[index].source = std::os::fd::IntoRawFd::into_raw_fd(moved);
            }
        }
        for placed in &self.descriptors {
            let source = borrowed(placed.source);
            if placed.source == placed.target {
                let flags = fcntl_getfd(source)?;
                fcntl_setfd(source, flags - FdFlags::CLOEXEC)?;
            } else {
                // Clears close-on-exec: the program inherits it. No code in the child owns the
                // number (see `hold`).
                dup_onto(placed.target, source)?;
            }
        }
        Ok(())
    }

    /// Sets the supplementary groups first, then the group, then the user: an unprivileged user
    /// could not set the others any more.
    fn set_ids(&self) -> io::Result<()> {
        let Ids {
            user,
            group,
            groups,
        } = &self.ids;
        // SAFETY: the pointer and the count describe the list; an empty list needs no pointer. The
        // other calls take a number.
        unsafe {
            match groups {
                // The type of the count differs between platforms; the type of the list does not.
                Some(groups) => checked(libc::setgroups(groups.len() as _, groups.as_ptr()))?,
                // The error is ignored: a process without the privilege to drop groups gains none
                // by keeping them.
                None if user.is_some() || group.is_some() => {
                    libc::setgroups(0, std::ptr::null());
                }
                None => {}
            }
            if let Some(group) = group {
                checked(libc::setgid(*group))?;
            }
            if let Some(user) = user {
                checked(libc::setuid(*user))?;
            }
        }
        Ok(())
    }
}

fn checked(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signals that a child starts with the default action for.
const RESET: std::ops::Range<i32> = 1..32;

/// Signals whose inherited `SIG_IGN` must be reset in the child. Not listed are faults of the
/// program itself, signals that cannot be ignored, and SIGURG and SIGWINCH, whose default action is
/// to do nothing. The standard library resets SIGPIPE.
const IGNORABLE: [i32; 18] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
];

/// Sets every signal to its default action and unblocks all. It runs in the child.
fn reset_signals() {
    let default = action_of(libc::SIG_DFL, 0);
    for number in RESET {
        // The call fails for some numbers, which have the default action anyway.
        let _ = disposition::set(number, &default);
    }
    // The call does not fail with these arguments.
    let _ = mask::change(libc::SIG_SETMASK, &mask::of(&[]));
}

/// Returns whether a child would inherit ignored or blocked signals. Handlers are not inherited.
pub(crate) fn has_inheritable_signals() -> bool {
    has_blocked_signals() || IGNORABLE.into_iter().any(is_ignored)
}

fn has_blocked_signals() -> bool {
    let blocked = mask::change(libc::SIG_BLOCK, &mask::of(&[]));
    blocked.is_ok_and(|blocked| {
        RESET
            .into_iter()
            .any(|number| mask::contains(&blocked, number))
    })
}

fn is_ignored(number: i32) -> bool {
    disposition::get(number).is_ok_and(|action| action.sa_sigaction == libc::SIG_IGN)
}
