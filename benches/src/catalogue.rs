//! The workloads and the runtimes by name, and how often each operation is done.

/// The runtimes; ratios are against the second.
pub const RUNTIMES: [&str; 10] = [
    "phaseloop",
    "tokio",
    "tokio-local-rt",
    "tokio-threads",
    "smol",
    "monoio",
    "libuv",
    "raw-epoll",
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
    /// Operations in the shorter of two runs that are counted; the longer one has twice as many.
    pub counted: u64,
    /// Whether `--quick` keeps it.
    pub quick: bool,
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
    TcpEcho { connections: u64, bytes: u64 },
    UdpEcho { clients: u64 },
    UdpBatched { clients: u64 },
    Http { connections: u64 },
    TcpRate { connections: u64, per_second: u64 },
    Blocking { in_flight: u64 },
    ReadFiles { in_flight: u64 },
    StartStop,
    ColdStart,
    BinarySize,
    Idle,
    IdleTask,
    IdleTimer,
    IdleConnection,
    Alone,
    Hog,
    WakeStorm,
    CompletionStorm,
    AcceptFlood,
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
}

impl Topic {
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks",
            Self::Lanes => "Ticks and immediates",
            Self::Timers => "Timers",
            Self::Sockets => "Sockets",
            Self::Pool => "Thread pool and files",
            Self::Process => "Start and rest",
            Self::Memory => "Memory",
            Self::Latency => "Latency at a fixed rate",
            Self::Fairness => "Fairness: how late a sleeping victim wakes",
        }
    }
}

const K: u64 = 1_000;
const M: u64 = 1_000 * K;

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
    let kind = Kind::TcpEcho { connections, bytes };
    workload(name, kind, timed, 10 * K)
}

