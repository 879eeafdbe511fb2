//! Names that a person types: which workloads they mean, and what is near if they mean none.

use super::{WORKLOADS, Workload};

/// At least so similar are names that a person may have meant, from 0 to 1.
const SIMILAR: f64 = 0.8;

/// So many near names are listed at most.
const LISTED: usize = 6;

/// The workloads that a text selects: the one of that name; else, if it has `*` or `?` in it, those
/// whose whole name fits; else those that have it in their name.
#[must_use]
pub fn matching(text: &str) -> Vec<Workload> {
    if let Some(workload) = Workload::find(text) {
        return vec![workload];
    }
    let is_pattern = text.contains(['*', '?']);
    let fits = |name: &str| {
        if is_pattern {
            fits_pattern(name.as_bytes(), text.as_bytes())
        } else {
            name.contains(text)
        }
    };
    let all = WORKLOADS.into_iter();
    all.filter(|workload| fits(workload.name)).collect()
}

/// Whether the whole name fits: `*` stands for any text, `?` for one byte.
fn fits_pattern(name: &[u8], pattern: &[u8]) -> bool {
    match (name, pattern) {
        ([], []) => true,
        (_, [b'*', rest @ ..]) => (0..=name.len()).any(|skip| fits_pattern(&name[skip..], rest)),
        ([_, name @ ..], [b'?', rest @ ..]) => fits_pattern(name, rest),
        ([a, name @ ..], [b, rest @ ..]) => a == b && fits_pattern(name, rest),
        _ => false,
    }
}

/// The names that the text may have been meant for, the nearest first.
#[must_use]
pub fn near<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let text = text.trim_matches(['*', '?']);
    let mut near: Vec<_> = names
        .into_iter()
        .map(|name| (similarity(text, name), name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .collect();
    // Equals stay in the order in which they came.
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter()
        .take(LISTED)
        .map(|(_, name)| name)
        .collect()
}

/// Of the whole names, or of their parts before the number.
fn similarity(text: &str, name: &str) -> f64 {
    let family = |name| str::split_once(name, '/').map_or(name, |(family, _)| family);
    let whole = strsim::jaro_winkler(text, name);
    whole.max(strsim::jaro_winkler(family(text), family(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        let workloads = matching(text).into_iter();
        workloads.map(|workload| workload.name).collect()
    }

    #[test]
    fn a_whole_name_selects_that_workload_alone() {
        assert_eq!(names("self_wake/1"), ["self_wake/1"]);
        assert_eq!(names("immediates"), ["immediates"]);
    }

    #[test]
    fn a_part_of_names_selects_all_that_have_it() {
        assert_eq!(
            names("udp"),
            ["udp_echo/1", "udp_echo/50", "udp_batched/50"]
        );
        assert!(names("nonsense").is_empty());
    }

    #[test]
    fn a_pattern_must_fit_the_whole_name() {
        assert_eq!(names("udp_echo/*"), ["udp_echo/1", "udp_echo/50"]);
        assert_eq!(names("udp_echo/?"), ["udp_echo/1"]);
        assert_eq!(names("*batch*"), ["udp_batched/50"]);
        assert!(names("batch*").is_empty());
        assert_eq!(names("*").len(), WORKLOADS.len());
    }

    #[test]
    fn a_misspelt_name_is_near_the_right_ones() {
        let all = || WORKLOADS.iter().map(|workload| workload.name);
        assert_eq!(near("spwan_join", all())[0], "spawn_join");
        assert!(near("tcp_ehco/50x64", all()).contains(&"tcp_echo/50x64"));
        assert!(near("upd_echo", all()).contains(&"udp_echo/1"));
        assert!(near("tcp_eco*", all()).contains(&"tcp_echo/1x64"));
        assert!(near("zzz", all()).is_empty());
        assert!(near("e", all()).len() <= LISTED);
    }

    #[test]
    fn every_name_is_there_once() {
        let mut all: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), WORKLOADS.len());
    }
}
