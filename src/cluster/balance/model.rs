//! The policies against model loops in exact time, so that no other load of the machine counts.
//!
//! ```text
//! cargo test --lib --features cluster balance::model -- --nocapture
//! ```
//!
//! prints the tables that the tests check.

#[cfg(test)]
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::{Balance, Balancer, Load, Utilization};

/// What chooses a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Of(Balance),
    /// By chance, as the kernel's hash does.
    Hash,
    /// Knows what each open connection costs. A policy that cannot see the future does hardly
    /// better.
    Oracle,
}

const POLICIES: [Policy; 4] = [
    Policy::Of(Balance::LeastLag),
    Policy::Of(Balance::RoundRobin),
    Policy::Hash,
    Policy::Oracle,
];

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Chooses loops for connections whose costs the oracle alone knows.
struct Chooser {
    policy: Policy,
    balancer: Balancer,
    random: Random,
    begun: Instant,
}

impl Chooser {
    fn new(policy: Policy, loops: usize, seed: u64) -> Self {
        let balance = match policy {
            Policy::Of(balance) => balance,
            Policy::Hash | Policy::Oracle => Balance::default(),
        };
        Self {
            policy,
            balancer: Balancer::new(balance, loops),
            random: Random::new(seed + 77_777),
            begun: Instant::now(),
        }
    }

    /// `active` and `now` are in microseconds, `costs` what the connections of each loop cost.
    fn choose(&mut self, now: u64, active: &[u64], connections: &[usize], costs: &[f64]) -> usize {
        match self.policy {
            Policy::Of(_) => {
                let load = |(active, connections): (&u64, &usize)| Load {
                    connections: *connections,
                    utilization: Utilization {
                        active: Duration::from_micros(*active),
                        idle: Duration::from_micros(now.saturating_sub(*active)),
                    },
                    has_room: true,
                };
                let loads: Vec<_> = active.iter().zip(connections).map(load).collect();
                let now = self.begun + Duration::from_micros(now);
                self.balancer.choose(now, &loads).expect("all have room")
            }
            Policy::Hash => self.random.below(active.len() as u64) as usize,
            Policy::Oracle => (0..active.len())
                .min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
                .expect("there is a loop"),
        }
    }
}

/// Prints a row of a table, if the output of tests is asked for.
fn print(row: std::fmt::Arguments<'_>) {
    if std::env::args().any(|argument| argument == "--nocapture") {
        crate::stderr::print(row);
    }
}

/// Microseconds between an answer and the next request of a connection.
const PAUSE: u64 = 4_000;

/// Microseconds of work for a unit. A connection of 30 units keeps a loop busy for a third of the
/// time, so that two loops have about as much work as time.
const UNIT: u64 = 60;

/// Two loops, and 64 connections that arrive over half a second. One in eight costs 30 times as
/// much, a third ends early. A loop serves one request after the other. Returns the work of the
/// busier loop by the mean, from the end of the arrivals on.
fn two_loops(policy: Policy, seed: u64) -> f64 {
    const CONNECTIONS: usize = 64;
    const ACCEPT: u64 = 30;
    let mut random = Random::new(seed);
    let mut draw = || {
        let units = if random.below(8) == 0 { 30 } else { 1 };
        let end = if random.below(3) == 0 {
            300_000
        } else {
            1_400_000
        };
        (units, end)
    };
    let connections: Vec<(u64, u64)> = (0..CONNECTIONS).map(|_| draw()).collect();
    let mut chooser = Chooser::new(policy, 2, seed);
    // A connection arrives first, then it sends requests.
    let arrivals = (0..CONNECTIONS).map(|n| Reverse((500_000 * n as u64 / 64, n)));
    let mut events: BinaryHeap<_> = arrivals.collect();
    let mut homes = [None; CONNECTIONS];
    // Until when each loop has work, and how much it has had.
    let (mut busy_until, mut busy) = ([0; 2], [0; 2]);
    let (mut open, mut costs, mut work) = ([0; 2], [0.0; 2], [0; 2]);
    while let Some(Reverse((now, number))) = events.pop() {
        if now > 1_300_000 {
            break;
        }
        let (units, end) = connections[number];
        let cost = (units * UNIT) as f64 / (PAUSE + units * UNIT) as f64;
        let Some(home) = homes[number] else {
            let active = [0, 1].map(|at| busy[at] - u64::saturating_sub(busy_until[at], now));
            let home = chooser.choose(now, &active, &open, &costs);
            homes[number] = Some(home);
            open[home] += 1;
            costs[home] += cost;
            // Loop 0 accepts.
            busy_until[0] = now.max(busy_until[0]) + ACCEPT;
            busy[0] += ACCEPT;
            events.push(Reverse((busy_until[0], number)));
            continue;
        };
        if now >= end {
            open[home] -= 1;
            costs[home] -= cost;
            continue;
        }
        busy_until[home] = now.max(busy_until[home]) + units * UNIT;
        busy[home] += units * UNIT;
        if now >= 600_000 {
            work[home] += units;
        }
        events.push(Reverse((busy_until[home] + PAUSE, number)));
    }
    let (busier, sum) = (work[0].max(work[1]), work[0] + work[1]);
    busier as f64 * 2.0 / sum as f64
}

