//! The emitters that are cleared when their loop is dropped.

use std::cell::RefCell;

use super::{EventEmitter, WeakEmitter};

/// Emitters of open sockets and child processes.
///
/// Their listeners often own the emitter, as JavaScript closures do. Closing the object clears the
/// listeners; dropping the loop under an open object must do the same, or the cycle is never freed.
#[derive(Default)]
pub(crate) struct OpenEmitters {
    list: RefCell<Vec<WeakEmitter>>,
}

impl OpenEmitters {
    pub(crate) fn insert(&self, emitter: &EventEmitter) {
        let mut list = self.list.borrow_mut();
        if list.len() == list.capacity() {
            list.retain(|emitter| emitter.upgrade().is_some());
            // The list doubles, so that the next search for dropped emitters is far away.
            let more = list.len().max(8);
            list.reserve(more);
        }
        list.push(emitter.downgrade());
    }

    /// Drops the listeners of all emitters. The drop of a listener may run user code, which may
    /// open more.
    pub(crate) fn shut_down(&self) {
        loop {
            let list = self.list.take();
            if list.is_empty() {
                return;
            }
            for emitter in list.iter().filter_map(WeakEmitter::upgrade) {
                emitter.clear();
            }
        }
    }
}
