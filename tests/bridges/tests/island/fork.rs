//! A loop with tokio inside, in a child after `fork` without `exec` (R327).
#![cfg(all(target_os = "linux", not(phaseloop_portable_poller)))]

use std::io::ErrorKind;

use phaseloop::RunMode;

use crate::util::fork::{alone, fork};
use crate::util::trace::ms;

/// tokio's kernel objects are shared with the parent, and tokio cannot replace them.
#[test]
fn a_loop_with_tokio_does_not_go_on_in_a_child_which_may_drop_it() {
    alone(
        "a_loop_with_tokio_does_not_go_on_in_a_child_which_may_drop_it",
        || {
            let mut event_loop = Some(phaseloop::Builder::new().tokio().build().unwrap());
            let work = async {
                tokio::time::sleep(ms(1)).await;
                phaseloop::time::sleep(ms(1)).await;
                tokio::spawn(async { 7 }).await.unwrap()
            };
            assert_eq!(event_loop.as_mut().unwrap().block_on(work), 7);
            let child = fork(|| {
                let inherited = event_loop.as_mut().unwrap();
                let error = inherited.handle().reinit_after_fork().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                let task = inherited.handle().spawn(async {});
                assert!(inherited.run(RunMode::Default).is_err() || task.is_finished());
                drop(event_loop.take());
            });
            child.join();
            let work = async {
                tokio::time::sleep(ms(1)).await;
                phaseloop::time::sleep(ms(1)).await;
                tokio::spawn(async { 8 }).await.unwrap()
            };
            assert_eq!(event_loop.as_mut().unwrap().block_on(work), 8);
        },
    );
}
