//! Options of sockets.

use std::io;
use std::time::Duration;

use crate::net::transport::StreamOptions;
use crate::sys;

/// Keep-alive settings: when an idle connection is probed, and when it is closed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::net::Keepalive;
///
/// fn main() {
///     let keepalive = Keepalive::after(Duration::from_secs(60))
///         .interval(Duration::from_secs(5))
///         .retries(3);
///     assert_eq!(keepalive, keepalive.retries(3));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    idle: Duration,
    interval: Duration,
    retries: u32,
}

impl Keepalive {
    /// Probes a connection that was idle for this long, then every second, ten times.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.set_keepalive(Some(Keepalive::after(Duration::from_secs(60))))?;
    ///     assert!(stream.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn after(idle: Duration) -> Self {
        Self {
            idle,
            interval: Duration::from_secs(1),
            retries: 10,
        }
    }

    /// Sets the time between two probes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     // A silent peer is given up after 60 + 3 × 5 seconds.
    ///     let keepalive = Keepalive::after(Duration::from_secs(60));
    ///     let keepalive = keepalive.interval(Duration::from_secs(5)).retries(3);
    ///     stream.set_keepalive(Some(keepalive))?;
    ///     assert!(stream.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Sets the number of unanswered probes after which the connection is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::net::{Keepalive, TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     // A silent peer is given up after 60 + 3 × 5 seconds.
    ///     let keepalive = Keepalive::after(Duration::from_secs(60));
    ///     let keepalive = keepalive.interval(Duration::from_secs(5)).retries(3);
    ///     stream.set_keepalive(Some(keepalive))?;
    ///     assert!(stream.keepalive()?);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }
}

/// Sets keep-alive. Times below a second and zero probes are refused.
pub(super) fn set_keepalive(
    socket: &StreamOptions<'_>,
    keepalive: Option<Keepalive>,
) -> io::Result<()> {
    let Some(keepalive) = keepalive else {
        return socket.set_keepalive(None);
    };
    let second = Duration::from_secs(1);
    if keepalive.idle < second || keepalive.interval < second || keepalive.retries == 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "keep-alive takes an idle time and an interval of a second or more, and at least one retry",
        ));
    }
    let Keepalive {
        idle,
        interval,
        retries,
    } = keepalive;
    socket.set_keepalive(Some(&sys::socket::keepalive(idle, interval, retries)))
}
