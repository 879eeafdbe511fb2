//! What a task waits for, and what it finds: any of several directions of a socket.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::source::Source;
use super::when_ready::Readiness;
use crate::event_loop::io::sources::Direction;
use crate::sys::poller::{AsSource, REPORTS_PRIORITY};

/// The directions of a socket that a task waits for or tries; at least one.
///
/// # Examples
///
/// ```
/// use phaseloop::io::Interest;
///
/// fn main() {
///     let both = Interest::READABLE | Interest::WRITABLE;
///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
///     assert_eq!(format!("{both:?}"), "READABLE | WRITABLE");
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Reading: data, EOF or an error.
    pub const READABLE: Self = Self(1);
    /// Writing: room in the send buffer, or an error.
    pub const WRITABLE: Self = Self(1 << 1);
    /// Urgent data (`POLLPRI`). Linux only.
    pub const PRIORITY: Self = Self(1 << 2);

    const NAMES: [(Self, &'static str, Direction, Ready); 3] = [
        (Self::READABLE, "READABLE", Direction::Read, Ready::READABLE),
        (
            Self::WRITABLE,
            "WRITABLE",
            Direction::Write,
            Ready::WRITABLE,
        ),
        (
            Self::PRIORITY,
            "PRIORITY",
            Direction::Priority,
            Ready::PRIORITY,
        ),
    ];

    /// Returns whether reading is among the directions.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::Interest;
    ///
    /// fn main() {
    ///     let both = Interest::READABLE.add(Interest::WRITABLE);
    ///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
    ///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    ///     assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// }
    /// ```
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.has(Self::READABLE)
    }

    /// Returns whether writing is among the directions.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::Interest;
    ///
    /// fn main() {
    ///     let both = Interest::READABLE.add(Interest::WRITABLE);
    ///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
    ///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    ///     assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// }
    /// ```
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.has(Self::WRITABLE)
    }

    /// Returns whether urgent data is among the directions.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::Interest;
    ///
    /// fn main() {
    ///     let both = Interest::READABLE.add(Interest::WRITABLE);
    ///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
    ///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    ///     assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// }
    /// ```
    #[must_use]
    pub const fn is_priority(self) -> bool {
        self.has(Self::PRIORITY)
    }

    /// Returns the directions of both.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::Interest;
    ///
    /// fn main() {
    ///     let both = Interest::READABLE.add(Interest::WRITABLE);
    ///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
    ///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    ///     assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// }
    /// ```
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the directions that are not in `other`; `None` if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::Interest;
    ///
    /// fn main() {
    ///     let both = Interest::READABLE.add(Interest::WRITABLE);
    ///     assert!(both.is_readable() && both.is_writable() && !both.is_priority());
    ///     assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    ///     assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
    /// }
    /// ```
    #[must_use]
    pub const fn remove(self, other: Self) -> Option<Self> {
        match self.0 & !other.0 {
            0 => None,
            rest => Some(Self(rest)),
        }
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn directions(self) -> impl Iterator<Item = Direction> {
        let all = Self::NAMES.into_iter();
        all.filter(move |(one, ..)| self.has(*one))
            .map(|(_, _, direction, _)| direction)
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.into_iter();
        print_names(f, names.map(|(one, name, ..)| (self.has(one), name)))
    }
}

/// Prints the names of a set.
fn print_names(
    f: &mut fmt::Formatter<'_>,
    names: impl Iterator<Item = (bool, &'static str)>,
) -> fmt::Result {
    let mut separator = "";
    for (_, name) in names.filter(|(is_set, _)| *is_set) {
        write!(f, "{separator}{name}")?;
        separator = " | ";
    }
    if separator.is_empty() {
        f.write_str("EMPTY")?;
    }
    Ok(())
}

/// What a socket is ready for: the answer to `ready`, as
/// [`TcpStream::ready`](crate::net::TcpStream::ready).
///
/// The ends that the peer has closed are known where the events of the platform report them: on
/// Linux, Android, macOS and the BSDs.
///
/// # Examples
///
/// ```
/// use phaseloop::io::Ready;
///
/// fn main() {
///     let ready = Ready::READABLE | Ready::READ_CLOSED;
///     assert!(ready.is_readable() && ready.is_read_closed() && !ready.is_writable());
///     assert_eq!(ready - Ready::READ_CLOSED, Ready::READABLE);
///     assert!((ready & Ready::WRITABLE).is_empty());
/// }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Ready(u8);

impl Ready {
    /// Nothing.
    pub const EMPTY: Self = Self(0);
    /// A read is worth an attempt.
    pub const READABLE: Self = Self(1);
    /// A write is worth an attempt.
    pub const WRITABLE: Self = Self(1 << 1);
    /// The peer has closed its writing direction: reading ends with EOF.
    pub const READ_CLOSED: Self = Self(1 << 2);
    /// Writing fails: both directions are closed, or the socket has an error.
    pub const WRITE_CLOSED: Self = Self(1 << 3);
    /// Urgent data has arrived (`POLLPRI`). Linux only.
    pub const PRIORITY: Self = Self(1 << 4);
    /// All of them.
    pub const ALL: Self = Self(0b1_1111);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::READABLE, "READABLE"),
        (Self::WRITABLE, "WRITABLE"),
        (Self::READ_CLOSED, "READ_CLOSED"),
        (Self::WRITE_CLOSED, "WRITE_CLOSED"),
        (Self::PRIORITY, "PRIORITY"),
    ];

    /// Returns whether the set is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{io::Interest, net::UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let ready = socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
    ///     assert!(!ready.is_empty() && ready.is_writable());
    ///     assert!(!ready.is_readable(), "no datagram has arrived");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a read is worth an attempt; it may find EOF.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{io::Interest, net::UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let ready = socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
    ///     assert!(!ready.is_empty() && ready.is_writable());
    ///     assert!(!ready.is_readable(), "no datagram has arrived");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.0 & (Self::READABLE.0 | Self::READ_CLOSED.0) != 0
    }

    /// Returns whether a write is worth an attempt; it may find an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{io::Interest, net::UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let ready = socket.ready(Interest::READABLE | Interest::WRITABLE).await?;
    ///     assert!(!ready.is_empty() && ready.is_writable());
    ///     assert!(!ready.is_readable(), "no datagram has arrived");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & (Self::WRITABLE.0 | Self::WRITE_CLOSED.0) != 0
    }

    /// Returns whether the peer has closed its writing direction.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::{io::Interest, net::UnixStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, _other) = UnixStream::pair()?;
    ///     let ready = one.ready(Interest::READABLE | Interest::WRITABLE).await?;
    ///     assert!(!ready.is_read_closed() && !ready.is_write_closed()); // the peer is there
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub const fn is_read_closed(self) -> bool {
        self.contains(Self::READ_CLOSED)
    }

    /// Returns whether writing fails.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::{io::Interest, net::UnixStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, _other) = UnixStream::pair()?;
    ///     let ready = one.ready(Interest::READABLE | Interest::WRITABLE).await?;
    ///     assert!(!ready.is_read_closed() && !ready.is_write_closed()); // the peer is there
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub const fn is_write_closed(self) -> bool {
        self.contains(Self::WRITE_CLOSED)
    }

    /// Returns whether urgent data has arrived.
    #[must_use]
    pub const fn is_priority(self) -> bool {
        self.contains(Self::PRIORITY)
    }

    const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Ready {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for Ready {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.into_iter();
        print_names(f, names.map(|(one, name)| (self.contains(one), name)))
    }
}

