//! The search behind reports: what waits on the loop, and which task each of it wakes.

mod circles;
mod locks;
mod named;

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use self::locks::{LockState, relate_locks};
use self::named::named_waits;
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::extension::{Due, Waiting};
use crate::event_loop::io::sources::Direction;
use crate::event_loop::ledger::handles::{Header, Stage};
use crate::event_loop::ledger::jobs::{Asker, JobInfo};
use crate::event_loop::phases::timers::Payload;
use crate::event_loop::wait::WaitHook;
use crate::executor::notes::{Polled, Source};
use crate::executor::registry::TaskState;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::label::Label;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::sorted::{SortedMap, sorted_by_number};
use crate::task_info::{Id, Info};

/// The main future, or a task by its place in [`Waits::tasks`].
#[derive(Clone, Copy)]
pub(crate) enum Who {
    Main,
    Task(usize),
}

impl Who {
    /// Returns the place of its [`Activity`].
    #[inline]
    fn place(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Task(place) => place + 1,
        }
    }
}

/// What is known of the main future or of a task.
#[derive(Default)]
struct Activity {
    is_polled: bool,
    is_woken: bool,
    waits: Vec<Wait>,
    /// The data pointers of the wakers by which the [`waits`](Self::waits) end.
    wakers: Vec<*const ()>,
}

/// What a task waits for.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// An entry of [`Waits::found`].
    Found(usize),
    /// A task by its place in [`Waits::tasks`].
    Task(usize),
    Phase(Phase),
    /// An entry of [`Waits::named`].
    Named(usize),
    /// An entry of [`Waits::locks`], and the number of the wait there.
    Lock(usize, usize),
}

/// What a task does.
pub(crate) enum State<'a> {
    IsPolled,
    IsWoken,
    WaitsFor(&'a [Wait]),
    Unknown,
}

/// What waits on a loop.
pub(crate) struct Waits {
    /// Handles, sleeps and jobs.
    pub(crate) found: Vec<Waiting>,
    /// What tasks wait for that is no handle of the loop, and which tasks will end the wait.
    pub(crate) named: Vec<(Waiting, Source)>,
    /// The locks and channels that tasks wait for.
    locks: Vec<LockState>,
    /// The tasks, oldest first.
    pub(crate) tasks: Vec<TaskState>,
    /// The line of the main future, if there is one.
    pub(crate) main: Option<Site>,
    /// The name of the runtime inside the loop, if there is one.
    pub(crate) runtime: Option<&'static str>,
    /// Whose waker a data pointer belongs to, and whether the waker is of another library.
    owners: SortedMap<usize, (Who, bool)>,
    /// That of the main future, and behind it those of the tasks.
    activities: Vec<Activity>,
}

/// Returns what waits on the loop. It runs no user code.
#[inline]
pub(crate) fn waits(core: &Core) -> Waits {
    waits_by(core, &[])
}

/// Returns what waits on the loop, if more wakers than those of reports are known. It runs no
/// user code.
#[inline]
pub(crate) fn waits_by(core: &Core, known: &[(Polled, *const ())]) -> Waits {
    let tasks = core.task_states();
    let main = core.executor.main_info();
    let woken = woken_slots(core);
    let mut waits = Waits {
        found: all_that_waits(core, &tasks),
        named: named_waits(core),
        locks: Vec::new(),
        main: main.map(|main| main.site),
        runtime: core.waits.hook().map(WaitHook::name),
        owners: owners(core, &tasks, known),
        activities: vec![Activity {
            is_polled: core.executor.polls_main_future(),
            ..Activity::default()
        }],
        tasks,
    };
    waits.activities.extend(waits.tasks.iter().map(|task| {
        let is = |found: &dyn Fn(u32) -> bool| task.slot.is_some_and(found);
        Activity {
            is_polled: is(&|slot| core.executor.is_polled(slot)),
            is_woken: is(&|slot| woken.get(slot as usize).is_some()),
            ..Activity::default()
        }
    }));
    waits.relate(&core.executor.awaited_sets());
    for phase in Phase::ALL {
        for waker in core.phases.queue(phase).wakers() {
            waits.add(waker, Wait::Phase(phase));
        }
    }
    relate_locks(core, &mut waits);
    waits
}

