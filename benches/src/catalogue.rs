//! The workloads and the runtimes by name, and how often each operation is done.

use std::process::ExitCode;

use crate::meter::Reading;
use crate::runtime::{Phaseloop, Runtime, Smol, TokioLocalRuntime, TokioLocalSet};
use crate::workload;

/// The runtimes; ratios are against the second.
pub const RUNTIMES: [&str; 4] = ["phaseloop", "tokio", "tokio-local-rt", "smol"];

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// With the number that it is about.
    pub name: &'static str,
    pub kind: Kind,
    /// Operations in a run that is timed.
    pub timed: u64,
    /// Operations in the shorter of two runs that are counted; the longer one has twice as many.
    pub counted: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    SpawnJoin,
    SelfWake { tasks: u64 },
    Yield,
    PingPong,
    CrossThreadWake,
    Immediates,
    YieldImmediate,
    NextTick,
    TimerDrop { live: u64 },
    TimerDropAll { live: u64 },
    TimerFire { live: u64 },
    IdleTask,
}

pub const WORKLOADS: [Workload; 19] = {
    const fn workload(name: &'static str, kind: Kind, timed: u64, counted: u64) -> Workload {
        Workload {
            name,
            kind,
            timed,
            counted,
        }
    }
    const K: u64 = 1_000;
    const M: u64 = 1_000 * K;
    [
        workload("spawn_join", Kind::SpawnJoin, 2 * M, 20 * K),
        workload("self_wake/1", Kind::SelfWake { tasks: 1 }, 5 * M, 50 * K),
        workload(
            "self_wake/1000",
            Kind::SelfWake { tasks: K },
            5 * M,
            100 * K,
        ),
        workload("yield", Kind::Yield, 2 * M, 20 * K),
        workload("ping_pong", Kind::PingPong, 5 * M, 50 * K),
        workload("cross_thread_wake", Kind::CrossThreadWake, 5 * K, 200),
        workload("immediates", Kind::Immediates, M, 20 * K),
        workload("yield_immediate", Kind::YieldImmediate, M, 20 * K),
        workload("next_tick", Kind::NextTick, 5 * M, 50 * K),
        workload("timer_drop/1000", Kind::TimerDrop { live: K }, M, 50 * K),
        workload(
            "timer_drop/100000",
            Kind::TimerDrop { live: 100 * K },
            M,
            100 * K,
        ),
        workload(
            "timer_drop/1000000",
            Kind::TimerDrop { live: M },
            M,
            200 * K,
        ),
        workload(
            "timer_drop_all/1000",
            Kind::TimerDropAll { live: K },
            M,
            50 * K,
        ),
        workload(
            "timer_drop_all/100000",
            Kind::TimerDropAll { live: 100 * K },
            M,
            100 * K,
        ),
        workload(
            "timer_drop_all/1000000",
            Kind::TimerDropAll { live: M },
            M,
            M,
        ),
        workload(
            "timer_fire/1000",
            Kind::TimerFire { live: K },
            50 * K,
            10 * K,
        ),
        workload(
            "timer_fire/100000",
            Kind::TimerFire { live: 100 * K },
            200 * K,
            100 * K,
        ),
        workload("timer_fire/1000000", Kind::TimerFire { live: M }, M, M),
        workload("idle_task", Kind::IdleTask, 100 * K, 20 * K),
    ]
};

impl Workload {
    /// The workload of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        WORKLOADS.into_iter().find(|workload| workload.name == name)
    }

    /// At least `n` operations, and whole batches of them.
    #[must_use]
    pub fn round_up(&self, n: u64) -> u64 {
        let batch = match self.kind {
            Kind::SelfWake { tasks } => tasks,
            Kind::PingPong => 2,
            Kind::TimerDropAll { live } | Kind::TimerFire { live } => live,
            _ => 1,
        };
        n.max(1).next_multiple_of(batch)
    }

    /// Whether the runtime has what this is about.
    #[must_use]
    pub fn exists_on(&self, runtime: &str) -> bool {
        let ours = matches!(
            self.kind,
            Kind::Immediates | Kind::YieldImmediate | Kind::NextTick
        );
        runtime == "phaseloop" || !ours
    }

    /// Does the operation `n` times. `None` if there is no such runtime, or it has no such operation.
    ///
    /// Where time plays a part, `slowdown` says how much slower than usual the process runs.
    #[must_use]
    pub fn run(&self, runtime: &str, n: u64, slowdown: u32) -> Option<Reading> {
        if !self.exists_on(runtime) {
            return None;
        }
        match runtime {
            "phaseloop" => Some(self.run_on(Phaseloop, n, slowdown)),
            "tokio" => Some(self.run_on(TokioLocalSet, n, slowdown)),
            "tokio-local-rt" => Some(self.run_on(TokioLocalRuntime, n, slowdown)),
            "smol" => Some(self.run_on(Smol::new(), n, slowdown)),
            _ => None,
        }
    }

    fn run_on<R: Runtime>(&self, rt: R, n: u64, slowdown: u32) -> Reading {
        match self.kind {
            Kind::SpawnJoin => workload::spawn_join(rt, n),
            Kind::SelfWake { tasks } => workload::self_wake(rt, tasks, n),
            Kind::Yield => workload::yield_now(rt, n),
            Kind::PingPong => workload::ping_pong(rt, n),
            Kind::CrossThreadWake => workload::cross_thread_wake(rt, n, slowdown),
            Kind::Immediates => workload::immediates(n),
            Kind::YieldImmediate => workload::yield_immediate(n),
            Kind::NextTick => workload::next_tick(n),
            Kind::TimerDrop { live } => workload::timer_drop(rt, live, n),
            Kind::TimerDropAll { live } => workload::timer_drop_all(rt, live, n),
            Kind::TimerFire { live } => workload::timer_fire(rt, live, n, slowdown),
            Kind::IdleTask => workload::idle_task(rt, n),
        }
    }
}

/// What `costs` and `allocs` do.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run_arguments(&arguments) {
        Some(reading) => {
            println!("nanoseconds {}", reading.time.as_nanos());
            println!("allocations {}", reading.allocations);
            println!("live-bytes {}", reading.live_bytes);
            println!("resident-bytes {}", reading.resident_bytes);
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: costs <workload> <runtime> <n> [slowdown]");
            eprintln!(
                "workloads: {}",
                WORKLOADS.map(|workload| workload.name).join(" ")
            );
            eprintln!("runtimes: {}", RUNTIMES.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run_arguments(arguments: &[String]) -> Option<Reading> {
    let (name, runtime, n, slowdown) = match arguments {
        [name, runtime, n] => (name, runtime, n, 1),
        [name, runtime, n, slowdown] => (name, runtime, n, slowdown.parse().ok()?),
        _ => return None,
    };
    Workload::find(name)?.run(runtime, n.parse().ok()?, slowdown)
}
