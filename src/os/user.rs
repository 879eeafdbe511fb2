//! Users and groups.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::sys;

/// One user of the system.
///
/// # Examples
///
/// ```
/// fn main() {
///     match phaseloop::os::user() {
///         Ok(user) => println!("{:?} ({}), home {:?}", user.name, user.id, user.home),
///         Err(error) => println!("no entry for this user: {error}"),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// Login name.
    pub name: OsString,
    /// User id (uid).
    pub id: u32,
    /// Primary group id (gid).
    pub group: u32,
    /// Home directory.
    pub home: PathBuf,
    /// Login shell.
    pub shell: PathBuf,
}

/// One group of users.
///
/// # Examples
///
/// ```
/// fn main() {
///     match phaseloop::os::group_by_id(0) {
///         Ok(group) => println!("{:?} has {} members", group.name, group.members.len()),
///         Err(error) => println!("no such group: {error}"),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// Group name.
    pub name: OsString,
    /// Group id (gid).
    pub id: u32,
    /// Names of the members that the database lists. Users whose primary group this is are usually
    /// not among them.
    pub members: Vec<OsString>,
}

/// Returns the effective user of this process.
///
/// The database is usually a file. Where it is a server, the call waits for it: use
/// [`spawn_blocking`](crate::spawn_blocking) then.
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) when the database has no such user; otherwise any OS error
/// of `getpwuid_r`.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     // A container may run under a user that no entry names.
///     if let Ok(user) = phaseloop::os::user() {
///         assert_eq!(phaseloop::os::user_by_id(user.id)?, user);
///     }
///     Ok(())
/// }
/// ```
pub fn user() -> io::Result<User> {
    user_by_id(sys::os::effective_user())
}

/// Looks up a user by uid; it may block as [`user`] does.
///
/// # Errors
///
/// The errors of [`user`].
pub fn user_by_id(id: u32) -> io::Result<User> {
    let entry = sys::os::user_entry(id)?.ok_or_else(|| not_found("user", id))?;
    Ok(User {
        name: entry.name,
        id: entry.uid,
        group: entry.gid,
        home: entry.home,
        shell: entry.shell,
    })
}

/// Looks up a group by gid; it may block as [`user`] does.
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) when the database has no such group; otherwise any OS
/// error of `getgrgid_r`.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() {
///     match os::group_by_id(0) {
///         Ok(group) => println!("{group:?}"),
///         Err(error) => println!("no such group: {error}"),
///     }
/// }
/// ```
pub fn group_by_id(id: u32) -> io::Result<Group> {
    let entry = sys::os::group_entry(id)?.ok_or_else(|| not_found("group", id))?;
    Ok(Group {
        name: entry.name,
        id: entry.gid,
        members: entry.members,
    })
}

/// Returns the home directory of this user: the environment variable `HOME` unless it is unset or
/// empty, else the directory in the user database.
///
/// # Errors
///
/// The errors of [`user`].
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     println!("{}", phaseloop::os::home_dir()?.display());
///     Ok(())
/// }
/// ```
pub fn home_dir() -> io::Result<PathBuf> {
    match std::env::var_os("HOME") {
        Some(home) if !home.is_empty() => Ok(home.into()),
        _ => Ok(user()?.home),
    }
}

fn not_found(what: &str, id: u32) -> io::Error {
    let text = format!("there is no {what} {id}");
    io::Error::new(io::ErrorKind::NotFound, text)
}
