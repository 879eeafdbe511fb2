//! What reports, metrics and traces call the loops, and what is between them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use phaseloop::cluster;
use phaseloop::observe::Metrics;
use phaseloop::{phase, task};

use crate::util::browser;
use crate::util::child::in_child;
use crate::util::files::Directory;
use crate::util::json::Value;

fn loops(count: usize) -> cluster::Builder {
    cluster::Builder::new().loops(count)
}

// C22: the report has a part for each loop, and names tasks by their loop.
#[test]
fn a_report_has_a_part_for_each_loop() {
    loops(3)
        .block_on(async {
            let hangs = cluster::current().each(|_| pending::<()>());
            let report = cluster::current().report(Duration::from_secs(20)).await;
            assert_eq!(report.loops.len(), 3);
            for (index, of_loop) in report.loops.iter().enumerate() {
                let task = format!("loop {index} task 1 (tests/cluster/names.rs:");
                assert!(of_loop.contains(&task), "{report}");
                assert!(
                    report.to_string().contains(&format!("loop {index}:\n")),
                    "{report}"
                );
            }
            hangs.abort();
        })
        .unwrap();
}

// C22: a task of another loop and a channel between loops are named by their lines.
#[test]
fn what_another_loop_ends_is_named() {
    loops(2)
        .block_on(async {
            let waits = cluster::current()
                .remote(1)
                .spawn(async || pending::<()>().await);
            let mut waits = waits.unwrap();
            let text = format!("{waits:?}");
            assert!(
                text.starts_with("RemoteJoinHandle { loop: 1, spawned_at: tests/"),
                "{text}"
            );
            let (sender, mut receiver) = cluster::channel::<u8>(1);
            let joins = task::Builder::new().name("joins").spawn(async move {
                let _ = (&mut waits).await;
            });
            let receives = task::Builder::new()
                .name("receives")
                .spawn(async move { receiver.recv().await });
            let (full, keeps) = cluster::channel::<u8>(1);
            full.try_send(1).unwrap();
            let sends = task::Builder::new()
                .name("sends")
                .spawn(async move { full.send(2).await });
            phase::check().await;
            let report = phaseloop::LoopHandle::current().report().to_string();
            let line = |name: &str| {
                let mut lines = report.lines();
                lines
                    .find(|line| line.contains(name))
                    .unwrap_or_default()
                    .to_owned()
            };
            let here = "(tests/cluster/names.rs:";
            let joined = line("\"joins\"");
            assert!(
                joined.contains(&format!("waits for task of loop 1 {here}")),
                "{report}"
            );
            let received = line("\"receives\"");
            assert!(
                received.contains(&format!("empty channel {here}")),
                "{report}"
            );
            assert!(received.contains("1 sender"), "{report}");
            let sent = line("\"sends\"");
            assert!(sent.contains(&format!("full channel {here}")), "{report}");
            assert!(sent.contains("1 of 1"), "{report}");
            assert!(received.contains("loop 0 task "), "{report}");
            drop((sender, keeps));
            for task in [
                joins.abort_handle(),
                receives.abort_handle(),
                sends.abort_handle(),
            ] {
                task.abort();
            }
        })
        .unwrap();
}

// C22: what waits briefly and often leaves nothing behind in the list of the reports.
#[test]
fn waits_that_are_over_are_not_reported() {
    loops(2)
        .block_on(async {
            for _ in 0..500 {
                let other = cluster::current().remote(1).spawn(async || ()).unwrap();
                other.await.unwrap();
            }
            let report = phaseloop::LoopHandle::current().report().to_string();
            assert!(!report.contains("of loop 1"), "{report}");
        })
        .unwrap();
}

// C22: a loop that does not answer has its line.
#[test]
fn a_loop_that_does_not_answer_has_its_line() {
    loops(2)
        .block_on(async {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            let stuck = cluster::current().remote(1).call(move || {
                // Until the other end is dropped.
                let _ = wait.recv();
            });
            stuck.unwrap();
            let report = cluster::current().report(Duration::from_millis(50)).await;
            drop(go);
            assert!(
                report.loops[1].contains("has not answered within 50ms"),
                "{report}"
            );
            assert!(
                report.loops[0].contains("What keeps the loop alive"),
                "{report}"
            );
        })
        .unwrap();
}

// C22: a cluster of one prints as a loop alone.
#[test]
fn a_cluster_of_one_prints_as_today() {
    loops(1)
        .block_on(async {
            let hangs = phaseloop::spawn(pending::<()>());
            let report = cluster::current().report(Duration::from_secs(20)).await;
            let report = report.to_string();
            assert!(
                report.contains("\n  task 1 (tests/cluster/names.rs:"),
                "{report}"
            );
            assert!(!report.contains("loop 0"), "{report}");
            hangs.abort();
        })
        .unwrap();
}

