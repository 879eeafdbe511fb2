//! What the modules keep in memory, counted by the allocator of the process.
#![cfg(unix)]

#[allow(dead_code, reason = "other packages use the rest")]
#[path = "../../../../tests/util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod memory;
    pub(crate) mod panics;
    #[cfg(target_os = "linux")]
    pub(crate) mod stderr;
    pub(crate) mod trace;
}

mod http_idle;
mod http_memory;
mod left;
mod links_memory;
mod neighbours_memory;
mod rounds_memory;
mod socket_memory;
#[cfg(target_os = "linux")]
mod stderr;
mod system_memory;
mod uncaught;
mod variables;
mod zlib_memory;