/// Lists handles, sleeps and jobs.
#[inline]
fn all_that_waits(core: &Core, tasks: &[TaskState]) -> Vec<Waiting> {
    let mut found = Vec::new();
    let now = core.executor.clock.read();
    let mut due_timers = Vec::new();
    let mut sleeps = Vec::new();
    core.phases.each_timer(|deadline, payload, referenced| {
        let due = Due::from(deadline, now);
        match payload {
            Payload::Timer(timer) => {
                due_timers.push((address(&timer.header), due));
            }
            Payload::Sleep { waker, site } => {
                let sleep = Waiting {
                    due: Some(due),
                    keeps_alive: referenced,
                    wakers: vec![waker.data()],
                    ..Waiting::new(Keeper::Sleep, Some(site))
                };
                sleeps.push((due.0, sleep));
            }
        }
    });
    let due_timers: SortedMap<_, _> = due_timers.into_iter().collect();
    let sources = core.io.sources().into_iter();
    let mut waits: SortedMap<_, _> = sources
        .map(|source| {
            (
                address(&source.header),
                (source.waits(), source.has_request()),
            )
        })
        .collect();
    for header in core.ledger.headers() {
        let waits = waits.remove(address(&header));
        let (directions, has_request) = waits.unwrap_or_default();
        let due = due_timers.get(address(&header)).copied();
        let label = header.label(core);
        let waiting = Waiting::of_handle(&header, label, directions, has_request, due);
        found.push(waiting);
    }
    found.extend(sorted_by_number(sleeps));
    let jobs = core.ledger.jobs();
    found.extend(jobs.iter().map(|job| waiting_job(core, job, tasks)));
    if let Some(extension) = core.extension.get() {
        extension.report(&mut found);
    }
    found
}

#[inline]
fn waiting_job(core: &Core, job: &JobInfo, tasks: &[TaskState]) -> Waiting {
    let of_task = |id: Id| place_of(tasks, id).map(|place| tasks[place].waker);
    let purpose = job.purpose;
    Waiting {
        label: Label::new("pool job", purpose.operation),
        state: format!("class {:?}", purpose.class),
        keeps_alive: true,
        wakers: Vec::from_iter(match &job.asked_by {
            Asker::Task(id) | Asker::Handle { id, .. } => of_task(*id),
            Asker::MainFuture => core.executor.main_info().map(|main| main.waker()),
            Asker::Callback => None,
        }),
        ..Waiting::new(Keeper::Work, purpose.site)
    }
}

/// Returns the slots of the tasks that were woken and are not polled yet.
#[inline]
fn woken_slots(core: &Core) -> SortedMap<usize, ()> {
    let mut slots = Vec::new();
    let mut add = |runnable: &Runnable| slots.push((runnable.slot() as usize, ()));
    core.io.each_woken(&mut add);
    core.executor.each_woken(add);
    slots.into_iter().collect()
}

/// Returns whose waker each known data pointer belongs to.
#[inline]
fn owners(
    core: &Core,
    tasks: &[TaskState],
    known: &[(Polled, *const ())],
) -> SortedMap<usize, (Who, bool)> {
    let who = |polled| match polled {
        Polled::MainFuture => Some(Who::Main),
        Polled::Task(id) => place_of(tasks, id).map(Who::Task),
    };
    let foreign = core.executor.foreign_wakers().into_iter();
    let foreign = foreign.filter_map(|(waker, polled)| Some((waker, (who(polled)?, true))));
    let known = known.iter();
    let known = known.filter_map(|&(polled, waker)| Some((waker, (who(polled)?, false))));
    let own = tasks.iter().enumerate();
    let own = own.map(|(place, task)| (task.waker, (Who::Task(place), false)));
    let main = core.executor.main_info();
    let main = main.map(|main| (main.waker(), (Who::Main, false)));
    let owners = foreign.chain(own).chain(main).chain(known);
    owners.map(|(waker, who)| (waker.addr(), who)).collect()
}

