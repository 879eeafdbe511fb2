//! 571 and 572: histograms, and marks and measures in every form.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::perf_hooks::performance::{self, Point, Span};
use phaseloop_node::perf_hooks::{
    EntryType, HistogramOptions, PerformanceEntry, PerformanceObserver, RecordableHistogram,
    monitor_event_loop_delay,
};
use phaseloop_node::{Error, next_tick, set_immediate, set_timeout};

use super::hooks::joined;
use crate::support::{block, log, say};

super::ports! {
    Virtual "571-histograms" => histograms,
    Virtual "572-performance-marks" => marks,
}

/// A number as JavaScript's `toFixed(2)` prints it.
fn fixed(number: f64) -> String {
    format!("{number:.2}")
}

fn show(h: &RecordableHistogram) {
    let min = match h.min() {
        min if min == i64::MAX as u64 => "none".to_owned(),
        min => min.to_string(),
    };
    let (mean, deviation) = (fixed(h.mean()), fixed(h.stddev()));
    let percentiles = h.percentiles();
    let percentiles = percentiles.iter().map(|(p, v)| format!("{p}:{v}"));
    log(format!(
        "{min},{},{mean},{deviation},{},{} {}",
        h.max(),
        h.count(),
        h.exceeds(),
        percentiles.collect::<Vec<_>>().join(",")
    ));
}

async fn histograms() {
    fn fails<T>(result: Result<T, Error>) {
        if let Err(error) = result {
            log(format!("{} {}", error.name(), error.code().unwrap()));
        }
    }

    let mut h = RecordableHistogram::new();
    show(&h);
    h.record(1).unwrap();
    show(&h);
    for i in 1..=100 {
        h.record(i * i).unwrap();
    }
    show(&h);
    let asked = [0.001, 1.0, 10.0, 33.3, 50.0, 90.0, 99.0, 99.9, 100.0];
    let values = asked.map(|p| h.percentile(p).to_string());
    log(values.join(","));
    let options = HistogramOptions {
        lowest: 1,
        highest: 1000,
        figures: 2,
    };
    let mut k = RecordableHistogram::with_options(options).unwrap();
    for v in [1, 10, 100, 999, 1000, 5000] {
        k.record(v).unwrap();
    }
    show(&k);
    let mut s = RecordableHistogram::new();
    s.record(123_456).unwrap();
    s.record(7).unwrap();
    h.add(&s);
    show(&h);
    h.reset();
    show(&h);
    fails(h.record(0));
    let all = HistogramOptions::default();
    let wrong = [
        HistogramOptions { lowest: 0, ..all },
        HistogramOptions { highest: 1, ..all },
        HistogramOptions { figures: 6, ..all },
    ];
    for options in wrong {
        fails(RecordableHistogram::with_options(options));
    }
    let mut d = RecordableHistogram::new();
    d.record_delta();
    log(format!("delta-{}", d.count()));
    block(1);
    d.record_delta();
    log(format!("delta-{}-{}", d.count(), d.min() > 0));
    show(&monitor_event_loop_delay(10).histogram());
}

async fn marks() {
    fn s(name: &str, time: f64) {
        performance::mark_at(name, time).unwrap();
    }

    fn tell(measure: &PerformanceEntry) {
        log(format!("{},{}", measure.start_time, measure.duration));
    }

    fn fails<T>(result: Result<T, Error>) {
        if let Err(error) = result {
            log(format!("{} {}", error.name(), error.message()));
        }
    }

    fn of(start: Option<Point>, end: Option<Point>, duration: Option<f64>) -> Span {
        Span {
            start,
            end,
            duration,
            detail: None,
        }
    }

    block(20);
    for (name, time) in [("x", 5.0), ("y", 1.0), ("x", 9.0), ("z", 5.0)] {
        s(name, time);
    }
    log(joined(&performance::get_entries()));
    let measure = |name: &str, span: Span| performance::measure(name, span).unwrap();
    tell(&measure("xy", ("y", "x").into()));
    tell(&measure("neg", ("x", "y").into()));
    tell(&measure("end", of(None, Some("x".into()), None)));
    tell(&measure("sd", of(Some("y".into()), None, Some(3.0))));
    tell(&measure("ed", of(None, Some("x".into()), Some(2.0))));
    let whole = measure("whole", ().into());
    log(format!("{},{}", whole.start_time, whole.duration > 0.0));
    let from = measure("from", "y".into());
    let is_past = from.duration + 1.0 <= performance::now();
    log(format!("{},{is_past}", from.start_time));
    fails(performance::measure("bad", ("x", "nothing")));
    fails(performance::measure(
        "bad",
        of(Some("nothing".into()), None, None),
    ));
    fails(performance::measure(
        "bad",
        of(Some((-5.0).into()), None, None),
    ));
    fails(performance::mark_at("bad", -0.5));
    let mut all = performance::get_entries();
    all.retain(|e| e.name != "whole" && e.name != "from");
    let types: String = all
        .iter()
        .map(|e| match e.entry_type {
            EntryType::Mark => "r",
            EntryType::Measure => "a",
            _ => "n",
        })
        .collect();
    log(format!("{} {types}", joined(&all)));
    let named = performance::get_entries_by_name("x");
    let measures = named.iter().filter(|e| e.entry_type == EntryType::Measure);
    log(format!(
        "{},{},{},{}",
        named.len(),
        measures.count(),
        performance::get_entries_by_type(EntryType::Measure).len(),
        performance::get_entries_by_type(EntryType::Function).len()
    ));
    let both = [EntryType::Measure, EntryType::Mark];
    let o = PerformanceObserver::new(|l| {
        log(format!(
            "told-{}-{}-{}",
            joined(l.get_entries()),
            joined(&l.get_entries_by_type(EntryType::Measure)),
            joined(&l.get_entries_by_name("n2"))
        ));
    });
    o.observe(&both);
    s("n1", 3.0);
    s("n2", 2.0);
    performance::clear_marks(Some("n1"));
    performance::measure("nm", (2.0, 3.0)).unwrap();
    let own: Rc<RefCell<Option<PerformanceObserver>>> = Rc::default();
    let this = own.clone();
    let t = PerformanceObserver::new(move |l| {
        log(format!("type-{}", joined(l.get_entries())));
        if !l.get_entries_by_name("n4").is_empty() {
            this.borrow().as_ref().unwrap().disconnect();
            o.disconnect();
        }
    });
    own.replace(Some(t.clone()));
    t.observe(&both);
    s("n3", 1.0);
    set_timeout(20, || {
        log("later");
        s("n4", 8.0);
        performance::clear_marks(None);
        performance::clear_measures(Some("xy"));
        log(format!(
            "{}|{}",
            joined(&performance::get_entries_by_type(EntryType::Mark)),
            performance::get_entries_by_name("xy").len()
        ));
        next_tick(say("tick"));
        set_immediate(|| {
            log("immediate");
            set_timeout(20, || {
                s("n5", 1.0);
                log("end");
            });
        });
    });
}
