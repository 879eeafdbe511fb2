//! Which loop gets a connection.
// Rules C14, C15.

use std::time::{Duration, Instant};

use crate::metrics::Utilization;

/// How connections are spread over the loops of a cluster; see
/// [`Listen::balance`](super::Listen::balance).
///
/// With `LeastLag` and `RoundRobin` loop 0 accepts, and hands the connections over. While loop 0 is
/// stuck in a callback, no loop accepts; `ReusePort` is the policy without that tie.
///
/// # Examples
///
/// ```
/// use phaseloop::cluster::{self, Balance};
///
/// fn main() -> std::io::Result<()> {
///     cluster::Builder::new().loops(2).block_on(async {
///         let listeners = cluster::listen("127.0.0.1:0").balance(Balance::RoundRobin).await?;
///         assert!(listeners.local_addr().ip().is_loopback());
///         Ok(())
///     })?
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Balance {
    /// A connection goes to the loop that was the least busy of late, by its measured active time;
    /// among equals to the one with the fewest accepted connections. A stuck loop gets none. Loop 0
    /// pays for accepting, and gets fewer.
    #[default]
    LeastLag,
    /// The loops get a connection each, in turn. A loop whose queue is full is left out.
    RoundRobin,
    /// Each loop has a listener of its own on the same port, and the kernel spreads the connections
    /// by a hash of their addresses. Linux, Android and FreeBSD only.
    ReusePort,
}

/// How often the loops are looked at, at most.
const LOOK: Duration = Duration::from_millis(20);

/// The steps in which the activity of loops is compared. Below one, the connections decide.
const STEPS: f64 = 100.0;

/// Chooses loops, by a policy.
pub(super) struct Balancer {
    policy: Balance,
    loops: Vec<Lag>,
    last_look: Option<Instant>,
    /// The mean activity of a connection at the last look.
    charge: f64,
    /// The loop that comes next in turn.
    next: usize,
}

/// What is known of a loop.
#[derive(Clone)]
struct Lag {
    /// The smoothed share of active time.
    share: f64,
    seen: Utilization,
    /// The connections that it was given since the last look.
    given: u32,
}

/// A loop at this moment.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// The accepted connections, and those on their way.
    pub(super) connections: usize,
    pub(super) utilization: Utilization,
    /// Whether it takes a connection.
    pub(super) has_room: bool,
}

impl Balancer {
    pub(super) fn new(policy: Balance, loops: usize) -> Self {
        let lag = Lag {
            share: 0.0,
            seen: Utilization::default(),
            given: 0,
        };
        Self {
            policy,
            loops: vec![lag; loops],
            last_look: None,
            charge: 0.0,
            next: 0,
        }
    }

    /// Returns the loop that gets the next connection, or `None` if no loop has room.
    pub(super) fn choose(&mut self, now: Instant, loops: &[Load]) -> Option<usize> {
        let with_room = |index: &usize| loops[*index].has_room;
        let chosen = if self.policy == Balance::LeastLag {
            self.look(now, loops);
            let key = |index: &usize| (self.steps(*index), loops[*index].connections);
            (0..loops.len()).filter(with_room).min_by_key(key)?
        } else {
            let turn = (self.next..loops.len()).chain(0..self.next);
            turn.into_iter().find(with_room)?
        };
        self.loops[chosen].given += 1;
        self.next = (chosen + 1) % loops.len();
        Some(chosen)
    }

    fn look(&mut self, now: Instant, loops: &[Load]) {
        let is_due = self
            .last_look
            .is_none_or(|last| now.saturating_duration_since(last) >= LOOK);
        if !is_due {
            return;
        }
        let is_first = self.last_look.replace(now).is_none();
        for (lag, load) in self.loops.iter_mut().zip(loops) {
            let since = load.utilization.since(&lag.seen);
            lag.seen = load.utilization;
            lag.given = 0;
            // The first look has nothing to compare with.
            if !is_first {
                lag.share = f64::midpoint(lag.share, since.share());
            }
        }
        let connections: usize = loops.iter().map(|load| load.connections).sum();
        let shares: f64 = self.loops.iter().map(|lag| lag.share).sum();
        self.charge = shares / connections.max(1) as f64;
    }