impl Waits {
    /// Notes what the tasks wait for.
    #[inline]
    fn relate(&mut self, sets: &[(*const (), Vec<Id>)]) {
        for place in 0..self.found.len() {
            for waker in self.found[place].wakers.clone() {
                self.add(waker, Wait::Found(place));
            }
        }
        for place in 0..self.named.len() {
            self.relate_named(place);
        }
        for place in 0..self.tasks.len() {
            if let Some(awaiter) = self.tasks[place].awaiter {
                self.add(awaiter, Wait::Task(place));
            }
        }
        for (waker, members) in sets {
            for &id in members {
                if let Some(place) = place_of(&self.tasks, id) {
                    self.add(*waker, Wait::Task(place));
                }
            }
        }
    }

    /// Notes that the task with a waker waits for `what`.
    #[inline]
    fn add(&mut self, waker: *const (), what: Wait) {
        if let Some(&(who, _)) = self.owners.get(waker.addr()) {
            self.add_of(who, waker, what);
        }
    }

    /// Notes that a task waits for `what`, by a waker.
    #[inline]
    fn add_of(&mut self, who: Who, waker: *const (), what: Wait) {
        let activity = &mut self.activities[who.place()];
        activity.waits.push(what);
        activity.wakers.push(waker);
    }

    /// Returns for each task whether others, or the main future, wait for it.
    #[inline]
    pub(crate) fn awaited_tasks(&self) -> Vec<bool> {
        let mut awaited = vec![false; self.tasks.len()];
        for wait in self.activities.iter().flat_map(|activity| &activity.waits) {
            if let Wait::Task(place) = *wait {
                awaited[place] = true;
            }
        }
        awaited
    }

    #[inline]
    pub(crate) fn state(&self, who: Who) -> State<'_> {
        match &self.activities[who.place()] {
            Activity {
                is_polled: true, ..
            } => State::IsPolled,
            Activity { is_woken: true, .. } => State::IsWoken,
            Activity { waits, .. } if waits.is_empty() => State::Unknown,
            Activity { waits, .. } => State::WaitsFor(waits),
        }
    }

    /// Returns the data pointers of the wakers by which the waits of [`state`](Self::state) end.
    #[inline]
    pub(crate) fn wakers(&self, who: Who) -> &[*const ()] {
        &self.activities[who.place()].wakers
    }

    /// Names what has a waker, if it is known.
    #[inline]
    pub(crate) fn owner_of(&self, waker: *const ()) -> Option<String> {
        let &(who, is_foreign) = self.owners.get(waker.addr())?;
        let name = self.name_of(who);
        Some(if is_foreign {
            format!("a waker of {name}")
        } else {
            name
        })
    }
}

/// Distinguishes one handle from another.
#[inline]
fn address(header: &Rc<Header>) -> usize {
    Rc::as_ptr(header).addr()
}

/// Returns the place of a task in the list, which is in the order of the numbers.
#[inline]
fn place_of(tasks: &[TaskState], id: Id) -> Option<usize> {
    tasks.binary_search_by_key(&id, |task| task.info.id()).ok()
}

/// Returns the number and the name of a task, without its line.
#[inline]
pub(crate) fn short_name(info: &Info) -> String {
    match info.name() {
        Some(name) => format!("task {} {name:?}", info.id()),
        None => format!("task {}", info.id()),
    }
}

impl Due {
    #[inline]
    pub(crate) fn from(deadline: u64, now: u64) -> Self {
        Self(if deadline == NEVER {
            NEVER
        } else {
            deadline.saturating_sub(now)
        })
    }
}

impl fmt::Display for Due {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NEVER => f.write_str("never due"),
            0 => f.write_str("due now"),
            // Milliseconds are precise enough for a reader.
            nanoseconds if nanoseconds > 1_000_000 => {
                write!(
                    f,
                    "due in {:?}",
                    Duration::from_millis(nanoseconds / 1_000_000)
                )
            }
            nanoseconds => write!(f, "due in {:?}", Duration::from_nanos(nanoseconds)),
        }
    }
}

