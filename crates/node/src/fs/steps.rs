//! The steps of file operations. Each step is one job of the pool, as in Node.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::flags::{Flags, Opened};
use super::options::{ReadFileOptions, WriteFileOptions};
use phaseloop::OsError;
use phaseloop::extension::About;

use crate::abort::AbortSignal;
use crate::error::Error;
use phaseloop::extension::files::{self, retry};

/// The size of one read.
const READ_SIZE: usize = 512 * 1024;

/// Runs one job on a file. Its error names the operation but no path, as Node's errors on open
/// files do.
pub(super) async fn with_file<T: Send + 'static>(
    operation: &'static str,
    file: &Opened,
    work: impl FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    with_named(operation, file, None, work).await
}

/// Runs one job on a file. Its error names the operation and the path, if there is one.
async fn with_named<T: Send + 'static>(
    operation: &'static str,
    file: &Opened,
    path: Option<PathBuf>,
    work: impl FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let file = file.clone();
    files::run_on(operation, About::default, move || {
        work(&file).map_err(|error| {
            let about = About {
                path,
                ..About::default()
            };
            OsError::wrap(error, operation, about)
        })
    })
    .await
}

/// Reads once, at an offset or at the current position.
pub(super) async fn read(file: &Opened, size: usize, offset: Option<u64>) -> io::Result<Vec<u8>> {
    read_named(file, None, size, offset).await
}

async fn read_named(
    file: &Opened,
    path: Option<PathBuf>,
    size: usize,
    offset: Option<u64>,
) -> io::Result<Vec<u8>> {
    with_named("read_at", file, path, move |mut file| {
        let mut bytes = vec![0; size];
        let count = retry(|| match offset {
            Some(offset) => files::read_at(file, &mut bytes, offset),
            None => files::at_position(file, || file.read(&mut bytes)),
        })?;
        bytes.truncate(count);
        Ok(bytes)
    })
    .await
}

/// Writes once, at an offset or at the current position. Returns the number of bytes written and
/// the buffer.
pub(super) async fn write(
    file: &Opened,
    bytes: Vec<u8>,
    offset: Option<u64>,
) -> io::Result<(usize, Vec<u8>)> {
    with_file("write_at", file, move |mut file| {
        let count = retry(|| match offset {
            Some(offset) => files::write_at(file, &bytes, offset),
            None => files::at_position(file, || file.write(&bytes)),
        })?;
        Ok((count, bytes))
    })
    .await
}

/// Reads once into several buffers.
pub(super) async fn read_vectored(
    file: &Opened,
    mut buffers: Vec<Vec<u8>>,
    offset: Option<u64>,
) -> io::Result<(usize, Vec<Vec<u8>>)> {
    with_file("read_at", file, move |mut file| {
        let Some(offset) = offset else {
            let mut slices: Vec<_> = buffers.iter_mut().map(|one| IoSliceMut::new(one)).collect();
            let count = retry(|| files::at_position(file, || file.read_vectored(&mut slices)))?;
            return Ok((count, buffers));
        };
        let mut total = 0;
        for buffer in &mut buffers {
            let count = retry(|| files::read_at(file, buffer, offset + total as u64))?;
            total += count;
            if count < buffer.len() {
                break;
            }
        }
        Ok((total, buffers))
    })
    .await
}

/// Writes several buffers once.
pub(super) async fn write_vectored(
    file: &Opened,
    buffers: Vec<Vec<u8>>,
    offset: Option<u64>,
) -> io::Result<usize> {
    with_file("write_at", file, move |mut file| {
        let Some(offset) = offset else {
            let slices: Vec<_> = buffers.iter().map(|one| IoSlice::new(one)).collect();
            return retry(|| files::at_position(file, || file.write_vectored(&slices)));
        };
        let mut total = 0;
        for buffer in &buffers {
            let count = retry(|| files::write_at(file, buffer, offset + total as u64))?;
            total += count;
            if count < buffer.len() {
                break;
            }
        }
        Ok(total)
    })
    .await
}

