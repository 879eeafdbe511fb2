//! 212, 213 and 515–517: hooks, and the figures of the loop.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use phaseloop_node::async_hooks::{
    AsyncHook, AsyncLocalStorage, AsyncResource, Callbacks, create_hook, execution_async_id,
    trigger_async_id,
};
use phaseloop_node::events::{Event, EventEmitterAsyncResource};
use phaseloop_node::perf_hooks::performance::{self, Span};
use phaseloop_node::perf_hooks::{
    EntryType, PerformanceEntry, PerformanceObserver, RecordableHistogram, monitor_event_loop_delay,
};
use phaseloop_node::process;
use phaseloop_node::{
    Deferred, Emitter, Error, Promise, Reason, all, call, clear_immediate, clear_timeout,
    next_tick, queue_microtask, set_immediate, set_interval, set_timeout, throw,
};

use super::contexts::later;
use crate::support::{block, log, say};

super::ports! {
    Virtual "212-hooks-order" => hooks_order,
    Real "213-loop-metrics" => loop_metrics,
    Virtual "515-hooks-life" => hooks_life,
    Virtual "516-hooks-promises" => hooks_promises,
    Virtual "517-performance-timeline" => performance_timeline,
}

/// The names of what the hooks have seen.
#[derive(Clone)]
pub(super) struct Names(Rc<RefCell<Known>>);

struct Known {
    names: HashMap<u64, String>,
    count: HashMap<&'static str, u32>,
}

impl Names {
    pub(super) fn new() -> Self {
        let main = (execution_async_id(), "main".to_owned());
        Self(Rc::new(RefCell::new(Known {
            names: HashMap::from([main, (0, "none".to_owned())]),
            count: HashMap::new(),
        })))
    }

    pub(super) fn name(&self, id: u64) -> String {
        let known = self.0.borrow();
        known
            .names
            .get(&id)
            .cloned()
            .unwrap_or("unknown".to_owned())
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.0.borrow().names.contains_key(&id)
    }

    pub(super) fn init(&self, id: u64, kind: &'static str, trigger: u64) {
        {
            let known = &mut *self.0.borrow_mut();
            let count = known.count.entry(kind).or_default();
            *count += 1;
            known.names.insert(id, format!("{kind}{count}"));
        }
        let (name, by) = (self.name(id), self.name(trigger));
        log(format!(
            "init-{name}-by-{by}-in-{}",
            self.name(execution_async_id())
        ));
    }

    pub(super) fn at(&self, place: &str) {
        let (inside, by) = (execution_async_id(), trigger_async_id());
        log(format!(
            "{place}-in-{}-by-{}",
            self.name(inside),
            self.name(by)
        ));
    }

