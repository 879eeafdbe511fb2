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
