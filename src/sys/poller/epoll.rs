//! Linux and Android: register through `polling`, wait on its epoll descriptor directly.

use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Weak};

use polling::{AsSource, PollMode};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::{DupFlags, Errno, dup3};

use super::{BATCH, BackendFd, Event, Maker, NOTIFY_KEY, PollEvents, Ready};

/// Whether the end of a stream is an event of its own, so that a short read means that nothing is left.
pub(crate) const REPORTS_END: bool = true;
/// Whether an event that somebody waits for has to be asked for each time.
pub(crate) const NEEDS_REARM: bool = false;
/// Whether urgent data and hang-ups are events of their own.
pub(crate) const REPORTS_PRIORITY: bool = true;

/// What a level-triggered source can be watched for.
const FLAGS: [(PollEvents, epoll::EventFlags); 4] = [
    (PollEvents::READABLE, epoll::EventFlags::IN),
    (PollEvents::WRITABLE, epoll::EventFlags::OUT),
    (PollEvents::DISCONNECT, epoll::EventFlags::RDHUP),
    (PollEvents::PRIORITIZED, epoll::EventFlags::PRI),
];

/// The epoll instance and the eventfd that interrupts its wait.
pub(crate) struct Poller {
    poller: polling::Poller,
    /// Closed with the poller, whoever still holds a notifier. A thread that is just writing to it closes it then.
    event_fd: Arc<OwnedFd>,
    pub(super) maker: Maker,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // SAFETY: a source must be deleted before it is dropped. The eventfd outlives the epoll descriptor, which `Poller`
        // drops first and which takes the registration with it when it closes.
        unsafe {
            let interest = polling::Event::readable(NOTIFY_KEY);
            poller.add_with_mode(&event_fd, interest, PollMode::Edge)?;
        }
        Ok(Self {
            poller,
            event_fd: Arc::new(event_fd),
            maker: Maker::this_process(),
        })
    }

    /// In a child after `fork`: replaces what is shared with the parent. Descriptors keep their numbers, so whoever holds
    /// one has the new one. Nothing is registered afterwards but the notifier.
    pub(crate) fn reinit(&self) -> io::Result<()> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let event_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = epoll::EventData::new_u64(NOTIFY_KEY as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        replace(self.event_fd.as_fd(), &event_fd)?;
        epoll::add(&queue, &self.event_fd, data, flags)?;
        replace(self.poller.as_fd(), &queue)?;
        self.maker.take_over();
        Ok(())
    }

    pub(crate) fn notifier(&self) -> Notifier {
        Notifier {
            event_fd: Arc::downgrade(&self.event_fd),
        }
    }

    pub(crate) fn backend_fd(&self) -> BackendFd<'_> {
        self.poller.as_fd()
    }

    /// Registers both directions, edge-triggered, once for the life of the source.
    ///
    /// # Safety
    ///
    /// `source` must be deleted before it is dropped.
    pub(super) unsafe fn add(&self, source: &impl AsSource, key: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        self.maker.check()?;
        let source = source.source();
        // SAFETY: the caller's promise.
        unsafe {
            self.poller
                .add_with_mode(&source, polling::Event::all(key), PollMode::Edge)?;
        }
        // `polling` cannot ask for the peer's half-close. Without it, the end of a stream that arrived together with
        // its last bytes would cost a read that finds nothing after every short read.
        let data = epoll::EventData::new_u64(key as u64);
        let flags = Flags::IN | Flags::PRI | Flags::OUT | Flags::RDHUP | Flags::ET;
        epoll::modify(&self.poller, source, data, flags).map_err(|error| {
            // The caller hears that it is not registered, so it must not be.
            let _ = self.poller.delete(source);
            error.into()
        })
    }

    /// An edge-triggered source reports every change; there is nothing to ask for again.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is shared with the backends that have something to do"
    )]
    pub(super) fn rearm(&self, _: &impl AsSource, _: usize, _: bool, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// Watches a source for some events, level-triggered.
    pub(super) fn set_level(
        &self,
        source: &impl AsSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()> {
        self.maker.check()?;
        let data = epoll::EventData::new_u64(key as u64);
        let flags = FLAGS
            .into_iter()
            .filter(|(event, _)| events.contains(*event))
            .fold(epoll::EventFlags::empty(), |all, (_, flag)| all | flag);
        if is_new {
            epoll::add(&self.poller, source.source(), data, flags)?;
        } else {
            epoll::modify(&self.poller, source.source(), data, flags)?;
        }
        Ok(())
    }

    pub(super) fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        if self.maker.is_parent() {
            // It would be taken out of the parent's poller.
            return Ok(());
        }
        self.poller.delete(source.source())
    }

    /// Waits until an event, a notification or the timeout in nanoseconds (`None`: for ever), rounded up to whole
    /// milliseconds.
    ///
    /// # Errors
    ///
    /// `Interrupted` when a signal ended the wait; else what the system says of the epoll descriptor.
    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<u64>) -> io::Result<()> {
        events.clear();
        self.maker.check()?;
        let timeout = timeout.map(|timeout| Timespec {
            // Both fit: at most 2^64 nanoseconds.
            tv_sec: (timeout / 1_000_000_000) as i64,
            tv_nsec: (timeout % 1_000_000_000) as _,
        });
        let buffer = rustix::buffer::spare_capacity(&mut events.list);
        epoll::wait(&self.poller, buffer, timeout.as_ref())?;
        Ok(())
    }
}

