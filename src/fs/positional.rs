//! Reading and writing at an offset.

use std::io::{self, IoSlice, IoSliceMut};

use super::file::File;
use super::ops::retry;
use crate::sys;

/// Reading and writing at an offset, independent of the position.
///
/// Windows has no such call: there, the position moves and is moved back, and other operations of
/// the file wait meanwhile. Another handle of the same open file, as [`try_clone`](Self::try_clone)
/// returns it, may see the position moved.
///
/// On Linux, a read that the page cache has all bytes of is made on the loop's thread, up to 1 MiB
/// before a job runs. Any other call is one job with its own copy of the bytes. Many can be in
/// flight at once; they complete in any order.
///
/// # Cancel safety
///
/// Dropping the future of a write cancels it if no thread has started it; otherwise the write is
/// completed.
impl File {
    /// Reads from an offset with one `pread` and returns the number of bytes: fewer than requested
    /// near EOF, 0 at or beyond it.
    ///
    /// # Errors
    ///
    /// Any OS error of `pread`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future discards the result and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::open("Cargo.toml").await?;
    ///     let mut word = [0; 7];
    ///     assert_eq!(file.read_at(&mut word, 1).await?, 7);
    ///     assert_eq!(&word, b"package");
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_vectored_at(&mut [IoSliceMut::new(buffer)], offset)
            .await
    }

    /// Reads from an offset into several buffers, filling one after the other.
    ///
    /// # Errors
    ///
    /// The errors of [`read_at`](Self::read_at).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future discards the result and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{IoSlice, IoSliceMut};
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create_new(folder.join("data")).await?;
    ///     file.write_vectored_at(&[IoSlice::new(b"head"), IoSlice::new(b"body")], 0).await?;
    ///     let (mut head, mut body) = ([0; 4], [0; 4]);
    ///     let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
    ///     file.read_vectored_at(&mut parts, 0).await?;
    ///     assert_eq!((&head, &body), (b"head", b"body"));
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn read_vectored_at(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> io::Result<usize> {
        self.written().await;
        if let Some(count) = self.fill_at_once_from(buffers, offset) {
            return Ok(count);
        }
        let room = buffers.iter().map(|buffer| buffer.len()).sum();
        let bytes = self
            .on_file("read_at", move |file| {
                let mut bytes = vec![0; room];
                let count = retry(|| sys::fs::read_at(file, &mut bytes, offset))?;
                bytes.truncate(count);
                Ok(bytes)
            })
            .await?;
        let mut rest = &bytes[..];
        for buffer in buffers {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
        }
        Ok(bytes.len())
    }

    /// Fills a buffer from an offset.
    ///
    /// # Errors
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends before the buffer is full;
    /// any OS error of `pread`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future discards the result and has no other effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let file = File::open("Cargo.toml").await?;
    ///     let mut word = [0; 7];
    ///     file.read_exact_at(&mut word, 1).await?; // the position of the file stays
    ///     assert_eq!(&word, b"package");
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.written().await;
        let mut buffers = [IoSliceMut::new(buffer)];
        if self.fill_at_once_from(&mut buffers, offset).is_some() {
            return Ok(());
        }
        let room = buffer.len();
        let bytes = self
            .on_file("read_exact_at", move |file| {
                let mut bytes = vec![0; room];
                sys::fs::read_exact_at(file, &mut bytes, offset)?;
                Ok(bytes)
            })
            .await?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes at an offset and returns the number of bytes written: all of them, unless an error
    /// occurs after some.
    ///
    /// # Errors
    ///
    /// Any OS error of `pwrite` before the first byte was written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write may or may not take place.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("data")).await?;
    ///     file.write_all_at(b"hello, world", 0).await?;
    ///     file.write_at(b"W", 7).await?;
    ///     assert_eq!(fs::read(folder.join("data")).await?, b"hello, World");
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.write_vectored_at(&[IoSlice::new(bytes)], offset).await
    }

    /// Writes any number of buffers at an offset, one after the other.
    ///
    /// # Errors
    ///
    /// The errors of [`write_at`](Self::write_at).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write may or may not take place.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{IoSlice, IoSliceMut};
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create_new(folder.join("data")).await?;
    ///     file.write_vectored_at(&[IoSlice::new(b"head"), IoSlice::new(b"body")], 0).await?;
    ///     let (mut head, mut body) = ([0; 4], [0; 4]);
    ///     let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
    ///     file.read_vectored_at(&mut parts, 0).await?;
    ///     assert_eq!((&head, &body), (b"head", b"body"));
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn write_vectored_at(
        &self,
        buffers: &[IoSlice<'_>],
        offset: u64,
    ) -> io::Result<usize> {
        let bytes = joined(buffers);
        self.change("write_at", move |file| {
            let mut done = 0;
            while done < bytes.len() {
                match retry(|| sys::fs::write_at(file, &bytes[done..], offset + done as u64)) {
                    Ok(0) => break,
                    Ok(count) => done += count,
                    Err(error) if done == 0 => return Err(error),
                    Err(_) => break,
                }
            }
            Ok(done)
        })
        .await
    }

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    ///
    /// Any OS error of `pwrite`. Part of the bytes may have been written.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write may take place in part.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::{self, File};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let file = File::create(folder.join("data")).await?;
    ///     file.write_all_at(b"hello, world", 0).await?;
    ///     file.write_at(b"W", 7).await?;
    ///     assert_eq!(fs::read(folder.join("data")).await?, b"hello, World");
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub async fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let bytes = bytes.to_owned();
        self.change("write_all_at", move |file| {
            sys::fs::write_all_at(file, &bytes, offset)
        })
        .await
    }
}

/// What sending a file to a socket needs.
#[cfg(feature = "net")]
impl File {
    /// Reads a piece by a job, so that it is in the page cache. Returns the number of its bytes:
    /// fewer than asked for if the file ends.
    pub(crate) async fn fetch(&self, offset: u64, length: usize) -> io::Result<usize> {
        self.on_file("send_file", move |file| {
            let mut room = vec![0; length.min(FETCHED_AT_ONCE)];
            let mut done = 0;
            while done < length {
                let part = room.len().min(length - done);
                let offset = offset + done as u64;
                match retry(|| sys::fs::read_at(file, &mut room[..part], offset))? {
                    0 => break,
                    count => done += count,
                }
            }
            Ok(done)
        })
        .await
    }

    /// Reads a piece by a job: no bytes at EOF.
    pub(crate) async fn piece(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        self.on_file("send_file", move |file| {
            let mut bytes = vec![0; length];
            let count = retry(|| sys::fs::read_at(file, &mut bytes, offset))?;
            bytes.truncate(count);
            Ok(bytes)
        })
        .await
    }
}

/// The size of the reads that fill the page cache.
#[cfg(feature = "net")]
const FETCHED_AT_ONCE: usize = 64 * 1024;

#[inline]
fn joined(buffers: &[IoSlice<'_>]) -> Vec<u8> {
    let length = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut bytes = Vec::with_capacity(length);
    for buffer in buffers {
        bytes.extend_from_slice(buffer);
    }
    bytes
}
