//! Who is ahead: counted for the overview, and listed where it is not us.

use crate::figure::{FIGURES, Figure};
use crate::record::{Record, Summary};
use phaseloop_benches::catalogue::{OURS, Topic, Workload};

/// Medians closer than this are even; so are times whose spreads overlap.
const EVEN: f64 = 0.05;

/// The loop without a runtime is no peer but the floor under all.
pub(super) const FLOOR: &str = "raw-epoll";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ahead,
    Even,
    Behind,
}

pub(super) fn verdict(figure: Figure, ours: Summary, theirs: Summary) -> Verdict {
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

/// One comparison with one peer.
pub(super) struct Duel {
    pub(super) workload: Workload,
    pub(super) figure: Figure,
    pub(super) peer: &'static str,
    pub(super) ours: f64,
    pub(super) theirs: f64,
    pub(super) verdict: Verdict,
}

impl Duel {
    /// How many times theirs ours is; infinite if theirs is nothing.
    pub(super) fn ratio(&self) -> f64 {
        self.ours / self.theirs
    }
}

/// Every figure of ours against every peer that has it, the floor left out.
pub(super) fn duels(record: &Record) -> Vec<Duel> {
    let mut duels = Vec::new();
    for figure in FIGURES {
        for workload in record.workloads_with(figure) {
            let Some(ours) = record.summary(workload.name, OURS, figure) else {
                continue;
            };
            for peer in record.runtimes_with(figure, &[workload]) {
                if peer.starts_with(OURS) || peer == FLOOR {
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

/// How many of these were won, even and lost.
pub(super) fn score<'a>(duels: impl Iterator<Item = &'a Duel>) -> [usize; 3] {
    let mut score = [0; 3];
    for duel in duels {
        score[duel.verdict as usize] += 1;
    }
    score
}

pub(super) const TOPICS: [Topic; 9] = [
    Topic::Tasks,
    Topic::Lanes,
    Topic::Timers,
    Topic::Sockets,
    Topic::Pool,
    Topic::Process,
    Topic::Memory,
    Topic::Latency,
    Topic::Fairness,
];
