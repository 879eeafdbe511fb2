//! Locks and channels: order, hand-over, cancel safety, ends, and what user code may do inside.
//! `tests/SYNC.md` lists the rules.

mod channels;
mod hostile;
mod locks;
mod model;
mod reports;

use std::cell::RefCell;
use std::rc::Rc;

/// Names in the order in which they were noted.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    fn note(&self, name: impl ToString) {
        self.0.borrow_mut().push(name.to_string());
    }

    fn take(&self) -> String {
        self.0.take().join(" ")
    }
}
