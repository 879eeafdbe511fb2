//! Message channels, and clones of values.

use std::rc::Rc;

use phaseloop_node::events::Emitter as _;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::worker_threads::{MessageChannel, MessagePort};

use super::emitter::{Listen, Numbered, note, remove};
use super::{arg, text};
use crate::engine::{Closure, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[("channel", channel), ("clone", clone)];

/// Returns a copy of a value.
fn clone<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let bytes = scope.serialize(&arg(scope, args, 0))?;
    scope.deserialize(&bytes)
}

/// Returns the functions of two ports.
fn channel<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let channel = MessageChannel::<Vec<u8>>::new();
    let ports = [channel.port1, channel.port2].map(|port| port_function(scope, port));
    let [one, two] = ports;
    scope.array(&[one?, two?])
}

fn port_function<'js>(scope: &Scope<'js>, port: MessagePort<Vec<u8>>) -> Res<'js> {
    let listeners = Numbered::default();
    let closure: Closure = Rc::new(move |scope, args| {
        let operation = text(scope, args, 0)?;
        operate(scope, &port, &listeners, &operation, &args[1..])
    });
    scope.closure("port", closure)
}

fn operate<'js>(
    scope: &Scope<'js>,
    port: &MessagePort<Vec<u8>>,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = port.emitter();
    match operation {
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            let id = match listen.name.as_str() {
                "message" => {
                    listen.add(emitter, MessagePort::<Vec<u8>>::MESSAGE, |scope, bytes| {
                        Ok(vec![scope.deserialize(bytes)?])
                    })
                }
                _ => listen.plain(emitter, CLOSE),
            };
            note(listeners, key, id);
        }
        "off" => remove(scope, listeners, emitter, args),
        "count" => {
            let count = match text(scope, args, 0)?.as_str() {
                "message" => emitter.listener_count(MessagePort::<Vec<u8>>::MESSAGE),
                _ => emitter.listener_count(CLOSE),
            };
            return Ok(scope.number(count as f64));
        }
        "post" => port.post_message(scope.serialize(&arg(scope, args, 0))?),
        "receive" => {
            return match port.receive_message() {
                Some(bytes) => scope.array(&[scope.deserialize(&bytes)?]),
                None => Ok(scope.undefined()),
            };
        }
        "close" => port.close(),
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
        }
        "ref" => match arg(scope, args, 0).is_truthy() {
            true => port.ref_(),
            false => port.unref(),
        },
        "hasRef" => return Ok(scope.boolean(port.has_ref())),
        _ => {}
    }
    Ok(scope.undefined())
}