/// Makes the number of `old` stand for what `new` does.
fn replace(old: BorrowedFd<'_>, new: &OwnedFd) -> io::Result<()> {
    // SAFETY: never dropped, so the number stays its owner's. What it stood for is closed, and something of the same kind
    // takes its place.
    let mut owned = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(old.as_raw_fd()) });
    Ok(dup3(new, &mut owned, DupFlags::CLOEXEC)?)
}

/// Ends the poller's wait, from any thread and from signal handlers. Without effect once the poller is gone.
#[derive(Clone)]
pub(crate) struct Notifier {
    event_fd: Weak<OwnedFd>,
}

impl Notifier {
    pub(crate) fn notify(&self) {
        let Some(event_fd) = self.event_fd.upgrade() else {
            return;
        };
        // Edge-triggered: every write is an event, so the counter is never read. A write that did not happen would be a wake
        // that is lost, and no other write would follow.
        let one = 1_u64.to_ne_bytes();
        loop {
            match rustix::io::write(&event_fd, &one) {
                Err(Errno::INTR) => {}
                // The counter is full: after 2^64 - 2 writes.
                Err(Errno::AGAIN) => drop(rustix::io::read(&event_fd, &mut [0; 8])),
                written => {
                    debug_assert!(written.is_ok(), "writing to an eventfd: {written:?}");
                    return;
                }
            }
        }
    }
}

/// The events of one wait, handed out one by one.
pub(crate) struct Events {
    list: Vec<epoll::Event>,
    next: Cell<usize>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            list: Vec::with_capacity(BATCH),
            next: Cell::new(0),
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.next.set(0);
    }

    /// How many events the wait returned, those of the notifier included.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The next event of a source; the same until [`advance`](Self::advance).
    #[inline]
    pub(crate) fn next(&self) -> Option<Event> {
        loop {
            let event = self.list.get(self.next.get())?;
            let key = event.data.u64() as usize;
            if key != NOTIFY_KEY {
                let ready = translate(event.flags);
                return Some(Event { key, ready });
            }
            self.advance();
        }
    }

    /// What the next event says of a level-triggered source, of what it was asked for. `None`: nothing of that.
    ///
    /// # Errors
    ///
    /// When the source is in error (R238).
    pub(crate) fn reported(&self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        let broken = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
        let flags = self.list.get(self.next.get())?.flags;
        let ready = FLAGS
            .into_iter()
            .filter(|(event, flag)| asked.contains(*event) && flags.contains(*flag))
            .fold(PollEvents::NONE, |all, (event, _)| all | event);
        let is_error = flags.contains(epoll::EventFlags::ERR);
        // An error or a hang-up alone says nothing of the directions: an attempt in each will tell.
        let is_alone = ready.is_empty() && flags.intersects(broken) && !flags.contains(broken);
        let ready = if is_alone { asked } else { ready };
        if is_error && !ready.contains(PollEvents::PRIORITIZED) {
            Some(Err(Errno::BADF.into()))
        } else {
            (!ready.is_empty()).then_some(Ok(ready))
        }
    }

    /// The next event has been dealt with.
    #[inline]
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.get() >= self.list.len()
    }
}

#[inline]
fn translate(flags: epoll::EventFlags) -> Ready {
    use epoll::EventFlags as Flags;
    // By far the most usual: something to read, on a stream that has room.
    if flags == Flags::IN.union(Flags::OUT) {
        Ready::READ.with(Ready::WRITE)
    } else {
        translate_any(flags)
    }
}

#[inline(never)]
fn translate_any(flags: epoll::EventFlags) -> Ready {
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
        // A read ends at urgent data although there may be more behind it.
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
