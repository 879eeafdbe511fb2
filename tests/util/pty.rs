//! A pseudo-terminal: the terminal and its controlling side.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Both sides, the controlling one first. Neither becomes the terminal of this process.
pub(crate) fn open_pty() -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = openpt(flags).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (controller.into(), terminal)
}

/// What is read from the controlling side until `end` comes.
pub(crate) fn read_until(controller: &File, end: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    let mut buffer = [0; 256];
    while !text.ends_with(end) {
        let mut reader = controller;
        let count = reader.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}
