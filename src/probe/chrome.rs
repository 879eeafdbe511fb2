//! The trace as JSON that Perfetto, `chrome://tracing` and speedscope open.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use super::json::Text;
use super::record::What;
use super::trace::{Span, Trace};

/// Writes one event a line.
pub(crate) fn write(trace: &Trace<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut events = Vec::new();
    write_events(trace, &mut events)?;
    write_file(&[&events], out)
}

/// Writes a file of the events of some loops.
pub(crate) fn write_file(loops: &[&[u8]], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"program\":\"phaseloop {}\"}},\"traceEvents\":[",
        env!("CARGO_PKG_VERSION")
    )?;
    for (place, events) in loops.iter().enumerate() {
        let separator = if place == 0 { "" } else { ",\n" };
        out.write_all(separator.as_bytes())?;
        out.write_all(events)?;
    }
    out.write_all(b"\n]}\n")
}

/// Writes the events of a loop.
pub(crate) fn write_events(trace: &Trace<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut events = Events {
        out,
        pid: std::process::id(),
        tid: trace.index.map_or(trace.number, |index| index + 1),
        // The numbers of one loop are none of another one.
        first_number: u64::from(trace.index.unwrap_or(0)) << 40,
        flows: 0,
        separator: "",
    };
    events.write_trace(trace)
}

struct Events<'a, W> {
    out: &'a mut W,
    pid: u32,
    /// The track: the number of the loop, from 1.
    tid: u32,
    /// The numbers of its arrows and lives are above this one.
    first_number: u64,
    flows: u64,
    separator: &'static str,
}

