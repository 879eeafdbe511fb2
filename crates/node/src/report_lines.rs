//! What a program in another language waits for, as reports show it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use phaseloop::extension::Waiting;

/// The lines of what waits, in the order of their creation.
#[derive(Default)]
pub(crate) struct ReportLines {
    next: Cell<u64>,
    all: RefCell<BTreeMap<u64, (&'static str, Rc<str>)>>,
}

impl ReportLines {
    pub(crate) fn add(self: &Rc<Self>, what: &'static str, at: Rc<str>) -> ReportLine {
        let number = self.next.get();
        self.next.set(number + 1);
        self.all.borrow_mut().insert(number, (what, at));
        ReportLine(self.clone(), number)
    }

    pub(crate) fn report(&self, found: &mut Vec<Waiting>) {
        let all = self.all.borrow();
        found.extend(all.values().map(|(what, at)| Waiting::at_place(what, at)));
    }
}

/// A line in the reports of the loop, until it is dropped.
pub struct ReportLine(Rc<ReportLines>, u64);

impl std::fmt::Debug for ReportLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReportLine").field(&self.1).finish()
    }
}

impl Drop for ReportLine {
    fn drop(&mut self) {
        self.0.all.borrow_mut().remove(&self.1);
    }
}
