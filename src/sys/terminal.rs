//! The settings of terminals, and how to bring them back from wherever the process ends.
//!
//! What was found is kept in a table of fixed size behind a lock that signal handlers only try: restoring allocates
//! nothing and waits for nobody. Each entry has a descriptor of its own, so it is good for as long as it is there.
#![allow(
    unsafe_code,
    reason = "a table that is read from signal handlers; a call at the exit of the process; masking a signal"
)]

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
};

use super::stdio::is_controlling_side;

/// How many terminals can be away from their settings at once.
const MOST: usize = 16;

/// How a terminal treats what is typed and printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// As it was found: usually lines, edited and echoed by the system, and ctrl-c sends SIGINT.
    #[default]
    Normal,
    /// Each key at once and not echoed, ctrl-c as a key like others. A line feed still begins a new line.
    Raw,
    /// As [`Raw`](Self::Raw), but ctrl-c, ctrl-\ and ctrl-z still send their signals.
    Cbreak,
    /// Bytes as they are, both ways: also a line feed is only that.
    Io,
}

impl Mode {
    /// The settings of this mode, made of those of the normal one.
    fn of(self, normal: &Termios) -> Termios {
        let mut settings = normal.clone();
        match self {
            Self::Normal => {}
            Self::Io => settings.make_raw(),
            Self::Raw | Self::Cbreak => {
                settings.input_modes -= InputModes::BRKINT
                    | InputModes::ICRNL
                    | InputModes::INPCK
                    | InputModes::ISTRIP
                    | InputModes::IXON;
                settings.output_modes |= OutputModes::ONLCR;
                settings.control_modes |= ControlModes::CS8;
                settings.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN;
                if self == Self::Raw {
                    settings.local_modes -= LocalModes::ISIG;
                }
                settings.special_codes[SpecialCodeIndex::VMIN] = 1;
                settings.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
        }
        settings
    }
}

/// A terminal that somebody has changed.
struct Entry {
    terminal: OwnedFd,
    /// The number of its device, by which others find it. The controlling sides of pseudo-terminals all have the same one;
    /// these are never shared.
    device: Option<u64>,
    normal: Termios,
    /// How many [`Change`]s there are of it.
    changes: usize,
}

impl Entry {
    /// Brings the settings back, also for a process in the background, which the system would stop otherwise: at its end
    /// there may be nobody to let it go on.
    fn restore(&self) -> io::Result<()> {
        let (mut stop, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the sets are filled before they are read, the first by `sigemptyset`, the second by the first call of
        // `pthread_sigmask`. None of these calls fails with these arguments, and all may be made in a signal handler.
        unsafe {
            libc::sigemptyset(stop.as_mut_ptr());
            libc::sigaddset(stop.as_mut_ptr(), libc::SIGTTOU);
            libc::pthread_sigmask(libc::SIG_BLOCK, stop.as_ptr(), before.as_mut_ptr());
        }
        let result = set(&self.terminal, &self.normal);
        // SAFETY: as above.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
        result
    }
}

/// The table and its lock.
struct Table {
    is_locked: AtomicBool,
    entries: UnsafeCell<[Option<Entry>; MOST]>,
}

// SAFETY: the entries are reached through `Table::locked` and `Table::try_locked` only, by one thread at a time.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    is_locked: AtomicBool::new(false),
    entries: UnsafeCell::new([const { None }; MOST]),
};

impl Table {
    /// Waits for the lock, which is held for a few system calls at most. Not for signal handlers.
    fn locked<R>(&self, f: impl FnOnce(&mut [Option<Entry>; MOST]) -> R) -> R {
        let mut f = Some(f);
        loop {
            let result = self.try_locked(|entries| f.take().map(|f| f(entries)));
            if let Some(Some(result)) = result {
                return result;
            }
            std::thread::yield_now();
        }
    }

