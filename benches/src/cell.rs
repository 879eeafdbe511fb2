//! One workload on one runtime: what `costs` and `allocs` do.

use std::io;
use std::process::ExitCode;

use crate::affinity::{self, Side};
use crate::catalogue::{Burst, Kind, RUNTIMES, Thing, Unit, WORKLOADS, Workload};
use crate::client::{self, PROBES};
use crate::meter::Reading;
use crate::peer::{blocking, raw_epoll};
#[cfg(feature = "compio")]
use crate::runtime::compio::Compio;
#[cfg(feature = "monoio")]
use crate::runtime::monoio::Monoio;
use crate::runtime::phaseloop::Phaseloop;
#[cfg(feature = "smol")]
use crate::runtime::smol::Smol;
use crate::runtime::tokio::{CURRENT_THREAD, LOCAL_RUNTIME, LOCAL_SET, Tokio};
use crate::runtime::{Http, Pages, Pool, Runtime, Sockets, tokio_threads};
use crate::workload::lanes::{Immediates, Microtasks, Ticks};
use crate::workload::sockets::{BUFFER, buffer_length};
use crate::workload::{
    axum, bursts, cluster, fairness, growth, http, lanes, memory, node_http, pool, process,
    sockets, sync, tasks, timers,
};

/// Runs what the arguments name and prints what it took.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments)
}