/// Closes the file. If a job still uses it, the file closes when that job ends.
pub(super) async fn close(file: Opened) -> io::Result<()> {
    files::run_on("close", About::default, move || {
        match Arc::into_inner(file) {
            Some(file) => {
                files::close(file).map_err(|error| OsError::wrap(error, "close", About::default()))
            }
            None => Ok(()),
        }
    })
    .await
}

/// Returns the error of an aborted operation, if `signal` is aborted.
fn check(signal: Option<&AbortSignal>) -> Result<(), Error> {
    match signal.and_then(AbortSignal::reason) {
        Some(reason) => Err(Error::aborted_by(reason)),
        None => Ok(()),
    }
}

/// Reads a file from its current position to EOF. An error of a read names the path.
pub(super) async fn read_rest(
    file: &Opened,
    path: Option<&Path>,
    signal: Option<&AbortSignal>,
) -> Result<Vec<u8>, Error> {
    let metadata = with_file("fstat", file, std::fs::File::metadata).await?;
    let size = if metadata.is_file() {
        usize::try_from(metadata.len()).unwrap_or(usize::MAX)
    } else {
        0
    };
    let mut contents = Vec::new();
    loop {
        check(signal)?;
        let missing = size.saturating_sub(contents.len());
        let wanted = if missing > 0 { missing } else { READ_SIZE };
        let named = path.map(Path::to_owned);
        let bytes = read_named(file, named, wanted.min(READ_SIZE), None).await?;
        let count = bytes.len();
        if contents.is_empty() {
            contents = bytes;
        } else {
            contents.extend_from_slice(&bytes);
        }
        if count == 0 || contents.len() == size {
            return Ok(contents);
        }
    }
}

/// Writes all bytes at the current position.
pub(super) async fn write_all(
    file: &Opened,
    bytes: Vec<u8>,
    signal: Option<&AbortSignal>,
) -> Result<(), Error> {
    let mut rest = bytes;
    while !rest.is_empty() {
        check(signal)?;
        let (count, mut bytes) = write(file, rest, None).await?;
        bytes.drain(..count);
        rest = bytes;
    }
    Ok(())
}

/// Opens a file, runs an operation on it, and closes it whatever the result is.
async fn with_opened<T, F>(
    path: &Path,
    flags: Flags,
    mode: u32,
    work: impl FnOnce(Opened) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let file = flags.open(path, mode).await?;
    let result = work(file.clone()).await;
    let closed = close(file).await;
    let output = result?;
    closed?;
    Ok(output)
}

pub(super) async fn read_file(path: PathBuf, options: ReadFileOptions) -> Result<Vec<u8>, Error> {
    let ReadFileOptions { flag, signal } = options;
    check(signal.as_ref())?;
    let named = &path;
    with_opened(named, flag, 0o666, |file| async move {
        read_rest(&file, Some(named), signal.as_ref()).await
    })
    .await
}

pub(super) async fn write_file(
    path: PathBuf,
    contents: Vec<u8>,
    options: WriteFileOptions,
) -> Result<(), Error> {
    let WriteFileOptions {
        flag,
        mode,
        flush,
        signal,
    } = options;
    check(signal.as_ref())?;
    with_opened(&path, flag, mode, |file| async move {
        write_all(&file, contents, signal.as_ref()).await?;
        if flush {
            with_file("sync_all", &file, std::fs::File::sync_all).await?;
        }
        Ok(())
    })
    .await
}

pub(super) async fn truncate(path: PathBuf, length: u64) -> Result<(), Error> {
    with_opened(&path, Flags::from("r+"), 0o666, |file| async move {
        let cut = with_file("set_len", &file, move |file| file.set_len(length)).await;
        cut.map_err(Error::from)
    })
    .await
}
