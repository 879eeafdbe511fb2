//! The dispositions of the process: what was there before our handler, and when it comes back.
//!
//! ```text
//!   first listener: our handler is installed, what was there is kept and called by it
//!   last listener gone ──┬── ours is still installed: what was there is put back
//!                        └── another one was installed above ours: both stay
//! ```
//!
//! A handler that was installed above ours may call ours, as those of `signal-hook` do, so ours has
//! to stay where it is. If a listener starts then, ours is installed once more, above the other
//! one. Each installation is a *layer* with a function and a memory of its own: the same function
//! twice in one chain of handlers would call itself for ever.
#![allow(unsafe_code, reason = "asks for and sets the dispositions of signals")]

use std::collections::BTreeMap;
use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use super::handler::{self, LAYERS};

/// The signals that were listened to at some time.
#[derive(Default)]
pub(super) struct Taken {
    signals: BTreeMap<i32, Signal>,
}

#[derive(Default)]
struct Signal {
    /// How many loops of the process listen now.
    watches: usize,
    /// How many of our layers are in use, from the lowest on.
    layers: usize,
    /// What was there before each layer.
    before: [Option<libc::sigaction>; LAYERS],
}

/// Calls `f` with the dispositions that are changed here; one thread at a time changes them.
pub(super) fn lock<R>(f: impl FnOnce(&mut Taken) -> R) -> R {
    static TAKEN: Mutex<Taken> = Mutex::new(Taken {
        signals: BTreeMap::new(),
    });
    f(&mut TAKEN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Taken {
    /// A listener starts: our handler is to be called for this signal.
    pub(super) fn begin(&mut self, number: i32) -> io::Result<()> {
        let signal = self.signals.entry(number).or_default();
        signal.install(number)?;
        signal.watches += 1;
        Ok(())
    }

    /// Our handler is to be called for this signal, which has a listener.
    pub(super) fn install(&mut self, number: i32) -> io::Result<()> {
        let signal = self.signals.get_mut(&number);
        signal.map_or(Ok(()), |signal| signal.install(number))
    }

    /// A listener has stopped.
    pub(super) fn end(&mut self, number: i32) {
        if let Some(signal) = self.signals.get_mut(&number) {
            signal.watches -= 1;
            if signal.watches == 0 {
                signal.put_back(number);
            }
        }
    }
}

impl Signal {
    fn install(&mut self, number: i32) -> io::Result<()> {
        let current = get(number)?;
        if let Some(layer) = handler::layer_of(&current) {
            self.layers = layer + 1;
            handler::set_live(number, layer);
            return Ok(());
        }
        if self.layers == LAYERS {
            if handler::is_function(&current) {
                // It and those below it are relied on to call the ones that they have replaced.
                return Ok(());
            }
            self.layers = 0;
        }
        let layer = self.layers;
        // Known before the first call, and again if it was changed in between.
        handler::set_before(number, layer, &current);
        let before = set(number, &handler::action(layer))?;
        handler::set_before(number, layer, &before);
        handler::set_live(number, layer);
        self.before[layer] = Some(before);
        self.layers = layer + 1;
        Ok(())
    }

    /// Takes our handler out, if it is the one that is installed.
    fn put_back(&mut self, number: i32) {
        let layer = get(number).ok().as_ref().and_then(handler::layer_of);
        let Some(layer) = layer else { return };
        if let Some(before) = &self.before[layer] {
            // Fails for numbers that are no signals only.
            let _ = set(number, before);
            self.layers = layer;
        }
    }
}

/// Whether the system has a signal of this number for programs.
pub(crate) fn exists(number: i32) -> bool {
    get(number).is_ok()
}

/// For signal handlers, too: one system call.
pub(super) fn get(number: i32) -> io::Result<libc::sigaction> {
    let mut current = MaybeUninit::uninit();
    // SAFETY: a null pointer changes nothing; `current` has room for the answer.
    let result = unsafe { libc::sigaction(number, std::ptr::null(), current.as_mut_ptr()) };
    if result == 0 {
        // SAFETY: filled by the call, which has succeeded.
        Ok(unsafe { current.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns what was there before. For signal handlers, too: one system call.
pub(super) fn set(number: i32, new: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: `new` is ours, the default action, or came from the system as a disposition of this
    // very signal; handlers in it stay valid for the life of the process.
    let result = unsafe { libc::sigaction(number, new, before.as_mut_ptr()) };
    if result == 0 {
        // SAFETY: filled by the call, which has succeeded.
        Ok(unsafe { before.assume_init() })
    } else {
        Err(io::Error::last_os_error())
    }
}
