//! What the system tells of itself, as libuv offers it and the standard library does not. On Unix only.
//!
//! | about | functions |
//! |---|---|
//! | the machine | [`hostname`], [`system_name`], [`uptime`], [`load_average`], [`cpus`] |
//! | memory | [`total_memory`], [`free_memory`], [`available_memory`], [`constrained_memory`], [`resident_memory`] |
//! | this process | [`resource_usage`], [`thread_resource_usage`], [`priority`], [`set_priority`] |
//! | users | [`user`], [`user_by_id`], [`group_by_id`], [`home_dir`] |
//! | the network | [`network_interfaces`] |
//! | chance | [`fill_random`], [`random`] |
//!
//! Apart from [`random`] these are plain calls that need no loop. They do not wait for a disk: what Linux tells in files,
//! it makes up when they are read. Elsewhere some have no answer yet and say [`Unsupported`](std::io::ErrorKind::Unsupported).
//!
//! The rest is in the standard library: [`std::env`](mod@std::env) has the environment, the working directory, the directory for temporary
//! files and the path of the program, [`std::process::id`] the number of the process, and
//! [`std::thread::available_parallelism`] how many threads are worth while.
//!
//! A title of the process, as libuv sets it, is not here: it is written over the memory of the arguments, which
//! [`std::env::args`] may read at any time in any thread, so it cannot be done soundly.

use std::io;

use crate::blocking::Work;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::jobs::Purpose;
use crate::pool::Class;

pub use crate::sys::interfaces::{Interface, network_interfaces};
pub use crate::sys::os::cpu::{Cpu, CpuTimes, cpus};
pub use crate::sys::os::machine::{SystemName, hostname, load_average, system_name, uptime};
pub use crate::sys::os::memory::{
    available_memory, constrained_memory, free_memory, resident_memory, total_memory,
};
pub use crate::sys::os::process::{
    ResourceUsage, priority, resource_usage, set_priority, thread_resource_usage,
};
pub use crate::sys::os::random::fill_random;
pub use crate::sys::os::user::{Group, User, group_by_id, home_dir, user, user_by_id};

/// The most that [`random`] returns at once (R336).
const MOST_RANDOM: usize = i32::MAX as usize;

/// Random bytes, good enough for keys, made on the pool. Delivered in the poll phase.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for more than 2³¹ − 1 bytes, else the system's.
///
/// # Cancel safety
///
/// Given up, it leaves the queue of the pool.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let token = phaseloop::os::random(16).await?;
///     assert_eq!(token.len(), 16);
///     Ok(())
/// })
/// # }
/// ```
pub async fn random(length: usize) -> io::Result<Vec<u8>> {
    if length > MOST_RANDOM {
        let text = format!("at most {MOST_RANDOM} random bytes at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let job = move || {
        let mut bytes = vec![0; length];
        fill_random(&mut bytes).map(|()| bytes)
    };
    let purpose = Purpose::new(Class::Cpu, "random");
    let handle = LoopHandle::current_for("`os::random`");
    Work::submit(&handle, purpose, job)?.await
}
