//! Memory of the machine, of the control group and of this process.

use std::io;

use super::missing_in;
use crate::sys::os::{page_size, system_file};

/// Physical memory of the machine, in bytes.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; otherwise any OS
/// error of reading `/proc/meminfo`.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     assert!(os::free_memory()? <= os::total_memory()?);
///     assert!(os::resident_memory()? < os::total_memory()?);
///     Ok(())
/// }
/// ```
pub fn total_memory() -> io::Result<u64> {
    meminfo("MemTotal")
}

/// Memory that can be allocated without swapping, in bytes: unused memory and reclaimable caches.
///
/// # Errors
///
/// The errors of [`total_memory`].
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     println!("{} MiB are free", os::free_memory()? >> 20);
///     println!("{} MiB may be allocated", os::available_memory()? >> 20);
///     println!("the limit is {:?}", os::constrained_memory());
///     assert!(os::resident_memory()? > 0);
///     Ok(())
/// }
/// ```
pub fn free_memory() -> io::Result<u64> {
    // Kernels before 3.14 do not estimate what is available.
    meminfo("MemAvailable").or_else(|_| meminfo("MemFree"))
}

/// Memory that this process can still allocate, in bytes: [`free_memory`], or less where the
/// control group of the process or one of its ancestors has a limit.
///
/// # Errors
///
/// The errors of [`total_memory`].
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     println!("{} MiB are free", os::free_memory()? >> 20);
///     println!("{} MiB may be allocated", os::available_memory()? >> 20);
///     println!("the limit is {:?}", os::constrained_memory());
///     assert!(os::resident_memory()? > 0);
///     Ok(())
/// }
/// ```
pub fn available_memory() -> io::Result<u64> {
    let free = free_memory()?;
    let room = own_limits().iter().map(Limit::room).min();
    Ok(room.map_or(free, |room| room.min(free)))
}

/// The memory limit of the control group of this process, in bytes, ancestors included.
///
/// `None`: there is no limit, or the platform has no control groups.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     println!("{} MiB are free", os::free_memory()? >> 20);
///     println!("{} MiB may be allocated", os::available_memory()? >> 20);
///     println!("the limit is {:?}", os::constrained_memory());
///     assert!(os::resident_memory()? > 0);
///     Ok(())
/// }
/// ```
#[must_use]
pub fn constrained_memory() -> Option<u64> {
    own_limits().iter().map(|limit| limit.most).min()
}

/// Resident memory of this process, in bytes.
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; otherwise any OS
/// error of reading `/proc/self/statm`.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// use phaseloop::os;
///
/// fn main() -> std::io::Result<()> {
///     println!("{} MiB are free", os::free_memory()? >> 20);
///     println!("{} MiB may be allocated", os::available_memory()? >> 20);
///     println!("the limit is {:?}", os::constrained_memory());
///     assert!(os::resident_memory()? > 0);
///     Ok(())
/// }
/// ```
pub fn resident_memory() -> io::Result<u64> {
    const PATH: &str = "/proc/self/statm";
    let text = system_file(PATH)?;
    let pages: Option<u64> = text.split_whitespace().nth(1).and_then(|n| n.parse().ok());
    let pages = pages.ok_or_else(|| missing_in(PATH, "resident size"))?;
    Ok(pages.saturating_mul(page_size()))
}

fn meminfo(name: &str) -> io::Result<u64> {
    const PATH: &str = "/proc/meminfo";
    parse_meminfo(&system_file(PATH)?, name).ok_or_else(|| missing_in(PATH, name))
}

/// Parses the value of a line such as `MemTotal:  2048 kB`, in bytes.
fn parse_meminfo(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then_some(value)
    })?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Limit and use of one control group, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Limit {
    most: u64,
    used: u64,
}

impl Limit {
    fn room(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }
}

fn own_limits() -> Vec<Limit> {
    // Without control groups there are no limits.
    let groups = system_file("/proc/self/cgroup").unwrap_or_default();
    limits(&groups, |path| system_file(path).ok())
}

/// Collects the limits of the control groups in `/proc/self/cgroup` and of their ancestors. A group
/// whose files cannot be read is skipped.
fn limits(groups: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Limit> {
    // Version 1 of control groups expresses "no limit" by a number beyond any machine.
    const NONE: u64 = 1 << 62;
    let number = |path: String| -> Option<u64> { read(&path)?.trim().parse().ok() };
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, bounds, used): (_, &[&str], _) = if controllers.is_empty() {
            (
                "/sys/fs/cgroup",
                &["memory.max", "memory.high"],
                "memory.current",
            )
        } else if controllers.split(',').any(|name| name == "memory") {
            let bounds = &["memory.limit_in_bytes"];
            ("/sys/fs/cgroup/memory", bounds, "memory.usage_in_bytes")
        } else {
            continue;
        };
        let mut group = group.trim_end_matches('/');
        loop {
            let most = bounds
                .iter()
                .filter_map(|file| number(format!("{root}{group}/{file}")))
                .min();
            if let Some(most) = most.filter(|most| *most < NONE) {
                let used = number(format!("{root}{group}/{used}")).unwrap_or(0);
                limits.push(Limit { most, used });
            }
            let Some((above, _)) = group.rsplit_once('/') else {
                break;
            };
            group = above;
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::{Limit, limits, parse_meminfo};

    #[test]
    fn lines_of_meminfo() {
        let text = "MemTotal:       16316412 kB\nMemFree:   10 kB\nHugePages_Total:  3\nodd line\n";
        assert_eq!(parse_meminfo(text, "MemTotal"), Some(16_316_412 * 1024));
        assert_eq!(parse_meminfo(text, "MemFree"), Some(10_240));
        assert_eq!(parse_meminfo(text, "Mem"), None);
        for text in [
            "",
            "MemTotal",
            "MemTotal:",
            "MemTotal: x kB",
            "MemTotal: -1 kB",
        ] {
            assert_eq!(parse_meminfo(text, "MemTotal"), None, "{text:?}");
        }
        let too_many = format!("MemTotal: {} kB", u64::MAX);
        assert_eq!(parse_meminfo(&too_many, "MemTotal"), None);
    }

    fn with(groups: &str, files: &[(&str, &str)]) -> Vec<Limit> {
        limits(groups, |path| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_owned())
        })
    }

    fn limit(most: u64, used: u64) -> Limit {
        Limit { most, used }
    }

    #[test]
    fn the_limits_of_a_group_and_of_those_above() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.high", "500\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "70\n"),
            ("/sys/fs/cgroup/a/memory.max", "300\n"),
            ("/sys/fs/cgroup/a/memory.current", "100\n"),
            ("/sys/fs/cgroup/memory.max", "1000\n"),
        ];
        let found = with("0::/a/b\n", &files);
        assert_eq!(found, [limit(500, 70), limit(300, 100), limit(1000, 0)]);
        assert_eq!(found[1].room(), 200);
        assert_eq!(limit(1, 2).room(), 0);
        assert_eq!(with("0::/\n", &files), [limit(1000, 0)], "in a container");
    }

    #[test]
    fn the_first_version_of_groups() {
        let files = [
            ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "400\n"),
            ("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "50\n"),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ];
        let groups = "11:cpu,cpuacct:/x\n4:hugetlb,memory:/c\n1:name=systemd:/y\n";
        assert_eq!(with(groups, &files), [limit(400, 50)]);
    }

    #[test]
    fn odd_lines_are_passed_over() {
        for groups in ["", "\n", "0", "0:", "0::", "::", "0::a:b/..\n", "4:memory"] {
            assert_eq!(with(groups, &[]), [], "{groups:?}");
        }
    }
}