impl Waiting {
    #[inline]
    /// Something of a kind that waits, which the line `site` created.
    pub fn new(kind: Keeper, site: Option<Site>) -> Self {
        Self {
            label: Label::new(kind.text(), ""),
            site,
            state: String::new(),
            due: None,
            keeps_alive: false,
            wakers: Vec::new(),
        }
    }

    /// Something that a program in another language waits for, and the place in that program.
    #[inline]
    pub fn at_place(what: &'static str, place: &str) -> Self {
        Self {
            label: Label::new(what, place),
            ..Self::new(Keeper::Timer, None)
        }
    }

    #[inline]
    fn of_handle(
        header: &Header,
        label: Label,
        directions: Vec<(Direction, Vec<*const ()>)>,
        has_request: bool,
        due: Option<Due>,
    ) -> Self {
        let (active, referenced) = (header.is_active(), header.referenced.get());
        let is_closing = header.stage.get() != Stage::Open;
        let waiters: Vec<_> = directions
            .iter()
            .map(|(direction, _)| direction.waiter())
            .collect();
        let mut state = if is_closing {
            "closed, completes in the closing phase".to_owned()
        } else if !waiters.is_empty() {
            let verb = if waiters.len() == 1 { "is" } else { "are" };
            format!("{} {verb} waiting", waiters.join(" and "))
        } else if active {
            String::new()
        } else if header.kind == Keeper::Io {
            "no task is waiting".to_owned()
        } else {
            "not started".to_owned()
        };
        if !referenced {
            state += if state.is_empty() {
                "unref'd"
            } else {
                ", unref'd"
            };
        }
        Self {
            label,
            state,
            due: due.filter(|_| active),
            keeps_alive: is_closing || active && referenced || has_request,
            wakers: directions
                .into_iter()
                .flat_map(|(_, who)| who)
                .chain(header.wakers())
                .collect(),
            ..Self::new(header.kind, Some(header.site))
        }
    }

    /// Returns the label and the line of its creation.
    #[inline]
    pub(crate) fn name(&self) -> String {
        self.with_site(&self.label)
    }

    /// Returns the type and the line of its creation, which many others may share.
    #[inline]
    pub(crate) fn common_name(&self) -> String {
        self.with_site(&self.label.what)
    }

    #[inline]
    fn with_site(&self, label: &dyn fmt::Display) -> String {
        match self.site {
            Some(site) => format!("{label} ({site})"),
            None => label.to_string(),
        }
    }
}

impl Direction {
    #[inline]
    fn waiter(self) -> &'static str {
        match self {
            Self::Read => "a reader",
            Self::Write => "a writer",
            Self::Priority => "a reader of urgent data",
            Self::HangUp => "a task for the peer's hang-up",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;
    use std::time::Duration;

    use tokio_test::assert_pending;
    use waker_fn::waker_fn;

    use crate::event_loop::EventLoop;
    use crate::runtime::loop_handle::LoopHandle;
    use crate::time::sleep;

    /// The notes of wakers that are gone are removed: a program that makes many keeps few.
    #[test]
    fn notes_of_foreign_wakers_do_not_pile_up() {
        let event_loop = EventLoop::new().unwrap();
        event_loop.block_on(async {
            let hour = Duration::from_secs(3600);
            // The closures hold a number, so that each waker has an address of its own.
            let wakers: Vec<_> = (0..5_000)
                .map(|number| waker_fn(move || panic!("nothing wakes {number}")))
                .collect();
            let mut kept = pin!(sleep(hour));
            let mut first = Context::from_waker(&wakers[0]);
            assert_pending!(kept.as_mut().poll(&mut first));
            for waker in &wakers {
                let given_up = pin!(sleep(hour));
                assert_pending!(given_up.poll(&mut Context::from_waker(waker)));
            }
            let notes = LoopHandle::current().core().executor.foreign_wakers();
            assert!(notes.len() < 2_000, "{}", notes.len());
            assert!(notes.contains_key(&wakers[0].data()), "it is registered");
        });
    }
}
