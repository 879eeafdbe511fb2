//! Linux: `sendfile`, after a look into the page cache.
//!
//! `sendfile` waits for the disk although the socket does not block. `cachestat` (Linux 6.5) counts
//! the pages of a range that are cached, also those that are just being read. So one byte is read
//! before, the last one, without waiting: reads ahead proceed towards it. Where `cachestat` is
//! missing, or refused for a file that this user may not write, the whole range is read without
//! waiting: a copy to a small buffer, and still none to the socket.
#![allow(
    unsafe_code,
    reason = "rustix has no `cachestat`, and lends no buffer twice"
)]

use std::fs::File;
use std::io;

use rustix::io::Errno;

use crate::sys::poller::AsSource;

/// Android's filter of system calls ends a process that makes an unknown one.
#[cfg(target_os = "android")]
pub(super) fn cached(_: &File, _: u64, _: usize) -> Option<usize> {
    None
}

#[cfg(target_os = "linux")]
pub(super) use page_cache::cached;

pub(super) fn send(
    socket: &impl AsSource,
    file: &File,
    mut offset: u64,
    length: usize,
) -> io::Result<usize> {
    match rustix::fs::sendfile(socket.source(), file, Some(&mut offset), length) {
        // A file that cannot be mapped, such as some of /proc, and a kernel without the call.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        sent => Ok(sent?),
    }
}

#[cfg(target_os = "linux")]
mod page_cache {
    use std::fs::File;
    use std::io::{self, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{AtFlags, StatxFlags, statx};
    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    /// Whether the kernel has `cachestat`.
    static CAN_COUNT: AtomicBool = AtomicBool::new(true);

    /// The number of the call on all processors but MIPS and Alpha.
    const CACHESTAT: libc::c_long = 451;

    /// The range as the kernel takes it.
    #[repr(C)]
    struct Asked {
        offset: u64,
        length: u64,
    }

    /// Pages by their state, of which the first counts those in the cache.
    #[repr(C)]
    #[derive(Default)]
    struct Counted([u64; 5]);

    pub(in crate::sys::send_file) fn cached(
        file: &File,
        offset: u64,
        length: usize,
    ) -> Option<usize> {
        let mut length = length;
        // The second round is for a range that reaches beyond EOF.
        for _ in 0..2 {
            match read_byte(file, offset + length as u64 - 1) {
                Ok(0) => {}
                Ok(_) => return Some(count(file, offset, length)),
                Err(Errno::AGAIN) => return Some(0),
                Err(_) => return None,
            }
            // What is known of the file here: this does not ask a server for its size.
            let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
            let size = statx(file, c"", flags, StatxFlags::SIZE).ok()?.stx_size;
            let rest = size.saturating_sub(offset);
            if rest == 0 {
                // A send finds EOF.
                return Some(length);
            }
            length = usize::try_from(rest).map_or(length, |rest| rest.min(length));
        }
        // The file is being changed. A job finds out.
        Some(0)
    }

    /// Reads a byte if it is cached: 0 bytes behind EOF.
    fn read_byte(file: &File, offset: u64) -> Result<usize, Errno> {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT)
    }

    fn count(file: &File, offset: u64, length: usize) -> usize {
        if CAN_COUNT.load(Ordering::Relaxed) {
            match is_all_there(file, offset, length) {
                Ok(true) => return length,
                Ok(false) => return 0,
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    CAN_COUNT.store(false, Ordering::Relaxed);
                }
                // A filter of system calls, or a file of another user.
                Err(_) => {}
            }
        }
        read_through(file, offset, length)
    }

    /// Asks whether all pages of a range are cached, by `cachestat`.
    fn is_all_there(file: &File, offset: u64, length: usize) -> io::Result<bool> {
        if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let length = length as u64;
        let asked = Asked { offset, length };
        let mut counted = Counted::default();
        // SAFETY: the kernel reads the range, and writes five counts. The second call is a query
        // without pointers.
        let (result, page) = unsafe {
            let (asked, counted) = (&raw const asked, &raw mut counted);
            let result = libc::syscall(CACHESTAT, file.as_raw_fd(), asked, counted, 0);
            (result, libc::sysconf(libc::_SC_PAGESIZE))
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let page = u64::try_from(page).map_or(4096, |page| page.max(1));
        let pages = (offset + length).div_ceil(page) - offset / page;
        Ok(counted.0[0] == pages)
    }

    // musl has the one name for 64 bits.
    #[cfg(target_env = "musl")]
    use libc::preadv2 as preadv;
    #[cfg(not(target_env = "musl"))]
    use libc::preadv64v2 as preadv;

    /// Reads a range without waiting, and returns how many of its first bytes are cached. All parts
    /// go to the same few pages of memory, which stay in the cache of the processor.
    fn read_through(file: &File, offset: u64, length: usize) -> usize {
        const ROOM: usize = 16 * 1024;
        const PARTS: usize = 64;
        let mut room = [MaybeUninit::<u8>::uninit(); ROOM];
        let base = room.as_mut_ptr();
        let parts: [libc::iovec; PARTS] = std::array::from_fn(|index| libc::iovec {
            iov_base: base.cast(),
            iov_len: ROOM.min(length.saturating_sub(index * ROOM)),
        });
        let Ok(offset) = libc::off64_t::try_from(offset) else {
            return 0;
        };
        // SAFETY: each part is at most as long as the room. What it holds afterwards is not read.
        let count = unsafe {
            preadv(
                file.as_raw_fd(),
                parts.as_ptr(),
                PARTS as libc::c_int,
                offset,
                libc::RWF_NOWAIT,
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    #[cfg(test)]
    mod tests {
        use super::{cached, count, is_all_there, read_through};
        use std::fs::File;
        use std::io::Write;

        fn file_of(length: usize) -> File {
            let name = format!("phaseloop-cached-{}-{length}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let mut file = File::create_new(&path).unwrap();
            file.write_all(&vec![7; length]).unwrap();
            file.sync_all().unwrap();
            let read = File::open(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            read
        }

        #[test]
        fn what_was_just_written_is_cached_and_what_was_evicted_is_not() {
            let file = file_of(300_000);
            let all = Some(300_000);
            if cached(&file, 0, 300_000).is_none() {
                return; // the file system cannot be asked
            }
            assert_eq!(cached(&file, 0, 300_000), all);
            assert_eq!(cached(&file, 4095, 2), Some(2));
            assert_eq!(cached(&file, 0, 1 << 20), all, "up to EOF");
            assert_eq!(cached(&file, 299_999, 1 << 20), Some(1));
            assert_eq!(cached(&file, 300_000, 10), Some(10), "behind EOF");
            assert_eq!(read_through(&file, 0, 300_000), 300_000);
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            assert_eq!(cached(&file, 0, 300_000), Some(0));
            assert_eq!(read_through(&file, 0, 300_000), 0);
        }

        /// The last byte is cached, and others are not.
        #[test]
        fn a_hole_in_the_cache_is_found() {
            let file = file_of(400_000);
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
            std::os::unix::fs::FileExt::read_at(&file, &mut [0], 399_999).unwrap();
            assert_eq!(count(&file, 0, 400_000), 0);
            if let Ok(is_all) = is_all_there(&file, 0, 400_000) {
                assert!(!is_all);
                assert!(is_all_there(&file, 399_998, 2).unwrap());
            }
        }
    }
}
