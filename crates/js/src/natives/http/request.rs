//! Requests and the agents that keep their connections.

use phaseloop_node::events::Emitter as _;
use phaseloop_node::http::{self, Agent, FREE, RequestOptions, Scheduling, Target};
use phaseloop_node::net::Socket;

use super::messages::{Message, pairs};
use crate::engine::{Res, Scope, Val};
use crate::natives::emitter::{Listen, Numbered, note, remove};
use crate::natives::net::{address, socket_object};
use crate::natives::stream::{Handle, bind, keep};
use crate::natives::{arg, operations};

/// Begins the request of an object, and returns the function that calls it.
pub(super) fn request<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = arg(scope, args, 1);
    let get = |name: &str| options.get(scope, name);
    let mut made = match get("socketPath")?.as_text() {
        Some(path) => RequestOptions::new(Target::from("localhost")).local(path),
        None => RequestOptions::new(Target::from(address(scope, &options)?)),
    };
    if let Some(method) = get("method")?.as_text() {
        made = made.method(method);
    }
    if let Some(path) = get("requestPath")?.as_text() {
        made = made.path(path);
    }
    if let Some(auth) = get("auth")?.as_text() {
        made = made.auth(auth);
    }
    if let Some(delay) = get("timeout")?.as_number() {
        made = made.timeout(delay);
    }
    if let Some(size) = get("maxHeaderSize")?.as_number() {
        made = made.max_header_size(size as usize);
    }
    if get("setHost")?.as_bool() == Some(false) {
        made = made.set_host(false);
    }
    let headers = pairs(scope, &get("pairs")?)?;
    made = match get("isRaw")?.is_truthy() {
        true => made.raw_headers(headers),
        false => headers
            .into_iter()
            .fold(made, |made, (name, value)| made.header(name, value)),
    };
    made = made.join_duplicate_headers(get("joinDuplicateHeaders")?.is_truthy());
    let agent = get("agentNative")?;
    if agent.is_function() {
        agent.call(&scope.undefined(), &[scope.string("lend")?])?;
        if let Some(agent) = scope.inner.data.lent_agent.take() {
            made = made.agent(&agent);
        }
    } else if agent.as_bool() == Some(false) {
        made = made.agent(&Agent::none());
    }
    let request = match http::try_request(made) {
        Ok(request) => request,
        Err(error) => return Err(scope.throw_reason(&error.into())),
    };
    let mut handle = Handle::of_bytes(None, Some(request.writable()));
    let writable = request.writable();
    keep(
        scope,
        &arg(scope, args, 0),
        writable.emitter(),
        writable.id(),
    );
    handle.message = Some(Message::Request(request));
    bind(scope, &arg(scope, args, 0), handle)
}

/// Creates an agent, and returns the function that calls it.
pub(super) fn agent<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = arg(scope, args, 0);
    let get = |name: &str| options.get(scope, name);
    let agent = match get("isGlobal")?.is_truthy() {
        true => http::global_agent(),
        false => {
            let mut builder = Agent::builder().keep_alive(get("keepAlive")?.is_truthy());
            if let Some(most) = get("maxSockets")?.as_number().filter(|it| it.is_finite()) {
                builder = builder.max_sockets(most as usize);
            }
            if let Some(most) = get("maxTotalSockets")?
                .as_number()
                .filter(|it| it.is_finite())
            {
                builder = builder.max_total_sockets(most as usize);
            }
            if let Some(most) = get("maxFreeSockets")?.as_number() {
                builder = builder.max_free_sockets(most as usize);
            }
            if let Some(delay) = get("timeout")?.as_number() {
                builder = builder.timeout(delay);
            }
            if get("scheduling")?.as_text().as_deref() == Some("fifo") {
                builder = builder.scheduling(Scheduling::Fifo);
            }
            builder.build()
        }
    };
    let listeners = Numbered::default();
    operations(scope, "agent", move |scope, operation, args| {
        agent_operation(scope, &agent, &listeners, operation, args)
    })
}

fn agent_operation<'js>(
    scope: &Scope<'js>,
    agent: &Agent,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    match operation {
        "lend" => {
            let before = scope.inner.data.lent_agent.replace(Some(agent.clone()));
            drop(before);
        }
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            let id = listen.add(agent.emitter(), FREE, |scope, socket: &Socket| {
                Ok(vec![socket_object(scope, socket)?])
            });
            note(listeners, key, id);
        }
        "off" => remove(scope, listeners, agent.emitter(), args),
        "count" => return Ok(scope.number(agent.emitter().listener_count(FREE) as f64)),
        "sockets" => return Ok(scope.number(agent.sockets() as f64)),
        "freeSockets" => return Ok(scope.number(agent.free_sockets() as f64)),
        "requests" => return Ok(scope.number(agent.requests() as f64)),
        "destroy" => agent.destroy(),
        _ => {}
    }
    Ok(scope.undefined())
}
