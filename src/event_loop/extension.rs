//! The seam between the loop and its extension, the crate above that implements Node's API.
//!
//! The loop knows of the extension what stands here: the slot for its state, and what it adds to a
//! report. What the extension may do to a loop is the root module `extension`.

use std::any::Any;
use std::cell::OnceCell;

use crate::label::Label;
use crate::site::Site;

/// A handle, sleep or job of a report.
#[derive(Debug)]
pub struct Waiting {
    pub(crate) label: Label,
    /// The line that created it, if known.
    pub site: Option<Site>,
    /// Its state, as text.
    pub state: String,
    /// The time until it is due, if it has a deadline.
    pub due: Option<Due>,
    /// Whether it keeps the loop alive.
    pub keeps_alive: bool,
    /// The data pointers of the wakers that wait for it.
    pub wakers: Vec<*const ()>,
}

/// The time until a deadline in nanoseconds, or the maximum for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Due(pub u64);

/// The state that the extension keeps for a loop.
pub trait Extension: 'static {
    /// Adds what waits in the extension to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// Returns the data pointers of the wakers that belong to no task, in their order.
    fn own_wakers(&self) -> Vec<*const ()>;

    /// Drops all callbacks when the loop is dropped: they may own handles to the loop.
    fn shut_down(&self);
}

/// A slot that is empty until the extension is first used on the loop.
#[derive(Default)]
pub(crate) struct ExtensionSlot {
    value: OnceCell<Attached>,
}

/// Stored as `dyn Any`: a downcast through our own trait would cost a second virtual call on every
/// access.
struct Attached {
    value: Box<dyn Any>,
    as_extension: fn(&dyn Any) -> Option<&dyn Extension>,
}

impl ExtensionSlot {
    /// Returns the extension, if it was used on the loop.
    pub(crate) fn get(&self) -> Option<&dyn Extension> {
        let attached = self.value.get()?;
        (attached.as_extension)(&*attached.value)
    }

    /// Returns the state of the extension, if it was used on the loop.
    #[inline]
    pub(crate) fn state<T: Extension>(&self) -> Option<&T> {
        self.value.get()?.value.downcast_ref()
    }

    pub(crate) fn state_or_make<T: Extension>(&self, make: impl FnOnce() -> T) -> &T {
        let attached = self.value.get_or_init(|| Attached {
            value: Box::new(make()),
            as_extension: |value| {
                value
                    .downcast_ref::<T>()
                    .map(|value| value as &dyn Extension)
            },
        });
        let value = attached.value.downcast_ref();
        value.expect("there is one extension")
    }
}
