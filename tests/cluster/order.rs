//! What arrives from another loop, and when.

use std::sync::{Arc, Mutex};

use phaseloop::cluster::{self, Builder};
use phaseloop::task::yield_microtask;
use phaseloop::{LoopHandle, next_tick, spawn};

// C7: in the poll phase, each as a callback, in the order of sending.
#[test]
fn calls_of_another_loop_arrive_in_order_each_with_a_drain() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (seen, of_main) = (log.clone(), log.clone());
    Builder::new()
        .loops(2)
        .block_on(async move {
            let cluster = cluster::current();
            let sender = cluster.clone();
            let sent = cluster.each(move |index| {
                let (cluster, seen) = (sender.clone(), seen.clone());
                async move {
                    if index == 0 {
                        return;
                    }
                    for n in 0..100 {
                        let seen = seen.clone();
                        let call = move || {
                            let tick = seen.clone();
                            next_tick(move || tick.lock().unwrap().push((n, "tick")));
                            seen.lock().unwrap().push((n, "call"));
                        };
                        cluster.remote(0).call(call).unwrap();
                    }
                }
            });
            sent.await;
            // The output of a root that has ended is there before its messages are.
            while of_main.lock().unwrap().len() < 200 {
                phaseloop::task::yield_now().await;
            }
        })
        .unwrap();
    let expected: Vec<_> = (0..100).flat_map(|n| [(n, "call"), (n, "tick")]).collect();
    assert_eq!(*log.lock().unwrap(), expected);
}

// C7: a message of a channel wakes its receiver in the poll phase.
#[test]
fn a_message_of_another_loop_arrives_in_the_poll_phase() {
    Builder::new()
        .loops(2)
        .block_on(async {
            let (sender, mut receiver) = cluster::channel(1);
            let receives = spawn(async move {
                let before = LoopHandle::current().metrics();
                assert_eq!(receiver.recv().await, Some(7));
                let since = LoopHandle::current().metrics().since(&before);
                since.callbacks[phaseloop::phase::Phase::Poll as usize]
            });
            // The task waits from here on, so that only the message wakes it.
            yield_microtask().await;
            let sent = cluster::current().each(move |index| {
                let sender = sender.clone();
                async move {
                    if index == 1 {
                        sender.send(7).await.unwrap();
                    }
                }
            });
            let callbacks = receives.await.unwrap();
            assert!(callbacks >= 1, "{callbacks}");
            sent.await;
        })
        .unwrap();
}

// C21: contexts do not cross loops.
#[test]
fn contexts_do_not_cross_loops() {
    static HERE: phaseloop::context::Variable<u32> = phaseloop::context::Variable::new();
    Builder::new()
        .loops(2)
        .block_on(async {
            let seen = HERE.run(5, || {
                cluster::current().each(|_| async { HERE.get().map(|value| *value) })
            });
            let seen: Vec<_> = seen.await.into_iter().map(Result::unwrap).collect();
            assert_eq!(seen, [None, None]);
        })
        .unwrap();
}
