//! What tasks wait for at locks and channels, and who has it.

use std::fmt::Write as _;

use super::{Wait, Waits, Who, place_of, short_name};
use crate::event_loop::core::Core;
use crate::executor::notes::Polled;
use crate::executor::primitives::{Described, DescribedWaiter};

/// A lock, or one side of a channel, that tasks wait for.
pub(crate) struct LockState {
    described: Described,
    /// Who used it last: the holder of a lock.
    user: User,
}

/// Who used a primitive last.
#[derive(Clone, Copy)]
enum User {
    /// No task of the loop is known.
    Unknown,
    /// A task that has ended.
    Ended(crate::task_info::Id),
    Known(Who),
}

/// Lists the locks and channels that tasks wait for. It runs no user code.
#[inline]
pub(super) fn relate_locks(core: &Core, waits: &mut Waits) {
    for described in core.executor.described_primitives() {
        let user = match described.last.as_ref().map(|last| last.task) {
            Some(task) => match task.of(&core.executor) {
                Some(Polled::MainFuture) if waits.main.is_some() => User::Known(Who::Main),
                Some(Polled::Task(id)) => match place_of(&waits.tasks, id) {
                    Some(place) => User::Known(Who::Task(place)),
                    None => User::Ended(id),
                },
                _ => User::Unknown,
            },
            None => User::Unknown,
        };
        let place = waits.locks.len();
        for (number, waiter) in described.waiters.iter().enumerate() {
            let who = match waiter.task.of(&core.executor) {
                Some(Polled::MainFuture) => Some(Who::Main),
                Some(Polled::Task(id)) => place_of(&waits.tasks, id).map(Who::Task),
                None => None,
            };
            if let Some(who) = who {
                waits.add_of(who, waiter.waker, Wait::Lock(place, number));
            }
        }
        waits.locks.push(LockState { described, user });
    }
}

impl Waits {
    /// Names a lock or channel, and what is known of it, for one that waits.
    #[inline]
    pub(crate) fn lock_text(&self, place: usize, number: usize) -> String {
        let lock = &self.locks[place];
        let Described { state, .. } = &lock.described;
        let waiter = &lock.described.waiters[number];
        let mut text = self.lock_name(place, waiter);
        let mut separator = if state.is_empty() { ", " } else { ": " };
        let mut add = |part: &str| {
            if !part.is_empty() {
                text += separator;
                text += part;
                separator = ", ";
            }
        };
        add(state);
        add(&waiter
            .wants
            .map_or_else(String::new, |wants| format!("wants {wants}")));
        add(&self.use_text(place));
        text
    }

    /// Returns the name, the line that made it, and the line that waits.
    #[inline]
    fn lock_name(&self, place: usize, waiter: &DescribedWaiter) -> String {
        let Described { label, site, .. } = &self.locks[place].described;
        let mut text = format!("{label} ({site})");
        if let Some(site) = waiter.site {
            let _ = write!(text, " at {site}");
        }
        text
    }

    /// Returns who used a lock or channel last, and where: `taken at src/a.rs:1:2 by task 3`.
    #[inline]
    fn use_text(&self, place: usize) -> String {
        let LockState { described, user } = &self.locks[place];
        let Some(last) = &described.last else {
            return String::new();
        };
        let by = match *user {
            User::Unknown => None,
            User::Ended(id) => Some(format!("task {id}, which has ended")),
            // A call whose line is not known is found by the line of its task.
            User::Known(who) if last.site.is_none() => Some(self.long_name_of(who)),
            User::Known(who) => Some(self.name_of(who)),
        };
        match (last.site, by) {
            (Some(site), Some(by)) => format!("{} at {site} by {by}", last.verb),
            (Some(site), None) => format!("{} at {site}", last.verb),
            (None, Some(by)) => format!("{} by {by}", last.verb),
            (None, None) => String::new(),
        }
    }

    /// Returns the type and the line of creation, which many waits share.
    #[inline]
    pub(crate) fn lock_common(&self, place: usize) -> String {
        let Described { label, site, .. } = &self.locks[place].described;
        format!("{label} ({site})")
    }

    /// Returns the task that has a lock, if no other can end the wait for it.
    #[inline]
    pub(crate) fn holder(&self, place: usize) -> Option<Who> {
        let LockState { described, user } = &self.locks[place];
        match *user {
            User::Known(who) if described.is_held => Some(who),
            _ => None,
        }
    }

    /// Returns the number and the name of a task, or names the main future.
    #[inline]
    pub(crate) fn name_of(&self, who: Who) -> String {
        match who {
            Who::Main => "the main future".to_owned(),
            Who::Task(place) => short_name(&self.tasks[place].info),
        }
    }

    /// Returns the name of a task with the line that spawned it.
    #[inline]
    fn long_name_of(&self, who: Who) -> String {
        match (who, self.main) {
            (Who::Main, Some(site)) => format!("the main future ({site})"),
            (Who::Main, None) => self.name_of(who),
            (Who::Task(place), _) => self.tasks[place].info.to_string(),
        }
    }
}
