//! The wait of a shuffled loop: events, jobs and completions arrive in an order, and after delays,
//! that a [`Chooser`] decides.
//!
//! ```text
//!   kernel ── take ──> held events ── over ──> batch ── ordered ──> run_events, as ever
//!   pool ──── take ──> window ─────── over ──> run here, as on another thread
//!                                                └──> held ends ── over ──> inbox ──> messages.rs
//! ```
//!
//! Only what arrives from outside of the loop is held: each thing once, for a bounded time, and
//! never longer than something else can happen. What the phases do with it is not changed.

mod attempts;
pub(crate) mod group;
mod jobs;
pub(crate) mod network;
pub(crate) mod outside;
#[cfg(feature = "cluster")]
pub(crate) mod turns;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::choices::{Kind, Limits, Question, Threads, Who};
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::io::sources::{Direction, SourceState};
use crate::event_loop::wait::Wait;
use crate::executor::message::Message;
use crate::label::{Label, Role};
use crate::pool::{Class, Job, Pool};
use crate::report::waits::waits;
use crate::site::Site;
use crate::sys::poller::{Event, NOTIFY_KEY, RawEvent};
use crate::ways_to_wait::peers::Peers;

use self::group::{Group, next_number};

/// The file that panics if the loop is stuck.
pub(crate) const FILE: &str = file!();

/// The answers of a question about a delay.
const DELAYS: usize = 4;

/// The turns after which nothing waits for the clock any more. The clock stands still while the
/// loop is busy; a program that checks in every turn whether an event has come would never get it.
const MOST_TURNS: u64 = 100;

pub(crate) struct Shuffled {
    /// What the loop shares with others of its thread.
    group: Group,
    /// Its index among them.
    index: u32,
    limits: Limits,
    /// The queue that stands for the pool: it has no threads.
    pool: Pool,
    /// The number of each source, by key, in the order of the first events.
    sources: RefCell<HashMap<usize, u32>>,
    moves: Cell<Moves>,
    /// The source about whose next attempt was asked already.
    asked: Cell<Option<usize>>,
    /// The readiness of sources for which an attempt was answered by `WouldBlock`.
    again: RefCell<Vec<Event>>,
    events: HeldList<RawEvent>,
    /// The jobs that threads of the pool would have taken.
    window: HeldList<(Class, Arc<dyn Job>)>,
    /// What jobs have sent, job by job.
    ends: HeldList<Vec<Message>>,
    /// How long the signals are held that were caught; `None` if that was not asked.
    caught: Cell<Option<Until>>,
    /// What the program uses that cannot be repeated.
    outside: RefCell<Vec<(&'static str, Site)>>,
    /// The peers outside of the loop, for which the clock waits.
    peers: Peers,
}

/// The moves of the clock so far.
#[derive(Clone, Copy, Default)]
struct Moves {
    count: u64,
    /// The turn of the last move.
    turn: u64,
}

/// Something that has arrived and is not delivered.
struct Held<T> {
    what: T,
    who: Who,
    until: Until,
}

type HeldList<T> = RefCell<Vec<Held<T>>>;

#[derive(Clone, Copy)]
enum Until {
    Now,
    /// Until a later turn than this one.
    Turn(u64),
    /// Until the turn after the clock has moved again, and at most until this time or turn.
    Move {
        count: u64,
        latest: u64,
        last_turn: u64,
    },
    /// Until this time, and at most until this turn.
    Time {
        latest: u64,
        last_turn: u64,
    },
}

/// What ends a hold.
#[derive(Clone, Copy)]
struct Moment {
    turn: u64,
    moves: Moves,
    now: u64,
}

impl Until {
    fn is_over(self, moment: Moment) -> bool {
        match self {
            Self::Now => true,
            Self::Turn(turn) => moment.turn > turn,
            // In the turn of the move itself, what is due by it runs first.
            Self::Move {
                count,
                latest,
                last_turn,
            } => {
                moment.moves.count > count && moment.turn > moment.moves.turn
                    || moment.now >= latest
                    || moment.turn > last_turn
            }
            Self::Time { latest, last_turn } => moment.now >= latest || moment.turn > last_turn,
        }
    }

