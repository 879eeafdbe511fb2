//! macOS and the BSDs: register with the kqueue of `polling`, and wait on it, directly.
//!
//! | epoll | kqueue | here |
//! |---|---|---|
//! | one event for both directions | one event a filter | two events, as in libuv |
//! | `EPOLLET` | `EV_CLEAR` | each arrival is an event again |
//! | `EPOLLRDHUP` | `EV_EOF` of the read filter | EOF is reported with the last bytes |
//! | `EPOLLERR` of a pipe without reader | `EPIPE` for the write filter | an event of this file |
//! | `EPOLLPRI` | not on all platforms | unsupported; see below |
//! | an eventfd ends the wait | `EVFILT_USER`, not on all platforms | a pipe, read when full |
//! | a timerfd | `EVFILT_TIMER` | whole milliseconds |
//! | a wait of any length | macOS refuses one of years | at most 10^6 seconds, then again |
//! | a file is refused | a file is always ready | refused as well, by its type |
//! | a terminal is a source | macOS refuses some | the thread pool reads them |
//! | a closed descriptor is forgotten | likewise | so is its number, at its `delete` |
//! | a pidfd | `NOTE_EXIT` | a queue for each child, `sys/process/kqueue.rs` |
//! | inotify | `EVFILT_VNODE` | a queue for all files, `sys/watch/kqueue.rs` |
//! | a signalfd | `EVFILT_SIGNAL` | neither: one handler on all of Unix |
//! | a child inherits the queue | it does not | `reinit_after_fork` is unsupported |
//!
//! A read stops at urgent data. Without an event for it, what follows it is read when more data
//! arrives.
//!
//! `polling` keeps a list of its own of what is registered, which a descriptor that other code has
//! closed never leaves, and hides the flags of an event. Its timer and its notification are not
//! used, so it stays silent.
#![allow(unsafe_code, reason = "the caller keeps a registered source open")]

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use polling::AsSource;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::sys::descriptor;
use crate::sys::platform::kqueue::{self, EventFilter, EventFlags, Timespec};
use crate::sys::poller::Report;
use crate::sys::poller::selector::{Kernel, Selector};
use crate::sys::poller::{BATCH, Event, Interest, MAX_KEY, NOTIFY_KEY, PollEvents, Ready};

/// The key of the timer's event; see `Selector::set_timer`.
const TIMER_KEY: usize = MAX_KEY + 1;

/// The longest wait in one call: macOS refuses one of some years. The loop waits again.
const LONGEST_WAIT: u64 = 1_000_000 * 1_000_000_000;

/// The number of the timer. No other timer is in the queue.
const TIMER: isize = 1;

const ADD: EventFlags = EventFlags::ADD;
const ADD_EDGE: EventFlags = EventFlags::ADD.union(EventFlags::CLEAR);
const DELETE: EventFlags = EventFlags::DELETE;

/// The readiness of a source whose reader is gone.
const BROKEN: Ready = Ready::WRITE.with(Ready::WRITE_FOR_GOOD);

/// The queue and the pipe that interrupts its wait.
///
/// The `Backend`s share it. It is closed with the poller and the last of them, even if notifiers
/// are left: they hold weak references.
pub(in crate::sys) struct Shared {
    poller: polling::Poller,
    pipe: (OwnedFd, OwnedFd),
}

/// The kernel objects of a loop.
pub(in crate::sys) struct Queue {
    kernel: Arc<Shared>,
    /// The registered descriptors: the kernel would change the registration of one that is
    /// registered twice.
    registered: RefCell<HashSet<RawFd>>,
    /// The sources, with their keys, whose reader was gone when they were registered for writing:
    /// the kernel refuses that, so the next wait reports them.
    broken: RefCell<Vec<(RawFd, usize)>>,
    /// Where the kernel puts the events of a wait.
    buffer: RefCell<Vec<kqueue::Event>>,
}

impl Selector for Queue {
    const REPORTS_END: bool = true;
    const REPORTS_HANG_UP: bool = true;
    const HAS_TIMER: bool = true;

    type Kernel = Shared;
    type Event = Event;

