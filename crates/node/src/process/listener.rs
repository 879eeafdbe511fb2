//! The listeners of the events of the process.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A registered listener. Dropping this value leaves the listener registered.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, process, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let listener = process::on_exit(|code| println!("exit code {code}"));
///         assert!(listener.remove());
///         assert!(!listener.remove());
///     })
/// }
/// ```
pub struct Listener {
    pub(super) remove: Box<dyn Fn() -> bool>,
}

impl Listener {
    /// Removes the listener. Returns `false` if it was removed before, or if the loop was dropped.
    pub fn remove(&self) -> bool {
        (self.remove)()
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

type Listening<E> = RefCell<dyn FnMut(&E)>;

/// The listeners of one event, in the order of registration.
pub(crate) struct Listeners<E> {
    list: RefCell<Vec<(u64, Rc<Listening<E>>)>>,
    next_id: Cell<u64>,
}

impl<E> Default for Listeners<E> {
    fn default() -> Self {
        Self {
            list: RefCell::default(),
            next_id: Cell::new(0),
        }
    }
}

impl<E> Listeners<E> {
    pub(super) fn add(&self, listener: impl FnMut(&E) + 'static) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let entry = (id, Rc::new(RefCell::new(listener)) as Rc<Listening<E>>);
        self.list.borrow_mut().push(entry);
        id
    }

    pub(super) fn remove(&self, id: u64) -> bool {
        let mut list = self.list.borrow_mut();
        let index = list.iter().position(|entry| entry.0 == id);
        let removed = index.map(|index| list.remove(index));
        // The borrow ends first: the drop of the listener may run user code.
        drop(list);
        removed.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// Calls the listeners that are registered now. Returns `false` if there are none.
    pub(crate) fn emit(&self, event: &E) -> bool {
        let list: Vec<_> = self
            .list
            .borrow()
            .iter()
            .map(|entry| entry.1.clone())
            .collect();
        for listener in &list {
            // A listener that is running and has caused the event again is not called a second
            // time.
            if let Ok(mut listener) = listener.try_borrow_mut() {
                listener(event);
            }
        }
        !list.is_empty()
    }

    pub(super) fn clear(&self) {
        drop(self.list.take());
    }
}
