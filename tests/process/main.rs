//! Child processes, channels to them, standard streams, terminals, and what the OS says of itself.

#[path = "../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod faults;
    pub(crate) mod files;
    pub(crate) mod panics;
    pub(crate) mod pty;
    pub(crate) mod screen;
    pub(crate) mod trace;
    pub(crate) mod wakers;
}

mod channel;
mod channel_faults;
mod os;
mod os_errors;
mod process;
mod process_faults;
mod process_stdio;
mod process_storm;
mod stdio;
mod tty;
