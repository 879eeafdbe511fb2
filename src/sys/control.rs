//! Control messages, which the kernel passes beside the bytes of a message. They are written and
//! read as bytes: what a peer or a kernel has cut short is found by the lengths of slices.
#![allow(unsafe_code, reason = "the padding between messages is a macro of C")]

use std::mem::offset_of;

use libc::{c_int, cmsghdr};

/// The bytes of a header, up to its data.
pub(super) const HEADER: usize = space_for(0);

/// The bytes of the length in a header: its type differs between platforms.
const LENGTH: usize = size_of_field(|header| &header.cmsg_len);

const fn size_of_field<T>(_: fn(&cmsghdr) -> &T) -> usize {
    size_of::<T>()
}

/// The length of a header with so many bytes of data, and of the padding up to the next header.
pub(super) const fn space_for(data: usize) -> usize {
    // SAFETY: a calculation that uses no memory.
    unsafe { libc::CMSG_SPACE(data as u32) as usize }
}

/// Writes a header for so many bytes of data to the start of control data.
pub(super) fn write_header(control: &mut [u8], (level, kind): (c_int, c_int), data: usize) {
    // There may be padding between the fields.
    control[..HEADER].fill(0);
    let mut write = |at: usize, field: &[u8]| control[at..at + field.len()].copy_from_slice(field);
    let (at, length) = (offset_of!(cmsghdr, cmsg_len), HEADER + data);
    match LENGTH {
        4 => write(at, &(length as u32).to_ne_bytes()),
        _ => write(at, &(length as u64).to_ne_bytes()),
    }
    write(offset_of!(cmsghdr, cmsg_level), &level.to_ne_bytes());
    write(offset_of!(cmsghdr, cmsg_type), &kind.to_ne_bytes());
}

/// Calls `take` with level, type and data of each message in the control data.
///
/// A length that goes beyond the control data is cut: macOS leaves the length of a message that did
/// not fit as it was sent.
#[inline]
pub(super) fn each(mut control: &[u8], mut take: impl FnMut(c_int, c_int, &[u8])) {
    while let Some((length, level, kind)) = read_header(control) {
        // No kernel writes a header that is shorter than itself: nothing is behind it.
        let Some(data) = control.get(HEADER..length.min(control.len())) else {
            break;
        };
        take(level, kind, data);
        // There is nothing behind control data that was cut, and its length may be any number.
        control = control.get(space_for(data.len())..).unwrap_or_default();
    }
}

/// Reads length, level and type of the header that the control data begins with. `None`: the rest
/// is shorter than a header.
fn read_header(control: &[u8]) -> Option<(usize, c_int, c_int)> {
    let header: &[u8; HEADER] = control.first_chunk()?;
    let number = |at: usize| c_int::from_ne_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    let at = offset_of!(cmsghdr, cmsg_len);
    let length = match LENGTH {
        4 => number(at) as u32 as usize,
        _ => u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| header[at + byte])) as usize,
    };
    let level = number(offset_of!(cmsghdr, cmsg_level));
    let kind = number(offset_of!(cmsghdr, cmsg_type));
    Some((length, level, kind))
}
