//! Signal numbers and names.

use std::fmt;
use std::io;

use crate::sys::signal as sys;

/// A signal, by its number on this platform.
///
/// # Examples
///
/// ```
/// use phaseloop::signal::SignalKind;
///
/// assert_eq!(SignalKind::INT.to_string(), "SIGINT");
/// assert_eq!(SignalKind::from_raw(SignalKind::TERM.as_raw()), SignalKind::TERM);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKind(i32);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:ident,)*) => {
        impl SignalKind {
            $($(#[$doc])* pub const $name: Self = Self(sys::$number);)*
        }
    };
}

kinds! {
    /// SIGHUP: the terminal hung up; by convention, a request to reload the configuration. Default
    /// action: terminate.
    HUP = SIGHUP,
    /// SIGINT: interrupt, sent by ctrl-c. Default action: terminate.
    INT = SIGINT,
    /// SIGQUIT: quit, sent by ctrl-\. Default action: terminate with a core dump.
    QUIT = SIGQUIT,
    /// SIGILL: illegal instruction. A listener cannot be started.
    ILL = SIGILL,
    /// SIGTRAP: breakpoint. Default action: terminate with a core dump.
    TRAP = SIGTRAP,
    /// SIGABRT: abort. Default action: terminate with a core dump.
    ABRT = SIGABRT,
    /// SIGBUS: bus error. Default action: terminate with a core dump.
    BUS = SIGBUS,
    /// SIGFPE: arithmetic error. A listener cannot be started.
    FPE = SIGFPE,
    /// SIGKILL: kill unconditionally. It cannot be caught.
    KILL = SIGKILL,
    /// For the program's own use.
    USR1 = SIGUSR1,
    /// SIGSEGV: invalid memory access. A listener cannot be started.
    SEGV = SIGSEGV,
    /// For the program's own use.
    USR2 = SIGUSR2,
    /// SIGPIPE: write to a pipe or socket without a reader. Rust programs ignore it from the start.
    PIPE = SIGPIPE,
    /// SIGALRM: alarm timer. Default action: terminate.
    ALRM = SIGALRM,
    /// SIGTERM: request to terminate. Default action: terminate.
    TERM = SIGTERM,
    /// SIGCHLD: a child has exited, stopped or continued. Default action: ignore.
    CHLD = SIGCHLD,
    /// SIGCONT: continue after a stop.
    CONT = SIGCONT,
    /// SIGSTOP: stop unconditionally. It cannot be caught.
    STOP = SIGSTOP,
    /// SIGTSTP: stop, sent by ctrl-z. Default action: stop.
    TSTP = SIGTSTP,
    /// SIGTTIN: a background process read from the terminal. Default action: stop.
    TTIN = SIGTTIN,
    /// SIGTTOU: a background process wrote to the terminal. Default action: stop.
    TTOU = SIGTTOU,
    /// SIGURG: urgent data on a socket. Default action: ignore.
    URG = SIGURG,
    /// SIGXCPU: CPU time limit exceeded. Default action: terminate with a core dump.
    XCPU = SIGXCPU,
    /// SIGXFSZ: file size limit exceeded. Default action: terminate with a core dump.
    XFSZ = SIGXFSZ,
    /// SIGVTALRM: virtual timer, which counts CPU time. Default action: terminate.
    VTALRM = SIGVTALRM,
    /// SIGPROF: profiling timer. Default action: terminate.
    PROF = SIGPROF,
    /// SIGWINCH: the terminal window was resized. Default action: ignore.
    WINCH = SIGWINCH,
    /// SIGIO: I/O is possible on a descriptor. Default action: terminate.
    IO = SIGIO,
    /// SIGSYS: invalid system call. Default action: terminate with a core dump.
    SYS = SIGSYS,
}

impl SignalKind {
    /// Wraps a raw signal number. It is validated when a listener starts.
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The number of the signal.
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    /// Looks up a signal by a name such as `SIGTERM`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = sys::NAMES.iter().find(|(_, known)| *known == name);
        named.map(|&(number, _)| Self(number))
    }

    /// The name of the signal, such as `SIGTERM`; real-time signals have none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        sys::name(self.0)
    }
}

impl SignalKind {
    /// Adds to an error what is wrong with the signal, if the signal is the cause.
    pub(crate) fn explain(self, error: io::Error) -> io::Error {
        if error.kind() != io::ErrorKind::InvalidInput {
            return error;
        }
        let text = if sys::exists(self.0) {
            format!("{self} cannot be listened to")
        } else {
            format!("{} is no signal", self.0)
        };
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }
}

/// Displays the name, or `signal 40` for a signal without a name.
impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignalKind({self})")
    }
}
