//! The warning of a program without the feature `probe`: the variables `PHASELOOP_*` have no effect
//! on it.

use std::env;
use std::sync::Once;

use crate::stderr;
use crate::sys::privilege;

/// The variables of `environment.rs`, which is not compiled.
const VARIABLES: [&str; 5] = [
    "PHASELOOP_TRACE",
    "PHASELOOP_SLOW",
    "PHASELOOP_WATCHDOG",
    "PHASELOOP_REPORT",
    "PHASELOOP_DEBUG",
];

/// Prints a line, with the first loop, if the environment asks for what this program cannot do.
pub(super) fn print_once() {
    static PRINTED: Once = Once::new();
    PRINTED.call_once(print);
}

fn print() {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let names: Vec<_> = VARIABLES.into_iter().filter(is_set).collect();
    if !names.is_empty() && !privilege::is_elevated() {
        let names = names.join(", ");
        stderr::print(format_args!(
            "phaseloop: no effect of {names}: the program is built without the feature `probe` of phaseloop"
        ));
    }
}
