//! Linux and Android: register with the epoll descriptor of `polling`, and wait on it, directly.
#![allow(unsafe_code, reason = "the caller keeps a registered source open")]

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use polling::AsSource;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::sys::descriptor::dup_onto;
#[cfg(feature = "test-util")]
use crate::sys::poller::Event;
use crate::sys::poller::Report;
use crate::sys::poller::selector::{Kernel, Selector};
use crate::sys::poller::{Interest, MAX_KEY, NOTIFY_KEY, PollEvents, Ready};

/// The key of the timer's event; see `Selector::set_timer`.
const TIMER_KEY: usize = MAX_KEY + 1;

/// The epoll flags of the level-triggered events.
const FLAGS: [(PollEvents, epoll::EventFlags); 4] = [
    (PollEvents::READABLE, epoll::EventFlags::IN),
    (PollEvents::WRITABLE, epoll::EventFlags::OUT),
    (PollEvents::DISCONNECT, epoll::EventFlags::RDHUP),
    (PollEvents::PRIORITIZED, epoll::EventFlags::PRI),
];

/// The epoll flags of the edge-triggered registrations.
const READ: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::PRI)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);
const BOTH: epoll::EventFlags = READ.union(epoll::EventFlags::OUT);

/// The epoll instance and the eventfd that interrupts its wait.
///
/// The `Backend`s share it. It is closed with the poller and the last of them, even if notifiers
/// are left: they hold weak references. If a thread is just writing to the eventfd, that thread
/// closes both.
pub(in crate::sys) struct Shared {
    poller: polling::Poller,
    event_fd: OwnedFd,
}

/// The kernel objects of a loop.
pub(in crate::sys) struct Queue {
    kernel: Arc<Shared>,
    /// The timerfd, created when the timer is first set.
    timer: OnceCell<OwnedFd>,
}

impl Selector for Queue {
    const REPORTS_END: bool = true;
    const REPORTS_PRIORITY: bool = true;
    const REPORTS_HANG_UP: bool = true;
    const HAS_TIMER: bool = true;

    type Kernel = Shared;
    type Event = epoll::Event;

    fn new() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        add_edge(&poller, &event_fd, NOTIFY_KEY)?;
        Ok(Self {
            kernel: Arc::new(Shared { poller, event_fd }),
            timer: OnceCell::new(),
        })
    }

    fn kernel(&self) -> &Arc<Shared> {
        &self.kernel
    }

    /// The descriptors keep their numbers, so holders of a number get the new object.
    fn reinit(&self) -> io::Result<()> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        replace(self.kernel.event_fd.as_fd(), &event_fd)?;
        add_edge(&queue, &self.kernel.event_fd, NOTIFY_KEY)?;
        if let Some(timer) = self.timer.get() {
            replace(timer.as_fd(), &new_timer()?)?;
            add_edge(&queue, timer, TIMER_KEY)?;
        }
        replace(self.kernel.poller.as_fd(), &queue)
    }

    fn set_timer(&self, delay: Option<u64>) -> io::Result<()> {
        let timer = match (self.timer.get(), delay) {
            (Some(timer), _) => timer,
            (None, None) => return Ok(()),
            (None, Some(_)) => {
                let timer = new_timer()?;
                add_edge(&self.kernel.poller, &timer, TIMER_KEY)?;
                self.timer.get_or_init(|| timer)
            }
        };
        let value = Itimerspec {
            it_interval: Timespec::default(),
            // A value of zero would stop the timer.
            it_value: delay.map_or_else(Timespec::default, |delay| timespec(delay.max(1))),
        };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }

    /// `polling` cannot request `EPOLLRDHUP`. Without it, EOF that arrives with the last bytes
    /// would be no event, and every short read would need another read to find out.
    unsafe fn add(&self, source: &impl AsSource, key: usize, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key as u64);
        let flags = match interest {
            Interest::Read => READ,
            Interest::Both => BOTH,
        };
        Ok(epoll::add(
            &self.kernel.poller,
            source.source(),
            data,
            flags,
        )?)
    }

    fn add_write(&self, source: &impl AsSource, key: usize) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key as u64);
        Ok(epoll::modify(
            &self.kernel.poller,
            source.source(),
            data,
            BOTH,
        )?)
    }

    fn set_level(
        &self,
        source: &impl AsSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key as u64);
        let flags = FLAGS
            .into_iter()
            .filter(|(event, _)| events.contains(*event))
            .fold(epoll::EventFlags::empty(), |all, (_, flag)| all | flag);
        if is_new {
            epoll::add(&self.kernel.poller, source.source(), data, flags)?;
        } else {
            epoll::modify(&self.kernel.poller, source.source(), data, flags)?;
        }
        Ok(())
    }

    fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        self.kernel.poller.delete(source.source())
    }

    /// A kernel without precise waits rounds the timeout up to milliseconds.
    // Its only caller is `Poller::wait`, on the way of every turn.
    #[inline]
    fn wait(&self, list: &mut Vec<epoll::Event>, timeout: Option<u64>) -> io::Result<()> {
        let queue = &self.kernel.poller;
        let timeout = match timeout {
            // A busy loop does not wait, and one without timers waits for ever.
            Some(0) => Some(AT_ONCE),
            None => None,
            Some(timeout) if PRECISE.wait(queue.as_fd(), list, timeout)? => return Ok(()),
            Some(timeout) => Some(timespec(timeout)),
        };
        epoll::wait(
            queue,
            rustix::buffer::spare_capacity(list),
            timeout.as_ref(),
        )?;
        Ok(())
    }
}

