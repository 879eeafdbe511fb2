//! macOS and the BSDs: a kqueue for each child, with the filter of its exit.
//!
//! The event may come before the child can be reaped. Its owner then asks again after SIGCHLD.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Pid;

use crate::sys::platform::kqueue::{EventFilter, EventFlags, ProcessEvents, apply, change, create};

/// Returns a queue that becomes readable when the child exits.
pub(in crate::sys) fn open(child: Pid) -> Option<OwnedFd> {
    let queue = create().ok()?;
    let filter = EventFilter::Proc {
        pid: child,
        flags: ProcessEvents::EXIT,
    };
    // The kernel refuses a child that has exited (ESRCH). Without a queue, it is asked about at
    // once.
    let [added] = apply(&queue, [change(filter, EventFlags::ADD, 0)]).ok()?;
    added.ok().map(|()| queue)
}

/// Sends a signal to the child of a descriptor. A queue takes no signals.
pub(in crate::sys) fn signal(_: &OwnedFd, child: Pid, number: i32) -> io::Result<()> {
    crate::sys::process::kill(child.as_raw_nonzero().get(), number)
}
