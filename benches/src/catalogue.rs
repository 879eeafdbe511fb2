//! The workloads and the runtimes by name, and how often each operation is done.

mod availability;
pub mod names;
mod words;

use crate::workload::pool::BigFile;

/// The runtimes; ratios are against the second.
pub const RUNTIMES: [&str; 11] = [
    "phaseloop",
    "tokio",
    "tokio-local-rt",
    "tokio-threads",
    "smol",
    "monoio",
    "libuv",
    "raw-epoll",
    "std",
    "node",
    "phaseloop-budget",
];

/// The one that this is about.
pub const OURS: &str = "phaseloop";

/// The peer that all others are divided by.
pub const PEER: &str = "tokio";

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// With the number that it is about.
    pub name: &'static str,
    pub kind: Kind,
    /// Operations in a run that is timed.
    pub timed: u64,
    /// Operations in the shorter of two runs that are counted; the longer one has twice as many. 0:
    /// not counted, since it would take too long or says nothing.
    pub counted: u64,
    /// Whether `--quick` keeps it.
    pub quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    SpawnJoin,
    SpawnJoinMany {
        at_once: u64,
    },
    SelfWake {
        tasks: u64,
    },
    Yield,
    PingPong,
    CrossThreadWake,
    Immediates {
        at_once: u64,
    },
    YieldImmediate,
    NextTick {
        at_once: u64,
    },
    Microtasks {
        at_once: u64,
    },
    SetTimeout,
    TimerDrop {
        live: u64,
    },
    TimerDropAll {
        live: u64,
    },
    TimerReplace {
        live: u64,
    },
    TimerFire {
        live: u64,
    },
    TcpEcho {
        connections: u64,
        bytes: u64,
        buffer: Buffer,
    },
    UdpEcho {
        clients: u64,
    },
    UdpBatched {
        clients: u64,
    },
    Http {
        connections: u64,
    },
    TcpRate {
        connections: u64,
        per_second: u64,
    },
    Blocking {
        in_flight: u64,
    },
    ReadFiles {
        in_flight: u64,
    },
    ReadThrough {
        at_once: u64,
    },
    StartStop,
    ColdStart,
    BinarySize,
    Idle,
    IdleTask,
    IdleTimer,
    IdleSleeper,
    IdleConnection,
    Alone,
    Hog,
    WakeStorm,
    CompletionStorm,
    AcceptFlood,
    Burst(Burst),
    /// So many at once, of which each is made, used once and ended.
    Grow(Thing, u64),
}

/// How long the buffer is that a message is read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Longer than the message.
    Roomy,
    /// As long as the message: a read that fills it does not tell whether more is there.
    Exact,
}

/// What comes in thousands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    Sleeps,
    Immediates,
    Jobs,
}

/// What there may be a million of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    Timer,
    Task,
    Waiter,
    Promise,
    Job,
    Connection,
}

impl Thing {
    pub const ALL: [Self; 6] = [
        Self::Timer,
        Self::Task,
        Self::Waiter,
        Self::Promise,
        Self::Job,
        Self::Connection,
    ];
}

/// What a workload is about: which figures are taken, and where it stands in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Tasks,
    Lanes,
    Timers,
    Sockets,
    Pool,
    Process,
    /// The memory of one of many; no other cost.
    Memory,
    /// The latencies of a client at a fixed rate.
    Latency,
    /// The lateness of a victim.
    Fairness,
    /// How long many take that come at one moment, and the lateness of a timer beside them.
    Bursts,
    /// The cost of one of few and of one of many.
    Growth,
}

const K: u64 = 1_000;
const M: u64 = 1_000 * K;
const KIB: u64 = 1024;

const fn workload(name: &'static str, kind: Kind, timed: u64, counted: u64) -> Workload {
    Workload {
        name,
        kind,
        timed,
        counted,
        quick: false,
    }
}

const fn tcp_echo(name: &'static str, connections: u64, bytes: u64, timed: u64) -> Workload {
    let buffer = Buffer::Roomy;
    let kind = Kind::TcpEcho {
        connections,
        bytes,
        buffer,
    };
    workload(name, kind, timed, 10 * K)
}

