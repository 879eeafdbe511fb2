//! Message channels, and clones of values.

use phaseloop_node::events::Emitter as _;
use phaseloop_node::stream::CLOSE;
use phaseloop_node::worker_threads::{MessageChannel, MessagePort};

use super::emitter::{Listen, Numbered, note, remove};
use super::{arg, operations, text};
use crate::engine::{Native, Res, Scope, Val};

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

pub(super) fn port_function<'js, S: From<Vec<u8>> + 'static>(
    scope: &Scope<'js>,
    port: MessagePort<S, Vec<u8>>,
) -> Res<'js> {
    let listeners = Numbered::default();
    operations(scope, "port", move |scope, operation, args| {
        operate(scope, &port, &listeners, operation, args)
    })
}

fn operate<'js, S: From<Vec<u8>> + 'static>(
    scope: &Scope<'js>,
    port: &MessagePort<S, Vec<u8>>,
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
                "message" => listen.add(
                    emitter,
                    MessagePort::<S, Vec<u8>>::MESSAGE,
                    |scope, bytes| Ok(vec![scope.deserialize(bytes)?]),
                ),
                _ => listen.plain(emitter, CLOSE),
            };
            note(listeners, key, id);
        }
        "off" => remove(scope, listeners, emitter, args),
        "count" => {
            let count = match text(scope, args, 0)?.as_str() {
                "message" => emitter.listener_count(MessagePort::<S, Vec<u8>>::MESSAGE),
                _ => emitter.listener_count(CLOSE),
            };
            return Ok(scope.number(count as f64));
        }
        "post" => port.post_message(scope.serialize(&arg(scope, args, 0))?.into()),
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
