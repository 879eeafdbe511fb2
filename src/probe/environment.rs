//! The variables `PHASELOOP_*`: what the environment of a process asks of each loop in it.
//!
//! | variable | value | effect |
//! |---|---|---|
//! | `PHASELOOP_TRACE` | `out.html`, `out.json` | records, writes a timeline at the end |
//! | `PHASELOOP_SLOW` | `10ms` | records, prints a line for each busy period that is so long |
//! | `PHASELOOP_WATCHDOG` | `50ms` | reports when a loop is stuck for so long |
//! | `PHASELOOP_REPORT` | `USR1`, `USR1:file` | prints a report on the signal |
//! | `PHASELOOP_DEBUG` | `timers,poll`, `*` | prints lines about these areas |
//!
//! They are read once, when the first loop of the process is built. A set-user-id program ignores
//! them, and so does a loop that was built with
//! [`Builder::ignore_environment`](crate::Builder::ignore_environment). A value that cannot be
//! parsed is named in one line on standard error, and has no other effect.
//!
//! A new variable needs a field of [`Environment`], a line in [`VARIABLES`], a line in the table
//! above, and its name in `warning.rs`: a program without the feature `probe` prints that the
//! variables have no effect.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use super::debug_log::Areas;
use crate::stderr;
use crate::sys::privilege;

/// What the variables ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// Where the timelines go. `%p` stands for the process.
    pub(crate) trace: Option<PathBuf>,
    /// How long a busy period must be for a line on standard error.
    pub(crate) slow: Option<Duration>,
    /// How long a loop must be stuck for its watchdog.
    pub(crate) watchdog: Option<Duration>,
    /// The number of the signal that asks for a report, and the file that the report is appended
    /// to.
    pub(crate) report: Option<(i32, Option<PathBuf>)>,
    /// The areas of the debug log.
    pub(crate) debug: Areas,
}

/// Stores the value of one variable, or says what is wrong with it.
type Parse = fn(&mut Environment, &OsStr) -> Result<(), Cow<'static, str>>;

/// All variables.
const VARIABLES: &[(&str, Parse)] = &[
    ("PHASELOOP_TRACE", |environment, value| {
        let path = PathBuf::from(value);
        let is_known = path
            .extension()
            .is_some_and(|it| it == "json" || it == "html");
        if !is_known {
            return Err("the name of the file must end in `.json` or `.html`".into());
        }
        environment.trace = Some(path);
        Ok(())
    }),
    ("PHASELOOP_SLOW", |environment, value| {
        environment.slow = Some(duration(value)?);
        Ok(())
    }),
    ("PHASELOOP_WATCHDOG", |environment, value| {
        environment.watchdog = Some(duration(value)?);
        Ok(())
    }),
    ("PHASELOOP_REPORT", |environment, value| {
        environment.report = Some(report(value)?);
        Ok(())
    }),
    ("PHASELOOP_DEBUG", |environment, value| {
        let value = value.to_string_lossy();
        let (areas, unknown) = Areas::parse(&value);
        environment.debug = areas;
        if unknown.is_empty() {
            return Ok(());
        }
        let (unknown, areas) = (unknown.join(", "), Areas::names());
        Err(format!("no area is named {unknown}; the areas are {areas}, and `*` for all").into())
    }),
];

impl Environment {
    /// Returns what the environment of this process asks for.
    pub(crate) fn of_process() -> &'static Self {
        static OF_PROCESS: OnceLock<Environment> = OnceLock::new();
        OF_PROCESS.get_or_init(|| {
            if privilege::is_elevated() {
                return Self::default();
            }
            let (environment, faults) = Self::parse(|name| env::var_os(name));
            for fault in faults {
                stderr::print(format_args!("phaseloop: {fault}"));
            }
            environment
        })
    }

    /// Parses the variables that `get` returns. The second result names those with a wrong value.
    fn parse(get: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let (mut environment, mut faults) = (Self::default(), Vec::new());
        for (name, parse) in VARIABLES {
            let Some(value) = get(name).filter(|value| !value.is_empty()) else {
                continue;
            };
            if let Err(fault) = parse(&mut environment, &value) {
                faults.push(format!("{name}={}: {fault}", Path::new(&value).display()));
            }
        }
        (environment, faults)
    }
}

/// Parses a duration: a number, and a unit of `ns`, `us`, `ms` or `s`; milliseconds without one.
fn duration(value: &OsStr) -> Result<Duration, &'static str> {
    const FAULT: &str = "not a duration, such as `500us`, `10ms`, `1.5s` or `10` (milliseconds)";
    let text = value.to_str().ok_or(FAULT)?.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let second_parts = match unit.trim() {
        "ns" => 1e9,
        "us" | "µs" => 1e6,
        "ms" | "" => 1e3,
        "s" => 1.0,
        _ => return Err(FAULT),
    };
    let number: f64 = number.parse().map_err(|_| FAULT)?;
    // Through whole nanoseconds: a decimal fraction such as 0.01 has no exact seconds.
    Duration::try_from_secs_f64((number * (1e9 / second_parts)).round() / 1e9).map_err(|_| FAULT)
}

