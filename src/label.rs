//! What reports call a thing of the loop: by the name of its type, and by what distinguishes it
//! from others of the type.

use std::fmt;

/// The name of a handle, sleep or job in a report: `TcpListener 127.0.0.1:7000`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    /// The type: `TcpListener`, `child`, `sleep`.
    pub(crate) what: &'static str,
    /// The address, path or number, which few others share. It may be empty.
    pub(crate) which: String,
}

impl Label {
    pub(crate) fn new(what: &'static str, which: impl Into<String>) -> Self {
        Self {
            what,
            which: which.into(),
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if !self.which.is_empty() {
            write!(f, " {}", self.which)?;
        }
        Ok(())
    }
}

/// What is known of a descriptor besides what the kernel reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program made it, or passed it in.
    #[default]
    Unknown,
    /// A listener accepted it.
    Accepted,
    /// It was connected to its peer from here.
    Connected,
    /// It connects two processes that exchange messages.
    #[cfg(all(unix, feature = "process"))]
    Channel,
    Stdin,
    Stdout,
    Stderr,
}

impl Role {
    /// Returns the name that users have for the descriptor, if its type alone does not say.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Accepted | Self::Connected => None,
            #[cfg(all(unix, feature = "process"))]
            Self::Channel => Some("channel"),
            Self::Stdin => Some("stdin"),
            Self::Stdout => Some("stdout"),
            Self::Stderr => Some("stderr"),
        }
    }

    /// Returns the sign between the local and the remote address.
    pub(crate) fn arrow(self) -> &'static str {
        match self {
            Self::Accepted => "←",
            Self::Connected => "→",
            _ => "↔",
        }
    }
}
