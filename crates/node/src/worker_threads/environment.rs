//! What a thread knows of itself: its id, and the data that its parent has left for it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::Node;

type Data = BTreeMap<String, Arc<dyn Any + Send + Sync>>;

/// The environment of one loop.
#[derive(Default)]
pub(crate) struct Environment {
    /// 0 for a loop that is no worker.
    id: Cell<u64>,
    data: RefCell<Data>,
}

impl Environment {
    /// Returns what a new worker gets.
    pub(super) fn copied(&self) -> Data {
        self.data.borrow().clone()
    }

    /// Makes this the environment of a worker.
    pub(super) fn become_worker(&self, id: u64, data: Data) {
        self.id.set(id);
        self.data.replace(data);
    }
}

/// Returns the id of this thread: 0 for the main thread, another one for each worker. JavaScript:
/// `threadId`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn thread_id() -> u64 {
    Node::current().environment.id.get()
}

/// Returns whether this is no worker. JavaScript: `isMainThread`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn is_main_thread() -> bool {
    thread_id() == 0
}

/// Sets a value for this thread, and for the workers that it starts from now on. JavaScript:
/// `setEnvironmentData(key, value)`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run};
/// use phaseloop_node::worker_threads::{Worker, get_environment_data, set_environment_data};
///
/// fn main() -> Exit<()> {
///     run(async {
///         set_environment_data("limit", 7_u32);
///         let worker = Worker::<(), u32>::new(|parent| async move {
///             parent.post_message(*get_environment_data::<u32>("limit").unwrap());
///         });
///         worker.unwrap().on_message(|limit| assert_eq!(*limit, 7));
///     })
/// }
/// ```
pub fn set_environment_data<T: Send + Sync + 'static>(key: impl Into<String>, value: T) {
    let before = {
        let node = Node::current();
        let mut data = node.environment.data.borrow_mut();
        data.insert(key.into(), Arc::new(value))
    };
    drop(before);
}

/// Removes a value. JavaScript: `setEnvironmentData(key, undefined)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn remove_environment_data(key: &str) {
    let before = Node::current().environment.data.borrow_mut().remove(key);
    drop(before);
}

/// Returns a value that this thread or its parent has set. `None` if there is none, or if it is of
/// another type. JavaScript: `getEnvironmentData(key)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn get_environment_data<T: Send + Sync + 'static>(key: &str) -> Option<Arc<T>> {
    let node = Node::current();
    let value = node.environment.data.borrow().get(key).cloned();
    value?.downcast().ok()
}