// C22: the figures of all loops are added, and have one page with a label for each loop.
#[test]
fn metrics_of_all_loops_are_merged() {
    loops(3)
        .block_on(async {
            let spawned = cluster::current().each(|index| async move {
                for _ in 0..=index {
                    phaseloop::spawn(async {}).await.unwrap();
                }
            });
            spawned.await;
            let metrics = cluster::current().metrics().await;
            let metrics: Vec<_> = metrics.into_iter().map(Result::unwrap).collect();
            let mut all = metrics[0].clone();
            metrics[1..].iter().for_each(|of_loop| all.merge(of_loop));
            let sum = |figure: fn(&Metrics) -> u64| metrics.iter().map(figure).sum::<u64>();
            assert_eq!(all.spawned, sum(|metrics| metrics.spawned));
            assert_eq!(all.polls, sum(|metrics| metrics.polls));
            assert!(all.spawned >= 6);
            assert_eq!(
                all.busy_periods.count(),
                sum(|metrics| metrics.busy_periods.count())
            );
            let page = Metrics::all_to_prometheus(&metrics);
            for (index, of_loop) in metrics.iter().enumerate() {
                let line = format!(
                    "phaseloop_polls_total{{loop=\"{index}\"}} {}\n",
                    of_loop.polls
                );
                assert!(page.contains(&line), "{page}");
            }
            // A family has one head, and its lines follow it.
            let heads: Vec<_> = page
                .lines()
                .filter(|line| line.starts_with("# TYPE"))
                .collect();
            let names: BTreeSet<_> = heads.iter().collect();
            assert_eq!(heads.len(), names.len(), "{page}");
        })
        .unwrap();
}

/// Runs a test in a process of its own with a variable, and returns what it prints on standard
/// error.
#[track_caller]
fn printed(variable: &str, test: &str, body: impl FnOnce()) -> Option<String> {
    let mut child = in_child(&["env", variable], test, body)?;
    let mut text = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    Some(text)
}

/// Blocks loop 1 of two for a while.
fn block_the_second_loop() {
    loops(2)
        .block_on(async {
            let blocks = cluster::current().remote(1).spawn(async || {
                std::thread::sleep(Duration::from_millis(60));
            });
            blocks.unwrap().await.unwrap();
        })
        .unwrap();
}

// C22: the lines of slow periods begin with the loop.
#[test]
fn a_slow_period_names_its_loop() {
    let test = "a_slow_period_names_its_loop";
    if let Some(text) = printed("PHASELOOP_SLOW=50ms", test, block_the_second_loop) {
        assert!(text.contains("phaseloop: loop 1: "), "{text}");
        assert!(
            text.contains("loop 1 task 1 (tests/cluster/names.rs:"),
            "{text}"
        );
    }
}

// C22: so do those of the watchdog.
#[test]
fn a_stall_names_its_loop() {
    let test = "a_stall_names_its_loop";
    if let Some(text) = printed("PHASELOOP_WATCHDOG=10ms", test, block_the_second_loop) {
        assert!(text.contains("phaseloop: loop 1: stall: "), "{text}");
    }
}

// C22: and each loop's report on a signal.
#[cfg(unix)]
#[test]
fn a_report_on_a_signal_names_its_loop() {
    let body = || {
        loops(2)
            .block_on(async {
                let process = std::process::id().to_string();
                let kill = std::process::Command::new("kill")
                    .args(["-USR1", &process])
                    .status();
                assert!(kill.unwrap().success());
                phaseloop::time::sleep(Duration::from_millis(200)).await;
            })
            .unwrap();
    };
    let test = "a_report_on_a_signal_names_its_loop";
    if let Some(text) = printed("PHASELOOP_REPORT=USR1", test, body) {
        for index in 0..2 {
            let head = format!("phaseloop: loop {index}: report of process ");
            assert!(text.contains(&head), "{text}");
        }
    }
}

/// A file for a trace, which is removed in the end.
struct TraceFile(PathBuf);

