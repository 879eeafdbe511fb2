//! Channels with any number of members on any threads.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::port::{MessagePort, Outlet, lone};
use crate::events::ListenerId;

/// The members of all channels, by the name and the type of the messages. Each value is a
/// `Members<T>`.
type Registry = HashMap<(Arc<str>, TypeId), Box<dyn Any + Send>>;

type Members<T> = Vec<(u64, Outlet<T>)>;

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

static NUMBERS: AtomicU64 = AtomicU64::new(0);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A channel to all others of the same name and message type, on this thread and on others. A clone
/// is a handle to the same member. JavaScript: `new BroadcastChannel(name)`.
///
/// Each member gets a clone of a message, except the one that posts it. A member with a listener
/// keeps the loop alive until it is [closed](Self::close) or [unref'd](Self::unref). Dropping the
/// last handle of one without a listener closes it.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, worker_threads::BroadcastChannel};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let (one, two) = (BroadcastChannel::new("news"), BroadcastChannel::new("news"));
///         let closing = two.clone();
///         two.on_message(move |text: &String| {
///             assert_eq!(text, "hello");
///             closing.close();
///         });
///         one.post_message("hello".to_owned());
///     })
/// }
/// ```
pub struct BroadcastChannel<T: Clone + Send + 'static> {
    member: Rc<Member<T>>,
}

struct Member<T: Clone + Send + 'static> {
    name: Arc<str>,
    number: u64,
    port: MessagePort<T>,
}

impl<T: Clone + Send + 'static> BroadcastChannel<T> {
    /// Joins the channel of a name.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        let (name, number) = (name.into(), NUMBERS.fetch_add(1, Ordering::Relaxed));
        let (port, outlet) = lone();
        let member = Member { name, number, port };
        member.change(|members| members.push((number, outlet)));
        Self {
            member: Rc::new(member),
        }
    }

    /// Returns the name. JavaScript: `channel.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.member.name
    }

    /// Sends a clone of a message to each other member. Nothing is sent after a
    /// [`close`](Self::close). JavaScript: `channel.postMessage(message)`.
    pub fn post_message(&self, message: T) {
        let own = self.member.number;
        let others = self.member.change(|members| {
            let is_open = members.iter().any(|(number, _)| *number == own);
            let others = members
                .iter()
                .filter(|(number, _)| is_open && *number != own);
            others.map(|(_, outlet)| outlet.clone()).collect::<Vec<_>>()
        });
        // Without the lock: a clone may run code of the program.
        for outlet in others {
            outlet.push(message.clone());
        }
    }

    /// Adds a listener for messages. JavaScript: `channel.onmessage = ({ data }) => { .. }`.
    pub fn on_message(&self, listener: impl Fn(&T) + 'static) -> ListenerId {
        self.member.port.on_message(listener)
    }

    /// Removes a listener. Returns `false` if it was removed before.
    pub fn off(&self, id: ListenerId) -> bool {
        use crate::events::Emitter as _;
        self.member.port.off(id)
    }

    /// Leaves the channel. Messages that have not arrived are dropped. JavaScript:
    /// `channel.close()`.
    pub fn close(&self) {
        self.member.leave();
        self.member.port.close();
    }

    /// Makes the channel keep the loop alive. JavaScript: `channel.ref()`.
    pub fn ref_(&self) {
        self.member.port.ref_();
    }

    /// Lets the loop end while the channel has listeners. JavaScript: `channel.unref()`.
    pub fn unref(&self) {
        self.member.port.unref();
    }
}

impl<T: Clone + Send + 'static> Member<T> {
    /// Changes the members of the channel. A channel without members is forgotten.
    fn change<R>(&self, change: impl FnOnce(&mut Members<T>) -> R) -> R {
        let key = (self.name.clone(), TypeId::of::<T>());
        let mut registry = registry();
        let members = registry.entry(key.clone());
        let members = members.or_insert_with(|| Box::new(Members::<T>::new()));
        let members: &mut Members<T> = members.downcast_mut().expect("the key has the type");
        let result = change(members);
        if members.is_empty() {
            registry.remove(&key);
        }
        result
    }

    fn leave(&self) {
        let left = self.change(|members| {
            let place = members
                .iter()
                .position(|(number, _)| *number == self.number);
            place.map(|place| members.remove(place))
        });
        drop(left);
    }
}

impl<T: Clone + Send + 'static> Drop for Member<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T: Clone + Send + 'static> Clone for BroadcastChannel<T> {
    fn clone(&self) -> Self {
        Self {
            member: self.member.clone(),
        }
    }
}

impl<T: Clone + Send + 'static> fmt::Debug for BroadcastChannel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastChannel")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