    /// Returns the time at which the hold ends, whatever happens.
    fn latest(self) -> u64 {
        match self {
            Self::Now | Self::Turn(_) => 0,
            Self::Move { latest, .. } | Self::Time { latest, .. } => latest,
        }
    }
}

/// Takes what is held no longer out of `list`, in its order.
fn take_over<T>(list: &HeldList<T>, moment: Moment) -> Vec<Held<T>> {
    let mut list = list.borrow_mut();
    let all = std::mem::take(&mut *list).into_iter();
    let (over, kept) = all.partition(|held| held.until.is_over(moment));
    *list = kept;
    over
}

impl Shuffled {
    pub(crate) fn new(
        (group, index): (Group, u32),
        limits: Limits,
        pool: Pool,
        peers: Peers,
    ) -> Self {
        Self {
            group,
            index,
            limits,
            pool,
            sources: RefCell::default(),
            moves: Cell::default(),
            asked: Cell::default(),
            again: RefCell::default(),
            events: RefCell::default(),
            window: RefCell::default(),
            ends: RefCell::default(),
            caught: Cell::default(),
            outside: RefCell::default(),
            peers,
        }
    }

    /// Asks for one of `count` answers. A question with a single answer is not asked.
    fn ask(&self, question: &Question<'_>) -> usize {
        self.group.ask(question)
    }

    fn ask_delay(
        &self,
        kind: Kind,
        who: Option<Who>,
        about: &dyn fmt::Display,
        moment: Moment,
    ) -> Until {
        let count = match kind {
            Kind::Exit | Kind::Caught => 2,
            _ => DELAYS,
        };
        let answer = self.ask(&Question {
            kind,
            who,
            count,
            among: &[],
            about,
        });
        let latest = moment.now.saturating_add(self.limits.max_delay);
        let last_turn = moment.turn + MOST_TURNS;
        match answer {
            0 => Until::Now,
            1 => Until::Turn(moment.turn),
            2 => Until::Move {
                count: moment.moves.count,
                latest,
                last_turn,
            },
            _ => Until::Time { latest, last_turn },
        }
    }

    /// Asks which of several comes next.
    fn ask_next(&self, kind: Kind, among: &[Who]) -> usize {
        self.ask(&Question {
            kind,
            who: None,
            count: among.len(),
            among,
            about: &"",
        })
    }

    /// Orders `list` by repeated questions of `kind`.
    fn order<T>(&self, kind: Kind, mut list: Vec<Held<T>>) -> Vec<Held<T>> {
        let mut among: Vec<Who> = list.iter().map(|held| held.who).collect();
        let mut ordered = Vec::with_capacity(list.len());
        while !list.is_empty() {
            let next = self.ask_next(kind, &among);
            among.remove(next);
            ordered.push(list.remove(next));
        }
        ordered
    }

    fn source_number(&self, key: usize) -> Who {
        let mut sources = self.sources.borrow_mut();
        let number = sources.entry(key);
        Who::Source(*number.or_insert_with(|| next_number(&self.group.sources)))
    }

    fn next_job_number(&self) -> Who {
        Who::Job(next_number(&self.group.jobs))
    }

    /// Returns the earliest time at which a hold ends; `None` if nothing is held.
    fn earliest(&self) -> Option<u64> {
        fn earliest<T>(list: &HeldList<T>) -> Option<u64> {
            list.borrow().iter().map(|held| held.until.latest()).min()
        }
        let all = [
            earliest(&self.events),
            earliest(&self.window),
            earliest(&self.ends),
        ];
        all.into_iter().flatten().min()
    }

    /// Ends the holds that meet a condition. Returns whether there were any.
    fn release(&self, condition: impl Fn(Until) -> bool) -> bool {
        fn release<T>(list: &HeldList<T>, condition: &dyn Fn(Until) -> bool) -> bool {
            let mut any = false;
            for held in list.borrow_mut().iter_mut() {
                if condition(held.until) {
                    held.until = Until::Now;
                    any = true;
                }
            }
            any
        }
        let caught = self.release_caught(&condition);
        let events = release(&self.events, &condition);
        let window = release(&self.window, &condition);
        let ends = release(&self.ends, &condition);
        caught || events || window || ends
    }
}

impl Wait for Shuffled {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self, core: &Core, timeout: u64) -> io::Result<usize> {
        let timeout = (timeout != NEVER).then_some(timeout);
        core.waiting(timeout, true, |timeout, _| {
            self.wait_shuffled(core, timeout)
        })
    }

