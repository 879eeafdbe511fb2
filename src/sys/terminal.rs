//! Terminal settings, and restoring them however the process ends.
//!
//! The original settings are kept in a table of fixed size behind a lock that signal handlers only
//! try to take: restoring neither allocates nor blocks. Each entry owns a descriptor, so it stays
//! valid as long as it is in the table.
#![allow(
    unsafe_code,
    reason = "a table that is read from signal handlers; a call at the exit of the process"
)]

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios,
};

use super::at_exit;
use super::poller::Maker;
use super::signal::mask;
use super::stdio::is_controlling_side;
use crate::kinds::Mode;

/// The most terminals that can be in a changed mode at once.
const MOST: usize = 16;

impl Mode {
    /// Derives the settings of this mode from the original ones.
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

/// A terminal in a changed mode.
struct Entry {
    terminal: OwnedFd,
    /// Device number, which identifies the terminal for further changes. `None` for the controlling
    /// side of a pseudo-terminal: all of those have one number, and their entries are never shared.
    device: Option<u64>,
    normal: Termios,
    /// The number of live [`Change`]s.
    changes: usize,
    /// The process that has changed the terminal. A forked child has it in common with its parent.
    maker: Maker,
}

impl Entry {
    /// Returns whether this process has changed the terminal, and not its parent before a fork.
    fn is_ours(&self) -> bool {
        !self.maker.is_parent()
    }

    /// Restores the settings. SIGTTOU is blocked meanwhile: it would stop a background process, and
    /// at exit no shell might be left to continue it.
    fn restore(&self) -> io::Result<()> {
        let before = mask::change(libc::SIG_BLOCK, &mask::of(&[libc::SIGTTOU]))?;
        let result = set(&self.terminal, &self.normal);
        // The call does not fail with these arguments, and neither does the first.
        let _ = mask::change(libc::SIG_SETMASK, &before);
        result
    }
}

/// The table and its lock.
struct Table {
    is_locked: AtomicBool,
    entries: UnsafeCell<[Option<Entry>; MOST]>,
}

// SAFETY: the entries are reached through `Table::locked` and `Table::try_locked` only, by one
// thread at a time.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    is_locked: AtomicBool::new(false),
    entries: UnsafeCell::new([const { None }; MOST]),
};

impl Table {
    /// Waits for the lock, which is held for a few system calls at most. Signal handlers must not
    /// call it.
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

    /// `None`: the lock is taken, possibly by the thread that a signal handler has interrupted.
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
        // SAFETY: whoever finds the flag unset has the entries alone until it is unset again, and
        // `f` does not come here again: it would find the flag set.
        Some(f(unsafe { &mut *self.entries.get() }))
    }
}

/// A terminal in a changed mode. The settings are restored when its last change is undone or
/// dropped, or when the process exits.
#[derive(Debug)]
pub(crate) struct Change {
    place: usize,
}

impl Change {
    /// Saves the settings of a terminal, unless another change has saved them.
    ///
    /// # Errors
    ///
    /// Any OS error of `fstat` and `tcgetattr`; `OutOfMemory` if the table is full.
    pub(crate) fn begin(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        static AT_EXIT: Once = Once::new();
        AT_EXIT.call_once(|| at_exit::call(restore_at_exit));
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
                maker: Maker::this_process(),
            });
            Ok(Self { place })
        })
    }

    /// Switches the terminal to a mode. Output is not drained first, so the call cannot block.
    pub(crate) fn apply(&self, mode: Mode) -> io::Result<()> {
        TABLE.locked(|entries| {
            let entry = entries[self.place].as_ref().expect("there until the end");
            set(&entry.terminal, &mode.of(&entry.normal))
        })
    }

    /// Ends the change. Ending the last one restores the settings.
    pub(crate) fn undo(self) -> io::Result<()> {
        let result = self.end(|_| true);
        std::mem::forget(self);
        result
    }

    /// Ends the change. Ending the last one restores the settings if `may_restore` allows it.
    fn end(&self, may_restore: impl FnOnce(&Entry) -> bool) -> io::Result<()> {
        TABLE.locked(|entries| {
            let slot = &mut entries[self.place];
            let entry = slot.as_mut().expect("there until the end");
            entry.changes -= 1;
            if entry.changes > 0 {
                return Ok(());
            }
            let result = if may_restore(entry) {
                entry.restore()
            } else {
                Ok(())
            };
            *slot = None;
            result
        })
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        // The terminal may be gone, and a drop cannot return the error.
        let _ = self.end(Entry::is_ours);
    }
}

fn set(terminal: &OwnedFd, settings: &Termios) -> io::Result<()> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::termios::tcsetattr(terminal, OptionalActions::Now, settings)
    })?)
}

/// Restores the settings of all changed terminals. It is async-signal-safe.
///
/// # Errors
///
/// `EBUSY` while a change holds the lock; otherwise the first OS error of `tcsetattr`.
pub(crate) fn restore_all() -> io::Result<()> {
    restore_if(|_| true)
}

fn restore_if(may_restore: impl Fn(&Entry) -> bool) -> io::Result<()> {
    let restored = TABLE.try_locked(|entries| {
        let mut result = Ok(());
        for entry in entries.iter().flatten().filter(|entry| may_restore(entry)) {
            result = result.and(entry.restore());
        }
        result
    });
    restored.unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::EBUSY)))
}

extern "C" fn restore_at_exit() {
    // The process ends, and an exit handler cannot return the error.
    let _ = restore_if(Entry::is_ours);
}

/// Opens the controlling terminal of the process.
pub(crate) fn open_own() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Returns columns and rows.
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
