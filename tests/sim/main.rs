//! The network in memory: it behaves as the kernel's loopback interface does, and between hosts as a
//! network may.

#[path = "../util"]
mod util {
    pub(crate) mod polls;
}

mod answers;
mod both;
mod bugs;
mod datagrams;
mod hosts;
mod loopback;
mod programs;