#[rustfmt::skip]
pub const WORKLOADS: [Workload; 44] = [
    workload("spawn_join", Kind::SpawnJoin, 2 * M, 20 * K).quick(),
    workload("self_wake/1", Kind::SelfWake { tasks: 1 }, 5 * M, 50 * K).quick(),
    workload("self_wake/1000", Kind::SelfWake { tasks: K }, 5 * M, 100 * K),
    workload("yield", Kind::Yield, 2 * M, 20 * K),
    workload("ping_pong", Kind::PingPong, 5 * M, 50 * K).quick(),
    workload("cross_thread_wake", Kind::CrossThreadWake, 5 * K, 200).quick(),
    workload("immediates", Kind::Immediates, M, 20 * K).quick(),
    workload("yield_immediate", Kind::YieldImmediate, M, 20 * K),
    workload("next_tick", Kind::NextTick, 5 * M, 50 * K).quick(),
    workload("timer_drop/0", Kind::TimerDrop { live: 0 }, M, 50 * K),
    workload("timer_drop/1000", Kind::TimerDrop { live: K }, M, 50 * K).quick(),
    workload("timer_drop/10000", Kind::TimerDrop { live: 10 * K }, M, 50 * K),
    workload("timer_drop/1000000", Kind::TimerDrop { live: M }, M, 200 * K),
    workload("timer_drop_all/1000", Kind::TimerDropAll { live: K }, M, 50 * K),
    workload("timer_drop_all/100000", Kind::TimerDropAll { live: 100 * K }, M, 100 * K),
    workload("timer_drop_all/1000000", Kind::TimerDropAll { live: M }, M, M),
    workload("timer_fire/1000", Kind::TimerFire { live: K }, 50 * K, 10 * K).quick(),
    workload("timer_fire/100000", Kind::TimerFire { live: 100 * K }, 200 * K, 100 * K),
    workload("timer_fire/1000000", Kind::TimerFire { live: M }, M, M),
    tcp_echo("tcp_echo/1x64", 1, 64, 50 * K).quick(),
    tcp_echo("tcp_echo/50x64", 50, 64, 300 * K).quick(),
    tcp_echo("tcp_echo/1000x64", 1000, 64, 300 * K),
    tcp_echo("tcp_echo/1x16384", 1, 16 * 1024, 50 * K),
    tcp_echo("tcp_echo/50x16384", 50, 16 * 1024, 100 * K).quick(),
    tcp_echo("tcp_echo/1000x16384", 1000, 16 * 1024, 50 * K),
    workload("udp_echo/50", Kind::UdpEcho { clients: 50 }, 300 * K, 10 * K).quick(),
    workload("udp_batched/50", Kind::UdpBatched { clients: 50 }, 300 * K, 10 * K).quick(),
    workload("http/50", Kind::Http { connections: 50 }, 200 * K, 2 * K).quick(),
    workload("blocking/1", Kind::Blocking { in_flight: 1 }, 20 * K, K).quick(),
    workload("blocking/1000", Kind::Blocking { in_flight: K }, 200 * K, 20 * K).quick(),
    workload("read_files/64", Kind::ReadFiles { in_flight: 64 }, 10 * K, 6_400).quick(),
    workload("start_stop", Kind::StartStop, K, 100),
    workload("cold_start", Kind::ColdStart, 1, 1).quick(),
    workload("binary_size", Kind::BinarySize, 1, 1),
    workload("idle", Kind::Idle, K, 200),
    workload("idle_task", Kind::IdleTask, 100 * K, 20 * K).quick(),
    workload("idle_timer", Kind::IdleTimer, 100 * K, 20 * K),
    workload("idle_connection", Kind::IdleConnection, 8 * K, 2 * K).quick(),
    workload("tcp_rate/1000x20000", Kind::TcpRate { connections: 1000, per_second: 20 * K }, 100 * K, 0).quick(),
    workload("victim/alone", Kind::Alone, 500, 0),
    workload("victim/hog", Kind::Hog, 500, 0).quick(),
    workload("victim/wake_storm", Kind::WakeStorm, 300, 0).quick(),
    workload("victim/completion_storm", Kind::CompletionStorm, 500, 0).quick(),
    workload("victim/accept_flood", Kind::AcceptFlood, 500, 0).quick(),
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
            Kind::PingPong => 2,
            Kind::TimerDropAll { live } | Kind::TimerFire { live } => live,
            Kind::TcpEcho { connections, .. } | Kind::Http { connections } => connections,
            Kind::UdpEcho { clients } | Kind::UdpBatched { clients } => clients,
            Kind::Blocking { in_flight } | Kind::ReadFiles { in_flight } => in_flight,
            _ => 1,
        };
        n.max(1).next_multiple_of(batch)
    }

    /// The operation in words.
    #[must_use]
    pub fn about(&self) -> String {
        match self.kind {
            Kind::SpawnJoin => "spawn a task that returns at once, and wait for it".into(),
            Kind::SelfWake { tasks: 1 } => "a task wakes itself and is polled".into(),
            Kind::SelfWake { tasks } => format!("the same among {tasks} tasks"),
            Kind::Yield => "let others run when there are none".into(),
            Kind::PingPong => "hand a value over to another task".into(),
            Kind::CrossThreadWake => "from a wake on another thread to the answer, asleep".into(),
            Kind::Immediates => "a turn of the loop with one immediate".into(),
            Kind::YieldImmediate => "a task lets a whole turn pass".into(),
            Kind::NextTick => "one tick".into(),
            Kind::TimerDrop { live } => format!("arm and drop a timer, {live} others armed"),
            Kind::TimerDropAll { live } => format!("arm {live} timers, then drop all; each"),
            Kind::TimerFire { live } => {
                format!("spawn, sleep, fire and join, {live} at once; each")
            }
            Kind::TcpEcho {
                connections: 1,
                bytes,
            } => format!("TCP: {bytes} bytes there and back, one connection"),
            Kind::TcpEcho { connections, bytes } => {
                format!("TCP: {bytes} bytes there and back, {connections} connections")
            }
            Kind::UdpEcho { clients } => format!("UDP: 64 bytes there and back, {clients} clients"),
            Kind::UdpBatched { clients } => format!("the same in batches, {clients} clients"),
            Kind::Http { connections } => {
                format!("HTTP: a small GET (hyper; Node's own), {connections} connections")
            }
            Kind::TcpRate {
                connections,
                per_second,
            } => {
                format!("TCP: {per_second} messages a second over {connections} connections")
            }
            Kind::Blocking { in_flight } => format!("an empty pool job, {in_flight} in flight"),
            Kind::ReadFiles { in_flight } => {
                format!("read a file of 1 KiB whole, {in_flight} in flight")
            }
            Kind::StartStop => "start the runtime, run one task, end it".into(),
            Kind::ColdStart => "the whole process: start, run one task, end".into(),
            Kind::BinarySize => "a program that is a TCP echo server, stripped".into(),
            Kind::Idle => "a millisecond in which nothing happens, 100 tasks asleep".into(),
            Kind::IdleTask => "a task that waits for ever".into(),
            Kind::IdleTimer => "an armed sleep".into(),
            Kind::IdleConnection => "a connection with a task that waits for a byte".into(),
            Kind::Alone => "a sleep of 1 ms, alone".into(),
            Kind::Hog => "a sleep of 1 ms beside a task that computes 20 µs and yields".into(),
            Kind::WakeStorm => "a sleep of 1 ms beside a task that wakes itself for 20 ms".into(),
            Kind::CompletionStorm => "a sleep of 1 ms beside 1,000 pool jobs in flight".into(),
            Kind::AcceptFlood => "a sleep of 1 ms beside floods of connections, 50 ms each".into(),
        }
    }

    #[must_use]
    pub fn topic(&self) -> Topic {
        match self.kind {
            Kind::SpawnJoin
            | Kind::SelfWake { .. }
            | Kind::Yield
            | Kind::PingPong
            | Kind::CrossThreadWake => Topic::Tasks,
            Kind::Immediates | Kind::YieldImmediate | Kind::NextTick => Topic::Lanes,
            Kind::TimerDrop { .. } | Kind::TimerDropAll { .. } | Kind::TimerFire { .. } => {
                Topic::Timers
            }
            Kind::TcpEcho { .. }
            | Kind::UdpEcho { .. }
            | Kind::UdpBatched { .. }
            | Kind::Http { .. } => Topic::Sockets,
            Kind::Blocking { .. } | Kind::ReadFiles { .. } => Topic::Pool,
            Kind::StartStop | Kind::ColdStart | Kind::BinarySize | Kind::Idle => Topic::Process,
            Kind::IdleTask | Kind::IdleTimer | Kind::IdleConnection => Topic::Memory,
            Kind::TcpRate { .. } => Topic::Latency,
            Kind::Alone
            | Kind::Hog
            | Kind::WakeStorm
            | Kind::CompletionStorm
            | Kind::AcceptFlood => Topic::Fairness,
        }
    }

    /// What `load` is told, after the address, when it is the other end of `n` operations.
    #[must_use]
    pub fn load(&self, n: u64) -> Option<String> {
        match self.kind {
            Kind::TcpEcho { connections, bytes } => Some(format!("echo {connections} {bytes} {n}")),
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

    /// Whether the runtime has what this is about, and is built in or installed.
    #[must_use]
    pub fn exists_on(&self, runtime: &str) -> bool {
        let topic = self.topic();
        let batched = matches!(self.kind, Kind::UdpBatched { .. });
        match runtime {
            "phaseloop" => true,
            "tokio" | "tokio-local-rt" | "smol" => topic != Topic::Lanes && !batched,
            "tokio-threads" => matches!(
                self.kind,
                Kind::SpawnJoin
                    | Kind::TcpEcho { .. }
                    | Kind::TcpRate { .. }
                    | Kind::Http { .. }
                    | Kind::Blocking { .. }
            ),
            "monoio" => {
                let lacks = matches!(self.kind, Kind::Http { .. } | Kind::CompletionStorm);
                let lacks = lacks || matches!(topic, Topic::Lanes | Topic::Pool);
                cfg!(feature = "monoio") && !lacks && !batched
            }
            "libuv" => cfg!(feature = "libuv") && self.exists_on_libuv(),
            "raw-epoll" => matches!(
                self.kind,
                Kind::TcpEcho { .. }
                    | Kind::TcpRate { .. }
                    | Kind::UdpEcho { .. }
                    | Kind::UdpBatched { .. }
                    | Kind::IdleConnection
                    | Kind::BinarySize
            ),
            "node" => self.exists_on_node(),
            "phaseloop-budget" => topic == Topic::Fairness,
            _ => false,
        }
    }

    fn exists_on_node(&self) -> bool {
        matches!(
            self.kind,
            Kind::Immediates
                | Kind::NextTick
                | Kind::TimerDrop { .. }
                | Kind::TimerFire { .. }
                | Kind::TcpEcho { .. }
                | Kind::TcpRate { .. }
                | Kind::UdpEcho { .. }
                | Kind::Http { .. }
                | Kind::ReadFiles { .. }
                | Kind::ColdStart
                | Kind::Idle
                | Kind::IdleTimer
                | Kind::IdleConnection
                | Kind::Alone
                | Kind::Hog
                | Kind::WakeStorm
                | Kind::AcceptFlood
        )
    }

    fn exists_on_libuv(&self) -> bool {
        matches!(
            self.kind,
            Kind::Immediates
                | Kind::CrossThreadWake
                | Kind::TimerDrop { .. }
                | Kind::TcpEcho { .. }
                | Kind::TcpRate { .. }
                | Kind::UdpEcho { .. }
                | Kind::IdleConnection
                | Kind::Blocking { .. }
                | Kind::ReadFiles { .. }
        )
    }
}
