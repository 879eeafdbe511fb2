//! Queries about the machine, this process and its users: one system call each, no loop.
//!
//! Linux answers most of them in text files of `/proc` and `/sys`. [`system_file`] reads such a
//! file; [`crate::os`] parses it.
#![allow(
    unsafe_code,
    reason = "load average, resource usage and the user database exist in libc only"
)]

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use rustix::process::{Pid, getpriority_process, setpriority_process};

pub(crate) use libc::rusage as RawUsage;

/// Bytes in one unit of [`RawUsage::ru_maxrss`].
#[cfg(target_vendor = "apple")]
pub(crate) const RESIDENT_UNIT: u64 = 1;
/// Bytes in one unit of [`RawUsage::ru_maxrss`].
#[cfg(not(target_vendor = "apple"))]
pub(crate) const RESIDENT_UNIT: u64 = 1024;

/// Reads a small text file that the kernel generates. An error names the file.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn system_file(path: &str) -> io::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("read \"{path}\": {error}")))
}

/// Reports that this platform has no such file.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn system_file(_path: &str) -> io::Result<String> {
    Err(linux_only())
}

/// The error of a query that only Linux answers.
#[cfg(not(target_os = "linux"))]
fn linux_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "available on Linux only")
}

/// Clock ticks in a second, the unit of the times in `/proc/stat`.
pub(crate) fn clock_ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Bytes in a page, the unit of the sizes in `/proc/self/statm`.
pub(crate) fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Time since boot by the kernel's clock, including suspend where the platform counts it.
pub(crate) fn time_since_boot() -> io::Result<Duration> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::try_from(time).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The load averages over 1, 5 and 15 minutes, or `None` where the platform keeps none.
pub(crate) fn load_average() -> Option<[f64; 3]> {
    #[cfg(not(target_os = "android"))]
    {
        let mut loads = [0.0; 3];
        // SAFETY: the array has room for the three values that are requested.
        let count = unsafe { libc::getloadavg(loads.as_mut_ptr(), 3) };
        if count == 3 {
            return Some(loads);
        }
    }
    None
}

/// The host name of `uname`.
pub(crate) fn node_name() -> OsString {
    OsString::from_vec(rustix::system::uname().nodename().to_bytes().to_vec())
}

/// System name, release, version and machine of `uname`.
pub(crate) fn uname() -> [String; 4] {
    let name = rustix::system::uname();
    let text = |part: &CStr| part.to_string_lossy().into_owned();
    [
        text(name.sysname()),
        text(name.release()),
        text(name.version()),
        text(name.machine()),
    ]
}

/// Resources that this process has used, all threads together.
pub(crate) fn process_usage() -> io::Result<RawUsage> {
    usage_of(libc::RUSAGE_SELF)
}

/// Resources that this thread has used.
pub(crate) fn thread_usage() -> io::Result<RawUsage> {
    #[cfg(target_os = "linux")]
    return usage_of(libc::RUSAGE_THREAD);
    #[cfg(not(target_os = "linux"))]
    Err(linux_only())
}

fn usage_of(who: libc::c_int) -> io::Result<RawUsage> {
    let mut usage = MaybeUninit::<RawUsage>::uninit();
    // SAFETY: the pointer leads to room for the structure, which the call fills when it succeeds.
    // The type of `who` differs between platforms, its values do not.
    unsafe {
        if libc::getrusage(who as _, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(usage.assume_init())
    }
}

/// The nice value of a process; `None` is this one. `Err(None)`: the number is no process id.
pub(crate) fn nice_value(process: Option<u32>) -> Result<i32, Option<io::Error>> {
    getpriority_process(pid(process)?).map_err(|errno| Some(errno.into()))
}

/// Sets the nice value of a process. The errors are those of [`nice_value`].
pub(crate) fn set_nice_value(process: Option<u32>, nice: i32) -> Result<(), Option<io::Error>> {
    setpriority_process(pid(process)?, nice).map_err(|errno| Some(errno.into()))
}

fn pid(process: Option<u32>) -> Result<Option<Pid>, Option<io::Error>> {
    let Some(process) = process else {
        return Ok(None);
    };
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.map(Some).ok_or(None)
}

/// Fills `buffer` from the kernel's random source.
pub(crate) fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::rand::{GetRandomFlags, getrandom};
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = &mut buffer[filled..];
            filled += rustix::io::retry_on_intr(|| getrandom(&mut *rest, GetRandomFlags::empty()))?;
        }
        Ok(())
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        use std::io::Read;
        std::fs::File::open("/dev/urandom")?.read_exact(buffer)
    }
}

