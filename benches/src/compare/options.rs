//! The options of the driver.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser};

use crate::LONGEST_LIMIT;
use crate::catalogue::names::{matching, near};
use crate::catalogue::{RUNTIMES, Topic, WORKLOADS, Workload};
use crate::compare::contract;
use crate::compare::environment::absence;
use crate::compare::figure::Figure;
use crate::compare::goals;
use crate::compare::results;

/// The workload of the tail: open loop, 1,000 connections, 20,000 messages a second.
const TAIL: &str = "tcp_rate/1000x20000";

const EXAMPLES: &str = "\
Examples:
  -- --list                                 what there is to measure
  -- --quick                                the main workloads, in a few minutes
  -- --goals                                the goals, each beside the best peer
  -- --results                              RESULTS.md and the table of README, in one run
  -- --only 'tcp_*' udp_echo/1 --on phaseloop libuv
  -- --growth --on phaseloop                fails if a cost grows with the number of things
  -- --contract                             fails if an operation has become dearer

METHOD.md says how it is measured, and what is not.";

/// Compares what each operation costs on phaseloop and on other runtimes, in the same run.
///
/// Without options everything is measured in all ways. The driver prints tables and writes
/// report.html, report.json, RESULTS.md and its long tables.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "compare",
    override_usage = "cargo bench --manifest-path benches/Cargo.toml [--features libuv] -- [OPTIONS]",
    after_help = EXAMPLES,
    disable_version_flag = true,
    group = ArgGroup::new("task").args(["list", "smoke", "contract", "renew_contract", "report"])
)]
pub(crate) struct Options {
    /// Lists the workloads and the runtimes that are selected, and measures nothing
    #[arg(long, help_heading = "Instead of a comparison")]
    pub(crate) list: bool,
    /// Runs each cell once, briefly; fails if one does not end
    #[arg(long, help_heading = "Instead of a comparison")]
    pub(crate) smoke: bool,
    /// Fails if an operation costs more than contract.json allows
    #[arg(long, help_heading = "Instead of a comparison")]
    contract: bool,
    /// With --contract: counts every peer, too, and prints the costs side by side
    #[arg(long, requires = "contract", help_heading = "Instead of a comparison")]
    pub(crate) peers: bool,
    /// Writes contract.json
    #[arg(long, help_heading = "Instead of a comparison")]
    renew_contract: bool,
    /// Renders the report.json of an earlier run again: tables, page and summary; of several runs,
    /// what each of them measured
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        alias = "show",
        help_heading = "Instead of a comparison"
    )]
    pub(crate) report: Vec<PathBuf>,

    /// Only workloads of these names, or that fit these patterns (`*`, `?`), or with these texts in
    /// their names
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', help_heading = "What is measured")]
    only: Vec<String>,
    /// Only on these runtimes
    #[arg(
        long, value_name = "RUNTIME", num_args = 1.., value_delimiter = ',',
        value_parser = PossibleValuesParser::new(RUNTIMES), help_heading = "What is measured"
    )]
    on: Vec<String>,
    /// The workloads with a goal, and of them what the goals are about
    #[arg(long, help_heading = "What is measured")]
    pub(crate) goals: bool,
    /// The cost of one of a thousand, and of one of a million; fails if ours grows faster than a
    /// heap's depth
    #[arg(long, help_heading = "What is measured")]
    pub(crate) growth: bool,
    /// The latencies at 20,000 messages a second over 1,000 connections
    #[arg(long, help_heading = "What is measured")]
    tail: bool,
    /// Ten thousand sleeps, immediates or jobs at one moment
    #[arg(long, help_heading = "What is measured")]
    bursts: bool,
    /// What RESULTS.md and README show; writes RESULTS.md, the tables of results/ and the chart to the
    /// folder of the suite, and prints the table of README. With --report from an earlier run
    #[arg(long, help_heading = "What is measured")]
    pub(crate) results: bool,
    /// The main workloads, with fewer operations; counts some runtimes only
    #[arg(long, help_heading = "What is measured")]
    pub(crate) quick: bool,

    /// Only what takes time: CPU, wall, latencies; and resident memory
    #[arg(long, help_heading = "How it is measured")]
    time: bool,
    /// Only instructions in user space, counted by callgrind
    #[arg(long, help_heading = "How it is measured")]
    count: bool,
    /// Only system calls, counted by perf, or by strace where perf may not
    #[arg(long, help_heading = "How it is measured")]
    syscalls: bool,
    /// Only allocations
    #[arg(long, help_heading = "How it is measured")]
    allocs: bool,
    /// How often each cell is timed [default: 5, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "How it is measured")]
    rounds: Option<u16>,
    /// How long one process may take before it is ended and its cell left out
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=LONGEST_LIMIT), help_heading = "How it is measured")]
    limit: u64,

    /// Also shows what changed since these results
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) against: Option<PathBuf>,
    /// Where the results go [default: report in cargo's target folder; with --report beside FILE]
    #[arg(long, value_name = "FOLDER", help_heading = "Results")]
    pub(crate) out: Option<PathBuf>,

    /// Cargo adds this one.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way to measure, which is one pass over the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Time,
    Instructions,
    Syscalls,
    Allocations,
}

