//! Files, directories, and watches on them.

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod files;
    pub(crate) mod panics;
    pub(crate) mod polls;
    pub(crate) mod pool;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

mod buf_reader;
mod fs;
mod fs_faults;
mod fs_file;
mod watch;
mod watch_poll;