impl TraceFile {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir();
        Self(directory.join(format!("phaseloop-{}-{name}", std::process::id())))
    }

    fn variable(&self) -> String {
        format!("PHASELOOP_TRACE={}", self.0.display())
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sends a few messages from loop 1 to loop 0, and an answer.
fn exchange() {
    loops(2)
        .block_on(async {
            let (sender, mut receiver) = cluster::channel(4);
            let (answer, mut answers) = cluster::channel(1);
            let sends = cluster::current().remote(1).spawn(move || async move {
                for number in 0..10 {
                    sender.send(number).await.unwrap();
                }
                answers.recv().await
            });
            // A task on each loop, so that both have a life in the trace.
            phaseloop::spawn(task::yield_now()).await.unwrap();
            while receiver.recv().await.is_some_and(|number| number < 9) {}
            answer.send(7).await.unwrap();
            assert_eq!(sends.unwrap().await.unwrap(), Some(7));
        })
        .unwrap();
}

// C22: one file for all loops: a track for each, and an arrow from each send to its receipt.
#[test]
fn a_trace_has_a_track_for_each_loop_and_an_arrow_for_each_message() {
    let file = TraceFile::new("names.json");
    let test = "a_trace_has_a_track_for_each_loop_and_an_arrow_for_each_message";
    let Some(text) = printed(&file.variable(), test, exchange) else {
        return;
    };
    assert!(!text.contains("phaseloop:"), "a trace is silent: {text}");
    let trace = Value::read(&std::fs::read_to_string(&file.0).unwrap());
    let events = trace["traceEvents"].as_array().unwrap();
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let mut tracks = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        let name = event["args"]["name"].as_str().unwrap().to_owned();
        tracks.insert(number(event, "tid") as u32, name);
    }
    let expected = BTreeMap::from([(1, "loop 0".to_owned()), (2, "loop 1".to_owned())]);
    assert_eq!(tracks, expected);
    let ends = |phase: &str| -> BTreeMap<u64, (u32, f64)> {
        let is_end = |event: &&Value| event["cat"] == "message" && event["ph"] == phase;
        let ends = events.iter().filter(is_end);
        ends.map(|event| {
            let place = (number(event, "tid") as u32, number(event, "ts"));
            (number(event, "id") as u64, place)
        })
        .collect()
    };
    let (sent, received) = (ends("s"), ends("f"));
    assert_eq!(sent.len(), 11, "ten messages and an answer");
    assert!(sent.keys().eq(received.keys()), "each arrow has both ends");
    for (id, (from, at)) in &sent {
        let (to, later) = received[id];
        assert_ne!(*from, to);
        assert!(
            later >= *at,
            "message {id} is sent at {at} and received at {later}"
        );
    }
    let from_second = sent.values().filter(|(from, _)| *from == 2).count();
    assert_eq!(from_second, 10);
    // The lives of tasks have numbers of their own on each loop.
    let mut lives = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "b") {
        let tid = number(event, "tid") as u32;
        let other = lives.insert(number(event, "id") as u64, tid);
        assert!(other.is_none_or(|other| other == tid));
    }
}

// C22: the page has one timeline, with each loop and both ends of each message.
#[test]
fn a_page_has_one_timeline_of_all_loops_and_their_messages() {
    let file = TraceFile::new("names.html");
    let test = "a_page_has_one_timeline_of_all_loops_and_their_messages";
    if printed(&file.variable(), test, exchange).is_none() {
        return;
    }
    let page = std::fs::read_to_string(&file.0).unwrap();
    assert_eq!(page.matches("<canvas ").count(), 1);
    assert!(page.contains("loop 0: ") && page.contains("<br>loop 1: "));
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    let data = Value::read(json);
    let loops = data["loops"].as_array().unwrap();
    let indexes: Vec<_> = loops.iter().map(|one| one["index"].as_f64()).collect();
    assert_eq!(indexes, [Some(0.0), Some(1.0)]);
    // The times of a loop begin at its origin.
    let ends = |end: &str, place: usize| -> BTreeMap<u64, f64> {
        let origin = loops[place]["origin"].as_f64().unwrap();
        let ends = loops[place][end].as_array().unwrap().iter();
        let number = |value: &Value| value.as_f64().unwrap();
        ends.map(|one| (number(&one[1]) as u64, origin + number(&one[0])))
            .collect()
    };
    for (from, to, count) in [(1, 0, 10), (0, 1, 1)] {
        let (sent, received) = (ends("sent", from), ends("received", to));
        assert_eq!(sent.len(), count, "from loop {from}");
        assert!(sent.keys().eq(received.keys()));
        for (number, at) in &sent {
            assert!(received[number] >= *at, "message {number}");
        }
    }
    // A browser draws the arrows, and the title of each loop.
    let directory = Directory::new("names");
    let script = "parent.postMessage({ arrows: boxes.filter(box => box[4].message).length > 0, \
        messages: messages.length, lower: loops[1].top > loops[0].top }, \"*\");";
    if let Some(seen) = browser::read(&directory, &file.0, script) {
        assert_eq!(seen, "{\"arrows\":true,\"messages\":11,\"lower\":true}");
    }
}
