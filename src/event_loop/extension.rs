//! The seam between the loop and its extension, the layer above that implements Node's API.
//!
//! The loop knows of the extension what stands here: that it may be compiled in, the slot for its
//! state, and what it may do to a loop beyond the public API. The extension names nothing else of
//! the loop's engine. No other file of the loop asks for the feature.

#[cfg(feature = "node")]
mod reach;

#[cfg(feature = "node")]
use std::any::Any;
#[cfg(feature = "node")]
use std::cell::OnceCell;

pub(crate) use super::report::waits::Waiting;

#[cfg(feature = "node")]
pub(crate) use reach::*;

/// Whether the extension is compiled in. Code that only the extension needs is behind this
/// constant, so that it costs other programs nothing.
pub(super) const IS_COMPILED: bool = cfg!(feature = "node");

/// The state that the extension keeps for a loop.
pub(crate) trait Extension: 'static {
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
    #[cfg(feature = "node")]
    value: OnceCell<Kept>,
}

/// Stored as `dyn Any`: a downcast through our own trait would cost a second virtual call on every
/// access.
#[cfg(feature = "node")]
struct Kept {
    value: Box<dyn Any>,
    as_extension: fn(&dyn Any) -> Option<&dyn Extension>,
}

impl ExtensionSlot {
    /// Returns the extension, if it was used on the loop.
    #[cfg(feature = "node")]
    pub(super) fn get(&self) -> Option<&dyn Extension> {
        let kept = self.value.get()?;
        (kept.as_extension)(&*kept.value)
    }

    /// There is no extension.
    #[cfg(not(feature = "node"))]
    #[expect(clippy::unused_self, reason = "the other variant needs it")]
    pub(super) fn get(&self) -> Option<&dyn Extension> {
        None
    }
}
