//! The clock and the wait of libuv, replaced.
//!
//! libuv is linked into this program, so its calls of `clock_gettime` and `epoll_pwait` reach the
//! functions here. They pass them on to the kernel, except on a thread on which [`replace`] is in
//! force: there the clock stands still, and a wait without events moves it to the end of the wait.
// They are defined in the program itself: a definition in a library would have to be asked for by
// the linker.

use std::cell::Cell;
use std::ffi::{c_int, c_long};

/// The time at which a replaced clock begins, in nanoseconds.
const BEGIN: u64 = 1_000_000_000_000;

const MILLISECOND: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Replaced {
    now: u64,
    /// The descriptor whose waits are replaced, and the one whose events come first.
    epoll: c_int,
    first: c_int,
    before_wait: fn(),
}

thread_local! {
    static REPLACED: Cell<Option<Replaced>> = const { Cell::new(None) };
}

/// Replaces the clock of this thread until [`restore`].
pub(crate) fn replace() {
    REPLACED.set(Some(Replaced {
        now: BEGIN,
        epoll: -1,
        first: -1,
        before_wait: || (),
    }));
}

/// Replaces the waits on `epoll`: `before_wait` is called before each, and the events of `first`
/// come first.
pub(crate) fn replace_wait(epoll: c_int, first: c_int, before_wait: fn()) {
    let replaced = REPLACED.get().expect("the clock is replaced");
    REPLACED.set(Some(Replaced {
        epoll,
        first,
        before_wait,
        ..replaced
    }));
}

pub(crate) fn restore() {
    REPLACED.set(None);
}

/// Moves the replaced clock.
pub(crate) fn advance(milliseconds: u64) {
    if let Some(replaced) = REPLACED.get() {
        let now = replaced.now + milliseconds * MILLISECOND;
        REPLACED.set(Some(Replaced { now, ..replaced }));
    }
}

/// # Safety
///
/// The conditions of the C function apply.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    match REPLACED.get() {
        // SAFETY: the caller passes a valid pointer.
        None => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int },
        Some(replaced) => {
            let now = libc::timespec {
                tv_sec: (replaced.now / 1_000_000_000) as libc::time_t,
                tv_nsec: (replaced.now % 1_000_000_000) as c_long,
            };
            // SAFETY: the caller passes a valid pointer.
            unsafe { time.write(now) };
            0
        }
    }
}

/// # Safety
///
/// The conditions of the C function apply.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut libc::epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const libc::sigset_t,
) -> c_int {
    let replaced = REPLACED.get().filter(|replaced| replaced.epoll == epoll);
    let asked = replaced.map_or(timeout, |replaced| {
        (replaced.before_wait)();
        0
    });
    // The kernel's set of signals has 64 bits.
    let size = size_of::<u64>();
    // SAFETY: the arguments are those of the caller but for the timeout.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait,
            epoll,
            events,
            most,
            asked,
            mask,
            size,
        ) as c_int
    };
    let Some(replaced) = replaced else {
        return count;
    };
    if count == 0 && timeout != 0 {
        assert!(timeout > 0, "libuv waits for ever");
        advance(timeout as u64);
    }
    if let Ok(count) = usize::try_from(count) {
        // SAFETY: the kernel has filled in so many events.
        let events = unsafe { std::slice::from_raw_parts_mut(events, count) };
        // No order of events is promised. This one is that of the other side.
        events.sort_by_key(|event| {
            let descriptor = event.u64 as c_int;
            (descriptor != replaced.first, descriptor)
        });
    }
    count
}
