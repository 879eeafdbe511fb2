//! Weak references to emitters.

use std::fmt;
use std::rc::Weak;

use super::{EventEmitter, Inner};

/// A weak reference to an [`EventEmitter`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter};
///
/// const PING: Event<u32> = Event::new("ping");
/// const PONG: Event<u32> = Event::new("pong");
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     let weak = emitter.downgrade();
///     emitter.on(PING, move |n| {
///         if let Some(emitter) = weak.upgrade() {
///             emitter.emit(PONG, n);
///         }
///     });
///     assert!(emitter.emit(PING, 1));
/// }
/// ```
#[derive(Clone)]
pub struct WeakEmitter {
    pub(super) inner: Weak<Inner>,
}

impl WeakEmitter {
    /// Returns the emitter if it is still alive.
    #[must_use]
    pub fn upgrade(&self) -> Option<EventEmitter> {
        self.inner.upgrade().map(|inner| EventEmitter { inner })
    }
}

impl fmt::Debug for WeakEmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakEmitter")
    }
}
