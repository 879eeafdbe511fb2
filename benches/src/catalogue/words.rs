//! Workloads and topics in words, for the report.

use super::{Buffer, Burst, Kind, Primitive, Thing, Topic, Unit, Workload};

impl Topic {
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks",
            Self::Lanes => "Ticks, immediates, Node's timers",
            Self::Timers => "Timers",
            Self::Sockets => "Sockets",
            Self::Pool => "Thread pool and files",
            Self::Process => "Start and rest",
            Self::Memory => "Memory",
            Self::Latency => "Latency at a fixed rate",
            Self::Fairness => "Fairness: how late a sleeping victim wakes",
            Self::Bursts => "Bursts: the time until the last is done, and a timer beside them",
            Self::Growth => "Growth: the cost of one of few and of one of many",
        }
    }
}

impl Workload {
    /// The operation in words.
    #[must_use]
    pub fn about(&self) -> String {
        match self.kind {
            Kind::SpawnJoin => "spawn a task that returns at once, and wait for it".into(),
            Kind::SpawnJoinMany { at_once } => {
                format!("spawn {at_once} tasks that return at once, and wait for all; each")
            }
            Kind::SelfWake { tasks: 1 } => "a task wakes itself and is polled".into(),
            Kind::SelfWake { tasks } => format!("the same among {tasks} tasks"),
            Kind::Recorded(Unit::Poll) => "a task wakes itself and is polled, recorded".into(),
            Kind::Recorded(Unit::Turn) => "a task lets a whole turn pass, recorded".into(),
            Kind::Recorded(Unit::Immediate) => "one of 1,000 immediates of a turn, recorded".into(),
            Kind::Recorded(Unit::Tick) => "one of 1,000 ticks that wait, recorded".into(),
            Kind::Recorded(Unit::Sleep) => {
                "spawn, sleep, fire and join, 1,000 at once, recorded; each".into()
            }
            Kind::Yield => "let others run when there are none".into(),
            Kind::PingPong => "hand a value over to another task".into(),
            Kind::CrossThreadWake => "from a wake on another thread to the answer, asleep".into(),
            Kind::RemoteCallFlood { at_once } => {
                format!("one of {at_once} calls that other threads have sent to a loop")
            }
            Kind::Primitive(Primitive::Mutex) => "take and release a lock that is free".into(),
            Kind::Primitive(Primitive::MutexHandover) => {
                "a lock goes to the task that waits for it".into()
            }
            Kind::Primitive(Primitive::MpscPingPong) => {
                "a message through a channel for one, and its answer".into()
            }
            Kind::Primitive(Primitive::MpscBurst { at_once }) => {
                format!("one message through a channel for {at_once} that is filled and emptied")
            }
            Kind::Primitive(Primitive::Oneshot) => {
                "spawn a task and await the value that it sends".into()
            }
            Kind::Primitive(Primitive::Join3) => "await three futures that wait once".into(),
            Kind::Primitive(Primitive::Select3) => {
                "await the first of three futures, which waits once".into()
            }
            Kind::Immediates { at_once: 1 } => "a turn of the loop with one immediate".into(),
            Kind::Immediates { at_once } => format!("one of {at_once} immediates of a turn"),
            Kind::YieldImmediate => "a task lets a whole turn pass".into(),
            Kind::NextTick { at_once: 1 } => "one tick".into(),
            Kind::NextTick { at_once } => format!("one of {at_once} ticks that wait"),
            Kind::Microtasks { at_once } => {
                format!("one of {at_once} closures that wait as microtasks")
            }
            Kind::SetTimeout => "set and clear one of Node's timers".into(),
            Kind::TimerDrop { live } => format!("arm and drop a timer, {live} others armed"),
            Kind::TimerDropAll { live } => format!("arm {live} timers, then drop all; each"),
            Kind::TimerReplace { live } => {
                format!("drop one of {live} armed timers and arm another in its place")
            }
            Kind::TimerFire { live } => {
                format!("spawn, sleep, fire and join, {live} at once; each")
            }
            Kind::TcpEcho {
                connections,
                bytes,
                buffer: Buffer::Exact,
            } => format!(
                "TCP: {bytes} bytes there and back, a buffer as long, {connections} connections"
            ),
            Kind::TcpEcho {
                connections: 1,
                bytes,
                ..
            } => format!("TCP: {bytes} bytes there and back, one connection"),
            Kind::TcpEcho {
                connections, bytes, ..
            } => {
                format!("TCP: {bytes} bytes there and back, {connections} connections")
            }
            Kind::UdpEcho { clients: 1 } => "UDP: 64 bytes there and back, one client".into(),
            Kind::UdpEcho { clients } => format!("UDP: 64 bytes there and back, {clients} clients"),
            Kind::UdpBatched { clients } => format!("the same in batches, {clients} clients"),
            Kind::Http { connections } => {
                format!("HTTP: a GET of 13 bytes (hyper; Node's own), {connections} connections")
            }
            Kind::HttpWrk { connections } => {
                format!("HTTP: the same, asked by wrk, {connections} connections")
            }
            Kind::Axum { connections } => {
                format!("HTTP: a GET of 13 bytes by a handler of axum, {connections} connections")
            }
            Kind::HttpBody { connections } => {
                format!("HTTP: an answer of a mebibyte, streamed, {connections} connections")
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
            Kind::ReadPages { in_flight } => {
                format!("read 4 KiB of a file that is cached, {in_flight} in flight")
            }
            Kind::ReadThrough { at_once } => format!(
                "a megabyte of a file of 64 that is read through, {} KiB at a time",
                at_once / 1024
            ),
            Kind::StartStop => "start the runtime, run one task, end it".into(),
            Kind::ColdStart => "the whole process: start, run one task, end".into(),
            Kind::BinarySize => "a program that is a TCP echo server, stripped".into(),
            Kind::Idle => "a millisecond in which nothing happens, 100 tasks asleep".into(),
            Kind::IdleTask => "a task that waits for ever".into(),
            Kind::IdleTimer => "an armed sleep".into(),
            Kind::IdleSleeper => "a task that is asleep".into(),
            Kind::IdleConnection => "a connection with a task that waits for a byte".into(),
            Kind::IdleHttp => "an HTTP connection that has had its answer".into(),
            Kind::ShortSleep => "a sleep of 100 µs".into(),
            Kind::Alone => "a sleep of 1 ms, alone".into(),
            Kind::Hog => "a sleep of 1 ms beside a task that computes 20 µs and yields".into(),
            Kind::WakeStorm => "a sleep of 1 ms beside a task that wakes itself for 20 ms".into(),
            Kind::CompletionStorm => "a sleep of 1 ms beside 1,000 pool jobs in flight".into(),
            Kind::AcceptFlood => "a sleep of 1 ms beside floods of connections, 50 ms each".into(),
            Kind::Burst(Burst::Sleeps) => "10,000 tasks whose sleeps are due at once".into(),
            Kind::Burst(Burst::Immediates) => "10,000 immediates of one turn".into(),
            Kind::Burst(Burst::Jobs) => {
                "10,000 pool jobs that have ended while the loop was busy".into()
            }
            Kind::Own(own) => own.about.into(),
            Kind::Grow(thing, size) => format!("{}, {size} at once; each", thing.about()),
        }
    }
}

impl Thing {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Task => "task",
            Self::Waiter => "waiter",
            Self::Promise => "promise",
            Self::Job => "job",
            Self::Connection => "connection",
        }
    }

    /// What happens to one of them.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Timer => "a task sleeps, its timer fires, it is joined",
            Self::Task => "a task is spawned, runs and is joined",
            Self::Waiter => "a task waits for an event that wakes all, and is joined",
            Self::Promise => "a task waits for a promise of its own that is settled, and is joined",
            Self::Job => "a job of the thread pool is queued, runs and is joined",
            Self::Connection => "a connection is accepted, echoes one message and is closed",
        }
    }
}
