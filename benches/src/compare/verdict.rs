//! Who is ahead: counted for the overview, and listed where it is not us.

use crate::catalogue::{OURS, RUNTIMES, Topic, Workload};
use crate::compare::figure::{FIGURES, Figure};
use crate::compare::record::{Record, Summary};

/// Medians closer than this are even; so are times whose spreads overlap.
pub(crate) const EVEN: f64 = 0.05;

/// What has no runtime is no peer but the floor under all.
const FLOORS: [&str; 2] = ["raw-epoll", "std"];

/// Whether the runtime is compared with us: not ourselves, not a floor.
pub(crate) fn is_peer(runtime: &str) -> bool {
    !runtime.starts_with(OURS) && !FLOORS.contains(&runtime)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ahead,
    Even,
    Behind,
}

pub(crate) fn verdict(figure: Figure, ours: Summary, theirs: Summary) -> Verdict {
    let apart = (ours.median - theirs.median).abs();
    let close = apart <= (EVEN * ours.median.max(theirs.median)).max(figure.grain());
    let overlap = ours.least <= theirs.most && theirs.least <= ours.most;
    if close || (overlap && !figure.counted) {
        Verdict::Even
    } else if ours.median < theirs.median {
        Verdict::Ahead
    } else {
        Verdict::Behind
    }
}

/// The peer with the least of this figure: the base of all ratios.
pub(crate) fn best_peer(
    record: &Record,
    workload: &str,
    figure: Figure,
) -> Option<(&'static str, Summary)> {
    let peers = RUNTIMES.into_iter().filter(|runtime| is_peer(runtime));
    let all = peers.filter_map(|peer| Some((peer, record.summary(workload, peer, figure)?)));
    all.min_by(|a, b| a.1.median.total_cmp(&b.1.median))
}

/// One comparison with one peer.
pub(crate) struct Duel {
    pub(crate) workload: Workload,
    pub(crate) figure: Figure,
    pub(crate) peer: &'static str,
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    pub(crate) verdict: Verdict,
}

impl Duel {
    /// How many times theirs ours is; infinite if theirs is nothing.
    fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }
}

/// Every figure of ours against every peer that has it, the floors left out.
pub(crate) fn duels(record: &Record) -> Vec<Duel> {
    let mut duels = Vec::new();
    for figure in FIGURES.into_iter().filter(Figure::is_cost) {
        for workload in record.workloads_with(figure) {
            let Some(ours) = record.summary(workload.name, OURS, figure) else {
                continue;
            };
            for peer in record.runtimes_with(figure, &[workload]) {
                if !is_peer(peer) {
                    continue;
                }
                if let Some(theirs) = record.summary(workload.name, peer, figure) {
                    duels.push(Duel {
                        workload,
                        figure,
                        peer,
                        ours: ours.median,
                        theirs: theirs.median,
                        verdict: verdict(figure, ours, theirs),
                    });
                }
            }
        }
    }
    duels
}

/// A figure of a workload in which at least one peer is ahead.
pub(crate) struct Loss {
    pub(crate) workload: Workload,
    pub(crate) figure: Figure,
    pub(crate) ours: f64,
    /// How many times the least of theirs ours is.
    pub(crate) worst_ratio: f64,
    /// Each peer that is ahead, with its value.
    pub(crate) ahead: Vec<String>,
}

/// All losses, the worst first.
pub(crate) fn losses(record: &Record) -> Vec<Loss> {
    let mut duels = duels(record);
    duels.retain(|duel| duel.verdict == Verdict::Behind);
    let same = |a: &Duel, b: &Duel| a.workload.name == b.workload.name && a.figure == b.figure;
    // The duels of one figure of one workload stand together.
    let mut losses: Vec<_> = duels.chunk_by(same).map(Loss::of).collect();
    losses.sort_by(|a, b| b.worst_ratio.total_cmp(&a.worst_ratio));
    losses
}

impl Loss {
    fn of(duels: &[Duel]) -> Self {
        let show = |duel: &Duel| format!("{} {}", duel.peer, duel.figure.show(duel.theirs));
        Self {
            workload: duels[0].workload,
            figure: duels[0].figure,
            ours: duels[0].ours,
            worst_ratio: duels.iter().map(Duel::ratio).fold(0.0, f64::max),
            ahead: duels.iter().map(show).collect(),
        }
    }
}

/// How many of these were won, even and lost.
pub(crate) fn score<'a>(duels: impl Iterator<Item = &'a Duel>) -> [usize; 3] {
    let mut score = [0; 3];
    for duel in duels {
        score[duel.verdict as usize] += 1;
    }
    score
}

pub(crate) const TOPICS: [Topic; 11] = [
    Topic::Tasks,
    Topic::Lanes,
    Topic::Timers,
    Topic::Sockets,
    Topic::Pool,
    Topic::Process,
    Topic::Memory,
    Topic::Latency,
    Topic::Fairness,
    Topic::Bursts,
    Topic::Growth,
];