impl Options {
    /// Reads the arguments, of which the first is the program.
    ///
    /// # Errors
    ///
    /// Unknown options and names, with those that are near; a selection of nothing.
    pub(crate) fn read(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let options = Self::try_parse_from(arguments)?;
        options
            .check()
            .map_err(|message| Self::command().error(ErrorKind::InvalidValue, message))?;
        Ok(options)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(unknown) = self.only.iter().find(|text| matching(text).is_empty()) {
            let names = WORKLOADS.iter().map(|workload| workload.name);
            let near = near(unknown, names);
            let near = match near.as_slice() {
                [] => "no name is near".to_owned(),
                near => format!("near names: {}", near.join(", ")),
            };
            return Err(format!(
                "no workload is called '{unknown}' or fits it\n  {near}\n  --list shows all"
            ));
        }
        if let Some(absence) = self.on.iter().find_map(|runtime| absence(runtime)) {
            return Err(absence);
        }
        let (workloads, runtimes) = (self.workloads(), self.runtimes());
        let exists = |workload: &Workload| runtimes.iter().any(|name| workload.exists_on(name));
        if !workloads.iter().any(exists) {
            return Err(format!(
                "nothing is selected: {} workloads, none on {}\n  --list shows what there is",
                workloads.len(),
                runtimes.join(", ")
            ));
        }
        Ok(())
    }

    pub(crate) fn contract(&self) -> Option<contract::Task> {
        match (self.contract, self.renew_contract) {
            (true, _) if self.peers => Some(contract::Task::BesidePeers),
            (true, _) => Some(contract::Task::Check),
            (_, true) => Some(contract::Task::Renew),
            _ => None,
        }
    }

