//! Which runtime has which workload.

use super::{Buffer, Burst, Kind, Thing, Topic, Workload};

impl Workload {
    /// Whether the runtime has what this is about, and is built in or installed.
    #[must_use]
    pub fn exists_on(&self, runtime: &str) -> bool {
        if matches!(self.kind, Kind::Axum { .. }) {
            return matches!(runtime, "phaseloop" | "tokio");
        }
        if matches!(self.kind, Kind::Primitive(_)) {
            return matches!(
                runtime,
                "phaseloop" | "tokio" | "tokio-local-set" | "tokio-local-rt"
            );
        }
        if let Kind::Own(own) = self.kind {
            return own.exists_on(runtime);
        }
        match runtime {
            "phaseloop" => true,
            "tokio" | "tokio-local-set" | "tokio-local-rt" => self.has_a_counterpart(),
            "smol" => cfg!(feature = "smol") && self.has_a_counterpart(),
            "tokio-threads" => self.exists_on_tokio_threads(),
            "monoio" => cfg!(feature = "monoio") && self.exists_on_monoio(),
            "compio" => cfg!(feature = "compio") && self.exists_on_compio(),
            "libuv" => cfg!(feature = "libuv") && self.exists_on_libuv(),
            "raw-epoll" => matches!(
                self.kind,
                Kind::TcpEcho { .. }
                    | Kind::TcpRate { .. }
                    | Kind::Http { .. }
                    | Kind::HttpWrk { .. }
                    | Kind::UdpEcho { .. }
                    | Kind::UdpBatched { .. }
                    | Kind::IdleConnection
                    | Kind::BinarySize
            ),
            "std" => matches!(
                self.kind,
                Kind::ReadFiles { .. }
                    | Kind::ReadPages { in_flight: 1 }
                    | Kind::ReadThrough { .. }
                    | Kind::ShortSleep
            ),
            "node" => self.exists_on_node(),
            "phaseloop-node" => self.is_http(),
            "phaseloop-budget" => self.topic() == Topic::Fairness,
            "phaseloop-std" => cfg!(feature = "smol") && self.depends_on_async_task(),
            _ => false,
        }
    }

    /// Whether `phaseloop_node::http` has it; hyper runs on `phaseloop`.
    fn is_http(&self) -> bool {
        matches!(
            self.kind,
            Kind::Http { .. } | Kind::HttpWrk { .. } | Kind::HttpBody { .. } | Kind::IdleHttp
        )
    }

    /// Whether a poll, and with it the feature `std` of `async-task`, is most of it.
    fn depends_on_async_task(&self) -> bool {
        matches!(
            self.kind,
            Kind::SpawnJoin
                | Kind::SpawnJoinMany { .. }
                | Kind::SelfWake { .. }
                | Kind::PingPong
                | Kind::TcpEcho { .. }
        )
    }

    /// Whether runtimes without phases have it: no lanes, no promises, no calls for many datagrams.
    fn has_a_counterpart(&self) -> bool {
        self.topic() != Topic::Lanes
            && !matches!(
                self.kind,
                Kind::UdpBatched { .. }
                    | Kind::RemoteCallFlood { .. }
                    | Kind::Burst(Burst::Immediates)
                    | Kind::Grow(Thing::Promise, _)
            )
    }

    /// It has no thread pool, and hyper does not run on it.
    fn exists_on_monoio(&self) -> bool {
        let lacks = matches!(
            self.kind,
            Kind::Http { .. }
                | Kind::HttpWrk { .. }
                | Kind::HttpBody { .. }
                | Kind::IdleHttp
                | Kind::CompletionStorm
                | Kind::Burst(Burst::Jobs)
                | Kind::Grow(Thing::Job, _)
        );
        self.has_a_counterpart() && !lacks && self.topic() != Topic::Pool
    }

    /// It is here for its ring: sockets and files.
    fn exists_on_compio(&self) -> bool {
        matches!(
            self.kind,
            Kind::TcpEcho { .. } | Kind::UdpEcho { .. } | Kind::ReadPages { .. }
        )
    }

    /// What its tasks, which must be `Send`, are written for; the others measure one thread by
    /// their nature.
    fn exists_on_tokio_threads(&self) -> bool {
        let task = matches!(
            self.kind,
            Kind::SpawnJoin | Kind::SpawnJoinMany { .. } | Kind::Yield
        );
        task || matches!(
            self.topic(),
            Topic::Sockets | Topic::Latency | Topic::Pool | Topic::Fairness
        ) && !matches!(
            self.kind,
            Kind::UdpBatched { .. }
                | Kind::HttpBody { .. }
                | Kind::ReadPages { .. }
                | Kind::ReadThrough { .. }
                | Kind::ShortSleep
        ) || matches!(
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

    /// Its sockets choose their own buffers, and no call of its API is an empty job.
    fn exists_on_node(&self) -> bool {
        match self.kind {
            Kind::TcpEcho { buffer, .. } => buffer == Buffer::Roomy,
            Kind::Burst(burst) => burst != Burst::Jobs,
            Kind::Grow(thing, _) => {
                matches!(thing, Thing::Timer | Thing::Promise | Thing::Connection)
            }
            Kind::Immediates { .. }
            | Kind::NextTick { .. }
            | Kind::Microtasks { .. }
            | Kind::SetTimeout
            | Kind::TimerDrop { .. }
            | Kind::TimerReplace { .. }
            | Kind::TimerFire { .. }
            | Kind::TcpRate { .. }
            | Kind::UdpEcho { .. }
            | Kind::Http { .. }
            | Kind::HttpWrk { .. }
            | Kind::HttpBody { .. }
            | Kind::ReadFiles { .. }
            | Kind::ReadPages { .. }
            | Kind::ReadThrough { .. }
            | Kind::ColdStart
            | Kind::Idle
            | Kind::IdleTimer
            | Kind::IdleConnection
            | Kind::IdleHttp
            | Kind::Alone
            | Kind::Hog
            | Kind::WakeStorm
            | Kind::AcceptFlood => true,
            _ => false,
        }
    }

    /// It has no tasks: what stands for a task that sleeps is a timer with a callback.
    fn exists_on_libuv(&self) -> bool {
        matches!(
            self.kind,
            Kind::Immediates { at_once: 1 }
                | Kind::CrossThreadWake
                | Kind::TimerDrop { .. }
                | Kind::TimerDropAll { .. }
                | Kind::TimerReplace { .. }
                | Kind::TimerFire { .. }
                | Kind::StartStop
                | Kind::ColdStart
                | Kind::BinarySize
                | Kind::Idle
                | Kind::IdleTimer
                | Kind::IdleSleeper
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
                | Kind::Burst(Burst::Sleeps | Burst::Jobs)
                | Kind::Grow(Thing::Timer | Thing::Job | Thing::Connection, _)
        )
    }
}
