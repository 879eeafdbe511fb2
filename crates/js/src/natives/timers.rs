//! Timers, immediates, ticks and microtasks.
//!
//! A timer of JavaScript is an object with the number of one of the loop's. While that is set, the
//! engine keeps the object, and the object its callback.

use std::rc::{Rc, Weak};

use phaseloop_node as node;

use super::arg;
use crate::data::{Call, Immediate, Timer};
use crate::engine::{Inner, Kept, Key, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("timerShapes", set_shapes),
    ("setTimeout", set_timeout),
    ("setInterval", set_interval),
    ("clearTimeout", clear_timeout),
    ("timerId", timer_id),
    ("timerRefresh", refresh),
    ("timerRef", set_ref),
    ("setImmediate", set_immediate),
    ("clearImmediate", clear_immediate),
    ("immediateRef", set_immediate_ref),
    ("nextTick", next_tick),
    ("queueMicrotask", queue_microtask),
];

/// The number of an object whose timer was cleared: a refresh does not set it again.
const CLEARED: usize = 0;

/// The prototypes of timers and immediates, and the properties that Rust reads of them.
pub(crate) struct Shapes {
    timeout: Kept,
    immediate: Kept,
    /// An object in each state of its making. As long as they live, the engine does not describe
    /// their properties anew for each timer, which takes 1,500 instructions.
    _made: Vec<Kept>,
    callback: Key,
    args: Key,
    delay: Key,
    repeat: Key,
    referenced: Key,
    on_immediate: Key,
    argv: Key,
}

fn set_shapes<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let [timeout, immediate] = [0, 1].map(|at| arg(scope, args, at));
    let [callback, delay] = ["_onTimeout", "_idleTimeout"].map(|name| scope.key(name));
    let on_immediate = scope.key("_onImmediate");
    let mut made = Vec::new();
    for (prototype, keys) in [
        (&timeout, &[&callback, &delay][..]),
        (&immediate, &[&on_immediate]),
    ] {
        for count in 0..=keys.len() {
            let object = scope.numbered(prototype, CLEARED)?;
            for key in &keys[..count] {
                object.define(scope, key, &scope.undefined())?;
            }
            made.push(scope.keep(&object));
        }
    }
    let shapes = Shapes {
        timeout: scope.keep(&timeout),
        immediate: scope.keep(&immediate),
        _made: made,
        callback,
        args: scope.key("_timerArgs"),
        delay,
        repeat: scope.key("_repeat"),
        referenced: scope.key("_ref"),
        on_immediate,
        argv: scope.key("_argv"),
    };
    let _ = scope.inner.data.shapes.set(shapes);
    Ok(scope.undefined())
}

fn shapes<'a>(scope: &'a Scope<'_>) -> &'a Shapes {
    let shapes = scope.inner.data.shapes.get();
    shapes.expect("the prelude sets them before a program runs")
}

/// Returns the callback of a call, or throws Node's error.
fn callback<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let callback = arg(scope, args, 0);
    if !callback.is_function() {
        let name = scope.string("callback")?;
        scope.internal("needFunction", &[callback.clone(), name])?;
    }
    Ok(callback)
}

/// Calls the callback of a timer or an immediate, with its arguments if it has some.
fn call_back<'js>(scope: &Scope<'js>, object: &Val<'js>, keys: [&Key; 2]) -> Res<'js, ()> {
    let [callback, args] = keys;
    let args = object.property(scope, args)?;
    let args = match args.is_nullish() {
        true => Vec::new(),
        false => args.elements()?,
    };
    let callback = object.property(scope, callback)?;
    callback.call(object, &args).map(drop)
}

fn set_timeout<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    new_timer(scope, args, false)
}

fn set_interval<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    new_timer(scope, args, true)
}

