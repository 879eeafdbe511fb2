//! The list of the workloads, with how often each operation is done.

use super::{Buffer, Burst, Kind, Primitive, Thing, Unit, Workload};
use crate::own::OWN;

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
const LISTED: [Workload; 105] = [
    workload("spawn_join", Kind::SpawnJoin, M, 20 * K).quick(),
    workload("spawn_join/1000", Kind::SpawnJoinMany { at_once: K }, M, 20 * K).quick(),
    workload("self_wake/1", Kind::SelfWake { tasks: 1 }, 3 * M, 50 * K).quick(),
    workload("self_wake/1000", Kind::SelfWake { tasks: K }, 3 * M, 100 * K),
    workload("self_wake/recorded", Kind::Recorded(Unit::Poll), 3 * M, 50 * K),
    workload("yield_immediate/recorded", Kind::Recorded(Unit::Turn), 500 * K, 40 * K),
    workload("immediates/recorded", Kind::Recorded(Unit::Immediate), 3 * M, 100 * K),
    workload("next_tick/recorded", Kind::Recorded(Unit::Tick), 3 * M, 100 * K),
    workload("timer_fire/recorded", Kind::Recorded(Unit::Sleep), 50 * K, 20 * K),
    workload("yield", Kind::Yield, 2 * M, 20 * K),
    workload("ping_pong", Kind::PingPong, 3 * M, 50 * K).quick(),
    workload("cross_thread_wake", Kind::CrossThreadWake, 5 * K, 200).quick(),
    workload("remote_call_flood/25600", Kind::RemoteCallFlood { at_once: 25_600 }, M, 25_600),
    workload("mutex", Kind::Primitive(Primitive::Mutex), 3 * M, 50 * K),
    workload("mutex_handover", Kind::Primitive(Primitive::MutexHandover), M, 20 * K),
    workload("mpsc_ping_pong", Kind::Primitive(Primitive::MpscPingPong), M, 20 * K),
    workload("mpsc_burst/64", Kind::Primitive(Primitive::MpscBurst { at_once: 64 }), 3 * M, 64 * K),
    workload("oneshot", Kind::Primitive(Primitive::Oneshot), M, 20 * K),
    workload("join3", Kind::Primitive(Primitive::Join3), M, 20 * K),
    workload("select3", Kind::Primitive(Primitive::Select3), M, 20 * K),
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
    tcp_echo("tcp_echo/500x64", 500, 64, 200 * K),
    tcp_echo("tcp_echo/1000x64", 1000, 64, 200 * K),
    tcp_echo("tcp_echo/1x16384", 1, 16 * 1024, 30 * K),
    tcp_echo("tcp_echo/50x16384", 50, 16 * 1024, 100 * K).quick(),
    tcp_echo("tcp_echo/1000x16384", 1000, 16 * 1024, 50 * K),
    tcp_exact("tcp_exact/50x16384", 50, 16 * 1024, 100 * K).quick(),
    workload("udp_echo/1", Kind::UdpEcho { clients: 1 }, 30 * K, 10 * K).quick(),
    workload("udp_echo/50", Kind::UdpEcho { clients: 50 }, 200 * K, 10 * K).quick(),
    workload("udp_batched/50", Kind::UdpBatched { clients: 50 }, 200 * K, 10 * K).quick(),
    workload("http/50", Kind::Http { connections: 50 }, 100 * K, 2 * K).quick(),
    workload("http_wrk/50", Kind::HttpWrk { connections: 50 }, 200 * K, 0).quick(),
    workload("axum/50", Kind::Axum { connections: 50 }, 100 * K, 2 * K).quick(),
    workload("http_body/8", Kind::HttpBody { connections: 8 }, 2 * K, 200).quick(),
    workload("blocking/1", Kind::Blocking { in_flight: 1 }, 20 * K, K).quick(),
    workload("blocking/1000", Kind::Blocking { in_flight: K }, 200 * K, 20 * K).quick(),
    workload("read_files/64", Kind::ReadFiles { in_flight: 64 }, 10 * K, 6_400).quick(),
    workload("read_pages/1", Kind::ReadPages { in_flight: 1 }, 64 * K, 6_400),
    workload("read_pages/64", Kind::ReadPages { in_flight: 64 }, 64 * K, 6_400),
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
    workload("idle_http", Kind::IdleHttp, 8 * K, 2 * K).quick(),
    workload("tcp_rate/50x20000", Kind::TcpRate { connections: 50, per_second: 20 * K }, 40 * K, 0),
    workload("tcp_rate/1000x20000", Kind::TcpRate { connections: 1000, per_second: 20 * K }, 100 * K, 0).quick(),
    workload("tcp_rate/1000x50000", Kind::TcpRate { connections: 1000, per_second: 50 * K }, 150 * K, 0),
    workload("victim/alone", Kind::Alone, 500, 0),
    workload("victim/short", Kind::ShortSleep, 1000, 0),
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

/// All workloads: those of the suite, then those of `own.rs`.
pub const WORKLOADS: [Workload; LISTED.len() + OWN.len()] = {
    let mut all = [LISTED[0]; LISTED.len() + OWN.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < LISTED.len() {
            LISTED[i]
        } else {
            OWN[i - LISTED.len()]
        };
        i += 1;
    }
    all
};

impl Workload {
    /// `--quick` keeps it.
    const fn quick(mut self) -> Self {
        self.quick = true;
        self
    }
}
