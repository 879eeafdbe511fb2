//! `process.on('SIGINT', ..)`, over [`phaseloop::signal`].

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::{Listener, Listeners};
use crate::context::Node;
use crate::error::Error;
use phaseloop::Handle as _;
use phaseloop::LoopHandle;
use phaseloop::extension::frame::Frame;
use phaseloop::signal::{Signal, SignalKind};

/// The signals of one loop that have listeners, each with one handle.
#[derive(Default)]
pub(crate) struct SignalListeners {
    known: RefCell<Vec<Known>>,
}

struct Known {
    kind: SignalKind,
    handle: Signal,
    listeners: Rc<Listeners<SignalKind>>,
}

/// Calls `listener` when the signal is caught: last in the poll phase, with all listeners of one
/// signal in one callback. JavaScript: `process.on('SIGINT', ..)`.
///
/// The listener does not keep the loop alive. While a listener exists, the default action of the
/// signal does not happen; see [`phaseloop::signal`].
///
/// # Errors
///
/// `EINVAL` for a signal that cannot be caught, such as SIGKILL.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run};
/// use phaseloop::signal::SignalKind;
///
/// fn main() -> Exit<()> {
///     run(async {
///         process::on_signal(SignalKind::INT, |_| process::exit(130)).unwrap();
///         assert!(process::on_signal(SignalKind::KILL, |_| ()).is_err());
///     })
/// }
/// ```
#[track_caller]
pub fn on_signal(
    kind: SignalKind,
    mut listener: impl FnMut(SignalKind) + 'static,
) -> Result<Listener, Error> {
    let node = Node::current();
    let listeners = node.process.signals.listeners_of(kind)?;
    let id = listeners.add(move |&kind| listener(kind));
    let node = Rc::downgrade(&node);
    Ok(Listener {
        remove: Box::new(move || {
            let node = Weak::upgrade(&node);
            node.is_some_and(|node| node.process.signals.remove(kind, id))
        }),
    })
}

/// Calls `listener` the next time that the signal is caught, and stops listening right before; see
/// [`on_signal`]. JavaScript: `process.once('SIGTERM', ..)`.
///
/// # Errors
///
/// The errors of [`on_signal`].
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn once_signal(
    kind: SignalKind,
    listener: impl FnOnce(SignalKind) + 'static,
) -> Result<Listener, Error> {
    let own: Rc<RefCell<Option<Listener>>> = Rc::default();
    let (known, mut listener) = (own.clone(), Some(listener));
    let added = on_signal(kind, move |kind| {
        let own = known.take();
        if let Some(own) = own {
            own.remove();
        }
        if let Some(listener) = listener.take() {
            listener(kind);
        }
    })?;
    let remove = Box::new({
        let own = own.clone();
        move || own.take().is_some_and(|own| own.remove())
    });
    own.replace(Some(added));
    Ok(Listener { remove })
}

impl SignalListeners {
    /// Returns the listeners of a signal. The first call starts the handle.
    #[track_caller]
    fn listeners_of(&self, kind: SignalKind) -> Result<Rc<Listeners<SignalKind>>, Error> {
        if let Some(known) = self.known.borrow().iter().find(|known| known.kind == kind) {
            return Ok(known.listeners.clone());
        }
        let listeners = Rc::new(Listeners::default());
        let (called, frame) = (Rc::clone(&listeners), Frame::current());
        let handle = Signal::new(&LoopHandle::current());
        let started = handle.start(kind, move |_, kind| {
            frame.clone().call(|| called.emit(&kind));
        });
        started.map_err(|error| Error::of_call(error, "uv_signal_start"))?;
        // As in Node, a signal listener does not keep the loop alive.
        handle.unref();
        self.known.borrow_mut().push(Known {
            kind,
            handle,
            listeners: listeners.clone(),
        });
        Ok(listeners)
    }

    /// Removes a listener. The last one stops the handle.
    fn remove(&self, kind: SignalKind, id: u64) -> bool {
        let found = {
            let known = self.known.borrow();
            let found = known.iter().find(|known| known.kind == kind);
            found.map(|known| known.listeners.clone())
        };
        let Some(listeners) = found else {
            return false;
        };
        let was_there = listeners.remove(id);
        if listeners.is_empty() {
            let mut known = self.known.borrow_mut();
            let place = known.iter().position(|known| known.kind == kind);
            let gone = place.map(|place| known.swap_remove(place));
            // The handle is dropped without a borrow, since its drop frees the callback.
            drop(known);
            drop(gone);
        }
        was_there
    }

    pub(super) fn shut_down(&self) {
        let known = self.known.take();
        for known in &known {
            known.handle.stop();
            known.listeners.clear();
        }
    }
}
