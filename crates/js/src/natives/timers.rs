//! Timers, immediates, ticks and microtasks.

use std::rc::Rc;

use phaseloop_node as node;

use super::{arg, number};
use crate::data::Timer;
use crate::engine::{Inner, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("timerStart", start),
    ("timerClear", clear),
    ("timerRefresh", refresh),
    ("timerRef", set_ref),
    ("immediateStart", start_immediate),
    ("immediateClear", clear_immediate),
    ("immediateRef", set_immediate_ref),
    ("nextTick", next_tick),
    ("queueMicrotask", queue_microtask),
];

fn start<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let timer = scope.hold(&arg(scope, args, 0));
    let repeats = arg(scope, args, 2).is_truthy();
    let id = scope.inner.data.number();
    let fire = move |_: &node::Timeout| {
        let Some(inner) = timer.engine() else { return };
        let _end = (!repeats).then(|| End(inner.clone(), id, timer.clone()));
        inner.run(|scope| scope.internal("fireTimer", &[timer.get(scope)?]).map(drop));
    };
    let delay = number(scope, args, 1);
    let timeout = match repeats {
        true => node::set_interval(delay, fire),
        false => node::set_timeout_mut(delay, fire),
    };
    let timer = Timer {
        timeout,
        is_refreshed: false,
    };
    scope.inner.data.timers.borrow_mut().insert(id, timer);
    Ok(scope.number(id as f64))
}

/// Releases a timer that has fired, unless it was refreshed meanwhile.
struct End(Rc<Inner>, u64, crate::engine::Held);

impl Drop for End {
    fn drop(&mut self) {
        let Self(inner, id, timer) = self;
        let mut timers = inner.data.timers.borrow_mut();
        let is_refreshed = timers
            .get_mut(id)
            .is_some_and(|timer| std::mem::take(&mut timer.is_refreshed));
        let ended = if is_refreshed {
            None
        } else {
            timers.remove(id)
        };
        drop(timers);
        if ended.is_some() {
            let _ = inner.try_run(|scope| {
                let args = [timer.get(scope)?, scope.number(*id as f64)];
                scope.internal("endTimer", &args).map(drop)
            });
        }
    }
}

fn clear<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = number(scope, args, 0) as u64;
    let timer = scope.inner.data.timers.borrow_mut().remove(&id);
    if let Some(timer) = timer {
        node::clear_timeout(&timer.timeout);
    }
    Ok(scope.undefined())
}

fn refresh<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = number(scope, args, 0) as u64;
    if let Some(timer) = scope.inner.data.timers.borrow_mut().get_mut(&id) {
        timer.is_refreshed = true;
        timer.timeout.refresh();
    }
    Ok(scope.undefined())
}

fn set_ref<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = number(scope, args, 0) as u64;
    if let Some(timer) = scope.inner.data.timers.borrow().get(&id) {
        match arg(scope, args, 1).is_truthy() {
            true => timer.timeout.ref_(),
            false => timer.timeout.unref(),
        };
    }
    Ok(scope.undefined())
}

fn start_immediate<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let object = scope.hold(&arg(scope, args, 0));
    let id = scope.inner.data.number();
    let immediate = node::set_immediate(move || {
        let Some(inner) = object.engine() else { return };
        let before = inner.data.immediates.borrow_mut().remove(&id);
        drop(before);
        inner.run(|scope| {
            let object = object.get(scope)?;
            scope.internal("fireImmediate", &[object]).map(drop)
        });
    });
    let immediates = &scope.inner.data.immediates;
    immediates.borrow_mut().insert(id, immediate);
    Ok(scope.number(id as f64))
}

fn clear_immediate<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = number(scope, args, 0) as u64;
    let immediate = scope.inner.data.immediates.borrow_mut().remove(&id);
    if let Some(immediate) = immediate {
        immediate.clear();
    }
    Ok(scope.undefined())
}

fn set_immediate_ref<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = number(scope, args, 0) as u64;
    if let Some(immediate) = scope.inner.data.immediates.borrow().get(&id) {
        match arg(scope, args, 1).is_truthy() {
            true => immediate.ref_(),
            false => immediate.unref(),
        }
    }
    Ok(scope.undefined())
}

fn next_tick<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let callback = scope.hold(&arg(scope, args, 0));
    node::next_tick(move || callback.call(|_| Ok(Vec::new())));
    Ok(scope.undefined())
}

fn queue_microtask<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let callback = scope.hold(&arg(scope, args, 0));
    node::queue_microtask(move || callback.call(|_| Ok(Vec::new())));
    Ok(scope.undefined())
}
