//! What phaseloop set out to cost: each goal with the cell that shows it, what was measured, and
//! whether it is met.

use crate::figure::{Figure, INSTRUCTIONS, P99, P999, RESIDENT, SYSCALLS, WALL};
use crate::record::Record;
use crate::verdict::EVEN;
use phaseloop_benches::catalogue::{OURS, RUNTIMES};

/// One goal.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) workload: &'static str,
    measure: Measure,
    bound: Bound,
}

/// What of the cell is looked at.
#[derive(Clone, Copy)]
enum Measure {
    Figure(Figure),
    /// System calls of these names together, and what they do.
    Calls(&'static str, &'static [&'static str]),
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    /// At most 5 % more than any of these peers has.
    NotBehind(&'static [&'static str]),
    /// At least so many times as fast as this peer.
    TimesAsFast(f64, &'static str),
}

use Bound::{AtMost, NotBehind, TimesAsFast};

const READS: Measure = Measure::Calls("reads", &["read", "recvfrom", "recvmsg", "recvmmsg"]);
const WRITES: Measure = Measure::Calls("writes", &["write", "sendto", "sendmsg", "sendmmsg"]);
const WAITS: Measure = Measure::Calls("waits", &["epoll_wait", "epoll_pwait", "epoll_pwait2"]);
const FUTEX: Measure = Measure::Calls("futex", &["futex"]);

const fn goal(workload: &'static str, measure: Measure, bound: Bound) -> Goal {
    Goal {
        workload,
        measure,
        bound,
    }
}

const fn figure(workload: &'static str, figure: Figure, bound: Bound) -> Goal {
    goal(workload, Measure::Figure(figure), bound)
}

const fn instructions(workload: &'static str, most: f64) -> Goal {
    figure(workload, INSTRUCTIONS, AtMost(most))
}

#[rustfmt::skip]
pub(crate) const GOALS: [Goal; 45] = [
    instructions("spawn_join", 400.0),
    instructions("self_wake/1", 130.0),
    instructions("self_wake/1000", 130.0),
    instructions("ping_pong", 200.0),
    instructions("immediates", 350.0),
    goal("immediates", WAITS, AtMost(1.0)),
    instructions("timer_drop/1000", 350.0),
    instructions("timer_drop/1000000", 350.0),
    figure("timer_drop/1000000", SYSCALLS, AtMost(0.0)),
    instructions("timer_fire/100000", 1500.0),
    goal("cross_thread_wake", WRITES, AtMost(1.0)),
    goal("cross_thread_wake", WAITS, AtMost(1.0)),
    goal("cross_thread_wake", READS, AtMost(0.0)),
    figure("idle_task", RESIDENT, NotBehind(&["tokio", "smol"])),

    instructions("tcp_echo/1x64", 700.0),
    goal("tcp_echo/1x64", READS, AtMost(1.0)),
    goal("tcp_echo/1x64", WRITES, AtMost(1.0)),
    goal("tcp_echo/1x64", WAITS, AtMost(1.0)),
    instructions("tcp_echo/50x64", 350.0),
    goal("tcp_echo/50x64", READS, AtMost(1.0)),
    goal("tcp_echo/50x64", WRITES, AtMost(1.0)),
    goal("tcp_echo/50x64", WAITS, AtMost(0.1)),
    instructions("tcp_echo/50x16384", 400.0),
    goal("tcp_echo/50x16384", READS, AtMost(1.0)),
    goal("tcp_echo/50x16384", WRITES, AtMost(1.0)),
    instructions("udp_echo/50", 300.0),
    instructions("udp_batched/50", 60.0),
    goal("udp_batched/50", READS, AtMost(0.2)),
    goal("udp_batched/50", WRITES, AtMost(0.2)),
    figure("idle_connection", RESIDENT, AtMost(500.0)),
    figure("tcp_rate/1000x20000", P99, NotBehind(&["tokio"])),
    figure("tcp_rate/1000x20000", P999, NotBehind(&["tokio"])),

    figure("blocking/1", WALL, NotBehind(&["tokio"])),
    goal("blocking/1", FUTEX, AtMost(2.0)),
    goal("blocking/1", WRITES, AtMost(1.0)),
    goal("blocking/1", WAITS, AtMost(1.0)),
    goal("blocking/1000", FUTEX, AtMost(0.2)),
    figure("blocking/1000", WALL, TimesAsFast(2.0, "tokio")),
    figure("read_files/64", WALL, TimesAsFast(2.0, "tokio")),
    figure("read_files/64", WALL, TimesAsFast(4.0, "node")),
    figure("read_through", WALL, TimesAsFast(0.95, "std")),

    figure("immediates/1000", WALL, TimesAsFast(3.0, "node")),
    figure("next_tick/1000", WALL, TimesAsFast(3.0, "node")),
    figure("microtasks/1000", WALL, TimesAsFast(3.0, "node")),
    figure("set_timeout", WALL, TimesAsFast(3.0, "node")),
];

/// What became of a goal.
pub(crate) struct Outcome {
    pub(crate) workload: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    pub(crate) wanted: String,
    pub(crate) ours: String,
    /// `name value` of each.
    pub(crate) peers: Vec<String>,
    /// `None` if a peer is missing that the goal speaks of.
    pub(crate) met: Option<bool>,
}

/// The goals whose cells were measured.
pub(crate) fn outcomes(record: &Record) -> Vec<Outcome> {
    GOALS
        .iter()
        .filter_map(|goal| goal.outcome(record))
        .collect()
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.name,
            Self::Calls(what, _) => what,
        }
    }

