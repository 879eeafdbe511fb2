//! Files to sockets.
//!
//! ```text
//!   the socket has room ──> is the piece in the page cache? ── yes, or just fetched ──> `sendfile`
//!          ^                       └── no ──> a job reads it ──────┘                       │
//!          └───────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `sendfile` on the loop's thread waits for the disk if a page is not cached. On the thread of a
//! job it would not: but a job that has started cannot be cancelled, and how much of a dropped send
//! went out would be unknown. So jobs read, and the loop sends.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io::{self, Write};
use std::mem::take;
use std::ops::{Bound, RangeBounds};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::error::OsError;
use crate::fs::File;
use crate::io::{AsSource, Source};
use crate::phase;
use crate::sys::send_file;

/// The most bytes of one attempt, and of one job. After so many, a poll phase has to run.
const PIECE: u64 = 1 << 20;

/// The most bytes in memory where they have to be copied.
const COPIED: u64 = 256 * 1024;

/// After a miss in the page cache, this many jobs read before the cache is asked again. The kernel
/// reads ahead meanwhile, and pages on their way count as cached.
const COLD_PIECES: u32 = 16;

/// A socket that bytes of a file can be sent to.
pub(super) trait Outlet: AsSource {
    /// Sends bytes of a file; see [`send_file::send`].
    fn send_file(&self, file: &std::fs::File, offset: u64, length: usize) -> io::Result<usize>;
}

/// The future of [`TcpStream::send_file`](super::TcpStream::send_file) and of its twin for Unix
/// sockets. It returns the number of bytes that the kernel has accepted.
///
/// # Cancel safety
///
/// [`sent`](Self::sent) is exact at any time. Dropping the future sends no more; a job that reads
/// the file may run to its end.
///
/// # Examples
///
/// ```
/// use phaseloop::fs::File;
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let file = File::open("Cargo.toml").await?;
///     let mut sending = client.send_file(&file, 0..9);
///     assert_eq!(sending.sent(), 0);
///     assert_eq!((&mut sending).await?, 9);
///     assert_eq!(sending.sent(), 9);
///     Ok(())
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct SendFile<'a> {
    sent: Rc<Cell<u64>>,
    work: Pin<Box<dyn Future<Output = io::Result<u64>> + 'a>>,
}

impl SendFile<'_> {
    /// The number of bytes that the kernel has accepted so far, also after an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::fs::File;
    /// use phaseloop::net::{TcpListener, TcpStream};
    /// use phaseloop::time::timeout;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     let file = File::open("Cargo.toml").await?;
    ///     let mut sending = stream.send_file(&file, ..);
    ///     let in_time = timeout(Duration::from_secs(5), &mut sending).await;
    ///     println!("{} bytes were sent: {in_time:?}", sending.sent());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl Future for SendFile<'_> {
    type Output = io::Result<u64>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.work.as_mut().poll(cx)
    }
}

impl fmt::Debug for SendFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFile")
            .field("sent", &self.sent())
            .finish_non_exhaustive()
    }
}

/// Sends a range of a file.
pub(super) fn send_file<'a, T>(
    source: &'a Source<T>,
    file: &'a File,
    range: impl RangeBounds<u64>,
) -> SendFile<'a>
where
    T: Outlet,
    for<'b> &'b T: Write,
{
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => u64::MAX,
    };
    let sent = Rc::new(Cell::new(0));
    let sending = Sending {
        source,
        file,
        start,
        end,
        sent: sent.clone(),
        cache: Cache::default(),
    };
    SendFile {
        sent,
        work: Box::pin(sending.run()),
    }
}

struct Sending<'a, T: AsSource> {
    source: &'a Source<T>,
    file: &'a File,
    start: u64,
    end: u64,
    sent: Rc<Cell<u64>>,
    cache: Cache,
}

/// What is known of the page cache.
#[derive(Default)]
struct Cache {
    /// Up to this offset the file was found there, or was read into it.
    ready_to: u64,
    /// Whether that was before a wait. A peer that reads slowly may take until the pages are gone.
    is_old: bool,
    /// Pieces left before the page cache is asked again.
    cold_pieces: u32,
}

