//! Several shuffled loops on one thread, which take turns on one clock.
//!
//! No loop of a group waits. It makes single turns, and the group decides which loop that can go on
//! makes the next one. When none can, the clock of all moves, by the rules for one loop.
// Rule C23.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::group::Group;
use super::{HeldList, Moment, Shuffled, dead_end, outside, shuffled};
use crate::choices::{Kind, Question, Threads, Who};
use crate::event_loop::core::Core;
use crate::sys;

/// The turns of other loops after which one that can go on has the next turn.
const MOST_PASSED: u32 = 100;

/// How long one loop of several waits at a time for what is outside, in nanoseconds.
const LOOK: u64 = 1_000_000;

/// Decides which of several loops makes the next turn.
pub(crate) struct Turns {
    group: Group,
    /// The index of the loop that is next in turn.
    next: usize,
    /// How many turns of others each loop has let pass, by index.
    passed: Vec<u32>,
}

impl Turns {
    pub(crate) fn new(group: Group, loops: usize) -> Self {
        Self {
            group,
            next: 0,
            passed: vec![0; loops],
        }
    }

    /// Returns the loop that makes the next turn, by index. `loops` has those that have not ended.
    ///
    /// # Panics
    ///
    /// If nothing is left that could wake the program.
    pub(crate) fn next(&mut self, loops: &[(usize, Rc<Core>)]) -> io::Result<usize> {
        loop {
            let mut ready = Vec::with_capacity(loops.len());
            for (index, core) in loops {
                if shuffled(core).is_some_and(|wait| wait.can_go_on(core)) {
                    ready.push(*index);
                }
            }
            // The next index comes first.
            ready.sort_by_key(|index| (*index < self.next, *index));
            if let Some(chosen) = self.choose(&ready) {
                self.next = chosen + 1;
                return Ok(chosen);
            }
            let cores: Vec<_> = loops.iter().map(|(_, core)| core).collect();
            self.group.go_on(&cores)?;
        }
    }

    fn choose(&mut self, ready: &[usize]) -> Option<usize> {
        let starved = |index: &&usize| self.passed[**index] >= MOST_PASSED;
        let chosen = match ready.iter().find(starved) {
            Some(starved) => *starved,
            None => {
                let loops = ready.iter().map(|index| Who::Loop(*index as u32));
                let among: Vec<_> = loops.collect();
                let answer = self.group.ask(&Question {
                    kind: Kind::Loop,
                    who: None,
                    count: among.len(),
                    among: &among,
                    about: &"",
                });
                *ready.get(answer)?
            }
        };
        for index in ready {
            self.passed[*index] += 1;
        }
        self.passed[chosen] = 0;
        Some(chosen)
    }
}

/// Sets the clock of each loop to that of the loop which is ahead: a program may advance the time.
pub(crate) fn share_time<'a>(loops: impl Iterator<Item = &'a Rc<Core>> + Clone) {
    let now = loops.clone().map(|core| core.executor.clock.read()).max();
    for core in loops {
        core.executor.clock.advance_to(now.unwrap_or(0));
    }
}

impl Group {
    /// Lets something happen to loops that all wait.
    fn go_on(&self, loops: &[&Rc<Core>]) -> io::Result<()> {
        if look(loops, 0)? {
            return Ok(());
        }
        let waits = || loops.iter().filter_map(|core| shuffled(core));
        let may_move = loops.iter().all(|core| core.executor.clock.auto_advance());
        let arrival = self.wire.borrow_mut().next_arrival();
        let arrival = arrival.filter(|_| may_move);
        let held = waits().filter_map(Shuffled::earliest).min();
        let timers = loops.iter().filter_map(|core| core.phases.next_timer());
        let deadline = timers.map(|next| next.deadline).min();
        let deadline = deadline.filter(|_| may_move);
        match (deadline, held.into_iter().chain(arrival).min()) {
            (Some(deadline), Some(next)) if next < deadline => move_clock(loops, next),
            (Some(deadline), _) => {
                if !await_outside(loops, false)? {
                    let most = waits().map(|wait| wait.limits.max_delay).max();
                    let late = self.ask_lateness(most.unwrap_or(0));
                    move_clock(loops, deadline.saturating_add(late));
                }
            }
            (None, Some(earliest)) if held == Some(earliest) => {
                // Nothing else can happen: the oldest hold ends.
                for wait in waits() {
                    wait.release(|until| until.latest() == earliest);
                }
            }
            (None, Some(arrival)) => move_clock(loops, arrival),
            (None, None) => {
                if !await_outside(loops, true)? {
                    dead_end(loops.iter().map(|core| &***core));
                }
            }
        }
        Ok(())
    }
}

fn move_clock(loops: &[&Rc<Core>], time: u64) {
    for core in loops {
        if let Some(wait) = shuffled(core) {
            wait.note_move(core, time);
        }
    }
}

/// Takes what the kernel has for the loops, each of which waits for at most `timeout` nanoseconds.
/// Returns whether one of them can go on.
fn look(loops: &[&Rc<Core>], timeout: u64) -> io::Result<bool> {
    let mut any = false;
    for core in loops {
        let Some(wait) = shuffled(core) else { continue };
        if wait.has_peers() && core.executor.shared.inbox.park() {
            core.ask_kernel(Some(timeout))?;
            wait.hold_batch(core);
        }
        outside::refuse_foreign_senders(core);
        any |= wait.can_go_on(core);
    }
    Ok(any)
}

/// Waits in real time for what is outside of the loops, if the program waits for it; `is_last` is
/// whether nothing else can happen. Returns whether a loop can go on.
fn await_outside(loops: &[&Rc<Core>], is_last: bool) -> io::Result<bool> {
    let waits = || {
        loops
            .iter()
            .filter_map(|core| Some((core, shuffled(core)?)))
    };
    let is_awaited = waits().any(|(core, wait)| {
        let may_receive = is_last && wait.limits.threads == Threads::Allow;
        may_receive || wait.has_peers() && outside::is_awaited(core)
    });
    if !is_awaited {
        return Ok(false);
    }
    let stall = waits().map(|(_, wait)| wait.limits.stall).max();
    let stall = Duration::from_nanos(stall.unwrap_or(0));
    let begun = sys::clock::monotonic();
    while begun.elapsed() < stall {
        if look(loops, LOOK)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Shuffled {
    /// Returns whether the loop has something to do in its next turn.
    fn can_go_on(&self, core: &Core) -> bool {
        self.fill_window(core);
        let moment = Moment {
            turn: core.turn_count() + 1,
            moves: self.moves.get(),
            now: core.executor.clock.read(),
        };
        let next = core.phases.next_timer().map(|next| next.deadline);
        core.has_work_now()
            || core.has_events()
            || next.is_some_and(|deadline| deadline <= moment.now)
            || core.has_after_io() && !self.holds_caught(core)
            || !self.again.borrow().is_empty()
            || self.has_over(moment)
            || self.has_simulated(moment.now)
    }

    fn has_over(&self, moment: Moment) -> bool {
        fn any<T>(list: &HeldList<T>, moment: Moment) -> bool {
            list.borrow().iter().any(|held| held.until.is_over(moment))
        }
        any(&self.events, moment) || any(&self.window, moment) || any(&self.ends, moment)
    }

    /// Returns whether packets for the loop have arrived.
    fn has_simulated(&self, now: u64) -> bool {
        let mut wire = self.group.wire.borrow_mut();
        wire.set_now(now);
        wire.deliver_arrived();
        wire.has_events(self.index)
    }
}