    /// `None`: somebody else has the lock, maybe the very thread that a signal has interrupted.
    fn try_locked<R>(&self, f: impl FnOnce(&mut [Option<Entry>; MOST]) -> R) -> Option<R> {
        /// Unlocks also when `f` panics.
        struct Unlock<'a>(&'a AtomicBool);
        impl Drop for Unlock<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.is_locked.swap(true, Ordering::Acquire) {
            return None;
        }
        let _unlock = Unlock(&self.is_locked);
        // SAFETY: whoever finds the flag unset has the entries alone until it is unset again, and `f` does not come here
        // again: it would find the flag set.
        Some(f(unsafe { &mut *self.entries.get() }))
    }
}

/// A terminal that is away from its settings. They come back when the last change of it is undone or dropped, or when the
/// process exits.
#[derive(Debug)]
pub(crate) struct Change {
    place: usize,
}

impl Change {
    /// Keeps the settings of a terminal, unless somebody has kept them already.
    ///
    /// # Errors
    ///
    /// The system's; out of memory when too many terminals are changed.
    pub(crate) fn begin(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| {
            // SAFETY: the function may be called at any time. It fails only without memory; then nothing is restored.
            unsafe { libc::atexit(restore_at_exit) };
        });
        let device = if is_controlling_side(terminal) {
            None
        } else {
            #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
            Some(rustix::fs::fstat(terminal)?.st_rdev as u64)
        };
        TABLE.locked(|entries| {
            let known = entries.iter_mut().enumerate().find_map(|(place, entry)| {
                let entry = entry.as_mut()?;
                (device.is_some() && entry.device == device).then_some((place, entry))
            });
            if let Some((place, entry)) = known {
                entry.changes += 1;
                return Ok(Self { place });
            }
            let free = entries.iter().position(Option::is_none);
            let place = free.ok_or(io::ErrorKind::OutOfMemory)?;
            entries[place] = Some(Entry {
                normal: rustix::termios::tcgetattr(terminal)?,
                terminal: terminal.try_clone_to_owned()?,
                device,
                changes: 1,
            });
            Ok(Self { place })
        })
    }

    /// Puts the terminal into a mode, at once: nothing is drained, so nothing can block (R213).
    pub(crate) fn apply(&self, mode: Mode) -> io::Result<()> {
        TABLE.locked(|entries| {
            let entry = entries[self.place].as_ref().expect("there until the end");
            set(&entry.terminal, &mode.of(&entry.normal))
        })
    }

    /// Ends the change; the last one brings the settings back.
    pub(crate) fn undo(self) -> io::Result<()> {
        let result = self.end();
        std::mem::forget(self);
        result
    }

    fn end(&self) -> io::Result<()> {
        TABLE.locked(|entries| {
            let slot = &mut entries[self.place];
            let entry = slot.as_mut().expect("there until the end");
            entry.changes -= 1;
            if entry.changes > 0 {
                return Ok(());
            }
            let result = entry.restore();
            *slot = None;
            result
        })
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        // The terminal may be gone; there is nobody to tell.
        let _ = self.end();
    }
}

fn set(terminal: &OwnedFd, settings: &Termios) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::termios::tcsetattr(terminal, OptionalActions::Now, settings)
    })?)
}

/// Brings the settings of all changed terminals back. Async-signal-safe.
///
/// # Errors
///
/// `EBUSY` when a change is under way; the first of the system's.
pub(crate) fn restore_all() -> io::Result<()> {
    let restored = TABLE.try_locked(|entries| {
        let mut result = Ok(());
        for entry in entries.iter().flatten() {
            result = result.and(entry.restore());
        }
        result
    });
    restored.unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EBUSY)))
}

extern "C" fn restore_at_exit() {
    // The process ends; there is nobody to tell.
    let _ = restore_all();
}

/// The terminal of the process.
pub(crate) fn open_own() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Columns and rows.
pub(crate) fn size(terminal: BorrowedFd<'_>) -> io::Result<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(terminal)?;
    Ok((size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::{TABLE, restore_all};

    #[test]
    fn r211_restoring_does_not_wait_for_a_change_under_way() {
        let error = TABLE.locked(|_| restore_all()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
        restore_all().unwrap();
    }
}
