//! Values of any type that a program adds to a message.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

/// Values of any type, one of each type. JavaScript: properties that a program adds to an object.
///
/// # Examples
///
/// ```
/// use phaseloop_node::http::Extensions;
///
/// #[derive(Debug, PartialEq)]
/// struct User(&'static str);
///
/// fn main() {
///     let mut extensions = Extensions::default();
///     assert_eq!(extensions.insert(User("Ada")), None);
///     assert_eq!(extensions.get(), Some(&User("Ada")));
///     assert_eq!(extensions.remove(), Some(User("Ada")));
///     assert!(extensions.is_empty());
/// }
/// ```
#[derive(Default)]
pub struct Extensions(HashMap<TypeId, Box<dyn Any>>);

impl Extensions {
    /// Adds a value. Returns the value of the same type that was there before.
    pub fn insert<T: 'static>(&mut self, value: T) -> Option<T> {
        let before = self.0.insert(TypeId::of::<T>(), Box::new(value))?;
        before.downcast().ok().map(|before| *before)
    }

    /// Returns the value of a type.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Returns the value of a type, to change it.
    #[must_use]
    pub fn get_mut<T: 'static>(&mut self) -> Option<&mut T> {
        self.0.get_mut(&TypeId::of::<T>())?.downcast_mut()
    }

    /// Returns the value of a type, to change it. The first call adds what `make` returns.
    pub fn get_or_insert_with<T: 'static>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        let value = self.0.entry(TypeId::of::<T>());
        let value = value.or_insert_with(|| Box::new(make()));
        match value.downcast_mut() {
            Some(value) => value,
            None => unreachable!("the key is the type"),
        }
    }

    /// Removes the value of a type and returns it.
    pub fn remove<T: 'static>(&mut self) -> Option<T> {
        let value = self.0.remove(&TypeId::of::<T>())?;
        value.downcast().ok().map(|value| *value)
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions")
            .field("len", &self.len())
            .finish()
    }
}