impl<W: Write> Events<'_, W> {
    fn write_trace(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        let number = trace.index.unwrap_or(trace.number);
        self.name("process_name", "phaseloop")?;
        self.name("thread_name", &format!("loop {number}"))?;
        self.write_spans(trace)?;
        self.write_lives(trace)?;
        self.write_flows(trace)?;
        self.write_messages(trace)?;
        self.write_counters(trace)
    }

    /// Turn › phase › callback › poll. They nest, since a span begins where its predecessor of the
    /// same depth ended. They are written in the order of their starts, the outer ones first.
    fn write_spans(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        let mut spans = outer_spans(trace);
        spans.extend(trace.callbacks().into_iter().map(|callback| {
            let record = callback.record;
            let kind = record.kind.map(|kind| kind.to_string());
            let late = trace
                .lateness(record)
                .map(|nanos| Micros(nanos).to_string());
            let site = record.site.map(|site| site.to_string());
            let args = [
                ("kind", kind.map(|kind| Text(&kind).to_string())),
                ("site", site.map(|site| Text(&site).to_string())),
                ("late_us", late),
            ];
            let name = trace.subject(record).to_string();
            Complete::new("callback", name, callback.span, CALLBACK).with(&args)
        }));
        for record in trace.records {
            let category = match record.what {
                What::Poll | What::Main => "poll",
                What::Tick | What::Microtask => "lane",
                _ => continue,
            };
            let site = record.site.map(|site| site.to_string());
            let task = (record.what == What::Poll).then(|| record.id.to_string());
            let args = [
                ("site", site.map(|site| Text(&site).to_string())),
                ("task", task),
            ];
            let name = trace.subject(record).to_string();
            let level = CALLBACK + 1 + u64::from(record.depth);
            spans.push(Complete::new(category, name, Span::of(record), level).with(&args));
        }
        spans.sort_by_key(|complete| (complete.span.start, complete.level));
        spans.iter().try_for_each(|complete| self.span(complete))
    }

    /// The life of each task in the ring, and each late timer from its deadline to its call.
    fn write_lives(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        for (id, span) in trace.tasks() {
            let name = match trace.names.get(&id) {
                Some(info) => info.to_string(),
                None => format!("task {id}"),
            };
            self.pair("task", &name, u64::from(id), span)?;
        }
        for (index, late) in trace.late.iter().enumerate() {
            let name = match late.record.site {
                Some(site) => format!("late timer ({site})"),
                None => "late timer".to_owned(),
            };
            let span = Span {
                start: late.record.start,
                end: late.record.end,
            };
            self.pair("late", &name, index as u64 + 1, span)?;
        }
        Ok(())
    }

    /// Arrows from a wake to the poll, and from a culprit to the timer that it made late.
    fn write_flows(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        for wakeup in trace.wakeups() {
            self.flow("wake", wakeup.woken, wakeup.polled)?;
        }
        for late in &trace.late {
            if let Some(culprit) = &late.culprit {
                let activity = &trace.activities[culprit.activity];
                self.flow("late", activity.start, late.record.end)?;
            }
        }
        Ok(())
    }

    /// One end of an arrow for each message of another loop, or to one.
    fn write_messages(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        for record in trace.records {
            let end = match record.what {
                What::Sent => "\"ph\":\"s\"",
                What::Received => "\"ph\":\"f\",\"bp\":\"e\"",
                _ => continue,
            };
            let (id, ts) = (record.id, Micros(record.end));
            self.event(format_args!(
                "{end},\"cat\":\"message\",\"name\":\"message\",\"id\":{id},\"ts\":{ts}"
            ))?;
        }
        Ok(())
    }

    fn write_counters(&mut self, trace: &Trace<'_>) -> io::Result<()> {
        let is_in_lanes =
            |what| matches!(what, What::Poll | What::Main | What::Tick | What::Microtask);
        let mut in_lanes = 0;
        for record in trace.records {
            in_lanes += u32::from(is_in_lanes(record.what));
            if record.what == What::Turn {
                let ts = Micros(record.end);
                self.counter("tasks", &ts, record.id)?;
                self.counter("lane entries", &ts, in_lanes)?;
                in_lanes = 0;
            }
        }
        Ok(())
    }

    fn name(&mut self, what: &str, name: &str) -> io::Result<()> {
        let name = Text(name);
        self.event(format_args!(
            "\"ph\":\"M\",\"name\":\"{what}\",\"args\":{{\"name\":{name}}}"
        ))
    }

    fn span(&mut self, complete: &Complete) -> io::Result<()> {
        let Complete {
            category,
            name,
            span,
            level,
            args,
        } = complete;
        // Viewers add `ts` and `dur` as binary fractions. A nanosecond for each level keeps the sum
        // inside of the span around it, and before its successor.
        let length = span.end.saturating_sub(span.start);
        let (ts, dur) = (Micros(span.start), Micros(length.saturating_sub(*level)));
        let name = Text(name);
        self.event(format_args!(
            "\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{name},\"ts\":{ts},\"dur\":{dur},\"args\":{{{args}}}"
        ))
    }

    fn pair(&mut self, category: &str, name: &str, id: u64, span: Span) -> io::Result<()> {
        let (name, id) = (Text(name), self.first_number + id);
        for (phase, at) in [("b", span.start), ("e", span.end)] {
            let ts = Micros(at);
            self.event(format_args!(
                "\"ph\":\"{phase}\",\"cat\":\"{category}\",\"name\":{name},\"id\":{id},\"ts\":{ts}"
            ))?;
        }
        Ok(())
    }

    fn flow(&mut self, category: &str, from: u64, to: u64) -> io::Result<()> {
        self.flows += 1;
        let id = self.first_number + self.flows;
        let (from, to) = (Micros(from), Micros(to));
        self.event(format_args!(
            "\"ph\":\"s\",\"cat\":\"{category}\",\"name\":\"{category}\",\"id\":{id},\"ts\":{from}"
        ))?;
        self.event(format_args!(
            "\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"{category}\",\"name\":\"{category}\",\"id\":{id},\"ts\":{to}"
        ))
    }

    fn counter(&mut self, name: &str, ts: &Micros, value: u32) -> io::Result<()> {
        self.event(format_args!(
            "\"ph\":\"C\",\"name\":\"{name}\",\"ts\":{ts},\"args\":{{\"{name}\":{value}}}"
        ))
    }

    fn event(&mut self, fields: fmt::Arguments<'_>) -> io::Result<()> {
        let (separator, pid, tid) = (self.separator, self.pid, self.tid);
        self.separator = ",\n";
        write!(
            self.out,
            "{separator}{{\"pid\":{pid},\"tid\":{tid},{fields}}}"
        )
    }
}

/// The level of a callback: it is inside a phase, which is inside a turn.
const CALLBACK: u64 = 3;

/// A span with a name.
struct Complete {
    category: &'static str,
    name: String,
    span: Span,
    /// How many spans surround it, and one more.
    level: u64,
    args: String,
}

impl Complete {
    fn new(category: &'static str, name: impl Into<String>, span: Span, level: u64) -> Self {
        Self {
            category,
            name: name.into(),
            span,
            level,
            args: String::new(),
        }
    }