/// The effective user id of this process.
pub(crate) fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// One entry of the user database.
pub(crate) struct UserEntry {
    pub(crate) name: OsString,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
    pub(crate) shell: PathBuf,
}

/// One entry of the group database.
pub(crate) struct GroupEntry {
    pub(crate) name: OsString,
    pub(crate) gid: u32,
    pub(crate) members: Vec<OsString>,
}

/// Looks up a user by id. `None`: the database has no such user.
pub(crate) fn user_entry(uid: u32) -> io::Result<Option<UserEntry>> {
    with_growing_buffer(|buffer| {
        let mut found = ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: all zeros, with null pointers, are a valid entry. The call gets room for the
        // entry, for its strings and for the pointer. The strings of an entry that was found are in
        // the buffer.
        unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let code = libc::getpwuid_r(uid, &mut entry, start, size, &mut found);
            let user = (!found.is_null()).then(|| UserEntry {
                name: text(entry.pw_name),
                uid: entry.pw_uid,
                gid: entry.pw_gid,
                home: text(entry.pw_dir).into(),
                shell: text(entry.pw_shell).into(),
            });
            (code, user)
        }
    })
}

/// Looks up a group by id. `None`: the database has no such group.
pub(crate) fn group_entry(gid: u32) -> io::Result<Option<GroupEntry>> {
    with_growing_buffer(|buffer| {
        let mut found = ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: all zeros, with null pointers, are a valid entry. The call gets room for the
        // entry, for its strings and for the pointer. The strings of an entry that was found are in
        // the buffer, and so is the list of members, which ends with a null pointer.
        unsafe {
            let mut entry: libc::group = std::mem::zeroed();
            let code = libc::getgrgid_r(gid, &mut entry, start, size, &mut found);
            let group = (!found.is_null()).then(|| {
                let mut members = Vec::new();
                let mut member = entry.gr_mem;
                while !member.is_null() && !member.read_unaligned().is_null() {
                    members.push(text(member.read_unaligned()));
                    member = member.add(1);
                }
                GroupEntry {
                    name: text(entry.gr_name),
                    gid: entry.gr_gid,
                    members,
                }
            });
            (code, group)
        }
    })
}

/// Calls a function that fills a buffer with text, with a larger buffer whenever it asks for one.
fn with_growing_buffer<T>(
    mut call: impl FnMut(&mut [u8]) -> (libc::c_int, Option<T>),
) -> io::Result<Option<T>> {
    /// Far above the size of any entry: a call that needs more is broken.
    const MOST: usize = 1 << 24;
    let mut buffer = vec![0; 1024];
    loop {
        match call(&mut buffer) {
            (0, entry) => return Ok(entry),
            (libc::EINTR, _) => {}
            (libc::ERANGE, _) if buffer.len() < MOST => buffer.resize(buffer.len() * 2, 0),
            // Some platforms report "not found" as an error.
            (libc::ENOENT | libc::ESRCH, _) => return Ok(None),
            (code, _) => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// # Safety
///
/// `start` is null or points to a NUL-terminated string.
unsafe fn text(start: *const libc::c_char) -> OsString {
    if start.is_null() {
        return OsString::new();
    }
    // SAFETY: the contract of this function.
    let text = unsafe { CStr::from_ptr(start) };
    OsStr::from_bytes(text.to_bytes()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::with_growing_buffer;

    #[test]
    fn a_buffer_that_is_too_small_grows() {
        let mut sizes = Vec::new();
        let found = with_growing_buffer(|buffer| {
            sizes.push(buffer.len());
            if buffer.len() < 4096 {
                (libc::ERANGE, None)
            } else {
                (0, Some(7))
            }
        });
        assert_eq!(found.unwrap(), Some(7));
        assert_eq!(sizes, [1024, 2048, 4096]);
    }

    #[test]
    fn a_missing_entry_is_none_and_an_endless_one_an_error() {
        for code in [0, libc::ENOENT, libc::ESRCH] {
            assert_eq!(with_growing_buffer::<()>(|_| (code, None)).unwrap(), None);
        }
        let endless = with_growing_buffer::<()>(|_| (libc::ERANGE, None)).unwrap_err();
        assert_eq!(endless.raw_os_error(), Some(libc::ERANGE));
    }
}