    /// Returns how busy a loop is, with what it was given since the last look.
    fn steps(&self, index: usize) -> u64 {
        let lag = &self.loops[index];
        // The sum is small and not negative.
        ((lag.share + f64::from(lag.given) * self.charge) * STEPS) as u64
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Balance, Balancer, LOOK, Load, Utilization};

    fn load(connections: usize, active: u64, idle: u64) -> Load {
        Load {
            connections,
            utilization: Utilization {
                active: Duration::from_millis(active),
                idle: Duration::from_millis(idle),
            },
            has_room: true,
        }
    }

    // C15: without a difference of activity, the connections decide, then the index.
    #[test]
    fn idle_loops_are_balanced_by_connections() {
        let now = Instant::now();
        let mut balancer = Balancer::new(Balance::LeastLag, 3);
        let mut loops = [load(2, 0, 0), load(0, 0, 0), load(1, 0, 0)];
        let mut given = Vec::new();
        for _ in 0..6 {
            let chosen = balancer.choose(now, &loops).unwrap();
            loops[chosen].connections += 1;
            given.push(chosen);
        }
        assert_eq!(given, [1, 1, 2, 0, 1, 2]);
    }

    // C15: a loop that is stuck gets nothing, whatever the connections.
    #[test]
    fn a_stuck_loop_gets_nothing() {
        let begun = Instant::now();
        let mut balancer = Balancer::new(Balance::LeastLag, 2);
        balancer.choose(begun, &[load(0, 0, 0), load(0, 0, 0)]);
        for n in 1..20 {
            let loops = [load(0, 50 * n, 0), load(10 * n as usize, 5 * n, 45 * n)];
            let now = begun + Duration::from_millis(50 * n);
            assert_eq!(balancer.choose(now, &loops), Some(1));
        }
    }

    // C15: connections that are given between two looks are charged, so that they do not all go to
    // one loop.
    #[test]
    fn a_burst_between_two_looks_is_spread() {
        let begun = Instant::now();
        let mut balancer = Balancer::new(Balance::LeastLag, 2);
        balancer.choose(begun, &[load(0, 0, 0), load(0, 0, 0)]);
        let loops = [load(20, 10, 10), load(20, 9, 11)];
        let given = |balancer: &mut Balancer, at| {
            let chosen = (0..20).filter(|_| balancer.choose(at, &loops) == Some(0));
            chosen.count()
        };
        let first = given(&mut balancer, begun + LOOK);
        assert!((7..=11).contains(&first), "{first} of 20");
    }

    // C14: a full loop is passed over; in turn, and if all are full there is none.
    #[test]
    fn full_loops_are_passed_over() {
        let now = Instant::now();
        for policy in [Balance::LeastLag, Balance::RoundRobin] {
            let mut balancer = Balancer::new(policy, 3);
            let mut loops = [load(0, 0, 0), load(5, 0, 0), load(6, 0, 0)];
            loops[0].has_room = false;
            assert_eq!(balancer.choose(now, &loops), Some(1), "{policy:?}");
            loops[1].has_room = false;
            assert_eq!(balancer.choose(now, &loops), Some(2), "{policy:?}");
            loops[2].has_room = false;
            assert_eq!(balancer.choose(now, &loops), None, "{policy:?}");
        }
    }

    // C14: in turn.
    #[test]
    fn round_robin_takes_turns() {
        let now = Instant::now();
        let mut balancer = Balancer::new(Balance::RoundRobin, 3);
        let loops = [load(9, 9, 0), load(0, 0, 0), load(3, 0, 0)];
        let given: Vec<_> = (0..7)
            .map(|_| balancer.choose(now, &loops).unwrap())
            .collect();
        assert_eq!(given, [0, 1, 2, 0, 1, 2, 0]);
    }
}
