//! Platforms other than Linux: the wait and the notification of `polling`.
#![allow(unsafe_code, reason = "the caller keeps a registered source open")]

pub(in crate::sys) mod asked;

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use polling::PollMode;

#[cfg(feature = "test-util")]
use crate::sys::poller::Event;
use crate::sys::poller::Report;
use crate::sys::poller::selector::{Kernel, Selector};
use crate::sys::poller::{AsSource, BATCH, Interest, NOTIFY_KEY, PollEvents, RawSource, Ready};
use asked::{Asked, Directions};

/// The longest wait in one call. A longer one fails on macOS, and never ends on Windows, where the
/// time is a number of milliseconds in 32 bits. The loop waits again.
const LONGEST_WAIT: Duration = Duration::from_secs(1_000_000);

/// A `polling` poller, which the `Backend`s share.
pub(in crate::sys) struct Shared {
    poller: polling::Poller,
}

/// The kernel objects of a loop. The notifiers hold weak references to them.
pub(in crate::sys) struct Queue {
    kernel: Arc<Shared>,
    /// Edge-triggered where the platform offers it, otherwise one-shot.
    mode: PollMode,
    /// The interests in one-shot mode.
    asked: RefCell<Asked<RawSource>>,
    /// Where `polling` puts the events of a wait.
    buffer: RefCell<polling::Events>,
}

impl Queue {
    fn is_oneshot(&self) -> bool {
        matches!(self.mode, PollMode::Oneshot)
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
}

/// `polling` reports neither EOF nor hang-ups.
impl Selector for Queue {
    /// Some platforms offer only this mode.
    const NEEDS_REARM: bool = true;
    /// Windows has no event for it.
    #[cfg(feature = "net")]
    const REPORTS_OWN_SHUTDOWN: bool = !cfg!(windows);

    type Kernel = Shared;
    type Event = polling::Event;

    fn new() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        // `--cfg phaseloop_oneshot` selects the one-shot mode on Linux, to test it there.
        let mode = if poller.supports_edge() && !cfg!(phaseloop_oneshot) {
            PollMode::Edge
        } else {
            PollMode::Oneshot
        };
        Ok(Self {
            kernel: Arc::new(Shared { poller }),
            mode,
            asked: RefCell::default(),
            buffer: RefCell::new(polling::Events::with_capacity(
                BATCH.try_into().expect("a batch is not empty"),
            )),
        })
    }

    fn kernel(&self) -> &Arc<Shared> {
        &self.kernel
    }

    /// The source is registered for both directions: the first event reports what is ready.
    unsafe fn add(&self, source: &impl AsSource, key: usize, _: Interest) -> io::Result<()> {
        let raw = RawSource::of(source);
        // SAFETY: the contract of this function.
        unsafe { raw.add_to(&self.kernel.poller, key, self.mode)? };
        if self.is_oneshot() {
            let directions = raw.first_directions();
            self.asked.borrow_mut().insert(key, raw, directions);
        }
        Ok(())
    }

    fn rearm(
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
            // The operation that a waiting reader waits for.
            #[cfg(windows)]
            source.begin_read();
        }
        match self.asked.borrow_mut().ask(key, more) {
            Some(all) => {
                let source = RawSource::of(source);
                source.modify_in(&self.kernel.poller, all.interest(key), self.mode)
            }
            None => Ok(()),
        }
    }

    /// The registration is one-shot: this is called again after each event.
    fn set_level(
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

    fn delete(&self, source: &impl AsSource) -> io::Result<()> {
        let source = RawSource::of(source);
        self.asked.borrow_mut().remove(source);
        source.delete_from(&self.kernel.poller)
    }

    fn wait(&self, list: &mut Vec<polling::Event>, timeout: Option<u64>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Duration::from_nanos(timeout).min(LONGEST_WAIT));
        let mut buffer = self.buffer.borrow_mut();
        self.kernel.poller.wait(&mut buffer, timeout)?;
        list.extend(buffer.iter());
        buffer.clear();
        debug_assert!(
            list.iter().all(|event| event.key != NOTIFY_KEY),
            "polling keeps its notifications to itself"
        );
        if self.is_oneshot() {
            self.ask_again(list);
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

impl Kernel for Shared {
    fn poller(&self) -> &polling::Poller {
        &self.poller
    }

    fn notify(&self) {
        let notified = self.poller.notify();
        debug_assert!(notified.is_ok(), "notifying the poller: {notified:?}");
    }
}

impl Report for polling::Event {
    fn key(self) -> usize {
        self.key
    }

    fn ready(self) -> Ready {
        let mut ready = Ready::default();
        if self.readable {
            ready = ready.with(Ready::READ);
        }
        if self.writable {
            ready = ready.with(Ready::WRITE);
        }
        ready
    }

    fn level(self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        let mut ready = PollEvents::NONE;
        if self.readable {
            ready |= PollEvents::READABLE;
        }
        if self.writable {
            ready |= PollEvents::WRITABLE;
        }
        let ready = ready.intersection(asked);
        (!ready.is_empty()).then_some(Ok(ready))
    }

    #[cfg(feature = "test-util")]
    fn of(Event { key, ready }: Event) -> Self {
        let readable = ready.intersects(Ready::READ);
        Self::new(key, readable, ready.intersects(Ready::WRITE))
    }

    #[cfg(feature = "test-util")]
    fn with(self, later: Self) -> Self {
        let readable = self.readable || later.readable;
        Self::new(self.key, readable, self.writable || later.writable)
    }
}
