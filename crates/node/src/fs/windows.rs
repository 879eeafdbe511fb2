//! What files of Windows have.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::stats::Numbers;

/// Returns the mode of a file as libuv makes it up. The other numbers are zero.
pub(super) fn numbers(metadata: &Metadata) -> (Numbers, Option<SystemTime>) {
    let kind = match metadata.file_type() {
        kind if kind.is_symlink() => 0o120_000,
        kind if kind.is_dir() => 0o040_000,
        _ => 0o100_000,
    };
    let permissions = if metadata.permissions().readonly() {
        0o444
    } else {
        0o666
    };
    let numbers = Numbers {
        mode: kind | permissions,
        nlink: 1,
        ..Numbers::default()
    };
    (numbers, None)
}

/// Does nothing: a copy has the attributes of its source.
#[expect(
    clippy::unused_async,
    reason = "the signature is shared with the platform that has modes"
)]
pub(super) async fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}
