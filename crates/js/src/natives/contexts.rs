//! Storages, resources and the frames of handlers.

use std::rc::Rc;

use phaseloop_node::async_hooks::{
    AsyncLocalStorage, AsyncResource, execution_async_id, trigger_async_id,
};
use phaseloop_node::host::Frame;

use super::{arg, number};
use crate::engine::{Closure, Held, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("storage", storage),
    ("resource", resource),
    ("executionId", execution_id),
    ("triggerId", trigger_id),
    ("frame", frame),
    ("frameForNext", frame_for_next),
];

/// Returns the functions of a new storage. `get` returns a list of the store, or `null` if there is
/// none. The store `None` is `undefined`.
fn storage<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    scope.inner.use_contexts();
    let storage = AsyncLocalStorage::<Option<Held>>::new();
    let object = scope.object()?;
    let it = storage.clone();
    let get: Closure = Rc::new(move |scope, _| match it.get_store() {
        Some(store) => {
            let value = match &*store {
                Some(held) => held.get(scope)?,
                None => scope.undefined(),
            };
            scope.array(&[value])
        }
        None => Ok(scope.null()),
    });
    let it = storage.clone();
    let enter: Closure = Rc::new(move |scope, args| {
        let store = arg(scope, args, 0);
        it.enter_with((!store.is_undefined()).then(|| scope.hold(&store)));
        Ok(scope.undefined())
    });
    let disable: Closure = Rc::new(move |scope, _| {
        storage.disable();
        Ok(scope.undefined())
    });
    for (name, closure) in [("get", get), ("enter", enter), ("disable", disable)] {
        object.set(name, &scope.closure(name, closure)?)?;
    }
    Ok(object)
}

/// Returns the functions of a new resource.
fn resource<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let trigger = number(scope, args, 0);
    let resource = match trigger.is_nan() {
        true => AsyncResource::new("AsyncResource"),
        false => AsyncResource::with_trigger("AsyncResource", trigger as u64),
    };
    let object = scope.object()?;
    let it = resource.clone();
    let run: Closure = Rc::new(move |scope, args| {
        let (f, this) = (arg(scope, args, 0), arg(scope, args, 1));
        let list = arg(scope, args, 2).elements()?;
        it.run_in_async_scope(|| scope.call_js(&f, &this, &list))
    });
    let it = resource.clone();
    let id: Closure = Rc::new(move |scope, _| Ok(scope.number(it.async_id() as f64)));
    let it = resource.clone();
    let cause: Closure = Rc::new(move |scope, _| Ok(scope.number(it.trigger_async_id() as f64)));
    let destroy: Closure = Rc::new(move |scope, _| {
        resource.emit_destroy();
        Ok(scope.undefined())
    });
    for (name, closure) in [
        ("run", run),
        ("id", id),
        ("cause", cause),
        ("destroy", destroy),
    ] {
        object.set(name, &scope.closure(name, closure)?)?;
    }
    Ok(object)
}

fn execution_id<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(execution_async_id() as f64))
}

fn trigger_id<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(trigger_async_id() as f64))
}

/// Returns a function that enters the frame of now; `undefined`, if it is empty.
fn frame<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let frame = Frame::current();
    if frame.is_empty() {
        return Ok(scope.undefined());
    }
    scope.frame_function(frame)
}

/// Returns a handler that enters the frame of now for the next job; `undefined`, if it is empty.
fn frame_for_next<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    match Frame::current().is_empty() {
        true => Ok(scope.undefined()),
        false => scope.enter_for_next(),
    }
}