    /// Returns what logs a token with what runs.
    pub(super) fn sees(&self, place: &'static str) -> impl Fn() + Clone + 'static {
        let names = self.clone();
        move || names.at(place)
    }

    /// Callbacks that log all, with this prefix.
    pub(super) fn tells(&self, what: &'static str) -> impl Fn(u64) + 'static {
        let names = self.clone();
        move |id| log(format!("{what}-{}", names.name(id)))
    }

    pub(super) fn all(&self) -> Callbacks {
        let init = self.clone();
        Callbacks::new()
            .init(move |id, kind, trigger| init.init(id, kind, trigger))
            .before(self.tells("before"))
            .after(self.tells("after"))
            .destroy(self.tells("destroy"))
    }
}

async fn hooks_order() {
    const WANTED: [&str; 5] = ["Timeout", "Immediate", "TickObject", "PROMISE", "Microtask"];
    let names = Names::new();
    let [init, before, after, destroy] = [(); 4].map(|()| names.clone());
    let callbacks = Callbacks::new()
        .init(move |id, kind, trigger| {
            if WANTED.contains(&kind) {
                init.init(id, kind, trigger);
            }
        })
        .before(move |id| {
            if before.has(id) {
                log(format!("before-{}", before.name(id)));
            }
        })
        .after(move |id| {
            if after.has(id) {
                log(format!("after-{}", after.name(id)));
            }
        })
        .destroy(move |id| {
            let name = destroy.name(id);
            if name.contains("Timeout") || name.contains("Immediate") {
                log(format!("destroy-{name}"));
            }
        });
    create_hook(callbacks).enable();
    let inner = names.clone();
    set_timeout(1, move || {
        inner.at("timeout");
        set_immediate(inner.sees("immediate2"));
    });
    let inner = names.clone();
    set_immediate(move || {
        inner.at("immediate");
        next_tick(inner.sees("tick2"));
    });
    next_tick(names.sees("tick"));
    queue_microtask(names.sees("microtask"));
    let then = names.sees("then");
    Promise::resolved(()).then(move |()| then());
    block(10);
}

async fn loop_metrics() {
    let h = monitor_event_loop_delay(5);
    let before = performance::event_loop_utilization();
    log(format!("before-{}", before.utilization == 0.0));
    set_timeout(10, || {
        h.enable();
        let start = performance::event_loop_utilization();
        let turns = performance::uv_metrics_info().loop_count;
        set_timeout(200, move || {
            let waited = performance::event_loop_utilization().since(&start);
            let is_idle = waited.idle > 100.0 && waited.utilization < 0.5;
            log(format!("idle-when-waiting-{is_idle}"));
            let from = performance::event_loop_utilization();
            block(100);
            let blocked = performance::event_loop_utilization().since(&from);
            let is_active =
                blocked.active >= 99.0 && blocked.idle == 0.0 && blocked.utilization == 1.0;
            log(format!("active-when-blocked-{is_active}"));
            set_timeout(50, move || {
                h.disable();
                let delay = h.histogram();
                let is_seen =
                    delay.max() >= 95_000_000 && delay.min() < 50_000_000 && delay.count() > 0;
                log(format!("delay-{is_seen}"));
                let more = performance::uv_metrics_info().loop_count > turns;
                log(format!("turns-{more}"));
                let all = performance::event_loop_utilization();
                let share = all.active / (all.active + all.idle);
                log(format!("sum-{}", (all.utilization - share).abs() < 1e-9));
            });
        });
    });
}

async fn hooks_life() {
    const X: Event<()> = Event::new("x");
    let names = Names::new();
    let h: Rc<AsyncHook> = Rc::new(create_hook(names.all()));
    h.enable();
    let r = AsyncResource::new("Mine");
    r.run_in_async_scope(|| {
        names.at("mine");
        next_tick(names.sees("tick"));
    });
    names.at("main");
    log(format!(
        "same-{}-{}",
        r.async_id() > 1,
        names.name(r.trigger_async_id())
    ));
    clear_timeout(&set_timeout(100, || ()));

    type Steps = Rc<RefCell<VecDeque<Box<dyn FnOnce()>>>>;
    let steps: Steps = Rc::default();
    let next = {
        let steps = steps.clone();
        move || {
            let step = steps.borrow_mut().pop_front();
            step.unwrap()();
        }
    };
    let (inner, go, mut n) = (names.clone(), next.clone(), 0);
    set_interval(50, move |interval| {
        inner.at("interval");
        n += 1;
        if n == 2 {
            r.emit_destroy();
            interval.close();
            set_timeout(1, go.clone());
        }
    });
    clear_immediate(&set_immediate(|| ()));
    let told = names.clone();
    process::on_uncaught_exception(move |error, _| told.at(&format!("uncaught-{error}")));
    let [go1, go2, go3] = [(); 3].map(|()| next.clone());
    let (inner, last) = (names.clone(), names.clone());
    let all: [Box<dyn FnOnce()>; 4] = [
        Box::new(move || {
            set_timeout(20, go1);
            throw("x")
        }),
        Box::new(move || {
            let bound = inner.sees("bound");
            let f = AsyncLocalStorage::bind(move |()| bound());
            f(());
            set_timeout(1, go2);
        }),
        Box::new(move || {
            h.disable();
            set_immediate(move || {
                names.at("after-disable");
                h.enable();
                set_timeout(1, go3);
            });
        }),
        Box::new(move || {
            let e = EventEmitterAsyncResource::new("Emitter");
            let listener = last.sees("listener");
            e.on(X, move |()| listener());
            e.emit(X, ());
            e.emit_destroy();
        }),
    ];
    steps.borrow_mut().extend(all);
}

async fn hooks_promises() {
    let names = Names::new();
    let callbacks = names.all().promise_resolve(names.tells("resolve"));
    create_hook(callbacks).enable();
    let inner = names.clone();
    let p = call(async move {
        inner.at("f1");
        Promise::resolved(()).await.unwrap();
        inner.at("f2");
        later().await.unwrap();
        inner.at("f3");
        1
    });
    let then = names.sees("then");
    p.then(move |_| then()).catch(|_| ());
    let settle = Deferred::<()>::new();
    let (inner, caught) = (names.clone(), names.sees("caught"));
    let q = settle.promise().and_then(move |()| {
        inner.at("q");
        Promise::<()>::rejected(Reason::new("no"))
    });
    q.then_result(move |_| caught());
    let again = p.clone();
    p.then(move |_| {
        set_timeout(30, move || {
            settle.resolve(());
            settle.resolve(());
            set_timeout(30, move || {
                let all_of = names.sees("all");
                all([again, Promise::resolved(2)]).then(move |_| all_of());
            });
        });
    });
}

/// `list.map((e) => e.name).join()`.
pub(super) fn joined(list: &[PerformanceEntry]) -> String {
    let names: Vec<_> = list.iter().map(|entry| entry.name.as_str()).collect();
    names.join(",")
}

fn fails<T>(result: Result<T, Error>) {
    if let Err(error) = result {
        log(format!("{} {}", error.name(), error.message()));
    }
}

async fn performance_timeline() {
    // The paused clock begins at zero.
    block(1);
    let m = performance::mark("a");
    let kind = format!("{:?}", m.entry_type).to_lowercase();
    log(format!(
        "{},{kind},{},{}",
        m.name,
        m.duration,
        m.start_time > 0.0
    ));
    performance::mark_at("b", 0.005).unwrap();
    performance::mark_at("c", 0.012).unwrap();
    let x = performance::measure("b-c", ("b", "c")).unwrap();
    let kind = format!("{:?}", x.entry_type).to_lowercase();
    log(format!(
        "{},{kind},{},{:.3}",
        x.name, x.start_time, x.duration
    ));
    let span = |start: Option<f64>, end: Option<f64>, duration| Span {
        start: start.map(Into::into),
        end: end.map(Into::into),
        duration: Some(duration),
        detail: None,
    };
    for (name, span) in [
        ("d", span(Some(0.25), None, 0.5)),
        ("e", span(None, Some(0.75), 0.5)),
    ] {
        let x = performance::measure(name, span).unwrap();
        log(format!("{},{}", x.start_time, x.duration));
    }
    fails(performance::measure("q", "nope"));
    fails(performance::measure("q", span(Some(1.0), Some(3.0), 1.0)));
    fails(performance::mark_at("q", -1.0));
    log(format!(
        "{} {} {}",
        joined(&performance::get_entries_by_type(EntryType::Measure)),
        joined(&performance::get_entries_by_type(EntryType::Mark)),
        joined(&performance::get_entries_by_name("b")),
    ));
    performance::clear_marks(Some("a"));
    log(joined(&performance::get_entries_by_type(EntryType::Mark)));
    performance::clear_marks(None);
    performance::clear_measures(None);
    log(performance::get_entries_by_type(EntryType::Mark)
        .len()
        .to_string());
    let own: Rc<RefCell<Option<PerformanceObserver>>> = Rc::default();
    let seen = own.clone();
    let observer = PerformanceObserver::new(move |list| {
        log(format!("observed-{}", joined(list.get_entries())));
        seen.borrow().as_ref().unwrap().disconnect();
        performance::mark("unseen");
    });
    own.replace(Some(observer.clone()));
    observer.observe(&[EntryType::Mark, EntryType::Function]);
    set_immediate(say("first"));
    performance::mark("one");
    performance::mark("two");
    next_tick(say("tick"));
    Promise::resolved(()).then(|()| log("micro"));
    set_immediate(say("immediate"));
    let sum = performance::timerify("sum", |(a, b): (u32, u32)| a + b);
    log(sum((1, 2)).to_string());
    let mut h = RecordableHistogram::new();
    let is_none = h.min() == i64::MAX as u64;
    log(format!(
        "{is_none},{},{},{},{}",
        h.max(),
        h.count(),
        h.mean(),
        h.percentile(50.0)
    ));
    for v in [5, 7, 100, 3000, 123_456_789] {
        h.record(v).unwrap();
    }
    let percentiles = [50.0, 75.0, 100.0].map(|p| h.percentile(p).to_string());
    let (mean, deviation) = (h.mean(), h.stddev());
    let figures = format!(
        "{},{},{},{mean:.3},{deviation:.3}",
        h.min(),
        h.max(),
        h.count()
    );
    log(format!("{figures},{}", percentiles.join(",")));
    fails(h.record(0));
    let d = monitor_event_loop_delay(10);
    let switched = [d.enable(), d.enable(), d.disable(), d.disable()].map(|on| on.to_string());
    log(format!("{},{}", d.histogram().count(), switched.join(",")));
    let before = performance::now();
    block(1);
    log(format!(
        "{},{},{}",
        performance::event_loop_utilization().utilization,
        performance::time_origin() > 1.6e12,
        before < performance::now()
    ));
}