    fn attempt(
        &self,
        _: &Core,
        source: &SourceState,
        direction: Direction,
        asked: Option<usize>,
    ) -> Option<usize> {
        match asked {
            Some(asked) => {
                let most = self.short_transfer(source, direction, asked);
                self.asked.set(most.map(|_| source.key));
                most
            }
            // The bytes of this attempt were asked about.
            None if self.asked.take() == Some(source.key) => Some(0),
            None => (self.ask_attempt(Kind::Attempt, source, direction, 2) != 1).then_some(0),
        }
    }

    fn note_attempt(&self, source: &SourceState) {
        self.peers.count_attempt(source.key);
        self.asked.set(None);
    }

    fn note_pair(&self, one: &SourceState, other: &SourceState) {
        self.peers.note_pair(one.key, other.key);
    }

    fn note_outside(&self, what: &'static str, site: Site) {
        self.add_outside(what, site);
    }

    fn holds_signals(&self, core: &Core) -> bool {
        self.still_holds_caught(core)
    }

    fn label(&self, key: usize, role: Role) -> Option<Label> {
        self.group.wire.borrow().label((self.index, key), role)
    }

    fn pool(&self) -> Option<&Pool> {
        Some(&self.pool)
    }

    fn take_messages(&self) -> Vec<Message> {
        self.take_ends()
    }

    fn drop_user_code(&self) {
        // The first loop lives the longest.
        if self.index == 0 {
            // Nothing is borrowed while they are dropped.
            let programs = self.group.wire.borrow_mut().take_programs();
            drop(programs);
        }
    }
}

/// Returns the wait of a loop that is shuffled, or has a network in memory.
fn shuffled(core: &Core) -> Option<&Shuffled> {
    core.waits.chosen()?.as_any().downcast_ref()
}

/// Returns whether a test shuffles the order of the loop.
pub(crate) fn is_shuffled(core: &Core) -> bool {
    shuffled(core).is_some()
}

impl Shuffled {
    /// Waits for events on a shuffled loop.
    ///
    /// # Panics
    ///
    /// If the loop is stuck: nothing is left that could wake the program, it has made too many
    /// turns, or a drain of the lanes was too long.
    fn wait_shuffled(&self, core: &Core, timeout: Option<u64>) -> io::Result<()> {
        let limit = self.limits.max_turns;
        assert!(
            core.turn_count() <= limit,
            "the loop has made {limit} turns, and the program has not ended"
        );
        if let Some(limit) = self.limits.max_drain {
            assert!(
                core.executor.budget_hits() == 0,
                "a drain of the lanes has run {limit} ticks and microtasks, and has not ended"
            );
        }
        // The clock may move several times in one wait, and the deadline stays.
        let deadline = timeout.map(|timeout| core.executor.clock.read().saturating_add(timeout));
        loop {
            outside::refuse_foreign_senders(core);
            self.run_jobs(core);
            self.hold_events(core)?;
            self.deliver_ends(core);
            let has_events = self.deliver_events(core);
            let has_work = has_events
                || core.executor.shared.inbox.is_pending()
                || core.has_after_io() && !self.holds_caught(core)
                || timeout == Some(0);
            if has_work {
                return Ok(());
            }
            // What waits for a turn comes before the loop sleeps.
            if self.release(|until| matches!(until, Until::Turn(_))) {
                continue;
            }
            let may_move = core.executor.clock.auto_advance();
            let arrival = self.group.wire.borrow_mut().next_arrival();
            let arrival = arrival.filter(|_| may_move);
            let held = self.earliest();
            let deadline = deadline.filter(|_| may_move);
            match (deadline, held.into_iter().chain(arrival).min()) {
                (Some(deadline), next) => {
                    let timeout = deadline.saturating_sub(core.executor.clock.read());
                    if let Some(next) = next.filter(|next| *next < deadline) {
                        self.note_move(core, next);
                    } else if self.receives_before_move(core, timeout)? {
                        self.hold_batch(core);
                    } else {
                        self.move_clock_to(core, deadline);
                        return Ok(());
                    }
                }
                (None, Some(earliest)) if held == Some(earliest) => {
                    // Nothing else can happen: the oldest hold ends.
                    self.release(|until| until.latest() == earliest);
                }
                (None, Some(arrival)) => self.note_move(core, arrival),
                (None, None) => return self.wait_for_outside(core),
            }
        }
    }