const fn tcp_exact(name: &'static str, connections: u64, bytes: u64, timed: u64) -> Workload {
    let buffer = Buffer::Exact;
    let kind = Kind::TcpEcho {
        connections,
        bytes,
        buffer,
    };
    workload(name, kind, timed, 10 * K)
}

const fn burst(name: &'static str, burst: Burst) -> Workload {
    workload(name, Kind::Burst(burst), 50, 0)
}

/// Timed over many batches if they are small: a thousand things are made and ended in less than a
/// millisecond.
const fn grow(name: &'static str, thing: Thing, size: u64) -> Workload {
    let timed = match thing {
        Thing::Connection => size,
        _ if size < 100 * K => 100 * K,
        _ => size,
    };
    workload(name, Kind::Grow(thing, size), timed, size)
}

#[rustfmt::skip]
pub const WORKLOADS: [Workload; 84] = [
    workload("spawn_join", Kind::SpawnJoin, M, 20 * K).quick(),
    workload("spawn_join/1000", Kind::SpawnJoinMany { at_once: K }, M, 20 * K).quick(),
    workload("self_wake/1", Kind::SelfWake { tasks: 1 }, 3 * M, 50 * K).quick(),
    workload("self_wake/1000", Kind::SelfWake { tasks: K }, 3 * M, 100 * K),
    workload("yield", Kind::Yield, 2 * M, 20 * K),
    workload("ping_pong", Kind::PingPong, 3 * M, 50 * K).quick(),
    workload("cross_thread_wake", Kind::CrossThreadWake, 5 * K, 200).quick(),
    workload("immediates", Kind::Immediates { at_once: 1 }, 500 * K, 20 * K).quick(),
    workload("immediates/1000", Kind::Immediates { at_once: K }, 3 * M, 50 * K).quick(),
    workload("yield_immediate", Kind::YieldImmediate, 500 * K, 20 * K),
    workload("next_tick", Kind::NextTick { at_once: 1 }, 3 * M, 50 * K),
    workload("next_tick/1000", Kind::NextTick { at_once: K }, 3 * M, 50 * K).quick(),
    workload("microtasks/1000", Kind::Microtasks { at_once: K }, 3 * M, 50 * K).quick(),
    workload("set_timeout", Kind::SetTimeout, 2 * M, 50 * K).quick(),
    workload("timer_drop/0", Kind::TimerDrop { live: 0 }, M, 50 * K),
    workload("timer_drop/1000", Kind::TimerDrop { live: K }, M, 50 * K).quick(),
    workload("timer_drop/10000", Kind::TimerDrop { live: 10 * K }, M, 50 * K),
    workload("timer_drop/1000000", Kind::TimerDrop { live: M }, M, 200 * K),
    workload("timer_drop_all/1000", Kind::TimerDropAll { live: K }, M, 50 * K),
    workload("timer_drop_all/100000", Kind::TimerDropAll { live: 100 * K }, M, 100 * K),
    workload("timer_drop_all/1000000", Kind::TimerDropAll { live: M }, M, 0),
    workload("timer_replace/1000", Kind::TimerReplace { live: K }, M, 50 * K).quick(),
    workload("timer_fire/1000", Kind::TimerFire { live: K }, 50 * K, 10 * K).quick(),
    workload("timer_fire/10000", Kind::TimerFire { live: 10 * K }, 100 * K, 20 * K),
    workload("timer_fire/100000", Kind::TimerFire { live: 100 * K }, 200 * K, 100 * K),
    workload("timer_fire/1000000", Kind::TimerFire { live: M }, M, 0),
    tcp_echo("tcp_echo/1x64", 1, 64, 30 * K).quick(),
    tcp_echo("tcp_echo/50x64", 50, 64, 200 * K).quick(),
    tcp_echo("tcp_echo/1000x64", 1000, 64, 200 * K),
    tcp_echo("tcp_echo/1x16384", 1, 16 * 1024, 30 * K),
    tcp_echo("tcp_echo/50x16384", 50, 16 * 1024, 100 * K).quick(),
    tcp_echo("tcp_echo/1000x16384", 1000, 16 * 1024, 50 * K),
    tcp_exact("tcp_exact/50x16384", 50, 16 * 1024, 100 * K).quick(),
    workload("udp_echo/1", Kind::UdpEcho { clients: 1 }, 30 * K, 10 * K).quick(),
    workload("udp_echo/50", Kind::UdpEcho { clients: 50 }, 200 * K, 10 * K).quick(),
    workload("udp_batched/50", Kind::UdpBatched { clients: 50 }, 200 * K, 10 * K).quick(),
    workload("http/50", Kind::Http { connections: 50 }, 100 * K, 2 * K).quick(),
    workload("blocking/1", Kind::Blocking { in_flight: 1 }, 20 * K, K).quick(),
    workload("blocking/1000", Kind::Blocking { in_flight: K }, 200 * K, 20 * K).quick(),
    workload("read_files/64", Kind::ReadFiles { in_flight: 64 }, 10 * K, 6_400).quick(),
    workload("read_through", Kind::ReadThrough { at_once: 64 * KIB }, K, 64).quick(),
    workload("read_through/1M", Kind::ReadThrough { at_once: 1024 * KIB }, K, 64),
    workload("start_stop", Kind::StartStop, K, 100),
    workload("cold_start", Kind::ColdStart, 1, 1).quick(),
    workload("binary_size", Kind::BinarySize, 1, 1),
    workload("idle", Kind::Idle, K, 200),
    workload("idle_task", Kind::IdleTask, 100 * K, 20 * K).quick(),
    workload("idle_timer", Kind::IdleTimer, 100 * K, 20 * K),
    workload("idle_sleeper", Kind::IdleSleeper, 100 * K, 20 * K),
    workload("idle_connection", Kind::IdleConnection, 8 * K, 2 * K).quick(),
    workload("tcp_rate/50x20000", Kind::TcpRate { connections: 50, per_second: 20 * K }, 40 * K, 0),
    workload("tcp_rate/1000x20000", Kind::TcpRate { connections: 1000, per_second: 20 * K }, 100 * K, 0).quick(),
    workload("tcp_rate/1000x50000", Kind::TcpRate { connections: 1000, per_second: 50 * K }, 150 * K, 0),
    workload("victim/alone", Kind::Alone, 500, 0),
    workload("victim/hog", Kind::Hog, 500, 0).quick(),
    workload("victim/wake_storm", Kind::WakeStorm, 200, 0).quick(),
    workload("victim/completion_storm", Kind::CompletionStorm, 500, 0).quick(),
    workload("victim/accept_flood", Kind::AcceptFlood, 500, 0).quick(),
    burst("burst/sleeps", Burst::Sleeps).quick(),
    burst("burst/immediates", Burst::Immediates).quick(),
    burst("burst/jobs", Burst::Jobs).quick(),
    grow("grow_timer/1000", Thing::Timer, K),
    grow("grow_timer/10000", Thing::Timer, 10 * K),
    grow("grow_timer/100000", Thing::Timer, 100 * K),
    grow("grow_timer/1000000", Thing::Timer, M),
    grow("grow_task/1000", Thing::Task, K),
    grow("grow_task/10000", Thing::Task, 10 * K),
    grow("grow_task/100000", Thing::Task, 100 * K),
    grow("grow_task/1000000", Thing::Task, M),
    grow("grow_waiter/1000", Thing::Waiter, K),
    grow("grow_waiter/10000", Thing::Waiter, 10 * K),
    grow("grow_waiter/100000", Thing::Waiter, 100 * K),
    grow("grow_waiter/1000000", Thing::Waiter, M),
    grow("grow_promise/1000", Thing::Promise, K),
    grow("grow_promise/10000", Thing::Promise, 10 * K),
    grow("grow_promise/100000", Thing::Promise, 100 * K),
    grow("grow_promise/1000000", Thing::Promise, M),
    grow("grow_job/1000", Thing::Job, K),
    grow("grow_job/10000", Thing::Job, 10 * K),
    grow("grow_job/100000", Thing::Job, 100 * K),
    grow("grow_job/1000000", Thing::Job, M),
    grow("grow_connection/1000", Thing::Connection, K),
    grow("grow_connection/9000", Thing::Connection, 9 * K),
    grow("grow_connection/18000", Thing::Connection, 18 * K),
];

