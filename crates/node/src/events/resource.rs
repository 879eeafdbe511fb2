//! Emitters with a resource of their own.

use std::borrow::Borrow;
use std::fmt;

use super::{Emitter, EventEmitter, EventName};
use crate::async_hooks::AsyncResource;

/// An emitter whose listeners run with the stores of its making, in place of those of the `emit`.
/// JavaScript: `new EventEmitterAsyncResource({ name })`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::AsyncLocalStorage;
/// use phaseloop_node::events::{Event, EventEmitterAsyncResource};
/// use phaseloop_node::{Emitter, Exit, run};
///
/// const DONE: Event<()> = Event::new("done");
///
/// fn main() -> Exit<()> {
///     run(async {
///         let request = AsyncLocalStorage::new();
///         let query = request.run(7, || EventEmitterAsyncResource::new("Query"));
///         let seen = request.clone();
///         query.on(DONE, move |()| assert_eq!(*seen.get_store().unwrap(), 7));
///         request.run(8, || query.emit(DONE, ()));
///     })
/// }
/// ```
#[derive(Clone)]
pub struct EventEmitterAsyncResource {
    emitter: EventEmitter,
    resource: AsyncResource,
}

impl EventEmitterAsyncResource {
    /// Creates an emitter with a resource of the type `name`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            emitter: EventEmitter::of_class("EventEmitterAsyncResource"),
            resource: AsyncResource::new(name),
        }
    }

    /// Returns the resource. JavaScript: `emitter.asyncResource`.
    #[must_use]
    pub fn async_resource(&self) -> &AsyncResource {
        &self.resource
    }

    /// Notifies the hooks that the resource has ended. JavaScript: `emitter.emitDestroy()`.
    pub fn emit_destroy(&self) {
        self.resource.emit_destroy();
    }
}

impl Emitter for EventEmitterAsyncResource {
    fn emitter(&self) -> &EventEmitter {
        &self.emitter
    }

    /// Calls the listeners with the stores of the making of this emitter.
    fn emit<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        arguments: impl Borrow<A>,
    ) -> bool {
        self.resource
            .run_in_async_scope(|| self.emitter.emit(event, arguments))
    }
}

crate::weak_this!(EventEmitterAsyncResource { emitter; resource });

impl fmt::Debug for EventEmitterAsyncResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventEmitterAsyncResource")
            .field("emitter", &self.emitter)
            .field("resource", &self.resource)
            .finish()
    }
}
