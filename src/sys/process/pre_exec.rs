//! What a child does between its birth and its program beyond what the standard library offers.
//!
//! A command that needs none of it is started by `posix_spawn`, which does not copy the parent's memory map; one that
//! does is forked.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::fstat;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};

/// The user and the groups of a child.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    /// `None`: dropped together with the user or the group, if they can be.
    pub(crate) groups: Option<Vec<u32>>,
}

/// The steps that one start takes, in the child, before the program is loaded.
///
/// Shared between the command and the closure that the standard library calls in the child.
#[derive(Clone, Default)]
pub(crate) struct PreExec {
    /// Never contended, so that it may be locked in a forked child: held for the moment of a change only, by the thread
    /// that starts the child next.
    steps: Arc<Mutex<Steps>>,
}

#[derive(Default)]
struct Steps {
    new_session: bool,
    ids: Ids,
    descriptors: Vec<Placed>,
    reset_signals: bool,
}

/// A descriptor that the child finds at a number.
struct Placed {
    source: RawFd,
    target: RawFd,
    /// What else has the number in the parent: the child must find the same before it overwrites it.
    tenant: Option<(u64, u64)>,
}

/// Whether a start has failed only because another thread closed and opened descriptors meanwhile.
pub(crate) fn is_worth_another_try(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}

/// Whether a start has failed because the system makes no further process.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM))
}

/// What keeps the chosen numbers from being taken by descriptors that the start itself needs.
pub(crate) struct Placeholders {
    _held: Vec<OwnedFd>,
}

impl PreExec {
    /// Makes the command take the steps of this plan in every child from now on.
    pub(crate) fn attach(&self, command: &mut Command) {
        let steps = self.steps.clone();
        let run = move || steps.lock().unwrap_or_else(PoisonError::into_inner).run();
        // SAFETY: `run` makes system calls and neither allocates nor waits: nobody else holds the lock, see `PreExec`.
        unsafe { command.pre_exec(run) };
    }

    /// Sets the steps of the next start.
    ///
    /// # Errors
    ///
    /// The system's, when it has no descriptors left to keep the chosen numbers free.
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

/// Sees to it that nothing which the start opens gets the number. The standard library's pipe, through which a child
/// reports that its program could not be loaded, would be overwritten by what is placed there.
///
/// Returns what has the number already; somebody else may close that at any time, so the child looks again.
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
        // None: it was closed in between, and the number can be held after all.
        if tenant.is_some() {
            return Ok(tenant);
        }
    }
}

/// Names the number that a descriptor was to have.
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

/// Which open file a number stands for. Pipes and sockets have one each.
fn identity(number: RawFd) -> Option<(u64, u64)> {
    // SAFETY: borrowed for one question; if the number is nobody's by now, the answer is an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = fstat(descriptor).ok()?;
    // The types differ between systems.
    Some((stat.st_dev as u64, stat.st_ino as u64))
}

impl Steps {
    /// In the child: system calls only, no allocation.
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

    /// Puts the descriptors at their numbers (R263: also when these are taken by others of them).
    fn place_descriptors(&mut self) -> io::Result<()> {
        for placed in &self.descriptors {
            let now = identity(placed.target);
            if placed.tenant.is_some() && now.is_some() && now != placed.tenant {
                // The number has a new tenant, perhaps something that the start itself needs.
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
        }
        let above = self.descriptors.iter().map(|placed| placed.target).max();
        let above = above.unwrap_or(0) + 1;
        for index in 0..self.descriptors.len() {
            let source = self.descriptors[index].source;
            let mut others = self.descriptors.iter().enumerate();
            if others.any(|(other, placed)| other != index && placed.target == source) {
                // SAFETY: the command owns it and outlives the start.
                let descriptor = unsafe { BorrowedFd::borrow_raw(source) };
                let moved = fcntl_dupfd_cloexec(descriptor, above)?;
                self.descriptors[index].source = std::os::fd::IntoRawFd::into_raw_fd(moved);
            }
        }
        for placed in &self.descriptors {
            // SAFETY: as above, or made above.
            let source = unsafe { BorrowedFd::borrow_raw(placed.source) };
            if placed.source == placed.target {
                let flags = fcntl_getfd(source)?;
                fcntl_setfd(source, flags - FdFlags::CLOEXEC)?;
            } else {
                // SAFETY: the number is the child's to use: nobody owns it here (see `hold`), and what it was is closed.
                let mut target = unsafe { OwnedFd::from_raw_fd(placed.target) };
                let done = rustix::io::retry_on_intr(|| rustix::io::dup2(source, &mut target));
                // The program inherits it.
                std::mem::forget(target);
                done?;
            }
        }
        Ok(())
    }

    /// Groups first, then the group, then the user (R267): a user without rights could not set the others any more.
    fn set_ids(&self) -> io::Result<()> {
        let Ids {
            user,
            group,
            groups,
        } = &self.ids;
        match groups {
            Some(groups) => {
                // The type of the count differs between systems; that of the list is the same everywhere.
                let count = groups.len() as _;
                // SAFETY: the pointer and the count describe the list.
                checked(unsafe { libc::setgroups(count, groups.as_ptr()) })?;
            }
            None if user.is_some() || group.is_some() => {
                // Best effort: without the right to do it there are no rights to lose either.
                // SAFETY: an empty list needs no pointer.
                unsafe { libc::setgroups(0, std::ptr::null()) };
            }
            None => {}
        }
        // SAFETY: both take a number.
        unsafe {
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

/// The signals whose default action a child starts with (R265).
const RESET: std::ops::Range<i32> = 1..32;

/// Those among them that it makes a difference to ignore. Not so with faults of the program itself, with those that cannot
/// be ignored and with those that are by default; SIGPIPE is the standard library's business.
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

/// In the child: no signal is ignored, none blocked.
fn reset_signals() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the default action runs no code of this process; it is refused for some numbers, which have it anyway. The
    // set is filled by one call and read by the next.
    unsafe {
        for number in RESET {
            libc::signal(number, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether a child would inherit signals that are ignored or blocked here. Handlers are not inherited.
pub(crate) fn has_inheritable_signals() -> bool {
    has_blocked_signals() || IGNORABLE.into_iter().any(is_ignored)
}

fn has_blocked_signals() -> bool {
    let mut mask = MaybeUninit::uninit();
    // SAFETY: a null pointer changes nothing; `mask` has room for the answer, which is there when the call has succeeded.
    // The numbers are those of signals.
    unsafe {
        if libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr()) != 0 {
            return false;
        }
        let mask = mask.assume_init();
        RESET
            .into_iter()
            .any(|number| libc::sigismember(&mask, number) == 1)
    }
}

fn is_ignored(number: i32) -> bool {
    let mut current = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer changes nothing; `current` has room for the answer, which is there if the call has succeeded.
    unsafe {
        let result = libc::sigaction(number, std::ptr::null(), current.as_mut_ptr());
        result == 0 && current.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
