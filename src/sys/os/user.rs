//! Users and groups.
#![allow(unsafe_code, reason = "the user database is to be had from libc only")]

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// One user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// The name.
    pub name: OsString,
    /// The number.
    pub id: u32,
    /// The number of the first of its groups.
    pub group: u32,
    /// Where its files are.
    pub home: PathBuf,
    /// The program that is started for it.
    pub shell: PathBuf,
}

/// One group of users.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The name.
    pub name: OsString,
    /// The number.
    pub id: u32,
    /// The names of its members, those left out whose first group it is.
    pub members: Vec<OsString>,
}

/// The user as whom this process acts.
///
/// The database is usually a file; where it is a server, the call waits for it: use
/// [`spawn_blocking`](crate::spawn_blocking) then.
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) when it is in no database, else the system's.
///
/// # Examples
///
/// ```
/// # if let Ok(user) = phaseloop::os::user() {
/// assert_eq!(phaseloop::os::user_by_id(user.id)?, user);
/// # }
/// # std::io::Result::Ok(())
/// ```
pub fn user() -> io::Result<User> {
    user_by_id(rustix::process::geteuid().as_raw())
}

/// The user with a number; see [`user`].
///
/// # Errors
///
/// As [`user`].
pub fn user_by_id(id: u32) -> io::Result<User> {
    look_up("user", id, |buffer| {
        // SAFETY: all zeros, its pointers null, is a value of the structure.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: there is room for the entry, for its texts and for the pointer.
        let code = unsafe { libc::getpwuid_r(id, &mut entry, start, size, &mut found) };
        // SAFETY: the texts of an entry that was found are in the buffer.
        let user = (!found.is_null()).then(|| unsafe {
            User {
                name: text(entry.pw_name),
                id: entry.pw_uid,
                group: entry.pw_gid,
                home: text(entry.pw_dir).into(),
                shell: text(entry.pw_shell).into(),
            }
        });
        (code, user)
    })
}

/// The group with a number; see [`user`].
///
/// # Errors
///
/// As [`user`].
pub fn group_by_id(id: u32) -> io::Result<Group> {
    look_up("group", id, |buffer| {
        // SAFETY: all zeros, its pointers null, is a value of the structure.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        let (start, size) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: there is room for the entry, for its texts and for the pointer.
        let code = unsafe { libc::getgrgid_r(id, &mut entry, start, size, &mut found) };
        // SAFETY: the texts of an entry that was found are in the buffer, and so is the list of them, which a null pointer
        // ends.
        let group = (!found.is_null()).then(|| unsafe {
            let mut members = Vec::new();
            let mut member = entry.gr_mem;
            while !member.is_null() && !member.read_unaligned().is_null() {
                members.push(text(member.read_unaligned()));
                member = member.add(1);
            }
            Group {
                name: text(entry.gr_name),
                id: entry.gr_gid,
                members,
            }
        });
        (code, group)
    })
}

/// Where the files of this user are: the environment variable `HOME` if it is there and not empty, else what the database
/// says.
///
/// # Errors
///
/// As [`user`].
///
/// # Examples
///
/// ```
/// println!("{}", phaseloop::os::home_dir()?.display());
/// # std::io::Result::Ok(())
/// ```
pub fn home_dir() -> io::Result<PathBuf> {
    match std::env::var_os("HOME") {
        Some(home) if !home.is_empty() => Ok(home.into()),
        _ => Ok(user()?.home),
    }
}

/// Calls a function that fills a buffer with texts, with a larger buffer whenever it asks for one.
fn look_up<T>(
    what: &str,
    id: u32,
    mut call: impl FnMut(&mut [u8]) -> (libc::c_int, Option<T>),
) -> io::Result<T> {
    /// More than any entry needs: who asks for more has lost count.
    const MOST: usize = 1 << 24;
    let mut buffer = vec![0; 1024];
    loop {
        match call(&mut buffer) {
            (0, Some(entry)) => return Ok(entry),
            (libc::EINTR, _) => {}
            (libc::ERANGE, _) if buffer.len() < MOST => buffer.resize(buffer.len() * 2, 0),
            // Some systems say "not found" by an error.
            (0 | libc::ENOENT | libc::ESRCH, None) => {
                let text = format!("there is no {what} {id}");
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            (code, _) => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// # Safety
///
/// `start` is null or the start of a text with a zero byte at its end.
unsafe fn text(start: *const libc::c_char) -> OsString {
    if start.is_null() {
        return OsString::new();
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(start) };
    OsStr::from_bytes(text.to_bytes()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::look_up;
    use std::io::ErrorKind;

    #[test]
    fn a_buffer_that_is_too_small_grows() {
        let mut sizes = Vec::new();
        let found = look_up("user", 7, |buffer| {
            sizes.push(buffer.len());
            if buffer.len() < 4096 {
                (libc::ERANGE, None)
            } else {
                (0, Some(7))
            }
        });
        assert_eq!(found.unwrap(), 7);
        assert_eq!(sizes, [1024, 2048, 4096]);
    }

    #[test]
    fn an_entry_that_is_not_there_and_one_that_asks_for_ever() {
        let missing = look_up::<()>("group", 7, |_| (0, None)).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert_eq!(missing.to_string(), "there is no group 7");
        let endless = look_up::<()>("user", 7, |_| (libc::ERANGE, None)).unwrap_err();
        assert_eq!(endless.raw_os_error(), Some(libc::ERANGE));
    }
}
