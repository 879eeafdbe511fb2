//! The processors of the machine.

use std::io;
use std::time::Duration;

use super::missing_in;
use crate::sys::os::{clock_ticks_per_second, system_file};

/// One processor, as [`cpus`] lists it.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// fn main() -> std::io::Result<()> {
///     for cpu in phaseloop::os::cpus()? {
///         println!("{} at {:?} MHz, idle for {:?}", cpu.model, cpu.speed, cpu.times.idle);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// Model name; empty where the kernel does not report one.
    pub model: String,
    /// Current clock rate in MHz, where the kernel reports one.
    pub speed: Option<u32>,
    /// Time by kind of work since boot.
    pub times: CpuTimes,
}

/// The time of one processor since boot, by kind of work.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// fn main() -> std::io::Result<()> {
///     for cpu in phaseloop::os::cpus()? {
///         let busy = cpu.times.user + cpu.times.nice + cpu.times.system + cpu.times.irq;
///         println!("busy for {busy:?} of {:?}", busy + cpu.times.idle);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuTimes {
    /// Time in user mode.
    pub user: Duration,
    /// Time in user mode at a low priority (a positive nice value).
    pub nice: Duration,
    /// Time in the kernel.
    pub system: Duration,
    /// Time spent idle.
    pub idle: Duration,
    /// Time spent on hardware interrupts.
    pub irq: Duration,
}

/// Lists the processors that are online, in the order of their numbers.
///
/// To size a thread pool, use [`std::thread::available_parallelism`].
///
/// # Errors
///
/// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux; otherwise any OS
/// error of reading `/proc/stat`.
///
/// # Examples
///
/// ```ignore-apple,ignore-bsd
/// fn main() -> std::io::Result<()> {
///     for cpu in phaseloop::os::cpus()? {
///         println!("{} idle for {:?}", cpu.model, cpu.times.idle);
///     }
///     Ok(())
/// }
/// ```
pub fn cpus() -> io::Result<Vec<Cpu>> {
    const PATH: &str = "/proc/stat";
    let times = parse_stat(&system_file(PATH)?, clock_ticks_per_second());
    if times.is_empty() {
        return Err(missing_in(PATH, "processor"));
    }
    let info = parse_cpuinfo(&system_file("/proc/cpuinfo").unwrap_or_default());
    let cpus = times.into_iter().map(|(number, times)| {
        let known = info.iter().find(|info| info.number == number);
        Cpu {
            model: known.map_or_else(String::new, |info| info.model.clone()),
            speed: known.and_then(|info| info.speed).or_else(|| speed(number)),
            times,
        }
    });
    Ok(cpus.collect())
}

/// The clock rate where `/proc/cpuinfo` has none.
fn speed(number: u32) -> Option<u32> {
    let path = format!("/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq");
    let kilohertz: u32 = system_file(&path).ok()?.trim().parse().ok()?;
    Some(kilohertz / 1000)
}

/// Parses the lines `cpu0 …` of `/proc/stat`: user, nice, system, idle, I/O wait and interrupt
/// time, all in ticks.
fn parse_stat(text: &str, ticks_per_second: u64) -> Vec<(u32, CpuTimes)> {
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64);
    let parse = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        // The line that sums up all processors has no number.
        let number = fields.next().filter(|_| !line.starts_with("cpu "))?;
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, rest @ ..] = &ticks[..] else {
            return None;
        };
        let times = CpuTimes {
            user: time(*user),
            nice: time(*nice),
            system: time(*system),
            idle: time(*idle),
            irq: time(rest.get(1).copied().unwrap_or(0)),
        };
        Some((number.parse().ok()?, times))
    };
    text.lines().filter_map(parse).collect()
}

/// One processor in `/proc/cpuinfo`.
#[derive(Debug, Default, PartialEq)]
struct Info {
    number: u32,
    model: String,
    speed: Option<u32>,
}

/// Parses `/proc/cpuinfo`: a paragraph of `key : value` lines for each processor.
fn parse_cpuinfo(text: &str) -> Vec<Info> {
    let mut found: Vec<Info> = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match (key.trim(), found.last_mut()) {
            ("processor", _) => {
                if let Ok(number) = value.parse() {
                    found.push(Info {
                        number,
                        ..Info::default()
                    });
                }
            }
            ("model name", Some(info)) => value.clone_into(&mut info.model),
            ("cpu MHz", Some(info)) => {
                let speed: Option<f64> = value.parse().ok();
                info.speed = speed
                    .filter(|speed| *speed >= 1.0)
                    .map(|speed| speed as u32);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Info, parse_cpuinfo, parse_stat};
    use std::time::Duration;

    #[test]
    fn the_times_of_each_processor() {
        let text = "cpu  30 2 3 4 5 6 7 8 9 10\ncpu0 10 20 30 40 50 60 7 0 0 0\n\
                    cpu3 1 2 3 4\ncpu4 1 2 3\ncpux 1 2 3 4\nintr 5 6\n";
        let found = parse_stat(text, 100);
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        assert_eq!(
            numbers,
            [0, 3],
            "an offline processor and malformed lines are skipped"
        );
        let first = found[0].1;
        let tenths = |n: u64| Duration::from_millis(n * 100);
        assert_eq!(
            (first.user, first.nice, first.system),
            (tenths(1), tenths(2), tenths(3))
        );
        assert_eq!((first.idle, first.irq), (tenths(4), tenths(6)));
        assert_eq!(found[1].1.irq, Duration::ZERO);
        assert_eq!(parse_stat("", 100), []);
    }

    #[test]
    fn model_and_speed_of_each_processor() {
        let text = "processor\t: 0\nmodel name\t: A: fast one\ncpu MHz\t\t: 2799.998\n\n\
                    processor\t: 1\nFeatures : fp\n\nprocessor: x\ncpu MHz: 0.000\nodd\n";
        let info = |number, model: &str, speed| Info {
            number,
            model: model.to_owned(),
            speed,
        };
        let expected = [info(0, "A: fast one", Some(2799)), info(1, "", None)];
        assert_eq!(parse_cpuinfo(text), expected);
        assert_eq!(parse_cpuinfo("model name : without a processor"), []);
    }
}
