//! Platforms other than Linux: the wait and the notification of `polling`.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use polling::PollMode;

use super::asked::{Asked, Directions};
use super::{
    AsSource, BackendFd, Event, Interest, Maker, NOTIFY_KEY, PollEvents, RawSource, Ready,
    begin_read,
};

/// Whether EOF is an event of its own, so that a short read proves that no data is left. `polling`
/// does not report it.
pub(crate) const REPORTS_END: bool = false;
/// Whether an interest is one-shot, so that each wait has to register it again. Some platforms
/// offer only this mode.
pub(crate) const NEEDS_REARM: bool = true;
/// Whether urgent data is an event of its own.
pub(crate) const REPORTS_PRIORITY: bool = false;
/// Whether a hang-up is an event of its own.
pub(crate) const REPORTS_HANG_UP: bool = false;
/// Whether an event reports that this end has shut down reading. Windows has none for it.
#[cfg(feature = "net")]
pub(crate) const REPORTS_OWN_SHUTDOWN: bool = !cfg!(windows);
/// Whether [`Poller::set_timer`] works.
pub(crate) const HAS_TIMER: bool = false;

/// The longest wait in one call. A longer one fails on macOS, and never ends on Windows, where the
/// time is a number of milliseconds in 32 bits. The loop waits again.
const LONGEST_WAIT: Duration = Duration::from_secs(1_000_000);

/// A `polling` poller, which the `Backend`s share.
pub(super) struct Kernel {
    pub(super) poller: polling::Poller,
}

/// The kernel objects of a loop. The notifiers hold weak references to them.
pub(crate) struct Poller {
    pub(super) kernel: Arc<Kernel>,
    /// Edge-triggered where the platform offers it, otherwise one-shot.
    mode: PollMode,
    /// The interests in one-shot mode.
    asked: RefCell<Asked<RawSource>>,
    pub(super) maker: Maker,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        // `--cfg phaseloop_oneshot` selects the one-shot mode on Linux, to test it there.
        let mode = if poller.supports_edge() && !cfg!(phaseloop_oneshot) {
            PollMode::Edge
        } else {
            PollMode::Oneshot
        };
        Ok(Self {
            kernel: Arc::new(Kernel { poller }),
            mode,
            asked: RefCell::default(),
            maker: Maker::this_process(),
        })
    }

    /// Returns an error: only the Linux backend can replace inherited kernel objects.
    pub(crate) fn reinit(&self) -> io::Result<()> {
        let _ = &self.maker;
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn notifier(&self) -> Notifier {
        Notifier {
            kernel: Arc::downgrade(&self.kernel),
        }
    }

    #[cfg(unix)]
    pub(crate) fn backend_fd(&self) -> BackendFd<'_> {
        std::os::fd::AsFd::as_fd(&self.kernel.poller)
    }

    #[cfg(windows)]
    pub(crate) fn backend_fd(&self) -> BackendFd<'_> {
        std::os::windows::io::AsHandle::as_handle(&self.kernel.poller)
    }

    /// Returns an error if a timer is to be set: only the Linux backend has one.
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with the backend that has a timer"
    )]
    pub(crate) fn set_timer(&self, delay: Option<u64>) -> io::Result<()> {
        match delay {
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
            None => Ok(()),
        }
    }

    fn is_oneshot(&self) -> bool {
        matches!(self.mode, PollMode::Oneshot)
    }

    /// Registers the source for both directions: the first event tells what is ready.
    ///
    /// # Safety
    ///
    /// `source` must be deleted before it is dropped.
    pub(super) unsafe fn add(
        &self,
        source: &impl AsSource,
        key: usize,
        _: Interest,
    ) -> io::Result<()> {
        let raw = RawSource::of(source);
        // SAFETY: the contract of this function.
        unsafe { raw.add_to(&self.kernel.poller, key, self.mode)? };
        if self.is_oneshot() {
            let directions = raw.first_directions();
            self.asked.borrow_mut().insert(key, raw, directions);
        }
        Ok(())
    }

    /// Does nothing: a source is registered for both directions, and again by each wait.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is shared with the backend that has something to do"
    )]
    pub(super) fn add_write(&self, _: &impl AsSource, _: usize) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn rearm(
        &self,
        source: &impl AsSource,
        key: usize,
        readable: bool,
        writable: bool,
    ) -> io::Result<()> {
        let more = Directions {
            read: readable,
            write: writable,
        };
        if readable {
            begin_read(source);
        }
        match self.asked.borrow_mut().ask(key, more) {
            Some(all) => {
                let source = RawSource::of(source);
                source.modify_in(&self.kernel.poller, all.interest(key), self.mode)
            }
            None => Ok(()),
        }
    }

    /// Asks again for the directions that the events have taken back without reporting them.
    fn ask_again(&self, events: &[polling::Event]) {
        let mut asked = self.asked.borrow_mut();
        for event in events {
            let reported = Directions {
                read: event.readable,
                write: event.writable,
            };
            if let Some((source, left)) = asked.report(event.key, reported) {
                let interest = left.interest(event.key);
                // An error says that the descriptor was closed by other code.
                let _ = source.modify_in(&self.kernel.poller, interest, self.mode);
            }
        }
    }

    /// Registers a source for `events`, one-shot, or changes its registration. It is called again
    /// after each event.
    pub(super) fn set_level(
        &self,
        source: &impl AsSource,
        key: usize,
        events: PollEvents,
        is_new: bool,
    ) -> io::Result<()> {
        let (read, write) = (PollEvents::READABLE, PollEvents::WRITABLE);
        if events != events.intersection(read | write) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (read, write) = (events.contains(read), events.contains(write));
        let interest = polling::Event::new(key, read, write);
        let source = RawSource::of(source);
        let poller = &self.kernel.poller;
        if is_new {
            // SAFETY: the caller deletes the source before it is closed.
            unsafe { source.add_level_to(poller, interest) }
        } else {
            source.modify_in(poller, interest, PollMode::Oneshot)
        }
    }

    pub(super) fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        if self.maker.is_parent() {
            // The call would deregister it from the parent's poller.
            return Ok(());
        }
        let source = RawSource::of(source);
        self.asked.borrow_mut().remove(source);
        source.delete_from(&self.kernel.poller)
    }

    pub(crate) fn wait(&self, events: &mut Events, timeout: Option<u64>) -> io::Result<()> {
        events.clear();
        self.maker.check()?;
        let timeout = timeout.map(|timeout| Duration::from_nanos(timeout).min(LONGEST_WAIT));
        self.kernel.poller.wait(&mut events.buffer, timeout)?;
        events.list.extend(events.buffer.iter());
        events.buffer.clear();
        if self.is_oneshot() {
            self.ask_again(&events.list);
        }
        Ok(())
    }
}

