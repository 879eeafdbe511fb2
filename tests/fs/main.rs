//! Files, directories, and watches on them.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "what tests of other systems use")
)]

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod errno;
    pub(crate) mod files;
    pub(crate) mod panics;
    pub(crate) mod polls;
    pub(crate) mod pool;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

mod buf_reader;
mod fs;
mod fs_cached;
mod fs_convert;
mod fs_faults;
mod fs_file;
mod watch;
mod watch_poll;
mod windows;