    fn new() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        let pipe = descriptor::pipe()?;
        let reader = EventFilter::Read(pipe.0.as_raw_fd());
        let [added] = kqueue::apply(&poller, [kqueue::change(reader, ADD_EDGE, NOTIFY_KEY)])?;
        added?;
        Ok(Self {
            kernel: Arc::new(Shared { poller, pipe }),
            registered: RefCell::default(),
            broken: RefCell::default(),
            buffer: RefCell::new(Vec::with_capacity(BATCH)),
        })
    }

    fn kernel(&self) -> &Arc<Shared> {
        &self.kernel
    }

    fn set_timer(&self, delay: Option<u64>) -> io::Result<()> {
        let timer = |timer| EventFilter::Timer {
            ident: TIMER,
            timer,
        };
        // The timer is replaced: not all platforms set one again that exists. The delete fails if
        // there is none.
        let stop = kqueue::change(timer(Some(Duration::from_millis(1))), DELETE, TIMER_KEY);
        let Some(delay) = delay else {
            let [_] = kqueue::apply(&self.kernel.poller, [stop])?;
            return Ok(());
        };
        let flags = ADD | EventFlags::ONESHOT;
        let start = kqueue::change(timer(Some(rounded(delay))), flags, TIMER_KEY);
        let [_, started] = kqueue::apply(&self.kernel.poller, [stop, start])?;
        started
    }

    unsafe fn add(&self, source: &impl AsSource, key: usize, interest: Interest) -> io::Result<()> {
        self.enter(source)?;
        let number = source.source().as_raw_fd();
        let read = kqueue::change(EventFilter::Read(number), ADD_EDGE, key);
        let write = kqueue::change(EventFilter::Write(number), ADD_EDGE, key);
        let added = match interest {
            Interest::Read => kqueue::apply(&self.kernel.poller, [read]).and_then(|[read]| read),
            Interest::Both => kqueue::apply(&self.kernel.poller, [read, write])
                .and_then(|[read, write]| either(read, self.unless_broken(write, number, key))),
        };
        if added.is_err() {
            self.registered.borrow_mut().remove(&number);
        }
        added
    }

    fn add_write(&self, source: &impl AsSource, key: usize) -> io::Result<()> {
        let number = source.source().as_raw_fd();
        let write = kqueue::change(EventFilter::Write(number), ADD_EDGE, key);
        let [added] = kqueue::apply(&self.kernel.poller, [write])?;
        self.unless_broken(added, number, key)
    }

    /// The end of what the peer writes is an event of the read filter. Without an interest in data,
    /// that filter is edge-triggered: it would report unread data in every turn.
    fn set_level(
        &self,
        source: &impl AsSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()> {
        if events.contains(PollEvents::PRIORITIZED) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if is_new {
            self.enter(source)?;
        }
        let number = source.source().as_raw_fd();
        let read_flags = if events.contains(PollEvents::READABLE) {
            ADD
        } else if events.contains(PollEvents::DISCONNECT) {
            ADD_EDGE
        } else {
            DELETE
        };
        let write_flags = if events.contains(PollEvents::WRITABLE) {
            ADD
        } else {
            DELETE
        };
        let (read, write) = (EventFilter::Read, EventFilter::Write);
        self.forget_broken(number);
        let set = kqueue::apply(
            &self.kernel.poller,
            [
                // A filter keeps its trigger when it is added again: it is deleted first.
                kqueue::change(read(number), DELETE, key),
                kqueue::change(write(number), DELETE, key),
                kqueue::change(read(number), read_flags, key),
                kqueue::change(write(number), write_flags, key),
            ],
        )
        .and_then(|[_, _, read, write]| {
            asked(read, read_flags)?;
            self.unless_broken(asked(write, write_flags), number, key)
        });
        if set.is_err() && is_new {
            let _ = self.delete(source);
        }
        set
    }

    /// The number is forgotten even if the kernel does not know it, which
    /// says that other code has closed the descriptor.
    fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        let number = source.source().as_raw_fd();
        self.registered.borrow_mut().remove(&number);
        self.forget_broken(number);
        let read = kqueue::change(EventFilter::Read(number), DELETE, 0);
        let write = kqueue::change(EventFilter::Write(number), DELETE, 0);
        let deleted = kqueue::apply(&self.kernel.poller, [read, write])?;
        let [read, write] = deleted.map(|result| asked(result, DELETE));
        read.and(write)
    }

    fn wait(&self, list: &mut Vec<Event>, timeout: Option<u64>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| timespec(timeout.min(LONGEST_WAIT)));
        let mut buffer = self.buffer.borrow_mut();
        buffer.clear();
        kqueue::wait(&self.kernel.poller, &mut buffer, timeout.as_ref())?;
        list.extend(buffer.iter().map(translate));
        list.extend(
            self.broken
                .borrow_mut()
                .drain(..)
                .map(|(_, key)| Event { key, ready: BROKEN }),
        );
        Ok(())
    }
}

