//! The debug log: lines on standard error about the areas that `PHASELOOP_DEBUG` names.
//!
//! ```text
//! PHASELOOP TIMERS 4711: sleep (src/main.rs:3:5) armed, due in 10.0ms
//! PHASELOOP TIMERS 4711: sleep (src/main.rs:3:5) fires, 52.1µs late
//! ```
//!
//! A line comes from an event of the loop, or from a call of `Core::log`. [`Area`] lists the areas.

use std::fmt;
use std::time::Duration;

use super::area::Area;
use super::observer::{Activity, Body, Observer, Waited, Wake, Wants};
use super::origin::At;
use crate::clock::NEVER;
use crate::frame::{self, Frame};
use crate::keeper::Keeper;
use crate::stderr;
use crate::task_info::{Id, Info};

/// Returns the area that an activity belongs to.
fn area_of(activity: &Activity<'_>) -> Area {
    match (activity.body, activity.origin.kind) {
        (Body::Poll(_) | Body::MainFuture, _) => Area::Tasks,
        (Body::Tick | Body::Microtask, _) => Area::Lanes,
        (_, Some(Keeper::Timer | Keeper::Sleep)) => Area::Timers,
        (_, Some(Keeper::Io | Keeper::Poll)) => Area::Io,
        (_, Some(Keeper::Work)) => Area::Pool,
        (_, Some(Keeper::Signal)) => Area::Signal,
        (_, Some(Keeper::Child)) => Area::Process,
        (_, Some(Keeper::Watch)) => Area::Fs,
        (Body::Callback(_), _) => Area::Loop,
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
            let mut known = Area::ALL.into_iter();
            match known.find(|area| area.name().eq_ignore_ascii_case(name)) {
                Some(area) => areas.0 |= 1 << area as u16,
                None if name == "*" => areas.0 = u16::MAX,
                None => unknown.push(name),
            }
        }
        (areas, unknown)
    }

    /// Returns the names of all areas.
    pub(crate) fn names() -> String {
        Area::ALL.map(Area::name).join(" ")
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

    /// Logs the values that a task has at the beginning of a poll.
    fn begin_in_frame(&self, activity: &Activity<'_>) {
        let values = Frame::current().len();
        if values == 0 || !self.areas.has(Area::Context) {
            return;
        }
        let values = Values(values);
        match (activity.body, activity.task()) {
            (Body::Poll(_), Some(info)) => {
                self.line(
                    Area::Context,
                    format_args!("{info} is polled with {values}"),
                );
            }
            (Body::MainFuture, _) => {
                let at = At(activity.site());
                let text = format_args!("the main future{at} is polled with {values}");
                self.line(Area::Context, text);
            }
            // The context of a callback are set behind this call.
            _ => {}
        }
    }
}

impl Observer for DebugLog {
    fn wants(&self) -> Wants {
        let by_area = [
            (Area::Loop, Wants::TURNS),
            (Area::Poll, Wants::WAITS),
            (Area::Tasks, Wants::TASKS | Wants::WAKES),
        ];
        let chosen = by_area
            .into_iter()
            .filter(|(area, _)| self.areas.has(*area));
        chosen.fold(Wants::ACTIVITIES | Wants::LOGS, |all, (_, wants)| {
            all | wants
        })
    }

    fn begin(&self, activity: &Activity<'_>) {
        self.begin_in_frame(activity);
        let (area, kind) = (area_of(activity), activity.kind());
        // What is ready and what is received has a line with its name.
        let has_line = matches!(kind, Some(Keeper::Io | Keeper::Signal));
        if has_line || !self.areas.has(area) {
            return;
        }
        let at = At(activity.site());
        match activity.body {
            Body::Poll(id) => match activity.task() {
                Some(info) => self.line(area, format_args!("{info} is polled")),
                None => self.line(area, format_args!("task {id}{at} is polled")),
            },
            Body::MainFuture => self.line(area, format_args!("the main future{at} is polled")),
            Body::Tick => self.line(area, format_args!("a tick{at} runs")),
            Body::Microtask => self.line(area, format_args!("a microtask{at} runs")),
            Body::Callback(phase) => {
                let kind = kind.map_or("a callback", Keeper::text);
                match activity.due().filter(|due| *due != NEVER) {
                    Some(due) => {
                        let late = Duration::from_nanos(activity.now().saturating_sub(due));
                        self.line(area, format_args!("{kind}{at} fires, {late:.1?} late"));
                    }
                    None => self.line(area, format_args!("{kind}{at} runs in the {phase} phase")),
                }
            }
        }
    }

    fn begin_turn(&self, _now: u64) {
        self.line(Area::Loop, format_args!("a turn begins"));
    }

    fn end_turn(&self, _now: u64, tasks: usize) {
        self.line(Area::Loop, format_args!("the turn ends, {tasks} tasks"));
    }

    fn begin_wait(&self, _now: u64) {
        self.line(Area::Poll, format_args!("the loop waits"));
    }

    fn end_wait(&self, waited: &Waited) {
        let events = waited.events;
        let took = Duration::from_nanos(waited.end.saturating_sub(waited.start));
        let text = format_args!("{events} events after a wait of {took:.1?}");
        self.line(Area::Poll, text);
    }

    fn spawned(&self, task: &Info) {
        self.line(Area::Tasks, format_args!("{task} is spawned"));
    }

    fn ended(&self, task: Id) {
        self.line(Area::Tasks, format_args!("task {task} has ended"));
    }

    fn woken(&self, wake: &Wake<'_>) {
        self.line(Area::Tasks, format_args!("task {} is woken", wake.id));
    }

    fn log(&self, area: Area, text: &dyn Fn() -> String) {
        if self.areas.has(area) {
            write(area, format_args!("{}", text()));
        }
    }
}

impl Drop for DebugLog {
    fn drop(&mut self) {
        frame::on_capture(None);
    }
}

fn write(area: Area, text: fmt::Arguments<'_>) {
    let name = area.name().to_uppercase();
    let process = std::process::id();
    stderr::print(format_args!("PHASELOOP {name} {process}: {text}"));
}

/// Logs that what is queued or registered takes values along.
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

#[cfg(test)]
mod tests {
    use super::{Area, Areas, Values};

    #[test]
    fn areas_are_named_with_commas_between_them() {
        let (areas, unknown) = Areas::parse("timers, POLL,,");
        assert!(unknown.is_empty() && !areas.is_empty());
        for area in Area::ALL {
            let is_chosen = matches!(area, Area::Timers | Area::Poll);
            assert_eq!(areas.has(area), is_chosen, "{area:?}");
        }
        let (all, unknown) = Areas::parse("*");
        assert!(unknown.is_empty());
        assert!(Area::ALL.iter().all(|area| all.has(*area)));
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
        for (place, area) in Area::ALL.into_iter().enumerate() {
            assert_eq!(area as usize, place);
        }
    }

    #[test]
    fn values_are_counted_in_words() {
        assert_eq!(Values(1).to_string(), "1 value");
        assert_eq!(Values(2).to_string(), "2 values");
    }
}
