//! What is behind an open descriptor.

/// The kind of object behind an open descriptor.
///
/// # Examples
///
/// ```
/// use phaseloop::io::StdioKind;
///
/// fn main() {
///     match StdioKind::of(std::io::stdin()) {
///         StdioKind::Terminal => println!("interactive"),
///         kind => println!("standard input is redirected: {kind:?}"),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StdioKind {
    /// A terminal, or a console of Windows.
    Terminal,
    /// A regular file.
    File,
    /// A character device other than a terminal, such as `/dev/null` and `NUL`.
    Device,
    /// A pipe or FIFO. On Windows also a socket, which cannot be distinguished from a pipe there.
    Pipe,
    /// A Unix stream socket.
    Unix,
    /// A TCP socket.
    Tcp,
    /// A UDP socket.
    Udp,
    /// Anything else: a directory, an eventfd, a descriptor that is not open.
    Unknown,
}