impl Queue {
    /// Notes a descriptor that is about to be registered.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` for one that is registered, `PermissionDenied` for a file or a directory, as
    /// from epoll: both are always ready for a kqueue.
    fn enter(&self, source: &impl AsSource) -> io::Result<()> {
        let source = source.source();
        // What has no state is no file.
        if let Ok(state) = rustix::fs::fstat(source) {
            let kind = FileType::from_raw_mode(state.st_mode);
            if matches!(kind, FileType::RegularFile | FileType::Directory) {
                return Err(Errno::PERM.into());
            }
        }
        if self.registered.borrow_mut().insert(source.as_raw_fd()) {
            Ok(())
        } else {
            Err(Errno::EXIST.into())
        }
    }

    /// Returns the result of a registration for writing. EPIPE says that the reader of a pipe is
    /// gone. That is an event here, as with epoll: an attempt to write returns the error.
    fn unless_broken(&self, added: io::Result<()>, number: RawFd, key: usize) -> io::Result<()> {
        match added {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.broken.borrow_mut().push((number, key));
                self.kernel.notify();
                Ok(())
            }
            added => added,
        }
    }

    fn forget_broken(&self, number: RawFd) {
        self.broken.borrow_mut().retain(|(of, _)| *of != number);
    }
}

/// Returns the result of a registration for both directions. One of them is enough: another queue
/// has no write filter, and the writing end of a pipe no read filter.
fn either(read: io::Result<()>, write: io::Result<()>) -> io::Result<()> {
    match (read, write) {
        (Ok(()), _) | (_, Ok(())) => Ok(()),
        (error, _) => error,
    }
}

/// Returns the result of a change. A filter that does not exist is deleted already.
fn asked(result: io::Result<()>, flags: EventFlags) -> io::Result<()> {
    match result {
        Err(error) if flags == DELETE && error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Returns a delay that the timer of every platform takes: whole milliseconds, rounded up. A host
/// that is woken too early asks again.
fn rounded(delay: u64) -> Duration {
    let delay = Duration::from_millis(delay.min(LONGEST_WAIT).div_ceil(1_000_000).max(1));
    // `rustix` passes all but whole seconds as nanoseconds, of which 32 bits hold two seconds.
    if cfg!(target_pointer_width = "32") && delay.as_secs() > 0 {
        Duration::from_secs(delay.as_secs())
    } else {
        delay
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    Timespec {
        // Both fit: at most 10^15 nanoseconds.
        tv_sec: (nanoseconds / 1_000_000_000) as _,
        tv_nsec: (nanoseconds % 1_000_000_000) as _,
    }
}

impl Kernel for Shared {
    fn poller(&self) -> &polling::Poller {
        &self.poller
    }

    fn notify(&self) {
        let (reader, writer) = &self.pipe;
        // The pipe is edge-triggered: every write is an event, so it is read only when it is full.
        // The write must be repeated after `EINTR`: the wake would be lost, and no other write
        // follows it.
        loop {
            match rustix::io::write(writer, &[0]) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => drop(rustix::io::read(reader, &mut [0; 4096])),
                written => {
                    debug_assert!(written.is_ok(), "writing to a pipe: {written:?}");
                    return;
                }
            }
        }
    }
}

/// Returns the event of one filter.
fn translate(event: &kqueue::Event) -> Event {
    let is_end = event.flags().contains(EventFlags::EOF);
    let ready = match (event.filter(), is_end) {
        (EventFilter::Write(_), false) => Ready::WRITE,
        (EventFilter::Write(_), true) => BROKEN,
        (_, false) => Ready::READ,
        (_, true) => Ready::READ.with(Ready::READ_FOR_GOOD).with(Ready::HANG_UP),
    };
    Event {
        key: kqueue::key(event),
        ready,
    }
}

impl Report for Event {
    #[inline]
    fn key(self) -> usize {
        self.key
    }

    #[inline]
    fn ready(self) -> Ready {
        if self.ready.intersects(Ready::HANG_UP) {
            // macOS notifies the writer of a pipe by the read filter that the reader is gone.
            self.ready.with(Ready::WRITE)
        } else {
            self.ready
        }
    }

    fn level(self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        let ready = [
            (Ready::READ, PollEvents::READABLE),
            (Ready::WRITE, PollEvents::WRITABLE),
            (Ready::HANG_UP, PollEvents::DISCONNECT),
        ]
        .into_iter()
        .filter(|(ready, _)| self.ready.intersects(*ready))
        .fold(PollEvents::NONE, |all, (_, event)| all | event)
        .intersection(asked);
        (!ready.is_empty()).then_some(Ok(ready))
    }

    #[cfg(feature = "test-util")]
    fn of(event: Event) -> Self {
        event
    }

    #[cfg(feature = "test-util")]
    fn with(self, later: Self) -> Self {
        Self {
            ready: self.ready.with(later.ready),
            ..self
        }
    }
}
