//! Reading and writing at an offset, on Unix.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;

use super::file::File;
use super::ops::retry;

/// At an offset, whatever the position is; it stays. Unix only.
///
/// Each call is one job. Many can be in flight at once, and have no order between them. A job has its own copy of the
/// bytes.
///
/// # Cancel safety
///
/// Dropped, a write is carried out whole if a thread has begun it, and not at all if none has.
impl File {
    /// Reads from an offset, with one system call, and says how many bytes: less than there is room for at the end of the
    /// file, 0 behind it.
    ///
    /// # Errors
    ///
    /// Those of the system.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// phaseloop::block_on(async {
    ///     let file = File::open("Cargo.toml").await?;
    ///     let mut word = [0; 7];
    ///     assert_eq!(file.read_at(&mut word, 1).await?, 7);
    ///     assert_eq!(&word, b"package");
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub async fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_vectored_at(&mut [IoSliceMut::new(buffer)], offset)
            .await
    }

    /// The same into several buffers, one after the other.
    ///
    /// # Errors
    ///
    /// As [`read_at`](Self::read_at).
    pub async fn read_vectored_at(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> io::Result<usize> {
        let room = buffers.iter().map(|buffer| buffer.len()).sum();
        self.written().await;
        let bytes = self
            .on_file("read_at", move |file| {
                let mut bytes = vec![0; room];
                let count = retry(|| file.read_at(&mut bytes, offset))?;
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
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the file ends before, and those of the system.
    pub async fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let room = buffer.len();
        self.written().await;
        let bytes = self
            .on_file("read_exact_at", move |file| {
                let mut bytes = vec![0; room];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            })
            .await?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes at an offset and says how many bytes: all of them, unless there is an error after some (R294).
    ///
    /// # Errors
    ///
    /// Those of the system, before anything was written.
    pub async fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.write_vectored_at(&[IoSlice::new(bytes)], offset).await
    }

    /// The same from several buffers, however many they are.
    ///
    /// # Errors
    ///
    /// As [`write_at`](Self::write_at).
    pub async fn write_vectored_at(
        &self,
        buffers: &[IoSlice<'_>],
        offset: u64,
    ) -> io::Result<usize> {
        let bytes = joined(buffers);
        self.change("write_at", move |file| {
            let mut done = 0;
            while done < bytes.len() {
                match retry(|| file.write_at(&bytes[done..], offset + done as u64)) {
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

    /// Writes at an offset, all or an error.
    ///
    /// # Errors
    ///
    /// Those of the system; a part may have been written then.
    pub async fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let bytes = bytes.to_owned();
        self.change("write_all_at", move |file| {
            file.write_all_at(&bytes, offset)
        })
        .await
    }
}

fn joined(buffers: &[IoSlice<'_>]) -> Vec<u8> {
    let length = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut bytes = Vec::with_capacity(length);
    for buffer in buffers {
        bytes.extend_from_slice(buffer);
    }
    bytes
}