    fn figure(self) -> Figure {
        match self {
            Self::Figure(figure) => figure,
            Self::Calls(..) => SYSCALLS,
        }
    }

    fn value(self, record: &Record, workload: &str, runtime: &str) -> Option<f64> {
        let measured = record.summary(workload, runtime, self.figure())?;
        match self {
            Self::Figure(_) => Some(measured.median),
            Self::Calls(_, names) => {
                let calls = &record.cell(workload, runtime)?.calls;
                Some(names.iter().filter_map(|name| calls.get(*name)).sum())
            }
        }
    }
}

impl Goal {
    fn outcome(&self, record: &Record) -> Option<Outcome> {
        let figure = self.measure.figure();
        let ours = self.measure.value(record, self.workload, OURS)?;
        let peers = RUNTIMES.into_iter().filter(|runtime| *runtime != OURS);
        let peers = peers.filter_map(|runtime| {
            let value = self.measure.value(record, self.workload, runtime)?;
            Some(format!("{runtime} {}", figure.show(value)))
        });
        Some(Outcome {
            workload: self.workload,
            what: self.measure.title(),
            wanted: self.wanted(figure),
            ours: figure.show(ours),
            peers: peers.collect(),
            met: self.met(record, ours),
        })
    }

    fn wanted(&self, figure: Figure) -> String {
        match self.bound {
            AtMost(most) => format!("≤ {}", figure.show(most)),
            NotBehind(peers) => format!("not behind {}", peers.join(", ")),
            TimesAsFast(factor, peer) => format!("≥ {factor} × {peer}'s speed"),
        }
    }

    fn met(&self, record: &Record, ours: f64) -> Option<bool> {
        let figure = self.measure.figure();
        match self.bound {
            AtMost(most) if figure == SYSCALLS => Some(ours <= most + figure.grain()),
            // Compared as printed, so that 400 of 400 is not a miss.
            AtMost(most) => Some(ours.round() <= most),
            NotBehind(peers) => {
                let theirs = peers
                    .iter()
                    .map(|peer| self.measure.value(record, self.workload, peer));
                let least = theirs.collect::<Option<Vec<_>>>()?;
                let least = least.into_iter().fold(f64::INFINITY, f64::min);
                Some(ours <= (1.0 + EVEN) * least)
            }
            TimesAsFast(factor, peer) => {
                let theirs = self.measure.value(record, self.workload, peer)?;
                Some(ours * factor <= theirs)
            }
        }
    }
}

pub(crate) fn print(record: &Record) {
    let outcomes = outcomes(record);
    if outcomes.is_empty() {
        return;
    }
    let met = outcomes.iter().filter(|outcome| outcome.met == Some(true));
    println!("\ngoals: {} of {} met", met.count(), outcomes.len());
    for outcome in outcomes {
        println!(
            "{:8}{:21}{:14}{:>22}{:>10}  {}",
            word(outcome.met),
            outcome.workload,
            outcome.what,
            outcome.wanted,
            outcome.ours,
            outcome.peers.join(" · ")
        );
    }
}

pub(crate) fn word(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "–",
    }
}