/// The timeout of a wait that returns at once.
const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

#[inline]
fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        // Both fit: at most 2^64 nanoseconds.
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}

fn new_timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Registers the eventfd or the timer, edge-triggered: neither is read. The kernel deletes them
/// when they are closed, or with the queue.
fn add_edge(queue: impl AsFd, descriptor: &OwnedFd, key: usize) -> io::Result<()> {
    let data = epoll::EventData::new_u64(key as u64);
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    Ok(epoll::add(queue, descriptor, data, flags)?)
}

/// Makes the descriptor number of `old` refer to the object of `new` (`dup2`).
fn replace(old: BorrowedFd<'_>, new: &OwnedFd) -> io::Result<()> {
    // Android has no `dup3` with a flag; no other thread exists here that could start a program
    // between the calls.
    dup_onto(old.as_raw_fd(), new)?;
    Ok(fcntl_setfd(old, FdFlags::CLOEXEC)?)
}

impl Kernel for Shared {
    fn poller(&self) -> &polling::Poller {
        &self.poller
    }

    fn notify(&self) {
        let event_fd = &self.event_fd;
        // The eventfd is edge-triggered: every write is an event, so the counter is never read. The
        // write must be repeated after `EINTR`: the wake would be lost, and no other write follows
        // it.
        let one = 1_u64.to_ne_bytes();
        loop {
            match rustix::io::write(event_fd, &one) {
                Err(Errno::INTR) => {}
                // The counter is full after 2^64 - 2 writes: reset it.
                Err(Errno::AGAIN) => drop(rustix::io::read(event_fd, &mut [0; 8])),
                written => {
                    debug_assert!(written.is_ok(), "writing to an eventfd: {written:?}");
                    return;
                }
            }
        }
    }
}

impl Report for epoll::Event {
    #[inline]
    fn key(self) -> usize {
        self.data.u64() as usize
    }

    #[inline]
    fn ready(self) -> Ready {
        use epoll::EventFlags as Flags;
        // Fast path for by far the most frequent events: data to read, on a stream that is
        // registered for reading, or for both directions and writable.
        let flags = self.flags;
        if flags == Flags::IN {
            Ready::READ
        } else if flags == Flags::IN.union(Flags::OUT) {
            Ready::READ_AND_WRITE
        } else {
            translate(flags)
        }
    }

    fn level(self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        let broken = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
        let flags = self.flags;
        let ready = FLAGS
            .into_iter()
            .filter(|(event, flag)| asked.contains(*event) && flags.contains(*flag))
            .fold(PollEvents::NONE, |all, (event, _)| all | event);
        let is_error = flags.contains(epoll::EventFlags::ERR);
        if is_error && !ready.contains(PollEvents::PRIORITIZED) {
            return Some(Err(Errno::BADF.into()));
        }
        // A hang-up carries no direction: an attempt in each one returns the details (R238).
        let ready = if flags.intersects(broken) {
            asked
        } else {
            ready
        };
        (!ready.is_empty()).then_some(Ok(ready))
    }

    #[cfg(feature = "test-util")]
    fn of(Event { key, ready }: Event) -> Self {
        use epoll::EventFlags as Flags;
        let mut flags = Flags::empty();
        flags.set(Flags::IN, ready.intersects(Ready::READ));
        flags.set(Flags::OUT, ready.intersects(Ready::WRITE));
        let is_hung_up = ready.intersects(Ready::HANG_UP);
        flags.set(Flags::RDHUP, is_hung_up);
        // The end of both directions, or an error of a socket that has no connection.
        let broken = if is_hung_up { Flags::HUP } else { Flags::ERR };
        flags.set(broken, ready.intersects(Ready::WRITE_FOR_GOOD));
        let data = epoll::EventData::new_u64(key as u64);
        Self { flags, data }
    }

    #[cfg(feature = "test-util")]
    fn with(self, later: Self) -> Self {
        // The fields of the kernel's structure are not aligned: they are copied, not borrowed.
        let (flags, more) = (self.flags, later.flags);
        Self {
            flags: flags | more,
            ..self
        }
    }
}

