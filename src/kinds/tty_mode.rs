//! The modes of terminals.

/// How a terminal processes input and output.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::tty::{Mode, Tty};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let tty = Tty::open()?;
///     tty.set_mode(Mode::Cbreak)?; // keys at once, ctrl-c still works
///     tty.set_mode(Mode::Normal)
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The original settings: usually line by line, with editing and echo, and ctrl-c sends SIGINT.
    #[default]
    Normal,
    /// Every key is delivered at once without echo, and ctrl-c is a key like any other. A line feed
    /// in the output still returns the carriage.
    Raw,
    /// Like [`Raw`](Self::Raw), but ctrl-c, ctrl-\ and ctrl-z still send their signals.
    Cbreak,
    /// Bytes pass unchanged in both directions: a line feed does not return the carriage.
    Io,
}
