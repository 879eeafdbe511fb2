//! Random answers, and the seed of a whole test suite.

use std::sync::OnceLock;

use super::{Chooser, Kind, Limits, Question, Threads};
use crate::stderr;

/// A small generator of random numbers: splitmix64.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The bias of the multiplication is far below what a test can notice.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Leaves the usual way at random. Each seed draws for each kind of question how often.
pub(crate) struct Walk {
    random: Random,
    /// In how many of 16 questions of each kind the usual way is left.
    rates: [u8; Kind::ALL.len()],
}

/// The kinds whose rates are drawn one after the other.
const FIRST_KINDS: usize = 11;

impl Walk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rate = |kind: Kind| {
            let index = kind as usize;
            // A kind that was added later draws apart, so that a seed means what it meant before.
            let mut apart = Random::new(seed.rotate_left(index as u32));
            let random = if index < FIRST_KINDS {
                &mut random
            } else {
                &mut apart
            };
            [0, 1, 4, 8][random.below(4) as usize]
        };
        let rates = Kind::ALL.map(rate);
        Self { random, rates }
    }
}

impl Chooser for Walk {
    fn choose(&mut self, question: &Question<'_>) -> usize {
        let rate = self.rates[question.kind as usize];
        if self.random.below(16) >= u64::from(rate) {
            return 0;
        }
        1 + self.random.below(question.count as u64 - 1) as usize
    }
}

/// How the variables `PHASELOOP_SHUFFLE` and `PHASELOOP_WITHOUT` shuffle every paused loop.
struct Suite {
    seed: u64,
    without: Vec<Kind>,
}

/// The real time that a loop of a suite waits for something outside, in nanoseconds: longer than
/// that of an exploration, since such a test was not written for seeds.
const SUITE_STALL: u64 = 60_000_000_000;

/// Returns what shuffles a paused loop that its program does not shuffle, if the environment asks
/// for it.
///
/// # Panics
///
/// If a variable cannot be read.
pub(crate) fn of_suite() -> Option<(Box<dyn Chooser>, Limits)> {
    static SUITE: OnceLock<Option<Suite>> = OnceLock::new();
    let suite = SUITE.get_or_init(|| {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let seed = variable("PHASELOOP_SHUFFLE")?;
        let without = variable("PHASELOOP_WITHOUT").unwrap_or_default();
        Some(parse_suite(&seed, &without).unwrap_or_else(|error| panic!("{error}")))
    });
    let suite = suite.as_ref()?;
    // In a test harness the name of the thread is that of the test.
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("without a name");
    stderr::print(format_args!(
        "PHASELOOP_SHUFFLE={} shuffles a loop of the thread {thread}",
        suite.seed
    ));
    let mut walk = Walk::new(suite.seed);
    for kind in &suite.without {
        walk.rates[*kind as usize] = 0;
    }
    let limits = Limits {
        stall: SUITE_STALL,
        threads: Threads::Allow,
        has_network: false,
        ..Limits::default()
    };
    Some((Box::new(walk), limits))
}

fn parse_suite(seed: &str, without: &str) -> Result<Suite, String> {
    let error = |error| format!("PHASELOOP_SHUFFLE={seed} is no seed: {error}");
    let seed: u64 = seed.parse().map_err(error)?;
    let names = without.split(',').filter(|name| !name.is_empty());
    let kinds = names.map(|name| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("PHASELOOP_WITHOUT names no kind of question: {name}"))
    });
    let without = kinds.collect::<Result<_, _>>()?;
    Ok(Suite { seed, without })
}

#[cfg(test)]
mod tests {
    use super::{Chooser, Kind, Question, Random, Walk, parse_suite};

    fn question(kind: Kind, count: usize) -> Question<'static> {
        Question {
            kind,
            who: None,
            count,
            among: &[],
            about: &"",
        }
    }

    #[test]
    fn every_kind_is_in_the_list_at_its_own_place() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_them() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        for _ in 0..1_000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 120), "{seen:?}");
    }

    #[test]
    fn a_walk_answers_alike_for_the_same_seed_and_in_range() {
        for seed in 0..200 {
            let mut walks = [Walk::new(seed), Walk::new(seed)];
            for _ in 0..50 {
                let question = question(Kind::Delay, 4);
                let [first, second] = walks.each_mut().map(|walk| walk.choose(&question));
                assert_eq!(first, second);
                assert!(first < 4);
            }
        }
    }

    #[test]
    fn some_seeds_never_leave_the_usual_way_of_a_kind() {
        for kind in Kind::ALL {
            let never = |seed: &u64| {
                let mut walk = Walk::new(*seed);
                (0..200).all(|_| walk.choose(&question(kind, 3)) == 0)
            };
            let count = (0..400).filter(never).count();
            assert!(
                (60..140).contains(&count),
                "{kind}: about one in four: {count}"
            );
        }
    }

    #[test]
    fn a_suite_has_a_seed_and_leaves_out_kinds_by_name() {
        let suite = parse_suite("117", "late,job-run").unwrap();
        assert_eq!(suite.seed, 117);
        assert_eq!(suite.without, [Kind::Late, Kind::JobRun]);
        assert!(parse_suite("117", "").unwrap().without.is_empty());
        assert!(parse_suite("x", "").is_err_and(|error| error.contains("no seed")));
        assert!(parse_suite("1", "nap").is_err_and(|error| error.ends_with("nap")));
    }
}
