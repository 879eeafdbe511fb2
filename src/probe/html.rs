//! The trace as one page that needs no network: a timeline, and a table of who made timers late.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::time::Duration;

use super::json::Text;
use super::record::{Record, Subject, SubjectKey, What};
use super::trace::{Span, Trace};
use crate::histogram::Histogram;
use crate::keeper::Keeper;
use crate::sys::clock;

/// The page, with marks where the words, the table and the data are inserted.
const PAGE: &str = include_str!("timeline.html");

/// The number of the latest timers that get an arrow without a pointer over them.
const ARROWS: usize = 50;

/// What the page shows of one loop.
#[derive(Clone, Default)]
pub(crate) struct Part {
    sentence: String,
    rows: String,
    data: String,
}

impl Part {
    pub(crate) fn of(trace: &Trace<'_>) -> Self {
        let of_several = trace.index.map(|index| format!("loop {index}: "));
        let of_several = of_several.unwrap_or_default();
        Self {
            sentence: format!("{of_several}{}", sentence(trace)),
            rows: rows(trace, &of_several),
            data: Data::of(trace),
        }
    }
}

pub(crate) fn write(trace: &Trace<'_>, out: &mut impl Write) -> io::Result<()> {
    write_parts(&[&Part::of(trace)], out)
}

/// Writes the page of one loop, or of several.
pub(crate) fn write_parts(parts: &[&Part], out: &mut impl Write) -> io::Result<()> {
    let each = |part: fn(&Part) -> &str, between| {
        let parts = parts.iter().map(|one| part(one));
        parts.collect::<Vec<_>>().join(between)
    };
    let mut rows = each(|part| &part.rows, "");
    if rows.is_empty() {
        rows.push_str(
            "      <tr><td>No timer was late.</td><td></td><td></td><td></td><td></td></tr>\n",
        );
    }
    let data = each(|part| &part.data, ",\n");
    let mut rest = PAGE;
    for (mark, text) in [
        ("@TITLE@", escape(&program())),
        ("@PROGRAM@", escape(&program())),
        ("@HEADER@", header()),
        (
            "@SENTENCE@",
            escape(&each(|part| &part.sentence, "\n")).replace('\n', "<br>"),
        ),
        ("@ROWS@", rows),
        ("@DATA@", format!("{{\"loops\":[{data}]}}")),
    ] {
        let (before, after) = rest.split_once(mark).expect("the page has each mark");
        out.write_all(before.as_bytes())?;
        out.write_all(text.as_bytes())?;
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// The program's name, without its folder.
fn program() -> String {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&path).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "a program".to_owned())
}

/// The command, the time at which the page was written, which the script shows in the reader's time
/// zone, and the version.
fn header() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let command = words.collect::<Vec<_>>().join(" ");
    let since = clock::wall().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    format!(
        "<code>{}</code> · <time id=\"date\" datetime=\"{seconds}\"></time> · phaseloop {}",
        escape(&command),
        env!("CARGO_PKG_VERSION")
    )
}

/// Describes the trace in one sentence.
fn sentence(trace: &Trace<'_>) -> String {
    let Span { start, end } = trace.extent();
    let whole = Duration::from_nanos(end - start);
    let idle: u64 = trace.of(What::Wait).map(Record::took).sum();
    let busy = busy_periods(trace);
    let share = 1.0 - Duration::from_nanos(idle).as_secs_f64() / whole.as_secs_f64().max(1e-9);
    format!(
        "{} recorded: the loop was busy {:.1} % of the time; {} polls, {} callbacks, {} late timers; \
         event delay p50 / p99 / max: {} / {} / {}.",
        Spaced(whole),
        share.clamp(0.0, 1.0) * 100.0,
        trace.of(What::Poll).count(),
        trace.of(What::Callback).count(),
        trace.late.len(),
        Spaced(busy.delay_quantile(0.5, whole)),
        Spaced(busy.delay_quantile(0.99, whole)),
        Spaced(busy.max()),
    )
}

/// A duration in milliseconds, as `50.2 ms`.
struct Spaced(Duration);

impl fmt::Display for Spaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
    }
}

fn busy_periods(trace: &Trace<'_>) -> Histogram {
    let mut periods = Histogram::new();
    let mut since = trace.extent().start;
    for wait in trace.of(What::Wait) {
        periods.record_nanos(wait.start.saturating_sub(since));
        since = wait.end;
    }
    periods.record_nanos(trace.extent().end.saturating_sub(since));
    periods
}

