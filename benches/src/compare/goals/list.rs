//! The list of the goals.

use super::Bound::{Above, AtMost, FirstOfAll, NotBehind, Times};
use super::{Bound, Goal, Measure};
use crate::catalogue::OURS;
use crate::compare::figure::{
    CPU, Figure, INSTRUCTIONS, P99, P999, RESIDENT, SIZE, SYSCALLS, WALL,
};

/// The call of a runtime that reads and writes by other means than system calls.
pub(super) const RING: &str = "io_uring_enter";

const READS: Measure = Measure::Calls("reads", &["read", "recvfrom", "recvmsg", "recvmmsg"]);
const WRITES: Measure = Measure::Calls("writes", &["write", "sendto", "sendmsg", "sendmmsg"]);
const WAITS: Measure = Measure::Calls(
    "waits",
    &["epoll_wait", "epoll_pwait", "epoll_pwait2", RING],
);
const FUTEX: Measure = Measure::Calls("futex", &["futex"]);

const fn goal(workload: &'static str, measure: Measure, bound: Bound) -> Goal {
    Goal {
        workload,
        runtime: OURS,
        measure,
        bound,
    }
}

const fn figure(workload: &'static str, figure: Figure, bound: Bound) -> Goal {
    goal(workload, Measure::Figure(figure), bound)
}

/// A goal of `phaseloop_node::http`.
const fn node_http(workload: &'static str, of: Figure, bound: Bound) -> Goal {
    Goal {
        runtime: "phaseloop-node",
        ..figure(workload, of, bound)
    }
}

const fn instructions(workload: &'static str, most: f64) -> Goal {
    figure(workload, INSTRUCTIONS, AtMost(most))
}

/// What a recorder may add to a workload.
const fn recorded(workload: &'static str, plain: &'static str, more: f64) -> Goal {
    figure(workload, INSTRUCTIONS, Above(plain, more))
}

const fn bytes(workload: &'static str, most: f64) -> Goal {
    figure(workload, RESIDENT, AtMost(most))
}

/// Where one operation has two bounds, the wider one is what it must cost, the narrower one what it
/// should.
#[rustfmt::skip]
pub(super) const GOALS: [Goal; 73] = [
    instructions("spawn_join", 400.0),
    instructions("spawn_join/1000", 645.0),
    instructions("spawn_join/1000", 590.0),
    instructions("self_wake/1", 132.0),
    instructions("self_wake/1000", 130.0),
    instructions("ping_pong", 168.0),
    instructions("immediates", 350.0),
    goal("immediates", WAITS, AtMost(1.0)),
    recorded("self_wake/recorded", "self_wake/1", 85.0),
    recorded("yield_immediate/recorded", "yield_immediate", 480.0),
    recorded("immediates/recorded", "immediates/1000", 85.0),
    recorded("next_tick/recorded", "next_tick/1000", 60.0),
    recorded("timer_fire/recorded", "timer_fire/1000", 250.0),
    instructions("timer_drop/1000", 350.0),
    instructions("timer_drop/1000000", 350.0),
    figure("timer_drop/1000000", SYSCALLS, AtMost(0.0)),
    instructions("timer_replace/1000", 380.0),
    instructions("timer_fire/10000", 1549.0),
    instructions("timer_fire/100000", 1500.0),
    goal("cross_thread_wake", WRITES, AtMost(1.0)),
    goal("cross_thread_wake", WAITS, AtMost(1.0)),
    goal("cross_thread_wake", READS, AtMost(0.0)),

    bytes("idle_task", 152.0),
    bytes("idle_task", 128.0),
    figure("idle_task", RESIDENT, NotBehind(&["tokio", "smol"])),
    bytes("idle_sleeper", 240.0),
    bytes("idle_connection", 520.0),

    instructions("tcp_echo/1x64", 595.0),
    goal("tcp_echo/1x64", READS, AtMost(1.0)),
    goal("tcp_echo/1x64", WRITES, AtMost(1.0)),
    goal("tcp_echo/1x64", WAITS, AtMost(1.0)),
    instructions("tcp_echo/50x64", 365.0),
    instructions("tcp_echo/50x64", 340.0),
    instructions("tcp_echo/50x64", 310.0),
    goal("tcp_echo/50x64", READS, AtMost(1.0)),
    goal("tcp_echo/50x64", WRITES, AtMost(1.0)),
    goal("tcp_echo/50x64", WAITS, AtMost(0.1)),
    instructions("tcp_echo/50x16384", 400.0),
    goal("tcp_echo/50x16384", READS, AtMost(1.0)),
    goal("tcp_echo/50x16384", WRITES, AtMost(1.0)),
    goal("tcp_exact/50x16384", READS, AtMost(1.0)),
    instructions("udp_echo/1", 850.0),
    goal("udp_echo/1", WAITS, AtMost(1.0)),
    instructions("udp_echo/50", 300.0),
    instructions("udp_batched/50", 60.0),
    goal("udp_batched/50", READS, AtMost(0.2)),
    goal("udp_batched/50", WRITES, AtMost(0.2)),
    figure("http/50", CPU, Times(0.95, "tokio")),
    node_http("http/50", CPU, Times(0.33, "node")),
    node_http("http/50", CPU, Times(1.2, "phaseloop")),
    node_http("http_body/8", CPU, Times(1.0, "node")),
    node_http("idle_http", RESIDENT, Times(0.25, "node")),
    figure("tcp_rate/1000x20000", P99, FirstOfAll),
    figure("tcp_rate/1000x20000", P999, FirstOfAll),

    instructions("blocking/1000", 1100.0),
    figure("blocking/1000", WALL, Times(1.0, "smol")),
    figure("blocking/1000", WALL, Times(0.5, "tokio")),
    goal("blocking/1000", FUTEX, AtMost(0.2)),
    figure("blocking/1", WALL, Times(0.85, "libuv")),
    figure("blocking/1", WALL, NotBehind(&["tokio"])),
    goal("blocking/1", FUTEX, AtMost(2.0)),
    goal("blocking/1", WRITES, AtMost(1.0)),
    goal("blocking/1", WAITS, AtMost(1.0)),
    figure("read_files/64", WALL, Times(0.5, "tokio")),
    figure("read_files/64", WALL, Times(0.25, "node")),
    figure("read_through", WALL, Times(1.05, "std")),
    figure("read_through/1M", WALL, AtMost(66_000.0)),
    figure("read_through/1M", WALL, Times(1.1, "std")),
    figure("binary_size", SIZE, AtMost(460_000.0)),

    figure("immediates/1000", WALL, Times(0.33, "node")),
    figure("next_tick/1000", WALL, Times(0.33, "node")),
    figure("microtasks/1000", WALL, Times(0.33, "node")),
    figure("set_timeout", WALL, Times(0.33, "node")),
];
