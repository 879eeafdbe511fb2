//! The probe without the feature `probe`: it does nothing.

use std::marker::PhantomData;

use crate::phase_order::Phase;
use crate::task_info::Info;

/// A probe that does nothing.
#[derive(Clone)]
pub(crate) struct Probe;

/// The span between a start and its end; here it is empty.
pub(crate) struct Span<'a>(PhantomData<&'a ()>);

impl Probe {
    pub(crate) fn silent() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn is_silent(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn phase(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    #[inline(always)]
    pub(crate) fn callback(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    #[inline(always)]
    pub(crate) fn poll(&self, _: impl FnOnce() -> Option<Info>) -> Span<'_> {
        Span(PhantomData)
    }
}
