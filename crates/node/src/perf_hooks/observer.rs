//! Observers of the performance timeline.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use super::performance::{EntryType, PerformanceEntry, get_entries_by_type};
use crate::context::Node;
use phaseloop::task::set_immediate;

/// Delivers new entries in the next check phase, several at once. JavaScript: `new
/// PerformanceObserver(callback)`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::{EntryType, PerformanceObserver, performance};
/// use phaseloop_node::run;
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() {
///     let seen = Rc::new(RefCell::new(Vec::new()));
///     let log = seen.clone();
///     run(async move {
///         let observer = PerformanceObserver::new(move |list| {
///             log.borrow_mut().extend(list.get_entries().iter().map(|entry| entry.name.clone()));
///         });
///         observer.observe(&[EntryType::Mark]);
///         performance::mark("one");
///         performance::mark("two");
///     });
///     assert_eq!(*seen.borrow(), ["one", "two"]);
/// }
/// ```
#[derive(Clone)]
pub struct PerformanceObserver(Rc<Observing>);

struct Observing {
    callback: Box<dyn Fn(&PerformanceObserverEntryList)>,
    types: RefCell<Vec<EntryType>>,
    /// The entries that were not delivered.
    buffer: RefCell<Vec<PerformanceEntry>>,
}

impl PerformanceObserver {
    /// Creates an observer that observes nothing.
    #[must_use]
    pub fn new(callback: impl Fn(&PerformanceObserverEntryList) + 'static) -> Self {
        Self(Rc::new(Observing {
            callback: Box::new(callback),
            types: RefCell::default(),
            buffer: RefCell::default(),
        }))
    }

    /// Observes entries of one type, too, and delivers those that are on the timeline already.
    /// JavaScript: `observer.observe({ type, buffered: true })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::perf_hooks::{EntryType, PerformanceObserver, performance};
    /// use phaseloop_node::{Exit, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         performance::mark("early");
    ///         let observer = PerformanceObserver::new(|list| {
    ///             assert_eq!(list.get_entries()[0].name, "early");
    ///         });
    ///         observer.observe_buffered(EntryType::Mark);
    ///     })
    /// }
    /// ```
    pub fn observe_buffered(&self, entry_type: EntryType) {
        let mut types = self.0.types.borrow_mut();
        if !types.contains(&entry_type) {
            types.push(entry_type);
        }
        drop(types);
        let node = Node::current();
        let entries = get_entries_by_type(entry_type);
        self.0.buffer.borrow_mut().extend(entries);
        node.observers.add(&self.0);
        node.observers.report_later(&node, &self.0);
    }

    /// Observes entries of these types, in place of those before. JavaScript: `observer.observe({
    /// entryTypes })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn observe(&self, types: &[EntryType]) {
        *self.0.types.borrow_mut() = types.to_vec();
        Node::current().observers.add(&self.0);
    }

    /// Ends observing, and drops what was not delivered. JavaScript: `observer.disconnect()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn disconnect(&self) {
        Node::current().observers.remove(&self.0);
        self.0.types.borrow_mut().clear();
        drop(self.0.buffer.take());
    }

    /// Takes the entries that were not delivered. JavaScript: `observer.takeRecords()`.
    #[must_use]
    pub fn take_records(&self) -> Vec<PerformanceEntry> {
        self.0.buffer.take()
    }
}

impl fmt::Debug for PerformanceObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerformanceObserver")
            .field("types", &self.0.types.borrow())
            .finish_non_exhaustive()
    }
}

/// The entries that an observer receives at once, by the time of their starts.
#[derive(Debug)]
pub struct PerformanceObserverEntryList {
    entries: Vec<PerformanceEntry>,
}

impl PerformanceObserverEntryList {
    /// Returns all entries. JavaScript: `list.getEntries()`.
    #[must_use]
    pub fn get_entries(&self) -> &[PerformanceEntry] {
        &self.entries
    }

    /// Returns the entries of a name. JavaScript: `list.getEntriesByName(name)`.
    #[must_use]
    pub fn get_entries_by_name(&self, name: &str) -> Vec<PerformanceEntry> {
        let entries = self.entries.iter().filter(|entry| entry.name == name);
        entries.cloned().collect()
    }

    /// Returns the entries of a type. JavaScript: `list.getEntriesByType(type)`.
    #[must_use]
    pub fn get_entries_by_type(&self, entry_type: EntryType) -> Vec<PerformanceEntry> {
        let is_it = |entry: &&PerformanceEntry| entry.entry_type == entry_type;
        self.entries.iter().filter(is_it).cloned().collect()
    }
}

/// The observers of one loop.
#[derive(Default)]
pub(crate) struct Observers {
    list: RefCell<Vec<Rc<Observing>>>,
    /// Those with something to receive, in the order in which each had its first entry.
    pending: RefCell<Vec<Rc<Observing>>>,
    is_queued: Cell<bool>,
}

impl Observers {
    fn add(&self, observer: &Rc<Observing>) {
        let mut list = self.list.borrow_mut();
        if !list.iter().any(|other| Rc::ptr_eq(other, observer)) {
            list.push(observer.clone());
        }
    }

    fn remove(&self, observer: &Rc<Observing>) {
        let is_other = |other: &Rc<Observing>| !Rc::ptr_eq(other, observer);
        self.list.borrow_mut().retain(is_other);
        self.pending.borrow_mut().retain(is_other);
    }

    /// Returns whether entries of a type are observed.
    pub(super) fn observes(&self, entry_type: EntryType) -> bool {
        let list = self.list.borrow();
        list.iter()
            .any(|observer| observer.types.borrow().contains(&entry_type))
    }

    /// Queues a new entry for those who observe its type.
    pub(super) fn enter(&self, node: &Rc<Node>, entry: &PerformanceEntry) {
        for observer in &*self.list.borrow() {
            if observer.types.borrow().contains(&entry.entry_type) {
                observer.buffer.borrow_mut().push(entry.clone());
                self.report_later(node, observer);
            }
        }
    }

    /// Notifies an observer in the next check phase.
    fn report_later(&self, node: &Rc<Node>, observer: &Rc<Observing>) {
        let mut pending = self.pending.borrow_mut();
        if !pending.iter().any(|other| Rc::ptr_eq(other, observer)) {
            pending.push(observer.clone());
        }
        drop(pending);
        if !self.is_queued.replace(true) {
            let node = Rc::downgrade(node);
            set_immediate(move || {
                if let Some(node) = Weak::upgrade(&node) {
                    node.observers.deliver();
                }
            });
        }
    }

    fn deliver(&self) {
        self.is_queued.set(false);
        for observer in self.pending.take() {
            let mut entries = observer.buffer.take();
            entries.sort_by(|a, b| a.start_time.total_cmp(&b.start_time));
            (observer.callback)(&PerformanceObserverEntryList { entries });
        }
    }

    pub(crate) fn shut_down(&self) {
        let (list, pending) = (self.list.take(), self.pending.take());
        drop((list, pending));
    }
}
