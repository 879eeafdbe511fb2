//! The workloads and the runtimes by name, and how often each operation is done.

mod availability;
mod list;
pub mod names;
mod words;

pub use crate::own::Own;
use crate::workload::pool::BigFile;
pub use list::WORKLOADS;

/// The runtimes.
pub const RUNTIMES: [&str; 15] = [
    "phaseloop",
    "tokio",
    "tokio-local-set",
    "tokio-local-rt",
    "tokio-threads",
    "smol",
    "monoio",
    "compio",
    "libuv",
    "raw-epoll",
    "std",
    "node",
    "phaseloop-node",
    "phaseloop-budget",
    "phaseloop-std",
];

/// The one that this is about.
pub const OURS: &str = "phaseloop";

/// A runtime with its kind, for the head of a column.
#[must_use]
pub fn title(runtime: &'static str) -> &'static str {
    match runtime {
        "tokio" => "tokio, current_thread",
        "tokio-local-set" => "tokio, LocalSet",
        "tokio-local-rt" => "tokio, LocalRuntime",
        "tokio-threads" => "tokio, multi_thread",
        "smol" => "smol, LocalExecutor",
        "raw-epoll" => "bare epoll",
        "phaseloop-node" => "phaseloop, node::http",
        "phaseloop-budget" => "phaseloop, lane budget",
        "phaseloop-std" => "phaseloop, async-task/std",
        name => name,
    }
}

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
    /// While a recorder is on; it needs no counterpart.
    Recorded(Unit),
    Yield,
    PingPong,
    CrossThreadWake,
    /// Calls through a handle for other threads, which arrive in the inbox at one moment.
    RemoteCallFlood {
        at_once: u64,
    },
    /// Locks, channels and macros.
    Primitive(Primitive),
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
    /// The client is `wrk`.
    HttpWrk {
        connections: u64,
    },
    Axum {
        connections: u64,
    },
    HttpBody {
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
    /// Pages of a file that is cached.
    ReadPages {
        in_flight: u64,
    },
    StartStop,
    ColdStart,
    BinarySize,
    Idle,
    IdleTask,
    IdleTimer,
    IdleSleeper,
    IdleConnection,
    IdleHttp,
    Alone,
    /// A sleep that is shorter than a millisecond.
    ShortSleep,
    Hog,
    WakeStorm,
    CompletionStorm,
    AcceptFlood,
    Burst(Burst),
    /// So many at once, of which each is made, used once and ended.
    Grow(Thing, u64),
    /// One of `own.rs`.
    Own(&'static Own),
}

/// What a task does with a lock, a channel or a macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    Mutex,
    MutexHandover,
    MpscPingPong,
    MpscBurst { at_once: u64 },
    Oneshot,
    Join3,
    Select3,
}

/// What a recorder may have to record of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Poll,
    Turn,
    Immediate,
    Tick,
    Sleep,
}

impl Unit {
    /// How many there are at one moment.
    #[must_use]
    pub fn at_once(self) -> u64 {
        match self {
            Self::Poll | Self::Turn => 1,
            Self::Immediate | Self::Tick | Self::Sleep => 1000,
        }
    }
}

/// How long the buffer is that a message is read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Longer than the message.
    Roomy,
    /// As long as the message: a read that fills it does not show whether more is there.
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
            Kind::SpawnJoinMany { at_once } | Kind::RemoteCallFlood { at_once } => at_once,
            // Fewer than all are one smaller batch.
            Kind::Grow(_, size) if n < size => 1,
            Kind::Grow(_, size) => size,
            Kind::Immediates { at_once }
            | Kind::NextTick { at_once }
            | Kind::Microtasks { at_once } => at_once,
            Kind::ReadThrough { .. } => BigFile::MEGABYTES,
            Kind::PingPong | Kind::Primitive(Primitive::MutexHandover) => 2,
            Kind::Primitive(Primitive::MpscBurst { at_once }) => at_once,
            Kind::TimerDropAll { live } | Kind::TimerFire { live } => live,
            Kind::Recorded(unit) => unit.at_once(),
            Kind::TcpEcho { connections, .. }
            | Kind::Http { connections }
            | Kind::Axum { connections }
            | Kind::HttpBody { connections } => connections,
            Kind::UdpEcho { clients } | Kind::UdpBatched { clients } => clients,
            Kind::Blocking { in_flight }
            | Kind::ReadFiles { in_flight }
            | Kind::ReadPages { in_flight } => in_flight,
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
            | Kind::RemoteCallFlood { .. }
            | Kind::Primitive(_)
            | Kind::CrossThreadWake => Topic::Tasks,
            Kind::Immediates { .. }
            | Kind::Recorded(_)
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
            | Kind::Http { .. }
            | Kind::HttpWrk { .. }
            | Kind::Axum { .. }
            | Kind::HttpBody { .. } => Topic::Sockets,
            Kind::Blocking { .. }
            | Kind::ReadFiles { .. }
            | Kind::ReadPages { .. }
            | Kind::ReadThrough { .. } => Topic::Pool,
            Kind::StartStop | Kind::ColdStart | Kind::BinarySize | Kind::Idle => Topic::Process,
            Kind::IdleTask
            | Kind::IdleTimer
            | Kind::IdleSleeper
            | Kind::IdleConnection
            | Kind::IdleHttp => Topic::Memory,
            Kind::TcpRate { .. } => Topic::Latency,
            Kind::Alone
            | Kind::ShortSleep
            | Kind::Hog
            | Kind::WakeStorm
            | Kind::CompletionStorm
            | Kind::AcceptFlood => Topic::Fairness,
            Kind::Burst(_) => Topic::Bursts,
            Kind::Grow(..) => Topic::Growth,
            Kind::Own(own) => own.topic,
        }
    }

    /// Whether the process is one of two that talk over sockets, each on a core of its own. A
    /// pool's threads would share one.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self.topic(), Topic::Sockets | Topic::Latency)
            || matches!(self.kind, Kind::Grow(Thing::Connection, _))
    }

    /// What `load` is given, after the address, when it is the other end of `n` operations.
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
            Kind::Http { connections }
            | Kind::Axum { connections }
            | Kind::HttpBody { connections } => Some(format!("http {connections} {n}")),
            Kind::HttpWrk { connections } => Some(format!("wrk {connections} {n}")),
            Kind::TcpRate {
                connections,
                per_second,
            } => Some(format!("rate {connections} 64 {per_second} {n}")),
            Kind::IdleConnection => Some(format!("hold {n}")),
            Kind::IdleHttp => Some(format!("hold_http {n}")),
            Kind::AcceptFlood => Some("flood".to_owned()),
            _ => None,
        }
    }
}