#[cfg(unix)]
impl RawSource {
    /// Returns the directions that [`add_to`](Self::add_to) asks for.
    fn first_directions(self) -> Directions {
        Directions::BOTH
    }

    /// Registers the source for both directions.
    ///
    /// # Safety
    ///
    /// The source must be deleted before it is closed.
    unsafe fn add_to(self, poller: &polling::Poller, key: usize, mode: PollMode) -> io::Result<()> {
        // SAFETY: the contract of this function.
        unsafe { poller.add_with_mode(self.0, polling::Event::all(key), mode) }
    }

    /// Registers the source for one event.
    ///
    /// # Safety
    ///
    /// The source must be deleted before it is closed.
    unsafe fn add_level_to(
        self,
        poller: &polling::Poller,
        interest: polling::Event,
    ) -> io::Result<()> {
        // SAFETY: the contract of this function.
        unsafe { poller.add_with_mode(self.0, interest, PollMode::Oneshot) }
    }

    /// Changes what the source is registered for.
    fn modify_in(
        self,
        poller: &polling::Poller,
        interest: polling::Event,
        mode: PollMode,
    ) -> io::Result<()> {
        self.with(|source| poller.modify_with_mode(source, interest, mode))
    }

    fn delete_from(self, poller: &polling::Poller) -> io::Result<()> {
        self.with(|source| poller.delete(source))
    }
}

/// Ends the poller's wait, from any thread. It has no effect once the poller is dropped.
#[derive(Clone)]
pub(crate) struct Notifier {
    kernel: Weak<Kernel>,
}

impl Notifier {
    pub(crate) fn notify(&self) {
        if let Some(kernel) = self.kernel.upgrade() {
            let notified = kernel.poller.notify();
            debug_assert!(notified.is_ok(), "notifying the poller: {notified:?}");
        }
    }
}

/// The events of one wait.
pub(crate) struct Events {
    buffer: polling::Events,
    list: Vec<polling::Event>,
    next: Cell<usize>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            buffer: polling::Events::with_capacity(
                super::BATCH.try_into().expect("a batch is not empty"),
            ),
            list: Vec::new(),
            next: Cell::new(0),
        }
    }

    /// Forgets the events.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.next.set(0);
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the keys of the events.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn keys(&self) -> impl Iterator<Item = usize> {
        self.list.iter().map(|event| event.key)
    }

    /// Returns the next event of a source, without consuming it; see [`advance`](Self::advance).
    pub(crate) fn next(&self) -> Option<Event> {
        let event = self.list.get(self.next.get())?;
        debug_assert_ne!(
            event.key, NOTIFY_KEY,
            "polling keeps its notifications to itself"
        );
        let mut ready = Ready::default();
        if event.readable {
            ready = ready.with(Ready::READ);
        }
        if event.writable {
            ready = ready.with(Ready::WRITE);
        }
        Some(Event {
            key: event.key,
            ready,
        })
    }

    /// Returns the requested events that the next event reports for a level-triggered source;
    /// `None` if it reports none of them.
    pub(crate) fn reported(&self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        let event = self.list.get(self.next.get())?;
        let mut ready = PollEvents::NONE;
        if event.readable {
            ready |= PollEvents::READABLE;
        }
        if event.writable {
            ready |= PollEvents::WRITABLE;
        }
        let ready = ready.intersection(asked);
        (!ready.is_empty()).then_some(Ok(ready))
    }

    /// Takes all events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn take_all(&mut self) -> Vec<RawEvent> {
        self.next.set(0);
        self.list.drain(..).map(RawEvent).collect()
    }

    /// Makes `events` the events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn put_all(&mut self, events: impl Iterator<Item = RawEvent>) {
        self.next.set(0);
        self.list.clear();
        self.list.extend(events.map(|event| event.0));
    }

    /// Consumes the next event.
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }

    /// Returns whether all events are consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.get() >= self.list.len()
    }
}
/// An event as `polling` has reported it.
#[cfg(feature = "test-util")]
pub(crate) struct RawEvent(polling::Event);

#[cfg(feature = "test-util")]
impl RawEvent {
    /// Creates the event of a source that is readable or writable.
    pub(crate) fn of(Event { key, ready }: Event) -> Self {
        let (readable, writable) = (
            ready.intersects(Ready::READ),
            ready.intersects(Ready::WRITE),
        );
        Self(polling::Event::new(key, readable, writable))
    }

    pub(crate) fn key(&self) -> usize {
        self.0.key
    }

    /// Adds a later event of the same source.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.0.readable |= later.0.readable;
        self.0.writable |= later.0.writable;
    }
}
