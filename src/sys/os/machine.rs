//! The machine: its name, how long it has been up, how busy it is.
#![allow(unsafe_code, reason = "the load average is to be had from libc only")]

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

/// How long the machine has been up, the time it slept included.
///
/// # Errors
///
/// The system's.
///
/// # Examples
///
/// ```
/// assert!(phaseloop::os::uptime()?.as_secs() > 0);
/// # std::io::Result::Ok(())
/// ```
pub fn uptime() -> io::Result<Duration> {
    // First the file: in a container it may be that of the container.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(uptime) = super::read("/proc/uptime")
        .ok()
        .as_deref()
        .and_then(parse_uptime)
    {
        return Ok(uptime);
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::try_from(time).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The first of two numbers of seconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn parse_uptime(text: &str) -> Option<Duration> {
    let seconds = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// How many tasks were running or waiting to run, on average over the last 1, 5 and 15 minutes.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) where the system does not know.
///
/// # Examples
///
/// ```
/// let [minute, _, quarter] = phaseloop::os::load_average()?;
/// assert!(minute >= 0.0 && quarter >= 0.0);
/// # std::io::Result::Ok(())
/// ```
pub fn load_average() -> io::Result<[f64; 3]> {
    #[cfg(not(target_os = "android"))]
    {
        let mut loads = [0.0; 3];
        // SAFETY: there is room for as many as are asked for.
        let count = unsafe { libc::getloadavg(loads.as_mut_ptr(), 3) };
        if count == 3 {
            return Ok(loads);
        }
    }
    Err(io::ErrorKind::Unsupported.into())
}

/// The name of this host in its network.
///
/// # Examples
///
/// ```
/// assert!(!phaseloop::os::hostname().is_empty());
/// ```
#[must_use]
pub fn hostname() -> OsString {
    let name = rustix::system::uname();
    OsString::from_vec(name.nodename().to_bytes().to_vec())
}

/// What kind of system this is, by its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemName {
    /// Its name, such as `Linux`.
    pub system: String,
    /// Its release, such as `6.1.0`.
    pub release: String,
    /// When and how that was built.
    pub version: String,
    /// The architecture of the machine, such as `x86_64`.
    pub machine: String,
}

/// What kind of system this is: `uname`.
///
/// # Examples
///
/// ```
/// let name = phaseloop::os::system_name();
/// println!("{} {} on {}", name.system, name.release, name.machine);
/// # if cfg!(target_os = "linux") { assert_eq!(name.system, "Linux"); }
/// ```
#[must_use]
pub fn system_name() -> SystemName {
    let name = rustix::system::uname();
    let text = |part: &CStr| part.to_string_lossy().into_owned();
    SystemName {
        system: text(name.sysname()),
        release: text(name.release()),
        version: text(name.version()),
        machine: text(name.machine()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::parse_uptime;
    use std::time::Duration;

    #[test]
    fn the_first_number_is_the_uptime() {
        let expected = Some(Duration::from_millis(350_735_470));
        assert_eq!(parse_uptime("350735.47 234388.90\n"), expected);
        for text in ["", "\n", "up", "-1.0 2.0", "NaN 1", "1e300 1"] {
            assert_eq!(parse_uptime(text), None, "{text:?}");
        }
    }
}
