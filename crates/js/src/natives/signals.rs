//! Signals of JavaScript for Rust, and signals of the system.

use std::rc::Rc;

use phaseloop::signal::SignalKind;
use phaseloop_node::{AbortController, AbortSignal};

use super::{arg, number, text};
use crate::engine::{Closure, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("abortController", controller),
    ("signalNumber", signal_number),
    ("kill", kill),
];

/// Creates a controller, and returns the function that aborts it or lends its signal.
fn controller<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let controller = AbortController::new();
    let closure: Closure = Rc::new(move |scope, args| {
        match arg(scope, args, 0).is_truthy() {
            true => scope.inner.data.lent_signal.set(Some(controller.signal())),
            false => controller.abort_with(error::to_node(scope, &arg(scope, args, 1))),
        }
        Ok(scope.undefined())
    });
    scope.closure("abort", closure)
}

/// Returns the signal that follows one of JavaScript.
pub(super) fn lent<'js>(
    scope: &Scope<'js>,
    controller: &Val<'js>,
) -> Res<'js, Option<AbortSignal>> {
    if controller.is_function() {
        controller.call(&scope.undefined(), &[scope.boolean(true)])?;
    }
    Ok(scope.inner.data.lent_signal.take())
}

/// Returns the number of a signal of the system; `undefined` for a name that is none.
fn signal_number<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let known = SignalKind::from_name(&text(scope, args, 0)?);
    Ok(match known {
        Some(signal) => scope.number(f64::from(signal.as_raw())),
        None => scope.undefined(),
    })
}

/// Sends a signal to a process.
fn kill<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    super::outside(scope)?;
    let signal = SignalKind::from_raw(number(scope, args, 1) as i32);
    match phaseloop::process::kill(number(scope, args, 0) as i32, signal) {
        Ok(()) => Ok(scope.undefined()),
        Err(error) => {
            let value = error::of_node(scope, &error.into())?;
            let code = value.get(scope, "code")?.to_text()?;
            value.set("message", &scope.string(&format!("kill {code}"))?)?;
            value.set("syscall", &scope.string("kill")?)?;
            Err(scope.throw(value))
        }
    }
}
