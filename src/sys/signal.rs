//! Signals: a record that the signal handler writes and the loop reads, and the dispositions of the
//! process.

mod caught;
mod disposition;
mod handler;

use std::io;
use std::sync::Arc;

pub(crate) use self::caught::Caught;
pub(crate) use self::disposition::exists;

pub(crate) use libc::{
    SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL,
    SIGPIPE, SIGPROF, SIGQUIT, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

/// The largest number a signal has anywhere.
const LARGEST: usize = 128;

/// Signals that cannot be caught, and those after which no handler may return, since they stand for
/// a fault of the program itself.
const FORBIDDEN: [i32; 5] = [SIGKILL, SIGSTOP, SIGILL, SIGFPE, SIGSEGV];

/// Has a signal noted for a loop, from [`watch`] until the drop.
pub(crate) struct Watch {
    number: i32,
    listener: handler::Listener,
}

/// Has every `number` that the process catches from now on noted in `caught`.
///
/// # Errors
///
/// `InvalidInput` for what is no signal, and for the [`FORBIDDEN`] ones.
pub(crate) fn watch(number: i32, caught: &Arc<Caught>) -> io::Result<Watch> {
    let in_range = usize::try_from(number).is_ok_and(|number| (1..=LARGEST).contains(&number));
    if !in_range || FORBIDDEN.contains(&number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let listener = disposition::lock(|taken| {
        // First: a signal that comes as soon as the handler is installed is noted.
        let listener = handler::add(number, caught.clone());
        match taken.begin(number) {
            Ok(()) => Ok(listener),
            Err(error) => {
                handler::remove(listener);
                Err(error)
            }
        }
    })?;
    Ok(Watch { number, listener })
}

impl Watch {
    /// Installs our handler above the one that was installed since, if there is one.
    pub(crate) fn install(&self) -> io::Result<()> {
        disposition::lock(|taken| taken.install(self.number))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        disposition::lock(|taken| {
            handler::remove(self.listener);
            taken.end(self.number);
        });
    }
}