// Not inlined, so that the fast path above stays small in the poll phase.
#[inline(never)]
fn translate(flags: epoll::EventFlags) -> Ready {
    use epoll::EventFlags as Flags;
    let broken = Flags::ERR | Flags::HUP;
    let mut ready = Ready::default();
    if flags.intersects(broken | Flags::IN | Flags::PRI | Flags::RDHUP) {
        ready = ready.with(Ready::READ);
    }
    if flags.intersects(broken | Flags::OUT) {
        ready = ready.with(Ready::WRITE);
    }
    if flags.intersects(broken | Flags::PRI | Flags::RDHUP) {
        // A read stops at urgent data although more data may follow.
        ready = ready.with(Ready::READ_FOR_GOOD);
        if flags.intersects(broken) {
            ready = ready.with(Ready::WRITE_FOR_GOOD);
        }
        if flags.contains(Flags::PRI) {
            ready = ready.with(Ready::PRIORITY);
        }
        if flags.intersects(Flags::HUP | Flags::RDHUP) {
            ready = ready.with(Ready::HANG_UP);
        }
    }
    ready
}

/// Whether this process may make the call. An older kernel refuses it, and so do the filters of
/// some containers.
static PRECISE: Precise = Precise(AtomicBool::new(true));

/// A wait with a timeout in nanoseconds: `epoll_pwait2`, which Linux has since 5.11. rustix makes
/// the call only if the whole program gives up older kernels.
struct Precise(AtomicBool);

/// The timeout as the kernel takes it, on 32 bits, too.
#[repr(C)]
struct Timeout {
    seconds: i64,
    nanoseconds: i64,
}

impl Precise {
    /// Waits for events, at most for the given time, and fills `list`, which is empty. Returns
    /// `false` without a wait if the kernel refuses the call.
    ///
    /// # Errors
    ///
    /// `Interrupted` if a signal ended the wait; otherwise any OS error.
    fn wait(
        &self,
        queue: BorrowedFd<'_>,
        list: &mut Vec<epoll::Event>,
        nanoseconds: u64,
    ) -> io::Result<bool> {
        if !self.0.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let timeout = Timeout {
            // Both fit: at most 2^64 nanoseconds.
            seconds: (nanoseconds / 1_000_000_000) as i64,
            nanoseconds: (nanoseconds % 1_000_000_000) as i64,
        };
        debug_assert!(list.is_empty(), "the events of the last wait are taken");
        let room = list.spare_capacity_mut();
        // SAFETY: the kernel reads the timeout, and writes at most as many events as there is room
        // for. `Event` has the kernel's layout: rustix passes it on in the same way.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                queue.as_raw_fd(),
                room.as_mut_ptr(),
                libc::c_int::try_from(room.len()).unwrap_or(libc::c_int::MAX),
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            let is_refused = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
            self.0.store(!is_refused, Ordering::Relaxed);
            return if is_refused { Ok(false) } else { Err(error) };
        };
        // SAFETY: the kernel has written so many events to the start of the list.
        unsafe { list.set_len(count) };
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{PRECISE, Precise};
    use rustix::event::epoll::{CreateFlags, create};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn a_wait_is_not_rounded_up_to_a_millisecond() {
        let queue = create(CreateFlags::CLOEXEC).unwrap();
        let mut list = Vec::with_capacity(4);
        let tenth = Duration::from_micros(100);
        let mut shortest = Duration::MAX;
        for _ in 0..500 {
            let start = Instant::now();
            if !PRECISE.wait(queue.as_fd(), &mut list, 100_000).unwrap() {
                return; // a kernel before 5.11
            }
            let waited = start.elapsed();
            assert!(waited >= tenth && list.is_empty(), "{waited:?}");
            shortest = shortest.min(waited);
        }
        assert!(shortest < Duration::from_millis(1), "{shortest:?}");
    }

    #[test]
    fn a_call_that_was_refused_is_not_made_again() {
        let refused = Precise(AtomicBool::new(false));
        let queue = create(CreateFlags::CLOEXEC).unwrap();
        let mut list = Vec::with_capacity(4);
        let start = Instant::now();
        let hour = 3_600_000_000_000;
        assert!(!refused.wait(queue.as_fd(), &mut list, hour).unwrap());
        assert!(start.elapsed() < Duration::from_secs(3600) && list.is_empty());
        assert!(!refused.0.load(Ordering::Relaxed));
    }

    #[test]
    fn an_error_is_not_a_refusal() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut list = Vec::with_capacity(4);
        let precise = Precise(AtomicBool::new(true));
        let error = precise.wait(file.as_fd(), &mut list, 1).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(precise.0.load(Ordering::Relaxed));
    }
}