// C15: the busier of two loops has at most a tenth more work than the mean, in the median. In one
// seed of forty it has more than a quarter, where two dear connections end on one loop behind the
// last arrival; turns and the kernel's hash have that in one of three.
#[test]
fn least_lag_balances_work_that_is_skewed() {
    let mut rows = Vec::new();
    for policy in POLICIES {
        let mut of_seeds: Vec<_> = (0..200).map(|seed| two_loops(policy, seed)).collect();
        of_seeds.sort_by(f64::total_cmp);
        let over = of_seeds.iter().filter(|work| **work > 1.25).count();
        let (median, worst) = (of_seeds[100], of_seeds[199]);
        print(format_args!(
            "{policy:?}: median {median:.2}, worst {worst:.2}, {over} of 200 seeds above 1.25"
        ));
        rows.push((median, worst, over));
    }
    let [lag, turns, hash, _oracle] = rows.try_into().expect("four");
    assert!(lag.0 <= 1.10 && lag.2 <= 6, "{lag:?}");
    assert!(
        turns.2 > 10 * lag.2 && hash.2 > 10 * lag.2,
        "{turns:?}, {hash:?}"
    );
}

/// Eight loops with work for 80 % of their time. One connection in eight costs 20 times as much.
/// They live for two seconds in the mean, and `at_once` of them arrive together. Returns the load
/// of the most loaded loop by the mean of all, and the share of time in which a loop has more work
/// than time.
fn eight_loops(policy: Policy, seed: u64, at_once: u64) -> (f64, f64) {
    const LOOPS: usize = 8;
    const OPEN: u64 = 800;
    const LIFE: u64 = 2_000;
    let mut random = Random::new(seed);
    let mut chooser = Chooser::new(policy, LOOPS, seed);
    let unit = 0.8 * LOOPS as f64 / OPEN as f64 / (27.0 / 8.0);
    // When each open connection ends, where it is, and how many units it costs.
    let mut living: BinaryHeap<Reverse<(u64, usize, u32)>> = BinaryHeap::new();
    let (mut open, mut costs) = ([0; LOOPS], [0.0_f64; LOOPS]);
    let (mut busy, mut most, mut all, mut over) = ([0.0; LOOPS], 0.0, 0.0, 0);
    let (mut arrived, mut looks) = (0, 0);
    for now in 0..20_000 {
        while living.peek().is_some_and(|Reverse((end, ..))| *end <= now) {
            let Some(Reverse((_, home, units))) = living.pop() else {
                break;
            };
            open[home] -= 1;
            costs[home] -= f64::from(units) * unit;
        }
        while (arrived / at_once) * at_once * LIFE <= now * OPEN {
            let active = busy.map(|busy| (busy * 1e3) as u64);
            let home = chooser.choose(now * 1_000, &active, &open, &costs);
            let units = if random.below(8) == 0 { 20 } else { 1 };
            living.push(Reverse((now + random.below(2 * LIFE), home, units)));
            open[home] += 1;
            costs[home] += f64::from(units) * unit;
            arrived += 1;
        }
        for (busy, cost) in busy.iter_mut().zip(costs) {
            *busy += cost.min(1.0);
        }
        if now > 2 * LIFE {
            most += costs.iter().copied().fold(0.0, f64::max);
            all += costs.iter().sum::<f64>() / LOOPS as f64;
            over += costs.iter().filter(|cost| **cost > 1.0).count();
            looks += LOOPS;
        }
    }
    (most / all, over as f64 / looks as f64)
}

// C15: with many connections a loop has hardly ever more work than time. Connections that arrive
// together are no herd.
#[test]
fn least_lag_overloads_no_loop() {
    for (at_once, limit) in [(1, 0.01), (100, 0.04)] {
        let mut rows = Vec::new();
        for policy in POLICIES {
            let of_seeds = (0..10).map(|seed| eight_loops(policy, seed, at_once));
            let sum = of_seeds.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let (most, over) = (sum.0 / 10.0, sum.1 / 10.0);
            print(format_args!(
                "{at_once} at once, {policy:?}: most loaded {most:.2}, overloaded {:.1} %",
                over * 100.0
            ));
            rows.push((most, over));
        }
        let [lag, turns, hash, _oracle] = rows.try_into().expect("four");
        assert!(lag.1 <= limit && lag.0 <= 1.20, "{lag:?}");
        assert!(
            turns.1 > 3.0 * lag.1 && hash.1 > 3.0 * lag.1,
            "{turns:?}, {hash:?}"
        );
    }
}
