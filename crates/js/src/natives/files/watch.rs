//! Files and folders that are watched.

use std::rc::Rc;

use phaseloop_node::events::Emitter as _;
use phaseloop_node::{fs as node, stream};

use super::path;
use super::pool::stats;
use crate::engine::{Closure, Res, Scope, Val};
use crate::natives::emitter::{Listen, Numbered, count_end, emit_error, note, remove};
use crate::natives::{arg, number, text};

/// Watches a path: whether it keeps the loop alive, and whether folders below are watched too.
/// Returns the function of the watcher.
pub(super) fn watch<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = node::WatchOptions {
        persistent: arg(scope, args, 1).is_truthy(),
        recursive: arg(scope, args, 2).is_truthy(),
        signal: None,
    };
    let watcher = node::watch_with(path(scope, args)?, options, |_| {});
    let listeners = Numbered::default();
    let closure: Closure = Rc::new(move |scope, args| {
        let (operation, args) = (text(scope, args, 0)?, &args[1..]);
        operate(scope, &watcher, &listeners, &operation, args)
    });
    scope.closure("watcher", closure)
}

fn operate<'js>(
    scope: &Scope<'js>,
    watcher: &node::FsWatcher,
    listeners: &Numbered,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js> {
    let emitter = watcher.emitter();
    match operation {
        "on" => {
            let listen = Listen::new(scope, args)?;
            let key = listen.key();
            let id = match listen.name.as_str() {
                "change" => listen.add(emitter, node::CHANGE, |scope, it| {
                    let name = scope.string(&it.filename.to_string_lossy())?;
                    Ok(vec![scope.string(it.event_type)?, name])
                }),
                _ => listen.end(emitter),
            };
            note(listeners, key, id);
        }
        "off" => remove(scope, listeners, emitter, args),
        "emit" => return emit_error(scope, emitter, args),
        "count" => {
            return Ok(scope.number(match text(scope, args, 0)?.as_str() {
                // The first listener is that of `watch`.
                "change" => emitter.listener_count(node::CHANGE) - 1,
                name => count_end(emitter, name),
            } as f64));
        }
        "onceClosed" => {
            let callback = scope.hold(&arg(scope, args, 0));
            emitter.once(stream::CLOSE, move |()| callback.call(|_| Ok(Vec::new())));
        }
        "close" => watcher.close(),
        "ref" => match arg(scope, args, 0).is_truthy() {
            true => watcher.ref_(),
            false => watcher.unref(),
        },
        _ => {}
    }
    Ok(scope.undefined())
}

/// Looks at a file again and again: the path, whether it keeps the loop alive, the interval, and
/// the function that gets the figures. Returns the function of the watcher.
pub(super) fn watch_file<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = node::WatchFileOptions {
        persistent: arg(scope, args, 1).is_truthy(),
        interval: number(scope, args, 2).into(),
    };
    let changed = scope.hold(&arg(scope, args, 3));
    let watcher = node::watch_file_with(path(scope, args)?, options, move |now, before| {
        changed.call(|scope| Ok(vec![stats(scope, now)?, stats(scope, before)?]));
    });
    let closure: Closure = Rc::new(move |scope, args| {
        match arg(scope, args, 0).is_truthy() {
            true => watcher.ref_(),
            false => watcher.unref(),
        }
        Ok(scope.undefined())
    });
    scope.closure("watcher", closure)
}

pub(super) fn unwatch_file<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    node::unwatch_file(path(scope, args)?);
    Ok(scope.undefined())
}