    pub(crate) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }

    pub(crate) fn rounds(&self) -> usize {
        let default = if self.quick { 2 } else { 5 };
        self.rounds.map_or(default, usize::from)
    }

    /// Whether the cells are measured this way: all ways, unless some are named.
    pub(crate) fn makes(&self, pass: Pass) -> bool {
        let some = self.time || self.count || self.syscalls || self.allocs;
        !some
            || match pass {
                Pass::Time => self.time,
                Pass::Instructions => self.count,
                Pass::Syscalls => self.syscalls,
                Pass::Allocations => self.allocs,
            }
    }

    /// Whether this figure of a selected workload is of interest.
    pub(crate) fn wants(&self, workload: &Workload, figure: Figure) -> bool {
        let for_itself = !self.goals || self.is_in_other_group(workload);
        for_itself || goals::asks_for(workload.name, figure)
    }

    fn is_in_other_group(&self, workload: &Workload) -> bool {
        self.growth && workload.topic() == Topic::Growth
            || self.tail && workload.name == TAIL
            || self.bursts && workload.topic() == Topic::Bursts
            || self.results && results::shows(workload.name)
    }

    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let named = |workload: &Workload| {
            let mut only = self.only.iter().flat_map(|text| matching(text));
            self.only.is_empty() || only.any(|selected| selected.name == workload.name)
        };
        let any_group = self.goals || self.growth || self.tail || self.bursts || self.results;
        let in_group = |workload: &Workload| {
            !any_group
                || self.is_in_other_group(workload)
                || self.goals && goals::has_goal(workload.name)
        };
        WORKLOADS
            .into_iter()
            .filter(|workload| named(workload) && in_group(workload))
            .filter(|workload| workload.quick || !self.quick)
            .collect()
    }

    pub(crate) fn runtimes(&self) -> Vec<&'static str> {
        let wanted = |runtime: &&str| self.on.is_empty() || self.on.iter().any(|on| on == runtime);
        RUNTIMES.into_iter().filter(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Options, clap::Error> {
        let words = arguments.split_whitespace();
        // Cargo's own argument comes last.
        Options::read(["compare"].into_iter().chain(words).chain(["--bench"]))
    }

    fn names(options: &Options) -> Vec<&'static str> {
        let workloads = options.workloads().into_iter();
        workloads.map(|workload| workload.name).collect()
    }

    #[test]
    fn the_definition_of_the_options_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn without_options_everything_is_measured_in_all_ways() {
        let options = read("").expect("it is complete");
        assert_eq!(options.workloads().len(), WORKLOADS.len());
        assert_eq!(options.runtimes(), RUNTIMES);
        assert!(options.makes(Pass::Time) && options.makes(Pass::Allocations));
        assert_eq!(options.rounds(), 5);
    }

    #[test]
    fn several_names_and_patterns_follow_only() {
        let options = read("--only udp_echo/1 tcp_exact* --on phaseloop tokio").expect("known");
        assert_eq!(names(&options), ["tcp_exact/50x16384", "udp_echo/1"]);
        assert_eq!(options.runtimes(), ["phaseloop", "tokio"]);
        let repeated = read("--only udp_echo/1 --only spawn_join,yield").expect("known");
        assert_eq!(names(&repeated), ["spawn_join", "yield", "udp_echo/1"]);
    }

    #[test]
    fn an_unknown_workload_is_an_error_that_lists_the_near_ones() {
        let error = read("--only tcp_ehco/50x64")
            .expect_err("unknown")
            .to_string();
        assert!(error.contains("tcp_ehco/50x64"), "{error}");
        assert!(error.contains("tcp_echo/50x64"), "{error}");
        // One good name does not excuse a bad one.
        let error = read("--only yield qqq").expect_err("unknown").to_string();
        assert!(error.contains("qqq") && error.contains("--list"), "{error}");
    }

    #[test]
    fn an_unknown_runtime_is_an_error_that_lists_all_and_the_near_one() {
        let error = read("--on tokoi").expect_err("unknown").to_string();
        assert!(error.contains("raw-epoll"), "{error}");
        assert!(error.contains("similar value exists: 'tokio'"), "{error}");
    }

    #[test]
    fn an_unknown_option_is_an_error_that_names_the_near_one() {
        let error = read("--quik").expect_err("unknown").to_string();
        assert!(error.contains("'--quick'"), "{error}");
        assert!(read("stray").is_err());
        assert!(read("--rounds 0").is_err());
        assert!(read("--limit 100000").is_err());
    }

    #[test]
    fn a_selection_of_nothing_is_an_error() {
        assert!(read("--only udp_batched/50 --on tokio").is_err());
        assert!(read("--quick --only yield").is_err());
    }

    #[test]
    fn tasks_exclude_each_other() {
        assert!(read("--smoke --contract").is_err());
        assert!(read("--peers").is_err());
        let options = read("--contract --peers").expect("it goes together");
        assert_eq!(options.contract(), Some(contract::Task::BesidePeers));
        let options = read("--renew-contract").expect("it is known");
        assert_eq!(options.contract(), Some(contract::Task::Renew));
    }

    #[test]
    fn the_former_name_of_report_still_works() {
        let options = read("--show old.json").expect("it is known");
        assert_eq!(options.report, [PathBuf::from("old.json")]);
    }

    #[test]
    fn groups_of_workloads_add_up() {
        let options = read("--tail --bursts").expect("known");
        assert_eq!(names(&options).len(), 4);
        let options = read("--goals --growth --only *_task*").expect("known");
        let growing = Workload::find("grow_task/1000").expect("it is there");
        assert!(options.wants(&growing, crate::compare::figure::CPU));
        let idle = Workload::find("idle_task").expect("it is there");
        assert!(!options.wants(&idle, crate::compare::figure::CPU));
    }
}
