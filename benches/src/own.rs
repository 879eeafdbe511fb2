//! Workloads of your own: a function and a line in [`OWN`] each. `METHOD.md` has the steps.

use crate::catalogue::{Kind, Topic, Workload};
use crate::meter::{Meter, Reading};
use crate::runtime::Runtime;

/// The list. `cargo bench … -- --only own/` measures them and nothing else.
#[rustfmt::skip]
pub(crate) const OWN: [Workload; 1] = [
    own("own/nested", 500_000, 10_000, &Own {
        about: "spawn a task that spawns another, and wait for both",
        topic: Topic::Tasks,
        run: on_each!(nested),
    }),
];

/// One operation, `n` times, on any runtime with tasks and timers. The bounds `Sockets`, `Http` and
/// `Pool` of `runtime.rs` give sockets, hyper and jobs.
fn nested<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.spawn(async move { drop(rt.spawn(async {}).await) })
                .await;
        }
        meter.stop()
    })
}

/// A workload of your own.
#[derive(Debug)]
pub struct Own {
    /// The operation in words.
    pub about: &'static str,
    /// Where it stands in the report, and which figures are taken.
    pub topic: Topic,
    /// Runs it on the runtime of that name; `None` if it is not written for it.
    pub run: fn(runtime: &str, n: u64) -> Option<Reading>,
}

/// Two are one workload if they are one registration.
impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Own {}

impl Own {
    /// The runtimes that `on_each!` knows.
    pub(crate) fn exists_on(&self, runtime: &str) -> bool {
        let always = ["phaseloop", "tokio", "tokio-local-set", "tokio-local-rt"];
        always.contains(&runtime)
            || cfg!(feature = "smol") && runtime == "smol"
            || cfg!(feature = "monoio") && runtime == "monoio"
    }
}

/// A name, the operations of a run that is timed, those of one that is counted, and the rest.
const fn own(name: &'static str, timed: u64, counted: u64, own: &'static Own) -> Workload {
    Workload {
        name,
        kind: Kind::Own(own),
        timed,
        counted,
        quick: true,
    }
}

/// The function on each runtime with futures.
macro_rules! on_each {
    ($workload:ident) => {
        |runtime, n| {
            use crate::runtime::tokio::{CURRENT_THREAD, LOCAL_RUNTIME, LOCAL_SET, Tokio};
            Some(match runtime {
                "phaseloop" => $workload(crate::runtime::phaseloop::Phaseloop::default(), n),
                "tokio" => $workload(Tokio::<CURRENT_THREAD>, n),
                "tokio-local-set" => $workload(Tokio::<LOCAL_SET>, n),
                "tokio-local-rt" => $workload(Tokio::<LOCAL_RUNTIME>, n),
                #[cfg(feature = "smol")]
                "smol" => $workload(crate::runtime::smol::Smol::new(), n),
                #[cfg(feature = "monoio")]
                "monoio" => $workload(crate::runtime::monoio::Monoio, n),
                _ => return None,
            })
        }
    };
}
use on_each;
