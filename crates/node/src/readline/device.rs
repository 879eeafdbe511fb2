//! The terminal of the process, while a line editor has it.

use crate::events::EventEmitter;
use crate::process::{Listener, on_signal, stdin_tty};
use phaseloop::signal::SignalKind;
use phaseloop::tty::{Mode, Tty};

/// Standard input, if it is a terminal. Its mode is restored by the drop.
pub(super) struct Device {
    tty: Tty,
    resizes: Option<Listener>,
}

impl Device {
    /// Sets the raw mode of a terminal. `None`: the input is none, or cannot be changed.
    pub(super) fn open(input: &EventEmitter, resized: impl Fn() + 'static) -> Option<Self> {
        let tty = stdin_tty(input)?;
        tty.set_mode(Mode::Raw).ok()?;
        let resizes = on_signal(SignalKind::WINCH, move |_| resized()).ok();
        Some(Self { tty, resizes })
    }

    /// Sets the raw mode, or restores the one before.
    pub(super) fn set_raw(&self, is_raw: bool) {
        let mode = if is_raw { Mode::Raw } else { Mode::Normal };
        // A terminal that is gone has no mode.
        let _ = self.tty.set_mode(mode);
    }

    /// Stops the process, as the shell does at Ctrl+Z.
    pub(super) fn stop_process() {
        if let Ok(process) = i32::try_from(std::process::id()) {
            let _ = phaseloop::process::kill(process, SignalKind::TSTP);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(resizes) = self.resizes.take() {
            resizes.remove();
        }
    }
}