impl<T: AsSource> Source<T> {
    /// Waits until the source is ready in one of the directions.
    pub(crate) fn ready(&self, interest: Interest) -> impl Future<Output = io::Result<Ready>> {
        AnyReady {
            source: self,
            interest,
            waits: [None, None, None],
        }
    }

    /// Calls `operation` once if the source is ready in one of the directions, and marks these as
    /// not ready if it would block.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        operation: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        if !interest.directions().any(|one| self.is_ready_to_try(one)) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.state.is_asked() {
            self.loop_core().waits.note_attempt(&self.state);
        }
        let result = operation();
        if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            for direction in interest.directions() {
                self.state.clear_ready(direction);
            }
        }
        result
    }

    /// Calls `operation` once the source is ready in one of the directions, and again after each
    /// call that would block.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut operation: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            self.ready(interest).await?;
            match self.try_io(interest, &mut operation) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    fn is_ready_to_try(&self, direction: Direction) -> bool {
        if self.state.is_asked() && self.has_to_wait(direction) {
            return false;
        }
        self.state.is_ready(direction)
    }
}

/// Waits until a source is ready in one of several directions.
struct AnyReady<'a, T: AsSource> {
    source: &'a Source<T>,
    interest: Interest,
    /// The waits that have begun, in the order of [`Interest::NAMES`].
    waits: [Option<Readiness<'a, T>>; 3],
}

impl<T: AsSource> Future for AnyReady<'_, T> {
    type Output = io::Result<Ready>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        let this = self.get_mut();
        if this.interest.is_priority() && !REPORTS_PRIORITY {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        let mut found = Ready::EMPTY;
        let all = Interest::NAMES.into_iter().zip(&mut this.waits);
        for ((one, _, direction, ready), wait) in all {
            if !this.interest.has(one) {
                continue;
            }
            let wait = wait.get_or_insert_with(|| Readiness::new(this.source, direction));
            match Pin::new(wait).poll(cx) {
                Poll::Ready(Ok(())) => found |= ready,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if found.is_empty() {
            return Poll::Pending;
        }
        // The other waits have begun, too. They end with this one.
        this.waits = [None, None, None];
        let (is_read_closed, is_write_closed) = this.source.state.closed_ends();
        if is_read_closed && this.interest.is_readable() {
            found |= Ready::READ_CLOSED;
        }
        if is_write_closed && this.interest.is_writable() {
            found |= Ready::WRITE_CLOSED;
        }
        Poll::Ready(Ok(found))
    }
}

#[cfg(test)]
mod tests {
    use super::{Interest, Ready};

    #[test]
    fn sets_print_their_names() {
        assert_eq!(format!("{:?}", Interest::PRIORITY), "PRIORITY");
        assert_eq!(format!("{:?}", Ready::EMPTY), "EMPTY");
        let all = "READABLE | WRITABLE | READ_CLOSED | WRITE_CLOSED | PRIORITY";
        assert_eq!(format!("{:?}", Ready::ALL), all);
    }

    #[test]
    fn an_interest_is_never_empty() {
        assert_eq!(Interest::READABLE.remove(Interest::READABLE), None);
        let all = Interest::READABLE | Interest::WRITABLE | Interest::PRIORITY;
        let rest = all.remove(Interest::WRITABLE).unwrap();
        assert!(rest.is_readable() && rest.is_priority() && !rest.is_writable());
    }

    #[test]
    fn a_closed_end_is_worth_an_attempt() {
        assert!(Ready::READ_CLOSED.is_readable() && !Ready::READ_CLOSED.is_writable());
        assert!(Ready::WRITE_CLOSED.is_writable() && !Ready::WRITE_CLOSED.is_readable());
    }
}
