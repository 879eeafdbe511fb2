//! What there is to measure, for `--list`.

use crate::catalogue::{RUNTIMES, Workload};
use crate::compare::environment::absence;
use crate::compare::options::Options;
use crate::compare::verdict::TOPICS;

pub(crate) fn print(options: &Options) {
    print!("{}", text(&options.workloads(), &options.runtimes()));
}

fn text(workloads: &[Workload], runtimes: &[&str]) -> String {
    let mut lines = Vec::new();
    for topic in TOPICS {
        let of_topic = workloads
            .iter()
            .filter(|workload| workload.topic() == topic);
        let rows: Vec<_> = of_topic
            .filter_map(|workload| row(workload, runtimes))
            .collect();
        if !rows.is_empty() {
            lines.push(topic.title().to_owned());
            lines.extend(rows);
            lines.push(String::new());
        }
    }
    lines.push("Runtimes".to_owned());
    for runtime in RUNTIMES.into_iter().filter(|name| runtimes.contains(name)) {
        let state = absence(runtime).unwrap_or_else(|| "is measured".to_owned());
        lines.push(format!("  {runtime:18}{state}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The name, the operation in words, and where it exists.
fn row(workload: &Workload, runtimes: &[&str]) -> Option<String> {
    let on: Vec<_> = runtimes
        .iter()
        .copied()
        .filter(|runtime| workload.exists_on(runtime))
        .collect();
    (!on.is_empty()).then(|| {
        format!(
            "  {:26}{}\n  {:26}on {}",
            workload.name,
            workload.about(),
            "",
            on.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_each_selected_workload_and_the_runtimes_it_exists_on() {
        let workloads = ["udp_echo/1", "immediates"].map(|name| Workload::find(name).expect(name));
        let text = text(&workloads, &["phaseloop", "tokio"]);
        assert!(text.contains("udp_echo/1"), "{text}");
        assert!(text.contains("on phaseloop, tokio"), "{text}");
        assert!(
            text.contains("a turn of the loop with one immediate"),
            "{text}"
        );
        assert!(!text.contains("spawn_join"), "{text}");
        assert!(!text.contains("smol"), "{text}");
    }
}
