//! Scripts that run over the kernel's loopback interface and in memory, with the same results.
//!
//! Each script writes lines. The lines of both places are compared, and those of the scripts that
//! do not depend on how many bytes a call moves also with the lines under seeds.

use std::cell::RefCell;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use phaseloop::shuffle::Explore;
use phaseloop::sim::Settings;
use phaseloop::{Builder, EventLoop};

/// What a script has seen.
#[derive(Clone, Default)]
pub(crate) struct Log(Rc<RefCell<Vec<String>>>);

impl Log {
    pub(crate) fn line(&self, text: impl Display) {
        self.0.borrow_mut().push(text.to_string());
    }

    pub(crate) fn result<T: std::fmt::Debug>(&self, what: &str, result: io::Result<T>) {
        match result {
            Ok(value) => self.line(format!("{what}: {value:?}")),
            Err(error) => self.line(format!(
                "{what}: {:?} {:?}",
                error.kind(),
                phaseloop::os_error(&error)
            )),
        }
    }
}

pub(crate) type Script = Pin<Box<dyn Future<Output = ()>>>;

fn lines_on(event_loop: EventLoop, script: &dyn Fn(Log) -> Script) -> Vec<String> {
    let log = Log::default();
    event_loop.block_on(script(log.clone()));
    drop(event_loop);
    log.0.take()
}

pub(crate) fn compare(script: &dyn Fn(Log) -> Script, seeds: u64) {
    let network = || Builder::new().network(Settings::default());
    let memory = lines_on(network().build().unwrap(), script);
    // The network in memory behaves as Linux does. Kernels differ in some errors.
    let kernel = if cfg!(target_os = "linux") {
        lines_on(EventLoop::new().unwrap(), script)
    } else {
        memory.clone()
    };
    assert!(
        !kernel.is_empty(),
        "a script that sees nothing tests nothing"
    );
    assert_eq!(memory, kernel, "in memory, and in the kernel");
    if seeds > 0 {
        Explore::new().seeds(seeds).run(|| async {
            let log = Log::default();
            script(log.clone()).await;
            assert_eq!(log.0.take(), kernel, "under a seed, and in the kernel");
        });
    }
}

/// Makes a test of each script.
macro_rules! scripts {
    ($seeds:expr, $($script:ident,)*) => {
        $(
            #[test]
            fn $script() {
                crate::both::compare(&|log| Box::pin(scripts::$script(log)), $seeds);
            }
        )*
    };
}
pub(crate) use scripts;