/// The table of culprits. Each row says where its longest activity is, for the script.
fn rows(trace: &Trace<'_>, of_several: &str) -> String {
    let origin = trace.extent().start;
    let mut sums: HashMap<SubjectKey, Row> = HashMap::new();
    for culprit in trace.late.iter().filter_map(|late| late.culprit.as_ref()) {
        let row = sums.entry(culprit.key).or_default();
        row.made_late += 1;
        row.took += culprit.took;
        if culprit.took > row.longest {
            (row.longest, row.activity) = (culprit.took, culprit.activity);
        }
    }
    let mut found: Vec<_> = sums
        .into_iter()
        .map(|(key, row)| (key.subject(trace.names), row))
        .collect();
    // As in `Blame`: the machine comes last.
    found.sort_by_key(|(subject, row)| {
        let is_machine = matches!(subject, Subject::Machine);
        (is_machine, std::cmp::Reverse(row.took), subject.to_string())
    });
    let mut text = String::new();
    for (subject, row) in found {
        let site = subject.site().map(ToString::to_string).unwrap_or_default();
        let name = subject.to_string().replace(&format!(" ({site})"), "");
        let activity = &trace.activities[row.activity];
        let _ = writeln!(
            text,
            "      <tr data-loop=\"{}\" data-start=\"{}\" data-end=\"{}\"><td>{of_several}{}</td>\
             <td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"site\">{}</td></tr>",
            trace.index.unwrap_or(0),
            activity.start - origin,
            activity.end - origin,
            escape(&name),
            row.made_late,
            Spaced(Duration::from_nanos(row.took)),
            Spaced(Duration::from_nanos(row.longest)),
            escape(&site),
        );
    }
    text
}

#[derive(Default)]
struct Row {
    made_late: usize,
    took: u64,
    longest: u64,
    activity: usize,
}

/// The data of the script, as JSON.
#[derive(Default)]
struct Data {
    subjects: Vec<String>,
    numbers: HashMap<SubjectKey, usize>,
}

impl Data {
    fn of(trace: &Trace<'_>) -> String {
        let mut data = Self::default();
        let Span { start: origin, end } = trace.extent();
        let at = |time: u64| time.saturating_sub(origin);
        let mut text = String::new();
        let index = trace.index.unwrap_or(0);
        let _ = write!(
            text,
            "{{\"index\":{index},\"origin\":{origin},\"end\":{}",
            end - origin
        );

        let waits = trace.of(What::Wait);
        list(&mut text, "waits", waits, |wait| {
            format!("{},{},{}", at(wait.start), at(wait.end), wait.id)
        });
        let mut callbacks = trace.callbacks();
        callbacks.sort_by_key(|callback| callback.span.start);
        list(&mut text, "callbacks", callbacks, |callback| {
            let phase = callback.record.phase.map_or(0, |phase| phase as usize);
            let subject = data.subject(callback.record, trace);
            let (start, end) = (at(callback.span.start), at(callback.span.end));
            format!("{start},{end},{phase},{subject}")
        });
        let closures = trace
            .records
            .iter()
            .filter(|record| matches!(record.what, What::Tick | What::Microtask));
        list(&mut text, "lanes", closures, |record| {
            let subject = data.subject(record, trace);
            format!("{},{},{subject}", at(record.start), at(record.end))
        });
        let mut polls: Vec<_> = trace
            .records
            .iter()
            .filter(|record| matches!(record.what, What::Poll | What::Main))
            .collect();
        polls.sort_by_key(|poll| (poll.start, poll.depth));
        list(&mut text, "polls", polls, |record| {
            let subject = data.subject(record, trace);
            let (start, end) = (at(record.start), at(record.end));
            format!("{start},{end},{subject},{}", record.depth)
        });
        let slow = trace.of(What::Slow);
        list(&mut text, "slow", slow, |period| {
            let subject = main_suspect(trace, period).map(|key| data.number(key, trace));
            let subject = subject.map_or(-1, |number| number as i64);
            format!("{},{},{subject}", at(period.start), at(period.end))
        });
        for (name, what) in [("sent", What::Sent), ("received", What::Received)] {
            list(&mut text, name, trace.of(what), |message| {
                format!("{},{}", at(message.end), message.id)
            });
        }
        data.add_late(trace, &mut text, at);
        let _ = write!(text, ",\"subjects\":[");
        for (index, subject) in data.subjects.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{}", Text(subject));
        }
        text.push_str("]}");
        text
    }

    /// Adds the late timers, and which of them are the latest.
    fn add_late(&mut self, trace: &Trace<'_>, text: &mut String, at: impl Fn(u64) -> u64) {
        let mut late: Vec<_> = trace.late.iter().collect();
        late.sort_by_key(|late| late.record.start);
        list(text, "late", &late, |late| {
            let kind = late.record.kind.unwrap_or(Keeper::Timer);
            let name = match late.record.site {
                Some(site) => format!("{kind} ({site})"),
                None => kind.to_string(),
            };
            let (start, end) = (at(late.record.start), at(late.record.end));
            let culprit = match &late.culprit {
                Some(culprit) => {
                    let activity = &trace.activities[culprit.activity];
                    let subject = self.number(culprit.key, trace);
                    format!("{},{},{subject}", at(activity.start), at(activity.end))
                }
                None => "-1,-1,-1".to_owned(),
            };
            format!("{start},{end},{},{culprit}", Text(&name))
        });
        let mut latest: Vec<_> = (0..late.len()).collect();
        latest.sort_by_key(|&index| std::cmp::Reverse(late[index].record.took()));
        latest.truncate(ARROWS);
        let latest: Vec<_> = latest.iter().map(usize::to_string).collect();
        let _ = write!(text, ",\"latest\":[{}]", latest.join(","));
    }

    fn subject(&mut self, record: &Record, trace: &Trace<'_>) -> usize {
        self.number(SubjectKey::of(record), trace)
    }

    fn number(&mut self, key: SubjectKey, trace: &Trace<'_>) -> usize {
        *self.numbers.entry(key).or_insert_with(|| {
            self.subjects.push(key.subject(trace.names).to_string());
            self.subjects.len() - 1
        })
    }
}

