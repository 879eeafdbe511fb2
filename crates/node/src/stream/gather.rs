//! Vectored writes: several chunks in one system call. JavaScript: `writev`.

use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::task::{Context, Poll};

/// The maximum number of buffers of one call. A longer list would be cut by the kernel, which looks
/// like a partial write.
const MOST_BUFFERS: usize = 1024;

/// Writes all chunks through `write`, with as many buffers per call as the kernel accepts.
pub(crate) async fn write_chunks<E: From<io::Error>>(
    chunks: &[Vec<u8>],
    mut write: impl FnMut(&mut Context<'_>, &[IoSlice<'_>]) -> Poll<Result<usize, E>>,
) -> Result<(), E> {
    let mut slices = slices_of(chunks);
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        let next = &rest[..rest.len().min(MOST_BUFFERS)];
        let size = poll_fn(|cx| write(cx, next)).await?;
        if size == 0 {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        IoSlice::advance_slices(&mut rest, size);
    }
    Ok(())
}

/// Writes all chunks into a blocking writer.
pub(crate) fn write_chunks_blocking(mut to: impl Write, chunks: &[Vec<u8>]) -> io::Result<()> {
    let mut slices = slices_of(chunks);
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match to.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(size) => IoSlice::advance_slices(&mut rest, size),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn slices_of(chunks: &[Vec<u8>]) -> Vec<IoSlice<'_>> {
    let filled = chunks.iter().filter(|chunk| !chunk.is_empty());
    filled.map(|chunk| IoSlice::new(chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::{MOST_BUFFERS, write_chunks, write_chunks_blocking};
    use futures::FutureExt as _;
    use std::io;
    use std::task::Poll;

    #[test]
    fn more_chunks_than_the_system_takes_are_written_in_order() {
        let chunks: Vec<_> = (0..5000)
            .map(|n: u32| vec![n as u8; n as usize % 3])
            .collect();
        let mut written = Vec::new();
        let whole = write_chunks(&chunks, |_, buffers| {
            assert!(buffers.len() <= MOST_BUFFERS);
            // This writer accepts only a part of each call.
            let all = buffers.iter().flat_map(|buffer| buffer.to_vec());
            let all: Vec<_> = all.collect();
            let taken = &all[..all.len().div_ceil(2)];
            written.extend_from_slice(taken);
            Poll::Ready(Ok::<_, io::Error>(taken.len()))
        });
        whole.now_or_never().unwrap().unwrap();
        assert_eq!(written, chunks.concat());
        let mut written = Vec::new();
        write_chunks_blocking(&mut written, &chunks).unwrap();
        assert_eq!(written, chunks.concat());
    }
}
