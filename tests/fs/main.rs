//! Files, directories, and watches on them.

#[path = "../util/mod.rs"]
mod util;
#[path = "../util/watch.rs"]
mod watch_util;

mod fs;
mod fs_faults;
mod fs_file;
mod watch;
mod watch_poll;