impl Workload {
    const fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

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
            Kind::SpawnJoinMany { at_once } => at_once,
            // Fewer than all are one smaller batch.
            Kind::Grow(_, size) if n < size => 1,
            Kind::Grow(_, size) => size,
            Kind::Immediates { at_once }
            | Kind::NextTick { at_once }
            | Kind::Microtasks { at_once } => at_once,
            Kind::ReadThrough { .. } => BigFile::MEGABYTES,
            Kind::PingPong => 2,
            Kind::TimerDropAll { live } | Kind::TimerFire { live } => live,
            Kind::TcpEcho { connections, .. } | Kind::Http { connections } => connections,
            Kind::UdpEcho { clients } | Kind::UdpBatched { clients } => clients,
            Kind::Blocking { in_flight } | Kind::ReadFiles { in_flight } => in_flight,
            _ => 1,
        };
        n.max(1).next_multiple_of(batch)
    }

    /// Enough operations to see that the cell comes to its end.
    #[must_use]
    pub fn few(&self) -> u64 {
        let n = match self.topic() {
            Topic::Process | Topic::Fairness => 5,
            Topic::Bursts => 1,
            Topic::Memory | Topic::Latency => 2000,
            _ => 100,
        };
        self.round_up(n.min(self.timed))
    }

    #[must_use]
    pub fn topic(&self) -> Topic {
        match self.kind {
            Kind::SpawnJoin
            | Kind::SpawnJoinMany { .. }
            | Kind::SelfWake { .. }
            | Kind::Yield
            | Kind::PingPong
            | Kind::CrossThreadWake => Topic::Tasks,
            Kind::Immediates { .. }
            | Kind::YieldImmediate
            | Kind::NextTick { .. }
            | Kind::Microtasks { .. }
            | Kind::SetTimeout => Topic::Lanes,
            Kind::TimerDrop { .. }
            | Kind::TimerDropAll { .. }
            | Kind::TimerReplace { .. }
            | Kind::TimerFire { .. } => Topic::Timers,
            Kind::TcpEcho { .. }
            | Kind::UdpEcho { .. }
            | Kind::UdpBatched { .. }
            | Kind::Http { .. } => Topic::Sockets,
            Kind::Blocking { .. } | Kind::ReadFiles { .. } | Kind::ReadThrough { .. } => {
                Topic::Pool
            }
            Kind::StartStop | Kind::ColdStart | Kind::BinarySize | Kind::Idle => Topic::Process,
            Kind::IdleTask | Kind::IdleTimer | Kind::IdleSleeper | Kind::IdleConnection => {
                Topic::Memory
            }
            Kind::TcpRate { .. } => Topic::Latency,
            Kind::Alone
            | Kind::Hog
            | Kind::WakeStorm
            | Kind::CompletionStorm
            | Kind::AcceptFlood => Topic::Fairness,
            Kind::Burst(_) => Topic::Bursts,
            Kind::Grow(..) => Topic::Growth,
        }
    }

    /// Whether the process is one of two that talk over sockets, each on a core of its own. A
    /// pool's threads would share one.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self.topic(), Topic::Sockets | Topic::Latency)
            || matches!(self.kind, Kind::Grow(Thing::Connection, _))
    }

    /// What `load` is told, after the address, when it is the other end of `n` operations.
    #[must_use]
    pub fn load(&self, n: u64) -> Option<String> {
        match self.kind {
            Kind::TcpEcho {
                connections, bytes, ..
            } => Some(format!("echo {connections} {bytes} {n}")),
            // One message on each connection.
            Kind::Grow(Thing::Connection, _) => Some(format!("echo {n} 64 {n}")),
            Kind::UdpEcho { clients } | Kind::UdpBatched { clients } => {
                Some(format!("datagrams {clients} 64 {n}"))
            }
            Kind::Http { connections } => Some(format!("http {connections} {n}")),
            Kind::TcpRate {
                connections,
                per_second,
            } => Some(format!("rate {connections} 64 {per_second} {n}")),
            Kind::IdleConnection => Some(format!("hold {n}")),
            Kind::AcceptFlood => Some("flood".to_owned()),
            _ => None,
        }
    }
}
