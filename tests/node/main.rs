//! Node's modules by their own rules; what Node itself prints is compared by `tests/conformance`.

#[path = "../util/faults.rs"]
mod fault_util;
#[path = "../util/mod.rs"]
mod util;

mod deep;
mod events;
mod faults;
mod fork;
mod io;
mod messages;
mod process;
mod promises;
mod streams;
mod system;
mod text;
mod timers;
mod timers_promises;