fn new_timer<'js>(scope: &Scope<'js>, args: &[Val<'js>], repeats: bool) -> Res<'js> {
    let callback = callback(scope, args)?;
    let delay = arg(scope, args, 1);
    let delay = match delay.as_number() {
        Some(delay) => delay,
        None => delay.to_number()?,
    };
    let shapes = shapes(scope);
    let id = scope.inner.data.number();
    let timer = scope.numbered(&shapes.timeout.get(scope), id)?;
    timer.define(scope, &shapes.callback, &callback)?;
    timer.define(scope, &shapes.delay, &scope.number(delay))?;
    if repeats {
        timer.define(scope, &shapes.repeat, &scope.boolean(true))?;
    }
    if let Some(rest @ [_, ..]) = args.get(2..) {
        timer.define(scope, &shapes.args, &scope.array(rest)?)?;
    }
    start(scope, &timer, id, delay, repeats);
    Ok(timer)
}

fn start<'js>(scope: &Scope<'js>, timer: &Val<'js>, id: usize, delay: f64, repeats: bool) {
    let weak = Rc::downgrade(&scope.inner);
    let fire = move |_: &node::Timeout| fire(&weak, id, repeats);
    let timeout = match repeats {
        true => node::set_interval(delay, fire),
        false => node::set_timeout_mut(delay, fire),
    };
    let timer = Timer {
        timeout,
        object: scope.keep(timer),
        is_refreshed: false,
        is_asked: false,
        _line: scope.report_line("timer of"),
    };
    scope.inner.data.timers.borrow_mut().insert(id, timer);
}

fn fire(weak: &Weak<Inner>, id: usize, repeats: bool) {
    let Some(inner) = weak.upgrade() else { return };
    let _end = (!repeats).then(|| End(&inner, id));
    inner.run(|scope| {
        let mut timers = inner.data.timers.borrow_mut();
        let Some(timer) = timers.get_mut(&id) else {
            return Ok(());
        };
        timer.is_refreshed = false;
        let object = timer.object.get(scope);
        drop(timers);
        let shapes = shapes(scope);
        call_back(scope, &object, [&shapes.callback, &shapes.args])
    });
}

/// Releases a timer that has fired, unless it was refreshed meanwhile.
struct End<'a>(&'a Rc<Inner>, usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let Self(inner, id) = self;
        let mut timers = inner.data.timers.borrow_mut();
        let is_over = timers.get(id).is_some_and(|timer| !timer.is_refreshed);
        let ended = is_over.then(|| timers.remove(id));
        drop(timers);
        drop(ended);
    }
}

/// Returns the number of a timer, or of the number or text that was asked of one.
fn id_of<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Option<usize> {
    value.number(scope).or_else(|| {
        let number = value
            .as_number()
            .or_else(|| value.as_text()?.parse::<f64>().ok())?;
        let (id, timers) = (number as usize, scope.inner.data.timers.borrow());
        timers.get(&id).is_some_and(|it| it.is_asked).then_some(id)
    })
}

fn clear_timeout<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let value = arg(scope, args, 0);
    if let Some(id) = id_of(scope, &value) {
        let timer = scope.inner.data.timers.borrow_mut().remove(&id);
        if let Some(timer) = timer {
            node::clear_timeout(&timer.timeout);
            timer.object.get(scope).set_number(CLEARED);
        } else if value.is_object() {
            value.set_number(CLEARED);
        }
    }
    Ok(scope.undefined())
}

/// Returns the number of a timer that is set, as its primitive value.
fn timer_id<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = arg(scope, args, 0).number(scope).unwrap_or(CLEARED);
    let mut timers = scope.inner.data.timers.borrow_mut();
    let Some(timer) = timers.get_mut(&id) else {
        return Ok(scope.number(0.0));
    };
    timer.is_asked = true;
    Ok(scope.number(id as f64))
}

fn refresh<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let timer = arg(scope, args, 0);
    let Some(id) = timer.number(scope) else {
        return Ok(timer);
    };
    let data = &scope.inner.data;
    if let Some(known) = data.timers.borrow_mut().get_mut(&id) {
        known.is_refreshed = true;
        known.timeout.refresh();
        return Ok(timer);
    }
    // It has fired: a new one of the loop for the same object.
    let shapes = shapes(scope);
    let delay = timer.property(scope, &shapes.delay)?.as_number();
    let repeats = timer.property(scope, &shapes.repeat)?.is_truthy();
    let id = data.number();
    timer.set_number(id);
    start(scope, &timer, id, delay.unwrap_or(f64::NAN), repeats);
    if !timer.property(scope, &shapes.referenced)?.is_truthy() {
        set_ref(scope, &[timer.clone(), scope.boolean(false)])?;
    }
    Ok(timer)
}

