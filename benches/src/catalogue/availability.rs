//! Which runtime has which workload.

use super::{Kind, Topic, Workload};

impl Workload {
    /// Whether the runtime has what this is about, and is built in or installed.
    #[must_use]
    pub fn exists_on(&self, runtime: &str) -> bool {
        let topic = self.topic();
        let batched = matches!(self.kind, Kind::UdpBatched { .. });
        match runtime {
            "phaseloop" => true,
            "tokio" | "tokio-local-rt" => topic != Topic::Lanes && !batched,
            "smol" => cfg!(feature = "smol") && topic != Topic::Lanes && !batched,
            "tokio-threads" => self.exists_on_tokio_threads(),
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
            "std" => matches!(self.kind, Kind::ReadFiles { .. } | Kind::ReadThrough),
            "node" => self.exists_on_node(),
            "phaseloop-budget" => topic == Topic::Fairness,
            _ => false,
        }
    }

    /// What its tasks, which must be `Send`, are written for; the others measure one thread by
    /// their nature.
    fn exists_on_tokio_threads(&self) -> bool {
        let task = matches!(self.kind, Kind::SpawnJoin | Kind::Yield);
        task || matches!(
            self.topic(),
            Topic::Sockets | Topic::Latency | Topic::Pool | Topic::Fairness
        ) && !matches!(self.kind, Kind::UdpBatched { .. } | Kind::ReadThrough)
            || matches!(
                self.kind,
                Kind::TimerFire { .. }
                    | Kind::IdleTask
                    | Kind::IdleConnection
                    | Kind::StartStop
                    | Kind::ColdStart
                    | Kind::BinarySize
                    | Kind::Idle
            )
    }

    fn exists_on_node(&self) -> bool {
        matches!(
            self.kind,
            Kind::Immediates { .. }
                | Kind::NextTick { .. }
                | Kind::Microtasks { .. }
                | Kind::SetTimeout
                | Kind::TimerDrop { .. }
                | Kind::TimerFire { .. }
                | Kind::TcpEcho { .. }
                | Kind::TcpRate { .. }
                | Kind::UdpEcho { .. }
                | Kind::Http { .. }
                | Kind::ReadFiles { .. }
                | Kind::ReadThrough
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
            Kind::Immediates { at_once: 1 }
                | Kind::CrossThreadWake
                | Kind::TimerDrop { .. }
                | Kind::TimerDropAll { .. }
                | Kind::TimerFire { .. }
                | Kind::StartStop
                | Kind::ColdStart
                | Kind::BinarySize
                | Kind::Idle
                | Kind::IdleTimer
                | Kind::Alone
                | Kind::Hog
                | Kind::CompletionStorm
                | Kind::AcceptFlood
                | Kind::TcpEcho { .. }
                | Kind::TcpRate { .. }
                | Kind::UdpEcho { .. }
                | Kind::IdleConnection
                | Kind::Blocking { .. }
                | Kind::ReadFiles { .. }
        )
    }
}
