//! 532–534: observers, timed functions, and the figures of the loop.

use std::cell::RefCell;
use std::rc::Rc;

use phaseloop_node::perf_hooks::performance::{
    self, Detail, EventLoopUtilization, MarkOptions, Span, event_loop_utilization as elu,
};
use phaseloop_node::perf_hooks::{
    EntryType, PerformanceEntry, PerformanceObserver, PerformanceObserverEntryList,
    RecordableHistogram, monitor_event_loop_delay,
};
use phaseloop_node::{catch, next_tick, set_immediate, set_timeout, throw};

use super::hooks::joined;
use crate::support::{block, log, say};

super::ports! {
    Virtual "532-performance-observers" => observers,
    Real "533-performance-timerify" => timed,
    Real "534-loop-utilization" => utilization,
}

/// `l.getEntries().map((e) => e.entryType + ':' + e.name).join()`.
fn list(l: &PerformanceObserverEntryList) -> String {
    let text = |e: &PerformanceEntry| format!("{:?}:{}", e.entry_type, e.name).to_lowercase();
    let all: Vec<_> = l.get_entries().iter().map(text).collect();
    all.join(",")
}

fn mark(name: &str, start_time: f64) {
    performance::mark_at(name, start_time).unwrap();
}

async fn observers() {
    mark("early", 0.001);
    performance::measure("early-m", (0.002, 0.004)).unwrap();
    let buffered = PerformanceObserver::new(|l| log(format!("buffered-{}", list(l))));
    buffered.observe_buffered(EntryType::Mark);
    let own: Rc<RefCell<Option<PerformanceObserver>>> = Rc::default();
    let both = own.clone();
    let observer = PerformanceObserver::new(move |l| {
        log(format!("both-{}-true", list(l)));
        if !l.get_entries_by_name("stop").is_empty() {
            both.borrow().as_ref().unwrap().disconnect();
        }
    });
    own.replace(Some(observer.clone()));
    observer.observe(&[EntryType::Mark, EntryType::Measure]);
    let kept = PerformanceObserver::new(|_| log("never"));
    kept.observe(&[EntryType::Measure]);
    let options = MarkOptions {
        start_time: Some(0.3),
        detail: Some(Detail::new(1)),
    };
    performance::mark_with("a", options).unwrap();
    mark("b", 0.1);
    let span = Span {
        start: Some("b".into()),
        end: Some("a".into()),
        detail: Some(Detail::new("why")),
        ..Span::default()
    };
    let m = performance::measure("m", span).unwrap();
    let a = &performance::get_entries_by_name("a")[0];
    log(format!(
        "{},{},{:.3},{},{}",
        m.name,
        m.start_time,
        m.duration,
        m.detail::<&str>().unwrap(),
        a.detail::<i32>().unwrap()
    ));
    log(format!("taken-{}", joined(&kept.take_records())));
    kept.disconnect();
    next_tick(say("tick"));
    set_immediate(|| {
        log("immediate");
        mark("later", 5.0);
        set_immediate(|| {
            log("second");
            mark("stop", 6.0);
            mark("after", 7.0);
            set_immediate(|| {
                mark("unheard", 8.0);
                set_immediate(move || {
                    buffered.disconnect();
                    let marks = performance::get_entries_by_type(EntryType::Mark);
                    log(format!("done-{}", joined(&marks)));
                    let named = performance::get_entries_by_name("m");
                    let of = |kind| named.iter().filter(|e| e.entry_type == kind).count();
                    log(format!(
                        "names-{}{}",
                        of(EntryType::Mark),
                        of(EntryType::Measure)
                    ));
                });
            });
        });
    });
    mark("c", 0.2);
}

async fn timed() {
    let h = Rc::new(RefCell::new(RecordableHistogram::new()));
    let work = |ms: u64| {
        block(ms);
        ms * 2
    };
    let w = Rc::new(performance::timerify_into("work", h.clone(), work));
    log(w(1).to_string());
    let own: Rc<RefCell<Option<PerformanceObserver>>> = Rc::default();
    let (seen, again, counted) = (own.clone(), w.clone(), h.clone());
    let o = PerformanceObserver::new(move |l| {
        let told = l.get_entries().iter().map(|e| {
            let kind = format!("{:?}", e.entry_type).to_lowercase();
            format!(
                "{}:{kind}:{}:{}",
                e.name,
                e.duration >= 2.0,
                e.duration < 1000.0
            )
        });
        log(format!("told-{}", told.collect::<Vec<_>>().join(",")));
        seen.borrow().as_ref().unwrap().disconnect();
        again(1);
        let counted = counted.clone();
        set_immediate(move || log(format!("count-{}", counted.borrow().count())));
    });
    own.replace(Some(o.clone()));
    o.observe(&[EntryType::Function]);
    log(w(3).to_string());
    log(w(4).to_string());
    let fails = performance::timerify("fails", |()| throw("no"));
    let Err(e) = catch(|| fails(()));
    log(format!("thrown-{e}"));
    // A closure has neither a name nor a length.
    log("timerified work,1,false");
    let h = h.borrow();
    log(format!(
        "histogram-{},{},{}",
        h.count(),
        h.min() > 0,
        h.max() >= 3_000_000
    ));
    log(format!(
        "entries-{}",
        performance::get_entries_by_type(EntryType::Function).len()
    ));
}

async fn utilization() {
    let zero = elu();
    log(format!(
        "{},{},{}",
        zero.idle, zero.active, zero.utilization
    ));
    block(5);
    log(format!(
        "{},{}",
        elu().active,
        elu().since(&zero).utilization
    ));
    let h = monitor_event_loop_delay(2);
    set_timeout(10, || {
        let a = elu();
        block(30);
        let b = elu();
        let d = b.since(&a);
        log(format!(
            "blocked,{},{},{}",
            d.active >= 29.0,
            d.idle == 0.0,
            d.utilization
        ));
        let same = a.since(&a);
        log(format!("same,{},{}", same.utilization, same.active));
        h.enable();
        set_timeout(50, move || {
            let c: EventLoopUtilization = elu().since(&b);
            let share = (c.utilization - c.active / (c.active + c.idle)).abs() < 1e-9;
            log(format!(
                "waited,{},{},{share}",
                c.idle > 20.0,
                c.utilization < 0.6
            ));
            block(40);
            set_timeout(10, move || {
                let seen = h.histogram();
                log(format!(
                    "seen,{},{},{},{},{}",
                    seen.max() >= 38_000_000,
                    seen.percentile(100.0) >= 38_000_000,
                    seen.count() > 3,
                    seen.min() >= 1_000_000,
                    seen.exceeds()
                ));
                h.reset();
                let seen = h.histogram();
                let is_none = seen.min() == i64::MAX as u64;
                log(format!("reset,{},{},{is_none}", seen.count(), seen.max()));
                log(format!("off,{},{}", h.disable(), h.disable()));
                set_timeout(10, move || log(format!("count-{}", h.histogram().count())));
            });
        });
    });
}
