//! The debug log: lines on standard error about the areas that `PHASELOOP_DEBUG` names.
//!
//! ```text
//! PHASELOOP TIMERS 4711: sleep (src/main.rs:3:5) armed, due in 10.0ms
//! PHASELOOP TIMERS 4711: sleep (src/main.rs:3:5) fires, 52.1µs late
//! ```
//!
//! | area | tells |
//! |---|---|
//! | `loop` | turns; callbacks of hooks, queues and closes |
//! | `timers` | timers and sleeps that are armed or fire |
//! | `poll` | waits, and how many events end them |
//! | `io` | sources that are ready |
//! | `tasks` | tasks that are spawned, woken, polled, or have ended |
//! | `lanes` | ticks and microtasks |
//! | `pool` | jobs of the thread pool that are queued or have completed |
//! | `signal` | signals that a listener receives |
//! | `process` | children that are started or have exited |
//! | `fs` | file operations that are queued or have completed; changes that a watcher sees |
//! | `node` | timers, requests, uncaught errors and the exit of a Node program |
//! | `context` | values that are set, and what takes them along |
//!
//! A line comes from [`DebugLog::begin`], or from a call of `Core::log`.

use std::fmt;
use std::time::Duration;

use super::area::Area;
use super::switch::{Activity, Origin};
use crate::clock::NEVER;
use crate::frame::{self, Frame};
use crate::keeper::Keeper;
use crate::stderr;
use crate::task_info::Info;

impl Area {
    fn of(activity: Activity, origin: Origin) -> Self {
        match (activity, origin.kind) {
            (Activity::Poll(_) | Activity::Main, _) => Self::Tasks,
            (Activity::Tick | Activity::Microtask, _) => Self::Lanes,
            (_, Some(Keeper::Timer | Keeper::Sleep)) => Self::Timers,
            (_, Some(Keeper::Io | Keeper::Poll)) => Self::Io,
            (_, Some(Keeper::Work)) => Self::Pool,
            (_, Some(Keeper::Signal)) => Self::Signal,
            (_, Some(Keeper::Child)) => Self::Process,
            (_, Some(Keeper::Watch)) => Self::Fs,
            (Activity::Callback(_), _) => Self::Loop,
        }
    }
}

/// A set of areas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Areas(u16);

impl Areas {
    /// Parses names with commas between them; `*` stands for all. The second result are the names
    /// that no area has.
    pub(crate) fn parse(text: &str) -> (Self, Vec<&str>) {
        let (mut areas, mut unknown) = (Self::default(), Vec::new());
        let names = text.split(',').map(str::trim);
        for name in names.filter(|name| !name.is_empty()) {
            let found = Area::NAMED
                .iter()
                .find(|(_, known)| known.eq_ignore_ascii_case(name));
            match found {
                Some((area, _)) => areas.0 |= 1 << *area as u16,
                None if name == "*" => areas.0 = u16::MAX,
                None => unknown.push(name),
            }
        }
        (areas, unknown)
    }

    /// Returns the names of all areas.
    pub(crate) fn names() -> String {
        Area::NAMED.map(|(_, name)| name).join(" ")
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, area: Area) -> bool {
        self.0 & 1 << area as u16 != 0
    }
}

/// Writes the lines of some areas.
pub(crate) struct DebugLog {
    areas: Areas,
}

impl DebugLog {
    pub(crate) fn new(areas: Areas) -> Self {
        if areas.has(Area::Context) {
            frame::on_capture(Some(log_capture));
        }
        Self { areas }
    }

    /// Writes a line. `text` is formatted only if the area is chosen.
    pub(crate) fn line(&self, area: Area, text: fmt::Arguments<'_>) {
        if self.areas.has(area) {
            write(area, text);
        }
    }

    /// Writes a line that takes a call to make.
    pub(crate) fn note(&self, area: Area, text: &dyn Fn() -> String) {
        if self.areas.has(area) {
            write(area, format_args!("{}", text()));
        }
    }

    /// Tells the values that a task has at the beginning of a poll.
    fn begin_in_frame(&self, activity: Activity, origin: Origin, info: &dyn Fn() -> Option<Info>) {
        let values = Frame::current().len();
        if values == 0 || !self.areas.has(Area::Context) {
            return;
        }
        let values = Values(values);
        match (activity, info()) {
            (Activity::Poll(_), Some(info)) => {
                self.line(
                    Area::Context,
                    format_args!("{info} is polled with {values}"),
                );
            }
            (Activity::Main, _) => {
                let at = At(origin);
                let text = format_args!("the main future{at} is polled with {values}");
                self.line(Area::Context, text);
            }
            // The surroundings of a callback are set behind this call.
            _ => {}
        }
    }

