//! Listeners of JavaScript at emitters of Rust.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use phaseloop_node::Error;
use phaseloop_node::events::{ERROR, Event, EventEmitter, ListenerId};
use phaseloop_node::stream;

use super::{arg, number, text};
use crate::engine::{Held, Res, Scope, Val};
use crate::error;

/// The listeners of an object, by number.
pub(super) type Numbered = RefCell<HashMap<u64, (ListenerId, Removed)>>;

/// The function of a listener that was removed: a running `emit` still calls it.
type Removed = Rc<RefCell<Option<Held>>>;

/// A listener that is to be added. Its function stays in JavaScript, at the object, so that Rust
/// keeps neither: the object and its listeners may refer to each other.
pub(super) struct Listen {
    object: Held,
    pub(super) name: String,
    number: u64,
    is_first: bool,
    removed: Removed,
}

impl Listen {
    /// Takes the object, the name, the number, and whether it comes first.
    pub(super) fn new<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js, Self> {
        let weak = scope.internal("weak", &[arg(scope, args, 0)])?;
        Ok(Self {
            object: scope.hold(&weak),
            name: text(scope, args, 1)?,
            number: number(scope, args, 2) as u64,
            is_first: arg(scope, args, 3).is_truthy(),
            removed: Removed::default(),
        })
    }

    /// What [`note`] needs after the listener was added.
    pub(super) fn key(&self) -> (u64, Removed) {
        (self.number, self.removed.clone())
    }

    /// Calls the listener, with the object as `this`.
    fn call(&self, args: impl for<'js> FnOnce(&Scope<'js>) -> Res<'js, Vec<Val<'js>>>) {
        let Some(inner) = self.object.engine() else {
            return;
        };
        let removed = self.removed.borrow().clone();
        inner.run(|scope| {
            let function = match removed {
                Some(function) => function.get(scope)?,
                None => scope.undefined(),
            };
            let mut list = vec![
                self.object.get(scope)?,
                scope.number(self.number as f64),
                function,
            ];
            list.extend(args(scope)?);
            scope.internal("fireListener", &list).map(drop)
        });
    }

    /// Adds the listener; `args` makes its arguments.
    pub(super) fn add<A: ?Sized + 'static>(
        self,
        emitter: &EventEmitter,
        event: Event<A>,
        args: impl for<'js> Fn(&Scope<'js>, &A) -> Res<'js, Vec<Val<'js>>> + 'static,
    ) -> ListenerId {
        let is_first = self.is_first;
        let call = move |argument: &A| self.call(|scope| args(scope, argument));
        match is_first {
            true => emitter.prepend(event, call),
            false => emitter.on(event, call),
        }
    }

    /// Adds a listener without arguments.
    pub(super) fn plain(self, emitter: &EventEmitter, event: Event<()>) -> ListenerId {
        self.add(emitter, event, |_, ()| Ok(Vec::new()))
    }

    /// Adds a listener for `close`, `error` or the monitor of errors.
    pub(super) fn end(self, emitter: &EventEmitter) -> ListenerId {
        match self.name.as_str() {
            "close" => self.plain(emitter, stream::CLOSE),
            name => {
                let event = match name {
                    "errorMonitor" => ERROR.monitor(),
                    _ => ERROR,
                };
                self.add(emitter, event, |scope, error: &Error| {
                    Ok(vec![error::of_node(scope, error)?])
                })
            }
        }
    }
}

/// Returns how many listeners an event of [`Listen::end`] has.
pub(super) fn count_end(emitter: &EventEmitter, name: &str) -> usize {
    match name {
        "close" => emitter.listener_count(stream::CLOSE),
        "errorMonitor" => emitter.listener_count(ERROR.monitor()),
        _ => emitter.listener_count(ERROR),
    }
}

/// Emits an error that a program emits: the name, and the error. Other events are the prelude's.
pub(super) fn emit_error<'js>(
    scope: &Scope<'js>,
    emitter: &EventEmitter,
    args: &[Val<'js>],
) -> Res<'js> {
    if text(scope, args, 0)? != "error" {
        return Ok(scope.undefined());
    }
    let error = error::to_node(scope, &arg(scope, args, 1));
    Ok(scope.boolean(emitter.emit(ERROR, error)))
}

/// Notes a listener that was added.
pub(super) fn note(listeners: &Numbered, (number, removed): (u64, Removed), id: ListenerId) {
    listeners.borrow_mut().insert(number, (id, removed));
}

/// Removes a listener by its number; the function follows.
pub(super) fn remove<'js>(
    scope: &Scope<'js>,
    listeners: &Numbered,
    emitter: &EventEmitter,
    args: &[Val<'js>],
) {
    let number = number(scope, args, 0) as u64;
    let known = listeners.borrow_mut().remove(&number);
    if let Some((id, removed)) = known {
        removed.replace(Some(scope.hold(&arg(scope, args, 1))));
        emitter.off(id);
    }
}
