//! What a program in another language waits for, as reports show it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use phaseloop::extension::Waiting;

/// The places of what waits, in the order of its making.
#[derive(Default)]
pub(crate) struct Places {
    next: Cell<u64>,
    all: RefCell<BTreeMap<u64, (&'static str, Rc<str>)>>,
}

impl Places {
    pub(crate) fn add(self: &Rc<Self>, what: &'static str, at: Rc<str>) -> Place {
        let number = self.next.get();
        self.next.set(number + 1);
        self.all.borrow_mut().insert(number, (what, at));
        Place(self.clone(), number)
    }

    pub(crate) fn report(&self, found: &mut Vec<Waiting>) {
        let all = self.all.borrow();
        found.extend(all.values().map(|(what, at)| Waiting::at_place(what, at)));
    }
}

/// A line in the reports of the loop, until it is dropped.
pub struct Place(Rc<Places>, u64);

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place").field(&self.1).finish()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.all.borrow_mut().remove(&self.1);
    }
}
