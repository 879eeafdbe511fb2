//! System calls counted by the kernel for `perf stat`.
//!
//! A tracer that stops the process at each call slows it down so much that its threads meet in
//! other orders: a thousand pool jobs then make twenty times as many futex calls as they make at
//! their own pace. A counter in the kernel costs a fraction of the call it counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

/// The total; what is not named below is the rest.
const ALL: &str = "raw_syscalls:sys_enter";
const ONE: &str = "syscalls:sys_enter_";

/// What calls are called that have no counter of their own.
const OTHERS: &str = "others";

/// The calls with a counter each. Every counter is switched with its thread, so they are few.
const CALLS: [&str; 24] = [
    "futex",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_ctl",
    "io_uring_enter",
    "poll",
    "ppoll",
    "read",
    "readv",
    "write",
    "writev",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "accept4",
    "openat",
    "close",
    "statx",
    "mmap",
    "munmap",
];

/// Whether this user may count system calls with perf here.
pub(crate) fn is_usable() -> bool {
    static IS_USABLE: OnceLock<bool> = OnceLock::new();
    *IS_USABLE.get_or_init(|| {
        let run = Command::new("perf")
            .args(["stat", "-x", ",", "-e", ALL, "true"])
            .output();
        run.is_ok_and(|run| {
            let text = String::from_utf8_lossy(&run.stderr);
            run.status.success() && counters(&text).any(|(name, count)| name == ALL && count > 0.0)
        })
    })
}

/// What stands before the command whose calls are counted.
pub(crate) fn command_line() -> Vec<OsString> {
    let mut line = ["perf", "stat", "-x", ",", "-e", ALL]
        .map(OsString::from)
        .to_vec();
    for call in known_calls() {
        line.extend(["-e".into(), format!("{ONE}{call}").into()]);
    }
    line
}

/// Those that this kernel has: not every processor has all.
fn known_calls() -> &'static [&'static str] {
    static KNOWN: OnceLock<Vec<&str>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let list = Command::new("perf").args(["list", "tracepoint"]).output();
        let list = list.map_or_else(|_| Vec::new(), |list| list.stdout);
        let list = String::from_utf8_lossy(&list);
        let listed: Vec<_> = list
            .split_whitespace()
            .filter_map(|word| word.strip_prefix(ONE))
            .collect();
        let calls = CALLS.into_iter();
        calls.filter(|call| listed.contains(call)).collect()
    })
}

/// Reads what perf prints at its end: how often each call was made.
pub(crate) fn calls(text: &str) -> BTreeMap<String, f64> {
    let mut all = 0.0;
    let mut calls = BTreeMap::new();
    for (name, count) in counters(text) {
        if name == ALL {
            all = count;
        } else if let Some(call) = name.strip_prefix(ONE) {
            calls.insert(call.to_owned(), count);
        }
    }
    let others = all - calls.values().sum::<f64>();
    calls.insert(OTHERS.to_owned(), others.max(0.0));
    calls
}

/// Name and count of each line `count,unit,name,…`.
fn counters(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let mut columns = line.split(',');
        let count = columns.next()?.parse().ok()?;
        Some((columns.nth(1)?, count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_perf_are_read_and_the_rest_is_others() {
        let text = "a word of the program\n\
                    100,,raw_syscalls:sys_enter,51234,100.00,,\n\
                    40,,syscalls:sys_enter_futex,51234,100.00,,\n\
                    0,,syscalls:sys_enter_read,51234,100.00,,\n\
                    <not counted>,,syscalls:sys_enter_write,0,0.00,,\n";
        let calls = calls(text);
        assert_eq!(calls["futex"], 40.0);
        assert_eq!(calls["read"], 0.0);
        assert_eq!(calls[OTHERS], 60.0);
        assert!(!calls.contains_key("write"));
    }
}