/// Refers to a timer, or not, if it is asked to; returns whether the timer is set.
fn set_ref<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = arg(scope, args, 0).number(scope).unwrap_or(CLEARED);
    let timers = scope.inner.data.timers.borrow();
    let Some(timer) = timers.get(&id) else {
        return Ok(scope.boolean(false));
    };
    match arg(scope, args, 1).as_bool() {
        Some(true) => drop(timer.timeout.ref_()),
        Some(false) => drop(timer.timeout.unref()),
        None => (),
    }
    Ok(scope.boolean(true))
}

fn set_immediate<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let callback = callback(scope, args)?;
    let data = &scope.inner.data;
    let shapes = shapes(scope);
    let id = data.number();
    let object = scope.numbered(&shapes.immediate.get(scope), id)?;
    object.define(scope, &shapes.on_immediate, &callback)?;
    if let Some(rest @ [_, ..]) = args.get(1..) {
        object.define(scope, &shapes.argv, &scope.array(rest)?)?;
    }
    let weak = Rc::downgrade(&scope.inner);
    let immediate = node::set_immediate(move || fire_immediate(&weak, id));
    let kept = Immediate {
        immediate,
        object: scope.keep(&object),
    };
    data.immediates.borrow_mut().insert(id, kept);
    Ok(object)
}

fn fire_immediate(weak: &Weak<Inner>, id: usize) {
    let Some(inner) = weak.upgrade() else { return };
    let Some(kept) = inner.data.immediates.borrow_mut().remove(&id) else {
        return;
    };
    inner.run(move |scope| {
        let object = kept.object.get(scope);
        drop(kept);
        let shapes = shapes(scope);
        let result = call_back(scope, &object, [&shapes.on_immediate, &shapes.argv]);
        object.set_number(CLEARED);
        result
    });
}

fn clear_immediate<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let object = arg(scope, args, 0);
    if let Some(id) = object.number(scope) {
        let kept = scope.inner.data.immediates.borrow_mut().remove(&id);
        if let Some(kept) = kept {
            kept.immediate.clear();
            object.set_number(CLEARED);
        }
    }
    Ok(scope.undefined())
}

/// Refers to an immediate, or not, if it is asked to; returns whether it is referred to.
fn set_immediate_ref<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let id = arg(scope, args, 0).number(scope).unwrap_or(CLEARED);
    let immediates = scope.inner.data.immediates.borrow();
    let Some(kept) = immediates.get(&id) else {
        return Ok(scope.boolean(false));
    };
    match arg(scope, args, 1).as_bool() {
        Some(true) => kept.immediate.ref_(),
        Some(false) => kept.immediate.unref(),
        None => (),
    }
    Ok(scope.boolean(kept.immediate.has_ref()))
}

/// Keeps a call for the loop; returns what makes it.
fn kept_call<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js, impl FnOnce() + 'static> {
    let callback = callback(scope, args)?;
    let rest = args.get(1..).unwrap_or_default();
    let call = Call {
        callback: scope.keep(&callback),
        args: rest.iter().map(|arg| scope.keep(arg)).collect(),
    };
    let number = scope.inner.data.calls.borrow_mut().insert(call);
    let weak = Rc::downgrade(&scope.inner);
    Ok(move || {
        let Some(inner) = weak.upgrade() else { return };
        let Some(call) = inner.data.calls.borrow_mut().try_remove(number) else {
            return;
        };
        inner.run(|scope| {
            let args: Vec<_> = call.args.iter().map(|arg| arg.get(scope)).collect();
            let callback = call.callback.get(scope);
            drop(call);
            callback.call(&scope.undefined(), &args).map(drop)
        });
    })
}

fn next_tick<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    node::next_tick(kept_call(scope, args)?);
    Ok(scope.undefined())
}

fn queue_microtask<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let first = args.get(..1).unwrap_or_default();
    node::queue_microtask(kept_call(scope, first)?);
    Ok(scope.undefined())
}
