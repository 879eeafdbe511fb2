//! Several loops on one thread, under one seed.
// Rule C23.

use std::future::Future;
use std::panic::Location;

use super::explore::Explore;
use super::runs::{build, builder};
use crate::choices::{Chooser, Question};
use crate::event_loop::{EventLoop, RunMode};
use crate::keeper::Keeper;
use crate::runtime::block_on::{MainCounted, with_main_future};
use crate::sys;
use crate::ways_to_wait::shuffled::group::Group;
use crate::ways_to_wait::shuffled::turns::{Turns, share_time};
use crate::wire::Wire;

/// What makes several loops one program.
pub(crate) trait Crew {
    /// Returns whether the run of a loop is over.
    fn has_ended(&self, index: usize) -> bool;

    /// Ends the runs of all loops but the first.
    fn end(&self);

    /// Drops what is left of a loop that was dropped.
    fn drop_rest(&self, index: usize);
}

/// Makes several loops one program.
pub(crate) type MakeCrew = fn(&[EventLoop]) -> Box<dyn Crew>;

/// The loops of one run. Dropping it ends them all.
pub(super) struct Several {
    /// The loops, by index. One that has ended is dropped.
    loops: Vec<Option<EventLoop>>,
    crew: Box<dyn Crew>,
    turns: Turns,
}

impl Several {
    pub(super) fn new(
        explore: &Explore,
        chooser: Box<dyn Chooser>,
        loops: usize,
        make: MakeCrew,
    ) -> Self {
        let wire = Wire::new(explore.network.clone(), false);
        let group = Group::new(chooser, wire);
        let start = sys::clock::monotonic();
        let build = |index: usize| {
            // The chooser is that of the group.
            let usual = |_: &Question<'_>| 0;
            let mut builder = builder(explore, Box::new(usual));
            builder.simulation.group = Some((group.clone(), index as u32));
            builder.options.clock_start = Some(start);
            builder.options.index = (loops > 1).then_some(index as u32);
            let event_loop = build(builder);
            let shared = &event_loop.core.executor.shared;
            shared.foreign_senders.note_siblings();
            if index > 0 {
                // A loop without a keeper would not wait. The drop of the loop removes it.
                event_loop.core.ledger.add(Keeper::MainFuture);
            }
            event_loop
        };
        let loops: Vec<_> = (0..loops).map(build).collect();
        Self {
            crew: make(&loops),
            turns: Turns::new(group, loops.len()),
            loops: loops.into_iter().map(Some).collect(),
        }
    }

    /// Returns the loops that have not ended, by index.
    pub(super) fn list(&self) -> Vec<(usize, &EventLoop)> {
        let loops = self.loops.iter().enumerate();
        loops
            .filter_map(|(index, event_loop)| Some((index, event_loop.as_ref()?)))
            .collect()
    }

    #[track_caller]
    pub(super) fn block_on(&mut self, program: impl Future<Output = ()>) {
        let (_, first) = self.list()[0];
        let core = first.core.clone();
        with_main_future(&core, program, Location::caller(), |is_done| {
            core.executor.queue_main_future();
            let _alive = MainCounted::new(&core);
            while !is_done() {
                self.step(0);
            }
        });
        self.crew.end();
        while self.list().len() > 1 {
            self.step(1);
        }
    }

    /// Makes a turn of one of the loops from an index on.
    fn step(&mut self, first: usize) {
        self.drop_ended();
        let loops = self.list().into_iter().filter(|(index, _)| *index >= first);
        let loops: Vec<_> = loops
            .map(|(index, event_loop)| (index, event_loop.core.clone()))
            .collect();
        if loops.is_empty() {
            return;
        }
        let made = self.turns.next(&loops).and_then(|chosen| {
            let is_chosen = |(index, _): &&(usize, _)| *index == chosen;
            let (_, core) = loops.iter().find(is_chosen).expect("it is among them");
            core.run(RunMode::NoWait)
        });
        if let Err(error) = made {
            panic!("waiting for events failed: {error}");
        }
        share_time(loops.iter().map(|(_, core)| core));
    }

    /// Drops the loops whose runs are over, as their threads would.
    fn drop_ended(&mut self) {
        for index in 1..self.loops.len() {
            if self.crew.has_ended(index) {
                self.drop_loop(index);
            }
        }
    }

    fn drop_loop(&mut self, index: usize) {
        if let Some(event_loop) = self.loops[index].take() {
            drop(event_loop);
            self.crew.drop_rest(index);
        }
    }
}

impl Drop for Several {
    fn drop(&mut self) {
        for index in (0..self.loops.len()).rev() {
            self.drop_loop(index);
        }
    }
}
