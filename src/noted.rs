//! Lists of what reports may ask, by references that keep nothing alive.

use std::cell::RefCell;
use std::{rc, sync};

use crate::numbered::NumberedMap;

/// The least number of references that are added without a search for those that are gone.
const FEW: usize = 32;

/// A reference that keeps nothing alive.
pub(crate) trait Reference: Clone {
    type Strong;

    fn strong(&self) -> Option<Self::Strong>;
    fn is_gone(&self) -> bool;
    fn address(&self) -> *const ();
}

macro_rules! impl_reference {
    ($module:ident, $Strong:ident) => {
        impl<T: ?Sized> Reference for $module::Weak<T> {
            type Strong = $module::$Strong<T>;

            fn strong(&self) -> Option<Self::Strong> {
                self.upgrade()
            }

            fn is_gone(&self) -> bool {
                self.strong_count() == 0
            }

            fn address(&self) -> *const () {
                self.as_ptr().cast()
            }
        }
    };
}

impl_reference!(rc, Rc);
impl_reference!(sync, Arc);

/// A list of references.
pub(crate) struct Noted<R>(RefCell<Vec<R>>);

impl<R> Default for Noted<R> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<R: Reference> Noted<R> {
    /// Adds a reference, which may be there already. What is gone is removed when the list has no
    /// more room, so that each addition takes a constant time.
    pub(crate) fn add(&self, new: R) {
        let mut list = self.0.borrow_mut();
        if list.len() == list.capacity() {
            remove_gone(&mut list);
            let left = list.len();
            list.reserve(left.max(FEW));
        }
        list.push(new);
    }

    /// Returns what is still there, each once, in the order of the additions. Other threads may
    /// have dropped their references meanwhile: the drop of the result may run user code.
    pub(crate) fn live(&self) -> Vec<R::Strong> {
        let mut list = self.0.borrow_mut();
        remove_gone(&mut list);
        list.iter().filter_map(Reference::strong).collect()
    }
}

/// Removes what is gone, and what is there twice.
fn remove_gone<R: Reference>(list: &mut Vec<R>) {
    let mut seen = NumberedMap::<*const (), ()>::default();
    list.retain(|noted| !noted.is_gone() && seen.insert(noted.address(), ()).is_none());
}

#[cfg(test)]
mod tests {
    use std::rc::{Rc, Weak};

    use super::{FEW, Noted};

    #[test]
    fn a_list_has_no_room_for_what_is_gone_or_there_twice() {
        let (live, list) = (Rc::new(0), Noted::<Weak<usize>>::default());
        for _ in 0..100 * FEW {
            list.add(Rc::downgrade(&live));
            list.add(Rc::downgrade(&Rc::new(0)));
        }
        assert!(list.0.borrow().capacity() <= 4 * FEW);
        assert_eq!(list.live().len(), 1);
    }
}
