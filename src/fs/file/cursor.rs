//! The position of a file: one job at a time uses it, and data is read ahead of it.
//!
//! The cursor holds no wakers. Callers register them while the cursor is not borrowed.
//!
//! The OS position is ahead of the file's position by the bytes in the buffer plus `behind`.
//!
//! ```text
//!   read ──> in the buffer? ──> in the page cache? ──> a job, then a job that reads ahead
//! ```

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::task::{Poll, ready};

use super::writer::{Accepted, Shared};
use crate::blocking::Work;
use crate::fs::job;
use crate::fs::ops::retry;
use crate::phase::{self, PhaseFuture};
use crate::sys;

/// The size of the first read of a seekable file, and of later reads when it is read sequentially.
const SMALLEST_READ: usize = 16 * 1024;
const LARGEST_READ: usize = 512 * 1024;

/// Reads of at least this size start before the previous piece is used up.
const READ_AHEAD_FROM: usize = 128 * 1024;

/// The size of a read without a job into the file's own buffer. A user's buffer of at least this
/// size is filled directly.
const READ_AT_ONCE: usize = 64 * 1024;

/// After this many bytes without a job, a poll phase must run.
const MOST_AT_ONCE: usize = 1 << 20;

/// A read at an offset counts as this many bytes at least: a small one takes as long.
const SMALLEST_STEP: usize = 4096;

/// After a miss in the page cache, this many jobs read before the cache is tried again.
const COLD_READS: u32 = 16;

#[derive(Default)]
pub(super) struct Cursor {
    flight: Flight,
    ahead: Ahead,
    /// An allocation for the next read.
    spare: Vec<u8>,
    /// The distance from the end of the buffer to the OS position.
    behind: u64,
    /// The least size of the next read; 0 before the first.
    window: usize,
    /// `None`: not known before the first read.
    can_seek: Option<bool>,
    /// The result of the last seek, for a caller that polls again. Reads, writes and changes of the
    /// length discard it.
    sought: Option<(SeekFrom, io::Result<u64>)>,
    /// Whether the last operation was a read that found EOF. The next read must not wait for a job
    /// then: the `fill_buf` of some crates polls a reader twice, and panics unless the second poll
    /// is ready like the first.
    has_found_end: bool,
    /// Whether data in the page cache is read without a job.
    reads_at_once: bool,
    /// Reads left before the page cache is tried again.
    cold_reads: u32,
    /// Bytes read without a job since the last job or poll phase.
    read_at_once: usize,
}

/// The job that uses the position, other than a write.
#[derive(Default)]
enum Flight {
    #[default]
    None,
    Read(Work<ReadEnd>),
    Seek(SeekFrom, Work<io::Result<u64>>),
    /// No job: a poll phase must run first.
    Turn(PhaseFuture),
}

/// Data that was read and not yet consumed.
#[derive(Default)]
struct Ahead {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Ahead {
    #[inline]
    fn len(&self) -> usize {
        self.end - self.start
    }
}

struct ReadEnd {
    buffer: Vec<u8>,
    count: io::Result<usize>,
    asked: usize,
    can_seek: bool,
}

impl Cursor {
    /// Sets whether data in the page cache is read without a job. A file with a duplicate
    /// descriptor must not: the kernel's lock on the shared position could block the loop.
    #[inline]
    pub(super) fn set_reads_at_once(&mut self, reads_at_once: bool) {
        self.reads_at_once = reads_at_once;
    }

    /// Reads at least one byte into the buffers, or 0 at EOF.
    #[inline]
    pub(super) fn poll_read(
        &mut self,
        shared: &Arc<Shared>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let room = room(buffers);
        if room == 0 {
            return Poll::Ready(Ok(0));
        }
        let is_direct = room >= READ_AT_ONCE && self.ahead.len() == 0;
        if is_direct && matches!(self.flight, Flight::None | Flight::Turn(_)) {
            ready!(Self::poll_written(shared));
            ready!(self.poll_turn(shared));
            if let Some(count) = self.read_at_once(shared, buffers) {
                return Poll::Ready(Ok(count));
            }
        }
        ready!(self.poll_fill(shared, room))?;
        if self.can_seek == Some(false) {
            // Only a repeated fill finds the same EOF again: other bytes may follow.
            self.has_found_end = false;
        }
        let mut count = 0;
        for buffer in buffers {
            let ahead = self.ahead();
            let taken = ahead.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&ahead[..taken]);
            self.consume(taken);
            count += taken;
        }
        Poll::Ready(Ok(count))
    }

