//! The options of `compare`; `main.rs` describes them.

use std::path::PathBuf;

use crate::Failure;
use crate::contract;
use crate::goals::GOALS;
use phaseloop_benches::catalogue::{RUNTIMES, WORKLOADS, Workload};

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) time: bool,
    pub(crate) count: bool,
    pub(crate) syscalls: bool,
    pub(crate) allocs: bool,
    pub(crate) quick: bool,
    pub(crate) smoke: bool,
    goals: bool,
    pub(crate) rounds: Option<usize>,
    only: Vec<String>,
    on: Vec<String>,
    pub(crate) against: Option<PathBuf>,
    pub(crate) show: Option<PathBuf>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) contract: Option<contract::Task>,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument.as_str() {
                "--time" => options.time = true,
                "--count" => options.count = true,
                "--syscalls" => options.syscalls = true,
                "--allocs" => options.allocs = true,
                "--quick" => options.quick = true,
                "--smoke" => options.smoke = true,
                "--goals" => options.goals = true,
                "--rounds" => options.rounds = Some(value()?.parse()?),
                "--only" => options.only.push(value()?),
                "--on" => options.on.push(value()?),
                "--against" => options.against = Some(value()?.into()),
                "--show" => options.show = Some(value()?.into()),
                "--out" => options.out = Some(value()?.into()),
                "--contract" => options.contract = Some(contract::Task::Check),
                "--renew-contract" => options.contract = Some(contract::Task::Renew),
                // Cargo adds this one.
                "--bench" => {}
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        if !(options.time || options.count || options.syscalls || options.allocs) {
            options.time = true;
            options.count = true;
            options.syscalls = true;
            options.allocs = true;
        }
        Ok(options)
    }

    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let wanted = |name: &str| {
            self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
        };
        let has_goal = |name| GOALS.iter().any(|goal| goal.workload == name);
        WORKLOADS
            .into_iter()
            .filter(|workload| wanted(workload.name))
            .filter(|workload| has_goal(workload.name) || !self.goals)
            .filter(|workload| workload.quick || !self.quick)
            .collect()
    }

    pub(crate) fn runtimes(&self) -> Vec<&'static str> {
        let wanted = |runtime: &&str| match self.on.as_slice() {
            [] => true,
            on => on.iter().any(|on| on == *runtime),
        };
        RUNTIMES.into_iter().filter(wanted).collect()
    }
}
