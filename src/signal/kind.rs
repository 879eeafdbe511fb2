//! The numbers and names of signals.

use std::fmt;
use std::io;

use crate::sys::signal as sys;

/// A signal, by its number on this system.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKind(i32);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:ident,)*) => {
        impl SignalKind {
            $($(#[$doc])* pub const $name: Self = Self(sys::$number);)*

            /// Those with a name.
            const NAMED: &[(Self, &str)] = &[$((Self::$name, stringify!($number)),)*];
        }
    };
}

kinds! {
    /// The terminal is gone, or: read the configuration again.
    HUP = SIGHUP,
    /// Ctrl-c.
    INT = SIGINT,
    /// Ctrl-\; by default with a core dump.
    QUIT = SIGQUIT,
    /// An instruction that is none; cannot be listened to.
    ILL = SIGILL,
    /// A breakpoint.
    TRAP = SIGTRAP,
    /// The program has given up.
    ABRT = SIGABRT,
    /// Memory that is not there.
    BUS = SIGBUS,
    /// A fault of arithmetic; cannot be listened to.
    FPE = SIGFPE,
    /// The end, without appeal; cannot be listened to.
    KILL = SIGKILL,
    /// For the program's own use.
    USR1 = SIGUSR1,
    /// Memory that is not the program's; cannot be listened to.
    SEGV = SIGSEGV,
    /// For the program's own use.
    USR2 = SIGUSR2,
    /// A write nobody will read. Rust programs ignore it from the start.
    PIPE = SIGPIPE,
    /// A timer of the system.
    ALRM = SIGALRM,
    /// Please end.
    TERM = SIGTERM,
    /// A child has ended, stopped or continued.
    CHLD = SIGCHLD,
    /// Go on after a stop.
    CONT = SIGCONT,
    /// Stops the process; cannot be listened to.
    STOP = SIGSTOP,
    /// Ctrl-z.
    TSTP = SIGTSTP,
    /// A read from the terminal in the background.
    TTIN = SIGTTIN,
    /// A write to the terminal in the background.
    TTOU = SIGTTOU,
    /// Urgent data on a socket.
    URG = SIGURG,
    /// The limit of processor time is reached.
    XCPU = SIGXCPU,
    /// The limit of file size is reached.
    XFSZ = SIGXFSZ,
    /// A timer that counts the process's own time.
    VTALRM = SIGVTALRM,
    /// A timer of a profiler.
    PROF = SIGPROF,
    /// The terminal has a new size.
    WINCH = SIGWINCH,
    /// I/O is possible.
    IO = SIGIO,
    /// A system call that is none.
    SYS = SIGSYS,
}

impl SignalKind {
    /// The signal of a number. Whether there is one shows where it is used.
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The number of the signal.
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    /// The signal of a name such as `SIGTERM`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = Self::NAMED.iter().find(|(_, known)| *known == name);
        named.map(|&(kind, _)| kind)
    }

    /// The name of the signal, such as `SIGTERM`; real-time signals have none.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let named = Self::NAMED.iter().find(|(kind, _)| *kind == self);
        named.map(|&(_, name)| name)
    }
}

impl SignalKind {
    /// Says in an error what is wrong with the signal, if it is at fault.
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

/// The name, or `signal 40` where there is none.
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