    /// Reads at least one byte from the page cache. `None`: a job must read.
    #[inline]
    fn read_at_once(
        &mut self,
        shared: &Arc<Shared>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Option<usize> {
        let is_possible = self.reads_at_once && self.can_seek == Some(true) && self.behind == 0;
        let most = MOST_AT_ONCE.saturating_sub(self.read_at_once);
        if !is_possible || most == 0 {
            return None;
        }
        let read = if room(buffers) <= most {
            sys::fs::read_at_once(shared.file(), buffers, None)
        } else {
            // A copy of any length would stop the loop.
            let first = buffers.iter_mut().find(|buffer| !buffer.is_empty())?;
            let length = first.len().min(most);
            let mut first = [IoSliceMut::new(&mut first[..length])];
            sys::fs::read_at_once(shared.file(), &mut first, None)
        };
        match read {
            // Some kernels return 0 for data that is not in the page cache, so this need not be
            // EOF. A job finds out.
            Ok(0) => None,
            Ok(count) => {
                self.sought = None;
                self.cold_reads = 0;
                self.read_at_once += count;
                Some(count)
            }
            Err(error) => {
                self.cold_reads = COLD_READS;
                self.reads_at_once = error.kind() == io::ErrorKind::WouldBlock;
                None
            }
        }
    }

    /// Fills the buffers from an offset out of the page cache. With one read at a time this takes
    /// less than a fifth of the time of a job, with 64 half of it. `None`: a job must read, since
    /// bytes are missing, or since other tasks should run. After it, call [`Self::after_job`].
    #[inline]
    pub(super) fn fill_at_once_from(
        &mut self,
        shared: &Arc<Shared>,
        buffers: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Option<usize> {
        let room = room(buffers);
        let cost = room.max(SMALLEST_STEP);
        if !self.reads_at_once || cost > MOST_AT_ONCE.saturating_sub(self.read_at_once) {
            return None;
        }
        let count = sys::fs::read_at_once(shared.file(), buffers, Some(offset)).ok()?;
        // Fewer are what is cached, or all up to EOF: a job finds out.
        (count == room).then(|| {
            self.read_at_once += cost;
            count
        })
    }

    /// A job has run, so other tasks have.
    #[inline]
    pub(super) fn after_job(&mut self) {
        self.read_at_once = 0;
    }

    /// The data that was read ahead.
    #[inline]
    pub(super) fn ahead(&self) -> &[u8] {
        &self.ahead.buffer[self.ahead.start..self.ahead.end]
    }

    /// Returns whether the last fill found EOF in a file that cannot seek, and forgets it. Another
    /// read could block there, so the fill is answered again.
    #[inline]
    pub(super) fn take_end_of_stream(&mut self) -> bool {
        self.can_seek == Some(false) && self.forget_end()
    }

    /// Forgets that EOF was found, and returns whether it was.
    #[inline]
    pub(super) fn forget_end(&mut self) -> bool {
        std::mem::take(&mut self.has_found_end)
    }

    #[inline]
    pub(super) fn consume(&mut self, count: usize) {
        self.ahead.start = (self.ahead.start + count).min(self.ahead.end);
    }

    /// Waits until the buffer holds data. At EOF it stays empty.
    #[inline]
    pub(super) fn poll_fill(&mut self, shared: &Arc<Shared>, asked: usize) -> Poll<io::Result<()>> {
        loop {
            if self.ahead.len() > 0 {
                return Poll::Ready(Ok(()));
            }
            match &mut self.flight {
                Flight::None => {
                    ready!(Self::poll_written(shared));
                    ready!(self.poll_turn(shared));
                    if self.has_found_end && self.can_seek == Some(true) {
                        return Poll::Ready(self.fill_behind_end(shared));
                    }
                    if self.fill_at_once(shared).is_none() {
                        self.submit_read(shared, asked)?;
                    }
                }
                Flight::Read(work) => {
                    let end = ready!(shared.poll_job(work));
                    self.flight = Flight::None;
                    let is_full = end.count.as_ref().is_ok_and(|&count| count == end.asked);
                    let count = self.take_read(end)?;
                    if is_full && self.reads_ahead() {
                        self.submit_read(shared, asked)?;
                    }
                    if count == 0 {
                        self.has_found_end = true;
                        return Poll::Ready(Ok(()));
                    }
                }
                Flight::Seek(..) | Flight::Turn(_) => ready!(self.poll_flight(shared)),
            }
        }
    }

    /// Waits for a poll phase if so much was read without a job that other tasks should run.
    #[inline]
    fn poll_turn(&mut self, shared: &Arc<Shared>) -> Poll<()> {
        if self.read_at_once >= MOST_AT_ONCE {
            self.read_at_once = 0;
            self.flight = Flight::Turn(phase::poll());
        }
        match self.flight {
            Flight::Turn(_) => self.poll_flight(shared),
            _ => Poll::Ready(()),
        }
    }

    /// Whether the next piece is fetched while the last one is in use.
    #[inline]
    fn reads_ahead(&mut self) -> bool {
        let is_cold = self.cold_reads > 0 || !self.reads_at_once;
        self.cold_reads = self.cold_reads.saturating_sub(1);
        is_cold && self.can_seek == Some(true) && self.window >= READ_AHEAD_FROM
    }

    /// Fills the empty buffer from the page cache. `None`: a job must read.
    #[inline]
    fn fill_at_once(&mut self, shared: &Arc<Shared>) -> Option<usize> {
        let mut buffer = std::mem::take(&mut self.ahead.buffer);
        if buffer.len() < READ_AT_ONCE && self.reads_at_once && self.can_seek == Some(true) {
            buffer = vec![0; READ_AT_ONCE];
        }
        let length = buffer.len().min(READ_AT_ONCE);
        let count = self.read_at_once(shared, &mut [IoSliceMut::new(&mut buffer[..length])]);
        self.ahead.buffer = buffer;
        (self.ahead.start, self.ahead.end) = (0, count.unwrap_or(0));
        count
    }

    /// Reads again where EOF was found, on this thread. The disk is not needed: bytes that were
    /// appended since then are in the page cache.
    #[inline]
    fn fill_behind_end(&mut self, shared: &Arc<Shared>) -> io::Result<()> {
        self.sought = None;
        if self.ahead.buffer.is_empty() {
            self.ahead.buffer = vec![0; SMALLEST_READ];
        }
        let length = self.ahead.buffer.len().min(READ_AT_ONCE);
        let (mut file, buffer) = (shared.file(), &mut self.ahead.buffer[..length]);
        let read = sys::fs::at_position(shared.file(), || retry(|| file.read(buffer)));
        let count = read.map_err(|error| shared.wrap(error, "read"))?;
        (self.ahead.start, self.ahead.end) = (0, count);
        self.has_found_end = count == 0;
        Ok(())
    }

    #[inline]
    fn submit_read(&mut self, shared: &Arc<Shared>, asked: usize) -> io::Result<()> {
        self.sought = None;
        self.read_at_once = 0;
        let asked = asked.clamp(1, LARGEST_READ);
        let window = asked.max(self.window).max(SMALLEST_READ);
        let (known, behind) = (self.can_seek, self.take_behind());
        let mut buffer = std::mem::take(&mut self.spare);
        let (shared, about) = (shared.clone(), || shared.about());
        let work = job::submit("read", None, about, move || {
            let mut file = shared.file();
            let can_seek = known.unwrap_or_else(|| sys::fs::can_seek(file));
            let asked = if can_seek { window } else { asked };
            if buffer.len() < asked {
                // A new allocation, since growing the old one would copy bytes that are not needed.
                buffer = vec![0; asked];
            }
            let count = sys::fs::at_position(file, || {
                let moved = behind.map_or(Ok(0), |behind| file.seek(SeekFrom::Current(behind)));
                moved.and_then(|_| retry(|| file.read(&mut buffer[..asked])))
            });
            ReadEnd {
                buffer,
                count: count.map_err(|error| shared.wrap(error, "read")),
                asked,
                can_seek,
            }
        })?;
        self.flight = Flight::Read(work);
        Ok(())
    }

    /// Stores the bytes of a read for the next reader. If the buffer still holds data, the new
    /// bytes are left in the file.
    #[inline]
    fn take_read(&mut self, end: ReadEnd) -> io::Result<usize> {
        self.can_seek = Some(end.can_seek);
        let count = match end.count {
            Ok(count) => count,
            Err(error) => {
                self.spare = end.buffer;
                return Err(error);
            }
        };
        if count == end.asked {
            self.window = (end.asked * 2).min(LARGEST_READ);
        }
        if self.ahead.len() > 0 {
            self.behind += count as u64;
            self.spare = end.buffer;
        } else {
            self.spare = std::mem::replace(&mut self.ahead.buffer, end.buffer);
            (self.ahead.start, self.ahead.end) = (0, count);
        }
        Ok(count)
    }

    /// Accepts bytes for writing.
    #[inline]
    pub(super) fn poll_write(
        &mut self,
        shared: &Arc<Shared>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        ready!(self.poll_flight(shared));
        match shared.accept(buffers) {
            Accepted::Failed(error) => Poll::Ready(Err(error)),
            Accepted::NoRoom => Poll::Pending,
            Accepted::Bytes { count, is_writing } => {
                if !is_writing {
                    self.start_writing(shared)?;
                }
                Poll::Ready(Ok(count))
            }
        }
    }

    #[inline]
    fn start_writing(&mut self, shared: &Arc<Shared>) -> io::Result<()> {
        self.sought = None;
        self.forget_ahead();
        shared.start_writing(self.take_behind())
    }

    /// Waits until accepted writes are done.
    #[inline]
    pub(super) fn poll_written(shared: &Arc<Shared>) -> Poll<()> {
        if shared.is_writing() {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Moves the position.
    #[inline]
    pub(super) fn poll_seek(
        &mut self,
        shared: &Arc<Shared>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        loop {
            ready!(self.poll_idle(shared));
            match self.sought.take() {
                // The result of an equal seek whose future was dropped serves as well.
                Some((sought, result)) if sought == to => return Poll::Ready(result),
                _ => self.submit_seek(shared, to)?,
            }
        }
    }

    #[inline]
    fn submit_seek(&mut self, shared: &Arc<Shared>, to: SeekFrom) -> io::Result<()> {
        self.forget_ahead();
        self.window = 0;
        let behind = self.take_behind().unwrap_or(0);
        let (shared, about) = (shared.clone(), || shared.about());
        let work = job::submit("seek", None, about, move || {
            let mut file = shared.file();
            // Seeks to the file's position first: a relative seek starts there, and a failed seek
            // leaves it there.
            let sought = sys::fs::at_position(file, || {
                if behind != 0 {
                    file.seek(SeekFrom::Current(behind))?;
                }
                sys::fs::seek(file, to)
            });
            sought.map_err(|error| shared.wrap(error, "seek"))
        })?;
        self.flight = Flight::Seek(to, work);
        Ok(())
    }

    /// Waits until no job uses the position.
    #[inline]
    pub(super) fn poll_idle(&mut self, shared: &Arc<Shared>) -> Poll<()> {
        ready!(self.poll_flight(shared));
        Self::poll_written(shared)
    }

    /// Waits for the job in flight. The error of a read-ahead is dropped: the next read meets it
    /// again.
    #[inline]
    fn poll_flight(&mut self, shared: &Arc<Shared>) -> Poll<()> {
        match &mut self.flight {
            Flight::None => {}
            Flight::Read(work) => {
                let end = ready!(shared.poll_job(work));
                let _ = self.take_read(end);
            }
            Flight::Seek(to, work) => {
                let result = ready!(shared.poll_job(work));
                self.sought = Some((*to, result));
            }
            Flight::Turn(turn) => ready!(shared.poll_job(turn)),
        }
        self.flight = Flight::None;
        Poll::Ready(())
    }

    /// Discards data that was read ahead, to be read again. Data of a file that cannot seek is
    /// kept.
    #[inline]
    pub(super) fn forget_ahead(&mut self) {
        self.forget_sought();
        self.forget_end();
        if self.can_seek == Some(true) {
            self.behind += self.ahead.len() as u64;
            (self.ahead.start, self.ahead.end) = (0, 0);
        }
    }

    /// Discards the result of a seek whose future was dropped, since length or position may have
    /// changed. The result of a relative seek is kept: repeating it would move the position twice.
    #[inline]
    pub(super) fn forget_sought(&mut self) {
        let is_relative = matches!(self.sought, Some((SeekFrom::Current(_), _)));
        if !is_relative {
            self.sought = None;
        }
    }

    /// Moves the OS position to the file's position, without waiting. Returns `false` if a job uses
    /// the position, or if the move is not possible.
    #[inline]
    pub(super) fn comes_to_rest(&mut self, shared: &Arc<Shared>) -> bool {
        if self.poll_idle(shared).is_pending() {
            return false;
        }
        self.forget_ahead();
        if self.ahead.len() > 0 {
            return false;
        }
        let behind = self.behind;
        let Some(back) = self.take_behind() else {
            return true;
        };
        let mut file = shared.file();
        let moved = sys::fs::at_position(file, || file.seek(SeekFrom::Current(back)));
        if moved.is_err() {
            self.behind = behind;
        }
        moved.is_ok()
    }

    /// Takes the seek that must precede the next use of the OS position.
    #[inline]
    pub(super) fn take_behind(&mut self) -> Option<i64> {
        let behind = std::mem::take(&mut self.behind);
        // It never exceeds the size of two buffers.
        (behind > 0).then(|| -i64::try_from(behind).unwrap_or(i64::MAX))
    }
}

/// The number of bytes that the buffers take.
#[inline]
fn room(buffers: &[IoSliceMut<'_>]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).sum()
}
