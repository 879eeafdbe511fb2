//! What the standard descriptors of a child are.

use std::fmt;
use std::process;

/// What a standard descriptor of a child is, for [`Command::stdin`](super::Command::stdin) and its
/// neighbours: a pipe, the descriptor of this process, nothing, or any open descriptor.
///
/// It converts from and into [`std::process::Stdio`]. What the standard library converts into its
/// type converts into this one, too.
///
/// # Examples
///
/// ```
/// use phaseloop::process::{Command, Stdio};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut command = Command::new("cat");
///     command.stdin(Stdio::null()).stdout(Stdio::piped());
///     assert_eq!(command.output().await?.stdout, b"");
///     Ok(())
/// }
/// ```
pub struct Stdio {
    pub(super) std: process::Stdio,
    pub(super) is_pipe: bool,
}

impl Stdio {
    /// A new pipe, whose other end is in [`Child`](super::Child).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    ///     assert_eq!(child.wait_with_output().await?.stdout, b"hello\n");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn piped() -> Self {
        Self {
            std: process::Stdio::piped(),
            is_pipe: true,
        }
    }

    /// The descriptor of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     // The child prints where this process prints.
    ///     let status = Command::new("echo").arg("hello").stdout(Stdio::inherit()).status().await?;
    ///     assert!(status.success());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn inherit() -> Self {
        process::Stdio::inherit().into()
    }

    /// The null device: no input, and output that is discarded.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::process::{Command, Stdio};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let status = Command::new("echo").arg("unseen").stdout(Stdio::null()).status().await?;
    ///     assert!(status.success());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn null() -> Self {
        process::Stdio::null().into()
    }
}

/// Implements the conversion from what the standard library's `Stdio` is made of.
macro_rules! from {
    ($($Source:ty),+) => {
        $(
            impl From<$Source> for Stdio {
                #[inline]
                fn from(source: $Source) -> Self {
                    Self {
                        std: source.into(),
                        is_pipe: false,
                    }
                }
            }
        )+
    };
}

#[allow(unused_imports, reason = "only Unix has more to convert")]
pub(super) use from;

from!(
    process::Stdio,
    process::ChildStdin,
    process::ChildStdout,
    process::ChildStderr,
    std::fs::File,
    std::io::Stdout,
    std::io::Stderr
);

impl From<Stdio> for process::Stdio {
    fn from(stdio: Stdio) -> Self {
        stdio.std
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio")
            .field("is_pipe", &self.is_pipe)
            .finish_non_exhaustive()
    }
}
