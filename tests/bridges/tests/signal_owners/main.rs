//! Signals that other libraries in the process listen to as well.
#![cfg(unix)]

#[path = "../../../util"]
mod util {
    pub(crate) mod child;
    pub(crate) mod raise;
    pub(crate) mod trace;
}

mod signal_owners;
