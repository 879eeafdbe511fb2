//! Signal numbers and names.

use std::fmt;
use std::io;

use crate::sys::signal as sys;

/// A signal, by its number on this platform.
///
/// On Windows the signals are events of the console: [`INT`](Self::INT) is ctrl-c, `BREAK` is
/// ctrl-break, and [`HUP`](Self::HUP) is the end of the console window. A few others exist by name,
/// for programs that run on both platforms, and never arrive.
///
/// # Examples
///
/// ```
/// use phaseloop::signal::SignalKind;
///
/// fn main() {
///     assert_eq!(SignalKind::INT.to_string(), "SIGINT");
///     assert_eq!(SignalKind::from_raw(SignalKind::TERM.as_raw()), SignalKind::TERM);
/// }
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

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

impl SignalKind {
    /// Wraps a raw signal number. It is validated when a listener starts.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::signal::SignalKind;
    ///
    /// fn main() {
    ///     assert_eq!(SignalKind::from_raw(15), SignalKind::TERM);
    ///     assert_eq!(SignalKind::INT.as_raw(), 2);
    /// }
    /// ```
    #[must_use]
    pub const fn from_raw(number: i32) -> Self {
        Self(number)
    }

    /// The number of the signal.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::signal::SignalKind;
    ///
    /// fn main() {
    ///     assert_eq!(SignalKind::from_raw(15), SignalKind::TERM);
    ///     assert_eq!(SignalKind::INT.as_raw(), 2);
    /// }
    /// ```
    #[must_use]
    pub const fn as_raw(self) -> i32 {
        self.0
    }

    /// Looks up a signal by a name such as `SIGTERM`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::signal::SignalKind;
    ///
    /// fn main() {
    ///     assert_eq!(SignalKind::from_name("SIGTERM"), Some(SignalKind::TERM));
    ///     assert_eq!(SignalKind::TERM.name(), Some("SIGTERM"));
    ///     assert_eq!(SignalKind::from_name("SIGNONE"), None);
    /// }
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = sys::NAMES.iter().find(|(_, known)| *known == name);
        named.map(|&(number, _)| Self(number))
    }

    /// The name of the signal, such as `SIGTERM`; real-time signals have none.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::signal::SignalKind;
    ///
    /// fn main() {
    ///     assert_eq!(SignalKind::from_name("SIGTERM"), Some(SignalKind::TERM));
    ///     assert_eq!(SignalKind::TERM.name(), Some("SIGTERM"));
    ///     assert_eq!(SignalKind::from_name("SIGNONE"), None);
    /// }
    /// ```
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
