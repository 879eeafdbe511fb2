//! The parts that `Readable` and `Writable` have in common: the options of their builders, and the
//! methods, listeners and clones that concern the whole stream.

use std::rc::Rc;

use super::base::{Base, ConstructHook, DestroyHook, Done};
use crate::error::Error;

/// The options that both builders offer and that concern the whole stream.
pub(super) struct Options {
    construct: Option<ConstructHook>,
    destroy: Option<DestroyHook>,
    auto_destroy: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            construct: None,
            destroy: None,
            auto_destroy: true,
        }
    }
}

impl Options {
    pub(super) fn set_construct(&mut self, construct: impl FnOnce(Done) + 'static) {
        self.construct = Some(Box::new(construct));
    }

    pub(super) fn set_destroy(&mut self, destroy: impl FnOnce(Option<Error>, Done) + 'static) {
        self.destroy = Some(Box::new(destroy));
    }

    pub(super) fn set_auto_destroy(&mut self, auto_destroy: bool) {
        self.auto_destroy = auto_destroy;
    }

    /// Returns the options of a stream with two sides. A function of `self` is preferred to one of
    /// `other`.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            construct: self.construct.or(other.construct),
            destroy: self.destroy.or(other.destroy),
            auto_destroy: self.auto_destroy && other.auto_destroy,
        }
    }

    /// Creates the base of a stream whose sides `sides` adds to it, and starts its construction.
    pub(super) fn build<S>(self, class: &'static str, sides: impl FnOnce(&Rc<Base>) -> S) -> S {
        let base = Base::new(self.destroy, self.auto_destroy);
        base.emitter.set_class(class);
        let built = sides(&base);
        if let Some(construct) = self.construct {
            base.construct(construct);
        }
        built
    }
}

/// Implements the shared options of a builder with the field `options`.
macro_rules! impl_options {
    ($Builder:ident<$($T:ident),+>) => {
        impl<$($T: 'static),+> $Builder<$($T),+> {
            /// Sets the function that is called on a tick, before all others. JavaScript: `{
            /// construct }`.
            pub fn construct(mut self, construct: impl FnOnce(Done) + 'static) -> Self {
                self.options.set_construct(construct);
                self
            }

            /// Sets the function that releases the resources of the stream when it is destroyed.
            /// JavaScript: `{ destroy }`.
            pub fn destroy(mut self, destroy: impl FnOnce(Option<Error>, Done) + 'static) -> Self {
                self.options.set_destroy(destroy);
                self
            }

            /// Sets whether the stream is destroyed after its end or after an error. The default is
            /// `true`. JavaScript: `{ autoDestroy }`.
            pub fn auto_destroy(mut self, auto_destroy: bool) -> Self {
                self.options.set_auto_destroy(auto_destroy);
                self
            }
        }
    };
}

/// Shows the name of a builder and its field `high_water_mark`.
macro_rules! impl_debug {
    ($Builder:ident) => {
        impl<T: 'static> fmt::Debug for $Builder<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Builder))
                    .field("high_water_mark", &self.high_water_mark)
                    .finish_non_exhaustive()
            }
        }
    };
}

/// Implements what concerns a whole stream for a handle to one of its sides. The handle has the
/// fields `state` and `other_side`, the state has `base`.
macro_rules! impl_stream {
    ($Stream:ident, $other_side:ident) => {
        impl<T: 'static> $Stream<T> {
            /// Creates a handle that keeps both sides of the stream alive.
            pub(in crate::stream) fn of(state: Rc<State<T>>) -> Self {
                let other_side = state.base.$other_side();
                Self { state, other_side }
            }

            pub(in crate::stream) fn state(&self) -> &Rc<State<T>> {
                &self.state
            }

            /// Sets what happens when a loop over the stream is left or its pipeline fails. The
            /// function returns whether the stream is to be destroyed then.
            pub(crate) fn on_leave(&self, hook: impl Fn() -> bool + 'static) {
                self.state.base.set_leave_hook(Rc::new(hook));
            }

            /// Destroys the stream. The `destroy` function is called at once. Chunks that wait are
            /// dropped, and the callbacks of their writes get an error. One tick later `error` is
            /// emitted, if there is one, and then [`CLOSE`]. Neither [`END`] nor [`FINISH`] is
            /// emitted. JavaScript: `stream.destroy(error)`.
            ///
            /// [`CLOSE`]: crate::stream::CLOSE
            /// [`END`]: crate::stream::END
            /// [`FINISH`]: crate::stream::FINISH
            // N144.
            pub fn destroy(&self, error: Option<Error>) {
                self.state.base.destroy(error);
            }

            /// Returns whether the stream was destroyed. JavaScript: `stream.destroyed`.
            #[must_use]
            pub fn destroyed(&self) -> bool {
                self.state.base.destroyed.get()
            }

            /// Returns whether the stream was destroyed and its `destroy` function is done.
            /// JavaScript: `stream.closed`.
            #[must_use]
            pub fn closed(&self) -> bool {
                self.state.base.closed.get()
            }

            /// Returns the error with which the stream has failed. JavaScript: `stream.errored`.
            #[must_use]
            pub fn errored(&self) -> Option<Error> {
                self.state.base.error()
            }

            /// Returns the identity of the stream.
            #[must_use]
            pub fn id(&self) -> StreamId {
                self.state.base.id()
            }
        }

        impl<T: 'static> Emitter for $Stream<T> {
            fn emitter(&self) -> &EventEmitter {
                &self.state.base.emitter
            }
        }

        impl<T: 'static> crate::events::WeakThis for $Stream<T> {
            fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
                let state = Rc::downgrade(&self.state);
                Box::new(move || state.upgrade().map(Self::of))
            }
        }

        impl<T: 'static> Clone for $Stream<T> {
            fn clone(&self) -> Self {
                Self {
                    state: self.state.clone(),
                    other_side: self.other_side.clone(),
                }
            }
        }
    };
}

pub(super) use {impl_debug, impl_options, impl_stream};