    /// Tells that an activity begins at the time `now`.
    pub(crate) fn begin(
        &self,
        activity: Activity,
        origin: Origin,
        now: u64,
        info: &dyn Fn() -> Option<Info>,
    ) {
        self.begin_in_frame(activity, origin, info);
        let area = Area::of(activity, origin);
        // What is ready and what is received has been told with its name.
        let is_told = matches!(origin.kind, Some(Keeper::Io | Keeper::Signal));
        if is_told || !self.areas.has(area) {
            return;
        }
        let at = At(origin);
        match activity {
            Activity::Poll(id) => match info() {
                Some(info) => self.line(area, format_args!("{info} is polled")),
                None => self.line(area, format_args!("task {id}{at} is polled")),
            },
            Activity::Main => self.line(area, format_args!("the main future{at} is polled")),
            Activity::Tick => self.line(area, format_args!("a tick{at} runs")),
            Activity::Microtask => self.line(area, format_args!("a microtask{at} runs")),
            Activity::Callback(phase) => {
                let kind = origin.kind.map_or("a callback", Keeper::text);
                match origin.due.filter(|due| *due != NEVER) {
                    Some(due) => {
                        let late = Duration::from_nanos(now.saturating_sub(due));
                        self.line(area, format_args!("{kind}{at} fires, {late:.1?} late"));
                    }
                    None => self.line(area, format_args!("{kind}{at} runs in the {phase} phase")),
                }
            }
        }
    }

    /// Tells that a timer or sleep is armed at the time `now`.
    pub(crate) fn armed(&self, origin: Origin, now: u64) {
        let (kind, at) = (origin.kind.map_or("timer", Keeper::text), At(origin));
        match origin.due {
            None | Some(NEVER) => {
                self.line(Area::Timers, format_args!("{kind}{at} armed, is never due"));
            }
            Some(due) => {
                let left = Duration::from_nanos(due.saturating_sub(now));
                self.line(
                    Area::Timers,
                    format_args!("{kind}{at} armed, due in {left:.1?}"),
                );
            }
        }
    }
}

impl Drop for DebugLog {
    fn drop(&mut self) {
        frame::on_capture(None);
    }
}

fn write(area: Area, text: fmt::Arguments<'_>) {
    let name = Area::NAMED[area as usize].1.to_uppercase();
    let process = std::process::id();
    stderr::print(format_args!("PHASELOOP {name} {process}: {text}"));
}

/// Tells that what is queued or registered takes values along.
fn log_capture(kind: &'static str, values: usize) {
    let values = Values(values);
    write(Area::Context, format_args!("{kind} takes {values} along"));
}

/// A number of values.
struct Values(usize);

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 value"),
            count => write!(f, "{count} values"),
        }
    }
}

/// The line of an origin in parentheses, with a space before them.
struct At(Origin);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.site {
            Some(site) => write!(f, " ({site})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Area, Areas, Values};

    #[test]
    fn areas_are_named_with_commas_between_them() {
        let (areas, unknown) = Areas::parse("timers, POLL,,");
        assert!(unknown.is_empty() && !areas.is_empty());
        for (area, name) in Area::NAMED {
            let is_chosen = matches!(area, Area::Timers | Area::Poll);
            assert_eq!(areas.has(area), is_chosen, "{name}");
        }
        let (all, unknown) = Areas::parse("*");
        assert!(unknown.is_empty());
        assert!(Area::NAMED.iter().all(|(area, _)| all.has(*area)));
        assert!(Areas::parse("").0.is_empty());
    }

    #[test]
    fn unknown_areas_are_returned_and_the_others_hold() {
        let (areas, unknown) = Areas::parse("timer,tasks,*x");
        assert_eq!(unknown, ["timer", "*x"]);
        assert!(areas.has(Area::Tasks) && !areas.has(Area::Timers));
    }

    #[test]
    fn each_area_stands_at_its_place() {
        for (place, (area, _)) in Area::NAMED.into_iter().enumerate() {
            assert_eq!(area as usize, place);
        }
    }

    #[test]
    fn values_are_counted_in_words() {
        assert_eq!(Values(1).to_string(), "1 value");
        assert_eq!(Values(2).to_string(), "2 values");
    }
}
