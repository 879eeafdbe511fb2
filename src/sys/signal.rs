//! Signals: a record that the signal handler writes and the loop reads, and the signal dispositions
//! of the process.

mod caught;
pub(super) mod disposition;
mod handler;
#[cfg(any(feature = "process", feature = "tty", all(test, feature = "stacks")))]
pub(super) mod mask;

use std::io;
use std::sync::Arc;

pub(crate) use self::caught::Caught;
pub(crate) use self::disposition::exists;
#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
pub(super) use self::handler::Before;
#[cfg(any(
    feature = "process",
    all(feature = "stacks", target_os = "linux", target_env = "gnu")
))]
pub(super) use self::handler::action_of;

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        pub(crate) use libc::{$($name,)*};

        /// The signals with a name.
        pub(crate) const NAMES: &[(i32, &str)] = &[$(($name, stringify!($name)),)*];
    };
}

names! {
    SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL,
    SIGPIPE, SIGPROF, SIGQUIT, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
}

/// The signal that reports the exit of a child.
pub(crate) const CHILD_SIGNAL: Option<i32> = Some(SIGCHLD);

/// Returns the name of a signal; real-time signals have none.
pub(crate) fn name(number: i32) -> Option<&'static str> {
    let named = NAMES.iter().find(|(known, _)| *known == number);
    named.map(|&(_, name)| name)
}

/// The largest signal number on any platform.
const LARGEST: usize = 128;

/// Signals that cannot be caught, and fault signals, whose handler must not return.
const FORBIDDEN: [i32; 5] = [SIGKILL, SIGSTOP, SIGILL, SIGFPE, SIGSEGV];

/// Records a signal for a loop, from [`watch`] until it is dropped.
pub(crate) struct Watch {
    number: i32,
    listener: handler::Listener,
}

/// Returns whether a handler can be installed for a signal.
pub(crate) fn can_be_caught(number: i32) -> bool {
    !FORBIDDEN.contains(&number)
}

/// Records each catch of signal `number` in `caught`, from now on.
///
/// # Errors
///
/// `InvalidInput` for an invalid signal number and for the [`FORBIDDEN`] signals.
pub(crate) fn watch(number: i32, caught: &Arc<Caught>) -> io::Result<Watch> {
    let in_range = usize::try_from(number).is_ok_and(|number| (1..=LARGEST).contains(&number));
    if !in_range || !can_be_caught(number) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let listener = disposition::lock(|taken| {
        // The listener is added before the handler is installed, so that the first signal is
        // recorded.
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
    /// Installs our handler again, above one that other code has installed since.
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