    fn moment(&self, core: &Core) -> Moment {
        Moment {
            turn: core.turn_count(),
            moves: self.moves.get(),
            now: core.executor.clock.read(),
        }
    }

    /// Moves the clock to a deadline, or beyond it.
    fn move_clock_to(&self, core: &Core, deadline: u64) {
        let late = self.group.ask_lateness(self.limits.max_delay);
        self.note_move(core, deadline.saturating_add(late));
    }

    fn note_move(&self, core: &Core, time: u64) {
        core.executor.clock.advance_to(time);
        self.moves.set(Moves {
            count: self.moves.get().count + 1,
            turn: core.turn_count(),
        });
    }

    /// Takes the events of the kernel, and holds them.
    fn hold_events(&self, core: &Core) -> io::Result<()> {
        core.ask_kernel(Some(0))?;
        self.hold_batch(core);
        Ok(())
    }

    /// Decides for each event of the last wait when it is delivered.
    fn hold_batch(&self, core: &Core) {
        let again = self.again.take().into_iter();
        let simulated = again.chain(self.take_simulated(core));
        let batch = core.take_events();
        for event in simulated.map(RawEvent::of).chain(batch) {
            let key = event.key();
            if key == NOTIFY_KEY {
                continue;
            }
            let mut held = self.events.borrow_mut();
            if let Some(earlier) = held.iter_mut().find(|held| held.what.key() == key) {
                earlier.what.merge(&event);
                continue;
            }
            drop(held);
            let who = self.source_number(key);
            let about = About(core.site_of(key));
            let kind = if core.is_exit(key) {
                Kind::Exit
            } else {
                Kind::Delay
            };
            let until = self.ask_delay(kind, Some(who), &about, self.moment(core));
            let held = Held {
                what: event,
                who,
                until,
            };
            self.events.borrow_mut().push(held);
        }
    }

    /// Makes what is held no longer the batch of this wait. Returns whether there is any.
    fn deliver_events(&self, core: &Core) -> bool {
        let over = take_over(&self.events, self.moment(core));
        if over.is_empty() {
            return false;
        }
        let batch = self.order(Kind::Event, over);
        let batch = batch.into_iter().map(|held| held.what);
        core.put_events(batch);
        self.wake_for_nothing(core);
        true
    }

    /// Wakes a task that nothing has happened to, if the chooser says so. The wake arrives as that
    /// of another thread does, with a drain of the lanes after it: a task that was in the lane when
    /// an event is dispatched would be polled before the oldest waiter of the event.
    fn wake_for_nothing(&self, core: &Core) {
        let tasks = core.executor.tasks.len();
        let answer = self.ask(&Question {
            kind: Kind::Wake,
            who: None,
            count: tasks + 1,
            among: &[],
            about: &"a poll for nothing",
        });
        let waker = answer
            .checked_sub(1)
            .and_then(|nth| core.executor.tasks.waker_of_nth(nth));
        if let Some(waker) = waker {
            jobs::send_again(core, vec![Message::Call(Box::new(|| waker.wake()))]);
        }
    }

    /// Waits for something outside of the loop: a descriptor, a child, a signal, another thread.
    fn wait_for_outside(&self, core: &Core) -> io::Result<()> {
        let may_receive = self.limits.threads == Threads::Allow;
        let is_awaited = may_receive || outside::is_awaited(core);
        if is_awaited && core.executor.shared.inbox.park() {
            core.ask_kernel(Some(self.limits.stall))?;
        }
        let is_dead =
            !core.has_events() && !core.executor.shared.inbox.is_pending() && !core.has_after_io();
        if is_dead {
            dead_end([core].into_iter());
        }
        outside::refuse_foreign_senders(core);
        // The events are delivered as they came: what is outside cannot be repeated.
        Ok(())
    }
}

/// The text of the panic of a loop that can only wait for ever.
pub(crate) const DEAD_END: &str =
    "nothing is left that could wake the program, and the main future has not returned";

/// Panics, since the loops can only wait for ever.
fn dead_end<'a>(loops: impl Iterator<Item = &'a Core>) -> ! {
    let circles = loops.flat_map(|core| waits(core).circles());
    let circles: String = circles.map(|circle| format!("\n{circle}")).collect();
    panic!("{DEAD_END}{circles}");
}

/// Names the line that created a source.
struct About(Option<Site>);

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, "{site}"),
            None => Ok(()),
        }
    }
}
