//! Child processes, channels to them, standard streams, terminals, and what the OS says of itself.

#[path = "../util/faults.rs"]
mod fault_util;
#[path = "../util/pty.rs"]
mod pty_util;
#[path = "../util/mod.rs"]
mod util;

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
