//! A pseudo-terminal: the terminal and its controlling side.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Both sides, the controlling one first. Neither becomes the terminal of this process.
pub(crate) fn open_pty() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    // macOS has no such flag: there the descriptor is changed after it was opened.
    #[cfg(not(target_vendor = "apple"))]
    let flags = flags | OpenptFlags::CLOEXEC;
    let controller = openpt(flags).unwrap();
    rustix::io::fcntl_setfd(&controller, rustix::io::FdFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (controller.into(), terminal)
}