/// Runs what `arguments` name and prints what it took.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    if let Some(("load", load)) = split_first(arguments) {
        return load_main(&load);
    }
    match Cell::parse(arguments).and_then(|cell| cell.run()) {
        Some(reading) => {
            reading.print();
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: costs <workload> <runtime> <n> [slowdown]");
            eprintln!(
                "       costs load <address> <kind> <arguments>, the other end of a socket workload"
            );
            let workloads = WORKLOADS.map(|workload| workload.name).join(" ");
            eprintln!("workloads: {workloads}");
            eprintln!("runtimes: {}", RUNTIMES.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn split_first(arguments: &[String]) -> Option<(&str, Vec<&str>)> {
    let (first, rest) = arguments.split_first()?;
    Some((first, rest.iter().map(String::as_str).collect()))
}

/// The process is the client of another.
fn load_main(arguments: &[&str]) -> ExitCode {
    match client::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Cell {
    kind: Kind,
    is_pinned: bool,
    runtime: String,
    n: u64,
    /// Where time plays a part: how much slower than usual the process runs.
    slowdown: u32,
}

impl Cell {
    fn parse(arguments: &[String]) -> Option<Self> {
        let (name, runtime, n, slowdown) = match arguments {
            [name, runtime, n] => (name, runtime, n, 1),
            [name, runtime, n, slowdown] => (name, runtime, n, slowdown.parse().ok()?),
            _ => return None,
        };
        let workload = Workload::find(name)?;
        workload.exists_on(runtime).then_some(Self {
            kind: workload.kind,
            is_pinned: workload.is_pinned(),
            runtime: runtime.clone(),
            n: n.parse().ok()?,
            slowdown,
        })
    }

    /// `None` if there is no such runtime, or it has no such operation.
    fn run(&self) -> Option<Reading> {
        affinity::die_in_time();
        affinity::allow_many_files();
        if self.is_pinned && self.runtime != "tokio-threads" {
            affinity::pin(Side::Server);
        }
        let is_axum = matches!(self.kind, Kind::Axum { .. });
        if let Kind::Primitive(operation) = self.kind {
            return Some(match self.runtime.as_str() {
                "phaseloop" => sync::run(Phaseloop::default(), operation, self.n),
                "tokio" => sync::run(Tokio::<CURRENT_THREAD>, operation, self.n),
                "tokio-local-set" => sync::run(Tokio::<LOCAL_SET>, operation, self.n),
                "tokio-local-rt" => sync::run(Tokio::<LOCAL_RUNTIME>, operation, self.n),
                _ => return None,
            });
        }
        match self.runtime.as_str() {
            "phaseloop" if is_axum => Some(axum::on_phaseloop(self.n)),
            "tokio" if is_axum => Some(axum::on_tokio(self.n)),
            name if matches!(self.kind, Kind::Own(_)) => self.own(name),
            "phaseloop" | "phaseloop-std" => self.lanes().or_else(|| self.all(Phaseloop::default)),
            "phaseloop-node" => self.node_http(),
            "phaseloop-budget" => self.all(|| Phaseloop::WithBudget),
            "tokio" => self.all(|| Tokio::<CURRENT_THREAD>),
            "tokio-local-set" => self.all(|| Tokio::<LOCAL_SET>),
            "tokio-local-rt" => self.all(|| Tokio::<LOCAL_RUNTIME>),
            "tokio-threads" => tokio_threads::run(self.kind, self.n, self.slowdown),
            #[cfg(feature = "smol")]
            "smol" => self.all(Smol::new),
            #[cfg(feature = "monoio")]
            "monoio" => self.tasks(|| Monoio).or_else(|| self.sockets(Monoio)),
            #[cfg(feature = "compio")]
            "compio" => self.sockets(Compio).or_else(|| self.pages(Compio)),
            #[cfg(feature = "libuv")]
            "libuv" => crate::peer::libuv::run(self.kind, self.n, self.slowdown),
            "raw-epoll" => self
                .raw_epoll()
                .map(|reading| reading.expect("it is served")),
            "std" => self.std().map(|reading| reading.expect("it is read")),
            _ => None,
        }
    }

    fn own(&self, runtime: &str) -> Option<Reading> {
        let Kind::Own(own) = self.kind else {
            return None;
        };
        (own.run)(runtime, self.n)
    }

    fn all<R: Http + Pages + Pool>(&self, new: impl Fn() -> R) -> Option<Reading> {
        let rt = new();
        self.tasks(new)
            .or_else(|| self.sockets(rt))
            .or_else(|| self.http(rt))
            .or_else(|| self.pool(rt))
            .or_else(|| self.pages(rt))
    }

    fn tasks<R: Runtime>(&self, new: impl Fn() -> R) -> Option<Reading> {
        let (n, slowdown) = (self.n, self.slowdown);
        Some(match self.kind {
            Kind::SpawnJoin => tasks::spawn_join(new(), n),
            Kind::SpawnJoinMany { at_once } => tasks::spawn_join_many(new(), at_once, n),
            Kind::SelfWake { tasks } => tasks::self_wake(new(), tasks, n),
            Kind::Yield => tasks::yield_now(new(), n),
            Kind::PingPong => tasks::ping_pong(new(), n),
            Kind::CrossThreadWake => tasks::cross_thread_wake(new(), n, slowdown),
            Kind::TimerDrop { live } => timers::timer_drop(new(), live, n),
            Kind::TimerDropAll { live } => timers::timer_drop_all(new(), live, n),
            Kind::TimerReplace { live } => timers::timer_replace(new(), live, n),
            Kind::TimerFire { live } => timers::timer_fire(new(), live, n, slowdown),
            Kind::StartStop => process::start_stop(new, n),
            Kind::ColdStart => process::start_stop(new, 1),
            Kind::Idle => process::idle(new(), n),
            Kind::IdleTask => memory::idle_task(new(), n),
            Kind::IdleTimer => memory::idle_timer(new(), n),
            Kind::IdleSleeper => memory::idle_sleeper(new(), n),
            Kind::Burst(Burst::Sleeps) => bursts::sleeps(new(), n),
            Kind::Grow(Thing::Timer, size) => timers::timer_fire(new(), size.min(n), n, slowdown),
            Kind::Grow(Thing::Task, size) => tasks::spawn_join_many(new(), size.min(n), n),
            Kind::Grow(Thing::Waiter, size) => growth::waiters(new(), size.min(n), n),
            Kind::Alone => fairness::alone(new(), n),
            Kind::ShortSleep => fairness::short_sleep(new(), n),
            Kind::Hog => fairness::hog(new(), n),
            Kind::WakeStorm => fairness::wake_storm(new(), n),
            _ => return None,
        })
    }

    fn lanes(&self) -> Option<Reading> {
        let rt = Phaseloop::default();
        Some(match self.kind {
            Kind::Immediates { at_once } => lanes::closures::<Immediates>(rt, at_once, self.n),
            Kind::YieldImmediate => lanes::yield_immediate(rt, self.n),
            Kind::NextTick { at_once } => lanes::closures::<Ticks>(rt, at_once, self.n),
            Kind::Microtasks { at_once } => lanes::closures::<Microtasks>(rt, at_once, self.n),
            Kind::Recorded(unit) => self.recorded(unit),
            Kind::SetTimeout => lanes::set_timeout(self.n),
            Kind::UdpBatched { .. } => sockets::udp_batched(),
            Kind::RemoteCallFlood { at_once } => cluster::remote_call_flood(at_once, self.n),
            Kind::Burst(Burst::Immediates) => bursts::immediates(self.n),
            Kind::Grow(Thing::Promise, size) => growth::promises(size.min(self.n), self.n),
            _ => return None,
        })
    }

    fn recorded(&self, unit: Unit) -> Reading {
        let (rt, at_once, n) = (Phaseloop::Recorded, unit.at_once(), self.n);
        match unit {
            Unit::Poll => tasks::self_wake(rt, at_once, n),
            Unit::Turn => lanes::yield_immediate(rt, n),
            Unit::Immediate => lanes::closures::<Immediates>(rt, at_once, n),
            Unit::Tick => lanes::closures::<Ticks>(rt, at_once, n),
            Unit::Sleep => timers::timer_fire(rt, at_once, n, self.slowdown),
        }
    }

    fn sockets<R: Sockets>(&self, rt: R) -> Option<Reading> {
        Some(match self.kind {
            Kind::TcpEcho {
                connections,
                bytes,
                buffer,
            } => sockets::tcp_echo(rt, connections, buffer_length(buffer, bytes)),
            Kind::TcpRate { connections, .. } => sockets::tcp_echo(rt, connections, BUFFER),
            Kind::Grow(Thing::Connection, _) => growth::connections(rt, self.n),
            Kind::UdpEcho { .. } => sockets::udp_echo(rt),
            Kind::IdleConnection => memory::idle_connection(rt, self.n),
            Kind::AcceptFlood => fairness::accept_flood(rt, self.n),
            _ => return None,
        })
    }

    fn http<R: Http>(&self, rt: R) -> Option<Reading> {
        Some(match self.kind {
            Kind::Http { connections } => http::http(rt, connections),
            Kind::HttpWrk { connections } => http::http(rt, connections + PROBES),
            Kind::HttpBody { connections } => http::http_body(rt, connections),
            Kind::IdleHttp => http::idle_http(rt, self.n),
            _ => return None,
        })
    }

    fn node_http(&self) -> Option<Reading> {
        Some(match self.kind {
            Kind::Http { connections } => node_http::http(connections),
            Kind::HttpWrk { connections } => node_http::http(connections + PROBES),
            Kind::HttpBody { connections } => node_http::http_body(connections),
            Kind::IdleHttp => node_http::idle_http(self.n),
            _ => return None,
        })
    }

    fn pool<R: Pool>(&self, rt: R) -> Option<Reading> {
        Some(match self.kind {
            Kind::Blocking { in_flight } => pool::blocking(rt, in_flight, self.n),
            Kind::ReadFiles { in_flight } => pool::read_files(rt, in_flight, self.n),
            Kind::ReadThrough { at_once } => pool::read_through(rt, at_once as usize, self.n),
            Kind::CompletionStorm => fairness::completion_storm(rt, self.n),
            Kind::Burst(Burst::Jobs) => bursts::jobs(rt, self.n),
            Kind::Grow(Thing::Job, size) => growth::jobs(rt, size.min(self.n), self.n),
            _ => return None,
        })
    }

    fn pages<R: Pages>(&self, rt: R) -> Option<Reading> {
        let Kind::ReadPages { in_flight } = self.kind else {
            return None;
        };
        Some(pool::read_pages(rt, in_flight, self.n))
    }

    fn raw_epoll(&self) -> Option<io::Result<Reading>> {
        Some(match self.kind {
            Kind::TcpEcho {
                connections,
                bytes,
                buffer,
            } => raw_epoll::tcp_echo(connections, buffer_length(buffer, bytes)),
            Kind::TcpRate { connections, .. } => raw_epoll::tcp_echo(connections, BUFFER),
            Kind::Http { connections } => raw_epoll::http(connections),
            Kind::HttpWrk { connections } => raw_epoll::http(connections + PROBES),
            Kind::UdpEcho { .. } => raw_epoll::udp_echo(),
            Kind::UdpBatched { .. } => raw_epoll::udp_batched(),
            Kind::IdleConnection => raw_epoll::idle_connection(self.n),
            _ => return None,
        })
    }

    fn std(&self) -> Option<io::Result<Reading>> {
        Some(match self.kind {
            Kind::ReadFiles { .. } => blocking::read_files(self.n),
            Kind::ReadPages { .. } => blocking::read_pages(self.n),
            Kind::ShortSleep => Ok(blocking::short_sleep(self.n)),
            Kind::ReadThrough { at_once } => blocking::read_through(at_once as usize, self.n),
            _ => return None,
        })
    }
}
