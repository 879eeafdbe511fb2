//! Tests that try the orders which libuv leaves open.
//!
//! Which ready socket comes first, which job of the thread pool ends first, how late a timer is:
//! nothing promises it, and on a developer's machine it hardly varies. A shuffled loop varies it on
//! purpose. Each *seed* is one run with other answers to these questions, on the paused clock. What
//! the loop promises stays as it is under every seed: phases, lanes, timers by deadline, hooks,
//! closes, the order within one connection.
//!
//! ```
//! use std::{cell::Cell, rc::Rc, time::Duration};
//! use phaseloop::{shuffle, spawn_blocking, time::sleep};
//!
//! fn main() {
//!     // Two jobs, and a program that does not care which one ends first.
//!     shuffle::explore(50, || async {
//!         let sum = Rc::new(Cell::new(0));
//!         let jobs = [1, 2].map(|n| spawn_blocking(move || n));
//!         for job in jobs {
//!             sum.set(sum.get() + job.await.unwrap());
//!         }
//!         sleep(Duration::from_secs(1)).await;
//!         assert_eq!(sum.get(), 3);
//!     });
//! }
//! ```
//!
//! A seed that fails is run again with fewer and fewer deviations, until none can be left out.
//! The panic of [`explore`] prints what is left, the seed, and how to repeat both.
//!
//! | variable | effect |
//! |---|---|
//! | `PHASELOOP_SEED=117` | runs this seed only; `117..217` runs a range |
//! | `PHASELOOP_SCHEDULE="…"` | runs once with exactly these answers, as the report prints them |
//! | `PHASELOOP_SEEDS=10000` | runs this many seeds in place of the number in the program |
//!
//! # A suite that exists
//!
//! `PHASELOOP_SHUFFLE=117 cargo test` shuffles every loop that is built with a [paused
//! clock](crate::Builder::start_paused), by seed 117, and needs no change of the tests.
//! `PHASELOOP_WITHOUT=late,event` gives the usual answer to these kinds of questions: tests of
//! exact times need timers that are not late. Nothing is shrunk, and other threads may send. Each
//! loop that is shuffled prints a line on standard error, which a test harness shows for a test
//! that fails.
//!
//! # Decisions
//!
//! [`Kind`] lists the questions. An event, a job or a completion is held back at most once, by at
//! most [`max_delay`](Explore::max_delay), and only while something else can happen.
//!
//! # Several loops
//!
//! With the feature `cluster`, `Explore::loops` runs the loops of a cluster on one thread, on one
//! clock and one network in memory. A seed decides which loop makes the next turn.
//!
//! # Repeatability
//!
//! Two runs of one seed are equal as long as the program is deterministic itself. Jobs of the
//! thread pool run on the owner thread when the seed says so. A message of another thread fails the
//! run, unless [`Explore::threads`] permits it. Sockets of the standard library, children, signals
//! and file changes work, but cannot be repeated; a report of a failure names them. In the program
//! itself, the order of a `HashMap`, `Instant::now`, random numbers and statics cannot be repeated.
//! A child that another thread starts meanwhile inherits all sockets until its `exec`, and delays
//! the end of a stream that is closed here. Every failing seed runs twice: if the second run asks
//! other questions, the failure says so and names the first one that differs.

mod builder;
mod explore;
mod found;
mod progress;
mod quiet;
mod recording;
mod runs;
#[cfg(feature = "cluster")]
pub(crate) mod several;
mod shrink;
mod strategy;

pub use crate::choices::{Chooser, Decision, Kind, ParseDecisionError, Question, Threads, Who};
pub(crate) use crate::ways_to_wait::shuffled::network::no_groups;
pub use explore::{Determinism, Explore, Explored, explore, run};
pub use found::Found;
pub use strategy::Strategy;