/// Returns the subject with the largest own time in a slow period.
fn main_suspect(trace: &Trace<'_>, period: &Record) -> Option<SubjectKey> {
    let first = trace
        .activities
        .partition_point(|activity| activity.end <= period.start);
    let mut sums: HashMap<SubjectKey, u64> = HashMap::new();
    for activity in &trace.activities[first..] {
        if activity.end > period.end {
            break;
        }
        *sums.entry(activity.key).or_default() += activity.own;
    }
    let largest = sums.into_iter().max_by_key(|&(_, own)| own);
    largest.map(|(key, _)| key)
}

/// Adds a list of lists to a JSON object.
fn list<T>(
    text: &mut String,
    name: &str,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(T) -> String,
) {
    let _ = write!(text, ",\"{name}\":[");
    for (index, one) in items.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { ",\n" };
        let _ = write!(text, "{comma}[{}]", item(one));
    }
    text.push(']');
}

/// Escapes a text for an element of the page.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::record::{Names, Record, What};
    use super::super::trace::Trace;
    use super::write;
    use crate::probe::json_reader::Value;

    const MS: u64 = 1_000_000;

    fn page(records: &[Record]) -> String {
        let names = Names::default();
        let mut out = Vec::new();
        write(&Trace::new(records, &names, 1), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let (json, _) = rest.split_once("</script>").unwrap();
        Value::read(json)["loops"][0].clone()
    }

    #[test]
    fn the_page_has_sentence_table_and_data_and_needs_no_network() {
        let records = [
            Record::new(What::Wait, 0, 50 * MS),
            Record::new(What::Tick, 50 * MS, 90 * MS),
            Record::new(What::Late, 55 * MS, 90 * MS),
            Record::new(What::Slow, 50 * MS, 90 * MS),
            Record::new(What::Wait, 90 * MS, 100 * MS),
        ];
        let page = page(&records);
        assert!(page.contains("100.0 ms recorded: the loop was busy 40.0 % of the time"));
        assert!(page.contains("event delay p50 / p99 / max: "));
        assert!(page.contains(concat!("phaseloop ", env!("CARGO_PKG_VERSION"))));
        assert!(page.contains("<td>tick</td><td class=\"number\">1</td>"));
        assert!(!page.contains("http:") && !page.contains("https:"));
        let data = data(&page);
        assert_eq!(data["waits"].as_array().unwrap().len(), 2);
        assert_eq!(data["slow"][0][2], 0, "the tick is the main suspect");
        assert_eq!(data["late"][0][5], 0, "and the culprit");
        assert_eq!(data["latest"][0], 0);
        assert_eq!(data["end"], 100 * MS);
    }

    #[test]
    fn a_trace_without_records_is_a_page() {
        let page = page(&[]);
        assert!(page.contains("No timer was late."));
        assert_eq!(data(&page)["polls"], Value::Array(Vec::new()));
    }
}
