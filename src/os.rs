//! Queries about the machine and this process that libuv offers and the standard library does not.
//! Unix only.
//!
//! ```
//! use phaseloop::os;
//!
//! fn main() -> std::io::Result<()> {
//!     let system = os::system_name();
//!     println!("{} {} on {:?}", system.system, system.release, os::hostname());
//!     println!("load {:?}, up for {:?}", os::load_average()?, os::uptime()?);
//!     Ok(())
//! }
//! ```
//!
//! | about | functions |
//! |---|---|
//! | the machine | [`hostname`], [`system_name`], [`uptime`], [`load_average`], [`cpus`] |
//! | memory | [`total_memory`], [`free_memory`], [`available_memory`] |
//! | memory of this process | [`constrained_memory`], [`resident_memory`] |
//! | this process | [`resource_usage`], [`thread_resource_usage`], [`priority`], [`set_priority`] |
//! | users | [`user`], [`user_by_id`], [`group_by_id`], [`home_dir`] |
//! | the network | [`network_interfaces`] |
//! | random bytes | [`fill_random`], [`random`] |
//!
//! All of them but [`random`] are plain calls that need no loop. They do not wait for a disk: the
//! kernel generates the files of `/proc` when they are read. On other platforms some of them return
//! [`Unsupported`](std::io::ErrorKind::Unsupported).
//!
//! The standard library has the rest: [`std::env`](mod@std::env) has the environment, the working
//! directory, the directory for temporary files and the path of the executable;
//! [`std::process::id`] has the process id, and [`std::thread::available_parallelism`] the number
//! of threads worth starting.
//!
//! libuv's process title is left out. Setting it overwrites the memory of the arguments, which
//! [`std::env::args`] may read at any time on any thread, so no sound implementation exists.

mod cpu;
mod interfaces;
mod machine;
mod memory;
mod process;
mod random;
mod user;

use std::io;

pub use self::cpu::{Cpu, CpuTimes, cpus};
pub use self::interfaces::{Interface, network_interfaces};
pub use self::machine::{SystemName, hostname, load_average, system_name, uptime};
pub use self::memory::{
    available_memory, constrained_memory, free_memory, resident_memory, total_memory,
};
pub use self::process::{
    ResourceUsage, priority, resource_usage, set_priority, thread_resource_usage,
};
pub use self::random::{fill_random, random};
pub use self::user::{Group, User, group_by_id, home_dir, user, user_by_id};

/// The error of a system file without an expected entry.
fn missing_in(path: &str, what: &str) -> io::Error {
    let text = format!("read \"{path}\": no {what}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}
