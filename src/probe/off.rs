//! The probe that is not there.

use std::marker::PhantomData;

use crate::executor::Info;
use crate::turn::Phase;

/// Nothing.
pub(crate) struct Probe;

/// The time between the start and the end of something; here, nothing.
pub(crate) struct Span<'a>(PhantomData<&'a ()>);

impl Probe {
    pub(crate) fn silent() -> Self {
        Self
    }

    #[inline]
    pub(crate) fn phase(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    #[inline]
    pub(crate) fn callback(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    #[inline]
    pub(crate) fn poll(&self, _: impl FnOnce() -> Option<Info>) -> Span<'_> {
        Span(PhantomData)
    }
}
