//! Circles of waits: tasks that wait for locks and tasks only, each of which waits in its turn.

use std::fmt::Write as _;

use super::{State, Wait, Waits, Who};

impl Waits {
    /// Returns a line for each circle of waits.
    #[inline]
    pub(crate) fn circles(&self) -> Vec<String> {
        let stuck = self.stuck();
        let mut circles = Vec::new();
        // In which search a task was met; zero if in none.
        let mut met = vec![0; stuck.len()];
        for start in self.all_whos() {
            let search = start.place() + 1;
            let mut way = Vec::new();
            let mut next = Some(start);
            while let Some(who) = next.filter(|who| stuck[who.place()]) {
                match met[who.place()] {
                    0 => {
                        met[who.place()] = search;
                        way.push(who);
                        next = self.first_target(who);
                    }
                    number if number == search => {
                        let first = way.iter().position(|one| one.place() == who.place());
                        circles.push(self.circle_text(&way[first.unwrap_or_default()..]));
                        break;
                    }
                    _ => break,
                }
            }
        }
        circles
    }

    /// Returns for each task whether it waits for locks and tasks only that are stuck, too. A task
    /// may go on after the first of its waits has ended, so all of them have to be.
    fn stuck(&self) -> Vec<bool> {
        let mut stuck: Vec<_> = self.all_whos().map(|who| self.may_be_stuck(who)).collect();
        // Who waits for whom, backwards, so that each task is freed once.
        let mut waiters = vec![Vec::new(); stuck.len()];
        for who in self.all_whos().filter(|who| stuck[who.place()]) {
            for target in self.targets(who).flatten() {
                waiters[target.place()].push(who.place());
            }
        }
        let mut free: Vec<_> = (0..stuck.len()).filter(|place| !stuck[*place]).collect();
        while let Some(place) = free.pop() {
            for waiter in std::mem::take(&mut waiters[place]) {
                if std::mem::replace(&mut stuck[waiter], false) {
                    free.push(waiter);
                }
            }
        }
        stuck
    }

    fn all_whos(&self) -> impl Iterator<Item = Who> + use<> {
        let tasks = 0..self.tasks.len();
        std::iter::once(Who::Main).chain(tasks.map(Who::Task))
    }

    /// Returns whether all waits of a task are for locks that a task has, and for tasks.
    fn may_be_stuck(&self, who: Who) -> bool {
        let is_waiting = matches!(self.state(who), State::WaitsFor(_));
        is_waiting && self.targets(who).all(|target| target.is_some())
    }

    /// Returns who can end each wait of a task, if it is one task.
    fn targets(&self, who: Who) -> impl Iterator<Item = Option<Who>> {
        let waits: &[Wait] = match self.state(who) {
            State::WaitsFor(waits) => waits,
            _ => &[],
        };
        waits.iter().map(|wait| match *wait {
            Wait::Task(place) => Some(Who::Task(place)),
            Wait::Lock(place, _) => self.holder(place),
            Wait::Found(_) | Wait::Named(_) | Wait::Phase(_) => None,
        })
    }

    fn first_target(&self, who: Who) -> Option<Who> {
        self.targets(who).next().flatten()
    }

    fn circle_text(&self, circle: &[Who]) -> String {
        let mut text = "A circle of waits, which nothing ends: ".to_owned();
        for (number, &who) in circle.iter().enumerate() {
            let State::WaitsFor([wait, ..]) = self.state(who) else {
                continue;
            };
            if number == 0 {
                text += &self.name_of(who);
            } else {
                text += ", which";
            }
            // The text of a lock ends with its holder, who is next.
            let _ = match *wait {
                Wait::Lock(place, number) => {
                    write!(text, " waits for {}", self.lock_text(place, number))
                }
                Wait::Task(place) => write!(text, " waits for {}", self.tasks[place].info),
                Wait::Found(_) | Wait::Named(_) | Wait::Phase(_) => Ok(()),
            };
        }
        text
    }
}
