//! The events and the end of the process.

use std::rc::{Rc, Weak};

use phaseloop::signal::SignalKind;
use phaseloop_node::events::Emitter as _;
use phaseloop_node::process::{self, Listener, Origin};
use phaseloop_node::{Reason, process as node};

use super::stream::{Handle, bind, keep, written};
use super::{arg, number, text};
use crate::engine::{Inner, Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[
    ("processListen", listen),
    ("processUnlisten", unlisten),
    ("setExitCode", set_exit_code),
    ("exit", exit),
    ("reallyExit", really_exit),
    ("abort", abort),
    ("stdin", stdin),
    ("connected", connected),
    ("send", send),
    ("disconnect", disconnect),
];

/// Calls a function of the prelude from the loop.
fn emit(
    weak: &Weak<Inner>,
    name: &str,
    args: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, Vec<Val<'js>>>,
) {
    if let Some(inner) = weak.upgrade() {
        inner.run(|scope| scope.internal(name, &args(scope)?).map(drop));
    }
}

fn uncaught(weak: &Weak<Inner>, name: &str, reason: &Reason, origin: Origin) {
    emit(weak, name, |scope| {
        let value = error::to_value(scope, reason)?;
        Ok(vec![value, scope.string(&origin.to_string())?])
    });
}

/// Emits an event of a rejected promise: its reason if `with_reason`, and the promise.
fn rejection(weak: &Weak<Inner>, name: &'static str, reason: &Reason, with_reason: bool) {
    emit(weak, "emitProcess", |scope| {
        let mut args = vec![scope.string(name)?];
        if with_reason {
            args.push(error::to_value(scope, reason)?);
        }
        let rejection = reason.downcast_ref::<error::Rejection>();
        let promise = rejection.and_then(|it| it.0.promise.take());
        args.push(match promise {
            Some(promise) => promise.get(scope)?,
            None => scope.undefined(),
        });
        Ok(args)
    });
}

fn code(weak: &Weak<Inner>, name: &'static str, code: i32) {
    emit(weak, "emitProcess", |scope| {
        Ok(vec![scope.string(name)?, scope.number(f64::from(code))])
    });
}

fn listen<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let name = text(scope, args, 0)?;
    let weak = Rc::downgrade(&scope.inner);
    let listener: Option<Listener> = match name.as_str() {
        "exit" => Some(node::on_exit(move |it| code(&weak, "exit", it))),
        "beforeExit" => Some(node::on_before_exit(move |it| {
            code(&weak, "beforeExit", it)
        })),
        "uncaughtException" => Some(node::on_uncaught_exception(move |reason, origin| {
            uncaught(&weak, "emitUncaught", reason, origin);
        })),
        "uncaughtExceptionMonitor" => {
            let listener = node::on_uncaught_exception_monitor(move |reason, origin| {
                uncaught(&weak, "emitMonitor", reason, origin);
            });
            Some(listener)
        }
        "unhandledRejection" => Some(node::on_unhandled_rejection(move |reason| {
            rejection(&weak, "unhandledRejection", reason, true);
        })),
        "rejectionHandled" => Some(node::on_rejection_handled(move |reason| {
            rejection(&weak, "rejectionHandled", reason, false);
        })),
        "warning" => Some(node::on_warning(move |warning| {
            emit(&weak, "emitProcess", |scope| {
                let fields = scope.object()?;
                let [kind, message] = [warning.name(), warning.text()];
                let made = [scope.string(kind)?, scope.string(message)?, fields];
                let made = scope.internal("makeError", &made)?;
                Ok(vec![scope.string("warning")?, made])
            });
        })),
        #[cfg(unix)]
        "message" => Some(node::on_message(move |json| {
            emit(&weak, "emitProcess", |scope| {
                let message = scope.internal("parseJson", &[scope.string(json.as_text())?])?;
                Ok(vec![scope.string("message")?, message])
            });
        })),
        #[cfg(unix)]
        "disconnect" => Some(node::on_disconnect(move || {
            emit(&weak, "emitProcess", |scope| {
                Ok(vec![scope.string("disconnect")?])
            });
        })),
        _ => match SignalKind::from_name(&name) {
            Some(signal) => Some(on_signal(scope, weak, name.clone(), signal)?),
            None => None,
        },
    };
    if let Some(listener) = listener {
        let listeners = &scope.inner.data.listeners;
        let before = listeners.borrow_mut().insert(name, listener);
        drop(before);
    }
    Ok(scope.undefined())
}

fn on_signal<'js>(
    scope: &Scope<'js>,
    weak: Weak<Inner>,
    name: String,
    signal: SignalKind,
) -> Res<'js, Listener> {
    let listener = node::on_signal(signal, move |signal| {
        emit(&weak, "emitProcess", |scope| {
            let number = scope.number(f64::from(signal.as_raw()));
            Ok(vec![scope.string(&name)?, scope.string(&name)?, number])
        });
    });
    listener.map_err(|error| scope.throw_reason(&error.into()))
}

/// Returns the function of the standard input, for an object.
fn stdin<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let (object, stream) = (arg(scope, args, 0), node::stdin());
    keep(scope, &object, stream.emitter(), stream.id());
    bind(scope, &object, Handle::of_bytes(Some(&stream), None))
}

/// Returns whether there is a channel to the process that has forked this one.
fn connected<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    #[cfg(unix)]
    let connected = node::connected();
    #[cfg(not(unix))]
    let connected = false;
    Ok(scope.boolean(connected))
}

/// Sends a message to the process that has forked this one.
fn send<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    #[cfg(unix)]
    {
        let json = phaseloop_node::child_process::Json::from_text(text(scope, args, 0)?);
        let callback = arg(scope, args, 1);
        Ok(scope.boolean(match callback.is_function() {
            true => node::send_with(json, written(&scope.hold(&callback))),
            false => node::send(json),
        }))
    }
    #[cfg(not(unix))]
    Err(super::unknown(scope, &text(scope, args, 0)?))
}

fn disconnect<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    #[cfg(unix)]
    node::disconnect();
    Ok(scope.undefined())
}

fn unlisten<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let name = text(scope, args, 0)?;
    let listener = scope.inner.data.listeners.borrow_mut().remove(&name);
    if let Some(listener) = listener {
        listener.remove();
    }
    Ok(scope.undefined())
}

fn set_exit_code<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    process::set_exit_code(number(scope, args, 0) as i32);
    Ok(scope.undefined())
}

/// Unwinds; the caller turns it into an error that JavaScript cannot catch.
fn exit<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    process::exit(arg(scope, args, 0).as_number().unwrap_or(0.0) as i32)
}

fn really_exit<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    std::process::exit(number(scope, args, 0) as i32)
}

fn abort<'js>(_: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    std::process::abort()
}