    /// Adds the arguments that have a value, which is JSON.
    fn with(mut self, args: &[(&str, Option<String>)]) -> Self {
        for (name, value) in args {
            if let Some(value) = value {
                let comma = if self.args.is_empty() { "" } else { "," };
                let _ = write!(self.args, "{comma}\"{name}\":{value}");
            }
        }
        self
    }
}

/// Turns, phases and waits.
fn outer_spans(trace: &Trace<'_>) -> Vec<Complete> {
    let turns = trace.of(What::Turn);
    let turns = turns.map(|turn| Complete::new("turn", "turn", Span::of(turn), 1));
    let phases = trace.phases().into_iter();
    let phases =
        phases.map(|(phase, span)| Complete::new("phase", phase.to_string(), span, CALLBACK - 1));
    let waits = trace.of(What::Wait).map(|wait| {
        let events = Some(wait.id.to_string());
        Complete::new("wait", "wait", Span::of(wait), CALLBACK).with(&[("events", events)])
    });
    turns.chain(phases).chain(waits).collect()
}

/// Nanoseconds, printed as microseconds with three decimals.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Names, Record, What};
    use super::super::trace::Trace;
    use super::write;
    use crate::phase_order::Phase;
    use crate::probe::json_reader::Value;

    fn callback(phase: Phase, start: u64, end: u64) -> Record {
        Record {
            phase: Some(phase),
            ..Record::new(What::Callback, start, end)
        }
    }

    fn poll(id: u32, depth: u8, start: u64, end: u64) -> Record {
        Record {
            id,
            depth,
            ..Record::new(What::Poll, start, end)
        }
    }

    fn events(records: &[Record]) -> Vec<Value> {
        let names = Names::default();
        let mut out = Vec::new();
        write(&Trace::new(records, &names, 1), &mut out).unwrap();
        let json = Value::read(std::str::from_utf8(&out).unwrap());
        json["traceEvents"].as_array().unwrap().clone()
    }

    /// `name start-end` of each complete event, outermost first.
    fn spans(events: &[Value]) -> Vec<(String, f64, f64)> {
        let mut spans: Vec<_> = events
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| {
                let start = event["ts"].as_f64().unwrap();
                let end = start + event["dur"].as_f64().unwrap();
                (event["cat"].as_str().unwrap().to_owned(), start, end)
            })
            .collect();
        spans.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.2.total_cmp(&a.2)));
        spans
    }

    #[test]
    fn turn_phase_callback_and_poll_nest() {
        let mut turn = Record::new(What::Turn, 0, 90_000);
        turn.id = 3;
        let records = [
            callback(Phase::Pending, 1_000, 2_000),
            Record::new(What::Wait, 3_000, 40_000),
            callback(Phase::Poll, 41_000, 42_000),
            poll(8, 1, 45_000, 48_000),
            poll(7, 0, 42_000, 50_000),
            callback(Phase::Check, 50_000, 60_000),
            Record::new(What::Tick, 60_000, 61_000),
            turn,
        ];
        let events = events(&records);
        let found = spans(&events);
        let order: Vec<_> = found.iter().map(|span| span.0.as_str()).collect();
        assert_eq!(
            order,
            [
                "turn", "phase", "callback", "phase", "wait", "callback", "poll", "poll", "phase",
                "callback", "lane"
            ]
        );
        let mut open: Vec<f64> = Vec::new();
        for (name, start, end) in found {
            while open.last().is_some_and(|&outer| outer <= start) {
                open.pop();
            }
            assert!(
                open.last().is_none_or(|&outer| end <= outer),
                "{name} overlaps"
            );
            open.push(end);
        }
        let tasks = events
            .iter()
            .find(|event| event["name"] == "tasks")
            .unwrap();
        assert_eq!(tasks["args"]["tasks"], 3);
    }

    #[test]
    fn every_flow_and_every_life_has_both_ends() {
        let wake = |id, at| Record {
            id,
            ..Record::new(What::Wake, at, at)
        };
        let records = [
            wake(1, 5),
            wake(2, 5),
            poll(1, 0, 10, 20),
            wake(1, 20),
            Record::new(What::Late, 2, 30),
        ];
        let events = events(&records);
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!(
            (count("s"), count("f")),
            (2, 2),
            "one wake that led to a poll, one late timer"
        );
        assert_eq!(
            (count("b"), count("e")),
            (2, 2),
            "one task and one late timer"
        );
    }
}