/// Parses a signal, by its name with or without `SIG`, and a file after a colon.
fn report(value: &OsStr) -> Result<(i32, Option<PathBuf>), Cow<'static, str>> {
    let text = value.to_str().ok_or("not Unicode")?;
    let (name, file) = match text.split_once(':') {
        Some((name, file)) if !file.is_empty() => (name, Some(PathBuf::from(file))),
        Some((name, _)) => (name, None),
        None => (text, None),
    };
    let number = signal(name.trim()).ok_or("not a signal that this program can catch")?;
    Ok((number, file))
}

#[cfg(feature = "signal")]
fn signal(name: &str) -> Option<i32> {
    let name = name.to_ascii_uppercase();
    let short = name.strip_prefix("SIG").unwrap_or(&name);
    let known = crate::sys::signal::NAMES.iter();
    let mut known = known.filter(|(number, _)| crate::sys::signal::can_be_caught(*number));
    let found = known.find(|(_, known)| known.strip_prefix("SIG") == Some(short));
    found.map(|&(number, _)| number)
}

/// Without signals no report can be requested.
#[cfg(not(feature = "signal"))]
fn signal(_: &str) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Environment, Path, duration};
    use std::ffi::OsStr;
    use std::time::Duration;

    fn parse(variables: &[(&str, &str)]) -> (Environment, Vec<String>) {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Environment::parse(|name| value(name).map(|(_, value)| value.into()))
    }

    #[test]
    fn without_variables_nothing_is_asked_for() {
        assert_eq!(parse(&[]), (Environment::default(), vec![]));
        let empty = [("PHASELOOP_TRACE", ""), ("PHASELOOP_SLOW", "")];
        assert_eq!(parse(&empty), (Environment::default(), vec![]));
    }

    #[test]
    fn each_variable_is_parsed_by_itself() {
        let (found, faults) = parse(&[("PHASELOOP_TRACE", "out-%p.html"), ("PHASELOOP_SLOW", "5")]);
        assert_eq!(found.trace.as_deref(), Some(Path::new("out-%p.html")));
        assert_eq!(found.slow, Some(Duration::from_millis(5)));
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn a_value_that_cannot_be_parsed_is_named_once_and_has_no_effect() {
        let (found, faults) = parse(&[("PHASELOOP_TRACE", "out.txt"), ("PHASELOOP_SLOW", "soon")]);
        assert_eq!(found, Environment::default());
        assert_eq!(faults.len(), 2);
        assert!(
            faults[0].starts_with("PHASELOOP_TRACE=out.txt: "),
            "{faults:?}"
        );
        assert!(faults[1].starts_with("PHASELOOP_SLOW=soon: "), "{faults:?}");
    }

    #[test]
    fn a_watchdog_has_a_duration() {
        let (found, faults) = parse(&[("PHASELOOP_WATCHDOG", "50ms")]);
        assert_eq!(found.watchdog, Some(Duration::from_millis(50)));
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[cfg(all(unix, feature = "signal"))]
    #[test]
    fn a_report_has_a_signal_and_may_have_a_file() {
        use crate::sys::signal::{SIGHUP, SIGUSR1};
        let report = |value| parse(&[("PHASELOOP_REPORT", value)]).0.report;
        assert_eq!(report("USR1"), Some((SIGUSR1, None)));
        assert_eq!(report("sigusr1:"), Some((SIGUSR1, None)));
        let file = Some(Path::new("a:b").to_owned());
        assert_eq!(report("SIGHUP:a:b"), Some((SIGHUP, file)));
        for value in ["KILL", "SIGSEGV", "USR3", "10", ":file", "SIG"] {
            assert_eq!(report(value), None, "{value}");
            let (_, faults) = parse(&[("PHASELOOP_REPORT", value)]);
            assert_eq!(faults.len(), 1, "{faults:?}");
        }
    }

    #[test]
    fn unknown_areas_are_named_and_the_others_hold() {
        let (found, faults) = parse(&[("PHASELOOP_DEBUG", "timers,timer,x")]);
        let (known, _) = parse(&[("PHASELOOP_DEBUG", "timers")]);
        assert_eq!(found.debug, known.debug);
        assert!(!found.debug.is_empty());
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].contains("no area is named timer, x;"),
            "{faults:?}"
        );
    }

    #[test]
    fn durations_have_units() {
        let parsed = |text: &str| duration(OsStr::new(text));
        for (text, nanos) in [
            ("10ms", 10_000_000),
            ("10", 10_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("7ns", 7),
            ("0.01s", 10_000_000),
            ("0", 0),
        ] {
            assert_eq!(parsed(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for text in [
            "",
            "ms",
            "10 minutes",
            "-1ms",
            "1e3",
            "1.2.3s",
            "99999999999999999999s",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
