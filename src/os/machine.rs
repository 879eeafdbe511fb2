//! The machine: its name, its uptime and its load.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use crate::sys;

/// Time since boot, including the time the machine was suspended.
///
/// # Errors
///
/// [`InvalidData`](io::ErrorKind::InvalidData) if the kernel reports a negative time.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     assert!(phaseloop::os::uptime()?.as_secs() > 0);
///     Ok(())
/// }
/// ```
pub fn uptime() -> io::Result<Duration> {
    // The file comes first: inside a container it holds the container's uptime.
    let file = sys::os::system_file("/proc/uptime").ok();
    match file.as_deref().and_then(parse_uptime) {
        Some(uptime) => Ok(uptime),
        None => sys::os::time_since_boot(),
    }
}

/// Parses the first of the two numbers of seconds in `/proc/uptime`.
fn parse_uptime(text: &str) -> Option<Duration> {
    let seconds = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Load averages over the last 1, 5 and 15 minutes: tasks that were running or ready to run.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) where the platform keeps no load average.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let [minute, _, quarter] = phaseloop::os::load_average()?;
///     assert!(minute >= 0.0 && quarter >= 0.0);
///     Ok(())
/// }
/// ```
pub fn load_average() -> io::Result<[f64; 3]> {
    sys::os::load_average().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The host name of this machine.
///
/// # Examples
///
/// ```
/// fn main() {
///     assert!(!phaseloop::os::hostname().is_empty());
/// }
/// ```
#[must_use]
pub fn hostname() -> OsString {
    sys::os::node_name()
}

/// The operating system as `uname` names it.
///
/// # Examples
///
/// ```
/// fn main() {
///     let name = phaseloop::os::system_name();
///     assert!(!name.system.is_empty());
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemName {
    /// Name of the operating system, such as `Linux`.
    pub system: String,
    /// Release, such as `6.1.0`.
    pub release: String,
    /// Version: build number and date of the kernel.
    pub version: String,
    /// Hardware architecture, such as `x86_64`.
    pub machine: String,
}

/// Returns name, release, version and architecture as `uname` reports them.
///
/// # Examples
///
/// ```
/// fn main() {
///     let name = phaseloop::os::system_name();
///     println!("{} {} on {}", name.system, name.release, name.machine);
///     if cfg!(target_os = "linux") {
///         assert_eq!(name.system, "Linux");
///     }
/// }
/// ```
#[must_use]
pub fn system_name() -> SystemName {
    let [system, release, version, machine] = sys::os::uname();
    SystemName {
        system,
        release,
        version,
        machine,
    }
}

#[cfg(test)]
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
