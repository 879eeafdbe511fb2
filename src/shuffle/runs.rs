//! One run of an exploration: its loop, or its loops.

use std::future::Future;

use super::explore::Explore;
use crate::choices::Chooser;
use crate::event_loop::EventLoop;
use crate::executor::shared::UnhandledPanic;
use crate::runtime::builder::Builder;
use crate::ways_to_wait::shuffled::outside::{refused_sender, used_outside};

pub(super) enum Run {
    One(EventLoop),
    #[cfg(feature = "cluster")]
    Several(super::several::Several),
}

impl Run {
    /// Builds the loops of a run.
    ///
    /// # Panics
    ///
    /// If the OS refuses.
    pub(super) fn new(explore: &Explore, chooser: Box<dyn Chooser>) -> Self {
        #[cfg(feature = "cluster")]
        if let Some((loops, crew)) = explore.several {
            return Self::Several(super::several::Several::new(explore, chooser, loops, crew));
        }
        let builder = builder(explore, chooser).network(explore.network.clone());
        Self::One(build(builder))
    }

    pub(super) fn block_on(&mut self, program: impl Future<Output = ()>) {
        match self {
            Self::One(event_loop) => event_loop.block_on(program),
            #[cfg(feature = "cluster")]
            Self::Several(loops) => loops.block_on(program),
        }
    }

    /// Returns the loops that have not ended, by index.
    fn loops(&self) -> Vec<(usize, &EventLoop)> {
        match self {
            Self::One(event_loop) => vec![(0, event_loop)],
            #[cfg(feature = "cluster")]
            Self::Several(loops) => loops.list(),
        }
    }

    /// Returns what a run that has ended says of other threads that have sent something.
    pub(super) fn refused_sender(&self) -> Option<String> {
        let mut loops = self.loops().into_iter();
        loops.find_map(|(_, event_loop)| refused_sender(&event_loop.core))
    }

    /// Returns what the program has used that cannot be repeated, one line each.
    pub(super) fn used_outside(&self) -> Vec<String> {
        let loops = self.loops().into_iter();
        loops
            .flat_map(|(_, event_loop)| used_outside(&event_loop.core))
            .collect()
    }

    pub(super) fn report(&self) -> String {
        let report = |(index, event_loop): (usize, &EventLoop)| {
            let report = event_loop.handle().report();
            if matches!(self, Self::One(_)) {
                return report.to_string();
            }
            format!("loop {index}: {report}")
        };
        self.loops().into_iter().map(report).collect()
    }
}

/// Returns the builder of a loop whose order a chooser decides.
pub(super) fn builder(explore: &Explore, chooser: Box<dyn Chooser>) -> Builder {
    Builder::new()
        .unhandled_panic(UnhandledPanic::Unwind)
        .shuffle_within(chooser, explore.limits)
}

/// # Panics
///
/// If the OS refuses.
pub(super) fn build(builder: Builder) -> EventLoop {
    match builder.build() {
        Ok(event_loop) => event_loop,
        Err(error) => panic!("an event loop for the exploration cannot be created: {error}"),
    }
}
