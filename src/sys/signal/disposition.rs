//! The signal dispositions of the process: which were replaced by our handler, and when they are
//! restored.
//!
//! ```text
//!   first listener ──> our handler is installed; it keeps and calls the one that it replaces
//!   last listener stops ──┬── ours is still installed: the replaced one is restored
//!                         └── another one was installed above ours: both stay
//! ```
//!
//! A handler that was installed above ours may call ours, as that of `signal-hook` does, so ours
//! has to stay in place. If a listener starts then, ours is installed again, above the other one.
//! Each installation is a *layer* with its own function and state: one function twice in a chain of
//! handlers would call itself for ever.
#![allow(unsafe_code, reason = "asks for and sets the dispositions of signals")]

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use super::handler::{self, LAYERS};
use crate::sorted::SortedMap;

/// The signals that have had a listener.
#[derive(Default)]
pub(super) struct Taken {
    signals: SortedMap<i32, Signal>,
}

#[derive(Default)]
struct Signal {
    /// The number of loops in the process that listen now.
    watches: usize,
    /// The number of our layers in use, from the lowest on.
    layers: usize,
    /// The disposition that each layer has replaced.
    before: [Option<libc::sigaction>; LAYERS],
}

/// Calls `f` with the state, under a lock: one thread at a time changes dispositions.
pub(super) fn lock<R>(f: impl FnOnce(&mut Taken) -> R) -> R {
    static TAKEN: Mutex<Taken> = Mutex::new(Taken {
        signals: SortedMap::new(),
    });
    f(&mut TAKEN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Taken {
    /// Counts a new listener and installs our handler for its signal.
    pub(super) fn begin(&mut self, number: i32) -> io::Result<()> {
        if self.signals.get(number).is_none() {
            self.signals.insert(number, Signal::default());
        }
        let Some(signal) = self.signals.get_mut(number) else {
            unreachable!("it was inserted above");
        };
        signal.install(number)?;
        signal.watches += 1;
        Ok(())
    }

    /// Installs our handler for this signal, which has a listener, unless it is installed already.
    pub(super) fn install(&mut self, number: i32) -> io::Result<()> {
        let signal = self.signals.get_mut(number);
        signal.map_or(Ok(()), |signal| signal.install(number))
    }

    /// Counts a stopped listener. The last one restores the previous disposition.
    pub(super) fn end(&mut self, number: i32) {
        if let Some(signal) = self.signals.get_mut(number) {
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
                // This layer and those below it stay: the handlers above call them.
                return Ok(());
            }
            self.layers = 0;
        }
        let layer = self.layers;
        // The handler must know its predecessor before its first call. If the disposition changed
        // in between, it is set again.
        handler::set_before(number, layer, &current);
        let before = set(number, &handler::action(layer))?;
        handler::set_before(number, layer, &before);
        handler::set_live(number, layer);
        self.before[layer] = Some(before);
        self.layers = layer + 1;
        Ok(())
    }

    /// Restores the previous disposition, if our handler is the installed one.
    fn put_back(&mut self, number: i32) {
        let layer = get(number).ok().as_ref().and_then(handler::layer_of);
        let Some(layer) = layer else { return };
        if let Some(before) = &self.before[layer] {
            // The call fails for invalid signal numbers only.
            let _ = set(number, before);
            self.layers = layer;
        }
    }
}

/// Returns whether the platform has a signal of this number for programs.
pub(crate) fn exists(number: i32) -> bool {
    get(number).is_ok()
}

/// Returns the disposition of a signal. It is async-signal-safe: one system call.
pub(in crate::sys) fn get(number: i32) -> io::Result<libc::sigaction> {
    let mut current = MaybeUninit::uninit();
    // SAFETY: a null pointer changes nothing; `current` has room for the result, which a call that
    // succeeds fills.
    unsafe {
        match libc::sigaction(number, std::ptr::null(), current.as_mut_ptr()) {
            0 => Ok(current.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Sets the disposition of a signal and returns the previous one. It is async-signal-safe: one
/// system call.
pub(in crate::sys) fn set(number: i32, new: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: `new` is ours, the default action, or was returned by the kernel as a disposition of
    // this signal. Its handler stays valid for the life of the process. A call that succeeds fills
    // `before`.
    unsafe {
        match libc::sigaction(number, new, before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