impl Cache {
    /// Returns how many of the `wanted` bytes can be sent without a disk. `None`: a job has to read
    /// them first.
    fn ready(&mut self, file: &std::fs::File, offset: u64, wanted: usize) -> Option<usize> {
        let is_old = take(&mut self.is_old);
        let known = self.ready_to.saturating_sub(offset).min(wanted as u64) as usize;
        let length = if known > 0 {
            match is_old {
                // A file system that cannot be asked keeps what a job has just read.
                true => send_file::cached(file, offset, known).unwrap_or(known),
                false => known,
            }
        } else if self.cold_pieces > 0 {
            self.cold_pieces -= 1;
            return None;
        } else {
            send_file::cached(file, offset, wanted)?
        };
        self.ready_to = offset + length as u64;
        if length == 0 {
            self.cold_pieces = COLD_PIECES;
            return None;
        }
        Some(length)
    }
}

/// The outcome of an attempt.
enum Attempt {
    Sent(usize),
    /// A job has to read this many bytes first.
    Cold(usize),
    /// The bytes have to be copied.
    Refused,
}

impl<T> Sending<'_, T>
where
    T: Outlet,
    for<'b> &'b T: Write,
{
    async fn run(mut self) -> io::Result<u64> {
        if self.start > self.end {
            let text = format!(
                "the range {}..{} ends before it starts",
                self.start, self.end
            );
            return Err(self.wrap(io::Error::new(io::ErrorKind::InvalidInput, text)));
        }
        self.end = self.end.min(i64::MAX as u64);
        self.file.written().await;
        let mut since_turn = 0;
        while self.offset() < self.end {
            match self.attempt().await.map_err(|error| self.wrap(error))? {
                Attempt::Sent(0) => break,
                Attempt::Sent(count) => {
                    self.count(count);
                    since_turn += count as u64;
                    if since_turn >= PIECE {
                        since_turn = 0;
                        phase::poll().await;
                    }
                }
                Attempt::Cold(length) => {
                    let read = self.file.fetch(self.offset(), length).await?;
                    if read == 0 {
                        break;
                    }
                    self.cache.ready_to = self.offset() + read as u64;
                }
                Attempt::Refused => return self.copy().await,
            }
        }
        Ok(self.sent.get())
    }

    /// Where the next byte is. It is below 2⁶³, where files end.
    fn offset(&self) -> u64 {
        self.start + self.sent.get()
    }

    fn count(&self, count: usize) {
        self.sent.set(self.sent.get() + count as u64);
    }

    fn wrap(&self, error: io::Error) -> io::Error {
        let path = self.file.path().map(ToOwned::to_owned);
        OsError::wrap(error, "send_file", path)
    }

    /// Waits until the socket has room, and sends what needs no disk.
    async fn attempt(&mut self) -> io::Result<Attempt> {
        let (offset, end) = (self.offset(), self.end);
        let Self {
            source,
            file,
            cache,
            ..
        } = self;
        let file = file.get_ref();
        let attempt = |socket: &T| {
            let wanted = (end - offset).min(PIECE) as usize;
            let Some(length) = cache.ready(file, offset, wanted) else {
                return Ok(Attempt::Cold(wanted));
            };
            match socket.send_file(file, offset, length) {
                Ok(count) => Ok(Attempt::Sent(count)),
                Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Attempt::Refused),
                Err(error) => {
                    cache.is_old |= error.kind() == io::ErrorKind::WouldBlock;
                    Err(error)
                }
            }
        };
        source.write_with(attempt).await
    }

    /// Sends the rest through memory.
    async fn copy(self) -> io::Result<u64> {
        while self.offset() < self.end {
            let wanted = (self.end - self.offset()).min(COPIED) as usize;
            let piece = self.file.piece(self.offset(), wanted).await?;
            if piece.is_empty() {
                break;
            }
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let write = self.source.write_with(|mut socket| socket.write(rest));
                let count = write.await.map_err(|error| self.wrap(error))?;
                if count == 0 {
                    return Err(self.wrap(io::ErrorKind::WriteZero.into()));
                }
                self.count(count);
                rest = &rest[count..];
            }
        }
        Ok(self.sent.get())
    }
}
