//! What a report calls a lock or channel.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use crate::event_loop::current;
use crate::executor::primitives::{Caller, Described, DescribedWaiter, Primitive, TaskKey};
use crate::label::Label;
use crate::site::Site;

/// The line that made a primitive, and its name.
pub(super) struct Identity {
    site: Site,
    name: Cell<Option<&'static str>>,
    /// The loop that has noted the primitive.
    noted: Cell<*const ()>,
}

impl Identity {
    pub(super) fn new(site: Site) -> Self {
        Self {
            site,
            name: Cell::new(None),
            noted: Cell::new(std::ptr::null()),
        }
    }

    pub(super) fn set_name(&self, name: &'static str) {
        self.name.set(Some(name));
    }

    /// Returns what is polled, and notes `primitive` on its loop.
    #[inline]
    pub(super) fn begin_wait<P: Primitive + 'static>(&self, primitive: &Rc<P>) -> TaskKey {
        current::begin_wait(&self.noted, || {
            let weak: Weak<P> = Rc::downgrade(primitive);
            weak
        })
    }

    /// Describes what the primitive of this identity is waited for, without a state.
    #[inline]
    pub(super) fn described(&self, what: &'static str, waiters: Vec<DescribedWaiter>) -> Described {
        let name = self.name.get().map(|name| format!("{name:?}"));
        Described {
            label: Label::new(what, name.unwrap_or_default()),
            site: self.site,
            state: String::new(),
            last: None,
            is_held: false,
            waiters,
        }
    }
}

/// Returns the place of a call: its line, and what is polled.
#[inline]
pub(super) fn caller_at(site: Site) -> Caller {
    let task = current::task_key();
    Caller { site, task }
}
